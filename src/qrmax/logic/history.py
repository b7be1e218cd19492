"""The automaton of a PPLTL formula: a finite memory of the labels read so far.

A state is a bit vector, each bit the truth of a term at the last label: of f for each YESTERDAY f,
of each SINCE f g, and of the formula itself, which decides acceptance. With the label and the bits
of the previous state,

    now(p)           = p
    now(YESTERDAY f) = the bit of f
    now(SINCE f g)   = now(g) or (now(f) and the bit of SINCE f g)

give the new bits. A state is stored as the characteristic function of its bit vector, so that the
diagram of all successors is the conjunction of "the new bit has its new value", bit by bit.
"""

from __future__ import annotations

from qrmax.errors import SizeError
from qrmax.logic.bdd import FALSE, TRUE, Diagrams
from qrmax.logic.connectives import connect
from qrmax.logic.terms import Kind, Terms


class History:
    """The symbolic automaton of a past-time term."""

    def __init__(self, terms: Terms, goal: int, propositions: int, diagrams: Diagrams) -> None:
        self.terms = terms
        self.diagrams = diagrams
        self.propositions = propositions
        self._work = 0
        self._order = terms.parts_first(goal, {terms.true})
        self._remembered = [goal]  # [bit]: the term that it is the truth of
        self._bit_of: dict[int, int] = {}  # the bit that a YESTERDAY or SINCE term reads
        for term in self._order:
            kind, left, _ = terms[term]
            if kind in (Kind.YESTERDAY, Kind.SINCE):
                self._bit_of[term] = len(self._remembered)
                self._remembered.append(left if kind == Kind.YESTERDAY else term)
        no_history = [TRUE if terms.at_border[goal] else FALSE] + [FALSE] * len(self._bit_of)
        self.initial = self._characteristic(no_history)

    def advance(self, state: int) -> int:
        """The diagram of the successors: each new bit as a function of the label."""
        self._work += len(self._order)
        if self._work > self.diagrams.max_nodes:  # many bits cost time before they cost memory
            raise SizeError(f"more than {self.diagrams.max_nodes} steps to update its memory")
        bits = self._bits(state)
        now = {self.terms.true: TRUE}  # functions of the label alone
        for term in self._order:
            now[term] = self._progress(term, bits, now)
        return self._characteristic([now[term] for term in self._remembered])

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
                still = self.diagrams.conj(now[left], bits[self._bit_of[term]])
                return self.diagrams.disj(now[right], still)
        return connect(self.diagrams, self.terms[term], now)

    def _characteristic(self, values: list[int]) -> int:
        """The function that is true if each state variable equals the value of its bit."""
        diagrams = self.diagrams
        result = TRUE
        for bit in reversed(range(len(values))):  # from the last, so that states share subdiagrams
            variable = diagrams.variable(self.propositions + bit)
            agrees = diagrams.ite(values[bit], variable, diagrams.negate(variable))
            result = diagrams.conj(result, agrees)
        return result

    def _bits(self, state: int) -> list[int]:
        """The bits of a state, each TRUE or FALSE."""
        bits = []
        while state != TRUE:
            low, high = self.diagrams.low[state], self.diagrams.high[state]
            bits.append(TRUE if low == FALSE else FALSE)
            state = high if low == FALSE else low
        return bits
