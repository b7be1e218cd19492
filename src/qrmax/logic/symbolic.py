"""Automata whose states are decision diagrams, and all their states written out.

Variables up to the number of propositions are those of the label that is read; the ones after them
are the automaton's own, and a state is a function of these alone. `advance` of a state is a
function of both. Since a label's variables are asked first, what is left below them is the state
that the label leads to: one diagram holds the successors for all labels, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from qrmax.logic.bdd import LEAF, Diagrams
from qrmax.logic.transitions import Acceptor
from qrmax.logic.walk import unfold


class Symbolic(Protocol):
    """An automaton that is explored state by state."""

    diagrams: Diagrams
    propositions: int  # how many
    initial: int

    def advance(self, state: int) -> int:
        """What reading a label makes of the state."""

    def accepts(self, state: int) -> bool:
        """Whether the labels may end here."""


class Listed:
    """An automaton whose states are leaves: `roots` says where labels lead from each of them."""

    def __init__(self, diagrams: Diagrams, roots: Sequence[int], accepting: Sequence[bool]) -> None:
        self.diagrams = diagrams
        self.propositions = 1 + max((asked for asked in diagrams.asks if asked != LEAF), default=-1)
        self.initial = diagrams.leaf(0)
        self._roots = roots
        self._accepting = accepting

    def advance(self, state: int) -> int:
        """The diagram of the state that the leaf stands for."""
        return self._roots[self.diagrams.low[state]]

    def accepts(self, state: int) -> bool:
        """Whether the labels may end here."""
        return self._accepting[self.diagrams.low[state]]


class _SymbolicWalk:
    """Nodes that ask for a proposition lie between states; all others are states."""

    def __init__(self, automaton: Symbolic) -> None:
        self._asks = automaton.diagrams.asks
        self._low, self._high = automaton.diagrams.low, automaton.diagrams.high
        self._propositions = automaton.propositions
        self.root = automaton.advance

    def asks(self, place: int) -> int | None:
        asked = self._asks[place]
        return asked if asked < self._propositions else None

    def branches(self, node: int) -> tuple[int, int]:
        return self._low[node], self._high[node]


def explore(automaton: Symbolic, max_states: int) -> Acceptor:
    """Every state that labels lead to, in the order in which they are come upon."""
    transitions, states = unfold(_SymbolicWalk(automaton), automaton.initial, max_states)
    return Acceptor(transitions, [automaton.accepts(state) for state in states])
