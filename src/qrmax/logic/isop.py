"""Guards as decision diagrams, and decision diagrams as readable guards.

A diagram is written as an or of ands in which nothing can be left out: no term, and no proposition
of a term (Minato and Morreale's irredundant sum of products).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from qrmax.errors import GuardError, SizeError
from qrmax.logic.bdd import FALSE, TRUE, Diagrams
from qrmax.logic.guards import MAX_TOKENS, Guard, is_name, named, written
from qrmax.logic.trampoline import Steps, unwound
from qrmax.logic.transitions import Transitions, state_ref

MAX_NODES = 20_000  # of diagrams, to make a guard shorter

Term = tuple[tuple[int, bool], ...]
"""Propositions by number, each with whether it must be true."""


def diagram_of(guard: Guard, diagrams: Diagrams, numbers: Mapping[str, int]) -> int:
    """The function that is true for the labels for which the guard holds."""
    stack: list[int] = []
    for item in guard.postfix:
        if item == "!":
            stack.append(diagrams.no(stack.pop()))
        elif item in ("&", "|"):
            right, left = stack.pop(), stack.pop()
            combine = diagrams.both if item == "&" else diagrams.either
            stack.append(combine(left, right))
        elif item in ("true", "false"):
            stack.append(TRUE if item == "true" else FALSE)
        else:
            stack.append(diagrams.variable(numbers[named(item)]))
    return stack.pop()


def labels_by_target(transitions: Transitions, source: int, diagrams: Diagrams) -> dict[int, int]:
    """For each successor of a state, the function that is true for the labels that lead there."""
    found: dict[int, dict[int, int]] = {}  # of refs
    ahead = [transitions.root[source]]
    while ahead:
        ref = ahead[-1]
        if ref < 0:
            found[ref] = {state_ref(ref): TRUE}
            ahead.pop()
            continue
        low, high = transitions.low[ref], transitions.high[ref]
        if low in found and high in found:
            no, yes = found[low], found[high]
            found[ref] = {
                target: diagrams.node(
                    transitions.asks[ref], no.get(target, FALSE), yes.get(target, FALSE)
                )
                for target in {**no, **yes}
            }
            ahead.pop()
        else:
            ahead += (low, high)
    return dict(sorted(found[transitions.root[source]].items()))


def guard_of(function: int, diagrams: Diagrams, names: Sequence[str]) -> Guard:
    """The guard that holds for the labels for which the function is true.

    >>> d = Diagrams()
    >>> a, b, c = map(d.variable, range(3))
    >>> print(guard_of(d.either(d.both(a, b), d.both(d.no(a), c)), d, ["a", "b", "c"]))
    a & b | !a & c
    """
    terms = sorted(terms_of(function, diagrams), key=_shortest_first)
    postfix: list[str] = []
    for number, term in enumerate(terms):
        for place, (proposition, is_true) in enumerate(term):
            postfix += [written(names[proposition]), *([] if is_true else ["!"])]
            postfix += ["&"] if place else []
        postfix += [] if term else ["true"]
        postfix += ["|"] if number else []
    return Guard(tuple(postfix or ["false"]))


def shortened(guard: Guard) -> Guard:
    """A shorter guard that holds for the same labels, where there is one as an or of ands.

    >>> print(shortened(Guard.parse("!(a & b) & a & (c | !c)")))
    a & !b
    """
    names = list(dict.fromkeys(map(named, filter(is_name, guard.postfix))))
    diagrams = Diagrams(MAX_NODES)
    try:
        function = diagram_of(guard, diagrams, {name: n for n, name in enumerate(names)})
        short = guard_of(function, diagrams, names)
    except (SizeError, GuardError):  # too hard to tell
        return guard
    return short if len(short.postfix) < len(guard.postfix) else guard


def terms_of(function: int, diagrams: Diagrams) -> list[Term]:
    """The terms of which one is true exactly where the function is, none of them needless."""
    if function == FALSE:
        return []
    return [
        _written_out(chain) for chain in unwound(_cover(function, function, diagrams, {})).terms
    ]


Chain: TypeAlias = "tuple[int, bool, Chain] | None"
"""A term as its first proposition and the rest of it, so that terms share what they can."""


class Cover(NamedTuple):
    """A function, and the same as terms."""

    function: int
    terms: list[Chain]
    size: int  # propositions in all terms


NOWHERE, EVERYWHERE = Cover(FALSE, [], 0), Cover(TRUE, [None], 0)


def _cover(must: int, may: int, d: Diagrams, known: dict[tuple[int, int], Cover]) -> Steps[Cover]:
    """Terms that are true where the function `must` is, and only where `may` is."""
    if must == FALSE:
        return NOWHERE
    if may == TRUE:
        return EVERYWHERE
    if (must, may) not in known:
        asked = min(d.asks[must], d.asks[may])
        must_low, must_high = d.branches(must, asked)
        may_low, may_high = d.branches(may, asked)
        # Terms with the variable, either way, cover what no term without it can.
        low: Cover = yield _cover(d.both(must_low, d.no(may_high)), may_low, d, known)
        high: Cover = yield _cover(d.both(must_high, d.no(may_low)), may_high, d, known)
        left_low = d.both(must_low, d.no(low.function))
        left_high = d.both(must_high, d.no(high.function))
        left = d.either(left_low, left_high)
        rest: Cover = yield _cover(left, d.both(may_low, may_high), d, known)
        terms: list[Chain] = [(asked, True, term) for term in high.terms]
        terms += [(asked, False, term) for term in low.terms]
        size = len(terms) + low.size + high.size + rest.size
        if size > MAX_TOKENS:
            raise GuardError(f"a guard of more than {MAX_TOKENS} operators and names")
        function = d.either(d.node(asked, low.function, high.function), rest.function)
        known[must, may] = Cover(function, terms + rest.terms, size)
    return known[must, may]


def _written_out(chain: Chain) -> Term:
    literals = []
    while chain is not None:
        proposition, is_true, chain = chain
        literals.append((proposition, is_true))
    return tuple(literals)


def _shortest_first(term: Term) -> tuple[int, list[tuple[int, bool]]]:
    return len(term), [(proposition, not is_true) for proposition, is_true in term]
