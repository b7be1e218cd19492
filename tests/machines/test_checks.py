"""Lint checks of tasks find the probable mistakes, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from odd_machines import machines
from qrmax.machines.checks import check_task
from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import load_task, save_task, task_names
from qrmax.worlds.catalog import all_propositions
from qrmax.worlds.grid import load_map


def kinds(
    *edges: Edge,
    propositions: list[str] | None = None,
    labels: list[set[str]] | None = None,
    **changes: Any,
) -> list[str]:
    task = RewardMachine(edges, **{"initial": "s", "success": ["t"], **changes})
    found = check_task(task, propositions, labels)
    return [f"{finding.kind}: {finding.message}" for finding in found]


@pytest.mark.parametrize("name", task_names())
def test_there_is_no_mistake_in_the_built_in_tasks(name: str) -> None:
    found = check_task(name, all_propositions())
    assert not [finding for finding in found if finding.is_mistake]


def test_an_ordinary_task_has_nothing_odd() -> None:
    assert kinds(Edge("s", "a", "t", 1.0), propositions=["a", "b"]) == []
    assert kinds(Edge("s", "a", "t", 1.0), undefined="fail") == []


def test_states_that_no_labels_lead_to() -> None:
    assert kinds(Edge("s", "a", "t"), Edge("u", "a", "t")) == ["unreachable: no labels lead to 'u'"]
    blocked = kinds(Edge("s", "a & !a", "u"), Edge("s", "a", "t"), Edge("u", "a", "t"))
    assert "unreachable: no labels lead to 'u'" in blocked
    assert "never: 's' -> 'u' when 'a & !a' is never taken: its guard cannot hold" in blocked


def test_a_state_that_is_out_of_reach_is_not_called_a_dead_end_too() -> None:
    assert kinds(Edge("s", "a", "t"), states=["s", "t", "lost"]) == [
        "unreachable: no labels lead to 'lost'"
    ]


def test_edges_that_never_happen() -> None:
    shadowed = "never: 's' -> 's' when 'a & b' is never taken: other edges come first"
    assert kinds(Edge("s", "a", "t"), Edge("s", "a & b", "s", 2.0)) == [shadowed]
    together = kinds(Edge("s", "a & b", "t"), Edge("s", "a & !b", "t"), Edge("s", "a", "s", 1.0))
    assert [line.partition(":")[0] for line in together] == ["never", "overlap", "overlap"]
    certain = kinds(Edge("s", "a", "t"), Edge("s", "a", "s", 1.0, 0.5))
    assert certain == ["never: 's' -> 's' when 'a' is never taken: other edges come first"]
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
        "missing: 'tea' is never true; there are: a, b"
    ]


def test_a_proposition_that_is_misspelt_is_answered_with_the_nearest() -> None:
    assert kinds(Edge("s", "cofee", "t"), propositions=["coffee", "mail"]) == [
        "missing: 'cofee' is never true; there are: coffee, mail; did you mean 'coffee'?"
    ]


def test_a_task_that_is_over_before_it_begins() -> None:
    assert kinds(Edge("s", "!a", "t")) == [
        "at once: if no proposition is true at the start, it ends in 't'"
    ]
    assert kinds(Edge("s", "!a", "t"), consume_initial=False) == []
    (finding,) = check_task("G !decoration")
    assert finding.is_mistake


def test_overlaps_are_told_with_a_label_and_are_no_mistake() -> None:
    edges = [Edge("s", "a", "t"), Edge("s", "b", "s", 1.0)]
    task = RewardMachine(edges, initial="s", success=["t"])
    (overlap,) = check_task(task)
    assert not overlap.is_mistake
    assert overlap.message == "in 's' both 'a' and 'b' hold for {a, b}; the first one is taken"
    assert kinds(Edge("s", "a", "t"), Edge("s", "b", "t")) == []  # it makes no difference


def test_an_overlap_is_told_once_and_only_where_it_makes_a_difference() -> None:
    lucky = [Edge("s", "a", "t", 1.0, 0.5), Edge("s", "a", "u", 1.0, 0.5), Edge("u", "a", "t")]
    assert kinds(*lucky, Edge("s", "b", "u")) == [
        "overlap: in 's' both 'a' and 'b' hold for {a, b}; the first one is taken"
    ]
    same = [Edge("s", "b", "t", 1.0, 0.5), Edge("s", "b", "u", 1.0, 0.5)]
    assert kinds(*lucky, *same) == []


def test_a_task_is_judged_by_the_labels_that_there_are() -> None:
    apart: list[set[str]] = [set(), {"a"}, {"b"}]
    both = [Edge("s", "a & b", "t")]
    assert kinds(*both) == []
    assert kinds(*both, labels=apart) == [
        "unreachable: no labels there lead to 't'",
        "dead end: from 's' no success can be reached there",
        "elsewhere: 's' -> 't' when 'a & b' cannot be taken there",
    ]
    assert kinds(*both, labels=[*apart, {"a", "b"}]) == []
    assert kinds(Edge("s", "a", "t"), Edge("s", "b", "s", 1.0), labels=apart) == []  # no overlap


def test_labels_say_which_propositions_there_are_and_a_missing_one_is_told_once() -> None:
    told = kinds(Edge("s", "tea", "t"), labels=[{"a"}])
    assert [line.partition(":")[0] for line in told] == ["unreachable", "dead end", "missing"]
    assert told[-1] == "missing: 'tea' is never true; there are: a"


def test_what_labels_leave_out_is_no_mistake_where_success_is_left_to_reach() -> None:
    labels = load_map("map1").labels()
    for task in ("F(coffee & F office)", "F(coffee & F office) & G !(A & B)", "toro-icarte/t3"):
        found = check_task(task, labels=labels)
        assert {finding.kind for finding in found} == {"elsewhere"}
        assert not any(finding.is_mistake for finding in found)
    assert check_task("exp5", labels=labels) == []


def test_an_edge_that_never_happens_anywhere_stays_a_mistake_where_labels_are_given() -> None:
    told = kinds(Edge("s", "a", "t"), Edge("s", "a & b", "s", 2.0), labels=[set(), {"a"}, {"b"}])
    assert told == ["never: 's' -> 's' when 'a & b' is never taken: other edges come first"]


def test_a_task_is_given_by_name_by_file_as_a_formula_or_itself(tmp_path: Path) -> None:
    save_task(load_task("exp3"), tmp_path / "mine.toml")
    wanted = check_task(load_task("exp3"))
    assert [finding.kind for finding in wanted] == ["overlap"]
    assert check_task("exp3") == check_task(tmp_path / "mine.toml") == wanted
    assert check_task("F(coffee & F office)") == []


@given(machines())
def test_any_machine_can_be_checked(machine: RewardMachine) -> None:
    for labels in (None, [["a"]]):
        for finding in check_task(machine, ["a"], labels):
            assert finding.message
