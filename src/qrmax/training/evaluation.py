"""How good a policy is, beside the best one there is.

On a tabular problem a policy is measured exactly: nothing is sampled. Its gap to the optimum is
relative, measured under the same rules for both (the problem's limit on the length of an episode
included).
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.agents import step_loops
from qrmax.errors import warn
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.planning.comparison import Comparison
from qrmax.planning.policy_evaluation import (
    Evaluation,
    evaluate,
    nominal_length,
    nominal_reward,
)
from qrmax.planning.staged_solution import StagedSolution, solve_horizon
from qrmax.planning.value_iteration import Solution, solve
from qrmax.problems.problem import Problem
from qrmax.problems.simulator import Simulator, World
from qrmax.seeding import Stream

NOTHING = 1e-12  # a discount that leaves nothing to speak of


class Point(NamedTuple):
    """One row of a learning curve. What cannot be known there is None.

    On an environment a row is about the episodes of training that ended since the row before.
    """

    step: int
    start_value: float | None  # discounted reward of an episode
    gap: float | None  # to the optimum, relative
    success: float | None  # probability
    nominal_length: int | None  # where the most likely outcome always happens
    episodes: int | None = None  # that have begun


class Referee:
    """Judges the policies of a tabular problem; those of a shaped task by the plain one.

    With a `horizon`, an episode has no more steps than that, and the best policy depends on the
    stage, `[h, s, q]`. So may those that are judged.
    """

    def __init__(self, problem: Problem, gamma: float, horizon: int | None = None) -> None:
        self.problem = problem  # that of the runs
        self.judged = problem.judged
        self.gamma = gamma
        self.horizon = horizon
        self._policy: IntArray | None = None  # the one asked about last, and what was found
        self._evaluation: Evaluation | None = None
        self._near: dict[float, bool] = {}

    @cached_property
    def solution(self) -> Solution | StagedSolution:
        """The optimum."""
        if self.horizon is None:
            return solve(self.judged, self.gamma)
        return solve_horizon(self.judged, self.horizon, self.gamma)

    @cached_property
    def best(self) -> float:
        """What the optimal policy brings."""
        best = evaluate(self.judged, self.solution.policy, self.gamma).start_value
        lowest, highest = self.judged.reward_range()
        if isinstance(self.solution, StagedSolution) and best == 0.0 <= lowest < highest:
            warn(
                f"no policy for {self.judged.name!r} is paid anything within "
                f"{self.solution.horizon} steps: any is as good as the best; give a longer horizon"
            )
        return best

    @cached_property
    def shortest(self) -> int | None:
        """The nominal length of the optimal policy."""
        return self.nominal_length(self.solution.policy)

    @cached_property
    def most(self) -> float:
        """What the nominal run of the optimal policy pays, undiscounted."""
        return nominal_reward(self.judged, self.solution.policy)

    @cached_property
    def best_success(self) -> float:
        """How likely the optimal policy is to succeed."""
        return evaluate(self.judged, self.solution.policy, self.gamma).success

    @cached_property
    def _comparison(self) -> Comparison | None:
        return Comparison(self.solution) if isinstance(self.solution, Solution) else None

    def evaluate(self, policy: IntArray) -> Evaluation:
        """All that this policy brings."""
        self._look_at(policy)
        if self._evaluation is None:
            self._evaluation = evaluate(self.judged, policy, self.gamma)
        return self._evaluation

    def gap(self, policy: IntArray) -> float:
        """How far its value is below the optimum, relative to that."""
        return relative_gap(self.evaluate(policy).start_value, self.best)

    def success(
        self,
        policy: IntArray,
        episodes: int,  # noqa: ARG002
        chance: Stream,  # noqa: ARG002
        at_least: float = 0.0,  # noqa: ARG002
    ) -> float:
        """How likely it is to succeed; nothing has to be sampled for that."""
        return self.evaluate(policy).success

    def is_near(self, policy: IntArray, within: float) -> bool:
        """Whether its gap is no more than this; mostly far quicker to tell than the gap."""
        self._look_at(policy)
        if within not in self._near:
            worth = None
            if self._comparison is not None:
                worth = self._comparison.exceeds(policy, self.best - within * abs(self.best))
            self._near[within] = self.gap(policy) <= within if worth is None else worth
        return self._near[within]

    def is_nominal(self, policy: IntArray) -> bool:
        """Whether its run succeeds, where the most likely outcome always happens, as the best does.

        It is to be as short; where nothing is discounted, it is to pay as much.
        """
        length = self.nominal_length(policy)
        if length is None:
            return False
        if self.gamma < 1.0:
            return length == self.shortest
        return nominal_reward(self.judged, policy) >= self.most - 1e-9 * abs(self.most)

    def nominal_length(self, policy: IntArray) -> int | None:
        """The length of its run where the most likely outcome always happens."""
        return nominal_length(self.judged, policy)

    def returns(self, policy: IntArray, episodes: int, chance: Stream) -> FloatArray:
        """The discounted rewards of so many sampled episodes.

        Where episodes have no limit they are cut off once nothing to speak of can follow: some
        policies never end.
        """
        simulator = Simulator(self.judged, chance)
        world = simulator.world
        limit = self.horizon
        if world.limit == 0 and limit is None:
            limit = math.ceil(math.log(NOTHING) / math.log(self.gamma))
        if limit is not None:
            world = world._replace(limit=min(limit, world.limit or limit))
        actions = np.ascontiguousarray(policy if policy.ndim == 3 else policy[None])
        return sample(world, simulator.state, actions, self.gamma, episodes, chance)[:, 0]

    def point(self, step: int, policy: IntArray, chance: Stream | None = None) -> Point:  # noqa: ARG002
        """The row of a learning curve at this step."""
        judged, gap = self.evaluate(policy), self.gap(policy)
        return Point(step, judged.start_value, gap, judged.success, judged.nominal_length)

    def _look_at(self, policy: IntArray) -> None:
        """Forget what was found of another policy."""
        if self._policy is None or not np.array_equal(self._policy, policy):
            self._policy = policy.copy()  # it may be changed in place
            self._evaluation = None
            self._near = {}


def sample(
    world: World,
    state: NDArray[np.int64],
    actions: IntArray,
    gamma: float,
    episodes: int,
    chance: Stream,
    ground: step_loops.Ground | None = None,
) -> FloatArray:
    """Episodes of a policy `[h, s, q]`: the return of each, whether it succeeded, its length."""
    found, under_way = np.empty((episodes, 3)), np.zeros(2)
    episode = 0
    while episode < episodes:
        chance.refill()
        numbers = step_loops.Numbers(chance.block, chance.at)
        episode = step_loops.sample_returns(
            world, state, actions, gamma, numbers, found, episode, under_way, ground
        )
    return found


def relative_gap(value: float, best: float) -> float:
    """How far a value is below the best one, relative to that.

    >>> relative_gap(0.9, 1.0), relative_gap(-2.0, -1.0), relative_gap(0.0, 0.0)
    (0.09999999999999998, 1.0, 0.0)
    """
    if value == best:
        return 0.0
    return (best - value) / abs(best) if best != 0.0 else math.copysign(math.inf, best - value)
