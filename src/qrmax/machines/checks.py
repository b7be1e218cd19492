"""Lint checks for reward machines: legal, but probably unintended.

    unreachable   a state that no sequence of labels leads to
    never         an edge that is never taken: its guard is unsatisfiable, or others precede it
    dead end      a state from which no success is reachable (or no reward, in a task without
                  success states)
    missing       a proposition that is never true
    at once       a task that succeeds before the first step if the start's label is empty
    elsewhere     an edge that no label of this environment takes, but other labels would
    overlap       two edges of a state whose guards can hold at once, so that their order matters

The first five are mistakes; the others are notes. A formula compiles to a machine with edges for
all conceivable labels, so an edge for labels that occur elsewhere may well be right. Nor is it a
mistake if the given labels cannot lead to a failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from qrmax.errors import GuardError, did_you_mean
from qrmax.logic.guards import Guard, Label, as_label, braced
from qrmax.machines.edges import Edge, Outcome
from qrmax.machines.reward_machine import FAILED, RewardMachine
from qrmax.machines.task_files import AnyTask, load_task

NOTES = ("elsewhere", "overlap")
"""The kinds that are not mistakes."""


class Finding(NamedTuple):
    """A probable mistake in a task, or a note."""

    kind: str
    message: str

    @property
    def is_mistake(self) -> bool:
        """Whether it is a mistake, not a note."""
        return self.kind not in NOTES


def check_task(
    task: AnyTask,
    propositions: Iterable[str] | None = None,
    labels: Iterable[Iterable[str]] | None = None,
) -> list[Finding]:
    """Check a task for probable mistakes.

    >>> task = RewardMachine(
    ...     [Edge("s", "a", "t", 1), Edge("s", "a & b", "u")], initial="s", success=["t"]
    ... )
    >>> for finding in check_task(task, ["a"]):
    ...     print(f"{finding.kind}: {finding.message}")
    unreachable: no labels lead to 'u'
    never: 's' -> 'u' when 'a & b' is never taken: other edges come first
    missing: 'b' is never true; there are: a

    Args:
        task: a machine, or whatever `load_task` accepts.
        propositions: those that can be true.
        labels: the labels that occur, such as `qrmax.load_map("map1").labels()`; the task is then
            checked under these alone.

    >>> for finding in check_task("F(A & B)", labels=[[], ["A"], ["B"]]):
    ...     print(finding.message)
    no labels there lead to 'satisfied'
    from 'q0' no success can be reached there
    'q0' -> 'satisfied' when 'A & B' cannot be taken there
    """
    machine = task if isinstance(task, RewardMachine) else load_task(task)
    there = ANY if labels is None else _Labels(labels)
    true = there.propositions if propositions is None else frozenset(propositions)
    missing = frozenset[str]() if true is None else machine.propositions - true
    moves = _moves(machine, there)
    reached = _closure(moves, {machine.initial})
    found = [
        *_unreachable(machine, reached, there),
        *_never(machine),
        *_dead_ends(machine, moves, reached, there),
        *(_missing(name, true or ()) for name in sorted(missing)),
        *_at_once(machine),
        *_elsewhere(machine, there, missing),
        *_overlaps(machine, there),
    ]
    return [*dict.fromkeys(found)]


class _Labels:
    """The labels that can occur: any, or only these."""

    def __init__(self, only: Iterable[Iterable[str]] | None = None) -> None:
        self.only = None if only is None else [*dict.fromkeys(map(as_label, only))]
        self.place = "" if self.only is None else " there"

    @property
    def propositions(self) -> frozenset[str] | None:
        """The propositions true in some label; None if any label can occur."""
        return None if self.only is None else frozenset[str]().union(*self.only)

    def example(self, guard: Guard) -> Label | None:
        """A label for which the guard holds; an arbitrary one if that is too hard to decide."""
        if self.only is not None:
            return next((label for label in self.only if guard.holds(label)), None)
        try:
            return guard.example()
        except GuardError:
            return frozenset()

    def outcomes(self, machine: RewardMachine, state: str) -> Iterator[Outcome]:
        """The possible outcomes in a state."""
        if self.only is None:
            for event in machine.events(state):
                yield from event.outcomes
        else:
            for label in self.only:
                yield from machine.outcomes(state, label)


ANY = _Labels()


class _Move(NamedTuple):
    """A possible transition."""

    state: str
    target: str
    reward: float


def _moves(machine: RewardMachine, labels: _Labels) -> list[_Move]:
    return [
        _Move(state, outcome.state, outcome.reward)
        for state in machine.states
        for outcome in labels.outcomes(machine, state)
    ]


def _closure(moves: Iterable[_Move], states: set[str]) -> set[str]:
    """These states and all states reachable from them."""
    ahead: dict[str, list[str]] = {}
    for move in moves:
        ahead.setdefault(move.state, []).append(move.target)
    reached, waiting = {*states}, [*states]
    while waiting:
        new = {*ahead.get(waiting.pop(), ())} - reached
        reached |= new
        waiting += new
    return reached


def _unreachable(machine: RewardMachine, reached: set[str], labels: _Labels) -> Iterator[Finding]:
    fine = {FAILED} if machine.undefined == "fail" else set()
    if labels is not ANY:
        fine |= machine.failure & machine.reachable()
    for state in machine.states:
        if state not in reached | fine:
            yield Finding("unreachable", f"no labels{labels.place} lead to {state!r}")


def _never(machine: RewardMachine) -> Iterator[Finding]:
    """The edges that no label takes."""
    for edge in _unused(machine, ANY):
        holds = ANY.example(edge.guard) is not None
        why = "other edges come first" if holds else "its guard cannot hold"
        yield Finding("never", f"{_shown(edge)} is never taken: {why}")


def _elsewhere(
    machine: RewardMachine, labels: _Labels, missing: frozenset[str]
) -> Iterator[Finding]:
    """The edges that none of these labels takes; missing propositions are reported already."""
    if labels is not ANY:
        never = [*_unused(machine, ANY)]
        for edge in _unused(machine, labels):
            if edge not in never and not edge.guard.propositions & missing:
                yield Finding("elsewhere", f"{_shown(edge)} cannot be taken there")


def _unused(machine: RewardMachine, labels: _Labels) -> Iterator[Edge]:
    """The edges that none of these labels takes."""
    for state in machine.states:
        edges = machine.edges_of(state)
        for number, edge in enumerate(edges):
            if _is_unused(edge, edges[:number], labels):
                yield edge


def _is_unused(edge: Edge, before: Sequence[Edge], labels: _Labels) -> bool:
    """Whether earlier edges hold for every label that satisfies this edge's guard."""
    rest = edge.guard
    for earlier in before:
        if earlier.guard != edge.guard:
            rest = rest.but_not(earlier.guard)
        elif earlier.probability == 1.0:
            return True
    return labels.example(rest) is None


def _dead_ends(
    machine: RewardMachine, moves: list[_Move], reached: set[str], labels: _Labels
) -> Iterator[Finding]:
    goals = machine.success or {move.state for move in moves if move.reward}
    what = "success" if machine.success else "reward"
    backwards = [_Move(move.target, move.state, move.reward) for move in moves]
    alive = _closure(backwards, {*goals})
    for state in machine.states:
        if state in reached and state not in alive and state not in machine.terminal:
            yield Finding("dead end", f"from {state!r} no {what} can be reached{labels.place}")


def _missing(name: str, true: Iterable[str]) -> Finding:
    facts = [
        f"{name!r} is never true",
        f"there are: {', '.join(sorted(true)) or 'none'}",
        did_you_mean(name, true),
    ]
    return Finding("missing", "; ".join(filter(None, facts)))


def _at_once(machine: RewardMachine) -> Iterator[Finding]:
    nothing: Label = frozenset()
    if (state := machine.first_state(nothing)) in machine.success:
        yield Finding("at once", f"if no proposition is true at the start, it ends in {state!r}")


def _overlaps(machine: RewardMachine, labels: _Labels) -> Iterator[Finding]:
    for state in machine.states:
        for first, second in combinations(machine.cases(state)[:-1], 2):
            if first.outcomes == second.outcomes:
                continue
            label = labels.example(Guard((*first.guard.postfix, *second.guard.postfix, "&")))
            rest = second.guard.but_not(first.guard)
            if label is not None and labels.example(rest) is not None:
                yield Finding(
                    "overlap",
                    f"in {state!r} both {str(first.guard)!r} and {str(second.guard)!r} hold "
                    f"for {braced(label)}; the first one is taken",
                )


def _shown(edge: Edge) -> str:
    return f"{edge.source!r} -> {edge.target!r} when {str(edge.guard)!r}"
