"""The smallest automaton that accepts the same traces.

States begin in two classes, accepting and not. Where labels lead two states of a class into
different classes, the class is split; the largest part keeps its number, the others get new ones.
Only what leads into a part with a new number is looked at again, so a state is looked at a number
of times that grows with the logarithm of their number (Hopcroft's idea).

Where labels lead is compared as a whole: the *view* of a node is the node with classes in place
of states, reduced again. Equal views have equal numbers.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush

from qrmax.logic.transitions import Acceptor, Transitions, in_breadth_first_order, state_ref


def minimise(acceptor: Acceptor) -> Acceptor:
    """The smallest complete automaton for the same language, its states in breadth-first order."""
    classes = _Classes(in_breadth_first_order(acceptor))  # which leaves out what is never reached
    classes.refine()
    return in_breadth_first_order(classes.quotient(), initial=classes.class_of[0])


class _Classes:
    """A partition of the states."""

    def __init__(self, acceptor: Acceptor) -> None:
        self.nodes = acceptor.transitions
        self.accepting = acceptor.accepting
        first = acceptor.accepting[0]
        self.class_of = [int(accepting != first) for accepting in acceptor.accepting]  # [state]
        self.members: list[set[int]] = [set() for _ in {*self.class_of}]  # [class]
        for state, number in enumerate(self.class_of):
            self.members[number].add(state)
        self.parents: dict[int, list[int]] = defaultdict(list)  # of refs: the nodes above
        self.rooted: dict[int, list[int]] = defaultdict(list)  # of refs: the states above
        for node, branches in enumerate(zip(self.nodes.low, self.nodes.high, strict=True)):
            for ref in branches:
                self.parents[ref].append(node)
        for state, ref in enumerate(self.nodes.root):
            self.rooted[ref].append(state)
        self.views: dict[tuple[int, int, int], int] = {}
        self.view_of: dict[int, int] = {}  # [ref]; of a state it is its class, as a ref

    def refine(self) -> None:
        """Split classes until labels lead all states of a class into the same classes."""
        moved = {state_ref(state) for state in range(len(self.class_of))}
        while moved:
            moved = self._split(self._look_again(moved))

    def quotient(self) -> Acceptor:
        """The automaton of the classes."""
        asks, low, high = [], [], []
        for variable, no, yes in self.views:
            asks.append(variable)
            low.append(no)
            high.append(yes)
        one_of = [next(iter(members)) for members in self.members]
        root = [self.view_of[self.nodes.root[state]] for state in one_of]
        accepting = [self.accepting[state] for state in one_of]
        return Acceptor(Transitions(asks, low, high, root), accepting)

    def _look_again(self, moved: set[int]) -> set[int]:
        """The states that see something else, now that these states (as refs) have new classes."""
        changed: set[int] = set()
        levels: list[int] = []  # what nodes to look at ask for: a heap, from below
        at: dict[int, set[int]] = {}  # [level]: these nodes

        def has_changed(ref: int) -> None:
            for node in self.parents[ref]:
                level = -self.nodes.asks[node]
                if level not in at:
                    at[level] = set()
                    heappush(levels, level)
                at[level].add(node)
            changed.update(self.rooted[ref])

        for ref in moved:
            self.view_of[ref] = state_ref(self.class_of[state_ref(ref)])
            has_changed(ref)
        while levels:  # what a node leads to is settled before it
            for node in at.pop(heappop(levels)):
                view = self._view(node)
                if view != self.view_of.get(node):
                    self.view_of[node] = view
                    has_changed(node)
        return changed

    def _view(self, node: int) -> int:
        low, high = self.view_of[self.nodes.low[node]], self.view_of[self.nodes.high[node]]
        if low == high:
            return low
        return self.views.setdefault((self.nodes.asks[node], low, high), len(self.views))

    def _split(self, changed: set[int]) -> set[int]:
        """Give new numbers to the parts of classes; the states that have one now, as refs."""
        parts: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        for state in changed:
            parts[self.class_of[state]][self.view_of[self.nodes.root[state]]].add(state)
        moved: set[int] = set()
        for number, by_view in parts.items():
            groups = list(by_view.values())
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
