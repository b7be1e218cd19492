"""Policies of buckets of observations, `[bucket, q]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qrmax.agents import step_loops
from qrmax.agents.buckets.buckets import Buckets
from qrmax.agents.buckets.in_buckets import BucketPolicy
from qrmax.empirical.growth import padded
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.problems.continuous_problem import ContinuousProblem, PlaneSimulator
from qrmax.seeding import Stream
from qrmax.training.episode_sampling import sample
from qrmax.training.policies.policy import Encoded, Policy, View

if TYPE_CHECKING:
    from qrmax.training.domains.domain import Domain


class BucketTablePolicy(Policy):
    """A table `[bucket, q]` of actions, and the buckets."""

    at_once = 50  # episodes are sampled one after the other

    def __init__(self, recommendation: BucketPolicy) -> None:
        super().__init__(recommendation)
        self.buckets = recommendation.buckets
        self.reads_labels = self.buckets.event_aware

    @classmethod
    def takes(cls, recommendation: Any) -> bool:
        """Whether it is a `BucketPolicy`."""
        return isinstance(recommendation, BucketPolicy)

    def action(self, view: View, q: int, stage: int = 0) -> int:  # noqa: ARG002
        """The action in the bucket of an observation."""
        return int(self.recommendation.action(view.state, view.label, q))

    @property
    def table(self) -> IntArray:
        """The table, `[bucket, q]`."""
        table: IntArray = self.recommendation.table
        return table

    def encoded(self, domain: Domain) -> Encoded:  # noqa: ARG002
        """The table, and the hyperplanes or the grid that define the buckets."""
        return Encoded(_encoder(self.buckets, len(self.table)), [self.table])

    def sample(
        self, problem: ContinuousProblem, episodes: int, chance: Stream, gamma: float
    ) -> FloatArray:
        """Sampled episodes `[episode, 3]`, by the compiled loop."""
        player = PlaneSimulator(problem, chance, self.buckets.find)
        ground = step_loops.Ground.of(player, self.buckets.lookup())
        room = max(len(self.table), len(self.buckets))  # more may have been discovered since
        actions = padded(self.table, room)[None]
        return sample(player.world, player.state, actions, gamma, episodes, chance, ground)


def _encoder(buckets: Buckets, count: int) -> dict[str, Any]:
    """The map from an observation to the number of its bucket, as plain data."""
    scaling, projection = buckets.observations.scaling, buckets.projection
    columns = (projection.rows, projection.top, projection.word, projection.shift)
    return {
        "labelled": int(buckets.event_aware),
        "bounds": [
            None if squashed else [low, high]
            for low, high, squashed in zip(*(part.tolist() for part in scaling), strict=True)
        ],
        "words": projection.words - 1,
        "rows": [list(row) for row in zip(*(part.tolist() for part in columns), strict=True)],
        "keys": buckets.snapshot()["keys"][:count].tolist(),
    }
