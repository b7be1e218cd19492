"""Where labels lead from every state, as decision diagrams that share their nodes.

A *ref* is a number that stands for a node, or, where it is negative, for a state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


def state_ref(state: int) -> int:
    """The ref of a state, and the other way round."""
    return ~state


class Transitions(NamedTuple):
    """Nodes ask for propositions by number, in ascending order from the root on."""

    asks: list[int]  # [node]: the proposition
    low: list[int]  # [node]: the ref where it is false
    high: list[int]  # [node]: the ref where it is true
    root: list[int]  # [state]: a ref

    def follow(self, state: int, holds: Callable[[int], bool]) -> int:
        """The state that a label leads to; `holds` says which propositions are in it."""
        ref = self.root[state]
        while ref >= 0:
            ref = self.high[ref] if holds(self.asks[ref]) else self.low[ref]
        return state_ref(ref)

    def successors(self, state: int) -> list[int]:
        """The states that labels lead to from here, in ascending order."""
        seen, ahead = set(), [self.root[state]]
        while ahead:
            ref = ahead.pop()
            if ref not in seen:
                seen.add(ref)
                ahead += (self.low[ref], self.high[ref]) if ref >= 0 else ()
        return sorted(state_ref(ref) for ref in seen if ref < 0)


class Acceptor(NamedTuple):
    """An automaton with the initial state 0: what a DFA is made of."""

    transitions: Transitions
    accepting: list[bool]  # [state]


def in_breadth_first_order(acceptor: Acceptor, initial: int = 0) -> Acceptor:
    """The same automaton with states and nodes numbered as they are come upon from `initial` on.

    What cannot be reached is left out. So the numbers are a matter of the automaton alone.
    """
    old = acceptor.transitions
    states, state_of = [initial], {initial: 0}
    nodes: list[int] = []
    node_of: dict[int, int] = {}
    for state in states:  # the list grows on the way
        ahead = [old.root[state]]
        while ahead:
            ref = ahead.pop()
            if ref < 0:
                if state_ref(ref) not in state_of:
                    state_of[state_ref(ref)] = len(states)
                    states.append(state_ref(ref))
            elif ref not in node_of:
                node_of[ref] = len(nodes)
                nodes.append(ref)
                ahead += (old.high[ref], old.low[ref])

    def new(ref: int) -> int:
        return node_of[ref] if ref >= 0 else state_ref(state_of[state_ref(ref)])

    return Acceptor(
        Transitions(
            asks=[old.asks[node] for node in nodes],
            low=[new(old.low[node]) for node in nodes],
            high=[new(old.high[node]) for node in nodes],
            root=[new(old.root[state]) for state in states],
        ),
        accepting=[acceptor.accepting[state] for state in states],
    )
