"""How good a policy is where states are real positions: sampled, beside a near-exact optimum.

Nothing is exact there. A policy is played for so many episodes; the optimum is that of the problem
on a fine grid, whose error is estimated by refining it (see `qrmax.planning.fine_grid`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from qrmax.agents import kernels
from qrmax.agents.in_buckets import BucketPolicy
from qrmax.model.continuous import ContinuousProblem, PlaneSimulator
from qrmax.model.growth import padded
from qrmax.planning.arrays import FloatArray
from qrmax.planning.policy_evaluation import Evaluation
from qrmax.seeding import Stream
from qrmax.training.evaluation import Point, relative_gap, sample

EPISODES = 1000
"""How many episodes a policy is judged by where nothing else is said."""


class PlaneReferee:
    """Judges the policies of a continuous problem by sampling them."""

    horizon = None

    def __init__(self, problem: ContinuousProblem, gamma: float) -> None:
        self.problem = problem
        self.gamma = gamma
        self._policy: Any = None  # the one that was judged last, and what was found
        self._found = np.zeros((0, 3))

    @cached_property
    def solution(self) -> Any:
        """The optimum, nearly."""
        from qrmax.planning.fine_grid import solve_continuous

        return solve_continuous(self.problem, self.gamma)

    @property
    def best(self) -> float:
        """What the optimal policy brings."""
        return self.solution.start_value

    @property
    def best_success(self) -> float:
        """How likely the optimal policy is to succeed."""
        return self.solution.success

    def success(self, policy: Any, episodes: int, chance: Stream) -> float:
        """The share of episodes in which a policy succeeds."""
        return float(self.judge(policy, episodes, chance)[:, 1].mean())

    def returns(self, policy: Any, episodes: int, chance: Stream) -> FloatArray:
        """The discounted rewards of so many episodes."""
        return self.judge(policy, episodes, chance)[:, 0]

    def judge(self, policy: Any, episodes: int, chance: Stream) -> FloatArray:
        """Episodes of a policy: the return of each, whether it succeeded, its length."""
        if policy is not self._policy or len(self._found) != episodes:
            self._policy, self._found = policy, self._sample(policy, episodes, chance)
        return self._found

    def evaluate(self, policy: Any, chance: Stream, episodes: int = EPISODES) -> Evaluation:
        """All that this policy brings, as far as so many episodes show."""
        returns, success, length = self.judge(policy, episodes, chance).T
        return Evaluation(
            start_value=float(returns.mean()),
            success=float(success.mean()),
            mean_length=float(length[success > 0.0].mean()) if success.any() else None,
            nominal_length=None,
        )

    def point(self, step: int, episodes: int, policy: Any, chance: Stream) -> Point:
        """The row of a learning curve at this step."""
        judged = self.evaluate(policy, chance, len(self._found) or EPISODES)
        gap = relative_gap(judged.start_value, self.best)
        return Point(step, judged.start_value, gap, judged.success, None, episodes)

    def _sample(self, policy: Any, episodes: int, chance: Stream) -> FloatArray:
        if not isinstance(policy, BucketPolicy):
            from qrmax.model.sampling import sample_episodes

            chance.random()  # or the next sample would be the same
            rng = chance.apart("episodes")
            played = sample_episodes(self.problem, policy, episodes, rng, self.gamma)
            return np.stack([*played], axis=1).astype(np.float64)
        player = PlaneSimulator(self.problem, chance, policy.buckets.find)
        ground = kernels.Ground(self.problem.plane, player.position, policy.buckets.lookup())
        room = max(len(policy.table), len(policy.buckets))  # more may have turned up since
        actions = padded(policy.table, room)[None]
        return sample(player.world, player.state, actions, self.gamma, episodes, chance, ground)
