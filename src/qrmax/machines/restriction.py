"""Restriction of a reward machine to the labels that occur, with all others as don't-cares.

A formula compiles to a machine with edges for all conceivable labels; on a map with at most one
proposition per cell, hardly any of them can be taken. Labels that do not occur are don't-cares: a
guard must hold for the labels that take its edge, must not hold for the other labels that occur,
and is free elsewhere. Each label is widened to a cube by dropping every literal that is not needed
to separate it from the others, negated ones first, so that `coffee & !mail & !office` becomes
`coffee`; cubes covered by the others are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from qrmax.logic.guards import Guard, Label, as_label, written
from qrmax.machines.edges import Edge, Outcome

if TYPE_CHECKING:
    from qrmax.machines.reward_machine import RewardMachine


class _Cube(NamedTuple):
    """A conjunction of literals: propositions that must be true, and that must be false."""

    true: Label
    false: Label

    def holds(self, label: Label) -> bool:
        return self.true <= label and not self.false & label


def restrict(
    machine: RewardMachine, labels: Iterable[Iterable[str]], name: str | None = None
) -> RewardMachine:
    """Restrict a machine to these labels: see `RewardMachine.restricted`."""
    from qrmax.machines.reward_machine import FAILED, RewardMachine

    mentioned = machine.propositions
    occurring = sorted({as_label(label) & mentioned for label in labels}, key=sorted)
    taken = _reached(machine, occurring)
    can_fail = machine.undefined == "fail" and FAILED in taken
    edges: list[Edge] = []
    for state, outcomes in taken.items():
        fails = can_fail and state not in machine.terminal
        otherwise = (Outcome(1.0, FAILED if fails else state, 0.0),)
        for happens, group in outcomes.items():
            if happens != otherwise:
                others = [label for label in occurring if label not in group]
                edges += _edges(state, guard_between(group, others), happens)
    return RewardMachine(
        edges,
        initial=machine.initial,
        success=machine.success & taken.keys(),
        failure=machine.failure & taken.keys(),
        states=[state for state in machine.states if state in taken],
        undefined="fail" if can_fail else "stay",
        consume_initial=machine.consume_initial,
        name=machine.name if name is None else name,
        description=machine.description,
    )


def guard_between(inside: Sequence[Label], outside: Sequence[Label]) -> Guard:
    """A short guard that holds for the labels `inside` and for none of those `outside`.

    >>> nothing, coffee, mail = frozenset(), frozenset({"coffee"}), frozenset({"mail"})
    >>> print(guard_between([coffee], [nothing, mail]))
    coffee
    >>> print(guard_between([nothing, mail], [coffee]))
    !coffee
    """
    names = frozenset[str]().union(*inside, *outside)
    cubes: list[_Cube] = []
    for label in sorted(inside, key=lambda label: (len(label), sorted(label))):
        if not any(cube.holds(label) for cube in cubes):
            cubes.append(_widened(_Cube(label, names - label), outside))
    for cube in reversed(cubes[:]):
        rest = [other for other in cubes if other != cube]
        if all(any(other.holds(label) for other in rest) for label in inside):
            cubes = rest
    return _disjunction(cubes)


def _reached(
    machine: RewardMachine, labels: Sequence[Label]
) -> dict[str, dict[tuple[Outcome, ...], list[Label]]]:
    """The states reachable under these labels, each with its labels grouped by outcomes."""
    found: dict[str, dict[tuple[Outcome, ...], list[Label]]] = {}
    ahead = [machine.initial]
    while ahead:
        state = ahead.pop()
        if state in found:
            continue
        by_outcomes = found[state] = {}
        for label in labels:
            outcomes = machine.outcomes(state, label)
            by_outcomes.setdefault(outcomes, []).append(label)
            ahead += [outcome.state for outcome in outcomes]
    return {state: found[state] for state in machine.states if state in found}


def _edges(state: str, guard: Guard, outcomes: tuple[Outcome, ...]) -> list[Edge]:
    """The edges of an event; staying with reward 0 as the last alternative is implicit."""
    last = outcomes[-1]
    if len(outcomes) > 1 and (last.state, last.reward) == (state, 0.0):
        outcomes = outcomes[:-1]
    return [Edge(state, guard, target, reward, p) for p, target, reward in outcomes]


def _widened(cube: _Cube, outside: Sequence[Label]) -> _Cube:
    """Drop every literal that is not needed to exclude the labels outside."""
    for name in sorted(cube.false):
        wider = cube._replace(false=cube.false - {name})
        cube = cube if any(map(wider.holds, outside)) else wider
    for name in sorted(cube.true, reverse=True):
        wider = cube._replace(true=cube.true - {name})
        cube = cube if any(map(wider.holds, outside)) else wider
    return cube


def _disjunction(cubes: Sequence[_Cube]) -> Guard:
    postfix: list[str] = []
    for number, (true, false) in enumerate(cubes):
        literals = [[written(name)] for name in sorted(true)]
        literals += [[written(name), "!"] for name in sorted(false)]
        for place, literal in enumerate(literals or [["true"]]):
            postfix += [*literal, *(["&"] if place else [])]
        postfix += ["|"] if number else []
    return Guard(tuple(postfix))
