"""LTLf and LDLf: what is left to be satisfied after each label.

A state is a Boolean function of *promises*, one variable for each term that is not Boolean itself:
"this term holds at the next position", which may be the end. Reading a label replaces each promise
by what its term asks for at a position that is there:

    now(p)           = p                                   a variable of the label
    now(NEXT f)      = later(f), and not at the end
    now(UNTIL f g)   = now(g) or (now(f) and later(UNTIL f g))
    now(DIAMOND r f) = along(r, f, now(f))

and later(f) is f with promises for its parts. At the end each promise is worth what its term is
worth there. Equal functions are one state, so there are finitely many.

Along a path a term waits at its far side, both as what is promised if a label is taken on the way
(f) and as what holds if none is (here):

    along(STEP g, f, here)     = now(g) and later(f)
    along(TEST g, f, here)     = now(g) and here
    along(ONE_OF r s, f, here) = along(r, f, here) or along(s, f, here)
    along(THEN r s, f, here)   = along(r, DIAMOND s f, along(s, f, here))
    along(STAR r, f, here)     = here or along(r, DIAMOND (STAR r) f, false)

In the last line `false` says that a round of a star takes at least one label: a round without one
leads nowhere new. So stars within stars come to an end, and their promises hold no trace of it.
"""

from __future__ import annotations

from qrmax.errors import SizeError
from qrmax.logic.bdd import FALSE, TRUE, Diagrams
from qrmax.logic.connectives import connect
from qrmax.logic.terms import BOOLEAN, Kind, Terms
from qrmax.logic.trampoline import Steps, unwound


class Progression:
    """The symbolic automaton of a term of the future."""

    def __init__(self, terms: Terms, goal: int, propositions: int, diagrams: Diagrams) -> None:
        self.terms = terms
        self.diagrams = diagrams
        self.propositions = propositions
        self._promised: list[int] = []  # the terms of our own variables
        self._now = {terms.true: TRUE}
        self._later = {terms.true: TRUE}
        self._settled = {terms.true}  # what is in `_now`, and paths whose parts are
        self._passed: dict[tuple[int, int, int], int] = {}
        self._advanced = {FALSE: FALSE, TRUE: TRUE}
        for term in terms.parts_first(goal, self._later):
            # Inner terms come first: the states of a sequence then share their nodes.
            if terms[term].kind not in BOOLEAN and terms[term].kind < Kind.STEP:
                self._promise(term)
        self.initial = self._hold_later(goal)

    def advance(self, state: int) -> int:
        """The state with every promise replaced by what it asks for now."""
        diagrams, advanced = self.diagrams, self._advanced
        ahead = [state]
        while ahead:
            node = ahead[-1]
            low, high = diagrams.low[node], diagrams.high[node]
            if node in advanced:
                ahead.pop()
            elif missing := [branch for branch in (high, low) if branch not in advanced]:
                ahead += missing
            else:
                term = self._promised[diagrams.asks[node] - self.propositions]
                now = self._hold_now(term)
                advanced[node] = diagrams.choose(now, advanced[high], advanced[low])
        return advanced[state]

    def accepts(self, state: int) -> bool:
        """Whether the promises are kept at the end."""
        at_border, first = self.terms.at_border, self.propositions
        end = self.diagrams.follow(state, lambda v: at_border[self._promised[v - first]])
        return end == TRUE

    def _promise(self, term: int) -> int:
        variable = self.diagrams.variable(self.propositions + len(self._promised))
        self._promised.append(term)
        self._later[term] = variable
        return variable

    def _hold_later(self, goal: int) -> int:
        for term in self.terms.parts_first(goal, self._later, within=BOOLEAN):
            if self.terms[term].kind in BOOLEAN:
                self._later[term] = connect(self.diagrams, self.terms[term], self._later)
            else:
                self._promise(term)
        return self._later[goal]

    def _hold_now(self, goal: int) -> int:
        for term in self.terms.parts_first(goal, self._settled):
            if self.terms[term].kind < Kind.STEP:
                self._now[term] = self._progress(term)
            self._settled.add(term)
        return self._now[goal]

    def _progress(self, term: int) -> int:
        kind, left, right = self.terms[term]
        both, either = self.diagrams.both, self.diagrams.either
        match kind:
            case Kind.HERE:
                return TRUE
            case Kind.ATOM:
                return self.diagrams.variable(left)
            case Kind.NEXT:
                holds_there = self._hold_later(left)
                if not self.terms.at_border[left]:
                    return holds_there  # which the end does not
                return both(holds_there, self._hold_later(self.terms.here))
            case Kind.UNTIL:
                goes_on = both(self._now[left], self._hold_later(term))
                return either(self._now[right], goes_on)
            case Kind.DIAMOND:
                holds: int = unwound(self._along(left, right, self._now[right]))
                return holds
        return connect(self.diagrams, self.terms[term], self._now)

    def _along(self, path: int, goal: int, here: int) -> Steps[int]:
        key = (path, goal, here)
        if key not in self._passed:
            self._passed[key] = yield self._pass_along(path, goal, here)
            if len(self._passed) > self.diagrams.max_nodes:
                raise SizeError(f"more than {self.diagrams.max_nodes} steps along its paths")
        return self._passed[key]

    def _pass_along(self, path: int, goal: int, here: int) -> Steps[int]:
        kind, left, right = self.terms[path]
        both, either = self.diagrams.both, self.diagrams.either
        match kind:
            case Kind.STEP:
                return both(self._now[left], self._hold_later(goal))
            case Kind.TEST:
                return both(self._now[left], here)
            case Kind.ONE_OF:
                r = yield self._along(left, goal, here)
                return either(r, (yield self._along(right, goal, here)))
            case Kind.THEN:
                second = yield self._along(right, goal, here)
                through: int = yield self._along(left, self._diamond(right, goal), second)
            case _:  # STAR
                round_trip = yield self._along(left, self._diamond(path, goal), FALSE)
                through = either(here, round_trip)
        return through

    def _diamond(self, path: int, goal: int) -> int:
        return self.terms.add(Kind.DIAMOND, path, goal)
