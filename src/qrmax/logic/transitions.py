"""The transition function of an automaton, as one multi-rooted decision diagram.

A *ref* is a number that refers to a node or, if it is negative, to a state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


def state_ref(state: int) -> int:
    """The ref of a state; its own inverse."""
    return ~state


class Transitions(NamedTuple):
    """A decision diagram per state, sharing nodes; propositions are tested in ascending order."""

    var: list[int]  # [node]: the proposition
    low: list[int]  # [node]: the ref if it is false
    high: list[int]  # [node]: the ref if it is true
    root: list[int]  # [state]: a ref

    def follow(self, state: int, holds: Callable[[int], bool]) -> int:
        """The successor under the label whose propositions satisfy `holds`."""
        ref = self.root[state]
        while ref >= 0:
            ref = self.high[ref] if holds(self.var[ref]) else self.low[ref]
        return state_ref(ref)

    def successors(self, state: int) -> list[int]:
        """The successors of a state under all labels, in ascending order."""
        seen, ahead = set(), [self.root[state]]
        while ahead:
            ref = ahead.pop()
            if ref not in seen:
                seen.add(ref)
                ahead += (self.low[ref], self.high[ref]) if ref >= 0 else ()
        return sorted(state_ref(ref) for ref in seen if ref < 0)


class Acceptor(NamedTuple):
    """A transition function with accepting states; the initial state is 0."""

    transitions: Transitions
    accepting: list[bool]  # [state]


def in_breadth_first_order(acceptor: Acceptor, initial: int = 0) -> Acceptor:
    """Renumber the reachable states and nodes in breadth-first order from `initial`.

    Unreachable ones are dropped, so that isomorphic automata become equal.
    """
    old = acceptor.transitions
    states, state_of = [initial], {initial: 0}
    nodes: list[int] = []
    node_of: dict[int, int] = {}
    for state in states:  # grows during the loop
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
            var=[old.var[node] for node in nodes],
            low=[new(old.low[node]) for node in nodes],
            high=[new(old.high[node]) for node in nodes],
            root=[new(old.root[state]) for state in states],
        ),
        accepting=[acceptor.accepting[state] for state in states],
    )
