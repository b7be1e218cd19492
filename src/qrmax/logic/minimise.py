"""DFA minimisation by partition refinement.

States begin in two classes, accepting and rejecting. If some label leads two states of a class into
different classes, the class is split; the largest part keeps its number, the others get new ones.
Only predecessors of a part with a new number are reconsidered, so each state is reconsidered a
number of times logarithmic in the number of states (Hopcroft).

Transition functions are compared as a whole: the *signature* of a node is the node with classes in
place of states, reduced again. Equal signatures have equal numbers.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush

from qrmax.logic.transitions import Acceptor, Transitions, in_breadth_first_order, state_ref


def minimise(acceptor: Acceptor) -> Acceptor:
    """The minimal complete automaton of the same language, in breadth-first order."""
    classes = _Classes(in_breadth_first_order(acceptor))  # reachable states alone
    classes.refine()
    return in_breadth_first_order(classes.quotient(), initial=classes.class_of[0])


class _Classes:
    """A partition of the states into classes."""

    def __init__(self, acceptor: Acceptor) -> None:
        self.nodes = acceptor.transitions
        self.accepting = acceptor.accepting
        first = acceptor.accepting[0]
        self.class_of = [int(accepting != first) for accepting in acceptor.accepting]  # [state]
        self.members: list[set[int]] = [set() for _ in {*self.class_of}]  # [class]
        for state, number in enumerate(self.class_of):
            self.members[number].add(state)
        self.parents: dict[int, list[int]] = defaultdict(list)  # [ref]: the parent nodes
        self.rooted: dict[int, list[int]] = defaultdict(list)  # [ref]: the states rooted there
        for node, branches in enumerate(zip(self.nodes.low, self.nodes.high, strict=True)):
            for ref in branches:
                self.parents[ref].append(node)
        for state, ref in enumerate(self.nodes.root):
            self.rooted[ref].append(state)
        self.signatures: dict[tuple[int, int, int], int] = {}
        self.signature_of: dict[int, int] = {}  # [ref]; of a state: its class, as a ref

    def refine(self) -> None:
        """Split classes until all states of a class agree on the class of each successor."""
        moved = {state_ref(state) for state in range(len(self.class_of))}
        while moved:
            moved = self._split(self._update_signatures(moved))

    def quotient(self) -> Acceptor:
        """The quotient automaton, with classes as states."""
        var, low, high = [], [], []
        for variable, if_false, if_true in self.signatures:
            var.append(variable)
            low.append(if_false)
            high.append(if_true)
        one_of = [next(iter(members)) for members in self.members]
        root = [self.signature_of[self.nodes.root[state]] for state in one_of]
        accepting = [self.accepting[state] for state in one_of]
        return Acceptor(Transitions(var, low, high, root), accepting)

    def _update_signatures(self, moved: set[int]) -> set[int]:
        """The states whose signature changes, given the states (as refs) with new classes."""
        changed: set[int] = set()
        levels: list[int] = []  # a heap: pending nodes, bottom-up
        at: dict[int, set[int]] = {}  # [level]: its pending nodes

        def has_changed(ref: int) -> None:
            for node in self.parents[ref]:
                level = -self.nodes.var[node]
                if level not in at:
                    at[level] = set()
                    heappush(levels, level)
                at[level].add(node)
            changed.update(self.rooted[ref])

        for ref in moved:
            self.signature_of[ref] = state_ref(self.class_of[state_ref(ref)])
            has_changed(ref)
        while levels:  # children before parents
            for node in at.pop(heappop(levels)):
                signature = self._signature(node)
                if signature != self.signature_of.get(node):
                    self.signature_of[node] = signature
                    has_changed(node)
        return changed

    def _signature(self, node: int) -> int:
        low = self.signature_of[self.nodes.low[node]]
        high = self.signature_of[self.nodes.high[node]]
        if low == high:
            return low
        return self.signatures.setdefault((self.nodes.var[node], low, high), len(self.signatures))

    def _split(self, changed: set[int]) -> set[int]:
        """Split classes by signature; return the states that changed class, as refs."""
        parts: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        for state in changed:
            parts[self.class_of[state]][self.signature_of[self.nodes.root[state]]].add(state)
        moved: set[int] = set()
        for number, by_signature in parts.items():
            groups = list(by_signature.values())
            unchanged = len(self.members[number]) - sum(map(len, groups))
            groups.sort(key=len)
            if len(groups[-1]) > unchanged:
                largest = groups.pop()
                if unchanged:
                    groups.append(self.members[number].difference(largest, *groups))
            for group in groups:
                self.members[number] -= group
                for state in group:
                    self.class_of[state] = len(self.members)
                self.members.append(group)
                moved.update(map(state_ref, group))
        return moved
