"""Invalid reward machines are refused, with errors that name the cause."""

from __future__ import annotations

import math
from typing import Any

import pytest

from coffee_task import coffee_task
from qrmax.errors import ParameterError, QRMaxError, TaskError
from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine


def test_a_strict_machine_names_the_edges_and_a_label_where_they_overlap() -> None:
    edges = [Edge("s", "a & b", "t"), Edge("t", "a", "s"), Edge("s", "b & !c", "u")]
    with pytest.raises(TaskError) as caught:
        RewardMachine(edges, initial="s", strict=True)
    message = str(caught.value)
    assert "'s'" in message
    assert repr(edges[0]) in message
    assert repr(edges[2]) in message
    assert "for the label {a, b}" in message


def test_a_strict_machine_may_reuse_a_guard_in_another_state() -> None:
    edges = [Edge("s", "a & !b", "t"), Edge("s", "b", "s"), Edge("t", "a", "s")]
    assert RewardMachine(edges, initial="s", strict=True).step("s", {"a"}).state == "t"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"states": ["start", "done", "dirty"]}, "'has_coffee' is used but not among"),
        ({"states": ["start", "has_coffee", "dirty"]}, "'done' is used but not among"),
        (
            {"states": ["start", "has_coffee", "done", "dirty", "start"]},
            "'start' is declared twice",
        ),
        ({"failure": ["done"]}, "'done' is both a success and a failure"),
        ({"success": ["done", "has_coffee"]}, "leaves a terminal state"),
        ({"failure": ["start"]}, "leaves a terminal state"),
        ({"initial": "done"}, "initial state 'done' is terminal"),
    ],
)
def test_a_machine_that_makes_no_sense_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(TaskError, match=words):
        coffee_task(name="mine", **changes)
    with pytest.raises(TaskError, match=r"^mine: "):
        coffee_task(name="mine", **changes)


def test_a_state_declared_twice_is_named_also_where_undefined_labels_fail() -> None:
    states = ["failed", "start", "has_coffee", "done", "dirty", "start"]
    with pytest.raises(TaskError, match="'start' is declared twice"):
        coffee_task(states=states, undefined="fail")


def test_a_state_called_failed_may_not_be_declared_twice_either() -> None:
    with pytest.raises(TaskError, match="'failed' is declared twice"):
        RewardMachine([], initial="s", states=["s", "failed", "failed"])


def test_undefined_is_stay_or_fail() -> None:
    with pytest.raises(ParameterError, match=r"undefined is 'halt'; allowed: 'stay', 'fail'"):
        coffee_task(undefined="halt")


@pytest.mark.parametrize("group", ["success", "failure", "states"])
def test_a_single_text_is_not_taken_for_a_list_of_one_letter_states(group: str) -> None:
    with pytest.raises(QRMaxError):
        RewardMachine([Edge("s", "a", "end")], initial="s", **{group: "end"})


def test_a_single_text_is_not_taken_for_a_label_of_one_letter_propositions() -> None:
    task = RewardMachine([Edge("s", "coffee", "t")], initial="s")
    try:
        assert task.step("s", "coffee").state == "t"
    except QRMaxError as error:
        assert "coffee" in str(error)  # noqa: PT017 (either answer is right; silence is not)


def test_a_state_that_does_not_exist_is_named_with_those_that_do() -> None:
    for call in (lambda: coffee_task().step("strat", ()), lambda: coffee_task().index("strat")):
        with pytest.raises(TaskError, match=r"no state 'strat'; states: 'start', 'has_coffee'"):
            call()


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
def test_a_reward_is_a_finite_number(reward: float) -> None:
    with pytest.raises(TaskError, match=r"'s' -> 't'.*finite"):
        Edge("s", "a", "t", reward)


@pytest.mark.parametrize("reward", [10**400, "much", None], ids=["huge", "text", "none"])
def test_a_reward_that_is_no_float_is_refused_in_our_words(reward: Any) -> None:
    with pytest.raises(QRMaxError):
        Edge("s", "a", "t", reward)
