"""Two machines are equivalent, or a shortest trace separates them."""

from __future__ import annotations

from collections import deque
from itertools import chain, combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coffee_task import coffee_task, pick_up
from odd_machines import machines
from qrmax.logic.guards import Label
from qrmax.machines.edges import Edge
from qrmax.machines.formats.toro_icarte import OFFICE_LETTERS
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import load_task, read_task, task_names, write_task
from qrmax.source import Source

ORIGINALS = Path(__file__).parents[1] / "data" / "toro_icarte"
LETTERS = {**OFFICE_LETTERS, "h": "E", "k": "good_coffee"}


def originals() -> list[str]:
    paths = (path.relative_to(ORIGINALS).with_suffix("") for path in ORIGINALS.rglob("*.txt"))
    return sorted(path.as_posix() for path in paths)


def all_labels(*machines: RewardMachine) -> list[Label]:
    names = sorted(frozenset().union(*(machine.propositions for machine in machines)))
    sizes = (combinations(names, size) for size in range(len(names) + 1))
    return [frozenset(label) for label in chain.from_iterable(sizes)]


def shortest_difference(one: RewardMachine, other: RewardMachine) -> int | None:
    """The same by brute force, for machines without chance: try all labels in all pairs."""
    labels = all_labels(one, other)
    seen = {(one.initial, other.initial): 0}
    ahead = deque(seen)
    while ahead:
        pair = ahead.popleft()
        for label in labels:
            left, right = one.step(pair[0], label), other.step(pair[1], label)
            ends = (left.state in one.success, left.state in one.failure)
            if left.reward != right.reward or ends != (
                right.state in other.success,
                right.state in other.failure,
            ):
                return seen[pair] + 1
            if (left.state, right.state) not in seen:
                seen[left.state, right.state] = seen[pair] + 1
                ahead.append((left.state, right.state))
    return None


def alike_by_signatures(one: RewardMachine, other: RewardMachine) -> bool:
    """The same by brute force, with chance: refine by what every single label does."""
    labels = all_labels(one, other)
    nodes = [(m, state) for m in (0, 1) for state in (one, other)[m].states]
    kind = {(m, s): (s in (one, other)[m].success, s in (one, other)[m].failure) for m, s in nodes}
    classes: dict[tuple[int, str], object] = dict(kind)
    for _ in nodes:
        signatures = {}
        for m, state in nodes:
            does = []
            for label in labels:
                masses: dict[tuple[float, object], float] = {}
                for outcome in (one, other)[m].outcomes(state, label):
                    key = (outcome.reward, classes[m, outcome.state])
                    masses[key] = masses.get(key, 0.0) + outcome.probability
                does.append(frozenset((key, round(mass, 9)) for key, mass in masses.items()))
            signatures[m, state] = (classes[m, state], tuple(does))
        numbers = {signature: i for i, signature in enumerate(dict.fromkeys(signatures.values()))}
        classes = {node: numbers[signature] for node, signature in signatures.items()}
    return classes[0, one.initial] == classes[1, other.initial]


@pytest.mark.parametrize("name", originals())
def test_the_tasks_in_the_original_format_do_the_same_as_ours(name: str) -> None:
    original = load_task(ORIGINALS / f"{name}.txt", letters=LETTERS)
    assert original.equivalent(load_task(name))
    assert load_task(name).equivalent(original)


def test_all_tasks_of_the_paper_are_there_in_the_original_format() -> None:
    assert originals() == [name for name in task_names() if "exp" in name]


def test_no_two_tasks_of_the_paper_do_the_same() -> None:
    tasks = [load_task(name) for name in originals()]
    for one, other in combinations(tasks, 2):
        found = one.counterexample(other)
        assert found is not None
        left, right = one.run(found.trace), other.run(found.trace)
        assert (left.rewards[-1], left.success) != (right.rewards[-1], right.success)
        assert left.rewards[:-1] == right.rewards[:-1]
        assert (left.states[-2], right.states[-2]) == found.states


@given(machines(random=False), machines(random=False))
def test_the_labels_found_are_the_shortest(one: RewardMachine, other: RewardMachine) -> None:
    found = one.counterexample(other)
    length = shortest_difference(one, other)
    assert (None if found is None else len(found.trace)) == length
    if found is not None:
        assert one.outcomes(found.states[0], found.trace[-1]) == found.outcomes[0]
        assert other.outcomes(found.states[1], found.trace[-1]) == found.outcomes[1]


@st.composite
def variants(draw: st.DrawFn) -> tuple[RewardMachine, RewardMachine]:
    """A machine, and the same with other names, and perhaps with one edge changed."""
    machine = draw(machines())
    names = {state: f"q{i}" for i, state in enumerate(machine.states) if state != "failed"}
    names["failed"] = "failed"
    edges = [
        Edge(names[e.source], e.guard, names[e.target], e.reward, e.probability)
        for e in machine.edges
    ]
    if edges and draw(st.booleans()):
        number = draw(st.integers(0, len(edges) - 1))
        old = edges[number]
        target = draw(st.sampled_from([*names.values()]))
        edges[number] = Edge(old.source, old.guard, target, old.reward, old.probability)
    return machine, RewardMachine(
        edges,
        initial=names[machine.initial],
        success=[names[state] for state in machine.success],
        failure=[names[state] for state in machine.failure],
        states=[*dict.fromkeys(names.values())],
        undefined=machine.undefined,
    )


@given(variants())
def test_random_machines_are_compared_by_what_follows_each_outcome(
    pair: tuple[RewardMachine, RewardMachine],
) -> None:
    one, other = pair
    found = one.counterexample(other)
    assert (found is None) == alike_by_signatures(one, other) == (other.equivalent(one))
    if found is not None:
        first, second = found.outcomes
        assert one.outcomes(found.states[0], found.trace[-1]) == first
        assert other.outcomes(found.states[1], found.trace[-1]) == second


@given(machines())
def test_a_machine_does_the_same_as_itself(machine: RewardMachine) -> None:
    assert machine.equivalent(machine)


@given(machines(random=False))
def test_hoa_keeps_what_a_machine_does(machine: RewardMachine) -> None:
    again = read_task(Source("mine.hoa", write_task(machine, ".hoa")))
    assert machine.counterexample(again) is None


def test_a_counterexample_reads_like_a_story() -> None:
    given = coffee_task(name="given")
    wanted = RewardMachine(
        [*given.edges[:2], Edge("has_coffee", "office & !mud", "done", 1.5)],
        initial="start",
        success=["done"],
        failure=["dirty"],
        name="wanted",
    )
    assert str(wanted.counterexample(given)) == (
        "after {coffee}, reading {mud, office}:\n"
        "  wanted  'has_coffee' -> 'has_coffee', reward 0\n"
        "  given   'has_coffee' -> 'done', reward 1.5"
    )


def test_chances_count_and_so_does_when_they_are_taken() -> None:
    found = pick_up(0.8).counterexample(pick_up(0.7))
    assert found is not None
    assert "'has_coffee', reward 1 with probability 0.8; 'start'" in str(found)
    likely, unlikely = (
        RewardMachine(
            [Edge("s", "a", "has", probability=chance), Edge("has", "b", "t", 1.0)],
            initial="s",
            success=["t"],
        )
        for chance in (0.8, 0.7)
    )
    seldom = likely.counterexample(unlikely)
    assert seldom is not None
    assert (seldom.trace, seldom.states) == (({"a"},), ("s", "s"))  # not what follows from it
    early = RewardMachine(
        [Edge("s", "a", "good", probability=0.5), Edge("s", "a", "bad", probability=0.5),
         Edge("good", "b", "t", 1.0)], initial="s", success=["t"],
    )  # fmt: skip
    late = RewardMachine(
        [Edge("s", "a", "either"), Edge("either", "b", "t", 1.0, probability=0.5),
         Edge("either", "b", "stuck", probability=0.5)], initial="s", success=["t"],
    )  # fmt: skip
    told = early.counterexample(late)
    assert told is not None
    assert told.trace == ({"a"}, {"b"})


def test_what_cannot_be_reached_makes_no_difference() -> None:
    plain = RewardMachine([Edge("s", "a", "t", 1.0)], initial="s", success=["t"])
    more = RewardMachine(
        [*plain.edges, Edge("lost", "b", "t", 5.0), Edge("s", "a & b", "lost")],
        initial="s",
        success=["t"],
    )
    assert plain.equivalent(more)


def test_machines_with_many_propositions_are_compared_without_trying_all_labels() -> None:
    names = [f"p{i}" for i in range(60)]
    edges = [Edge(f"q{i}", name, f"q{i + 1}") for i, name in enumerate(names)]
    long = RewardMachine(edges, initial="q0")
    again = RewardMachine(reversed(edges), initial="q0")
    assert long.equivalent(again)
    paid = RewardMachine([*edges[:-1], Edge("q59", "p59", "q60", 1.0)], initial="q0")
    found = long.counterexample(paid)
    assert found is not None
    assert found.trace == tuple({name} for name in names)


def test_machines_with_many_edges_are_compared_without_trying_all_pairs() -> None:
    names = [f"a{i}" for i in range(7)]
    wanted, given = (
        RewardMachine.from_ltlf(" & ".join(f"F {name}" for name in order))
        for order in (names, names[::-1])
    )
    assert len(given.edges) > 2000
    assert given.equivalent(wanted)
    lost = RewardMachine(given.edges[:-1], initial="q0", success=["satisfied"])
    found = lost.counterexample(wanted)
    assert found is not None
    assert lost.run(found.trace).success != wanted.run(found.trace).success
