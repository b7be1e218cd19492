"""Exact policy evaluation on a tabular problem, beside the optimum.

Nothing is sampled. The gap to the optimum is relative, and both are evaluated with the same limit
on the length of an episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from qrmax.errors import warn
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.planning.comparison import Comparison
from qrmax.planning.policy_evaluation import (
    Evaluation,
    evaluate,
    negligible_after,
    nominal_length,
    nominal_reward,
)
from qrmax.planning.return_distribution import ReturnDistribution, return_distribution
from qrmax.planning.staged_solution import StagedSolution, solve_horizon
from qrmax.planning.value_iteration import Solution, solve
from qrmax.problems.problem import Problem
from qrmax.problems.simulator import Simulator
from qrmax.seeding import Stream
from qrmax.training.episode_sampling import sample
from qrmax.training.evaluator import Best, Evaluator
from qrmax.training.goal import Goal
from qrmax.training.point import Point, relative_gap


class ExactEvaluator(Evaluator):
    """Exact evaluation of the policies of a tabular problem, without reward shaping.

    With a `horizon`, an episode has at most that many steps, and the optimal policy depends on the
    stage, `[h, s, q]`. Without one, episodes are those of the problem. The policies evaluated may
    have stages in either case; without a horizon they restart after their last stage.
    """

    def __init__(self, problem: Problem, gamma: float, horizon: int | None = None) -> None:
        self.problem = problem  # that of the runs
        self.unshaped = problem.unshaped
        self.gamma = gamma
        self.horizon = horizon
        self._policy: IntArray | None = None  # the last one evaluated, and its evaluation
        self._evaluation: Evaluation | None = None
        self._near: dict[float, bool] = {}
        self._returns: tuple[ReturnDistribution | None] | None = None

    @property
    def repeats_stages(self) -> bool:
        """Whether policies with stages restart after the last one."""
        return self.horizon is None

    @property
    def optimum(self) -> Best:
        """The optimal policy in numbers, with the same gamma and horizon."""
        return Best(self.best, self.best_success)

    @cached_property
    def solution(self) -> Solution | StagedSolution:
        """The optimum."""
        if self.horizon is None:
            return solve(self.unshaped, self.gamma)
        return solve_horizon(self.unshaped, self.horizon, self.gamma)

    @cached_property
    def best(self) -> float:
        """The value of the optimal policy at the start."""
        best = evaluate(self.unshaped, self.solution.policy, self.gamma).start_value
        lowest, highest = self.unshaped.reward_range()
        if isinstance(self.solution, StagedSolution) and best == 0.0 <= lowest < highest:
            warn(
                f"no policy for {self.unshaped.name!r} has a reward within "
                f"{self.solution.horizon} steps: all are equally good; give a longer horizon"
            )
        return best

    @cached_property
    def shortest(self) -> int | None:
        """The nominal length of the optimal policy."""
        return self.nominal_length(self.solution.policy)

    @cached_property
    def most(self) -> float:
        """The undiscounted return of the optimal policy's nominal episode."""
        return nominal_reward(self.unshaped, self.solution.policy)

    @cached_property
    def best_success(self) -> float:
        """The probability of success of the optimal policy."""
        return evaluate(self.unshaped, self.solution.policy, self.gamma).success

    @cached_property
    def _comparison(self) -> Comparison | None:
        return Comparison(self.solution) if isinstance(self.solution, Solution) else None

    def evaluate(self, policy: IntArray) -> Evaluation:
        """The exact evaluation of a policy."""
        self._look_at(policy)
        if self._evaluation is None:
            self._evaluation = evaluate(
                self.unshaped, policy, self.gamma, repeat_stages=self.repeats_stages
            )
        return self._evaluation

    def gap(self, policy: IntArray) -> float:
        """The difference between its value and the optimum, relative to the optimum."""
        return relative_gap(self.evaluate(policy).start_value, self.best)

    def reaches(self, policy: IntArray, goal: Goal, episodes: int, chance: Stream) -> bool:  # noqa: ARG002
        """Whether the policy reaches a goal; nothing is sampled."""
        found, undiscounted = self.evaluate(policy), None
        if goal.episode_return is not None:
            undiscounted = evaluate(
                self.unshaped, policy, 1.0, repeat_stages=self.repeats_stages
            ).start_value
        return goal.is_met(Goal(found.success, found.start_value, undiscounted))

    def is_near(self, policy: IntArray, within: float) -> bool:
        """Whether its gap is at most `within`; mostly far quicker to decide than the gap."""
        self._look_at(policy)
        if within not in self._near:
            worth = None
            if self._comparison is not None and policy.ndim == 2:
                worth = self._comparison.exceeds(policy, self.best - within * abs(self.best))
            self._near[within] = self.gap(policy) <= within if worth is None else worth
        return self._near[within]

    def is_nominal(self, policy: IntArray) -> bool:
        """Whether its nominal episode, of most likely outcomes, succeeds as the optimal one does.

        It must be as short or, without discounting, its return as high.
        """
        length = self.nominal_length(policy)
        if length is None:
            return False
        if self.gamma < 1.0:
            return length == self.shortest
        reward = nominal_reward(self.unshaped, policy, repeat_stages=self.repeats_stages)
        return reward >= self.most - 1e-9 * abs(self.most)

    def nominal_length(self, policy: IntArray) -> int | None:
        """The length of the episode in which the most likely outcome always happens."""
        return nominal_length(self.unshaped, policy, repeat_stages=self.repeats_stages)

    def returns(self, policy: IntArray, episodes: int, chance: Stream) -> FloatArray:
        """The discounted returns of sampled episodes.

        Where rewards are paid at the end of an episode only, returns are drawn from their exact
        distribution; otherwise the episodes are played. Episodes without a limit are truncated once
        the discount is negligible: some policies never terminate.
        """
        if policy is self.solution.policy:
            distribution = self._best_returns
        else:
            self._look_at(policy)
            if self._returns is None:
                self._returns = (self._distribution(policy),)
            (distribution,) = self._returns
        if distribution is not None:
            return distribution.sample(episodes, chance)
        simulator = Simulator(self.unshaped, chance)
        world = simulator.world._replace(limit=self._sampled_limit)
        return sample(world, simulator.state, _staged(policy), self.gamma, episodes, chance)[:, 0]

    @cached_property
    def _best_returns(self) -> ReturnDistribution | None:
        return self._distribution(self.solution.policy)

    def _distribution(self, policy: IntArray) -> ReturnDistribution | None:
        return return_distribution(self.unshaped, _staged(policy), self.gamma, self._sampled_limit)

    @property
    def _limit(self) -> int | None:
        """The most steps of an episode; None for no limit."""
        limits = [self.horizon, self.unshaped.max_episode_steps]
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def _sampled_limit(self) -> int:
        """The most steps of an episode that is sampled."""
        limit = self._limit
        return negligible_after(self.gamma) if limit is None else limit

    def point(self, step: int, policy: IntArray, chance: Stream | None = None) -> Point:  # noqa: ARG002
        """The row of a learning curve at this step."""
        evaluated, gap = self.evaluate(policy), self.gap(policy)
        return Point(step, evaluated.start_value, gap, evaluated.success, evaluated.nominal_length)

    def judge(self, policy: IntArray, seed: int) -> Evaluation:  # noqa: ARG002
        """The exact evaluation, whatever the seed."""
        return self.evaluate(policy)

    def stationary(self, policy: IntArray) -> Evaluation | None:
        """The evaluation of stage 0 alone of a policy with stages; None if it has none."""
        if policy.ndim == 2:
            return None
        return evaluate(self.unshaped, policy[0], self.gamma, self._limit)

    def failure(self, policy: IntArray, seed: int, curve: Sequence[Point]) -> str:  # noqa: ARG002
        """A message if the policy does not succeed and the optimal one does."""
        return self.optimum.lacking(self.evaluate(policy).success)

    def _look_at(self, policy: IntArray) -> None:
        """Discard cached results if the policy is another one."""
        if self._policy is None or not np.array_equal(self._policy, policy):
            self._policy = policy.copy()  # it may be changed in place
            self._evaluation = None
            self._near = {}
            self._returns = None


def _staged(policy: IntArray) -> IntArray:
    """A policy `[s, q]` or `[h, s, q]` as `[h, s, q]`."""
    return np.ascontiguousarray(policy if policy.ndim == 3 else policy[None])
