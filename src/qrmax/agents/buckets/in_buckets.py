"""Tabular agents on real-valued observations: their states are buckets of observations.

A state is the bucket of an observation (see `buckets.py` and `simhash.py`). Buckets are numbered in
the order of first visits, and the tables of the agent grow with them, by doubling. All else is the
agent's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.agents import step_loops
from qrmax.agents.base import (
    NOTHING,
    AnySimulator,
    FastForwardResult,
    ModelCoverage,
    Sizes,
    VisitCounts,
)
from qrmax.agents.buckets.buckets import FIRST, Buckets
from qrmax.agents.buckets.simhash import Projection, simhash, uniform_grid
from qrmax.agents.experience import Experience
from qrmax.agents.model_based import ModelBased, ModelBasedConfig
from qrmax.errors import check_count, check_flag
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.problems.continuous_problem import PlaneSimulator
from qrmax.problems.observations import Observations
from qrmax.problems.simulator import Step
from qrmax.seeding import Stream


@dataclass(frozen=True, kw_only=True)
class BucketSettings:
    """Settings of the encoder of observations, and of the samples of rewards."""

    functions: int = 4  # L, functions of SimHash
    bits: int = 8  # d_h, hyperplanes of each of them
    offset: float = 1.0  # standard deviation of hyperplanes' offsets; 0: all go through the middle
    grid: int | None = None  # cells per side of a uniform grid, in place of SimHash
    event_aware: bool = False  # whether observations with different labels share no bucket
    t_env_reward: int | None = None  # samples of the world's reward; None: t_env

    @property
    def reads_labels(self) -> bool:
        """Whether it learns from labels."""
        return self.event_aware

    def check(self) -> None:
        """Raise a `ParameterError` if a setting is out of range."""
        simhash(1, self.functions, self.bits, self.offset, np.random.default_rng(0))
        if self.grid is not None:
            uniform_grid(1, self.grid)
        check_flag("event_aware", self.event_aware)
        if self.t_env_reward is not None:
            check_count("t_env_reward", self.t_env_reward)

    def projection(self, dimension: int, rng: np.random.Generator) -> Projection:
        """Return the projection that encodes observations of this dimension."""
        if self.grid is not None:
            return uniform_grid(dimension, self.grid)
        return simhash(dimension, self.functions, self.bits, self.offset, rng)


@dataclass(frozen=True)
class BucketPolicy:
    """A greedy policy by bucket; in a bucket never visited, the first action."""

    table: IntArray  # [bucket, q]
    buckets: Buckets

    def action(self, observation: Any, label: int, q: int) -> int:
        """The action for an observation, the number of its label and a machine state."""
        bucket = self.buckets.find(observation, label)
        known = bucket is not None and bucket < len(self.table)  # others are new since then
        return int(self.table[bucket, q]) if known else 0


class InBuckets(ModelBased):
    """An agent that plans, behind an encoder of observations."""

    perceives = True
    in_loop = frozenset({"perceive", "begin_episode", "update", "fast_forward"})

    def __init__(
        self,
        sizes: Sizes,
        config: ModelBasedConfig,
        rng: Stream,
        experience: Experience,
        observations: Observations,
    ) -> None:
        super().__init__(sizes._replace(states=FIRST), config, rng, experience)
        told: Any = config  # it has the `BucketSettings` as well
        projection = told.projection(observations.dimension, rng.apart("buckets"))
        self.buckets = Buckets(observations, projection, event_aware=told.event_aware)

    def perceive(self, observation: Any, label: int) -> int:
        """The number of the observation's bucket."""
        return self.buckets.number(observation, label)

    @property
    def perceives_labels(self) -> bool:
        """Whether observations with different labels share no bucket."""
        told: Any = self.config
        return bool(told.event_aware)

    def begin_episode(self, s: int, q: int) -> None:
        """Make room for the bucket that the episode starts in."""
        self._make_room(s)
        super().begin_episode(s, q)

    def update(self, s: int, q: int, a: int, step: Step) -> None:
        """Learn from one transition, perhaps into a new bucket."""
        self._make_room(step.s)
        super().update(s, q, a, step)  # type: ignore[safe-super]  # that of QR-Max or R-Max

    def _make_room(self, s: int) -> None:
        room = self.sizes.states
        while room <= s:
            room *= 2
        if room > self.sizes.states:
            self.grow(room)

    @property
    def q(self) -> FloatArray:
        """The action values in the buckets visited so far, `[bucket, q, a]`."""
        return super().q[: len(self.buckets)]

    def policy(self) -> IntArray:
        """The greedy policy in the buckets visited so far, `[bucket, q]`."""
        return super().policy()[: len(self.buckets)]

    def recommendation(self) -> BucketPolicy:
        """The greedy policy, by buckets."""
        return BucketPolicy(self.policy(), self.buckets)

    def known(self) -> ModelCoverage:
        """The pairs whose visit count has reached the threshold, of all there are so far."""
        room, found = self.sizes.states, len(self.buckets)
        known, of = super().known()
        return ModelCoverage(known, of * found // room)  # counters have an axis of buckets each

    def visits(self) -> VisitCounts:
        """The visits of the buckets visited so far, counted up to the threshold."""
        found = super().visits()
        return found._replace(n=found.n[: len(self.buckets)])

    def ground(self, simulator: AnySimulator) -> step_loops.Ground:
        """The plane and its buckets, for the compiled loop."""
        assert isinstance(simulator, PlaneSimulator)  # the trainer ensures it
        return step_loops.Ground.of(simulator, self.buckets.lookup())

    def fast_forward(self, simulator: AnySimulator, limit: int) -> FastForwardResult:
        """Take compiled steps, up to one that completes an estimate or reaches something new."""
        ahead = super().fast_forward(simulator, limit)
        if simulator.s == NOTHING:  # an episode has started in a new bucket
            self._make_room(simulator.look())
        return ahead

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Counters, planner and buckets."""
        buckets = {f"buckets.{name}": array for name, array in self.buckets.snapshot().items()}
        return {**super().snapshot(), **buckets}

    def make_room_for(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Grow as large as the agent of this snapshot was."""
        self._make_room(len(arrays["buckets.keys"]) - 1)

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore all of that."""
        prefix = "buckets."
        self.buckets.restore(
            {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)}
        )
        super().restore(arrays)
