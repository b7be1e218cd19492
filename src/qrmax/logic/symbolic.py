"""Symbolic automata, whose states are decision diagrams, and their exploration.

The first variables, as many as there are propositions, encode the label; the others are state
variables, and a state is a function of these alone. `advance` of a state is a function of both.
Since the label comes first in the variable order, the diagram below its variables is the successor:
one diagram holds the successors under all labels, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from qrmax.logic.bdd import LEAF, Diagrams
from qrmax.logic.transitions import Acceptor
from qrmax.logic.walk import unfold


class SymbolicAutomaton(Protocol):
    """A symbolic automaton, to be explored state by state."""

    diagrams: Diagrams
    propositions: int  # their number
    initial: int

    def advance(self, state: int) -> int:
        """The successors of a state under all labels, as one diagram."""

    def accepts(self, state: int) -> bool:
        """Whether a state is accepting."""


class ExplicitAutomaton:
    """An automaton whose states are leaves; `roots` are the diagrams of their successors."""

    def __init__(self, diagrams: Diagrams, roots: Sequence[int], accepting: Sequence[bool]) -> None:
        self.diagrams = diagrams
        self.propositions = 1 + max(
            (variable for variable in diagrams.var if variable != LEAF), default=-1
        )
        self.initial = diagrams.leaf(0)
        self._roots = roots
        self._accepting = accepting

    def advance(self, state: int) -> int:
        """The successors of the state that a leaf stands for."""
        return self._roots[self.diagrams.low[state]]

    def accepts(self, state: int) -> bool:
        """Whether a state is accepting."""
        return self._accepting[self.diagrams.low[state]]


class _OnTheFly:
    """The graph of a symbolic automaton: nodes that test a proposition, and states."""

    def __init__(self, automaton: SymbolicAutomaton) -> None:
        self._var = automaton.diagrams.var
        self._low, self._high = automaton.diagrams.low, automaton.diagrams.high
        self._propositions = automaton.propositions
        self.root = automaton.advance

    def var(self, place: int) -> int | None:
        variable = self._var[place]
        return variable if variable < self._propositions else None

    def branches(self, node: int) -> tuple[int, int]:
        return self._low[node], self._high[node]


def explore(automaton: SymbolicAutomaton, max_states: int) -> Acceptor:
    """The reachable states of a symbolic automaton, in the order of their discovery."""
    transitions, states = unfold(_OnTheFly(automaton), automaton.initial, max_states)
    return Acceptor(transitions, [automaton.accepts(state) for state in states])
