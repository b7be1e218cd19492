"""The core language of all three logics, as hash-consed terms.

Time consists of positions 0, 1, ..., n - 1, one for each label, and the border: for LTLf and LDLf
the end n after the last label, for PPLTL the position before the first one. Terms are evaluated at
each position and at the border, where no proposition is true and nothing lies beyond:

    TRUE
    ATOM p          there is a label here, and p is in it
    HERE            there is a label here: this is not the border
    NOT f, AND f g, OR f g, IFF f g
    NEXT f          there is a next label, and f holds there
    UNTIL f g       g holds at some label from here on, and f at all before it
    DIAMOND r f     some path along r leads from here to a position (or the end) where f holds
    YESTERDAY f     there is a previous label, and f holds there
    SINCE f g       g held at some label up to here, and f at all after it

Paths are LDLf's regular expressions:

    STEP f          one label, which satisfies f, a formula without temporal operators
    TEST f          no label, but f must hold
    THEN r s, ONE_OF r s, STAR r

Terms are numbered, parts before wholes. So any recursion over terms is a loop, and no formula is
too deep.
"""

from __future__ import annotations

from collections.abc import Container
from enum import IntEnum, auto
from typing import NamedTuple

from qrmax.errors import SizeError

MAX_TERMS = 1_000_000


class Kind(IntEnum):
    """The operator of a term."""

    TRUE = auto()
    ATOM = auto()
    HERE = auto()
    NOT = auto()
    AND = auto()
    OR = auto()
    IFF = auto()
    NEXT = auto()
    UNTIL = auto()
    DIAMOND = auto()
    YESTERDAY = auto()
    SINCE = auto()
    STEP = auto()
    TEST = auto()
    THEN = auto()
    ONE_OF = auto()
    STAR = auto()


BOOLEAN = frozenset({Kind.TRUE, Kind.NOT, Kind.AND, Kind.OR, Kind.IFF})
_PARTS = {
    **dict.fromkeys((Kind.TRUE, Kind.ATOM, Kind.HERE), 0),
    **dict.fromkeys((Kind.NOT, Kind.NEXT, Kind.YESTERDAY, Kind.STEP, Kind.TEST, Kind.STAR), 1),
}


class Term(NamedTuple):
    """An operator and its operands; of an ATOM, `left` is the number of the proposition."""

    kind: Kind
    left: int = -1
    right: int = -1

    @property
    def parts(self) -> tuple[int, ...]:
        """The immediate subterms."""
        return (self.left, self.right)[: _PARTS.get(self.kind, 2)]


class Terms:
    """A store of hash-consed terms.

    >>> terms = Terms()
    >>> a = terms.add(Kind.ATOM, 0)
    >>> terms.negate(terms.negate(a)) == a
    True
    """

    def __init__(self) -> None:
        self._terms: list[Term] = []
        self._numbers: dict[Term, int] = {}
        self.at_border: list[
            bool
        ] = []  # [term]: holds at the border; of a path: accepts the empty word
        self.true = self.add(Kind.TRUE)
        self.false = self.add(Kind.NOT, self.true)
        self.here = self.add(Kind.HERE)

    def __getitem__(self, number: int) -> Term:
        return self._terms[number]

    def __len__(self) -> int:
        return len(self._terms)

    def add(self, kind: Kind, left: int = -1, right: int = -1) -> int:
        """The number of a term, added unless it exists."""
        term = Term(kind, left, right)
        number = self._numbers.get(term)
        if number is None:
            number = self._numbers[term] = len(self._terms)
            if number > MAX_TERMS:
                raise SizeError(f"a formula of more than {MAX_TERMS} parts")
            self.at_border.append(self._holds_at_border(term))
            self._terms.append(term)
        return number

    def negate(self, f: int) -> int:
        """The negation of f, without double negation."""
        kind, inner, _ = self[f]
        return inner if kind == Kind.NOT else self.add(Kind.NOT, f)

    def parts_first(
        self, goal: int, known: Container[int], within: Container[Kind] | None = None
    ) -> list[int]:
        """The term and its subterms that are not known, in topological order: parts first.

        Only terms of the kinds `within` are descended into, or all of them.
        """
        found, ahead = set(), [goal]
        while ahead:
            number = ahead.pop()
            if number not in known and number not in found:
                found.add(number)
                if within is None or self[number].kind in within:
                    ahead += self[number].parts
        return sorted(found)

    def _holds_at_border(self, term: Term) -> bool:
        kind, *_ = term
        left, right = ([self.at_border[part] for part in term.parts] + [False, False])[:2]
        match kind:
            case Kind.TRUE | Kind.STAR:
                return True
            case Kind.NOT:
                return not left
            case Kind.AND | Kind.DIAMOND | Kind.THEN:
                return left and right
            case Kind.OR | Kind.ONE_OF:
                return left or right
            case Kind.IFF:
                return left == right
            case Kind.TEST:
                return left
        return False  # all others require a label
