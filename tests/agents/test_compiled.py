"""No subclass trains its parent's algorithm: when the compiled loop is used, and when it is not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import qrmax
from learners import KERNEL_USERS, NUMBERED
from qrmax.agents.base import Agent, FastForwardResult, Tabular
from qrmax.agents.buckets.in_buckets import InBuckets
from qrmax.agents.compiled import has_compiled_loop, runs_compiled
from qrmax.agents.experience import Observed
from qrmax.agents.published import PublishedQRMax, PublishedRMaxRM
from qrmax.agents.q_learning import QLearning
from qrmax.agents.qrmax import QRMax
from qrmax.agents.registry import agent_class, agent_names
from qrmax.testing.trial import make_trial
from small_runs import LEFT, corridor

SHORT: dict[str, Any] = {"max_steps": 300, "stop": "budget", "evaluate_every": 100}


@pytest.mark.parametrize("name", agent_names())
def test_built_in_agents_without_buckets_for_observations_have_no_loop(name: str) -> None:
    kind = agent_class(name)
    without = name.startswith(("dqn", "effects-"))
    assert has_compiled_loop(kind) == issubclass(kind, Tabular) == (not without)


def test_what_is_run_without_the_compiler_uses_all_compiled_code() -> None:
    def uses(names: Iterable[str]) -> set[Any]:
        kinds = [agent_class(name) for name in names]
        return {(kind.loop, kind.knows_machine) for kind in kinds if issubclass(kind, Tabular)} | {
            kernel for kind in kinds for kernel in kind.kernels
        }

    assert uses(KERNEL_USERS) == uses(agent_names())


@pytest.mark.parametrize("name", NUMBERED)
def test_a_subclass_that_overrides_update_trains_its_own_algorithm(name: str) -> None:
    parent: Any = agent_class(name)
    seen: list[int] = []

    class Mine(parent):
        def update(self, s: int, q: int, a: int, step: Any) -> None:
            seen.append(a)
            super().update(s, q, a, step)

    assert not has_compiled_loop(Mine)
    run = qrmax.train(Mine, corridor(), **parent.quick_settings, **SHORT)
    assert len(seen) == run.trained == 300


@pytest.mark.parametrize("parent", [QLearning, QRMax, PublishedQRMax, agent_class("psrl")])
def test_a_subclass_that_overrides_act_trains_its_own_algorithm(parent: Any) -> None:
    class Leftist(parent):
        def act(self, s: int, q: int) -> int:  # noqa: ARG002
            return LEFT

    run = qrmax.train(Leftist, corridor(slip=0.0), **parent.quick_settings, **SHORT)
    assert run.agent.name == "leftist"
    tried = make_trial(Leftist, corridor(slip=0.0), settings=parent.quick_settings).play(100)
    assert not runs_compiled(tried.agent)
    assert tried.simulator.s == 0


@pytest.mark.parametrize("method", ["greedy_actions", "values"])
def test_helpers_that_the_loop_does_by_itself_count_as_well(method: str) -> None:
    kind = type(
        "Mine", (QRMax,), {method: lambda self, *given: getattr(QRMax, method)(self, *given)}
    )
    assert not has_compiled_loop(kind)


def test_what_no_loop_depends_on_may_be_overridden() -> None:
    class Mine(QRMax):
        threshold = 3

        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.extra = np.zeros(3)

        def snapshot(self) -> dict[str, Any]:
            return {**super().snapshot(), "extra": self.extra.copy()}

        def restore(self, arrays: Any) -> None:
            super().restore(arrays)
            self.extra[:] = arrays["extra"]

        def policy(self) -> Any:
            return super().policy()

        def tell(self) -> str:
            return "something new"

    assert has_compiled_loop(Mine)
    ours, theirs = (make_trial(kind, corridor()).rush(200) for kind in (Mine, QRMax))
    np.testing.assert_array_equal(ours.agent.q, theirs.agent.q)


def test_a_class_that_defines_all_three_has_a_loop_of_its_own() -> None:
    class Mine(QLearning):
        def act(self, s: int, q: int) -> int:  # noqa: ARG002
            return 0

        def update(self, *given: Any) -> None:
            pass

        def fast_forward(self, simulator: Any, limit: int) -> FastForwardResult:
            for _ in range(limit):
                if simulator.over:
                    simulator.reset()
                simulator.step(0)
            return FastForwardResult(limit, None)

    assert has_compiled_loop(Mine)

    class Child(Mine):
        def update(self, *given: Any) -> None:
            pass

    assert not has_compiled_loop(Child)


def test_a_mixin_does_not_bring_the_loop_back() -> None:
    class Other(QRMax):
        def update(self, *given: Any) -> None:
            super().update(*given)

    class Bucketed(InBuckets, Other):
        pass

    assert not has_compiled_loop(Bucketed)


def test_an_experience_of_ones_own_is_not_compiled() -> None:
    class Doubled(Observed):
        pass

    class Nothing:
        knows_machine = False

        def __call__(self, q: int, step: Any) -> list[Any]:  # noqa: ARG002
            return []

    agent = make_trial(QLearning, corridor()).agent
    assert runs_compiled(agent)
    agent.experience = Nothing()
    assert not runs_compiled(agent)
    assert runs_compiled(make_trial(PublishedRMaxRM, corridor()).agent)


def test_an_agent_that_is_not_tabular_has_no_loop() -> None:
    assert not has_compiled_loop(Agent)
