"""Walking through an automaton whose states and nodes turn up on the way.

Whatever can say where a state begins to read a label, what a node asks for and where it branches
can be written out as `Transitions`, or searched for a shortest trace.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

from qrmax.errors import SizeError
from qrmax.logic.transitions import Transitions, state_ref

Place = TypeVar("Place", bound=Hashable)  # a state, or a node between states

Word = list[tuple[int, ...]]
"""A trace: the numbers of the propositions that are true, label by label."""


class Walk(Protocol[Place]):
    """An automaton to walk through; labels ask for propositions in ascending order."""

    def root(self, state: Place) -> Place:
        """Where reading a label begins."""

    def asks(self, place: Place) -> int | None:
        """The proposition that a node asks for; None for a state, where the label is read."""

    def branches(self, node: Place) -> tuple[Place, Place]:
        """Where the proposition is false, where it is true."""


def unfold(walk: Walk[Place], initial: Place, max_states: int) -> tuple[Transitions, list[Place]]:
    """All that can be reached from the initial state, which gets the number 0."""
    states = [initial]
    refs = {initial: state_ref(0)}
    found = Transitions([], [], [], [])

    def settle(goal: Place) -> int:
        ahead = [goal]
        while ahead:
            place = ahead[-1]
            if place in refs:
                ahead.pop()
                continue
            asked = walk.asks(place)
            if asked is None:
                if len(states) >= max_states:
                    raise SizeError(f"an automaton of more than {max_states} states")
                refs[place] = state_ref(len(states))
                states.append(place)
                continue
            low, high = walk.branches(place)
            if low not in refs or high not in refs:
                ahead += (branch for branch in (high, low) if branch not in refs)
                continue
            refs[place] = len(found.asks)
            found.asks.append(asked)
            found.low.append(refs[low])
            found.high.append(refs[high])
        return refs[goal]

    for state in states:  # the list grows on the way
        found.root.append(settle(walk.root(state)))
    return found, states


def shortest_word(
    walk: Walk[Place], initial: Place, is_goal: Callable[[Place], bool]
) -> Word | None:
    """A shortest trace from the initial state to a goal, or None where no trace leads there."""
    words: dict[Place, tuple[Place, tuple[int, ...]] | None] = {initial: None}
    ahead = [initial]
    seen = {initial}
    for state in ahead:  # the list grows on the way: breadth first
        if is_goal(state):
            return _word_to(state, words)
        open_places: list[tuple[Place, tuple[int, ...]]] = [(walk.root(state), ())]
        while open_places:
            place, true = open_places.pop()
            asked = walk.asks(place)
            if asked is None:
                if place not in words:
                    words[place] = (state, true)
                    ahead.append(place)
            elif place not in seen:  # what was met before leads to nothing new
                seen.add(place)
                low, high = walk.branches(place)
                open_places += ((high, (*true, asked)), (low, true))
    return None


def _word_to(state: Place, words: dict[Place, tuple[Place, tuple[int, ...]] | None]) -> Word:
    word: Word = []
    while (step := words[state]) is not None:
        state, label = step
        word.append(label)
    return word[::-1]
