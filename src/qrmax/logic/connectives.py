"""Boolean connectives on decision diagrams."""

from __future__ import annotations

from collections.abc import Mapping

from qrmax.logic.bdd import FALSE, Diagrams
from qrmax.logic.terms import Kind, Term


def connect(diagrams: Diagrams, term: Term, parts: Mapping[int, int]) -> int:
    """Apply a NOT, AND, OR or IFF term to the diagrams of its parts."""
    f, g = parts[term.left], parts.get(term.right, FALSE)
    match term.kind:
        case Kind.NOT:
            return diagrams.negate(f)
        case Kind.AND:
            return diagrams.conj(f, g)
        case Kind.OR:
            return diagrams.disj(f, g)
        case Kind.IFF:
            return diagrams.ite(f, g, diagrams.negate(g))
    raise ValueError(f"{term.kind.name} is not a Boolean connective")
