"""How good a policy is where states are real positions: sampled, beside a near-exact optimum.

Nothing is exact there. A policy is played for so many episodes; the optimum is that of the problem
on a fine grid, whose error is estimated by refining it (see `qrmax.planning.fine_grid`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from qrmax.agents import step_loops
from qrmax.agents.buckets.in_buckets import BucketPolicy
from qrmax.empirical.growth import padded
from qrmax.planning.arrays import FloatArray
from qrmax.planning.fine_grid import FineSolution, solve_continuous
from qrmax.planning.policy_evaluation import Evaluation
from qrmax.problems.continuous_problem import ContinuousProblem, PlaneSimulator
from qrmax.problems.sampling import sample_episodes
from qrmax.seeding import Stream
from qrmax.training.evaluation import Point, relative_gap, sample

EPISODES = 200
"""How many episodes a policy is judged by where nothing else is said."""

AT_ONCE = 50
"""After how many episodes to see whether more are needed."""

CROWD = 200
"""The same for policies that act in many episodes at once, for which more cost hardly more."""


class PlaneReferee:
    """Judges the policies of a continuous problem by sampling them.

    Those of a shaped task are judged by the plain one.
    """

    horizon = None

    def __init__(self, problem: ContinuousProblem, gamma: float) -> None:
        self.problem = problem  # that of the runs
        self.judged = problem.judged
        self.gamma = gamma
        self._policy: Any = None  # the one that was judged last, and its episodes
        self._played = np.zeros((0, 3))

    @cached_property
    def solution(self) -> FineSolution:
        """The optimum, nearly."""
        return solve_continuous(self.judged, self.gamma)

    @property
    def is_solved(self) -> bool:
        """Whether the optimum is known already: to find it takes seconds."""
        return "solution" in self.__dict__  # as cached_property keeps it

    @property
    def best(self) -> float:
        """What the optimal policy brings."""
        return self.solution.start_value

    @property
    def best_success(self) -> float:
        """How likely the optimal policy is to succeed."""
        return self.solution.success

    def success(self, policy: Any, episodes: int, chance: Stream, at_least: float = 0.0) -> float:
        """The share of episodes in which a policy succeeds.

        Once so many have failed that it cannot be as much as `at_least`, no more are played: most
        policies are bad, and bad ones take longest.
        """
        played = np.zeros((0, 3))
        at_once = AT_ONCE if isinstance(policy, BucketPolicy) else CROWD
        while len(played) < episodes:
            more = self.play(policy, min(at_once, episodes - len(played)), chance)
            played = np.concatenate([played, more])
            if (played[:, 1] == 0.0).sum() > (1.0 - at_least) * episodes:
                break
        self._policy, self._played = policy, played
        return float(played[:, 1].mean())

    def evaluate(self, policy: Any, chance: Stream, episodes: int = EPISODES) -> Evaluation:
        """All that this policy brings, as far as so many episodes show."""
        return _summary(self.play(policy, episodes, chance))

    def point(self, step: int, policy: Any, chance: Stream) -> Point:
        """The row of a learning curve at this step; what was played for the rule serves again."""
        played = self._played
        if policy is not self._policy:
            played = self.play(policy, EPISODES, chance)
        judged = _summary(played)
        gap = relative_gap(judged.start_value, self.best)
        return Point(step, judged.start_value, gap, judged.success, None)

    def play(self, policy: Any, episodes: int, chance: Stream) -> FloatArray:
        """Episodes of a policy: the return of each, whether it succeeded, its length."""
        if not isinstance(policy, BucketPolicy):
            chance.random()  # or the next sample would be the same
            rng = chance.apart("episodes")
            played = sample_episodes(self.judged, policy, episodes, rng, self.gamma)
            return np.stack([*played], axis=1).astype(np.float64)  # [episode, 3]
        player = PlaneSimulator(self.judged, chance, policy.buckets.find)
        ground = step_loops.Ground(self.judged.plane, player.position, policy.buckets.lookup())
        room = max(len(policy.table), len(policy.buckets))  # more may have turned up since
        actions = padded(policy.table, room)[None]
        return sample(player.world, player.state, actions, self.gamma, episodes, chance, ground)


def _summary(played: FloatArray) -> Evaluation:
    returns, success, length = played.T
    return Evaluation(
        start_value=float(returns.mean()),
        success=float(success.mean()),
        mean_length=float(length[success > 0.0].mean()) if success.any() else None,
        nominal_length=None,
    )
