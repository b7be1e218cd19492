"""On-the-fly exploration of automata: reachable states and shortest words.

Anything that gives the root of a state, the variable of a node and its branches can be unfolded to
`Transitions`, or searched for a shortest trace.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

from qrmax.errors import SizeError
from qrmax.logic.transitions import Transitions, state_ref

Place = TypeVar("Place", bound=Hashable)  # a state, or a node between states

Word = list[tuple[int, ...]]
"""A trace: the numbers of the propositions that are true, label by label."""


class OnTheFly(Protocol[Place]):
    """An automaton given by its successor function; propositions are tested in ascending order."""

    def root(self, state: Place) -> Place:
        """The root of the diagram of a state's successors."""

    def var(self, place: Place) -> int | None:
        """The proposition that a node tests; None for a state."""

    def branches(self, node: Place) -> tuple[Place, Place]:
        """The branches of a node: proposition false, proposition true."""


def unfold(
    walk: OnTheFly[Place], initial: Place, max_states: int
) -> tuple[Transitions, list[Place]]:
    """The reachable part of the automaton; the initial state gets the number 0."""
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
            variable = walk.var(place)
            if variable is None:
                if len(states) >= max_states:
                    raise SizeError(f"an automaton of more than {max_states} states")
                refs[place] = state_ref(len(states))
                states.append(place)
                continue
            low, high = walk.branches(place)
            if low not in refs or high not in refs:
                ahead += (branch for branch in (high, low) if branch not in refs)
                continue
            refs[place] = len(found.var)
            found.var.append(variable)
            found.low.append(refs[low])
            found.high.append(refs[high])
        return refs[goal]

    for state in states:  # grows during the loop
        found.root.append(settle(walk.root(state)))
    return found, states


def shortest_word(
    walk: OnTheFly[Place], initial: Place, is_goal: Callable[[Place], bool]
) -> Word | None:
    """A shortest trace from the initial state to a goal, or None if no goal is reachable."""
    words: dict[Place, tuple[Place, tuple[int, ...]] | None] = {initial: None}
    ahead = [initial]
    seen = {initial}
    for state in ahead:  # grows during the loop: breadth-first
        if is_goal(state):
            return _word_to(state, words)
        open_places: list[tuple[Place, tuple[int, ...]]] = [(walk.root(state), ())]
        while open_places:
            place, true = open_places.pop()
            variable = walk.var(place)
            if variable is None:
                if place not in words:
                    words[place] = (state, true)
                    ahead.append(place)
            elif place not in seen:  # nodes seen before lead to nothing new
                seen.add(place)
                low, high = walk.branches(place)
                open_places += ((high, (*true, variable)), (low, true))
    return None


def _word_to(state: Place, words: dict[Place, tuple[Place, tuple[int, ...]] | None]) -> Word:
    word: Word = []
    while (step := words[state]) is not None:
        state, label = step
        word.append(label)
    return word[::-1]
