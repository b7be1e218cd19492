"""Several automata that read the same labels, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from qrmax.logic.bdd import Diagrams
from qrmax.logic.symbolic import Listed, explore
from qrmax.logic.transitions import Acceptor, Transitions, state_ref

Places = tuple[int, ...]
"""A ref of each automaton; where all are states, a joint state."""


class Joint:
    """The walk of all automata at once; what they ask for must be numbered alike."""

    def __init__(self, automata: Sequence[Transitions]) -> None:
        self._automata = automata
        self.initial: Places = tuple(state_ref(0) for _ in automata)

    def root(self, state: Places) -> Places:
        """Where each begins to read."""
        return tuple(t.root[state_ref(ref)] for t, ref in zip(self._automata, state, strict=True))

    def asks(self, place: Places) -> int | None:
        """The first proposition that one of them asks for."""
        asked = [t.asks[ref] for t, ref in zip(self._automata, place, strict=True) if ref >= 0]
        return min(asked, default=None)

    def branches(self, node: Places) -> tuple[Places, Places]:
        """Those who ask for it branch, the others stay."""
        asked = self.asks(node)
        low, high = [], []
        for t, ref in zip(self._automata, node, strict=True):
            branches_here = ref >= 0 and t.asks[ref] == asked
            low.append(t.low[ref] if branches_here else ref)
            high.append(t.high[ref] if branches_here else ref)
        return tuple(low), tuple(high)


def alike(
    named: Sequence[tuple[Sequence[str], Acceptor]],
) -> tuple[tuple[str, ...], list[Acceptor]]:
    """Automata with the names of their propositions, numbered alike; the names of all."""
    names = tuple(dict.fromkeys(name for propositions, _ in named for name in propositions))
    number = {name: place for place, name in enumerate(names)}
    return names, [
        _renumbered(acceptor, [number[name] for name in propositions])
        for propositions, acceptor in named
    ]


def _renumbered(acceptor: Acceptor, numbers: Sequence[int]) -> Acceptor:
    """The automaton with propositions called `numbers[old]`, and asked for in that order."""
    old = acceptor.transitions
    if list(numbers) == sorted(numbers):
        renamed = old._replace(asks=[numbers[asked] for asked in old.asks])
        return acceptor._replace(transitions=renamed)
    diagrams = Diagrams()
    states = len(old.root)
    new = {state_ref(state): diagrams.leaf(state) for state in range(states)}  # of refs
    for node in sorted(range(len(old.asks)), key=old.asks.__getitem__, reverse=True):
        test = diagrams.variable(numbers[old.asks[node]])
        new[node] = diagrams.choose(test, new[old.high[node]], new[old.low[node]])
    roots = [new[ref] for ref in old.root]
    return explore(Listed(diagrams, roots, acceptor.accepting), max_states=states)
