"""Whether two reward machines do the same, and if not, the shortest labels that show it.

Two states are alike if no label tells them apart: each label leads, with the same probabilities, to
the same rewards and to states that are alike. States that end an episode are alike if both are
successes, or both failures. (For machines without chance this is to say that all sequences of
labels are paid alike and end alike. For random machines it is more than that: who sees the
machine's state can then learn as much, and as early, from one as from the other.)

States are told apart in rounds: those that differ after one label, then those that differ after
two, and so on, as in Moore's minimisation of automata. The round in which the initial states
come apart is the length of the shortest labels that show it. Labels are not enumerated: what a
state does for all of them is one decision diagram, and two states do the same in a round if their
diagrams are equal when every outcome is replaced by its reward and the class that it leads to.
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

_DIGITS = 9  # probabilities that agree in so many are the same

_Classes = Sequence[int]
"""[node]: states with the same number are not told apart yet."""

_Pair = tuple[int, int]
"""A node of each machine."""


class Counterexample(NamedTuple):
    """Labels after which two machines do not do the same.

    `trace` is read from the initial states. Before its last label the machines can be in `states`,
    where that label does what `outcomes` say: the first of each is that of the first machine. It is
    the shortest there is, unless what differs is how likely something is: it ends there then.
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
    """What a label does in a state of one of the machines."""

    side: int
    outcomes: tuple[Outcome, ...]


def counterexample(one: RewardMachine, other: RewardMachine) -> Counterexample | None:
    """The shortest labels that tell the machines apart, or None where there are none."""
    return _Comparison(one, other).counterexample()


class _Comparison:
    """The states of two machines, told apart round by round."""

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
        self.roots = self._roots()  # [node]: what labels do there
        self.order = self._branches_first()

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
            root = FALSE  # which nothing comes to: the last case always holds
            for guard, outcomes in reversed(self.machines[side].cases(state)):
                result = _Result(side, outcomes)
                if result not in leaves:
                    leaves[result] = diagrams.leaf(len(self.results))
                    self.results.append(result)
                root = diagrams.ite(diagram_of(guard, diagrams, numbers), leaves[result], root)
            roots.append(root)
        return roots

    def _branches_first(self) -> list[int]:
        """All that the roots lead to; in diagrams, branches have smaller numbers."""
        found, ahead = set[int](), [*self.roots]
        while ahead:
            place = ahead.pop()
            if place not in found:
                found.add(place)
                if self.diagrams.var[place] != LEAF:
                    ahead += (self.diagrams.low[place], self.diagrams.high[place])
        return sorted(found)

    def _end(self, node: _Node) -> int:
        """0 where the episode goes on, else how it ended."""
        machine = self.machines[node.side]
        return (node.state in machine.success) + 2 * (node.state in machine.failure)

    def _refine(self, classes: _Classes) -> _Classes:
        """The states that one more label tells apart, apart."""
        asks, low, high = self.diagrams.var, self.diagrams.low, self.diagrams.high
        views: dict[Hashable, int] = {}
        view_of: dict[int, int] = {}  # of places in diagrams
        for place in self.order:
            what: Hashable
            if asks[place] == LEAF:
                what = frozenset(self._masses(low[place], classes).items())
            elif view_of[low[place]] == view_of[high[place]]:
                view_of[place] = view_of[low[place]]
                continue
            else:
                what = (asks[place], view_of[low[place]], view_of[high[place]])
            view_of[place] = views.setdefault(what, len(views))
        finer: dict[tuple[int, int], int] = {}
        pairs = ((known, view_of[root]) for known, root in zip(classes, self.roots, strict=True))
        return array("l", [finer.setdefault(pair, len(finer)) for pair in pairs])

    def _masses(self, leaf: int, classes: _Classes) -> dict[tuple[float, int], float]:
        """How likely each reward is, together with each class of states that follows."""
        side, outcomes = self.results[leaf]
        masses: defaultdict[tuple[float, int], float] = defaultdict(float)
        for chance, state, reward in outcomes:
            masses[reward, classes[self.number[_Node(side, state)]]] += chance
        return {key: round(mass, _DIGITS) for key, mass in masses.items()}

    def _explain(self, rounds: list[_Classes], pair: _Pair) -> Counterexample:
        """Follow the labels that tell two states apart, to where it shows."""
        trace: list[Label] = []
        while True:
            apart = next(k for k, classes in enumerate(rounds) if len({*_at(pair, classes)}) > 1)
            label, leaves = self._telling(pair, rounds[apart - 1])
            trace.append(label)
            if apart == 1 or self._differ_by_chance(leaves, rounds[apart - 1]):
                left, right = pair
                return Counterexample(
                    trace=tuple(trace),
                    states=(self.nodes[left].state, self.nodes[right].state),
                    outcomes=(self.results[leaves[0]].outcomes, self.results[leaves[1]].outcomes),
                    machines=(self.machines[0].name, self.machines[1].name),
                )
            pair = self._next_pair(leaves, rounds[apart - 1])

    def _telling(self, pair: _Pair, classes: _Classes) -> tuple[Label, _Pair]:
        """The smallest label that does not do the same in both states, and what it does."""
        diagrams, nothing = self.diagrams, tuple[int, ...]()
        ahead = deque([(_at(pair, self.roots), nothing)])  # places, propositions true on the way
        seen = set[_Pair]()
        while True:
            places, true = ahead.popleft()
            if places in seen:
                continue
            seen.add(places)
            asked = min(_at(places, diagrams.var))
            if asked != LEAF:
                low, high = zip(*(diagrams.branches(p, asked) for p in places), strict=True)
                ahead.appendleft((low, true))
                ahead.append((high, (*true, asked)))
                continue
            left, right = leaves = _at(places, diagrams.low)
            if self._masses(left, classes) != self._masses(right, classes):
                return frozenset(self.names[number] for number in true), leaves

    def _differ_by_chance(self, leaves: _Pair, classes: _Classes) -> bool:
        """Whether both lead to the same, only not as often: there is nothing further to follow."""
        left, right = (self._masses(leaf, classes).keys() for leaf in leaves)
        return left == right

    def _next_pair(self, leaves: _Pair, classes: _Classes) -> _Pair:
        """Where both can be after a label, paid alike and yet not alike."""
        masses = [self._masses(leaf, classes) for leaf in leaves]
        likelier: list[list[tuple[float, int]]] = []  # on this side than on the other
        for side, outcomes in (self.results[leaf] for leaf in leaves):
            ahead = [(o.reward, self.number[_Node(side, o.state)]) for o in outcomes]
            likelier.append([
                (reward, node)
                for reward, node in ahead
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
