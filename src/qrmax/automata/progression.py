"""LTLf and LDLf: what is left to be satisfied after each label.

A state is a Boolean function of *promises*, one variable for each term that is not Boolean itself:
"this term holds at the next position", which may be the end. Reading a label replaces each promise
by what its term asks for at a position that is there:

    now(p)           = p                                   a variable of the label
    now(NEXT f)      = later(f), and not at the end
    now(UNTIL f g)   = now(g) or (now(f) and later(UNTIL f g))
    now(DIAMOND r f) = (skip(r) and now(f)) or the or of (condition and later(DIAMOND s f))
                       for each (s: condition) in ways(r)

and later(f) is f with promises for its parts. At the end each promise is worth what its term is
worth there. Equal functions are one state, so there are finitely many.

How a path begins is a matter of the path alone: it is passed without a label where `skip` is true,
or one label is taken, and the path s is left (Antimirov's partial derivatives):

    r          skip                 ways
    STEP f     false                nothing: now(f)
    TEST f     now(f)               none
    ONE_OF r s skip(r) or skip(s)   those of r, those of s
    THEN r s   skip(r) and skip(s)  each of r, then s; those of s where skip(r)
    STAR r     true                 each of r, then STAR r

A label is taken before a star begins again, so stars within stars come to an end.
"""

from __future__ import annotations

from typing import NamedTuple

from qrmax.automata.bdd import FALSE, TRUE, Diagrams
from qrmax.automata.connectives import connect
from qrmax.automata.terms import BOOLEAN, Kind, Terms
from qrmax.errors import SizeError


class Opening(NamedTuple):
    """How a path can begin."""

    skip: int  # where it is passed without a label
    ways: dict[int, int]  # the path that is left after one label: where that is possible


class Progression:
    """The symbolic automaton of a term of the future."""

    def __init__(self, terms: Terms, goal: int, propositions: int, diagrams: Diagrams) -> None:
        self.terms = terms
        self.diagrams = diagrams
        self.propositions = propositions
        self._promised: list[int] = []  # the terms of our own variables
        self._now = {terms.true: TRUE}
        self._later = {terms.true: TRUE}
        self._openings: dict[int, Opening] = {}
        self._settled = {terms.true}  # the terms of `_now` and the paths of `_openings`
        self._ways = 0  # how many in all
        self._advanced = {FALSE: FALSE, TRUE: TRUE}
        for term in terms.parts_first(goal, self._later):
            if terms[term].kind not in BOOLEAN and terms[term].kind < Kind.STEP:
                self._promise(
                    term
                )  # inner terms first: states of a sequence then share their nodes
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
            if self.terms[term].kind >= Kind.STEP:
                self._openings[term] = self._open(term)
            else:
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
                f = self._hold_later(left)
                return (
                    both(f, self._hold_later(self.terms.here)) if self.terms.at_border[left] else f
                )
            case Kind.UNTIL:
                goes_on = both(self._now[left], self._hold_later(term))
                return either(self._now[right], goes_on)
            case Kind.DIAMOND:
                opening = self._openings[left]
                holds = both(opening.skip, self._now[right])
                for rest, condition in opening.ways.items():
                    goal = self._hold_later(self.terms.diamond(rest, right))
                    holds = either(holds, both(condition, goal))
                return holds
        return connect(self.diagrams, self.terms[term], self._now)

    def _open(self, path: int) -> Opening:
        kind, left, right = self.terms[path]
        both, either, then = self.diagrams.both, self.diagrams.either, self.terms.then
        ways: dict[int, int] = {}
        match kind:
            case Kind.STEP:
                return Opening(FALSE, {self.terms.nothing: self._now[left]})
            case Kind.TEST:
                return Opening(self._now[left], ways)
            case Kind.STAR:
                for rest, condition in self._openings[left].ways.items():
                    ways[then(rest, path)] = condition
                return Opening(TRUE, ways)
        r, s = self._openings[left], self._openings[right]
        first = r.ways if kind == Kind.ONE_OF else {then(p, right): c for p, c in r.ways.items()}
        entered = TRUE if kind == Kind.ONE_OF else r.skip
        ways |= first
        for rest, condition in s.ways.items():
            ways[rest] = either(ways.get(rest, FALSE), both(entered, condition))
        self._ways += len(ways)
        if self._ways > self.diagrams.max_nodes:
            raise SizeError(f"paths with more than {self.diagrams.max_nodes} ways to begin")
        skip = either(r.skip, s.skip) if kind == Kind.ONE_OF else both(r.skip, s.skip)
        return Opening(skip, ways)
