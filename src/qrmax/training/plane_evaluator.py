"""Sampled policy evaluation on a problem with real positions, beside a near-exact optimum.

Neither is exact. A policy is evaluated by sampled episodes; the optimum is that of the problem on a
fine grid, whose error is estimated by refining it (see `qrmax.planning.fine_grid`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from qrmax.planning.arrays import FloatArray
from qrmax.planning.fine_grid import FineSolution, solve_continuous
from qrmax.planning.policy_evaluation import Evaluation
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.seeding import Stream, stream
from qrmax.training.evaluator import Best, Evaluator
from qrmax.training.goal import Goal
from qrmax.training.point import Point, relative_gap
from qrmax.training.policies.policy_kinds import as_policy

EPISODES = 200
"""The default number of episodes of a policy evaluation."""

JUDGED_BY = 10_000
"""The number of episodes of the final evaluation of a run."""


class PlaneEvaluator(Evaluator):
    """Sampled evaluation of the policies of a continuous problem, without reward shaping."""

    def __init__(self, problem: ContinuousProblem, gamma: float) -> None:
        self.problem = problem  # that of the runs
        self.unshaped = problem.unshaped
        self.gamma = gamma
        self._policy: Any = None  # the last one evaluated, and its episodes
        self._played = np.zeros((0, 3))

    @cached_property
    def solution(self) -> FineSolution:
        """The near-exact optimum."""
        return solve_continuous(self.unshaped, self.gamma)

    @property
    def is_solved(self) -> bool:
        """Whether the optimum has been computed already, which takes seconds."""
        return "solution" in self.__dict__  # as cached_property keeps it

    @property
    def optimum(self) -> Best:
        """The optimal policy in numbers."""
        return Best(self.best, self.best_success)

    @property
    def best(self) -> float:
        """The value of the optimal policy at the start."""
        return self.solution.start_value

    @property
    def best_success(self) -> float:
        """The probability of success of the optimal policy."""
        return self.solution.success

    def reaches(self, policy: Any, goal: Goal, episodes: int, chance: Stream) -> bool:
        """Whether the policy reaches a goal in `episodes` sampled episodes.

        Sampling ends early once the goal is out of reach: most policies are bad, and episodes of
        bad ones are the longest.
        """
        played = np.zeros((0, 3))
        at_once = as_policy(policy).at_once
        while len(played) < episodes:
            more = self.play(policy, min(at_once, episodes - len(played)), chance)
            played = np.concatenate([played, more])
            if goal.is_out_of_reach([*(played[:, 1] > 0.0)], episodes):
                break
        self._policy, self._played = policy, played
        returns, success, _ = played.mean(axis=0).tolist()
        undiscounted = None
        if goal.episode_return is not None:
            sampled = as_policy(policy).sample(self.unshaped, episodes, chance, 1.0)
            undiscounted = float(sampled[:, 0].mean())
        return goal.is_met(Goal(success, returns, undiscounted))

    def success(self, policy: Any, episodes: int, chance: Stream) -> float:
        """The success rate of a policy in sampled episodes."""
        return self.evaluate(policy, chance, episodes).success

    def evaluate(self, policy: Any, chance: Stream, episodes: int = EPISODES) -> Evaluation:
        """The evaluation of a policy by `episodes` sampled episodes."""
        return _summary(self.play(policy, episodes, chance))

    def judge(self, policy: Any, seed: int) -> Evaluation:
        """The evaluation by 10,000 episodes, the same ones for the same seed."""
        return self.evaluate(policy, stream(seed, "judgement"), JUDGED_BY)

    def point(self, step: int, policy: Any, chance: Stream) -> Point:
        """The row of a learning curve at this step, from the stopping rule's episodes if any."""
        played = self._played
        if policy is not self._policy:
            played = self.play(policy, EPISODES, chance)
        evaluated = _summary(played)
        gap = relative_gap(evaluated.start_value, self.best)
        return Point(step, evaluated.start_value, gap, evaluated.success, None)

    def failure(self, policy: Any, seed: int, curve: Sequence[Point]) -> str:  # noqa: ARG002
        """A message if the policy does not succeed; empty if it does."""
        found = self.evaluate(policy, stream(seed, "judgement"))
        if found.success == 0.0 and not self.is_solved:  # which takes long
            return "its policy does not succeed"
        return self.optimum.lacking(found.success)

    def play(self, policy: Any, episodes: int, chance: Stream) -> FloatArray:
        """Episodes of a policy: the return of each, its success, its length."""
        return as_policy(policy).sample(self.unshaped, episodes, chance, self.gamma)


def _summary(played: FloatArray) -> Evaluation:
    returns, success, length = played.T
    return Evaluation(
        start_value=float(returns.mean()),
        success=float(success.mean()),
        mean_length=float(length[success > 0.0].mean()) if success.any() else None,
        nominal_length=None,
    )
