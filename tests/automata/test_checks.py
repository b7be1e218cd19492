"""What is odd about a task is found, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from odd_machines import machines
from qrmax.automata.checks import findings
from qrmax.automata.edges import Edge
from qrmax.automata.files import load_task, task_names
from qrmax.automata.reward_machine import RewardMachine
from qrmax.worlds.catalog import all_propositions


def kinds(*edges: Edge, propositions: list[str] | None = None, **changes: Any) -> list[str]:
    task = RewardMachine(edges, **{"initial": "s", "success": ["t"], **changes})
    return [f"{finding.kind}: {finding.message}" for finding in findings(task, propositions)]


@pytest.mark.parametrize("name", task_names())
def test_there_is_no_mistake_in_the_built_in_tasks(name: str) -> None:
    found = findings(load_task(name), all_propositions())
    assert not [finding for finding in found if finding.is_mistake]


def test_an_ordinary_task_has_nothing_odd() -> None:
    assert kinds(Edge("s", "a", "t", 1.0), propositions=["a", "b"]) == []
    assert kinds(Edge("s", "a", "t", 1.0), undefined="fail") == []


def test_states_that_no_labels_lead_to() -> None:
    assert kinds(Edge("s", "a", "t"), Edge("u", "a", "t")) == ["unreachable: no labels lead to 'u'"]
    blocked = kinds(Edge("s", "a & !a", "u"), Edge("s", "a", "t"), Edge("u", "a", "t"))
    assert "unreachable: no labels lead to 'u'" in blocked
    assert "never: 's' -> 'u' when 'a & !a' never happens: its guard cannot hold" in blocked


def test_a_state_that_is_out_of_reach_is_not_called_a_dead_end_too() -> None:
    assert kinds(Edge("s", "a", "t"), states=["s", "t", "lost"]) == [
        "unreachable: no labels lead to 'lost'"
    ]


def test_edges_that_never_happen() -> None:
    shadowed = "never: 's' -> 's' when 'a & b' never happens: other edges come first"
    assert kinds(Edge("s", "a", "t"), Edge("s", "a & b", "s", 2.0)) == [shadowed]
    together = kinds(Edge("s", "a & b", "t"), Edge("s", "a & !b", "t"), Edge("s", "a", "s", 1.0))
    assert [line.partition(":")[0] for line in together] == ["never", "overlap", "overlap"]
    certain = kinds(Edge("s", "a", "t"), Edge("s", "a", "s", 1.0, 0.5))
    assert certain == ["never: 's' -> 's' when 'a' never happens: other edges come first"]
    by_chance = kinds(Edge("s", "a", "t", 1.0, 0.5), Edge("s", "a", "s", 1.0, 0.5))
    assert by_chance == []


def test_states_from_which_nothing_good_is_left() -> None:
    assert kinds(Edge("s", "a", "t"), Edge("s", "!a & b", "stuck")) == [
        "dead end: from 'stuck' no success can be reached"
    ]
    patrol = [Edge("s", "a & !b", "u"), Edge("u", "b", "s", 1.0), Edge("s", "b", "stuck")]
    assert kinds(*patrol, success=[]) == ["dead end: from 'stuck' no reward can be reached"]
    assert kinds(*patrol[:2], success=[]) == []


def test_propositions_that_are_nowhere_true() -> None:
    assert kinds(Edge("s", "a & tea", "t"), propositions=["a", "b"]) == [
        "missing: 'tea' is nowhere true; there are: a, b"
    ]


def test_overlaps_are_told_with_a_label_and_are_no_mistake() -> None:
    edges = [Edge("s", "a", "t"), Edge("s", "b", "s", 1.0)]
    task = RewardMachine(edges, initial="s", success=["t"])
    (overlap,) = findings(task)
    assert not overlap.is_mistake
    assert overlap.message == "in 's' both 'a' and 'b' hold where {a, b} is true; the first wins"
    assert kinds(Edge("s", "a", "t"), Edge("s", "b", "t")) == []  # it makes no difference


@given(machines())
def test_any_machine_can_be_checked(machine: RewardMachine) -> None:
    for finding in findings(machine, ["a"]):
        assert finding.message
