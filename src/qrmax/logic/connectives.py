"""The Boolean connectives, on decision diagrams."""

from __future__ import annotations

from collections.abc import Mapping

from qrmax.logic.bdd import FALSE, Diagrams
from qrmax.logic.terms import Kind, Term


def connect(diagrams: Diagrams, term: Term, parts: Mapping[int, int]) -> int:
    """A NOT, AND, OR or IFF of the functions that its parts stand for."""
    f, g = parts[term.left], parts.get(term.right, FALSE)
    match term.kind:
        case Kind.NOT:
            return diagrams.no(f)
        case Kind.AND:
            return diagrams.both(f, g)
        case Kind.OR:
            return diagrams.either(f, g)
        case Kind.IFF:
            return diagrams.choose(f, g, diagrams.no(g))
    raise ValueError(f"{term.kind.name} is no connective")
