"""A reward machine over the labels that a world has, with guards that tell only those apart.

A formula becomes a machine with edges for all labels one can think of; on a map where at most one
proposition is true in a cell, nearly none of them can happen. Labels that do not occur are
don't-cares: a guard has to hold for the labels that take its edge, must not hold for the other
labels that occur, and may do anything elsewhere. Each label is widened to a term by leaving out
whatever is not needed to tell it from the others, negated propositions first, so that
`coffee & !mail & !office` becomes `coffee`; terms that the others cover together are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from qrmax.logic.guards import Guard, Label, as_label, written
from qrmax.machines.edges import Edge, Outcome

if TYPE_CHECKING:
    from qrmax.machines.reward_machine import RewardMachine


class _Term(NamedTuple):
    """Propositions that must be true, and propositions that must be false."""

    true: Label
    false: Label

    def holds(self, label: Label) -> bool:
        return self.true <= label and not self.false & label


def restrict(
    machine: RewardMachine, labels: Iterable[Iterable[str]], name: str | None = None
) -> RewardMachine:
    """The machine for these labels alone: see `RewardMachine.restricted`."""
    from qrmax.machines.reward_machine import FELL_OFF, RewardMachine

    mentioned = machine.propositions
    there = sorted({as_label(label) & mentioned for label in labels}, key=sorted)
    taken = _reached(machine, there)
    falls_off = machine.undefined == "fail" and FELL_OFF in taken
    edges: list[Edge] = []
    for state, outcomes in taken.items():
        falls = falls_off and state not in machine.terminal
        otherwise = (Outcome(1.0, FELL_OFF if falls else state, 0.0),)
        for happens, group in outcomes.items():
            if happens != otherwise:
                others = [label for label in there if label not in group]
                edges += _edges(state, guard_between(group, others), happens)
    return RewardMachine(
        edges,
        initial=machine.initial,
        success=machine.success & taken.keys(),
        failure=machine.failure & taken.keys(),
        states=[state for state in machine.states if state in taken],
        undefined="fail" if falls_off else "stay",
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
    terms: list[_Term] = []
    for label in sorted(inside, key=lambda label: (len(label), sorted(label))):
        if not any(term.holds(label) for term in terms):
            terms.append(_widened(_Term(label, names - label), outside))
    for term in reversed(terms[:]):
        rest = [other for other in terms if other != term]
        if all(any(other.holds(label) for other in rest) for label in inside):
            terms = rest
    return _written(terms)


def _reached(
    machine: RewardMachine, labels: Sequence[Label]
) -> dict[str, dict[tuple[Outcome, ...], list[Label]]]:
    """The states that these labels lead to, each with the labels by what they do there."""
    found: dict[str, dict[tuple[Outcome, ...], list[Label]]] = {}
    ahead = [machine.initial]
    while ahead:
        state = ahead.pop()
        if state in found:
            continue
        does = found[state] = {}
        for label in labels:
            outcomes = machine.outcomes(state, label)
            does.setdefault(outcomes, []).append(label)
            ahead += [outcome.state for outcome in outcomes]
    return {state: found[state] for state in machine.states if state in found}


def _edges(state: str, guard: Guard, outcomes: tuple[Outcome, ...]) -> list[Edge]:
    """The edges of an event; to stay for nothing as the last alternative goes without saying."""
    last = outcomes[-1]
    if len(outcomes) > 1 and (last.state, last.reward) == (state, 0.0):
        outcomes = outcomes[:-1]
    return [Edge(state, guard, target, reward, p) for p, target, reward in outcomes]


def _widened(term: _Term, outside: Sequence[Label]) -> _Term:
    """The term without what is not needed to keep the labels outside out."""
    for name in sorted(term.false):
        wider = term._replace(false=term.false - {name})
        term = term if any(map(wider.holds, outside)) else wider
    for name in sorted(term.true, reverse=True):
        wider = term._replace(true=term.true - {name})
        term = term if any(map(wider.holds, outside)) else wider
    return term


def _written(terms: Sequence[_Term]) -> Guard:
    postfix: list[str] = []
    for number, (true, false) in enumerate(terms):
        literals = [[written(name)] for name in sorted(true)]
        literals += [[written(name), "!"] for name in sorted(false)]
        for place, literal in enumerate(literals or [["true"]]):
            postfix += [*literal, *(["&"] if place else [])]
        postfix += ["|"] if number else []
    return Guard(tuple(postfix))
