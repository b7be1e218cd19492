"""What is odd about a task: legal, but perhaps not meant.

    unreachable   a state that no labels lead to
    never         an edge that never happens: its guard cannot hold, or others come first
    dead end      a state from which no success is left to reach (or no reward, in a task that has
                  no success)
    missing       a proposition that no map provides
    overlap       two edges of a state that can hold at once, so that their order matters

The first four are mistakes; an overlap is only worth knowing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from qrmax.automata.edges import Edge
from qrmax.automata.guards import Guard, Label, braced
from qrmax.automata.reward_machine import FELL_OFF, RewardMachine
from qrmax.errors import GuardError


class Finding(NamedTuple):
    """Something odd about a task."""

    kind: str
    message: str

    @property
    def is_mistake(self) -> bool:
        """Whether it is surely not meant."""
        return self.kind != "overlap"


def findings(machine: RewardMachine, propositions: Iterable[str] | None = None) -> list[Finding]:
    """All that is odd about a task, where these propositions are the ones there are.

    >>> task = RewardMachine(
    ...     [Edge("s", "a", "t", 1), Edge("s", "a & b", "u")], initial="s", success=["t"]
    ... )
    >>> for finding in findings(task, ["a"]):
    ...     print(f"{finding.kind}: {finding.message}")
    unreachable: no labels lead to 'u'
    never: 's' -> 'u' when 'a & b' never happens: other edges come first
    missing: 'b' is nowhere true; there are: a
    """
    moves = _moves(machine)
    reached = _closure(moves, {machine.initial})
    found = [
        Finding("unreachable", f"no labels lead to {state!r}")
        for state in machine.states
        if state not in reached and not (state == FELL_OFF and machine.undefined == "fail")
    ]
    found += _never(machine)
    found += _dead_ends(machine, moves, reached)
    if propositions is not None:
        there = sorted({*propositions})
        found += [
            Finding("missing", f"{name!r} is nowhere true; there are: {', '.join(there) or 'none'}")
            for name in sorted(machine.propositions - {*there})
        ]
    return [*found, *_overlaps(machine)]


class _Move(NamedTuple):
    """Something that can happen in a state."""

    state: str
    target: str
    reward: float


def _moves(machine: RewardMachine) -> list[_Move]:
    return [
        _Move(state, outcome.state, outcome.reward)
        for state in machine.states
        for event in machine.events(state)
        for outcome in event.outcomes
    ]


def _closure(moves: Iterable[_Move], states: set[str]) -> set[str]:
    """These states and all that they lead to."""
    ahead: dict[str, list[str]] = {}
    for move in moves:
        ahead.setdefault(move.state, []).append(move.target)
    reached, waiting = {*states}, [*states]
    while waiting:
        new = {*ahead.get(waiting.pop(), ())} - reached
        reached |= new
        waiting += new
    return reached


def _never(machine: RewardMachine) -> Iterator[Finding]:
    """The edges that never happen."""
    for state in machine.states:
        edges = machine.edges_of(state)
        for number, edge in enumerate(edges):
            if _example(edge.guard) is None:
                yield Finding("never", f"{_shown(edge)} never happens: its guard cannot hold")
            elif _is_shadowed(edge, edges[:number]):
                yield Finding("never", f"{_shown(edge)} never happens: other edges come first")


def _is_shadowed(edge: Edge, before: Sequence[Edge]) -> bool:
    """Whether edges before this one hold wherever it does."""
    rest = edge.guard
    for earlier in before:
        if earlier.guard != edge.guard:
            rest = rest.but_not(earlier.guard)
        elif earlier.probability == 1.0:
            return True
    return _example(rest) is None


def _example(guard: Guard) -> Label | None:
    """A label for which the guard holds; any, where that is too hard to tell."""
    try:
        return guard.example()
    except GuardError:
        return frozenset()


def _dead_ends(machine: RewardMachine, moves: list[_Move], reached: set[str]) -> Iterator[Finding]:
    wanted = machine.success or {move.state for move in moves if move.reward}
    what = "success" if machine.success else "reward"
    backwards = [_Move(move.target, move.state, move.reward) for move in moves]
    hopeful = _closure(backwards, {*wanted})
    for state in machine.states:
        if state in reached and state not in hopeful and state not in machine.terminal:
            yield Finding("dead end", f"from {state!r} no {what} can be reached")


def _overlaps(machine: RewardMachine) -> Iterator[Finding]:
    for state in machine.states:
        edges = machine.edges_of(state)
        for first, second in combinations(edges, 2):
            same = (first.target, first.reward) == (second.target, second.reward)
            if first.guard == second.guard or (same and first.probability == second.probability):
                continue
            label = _example(Guard((*first.guard.postfix, *second.guard.postfix, "&")))
            if label is not None and not _is_shadowed(second, [first]):
                yield Finding(
                    "overlap",
                    f"in {state!r} both {str(first.guard)!r} and {str(second.guard)!r} hold "
                    f"where {braced(label)} is true; the first wins",
                )


def _shown(edge: Edge) -> str:
    return f"{edge.source!r} -> {edge.target!r} when {str(edge.guard)!r}"
