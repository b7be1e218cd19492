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

Policies are evaluated by the learner's own objective: its gamma and, if it plans for H steps, in
episodes of H steps. With a `gamma`, a rule is one yardstick for all learners: policies are
evaluated with that gamma, in the world's own episodes, relative to the one optimum of those. The
policy of a learner that plans for H steps restarts with its first stage after H steps.

`stays` and `budget` take the whole budget of a run (`takes_budget`): such a rule is met if the last
`in_a_row` checks passed. The step that `stays` reports is the first of all the checks that passed
up to the end: the step from which on the policy is good for good.

A sampled test passes by accident if episodes are few or rewards are sparse: it says only that no
difference was found. `exact` has no such error and is the default.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, NamedTuple, cast

from qrmax.agents.base import AgentConfig
from qrmax.errors import ParameterError, UnknownNameError, check_count, check_range
from qrmax.machines.reward_machine import RewardMachine
from qrmax.seeding import Stream
from qrmax.training.evaluator import Evaluator
from qrmax.training.exact_evaluator import ExactEvaluator
from qrmax.training.goal import Goal
from qrmax.training.welch import merged, moments, p_value, read_moments

SUCCESS = 0.95
"""The default success rate of `reaches`."""

CERTAIN = 1e-6
"""The p-value below which an unchanged policy is not sampled again."""

Memory = dict[str, Any]
"""The numbers that a rule keeps from check to check, as plain data."""


class Objective(NamedTuple):
    """The objective that policies are evaluated by."""

    gamma: float
    horizon: int | None  # the most steps of an episode; None for the world's own episodes


def own_objective(config: AgentConfig) -> Objective:
    """The objective that an agent plans for."""
    return Objective(config.gamma, config.episode_horizon)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoppingRule(ABC):
    """A condition under which a run has learned enough."""

    name: ClassVar[str]
    sampled: ClassVar[bool] = False  # whether it draws random numbers even if values are exact
    newer: ClassVar[tuple[str, ...]] = ("gamma",)
    """Settings that run ids leave out at their default: there were runs before they existed."""
    takes_budget: ClassVar[bool] = False
    """Whether runs take their whole budget, at the end of which it is decided."""

    in_a_row: int = 3  # the number of checks in a row that must pass
    gamma: float | None = None  # of the yardstick; None: the learner's own objective

    def __post_init__(self) -> None:
        check_count("in_a_row", self.in_a_row)
        if self.gamma is not None:
            check_range("gamma", self.gamma, above=0.0, below=1.0)

    def objective(self, config: AgentConfig) -> Objective:
        """The objective by which the policies of an agent are evaluated."""
        return own_objective(config) if self.gamma is None else Objective(self.gamma, None)

    def check_task(self, machine: RewardMachine) -> None:  # noqa: B027 (most suit any task)
        """Raise a `ParameterError` if the rule does not apply to a task."""

    @abstractmethod
    def passes(self, policy: Any, evaluator: Evaluator, chance: Stream) -> bool:
        """Whether this policy satisfies the rule."""

    def check(self, policy: Any, evaluator: Evaluator, chance: Stream, memory: Memory) -> bool:  # noqa: ARG002
        """Whether it does so at a check of a run, whose `memory` of earlier checks may count.

        The memory is saved with the run; most rules need none.
        """
        return self.passes(policy, evaluator, chance)

    def check_memory(self, memory: Memory) -> None:
        """Raise a `ParameterError` if a memory that was saved is not one of this rule."""
        if memory:
            raise ParameterError(f"the rule {self.name!r} keeps nothing; found: {[*memory]}")


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
    """The mean returns of the policy and of the optimal one do not differ significantly.

    Both policies are sampled anew at each check, `episodes` of each (where rewards are paid at the
    end of an episode, from the exact distribution of their returns: no episode is played), and
    Welch's two-sided t-test is passed if p >= alpha. If neither sample varies, as without slips,
    there is no such test: the returns are equal or not.

    A policy that has not changed since the last check is not given another chance: its returns, and
    those sampled of the optimal policy beside it, are added to the ones before, and the test is
    that of all of them. Tested again and again on samples of their own, most policies would pass
    once, by accident; as it is, one that differs fails the more clearly, and one that does not, but
    failed the first test (as alpha of those do), passes later. Below p = 1e-6 none are sampled.

    The level holds for each policy that is tested, not for a whole run: a learner whose policy
    changes from check to check has as many chances. Returns that are rare and large make the
    variance large, so that little can be told apart: if an accident in 5,000 episodes costs a
    hundred times as much as success is worth, a policy that has such accidents may well pass.
    """

    name = "welch"
    sampled = True

    episodes: int = 10_000  # sampled for each policy at a check
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
        return self.check(policy, evaluator, chance, {})

    def check(self, policy: Any, evaluator: Evaluator, chance: Stream, memory: Memory) -> bool:
        """Whether the test finds no difference, in all that was sampled of an unchanged policy."""
        named = hashlib.sha256(f"{policy.shape} {policy.dtype}".encode() + policy.tobytes())
        if memory.get("policy") != (name := named.hexdigest()):
            memory.clear()
            memory["policy"] = name
        elif _p_value(memory) < CERTAIN:
            return False
        judge = _exact(evaluator)
        unit = max(map(abs, judge.unshaped.reward_range())) or 1.0  # squares must not vanish
        for whose, played in (("ours", policy), ("best", judge.solution.policy)):
            found = moments(judge.returns(played, self.episodes, chance) / unit)
            if whose in memory:
                found = merged(read_moments(memory[whose]), found)
            memory[whose] = [*found]
        return _p_value(memory) >= self.alpha

    def check_memory(self, memory: Memory) -> None:
        """Refuse moments that no samples can have."""
        if memory:
            if memory.keys() != {"policy", "ours", "best"} or not isinstance(memory["policy"], str):
                raise ParameterError(f"the rule {self.name!r} keeps no {[*memory]}")
            _p_value(memory)


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


def _p_value(memory: Memory) -> float:
    """The p-value of the samples in a memory."""
    return p_value(read_moments(memory["ours"]), read_moments(memory["best"]))


def _exact(evaluator: Evaluator) -> ExactEvaluator:
    return cast(ExactEvaluator, evaluator)  # domains without one refuse the rule


def as_rule(stop: str | StoppingRule, **settings: Any) -> StoppingRule:
    """The rule of that name, with these settings.

    >>> as_rule("exact", within=0.01)
    Exact(in_a_row=3, gamma=None, within=0.01)
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
    data = {"stop": rule.name, **asdict(rule)}
    return data if rule.gamma is not None else {k: v for k, v in data.items() if k != "gamma"}
