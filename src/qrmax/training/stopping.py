"""Stopping rules: conditions under which a run has learned enough.

A rule is checked at regular intervals; once it holds at `in_a_row` checks in a row, training stops,
and the run reports the step of the first of them. The rules:

    exact     the policy's exact value is within 5 % of the optimum
    stays     so it is at every check from some check on, to the end of the budget
    nominal   its nominal episode is as long as the optimal policy's (gamma 1: has its return)
    success   its success rate is within 5 % of the optimal policy's
    reaches   its success rate, or its mean return, reaches a threshold
    welch     the paper's: sampled returns of both policies do not differ (Welch's t-test)
    budget    never: the run takes all its steps

`stays` and `budget` take the whole budget of a run (`takes_budget`): such a rule is met if the last
`in_a_row` checks passed. The step that `stays` reports is the first of all the checks that passed
up to the end: the step from which on the policy is good for good.

A sampled test passes by accident if episodes are few or rewards are sparse: it says only that no
difference was found. `exact` has no such error and is the default.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, cast

import numpy as np

from qrmax.errors import ParameterError, UnknownNameError, check_count, check_range
from qrmax.machines.reward_machine import RewardMachine
from qrmax.planning.arrays import FloatArray
from qrmax.seeding import Stream
from qrmax.training.evaluator import Evaluator
from qrmax.training.exact_evaluator import ExactEvaluator
from qrmax.training.goal import Goal

SUCCESS = 0.95
"""The default success rate of `reaches`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoppingRule(ABC):
    """A condition under which a run has learned enough."""

    name: ClassVar[str]
    takes_budget: ClassVar[bool] = False
    """Whether runs take their whole budget, at the end of which it is decided."""

    in_a_row: int = 3  # the number of checks in a row that must pass

    def __post_init__(self) -> None:
        check_count("in_a_row", self.in_a_row)

    def check_task(self, machine: RewardMachine) -> None:  # noqa: B027 (most suit any task)
        """Raise a `ParameterError` if the rule does not apply to a task."""

    @abstractmethod
    def passes(self, policy: Any, evaluator: Evaluator, chance: Stream) -> bool:
        """Whether this policy satisfies the rule."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exact(StoppingRule):
    """The policy's exact value is close to the optimum."""

    name = "exact"

    within: float = 0.05  # relative gap to the optimum

    def __post_init__(self) -> None:
        StoppingRule.__post_init__(self)
        check_range("within", self.within, at_least=0.0, below=1.0)

    def passes(self, policy: Any, evaluator: Evaluator, chance: Stream) -> bool:  # noqa: ARG002
        """Whether the gap is small enough."""
        return _exact(evaluator).is_near(policy, self.within)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stays(Exact):
    """The policy's exact value is close to the optimum for good, to the end of the budget."""

    name = "stays"
    takes_budget = True

    in_a_row: int = 1  # at the end


@dataclass(frozen=True, kw_only=True, slots=True)
class Nominal(StoppingRule):
    """The policy's nominal episode succeeds, and is as short as the optimal policy's.

    Without discounting its length does not matter, and its return must be as high.
    """

    name = "nominal"

    def passes(self, policy: Any, evaluator: Evaluator, chance: Stream) -> bool:  # noqa: ARG002
        """Whether the nominal episode matches the optimal policy's."""
        return _exact(evaluator).is_nominal(policy)


@dataclass(frozen=True, kw_only=True, slots=True)
class Success(StoppingRule):
    """The policy's success rate is close to that of the optimal one.

    It is exact on tabular problems, and sampled on continuous ones.
    """

    name = "success"

    within: float = 0.05  # relative to the optimum
    episodes: int = 1000  # if it is sampled

    def __post_init__(self) -> None:
        StoppingRule.__post_init__(self)
        check_range("within", self.within, at_least=0.0, below=1.0)
        check_count("episodes", self.episodes)

    def passes(self, policy: Any, evaluator: Evaluator, chance: Stream) -> bool:
        """Whether the success rate is high enough."""
        optimum = evaluator.optimum
        assert optimum is not None  # domains without one refuse the rule
        needed = (1.0 - self.within) * optimum.success
        return evaluator.reaches(policy, Goal(success=needed), self.episodes, chance)


@dataclass(frozen=True, kw_only=True, slots=True)
class Welch(StoppingRule):
    """The mean returns of the policy and of the optimal one do not differ significantly."""

    name = "welch"

    episodes: int = 10_000  # sampled for each policy, anew at each check
    alpha: float = 0.1  # the significance level
    in_a_row: int = 1

    def __post_init__(self) -> None:
        StoppingRule.__post_init__(self)
        check_range("alpha", self.alpha, above=0.0, below=1.0)
        check_count("episodes", self.episodes)
        if self.episodes < 2:
            raise ParameterError("episodes is 1; Welch's test needs at least 2")

    def passes(self, policy: Any, evaluator: Evaluator, chance: Stream) -> bool:
        """Whether the test finds no difference."""
        ours = _exact(evaluator).returns(policy, self.episodes, chance)
        best = _exact(evaluator).returns(_exact(evaluator).solution.policy, self.episodes, chance)
        return welch_p_value(ours, best) >= self.alpha


@dataclass(frozen=True, kw_only=True, slots=True)
class Reaches(StoppingRule):
    """The policy's success rate and mean returns reach all thresholds that are given.

    They are exact on tabular problems, and sampled otherwise. By default the threshold is a success
    rate of 0.95.
    """

    name = "reaches"

    success: float | None = None  # probability
    discounted_return: float | None = None  # of an episode, with the agent's gamma
    episode_return: float | None = None  # undiscounted
    episodes: int = 100  # if it is sampled

    def __post_init__(self) -> None:
        StoppingRule.__post_init__(self)
        if self._goal == Goal():
            object.__setattr__(self, "success", SUCCESS)
        if self.success is not None:
            check_range("success", self.success, above=0.0, at_most=1.0)
        for name in ("discounted_return", "episode_return"):
            if getattr(self, name) is not None:
                check_range(name, getattr(self, name), above=-math.inf, below=math.inf)
        check_count("episodes", self.episodes)

    @property
    def _goal(self) -> Goal:
        return Goal(self.success, self.discounted_return, self.episode_return)

    def check_task(self, machine: RewardMachine) -> None:
        """Refuse a success rate for a task without success states."""
        if self.success is not None and not machine.success:
            raise ParameterError(
                f"stop is 'reaches' with success {self.success:g}, and task {machine.name!r} has "
                "no success states: give discounted_return=... or episode_return=..., as in "
                "qrmax.training.stopping.Reaches(episode_return=10.0)"
            )

    def passes(self, policy: Any, evaluator: Evaluator, chance: Stream) -> bool:
        """Whether all thresholds are reached."""
        return evaluator.reaches(policy, self._goal, self.episodes, chance)


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget(StoppingRule):
    """Never: the run takes all its steps."""

    name = "budget"
    takes_budget = True

    def passes(self, policy: Any, evaluator: Evaluator, chance: Stream) -> bool:  # noqa: ARG002
        """Never."""
        return False


RULES: dict[str, type[StoppingRule]] = {
    rule.name: rule for rule in (Exact, Stays, Nominal, Success, Reaches, Welch, Budget)
}


SAMPLED = (Success.name, Reaches.name, Budget.name)
"""The rules for continuous problems, which have no exact evaluation."""


def _exact(evaluator: Evaluator) -> ExactEvaluator:
    return cast(ExactEvaluator, evaluator)  # domains without one refuse the rule


def as_rule(stop: str | StoppingRule, **settings: Any) -> StoppingRule:
    """The rule of that name, with these settings.

    >>> as_rule("exact", within=0.01)
    Exact(in_a_row=3, within=0.01)
    """
    return stop if isinstance(stop, StoppingRule) else make_rule(stop, settings)


def make_rule(name: str, settings: Mapping[str, Any]) -> StoppingRule:
    """The rule of that name, with these settings; an unknown one suggests the nearest."""
    if not isinstance(name, str) or name not in RULES:
        raise UnknownNameError("stopping rule", str(name), RULES)
    known = [field.name for field in fields(RULES[name])]
    for setting in settings:
        if setting not in known:
            raise UnknownNameError(f"setting of {name}", setting, known)
    return RULES[name](**settings)


def rule_as_data(rule: StoppingRule) -> dict[str, Any]:
    """A rule as plain data, from which `as_rule(**data)` makes it again."""
    return {"stop": rule.name, **asdict(rule)}


def welch_p_value(first: FloatArray, second: FloatArray) -> float:
    """The two-sided p-value of Welch's t-test of equal means.

    If neither sample has any variance, the p-value is 1 or 0.
    """
    from scipy.special import stdtr  # slow to import, and needed for this test only

    if np.ptp(first) == 0.0 and np.ptp(second) == 0.0:  # a computed variance may be rounded up
        return float(first[0] == second[0])
    unit = max(np.abs(first).max(), np.abs(second).max())  # squares of small numbers would be 0
    first, second = first / unit, second / unit
    variances = np.array([first.var(ddof=1) / len(first), second.var(ddof=1) / len(second)])
    difference = float(first.mean() - second.mean())
    total = float(variances.sum())
    if total == 0.0:
        return float(difference == 0.0)
    freedom = total**2 / float((variances**2 / [len(first) - 1, len(second) - 1]).sum())
    return float(2.0 * stdtr(freedom, -abs(difference) / np.sqrt(total)))
