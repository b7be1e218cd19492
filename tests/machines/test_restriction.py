"""Machines over the labels that occur: the same there, and no larger than needed."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qrmax
from odd_machines import machines
from qrmax import Edge, RewardMachine
from qrmax.logic.guards import Guard, Label, written
from qrmax.machines.restriction import guard_between

NAMES = ["a", "b", "c", "x_1", "hot # [coffee]", "elsewhere"]
labels_of = st.lists(st.frozensets(st.sampled_from(NAMES)), min_size=1, max_size=8, unique=True)

short = st.frozensets(st.sampled_from("abcd"))


def exactly(label: Label, names: frozenset[str]) -> str:
    """The guard that holds where exactly these of the names are true."""
    return " & ".join(("" if name in label else "!") + written(name) for name in sorted(names))


def closed(machine: RewardMachine, labels: list[Label], names: frozenset[str]) -> RewardMachine:
    """The machine that ends at any label but these, which leaves nothing else to differ in."""
    known = " | ".join(f"({exactly(label & names, names)})" for label in labels) or "false"
    first = [Edge(state, f"!({known})", "outside") for state in machine.states]
    edges = [edge for edge in first if edge.source not in machine.terminal]
    return RewardMachine(
        [*edges, *machine.edges],
        initial=machine.initial,
        success=machine.success,
        failure={*machine.failure, "outside"},
        states=[*machine.states, "outside"],
        undefined=machine.undefined,
    )


@given(machines(), labels_of)
@settings(max_examples=60, deadline=None)
def test_a_restricted_machine_does_the_same_for_its_labels(
    machine: RewardMachine, labels: list[Label]
) -> None:
    there = machine.restricted(labels)
    for state in there.states:
        for label in labels:
            assert [o[1:] for o in there.outcomes(state, label)] == [
                o[1:] for o in machine.outcomes(state, label)
            ]
    names = machine.propositions
    if names and "outside" not in machine.states:
        one, other = (closed(each, labels, names) for each in (machine, there))
        assert one.counterexample(other) is None
        assert (there.initial, there.consume_initial) == (machine.initial, machine.consume_initial)


@given(machines(), labels_of)
@settings(max_examples=40, deadline=None)
def test_every_state_and_every_edge_left_can_happen(
    machine: RewardMachine, labels: list[Label]
) -> None:
    there = machine.restricted(labels)
    reached, ahead = {there.initial}, [there.initial]
    while ahead:
        state = ahead.pop()
        new = {o.state for label in labels for o in there.outcomes(state, label)} - reached
        reached |= new
        ahead += new
    assert {*there.states} == reached
    assert all(any(edge.guard.holds(label) for label in labels) for edge in there.edges)


@given(st.sets(short), st.sets(short))
def test_a_guard_between_labels_has_nothing_that_can_be_left_out(
    inside: set[Label], outside: set[Label]
) -> None:
    outside -= inside
    if not inside:
        return
    guard = guard_between([*inside], [*outside])
    assert all(map(guard.holds, inside))
    assert not any(map(guard.holds, outside))
    terms = str(guard).split(" | ")
    for number, term in enumerate(terms):
        others = terms[:number] + terms[number + 1 :]
        rest = Guard.parse(" | ".join(others) or "false")
        assert not all(map(rest.holds, inside))
        literals = term.split(" & ")
        for kept in combinations(literals, len(literals) - 1):
            wider = Guard.parse(" & ".join(kept) or "true")
            assert term == "true" or any(map(wider.holds, outside))


def test_what_is_true_is_told_before_what_is_not() -> None:
    a, b = frozenset({"a"}), frozenset({"b"})
    assert str(guard_between([a], [b])) == "a"
    assert str(guard_between([a, b], [frozenset()])) == "a | b"
    assert str(guard_between([frozenset()], [a, b])) == "!a & !b"


@pytest.mark.parametrize("undefined", ["stay", "fail"])
def test_falling_off_stays_where_it_can_happen(undefined: str) -> None:
    machine = RewardMachine([Edge("s", "a | b", "s")], initial="s", undefined=undefined)
    falls = machine.restricted([[], ["a"]])
    assert (falls.undefined, "failed" in falls.states) == (undefined, undefined == "fail")
    stays = machine.restricted([["a"], ["b"]])
    assert (stays.undefined, stays.states) == ("stay", ("s",))


def test_chance_is_kept_as_it_was() -> None:
    task = qrmax.load_task("warehouse/deliver")
    problem = qrmax.make("warehouse/deliver")
    assert task.restricted(problem.labels) == task


def test_the_restricted_task_has_the_same_optimum_on_its_map() -> None:
    task = RewardMachine.from_ltlf("F(coffee & !mail & F(office & !coffee)) & G !decoration")
    grid = qrmax.load_map("map1")
    there = task.restricted(grid.labels())
    assert max(len(edge.guard.postfix) for edge in there.edges) == 1
    values = [qrmax.solve(qrmax.make(map=grid, task=each)).start_value for each in (task, there)]
    assert values[0] == values[1] > 0.0
