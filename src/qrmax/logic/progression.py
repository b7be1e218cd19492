"""The automaton of an LTLf or LDLf formula, by formula progression.

A state is a Boolean function of *obligations*, one variable for each temporal term: "this term
holds at the next position", which may be the end. Reading a label replaces each obligation by the
expansion of its term at a position that exists:

    now(p)           = p                                   a variable of the label
    now(NEXT f)      = later(f), and not at the end
    now(UNTIL f g)   = now(g) or (now(f) and later(UNTIL f g))
    now(DIAMOND r f) = along(r, f, now(f))

and later(f) is f with obligations for its temporal parts. At the end each obligation has the truth
value of its term there. Equal functions are one state, so there are finitely many.

Along a path, `f` is the obligation at its end if the path consumes a label, and `here` the value if
it consumes none:

    along(STEP g, f, here)     = now(g) and later(f)
    along(TEST g, f, here)     = now(g) and here
    along(ONE_OF r s, f, here) = along(r, f, here) or along(s, f, here)
    along(THEN r s, f, here)   = along(r, DIAMOND s f, along(s, f, here))
    along(STAR r, f, here)     = here or along(r, DIAMOND (STAR r) f, false)

In the last line `false` means that an iteration of a star consumes at least one label: an empty
iteration reaches nothing new. So nested stars terminate, and leave no trace in the obligations.
"""

from __future__ import annotations

from qrmax.errors import SizeError
from qrmax.logic.bdd import FALSE, TRUE, Diagrams
from qrmax.logic.connectives import connect
from qrmax.logic.terms import BOOLEAN, Kind, Terms
from qrmax.logic.trampoline import Steps, trampoline


class Progression:
    """The symbolic automaton of a future-time term."""

    def __init__(self, terms: Terms, goal: int, propositions: int, diagrams: Diagrams) -> None:
        self.terms = terms
        self.diagrams = diagrams
        self.propositions = propositions
        self._obligations: list[int] = []  # the terms of the state variables
        self._now = {terms.true: TRUE}
        self._later = {terms.true: TRUE}
        self._settled = {terms.true}  # terms in `_now`, and paths whose parts are
        self._along_memo: dict[tuple[int, int, int], int] = {}
        self._advanced = {FALSE: FALSE, TRUE: TRUE}
        for term in terms.parts_first(goal, self._later):
            # Inner terms first: the states of a sequence then share their nodes.
            if terms[term].kind not in BOOLEAN and terms[term].kind < Kind.STEP:
                self._oblige(term)
        self.initial = self._hold_later(goal)

    def advance(self, state: int) -> int:
        """Progress the state: every obligation replaced by its expansion."""
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
                term = self._obligations[diagrams.var[node] - self.propositions]
                now = self._hold_now(term)
                advanced[node] = diagrams.ite(now, advanced[high], advanced[low])
        return advanced[state]

    def accepts(self, state: int) -> bool:
        """Whether the obligations hold at the end of the trace."""
        at_border, first = self.terms.at_border, self.propositions
        end = self.diagrams.follow(state, lambda v: at_border[self._obligations[v - first]])
        return end == TRUE

    def _oblige(self, term: int) -> int:
        variable = self.diagrams.variable(self.propositions + len(self._obligations))
        self._obligations.append(term)
        self._later[term] = variable
        return variable

    def _hold_later(self, goal: int) -> int:
        for term in self.terms.parts_first(goal, self._later, within=BOOLEAN):
            if self.terms[term].kind in BOOLEAN:
                self._later[term] = connect(self.diagrams, self.terms[term], self._later)
            else:
                self._oblige(term)
        return self._later[goal]

    def _hold_now(self, goal: int) -> int:
        for term in self.terms.parts_first(goal, self._settled):
            if self.terms[term].kind < Kind.STEP:
                self._now[term] = self._progress(term)
            self._settled.add(term)
        return self._now[goal]

    def _progress(self, term: int) -> int:
        kind, left, right = self.terms[term]
        conj, disj = self.diagrams.conj, self.diagrams.disj
        match kind:
            case Kind.HERE:
                return TRUE
            case Kind.ATOM:
                return self.diagrams.variable(left)
            case Kind.NEXT:
                holds_there = self._hold_later(left)
                if not self.terms.at_border[left]:
                    return holds_there  # false at the end
                return conj(holds_there, self._hold_later(self.terms.here))
            case Kind.UNTIL:
                still = conj(self._now[left], self._hold_later(term))
                return disj(self._now[right], still)
            case Kind.DIAMOND:
                holds: int = trampoline(self._along(left, right, self._now[right]))
                return holds
        return connect(self.diagrams, self.terms[term], self._now)

    def _along(self, path: int, goal: int, here: int) -> Steps[int]:
        key = (path, goal, here)
        if key not in self._along_memo:
            self._along_memo[key] = yield self._expand_along(path, goal, here)
            if len(self._along_memo) > self.diagrams.max_nodes:
                raise SizeError(f"more than {self.diagrams.max_nodes} steps along its paths")
        return self._along_memo[key]

    def _expand_along(self, path: int, goal: int, here: int) -> Steps[int]:
        kind, left, right = self.terms[path]
        conj, disj = self.diagrams.conj, self.diagrams.disj
        match kind:
            case Kind.STEP:
                return conj(self._now[left], self._hold_later(goal))
            case Kind.TEST:
                return conj(self._now[left], here)
            case Kind.ONE_OF:
                r = yield self._along(left, goal, here)
                return disj(r, (yield self._along(right, goal, here)))
            case Kind.THEN:
                second = yield self._along(right, goal, here)
                through: int = yield self._along(left, self._diamond(right, goal), second)
            case _:  # STAR
                iterated = yield self._along(left, self._diamond(path, goal), FALSE)
                through = disj(here, iterated)
        return through

    def _diamond(self, path: int, goal: int) -> int:
        return self.terms.add(Kind.DIAMOND, path, goal)
