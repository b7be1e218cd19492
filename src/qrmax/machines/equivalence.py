"""Equivalence of reward machines (probabilistic bisimulation), with shortest counterexamples.

Two states are equivalent if each label leads, with the same probabilities, to the same rewards and
to equivalent states. Terminal states are equivalent if both are successes, or both failures. (For
deterministic machines this means that all traces have the same rewards and end alike. For
stochastic machines it is stronger: an observer of the machine's state learns as much, and as early,
from one as from the other.)

States are separated in rounds: those that differ after one label, then those that differ after two,
and so on, as in Moore's minimisation algorithm. The round in which the initial states are separated
is the length of the shortest counterexample. Labels are not enumerated: the outcomes of a state
under all labels are one decision diagram, and two states agree in a round if their diagrams are
equal once every outcome is replaced by its reward and the class of its state.
"""

from __future__ import annotations

from array import array
from collections import defaultdict, deque
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from qrmax.logic.bdd import FALSE, LEAF, Diagrams
from qrmax.logic.guards import Label, braced
from qrmax.logic.isop import diagram_of
from qrmax.machines.edges import Outcome

if TYPE_CHECKING:
    from qrmax.machines.reward_machine import RewardMachine

_DIGITS = 9  # to which probabilities are compared

_Classes = Sequence[int]
"""[node]: its class; states of one class are not separated yet."""

_Pair = tuple[int, int]
"""A node of each machine."""


class Counterexample(NamedTuple):
    """A trace that shows that two machines are not equivalent.

    `trace` is read from the initial states. Before its last label the machines can be in `states`,
    where that label has the `outcomes`: of each pair, the first belongs to the first machine. It is
    a shortest one, unless the difference is one of probabilities alone: it ends there then.
    """

    trace: tuple[Label, ...]
    states: tuple[str, str]
    outcomes: tuple[tuple[Outcome, ...], tuple[Outcome, ...]]
    machines: tuple[str, str]  # their names

    def __str__(self) -> str:
        *before, last = map(braced, self.trace)
        lines = [f"after {', '.join(before)}" if before else "at the start"]
        lines[0] += f", reading {last}:"
        width = max(map(len, self.machines))
        for name, state, outcomes in zip(self.machines, self.states, self.outcomes, strict=True):
            does = "; ".join(_shown(outcome) for outcome in outcomes)
            lines.append(f"  {name.ljust(width)}  {state!r} -> {does}")
        return "\n".join(lines)


class _Node(NamedTuple):
    """A state of the first (0) or the second (1) of two machines."""

    side: int
    state: str


class _Result(NamedTuple):
    """The outcomes of a label in a state of one of the machines."""

    side: int
    outcomes: tuple[Outcome, ...]


def counterexample(one: RewardMachine, other: RewardMachine) -> Counterexample | None:
    """A shortest trace that separates the machines, or None if they are equivalent."""
    return _Comparison(one, other).counterexample()


class _Comparison:
    """Partition refinement on the states of two machines."""

    def __init__(self, one: RewardMachine, other: RewardMachine) -> None:
        self.machines = (one, other)
        self.nodes = [
            _Node(side, state)
            for side, machine in enumerate(self.machines)
            for state in sorted(machine.reachable())
        ]
        self.number = {node: number for number, node in enumerate(self.nodes)}
        edges = (*one.edges, *other.edges)
        self.names = list(dict.fromkeys(p for e in edges for p in sorted(e.guard.propositions)))
        self.diagrams = Diagrams()
        self.results: list[_Result] = []  # [value of a leaf]
        self.roots = self._roots()  # [node]: the diagram of its outcomes
        self.order = self._children_first()

    def counterexample(self) -> Counterexample | None:
        first = self.number[_Node(0, self.machines[0].initial)]
        second = self.number[_Node(1, self.machines[1].initial)]
        rounds: list[_Classes] = [[self._end(node) for node in self.nodes]]
        while rounds[-1][first] == rounds[-1][second]:
            finer = self._refine(rounds[-1])
            if len({*finer}) == len({*rounds[-1]}):
                return None
            rounds.append(finer)
        return self._explain(rounds, (first, second))

    def _roots(self) -> list[int]:
        diagrams = self.diagrams
        numbers = {name: number for number, name in enumerate(self.names)}
        leaves: dict[_Result, int] = {}
        roots = []
        for side, state in self.nodes:
            root = FALSE  # never reached: the last case always holds
            for guard, outcomes in reversed(self.machines[side].cases(state)):
                result = _Result(side, outcomes)
                if result not in leaves:
                    leaves[result] = diagrams.leaf(len(self.results))
                    self.results.append(result)
                root = diagrams.ite(diagram_of(guard, diagrams, numbers), leaves[result], root)
            roots.append(root)
        return roots

    def _children_first(self) -> list[int]:
        """The diagram nodes below the roots, children first: they have smaller numbers."""
        found, ahead = set[int](), [*self.roots]
        while ahead:
            place = ahead.pop()
            if place not in found:
                found.add(place)
                if self.diagrams.var[place] != LEAF:
                    ahead += (self.diagrams.low[place], self.diagrams.high[place])
        return sorted(found)

    def _end(self, node: _Node) -> int:
        """0 in a state that is not terminal, 1 in a success, 2 in a failure."""
        machine = self.machines[node.side]
        return (node.state in machine.success) + 2 * (node.state in machine.failure)

    def _refine(self, classes: _Classes) -> _Classes:
        """Split classes by what one more label separates."""
        var, low, high = self.diagrams.var, self.diagrams.low, self.diagrams.high
        signatures: dict[Hashable, int] = {}
        signature_of: dict[int, int] = {}  # [diagram node]
        for place in self.order:
            what: Hashable
            if var[place] == LEAF:
                what = frozenset(self._masses(low[place], classes).items())
            elif signature_of[low[place]] == signature_of[high[place]]:
                signature_of[place] = signature_of[low[place]]
                continue
            else:
                what = (var[place], signature_of[low[place]], signature_of[high[place]])
            signature_of[place] = signatures.setdefault(what, len(signatures))
        finer: dict[tuple[int, int], int] = {}
        pairs = (
            (known, signature_of[root]) for known, root in zip(classes, self.roots, strict=True)
        )
        return array("l", [finer.setdefault(pair, len(finer)) for pair in pairs])

    def _masses(self, leaf: int, classes: _Classes) -> dict[tuple[float, int], float]:
        """The probability of each pair of reward and class of the next state."""
        side, outcomes = self.results[leaf]
        masses: defaultdict[tuple[float, int], float] = defaultdict(float)
        for chance, state, reward in outcomes:
            masses[reward, classes[self.number[_Node(side, state)]]] += chance
        return {key: round(mass, _DIGITS) for key, mass in masses.items()}

    def _explain(self, rounds: list[_Classes], pair: _Pair) -> Counterexample:
        """Follow the labels that separate two states until their outcomes differ."""
        trace: list[Label] = []
        while True:
            apart = next(k for k, classes in enumerate(rounds) if len({*_at(pair, classes)}) > 1)
            label, leaves = self._separating_label(pair, rounds[apart - 1])
            trace.append(label)
            if apart == 1 or self._differ_in_probability(leaves, rounds[apart - 1]):
                left, right = pair
                return Counterexample(
                    trace=tuple(trace),
                    states=(self.nodes[left].state, self.nodes[right].state),
                    outcomes=(self.results[leaves[0]].outcomes, self.results[leaves[1]].outcomes),
                    machines=(self.machines[0].name, self.machines[1].name),
                )
            pair = self._next_pair(leaves, rounds[apart - 1])

    def _separating_label(self, pair: _Pair, classes: _Classes) -> tuple[Label, _Pair]:
        """The smallest label whose outcomes differ in both states, and these outcomes."""
        diagrams, nothing = self.diagrams, tuple[int, ...]()
        ahead = deque([(_at(pair, self.roots), nothing)])  # nodes, propositions true so far
        seen = set[_Pair]()
        while True:
            places, true = ahead.popleft()
            if places in seen:
                continue
            seen.add(places)
            variable = min(_at(places, diagrams.var))
            if variable != LEAF:
                low, high = zip(*(diagrams.branches(p, variable) for p in places), strict=True)
                ahead.appendleft((low, true))
                ahead.append((high, (*true, variable)))
                continue
            left, right = leaves = _at(places, diagrams.low)
            if self._masses(left, classes) != self._masses(right, classes):
                return frozenset(self.names[number] for number in true), leaves

    def _differ_in_probability(self, leaves: _Pair, classes: _Classes) -> bool:
        """Whether both have the same outcomes with other probabilities: nothing more to follow."""
        left, right = (self._masses(leaf, classes).keys() for leaf in leaves)
        return left == right

    def _next_pair(self, leaves: _Pair, classes: _Classes) -> _Pair:
        """States of both after a label with the same reward that are not equivalent."""
        masses = [self._masses(leaf, classes) for leaf in leaves]
        likelier: list[list[tuple[float, int]]] = []  # on this side than on the other
        for side, outcomes in (self.results[leaf] for leaf in leaves):
            successors = [(o.reward, self.number[_Node(side, o.state)]) for o in outcomes]
            likelier.append([
                (reward, node)
                for reward, node in successors
                if masses[side].get((reward, classes[node]), 0.0)
                > masses[1 - side].get((reward, classes[node]), 0.0)
            ])  # fmt: skip
        return next(
            (left, right)
            for reward, left in likelier[0]
            for other, right in likelier[1]
            if reward == other and self._end(self.nodes[left]) == self._end(self.nodes[right])
        )


def _at(pair: _Pair, values: Sequence[int]) -> _Pair:
    return values[pair[0]], values[pair[1]]


def _shown(outcome: Outcome) -> str:
    chance = f" with probability {outcome.probability:g}" if outcome.probability < 1.0 else ""
    return f"{outcome.state!r}, reward {outcome.reward:g}{chance}"
