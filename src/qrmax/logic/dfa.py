"""Deterministic finite automata over labels.

A DFA is complete: every state has a successor under every label. States are numbered from 0, the
initial one, in breadth-first order. The transition function is kept as decision diagrams
(`transitions`), so that reading a label costs no more than the propositions that matter; guards are
derived on demand, for reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from qrmax.errors import ParameterError, TaskError, shown
from qrmax.logic.bdd import Diagrams
from qrmax.logic.guards import Guard, Label, as_label
from qrmax.logic.isop import diagram_of, guard_of, labels_by_target
from qrmax.logic.minimise import minimise
from qrmax.logic.product import Product, ProductState, align
from qrmax.logic.symbolic import ExplicitAutomaton, explore
from qrmax.logic.text_table import aligned
from qrmax.logic.transitions import Acceptor, state_ref
from qrmax.logic.walk import Word, shortest_word, unfold
from qrmax.pictures.drawing import Picture
from qrmax.pictures.on_demand import drawn

MAX_STATES = 200_000  # of a product


class DFAEdge(NamedTuple):
    """A transition taken under every label that satisfies the guard."""

    source: int
    guard: Guard
    target: int


class GuardedEdge(Protocol):
    """A transition between named states, such as an edge of a reward machine."""

    @property
    def source(self) -> str: ...  # noqa: D102
    @property
    def guard(self) -> Guard: ...  # noqa: D102
    @property
    def target(self) -> str: ...  # noqa: D102
    @property
    def probability(self) -> float: ...  # noqa: D102


class DFA:
    """A complete deterministic finite automaton over labels; made by `compile_formula`.

    `states` are numbered from 0, the initial one; `accepting` is the set of accepting states;
    `propositions` are the names that the transitions depend on.

    >>> from qrmax import compile_formula
    >>> dfa = compile_formula("F(coffee & F office)")
    >>> dfa.accepts([{"coffee"}, set(), {"office"}]), dfa.accepts([{"office"}])
    (True, False)
    >>> print(dfa)
    from  when              to
    ----  ----------------  --
    0     !coffee           0
    0     coffee & !office  1
    0     coffee & office   2
    1     !office           1
    1     office            2
    2     true              2
    <BLANKLINE>
    accepting: 2
    >>> safe = dfa & compile_formula("G !mud")
    >>> safe.witness() == [{"coffee", "office"}], safe.counterexample(dfa) is None
    (True, False)
    """

    initial = 0

    def __init__(self, propositions: Sequence[str], acceptor: Acceptor) -> None:
        self.propositions = tuple(propositions)
        self.acceptor = acceptor
        self.states = range(len(acceptor.accepting))
        self.accepting = frozenset(q for q in self.states if acceptor.accepting[q])

    @staticmethod
    def from_edges(edges: Iterable[GuardedEdge], *, initial: str, accepting: Iterable[str]) -> DFA:
        """The minimal DFA of guarded edges between named states, such as those of a reward machine.

        The first edge whose guard holds is taken; if none holds, the state does not change.

        Args:
            edges: the transitions, in order of precedence; none may be stochastic.
            initial: the name of the initial state.
            accepting: the names of the accepting states.
        """
        edges = list(edges)
        names = dict.fromkeys([initial, *(end for e in edges for end in (e.source, e.target))])
        states = {name: number for number, name in enumerate(names)}
        propositions = dict.fromkeys(p for e in edges for p in sorted(e.guard.propositions))
        numbers = {name: number for number, name in enumerate(propositions)}
        diagrams = Diagrams()
        roots = [diagrams.leaf(state) for state in states.values()]
        for edge in reversed(edges):
            if edge.probability < 1.0:
                raise TaskError(f"{edge!r} is stochastic; a DFA is deterministic")
            test = diagram_of(edge.guard, diagrams, numbers)
            source, target = states[edge.source], diagrams.leaf(states[edge.target])
            roots[source] = diagrams.ite(test, target, roots[source])
        final = set(accepting)
        automaton = ExplicitAutomaton(diagrams, roots, [name in final for name in states])
        return DFA(tuple(propositions), minimise(explore(automaton, len(states))))

    def step(self, state: int, label: Iterable[str]) -> int:
        """The successor of a state under a label; unknown propositions are ignored."""
        if state not in self.states:
            raise TaskError(f"no state {shown(state)}; states: 0 to {len(self.states) - 1}")
        read = as_label(label)
        return self.acceptor.transitions.follow(state, lambda p: self.propositions[p] in read)

    def accepts(self, trace: Iterable[Iterable[str]]) -> bool:
        """Whether a trace, a sequence of labels, is accepted."""
        state = self.initial
        for label in trace:
            state = self.step(state, label)
        return state in self.accepting

    def successors(self, state: int) -> list[int]:
        """The successors of a state under all labels, in ascending order."""
        return self.acceptor.transitions.successors(state)

    def edges(self, state: int) -> list[DFAEdge]:
        """The outgoing edges of a state: one per successor, with disjoint guards."""
        diagrams = Diagrams()
        by_target = labels_by_target(self.acceptor.transitions, state, diagrams)
        return [
            DFAEdge(state, guard_of(labels, diagrams, self.propositions), target)
            for target, labels in by_target.items()
        ]

    def complement(self) -> DFA:
        """The DFA of the complement language; also `~dfa`."""
        accepting = [not accepts for accepts in self.acceptor.accepting]
        return DFA(self.propositions, self.acceptor._replace(accepting=accepting))

    def minimise(self) -> DFA:
        """The minimal DFA of the same language."""
        return DFA(self.propositions, minimise(self.acceptor))

    def product(self, other: DFA, accept: Callable[[bool, bool], bool]) -> DFA:
        """The minimal product DFA; `a & b` and `a | b` are the common cases.

        Args:
            other: the other factor.
            accept: the acceptance condition, given whether each factor accepts.
        """
        names, left, right, pair = self._paired(other)
        transitions, states = unfold(pair, pair.initial, MAX_STATES)
        accepting = [
            accept(left.accepting[state_ref(p)], right.accepting[state_ref(q)]) for p, q in states
        ]
        return DFA(names, minimise(Acceptor(transitions, accepting)))

    def __invert__(self) -> DFA:
        """The DFA of the complement language."""
        return self.complement()

    def __and__(self, other: DFA) -> DFA:
        """The DFA of the intersection."""
        return self.product(other, lambda left, right: left and right)

    def __or__(self, other: DFA) -> DFA:
        """The DFA of the union."""
        return self.product(other, lambda left, right: left or right)

    def counterexample(self, other: DFA) -> list[Label] | None:
        """A shortest trace that exactly one of the two accepts, or None."""
        names, left, right, pair = self._paired(other)

        def differs(state: ProductState) -> bool:
            return left.accepting[state_ref(state[0])] != right.accepting[state_ref(state[1])]

        return _labels(shortest_word(pair, pair.initial, differs), names)

    def equivalent(self, other: DFA) -> bool:
        """Whether both accept the same language."""
        return self.counterexample(other) is None

    def witness(self) -> list[Label] | None:
        """A shortest accepted trace, or None if the language is empty."""
        alone = Product([self.acceptor.transitions])
        accepts = self.acceptor.accepting
        word = shortest_word(alone, alone.initial, lambda state: accepts[state_ref(state[0])])
        return _labels(word, self.propositions)

    @property
    def is_empty(self) -> bool:
        """Whether the language is empty."""
        return self.witness() is None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DFA) and self._named() == other._named()

    def __hash__(self) -> int:
        return hash((self.propositions, self.accepting))

    def __str__(self) -> str:
        rows = [list(map(str, edge)) for state in self.states for edge in self.edges(state)]
        lines = aligned(["from", "when", "to"], rows)
        accepting = ", ".join(map(str, sorted(self.accepting))) or "none"
        return "\n".join([*lines, "", f"accepting: {accepting}"])

    def draw(self) -> Picture:
        """Draw the automaton; accepting states have a double border."""
        picture: Picture = drawn("machine_picture:draw_dfa", self)
        return picture

    def _repr_svg_(self) -> str:
        return self.draw().svg()

    def __repr__(self) -> str:
        names = ", ".join(self.propositions[:8]) + ", ..." * (len(self.propositions) > 8)
        states = f"{len(self.states)} state{'s' * (len(self.states) != 1)}"
        return f"DFA({states} over {names or 'no propositions'})"

    def _named(self) -> tuple[tuple[str, ...], Acceptor]:
        return self.propositions, self.acceptor

    def _paired(self, other: DFA) -> tuple[tuple[str, ...], Acceptor, Acceptor, Product]:
        """The union of the propositions, both automata over it, and their product."""
        if not isinstance(other, DFA):
            raise ParameterError(
                f"{shown(other)} is not a DFA; needed: one, such as compile_formula('F coffee') or "
                "task.to_dfa()"
            )
        names, (left, right) = align([self._named(), other._named()])
        return names, left, right, Product([left.transitions, right.transitions])


def _labels(word: Word | None, names: Sequence[str]) -> list[Label] | None:
    if word is None:
        return None
    return [frozenset(names[proposition] for proposition in label) for label in word]
