"""The synchronous product of automata over the same labels."""

from __future__ import annotations

from collections.abc import Sequence

from qrmax.logic.bdd import Diagrams
from qrmax.logic.symbolic import ExplicitAutomaton, explore
from qrmax.logic.transitions import Acceptor, Transitions, state_ref

ProductState = tuple[int, ...]
"""A ref of each automaton; a state of the product if all of them are states."""


class Product:
    """The product, explored on the fly; propositions must have the same numbers in all factors."""

    def __init__(self, automata: Sequence[Transitions]) -> None:
        self._automata = automata
        self.initial: ProductState = tuple(state_ref(0) for _ in automata)

    def root(self, state: ProductState) -> ProductState:
        """The root of each factor."""
        return tuple(t.root[state_ref(ref)] for t, ref in zip(self._automata, state, strict=True))

    def var(self, place: ProductState) -> int | None:
        """The first proposition that a factor tests."""
        tested = [t.var[ref] for t, ref in zip(self._automata, place, strict=True) if ref >= 0]
        return min(tested, default=None)

    def branches(self, node: ProductState) -> tuple[ProductState, ProductState]:
        """The cofactors: factors that test the variable branch, the others stay."""
        variable = self.var(node)
        low, high = [], []
        for t, ref in zip(self._automata, node, strict=True):
            branches_here = ref >= 0 and t.var[ref] == variable
            low.append(t.low[ref] if branches_here else ref)
            high.append(t.high[ref] if branches_here else ref)
        return tuple(low), tuple(high)


def align(
    named: Sequence[tuple[Sequence[str], Acceptor]],
) -> tuple[tuple[str, ...], list[Acceptor]]:
    """Renumber automata over the union of their propositions; return its names, too."""
    names = tuple(dict.fromkeys(name for propositions, _ in named for name in propositions))
    number = {name: place for place, name in enumerate(names)}
    return names, [
        _renumbered(acceptor, [number[name] for name in propositions])
        for propositions, acceptor in named
    ]


def _renumbered(acceptor: Acceptor, numbers: Sequence[int]) -> Acceptor:
    """The automaton with proposition p renumbered to `numbers[p]`, and reordered accordingly."""
    old = acceptor.transitions
    if list(numbers) == sorted(numbers):
        renamed = old._replace(var=[numbers[variable] for variable in old.var])
        return acceptor._replace(transitions=renamed)
    diagrams = Diagrams()
    states = len(old.root)
    new = {state_ref(state): diagrams.leaf(state) for state in range(states)}  # of refs
    for node in sorted(range(len(old.var)), key=old.var.__getitem__, reverse=True):
        test = diagrams.variable(numbers[old.var[node]])
        new[node] = diagrams.ite(test, new[old.high[node]], new[old.low[node]])
    roots = [new[ref] for ref in old.root]
    return explore(ExplicitAutomaton(diagrams, roots, acceptor.accepting), max_states=states)
