"""Stopping rules: conditions under which a run has learned enough.

A rule is checked every so often; once it holds at `in_a_row` checks in a row, training stops, and
the run reports the step of the first of them. The rules:

    exact     the policy's exact value is within 5 % of the optimum
    nominal   its run without slips has the length of the optimal policy's (gamma 1: its pay)
    success   it succeeds as often as the optimal one, within 5 %
    reaches   its success rate, or its mean return, is at least so much
    welch     the paper's: sampled returns of both policies cannot be told apart (Welch's t-test)
    budget    never: the run takes all its steps

A sampled test passes by accident where episodes are few or hardly ever pay: it says only that no
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
"""The success rate that `reaches` asks for by default."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoppingRule(ABC):
    """A condition under which a run has learned enough."""

    name: ClassVar[str]

    in_a_row: int = 3  # how many checks in a row must pass

    def __post_init__(self) -> None:
        check_count("in_a_row", self.in_a_row)

    def check_task(self, machine: RewardMachine) -> None:  # noqa: B027 (most suit any task)
        """Raise a `ParameterError` if the rule makes no sense for a task."""

    @abstractmethod
    def passes(self, policy: Any, evaluator: Evaluator, chance: Stream) -> bool:
        """Whether this policy is good enough."""


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
class Nominal(StoppingRule):
    """The policy's run without slips succeeds, and is as short as the optimal policy's.

    Where nothing is discounted a longer run is as good as a short one, and it is to pay as much.
    """

    name = "nominal"

    def passes(self, policy: Any, evaluator: Evaluator, chance: Stream) -> bool:  # noqa: ARG002
        """Whether the run is as good."""
        return _exact(evaluator).is_nominal(policy)


@dataclass(frozen=True, kw_only=True, slots=True)
class Success(StoppingRule):
    """The policy succeeds nearly as often as the optimal one.

    It is exact where that can be known, and sampled where states are real positions.
    """

    name = "success"

    within: float = 0.05  # relative to the optimum
    episodes: int = 1000  # where it is sampled

    def __post_init__(self) -> None:
        StoppingRule.__post_init__(self)
        check_range("within", self.within, at_least=0.0, below=1.0)
        check_count("episodes", self.episodes)

    def passes(self, policy: Any, evaluator: Evaluator, chance: Stream) -> bool:
        """Whether it succeeds often enough."""
        optimum = evaluator.optimum
        assert optimum is not None  # domains without one refuse the rule
        needed = (1.0 - self.within) * optimum.success
        return evaluator.reaches(policy, Goal(success=needed), self.episodes, chance)


@dataclass(frozen=True, kw_only=True, slots=True)
class Welch(StoppingRule):
    """The returns of the policy and of the optimal one cannot be told apart."""

    name = "welch"

    episodes: int = 10_000  # sampled for each policy, at each check anew
    alpha: float = 0.1  # the level below which a difference counts as found
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
    """The policy's success rate or its mean return is at least so much; all that are given.

    It is exact if that can be known, and sampled otherwise. By default the success rate is to be
    at least 0.95.
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
        """Refuse a success rate for a task that knows no success."""
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

    def passes(self, policy: Any, evaluator: Evaluator, chance: Stream) -> bool:  # noqa: ARG002
        """Never."""
        return False


RULES: dict[str, type[StoppingRule]] = {
    rule.name: rule for rule in (Exact, Nominal, Success, Reaches, Welch, Budget)
}


SAMPLED = (Success.name, Reaches.name, Budget.name)
"""The rules for worlds with real positions, where nothing is exact."""


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

    Two samples without any variance are equal or are not: the p-value is 1 or 0.
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
