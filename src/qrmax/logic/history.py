"""PPLTL: what has to be remembered of the labels read so far.

A state is a row of bits, each the truth of a term at the label read last: of f for each
YESTERDAY f, of each SINCE f g, and of the formula itself, by which a state accepts. With the label
and the bits of the state before,

    now(p)           = p
    now(YESTERDAY f) = the bit of f
    now(SINCE f g)   = now(g) or (now(f) and the bit of SINCE f g)

give the new bits. A state is kept as the function that is true for its bits and no others, so that
the diagram of all successors is the and of "the new bit is what it should be", bit by bit.
"""

from __future__ import annotations

from qrmax.errors import SizeError
from qrmax.logic.bdd import FALSE, TRUE, Diagrams
from qrmax.logic.connectives import connect
from qrmax.logic.terms import Kind, Terms


class History:
    """The symbolic automaton of a term of the past."""

    def __init__(self, terms: Terms, goal: int, propositions: int, diagrams: Diagrams) -> None:
        self.terms = terms
        self.diagrams = diagrams
        self.propositions = propositions
        self._work = 0
        self._order = terms.parts_first(goal, {terms.true})
        self._remembered = [goal]  # [bit]: the term whose truth it is
        self._bit_of: dict[int, int] = {}  # of a YESTERDAY or SINCE: the bit that it asks for
        for term in self._order:
            kind, left, _ = terms[term]
            if kind in (Kind.YESTERDAY, Kind.SINCE):
                self._bit_of[term] = len(self._remembered)
                self._remembered.append(left if kind == Kind.YESTERDAY else term)
        nothing_yet = [TRUE if terms.at_border[goal] else FALSE] + [FALSE] * len(self._bit_of)
        self.initial = self._where_bits_are(nothing_yet)

    def advance(self, state: int) -> int:
        """Each bit as it becomes, for every label."""
        self._work += len(self._order)
        if self._work > self.diagrams.max_nodes:  # many bits take long before they take room
            raise SizeError(f"more than {self.diagrams.max_nodes} steps to see what is remembered")
        bits = self._bits(state)
        now = {self.terms.true: TRUE}  # functions of the label alone
        for term in self._order:
            now[term] = self._progress(term, bits, now)
        return self._where_bits_are([now[term] for term in self._remembered])

    def accepts(self, state: int) -> bool:
        """Whether the formula holds at the last label."""
        return self._bits(state)[0] == TRUE

    def _progress(self, term: int, bits: list[int], now: dict[int, int]) -> int:
        kind, left, right = self.terms[term]
        match kind:
            case Kind.ATOM:
                return self.diagrams.variable(left)
            case Kind.YESTERDAY:
                return bits[self._bit_of[term]]
            case Kind.SINCE:
                goes_on = self.diagrams.both(now[left], bits[self._bit_of[term]])
                return self.diagrams.either(now[right], goes_on)
        return connect(self.diagrams, self.terms[term], now)

    def _where_bits_are(self, values: list[int]) -> int:
        """True where each of our variables is what the function of its bit is worth."""
        diagrams = self.diagrams
        result = TRUE
        for bit in reversed(range(len(values))):  # in this order states share what is computed
            variable = diagrams.variable(self.propositions + bit)
            agrees = diagrams.choose(values[bit], variable, diagrams.no(variable))
            result = diagrams.both(result, agrees)
        return result

    def _bits(self, state: int) -> list[int]:
        """The bits of a state, each TRUE or FALSE."""
        bits = []
        while state != TRUE:
            low, high = self.diagrams.low[state], self.diagrams.high[state]
            bits.append(TRUE if low == FALSE else FALSE)
            state = high if low == FALSE else low
        return bits
