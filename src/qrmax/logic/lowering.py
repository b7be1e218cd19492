"""Lowering: formulas of all three logics to the core language of `terms`."""

from __future__ import annotations

from collections.abc import Callable

from qrmax.logic.formula import Formula
from qrmax.logic.guards import named
from qrmax.logic.terms import Kind, Terms

_CONSTANTS: dict[str, Callable[[Terms], int]] = {
    "true": lambda t: t.true,
    "tt": lambda t: t.true,
    "false": lambda t: t.false,
    "ff": lambda t: t.false,
    "end": lambda t: t.negate(t.here),
    "last": lambda t: t.add(Kind.AND, t.here, t.negate(t.add(Kind.NEXT, t.true))),
}
_UNARY: dict[str, Callable[[Terms, int], int]] = {
    "!": lambda t, f: t.negate(f),
    "X": lambda t, f: t.add(Kind.NEXT, f),
    "WX": lambda t, f: t.negate(t.add(Kind.NEXT, t.negate(f))),
    "F": lambda t, f: t.add(Kind.UNTIL, t.true, f),
    "G": lambda t, f: t.negate(t.add(Kind.UNTIL, t.true, t.negate(f))),
    "Y": lambda t, f: t.add(Kind.YESTERDAY, f),
    "WY": lambda t, f: t.negate(t.add(Kind.YESTERDAY, t.negate(f))),
    "O": lambda t, f: t.add(Kind.SINCE, t.true, f),
    "H": lambda t, f: t.negate(t.add(Kind.SINCE, t.true, t.negate(f))),
    "?": lambda t, f: t.add(Kind.TEST, f),
    "*": lambda t, r: t.add(Kind.STAR, _path(t, r)),
}
_BINARY: dict[str, Callable[[Terms, int, int], int]] = {
    "&": lambda t, f, g: t.add(Kind.AND, f, g),
    "|": lambda t, f, g: t.add(Kind.OR, f, g),
    "->": lambda t, f, g: t.add(Kind.OR, t.negate(f), g),
    "<->": lambda t, f, g: t.add(Kind.IFF, f, g),
    "U": lambda t, f, g: t.add(Kind.UNTIL, f, g),
    "R": lambda t, f, g: t.negate(t.add(Kind.UNTIL, t.negate(f), t.negate(g))),
    "W": lambda t, f, g: _BINARY["R"](t, g, t.add(Kind.OR, f, g)),
    "M": lambda t, f, g: t.add(Kind.UNTIL, g, t.add(Kind.AND, f, g)),
    "S": lambda t, f, g: t.add(Kind.SINCE, f, g),
    ";": lambda t, r, s: t.add(Kind.THEN, _path(t, r), _path(t, s)),
    "+": lambda t, r, s: t.add(Kind.ONE_OF, _path(t, r), _path(t, s)),
    "<>": lambda t, r, f: t.add(Kind.DIAMOND, _path(t, r), f),
    "[]": lambda t, r, f: t.negate(t.add(Kind.DIAMOND, _path(t, r), t.negate(f))),
}


def term_of(formula: Formula, terms: Terms) -> int:
    """Lower a formula to a term; atoms are numbered as its propositions are."""
    numbers = {name: number for number, name in enumerate(formula.propositions)}
    stack: list[int] = []
    for item in formula.postfix:
        if formula.is_proposition(item):
            stack.append(terms.add(Kind.ATOM, numbers[named(item)]))
        elif item in _CONSTANTS:
            stack.append(_CONSTANTS[item](terms))
        elif item in _UNARY:
            stack.append(_UNARY[item](terms, stack.pop()))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(_BINARY[item](terms, left, right))
    return stack.pop()


def _path(terms: Terms, term: int) -> int:
    """Coerce a formula to a path of one step."""
    return term if terms[term].kind >= Kind.STEP else terms.add(Kind.STEP, term)
