"""The conformance suite tells a class that breaks the contract which promise it breaks."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import qrmax
from outside_agents import SARSA, importable, imported
from qrmax.agents.q_learning import QLearning
from qrmax.errors import AgentError, UnknownNameError
from qrmax.testing import check_agent, promise_names


class Good(qrmax.Agent):
    """Q-learning in a few lines, which every bad class below spoils in one way."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.qt = np.full(self.sizes, 2.0)

    def act(self, s: int, q: int) -> Any:
        if self.rng.random() < 0.2:
            return int(self.rng.random() * self.sizes.actions)
        return int(self.qt[s, q].argmax())

    def update(self, s: int, q: int, a: int, step: Any) -> None:
        target = step.r_env + step.r_task
        if not self.ends(step):
            target += self.config.gamma * self.qt[step.s, step.q].max()
        self.qt[s, q, a] += 0.2 * (target - self.qt[s, q, a])

    def ends(self, step: Any) -> bool:
        return bool(step.terminated)

    def policy(self) -> Any:
        return self.qt.argmax(axis=2)


class ActsOutOfRange(Good):
    def act(self, s: int, q: int) -> Any:
        return self.sizes.actions - 1 + super().act(s, q)


class ActsInFractions(Good):
    def act(self, s: int, q: int) -> Any:
        return float(super().act(s, q))


class TakesTruncationForTheEnd(Good):
    def ends(self, step: Any) -> bool:
        return bool(step.terminated or step.truncated)


class NeverEnds(Good):
    def ends(self, step: Any) -> bool:  # noqa: ARG002
        return False


class UsesChanceOfItsOwn(Good):
    def act(self, s: int, q: int) -> Any:
        return random.randrange(2) if random.random() < 0.5 else super().act(s, q)


class UsesTheChanceOfNumpy(Good):
    def act(self, s: int, q: int) -> Any:  # noqa: ARG002
        return int(np.random.randint(2))  # noqa: NPY002


class SharesItsTables(Good):
    def snapshot(self) -> dict[str, Any]:
        return {"qt": self.qt}

    def restore(self, arrays: Any) -> None:
        self.qt[:] = arrays["qt"]


class ForgetsATable(Good):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.steps = 0

    def act(self, s: int, q: int) -> Any:
        return (self.steps // 7) % 2 if s == 1 else super().act(s, q)

    def update(self, *given: Any) -> None:
        self.steps += 1
        super().update(*given)

    def snapshot(self) -> dict[str, Any]:
        return {"qt": self.qt.copy()}

    def restore(self, arrays: Any) -> None:
        self.qt[:] = arrays["qt"]


class RestoresNothing(Good):
    def restore(self, arrays: Any) -> None:
        pass


class SavesText(Good):
    def snapshot(self) -> dict[str, Any]:
        return {"name": "qt"}


class CannotBeSaved(Good):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.rule = lambda: 0


class RecommendsValues(Good):
    def policy(self) -> Any:
        return self.qt.max(axis=2)


class RecommendsForTooFew(Good):
    def policy(self) -> Any:
        return super().policy()[:-1]


class LearnsWhenAsked(Good):
    def policy(self) -> Any:
        self.qt *= 0.99
        return super().policy()


class ChangesItsConfig(Good):
    def update(self, s: int, q: int, a: int, step: Any) -> None:
        super().update(s, q, a, step)
        self.config = replace(self.config, gamma=0.5)


class Raises(Good):
    def update(self, *given: Any) -> None:  # noqa: ARG002
        raise KeyError("table")


class ForgetsItsParent(Good):
    def __init__(self, *given: Any) -> None:  # noqa: ARG002
        self.steps = 0


class KnowsTooMuch(Good):
    def known(self) -> Any:
        from qrmax.agents.base import ModelCoverage

        return ModelCoverage(7, 3)


class FollowsItself(Good):
    """Learns from what it would have done itself alone."""

    def update(self, s: int, q: int, a: int, step: Any) -> None:
        if a == 0:
            super().update(s, q, a, step)


class AnotherSpeed(QLearning):
    """Says that its loop does what it does not."""

    in_loop = frozenset({"update"})

    def update(self, s: int, q: int, a: int, step: Any) -> None:
        super().update(s, q, a, step)
        self.qt[s, q, a] *= 0.5


@dataclass(frozen=True, kw_only=True)
class Unchecked(qrmax.AgentConfig):
    alpha: float = 0.1

    def __post_init__(self) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class NotPlain(qrmax.AgentConfig):
    rule: Any = len


class Bare(qrmax.AgentConfig):
    x: int = 1


class AcceptsAnyGamma(Good):
    Config = Unchecked


class HasNoPlainSettings(Good):
    Config = NotPlain


BROKEN = {
    ActsOutOfRange: ("actions", "returned 2; allowed: 0 to 1"),
    ActsInFractions: ("actions", r"returned \d.0"),
    TakesTruncationForTheEnd: ("truncation", "bootstrap unless step.terminated"),
    NeverEnds: ("termination", "do not bootstrap if step.terminated"),
    UsesChanceOfItsOwn: ("determinism", "draw from self.rng only"),
    UsesTheChanceOfNumpy: ("determinism", "draw from self.rng only"),
    SharesItsTables: ("snapshot", "return copies"),
    ForgetsATable: ("snapshot", "continues differently"),
    RestoresNothing: ("snapshot", "restore\\(\\) leaves out 'qt'"),
    SavesText: ("policy", "'str' object"),
    CannotBeSaved: ("saving", "cannot be saved: rule is of type"),
    RecommendsValues: ("policy", "float64"),
    RecommendsForTooFew: ("policy", r"shape \(3, 3\)"),
    LearnsWhenAsked: ("policy", "it changes what is learned"),
    ChangesItsConfig: ("inputs", "it has replaced its config"),
    KnowsTooMuch: ("counts", r"known\(\) returned"),
    FollowsItself: ("any policy|termination|truncation", "prefers|start value"),
    AnotherSpeed: ("two speeds", "differ in .*'qt'"),
    AcceptsAnyGamma: ("settings", "gamma=0.0 is accepted"),
    HasNoPlainSettings: ("settings", "not plain data"),
}


def test_a_class_that_keeps_all_promises_passes() -> None:
    check_agent(Good)
    check_agent(f"{Good.__module__}:Good")


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_promise_is_told_by_its_name(kind: Any) -> None:
    promise, words = BROKEN[kind]
    told = rf"{kind.__name__} breaks the promise '({promise})'"
    with pytest.raises(AgentError, match=told) as found:
        check_agent(kind)
    assert found.match(words)


def test_a_method_that_raises_is_told_with_its_line_and_as_no_broken_promise() -> None:
    with pytest.raises(AgentError) as found:
        check_agent(Raises)
    where = r"agent '[\w.]*test_check_agent:Raises', method update"
    assert found.match(rf"^{where}: KeyError: 'table' \(.*test_check_agent.py, line \d+\)")
    assert found.match("raise KeyError\\(\"table\"\\)\n  while checking the promise 'actions'")
    assert "breaks" not in str(found.value)
    assert isinstance(found.value.__cause__, KeyError)


def test_an_agent_that_does_not_learn_is_told_which_promises_to_leave_out() -> None:
    class Constant(Good):
        on_policy = True

        def update(self, *given: Any) -> None: ...

    with pytest.raises(AgentError, match="that does not learn at all, leave_out 'truncation'"):
        check_agent(Constant)
    check_agent(Constant, leave_out=["truncation", "termination", "any policy"])


def test_a_forgotten_parent_is_told_as_such() -> None:
    with pytest.raises(AgentError, match=r"'construction'.*begin it with super\(\).__init__"):
        check_agent(ForgetsItsParent)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"name": "Two Words"}, "name is 'Two Words'; allowed: lower-case"),
        ({"name": 3}, "name is 3"),
        ({"version": 3}, "version is 3; allowed: text"),
        ({"knows_machine": 1}, "knows_machine is 1; allowed: True, False"),
        ({"perceives": True}, r"does not define perceive\(\)"),
        ({"has_horizon": True}, "its Config has no `horizon`"),
        ({"Config": 3}, "Config is 3; allowed: a subclass of qrmax.AgentConfig"),
        ({"Config": Bare}, "Bare.x is not a setting: the class is not a dataclass"),
        ({"policy": qrmax.Agent.policy}, r"does not define policy\(\) or recommendation\(\)"),
        ({"act": qrmax.Agent.act}, r"does not define act\(\)"),
        ({"act": lambda self, s: 0}, r"\(self, s\) is called as .*\(self, s, q\)"),  # noqa: ARG005
    ],
)
def test_a_class_that_does_not_declare_what_it_is_is_refused(
    members: dict[str, Any], words: str
) -> None:
    kind = type("Bad", (Good,), {"__module__": __name__, **members})
    for refuse in (check_agent, qrmax.register_agent):
        with pytest.raises(AgentError, match=f"test_check_agent:Bad: .*{words}"):
            refuse(kind)


def test_a_setting_needs_a_default() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Needy(qrmax.AgentConfig):
        alpha: float

    kind = type("Bad", (Good,), {"Config": Needy})
    with pytest.raises(AgentError, match="setting 'alpha' has no default"):
        check_agent(kind)


def test_on_policy_learners_need_not_learn_from_another_policy() -> None:
    with importable(SARSA.parent):
        sarsa = imported("sarsa").Sarsa
        assert sarsa.on_policy
        check_agent(sarsa)


def test_a_promise_may_be_left_out_by_its_name() -> None:
    check_agent(KnowsTooMuch, leave_out=["counts"])
    with pytest.raises(UnknownNameError, match="did you mean 'counts'"):
        check_agent(Good, leave_out=["count"])
    assert len({*promise_names()}) == len(promise_names()) >= 12
