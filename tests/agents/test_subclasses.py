"""Subclasses of built-in agents keep the state that they add."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import qrmax
from qrmax.agents.qrmax import QRMax
from qrmax.errors import AgentError
from qrmax.problems.simulator import Step
from qrmax.testing import check_agent
from small_runs import corridor


class EverySecond(QRMax):
    """QR-Max that learns from every second transition, and from the last of an episode."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.seen = 0

    def update(self, s: int, q: int, a: int, step: Step) -> None:
        self.seen += 1
        if self.seen % 2 or step.terminated:
            super().update(s, q, a, step)


class Unsaved(EverySecond):
    """The same with an attribute that no file can hold."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.key = lambda x: x


def train(agent: type[qrmax.Agent], steps: int) -> qrmax.Run:
    return qrmax.train(agent, corridor(), max_steps=steps, t_env=5, stop="budget")


def test_an_attribute_of_its_own_is_saved_and_the_run_goes_on_as_if_unbroken(
    tmp_path: Path,
) -> None:
    train(EverySecond, 151).save(tmp_path / "half.run")
    half: Any = qrmax.load(tmp_path / "half.run")
    assert half.agent.seen == 151
    whole, resumed = train(EverySecond, 900), half.resume(900)
    assert (resumed.episodes, resumed.curve) == (whole.episodes, whole.curve)
    ours, theirs = resumed.agent.snapshot(), whole.agent.snapshot()
    assert all((ours[name] == theirs[name]).all() for name in theirs)


def test_it_keeps_the_contract() -> None:
    check_agent(EverySecond)


def test_an_attribute_that_cannot_be_saved_is_named(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="key is of type"):
        train(Unsaved, 50).save(tmp_path / "never.run")
    assert not [*tmp_path.iterdir()]


def test_its_policy_can_be_exported(tmp_path: Path) -> None:
    train(EverySecond, 500).export(tmp_path / "policy.json")
    assert (tmp_path / "policy.json").stat().st_size > 100
