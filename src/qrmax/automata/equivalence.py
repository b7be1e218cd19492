"""Whether two reward machines do the same, and if not, the shortest labels that show it.

Two states are alike if no label tells them apart: each label leads, with the same probabilities, to
the same rewards and to states that are alike. States that end an episode are alike if both are
successes, or both failures. (For machines without chance this is to say that all sequences of
labels are paid alike and end alike. For random machines it is more than that: who sees the
machine's state can then learn as much, and as early, from one as from the other.)

States are told apart in rounds: those that differ after one label, then those that differ after
two, and so on, as in Moore's minimisation of automata. The round in which the initial states
come apart is the length of the shortest labels that show it. Labels are not enumerated: two states
are compared by the pairs of their events, and a label is looked for where these differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from qrmax.automata.edges import Event, Outcome
from qrmax.automata.guards import Guard, Label, braced

if TYPE_CHECKING:
    from qrmax.automata.reward_machine import RewardMachine

_DIGITS = 9  # probabilities that agree in so many are the same

_Classes = Mapping["_Node", int]


class Counterexample(NamedTuple):
    """Labels after which two machines do not do the same.

    `trace` is read from the initial states. Before its last label the machines can be in `states`,
    where that label does what `outcomes` say: the first of each is that of the first machine.
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
    """A state of one of the two machines."""

    machine: RewardMachine
    state: str

    def __hash__(self) -> int:
        return hash((id(self.machine), self.state))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Node) and self.machine is other.machine and self.state == other.state
        )

    @property
    def ends(self) -> int:
        """0 where the episode goes on, else how it ended."""
        return (self.state in self.machine.success) + 2 * (self.state in self.machine.failure)


def counterexample(one: RewardMachine, other: RewardMachine) -> Counterexample | None:
    """The shortest labels that tell the machines apart, or None where there are none."""
    return _Comparison(one, other).counterexample()


class _Comparison:
    """The states of two machines, told apart round by round."""

    def __init__(self, one: RewardMachine, other: RewardMachine) -> None:
        self.machines = (one, other)
        self.starts = (_Node(one, one.initial), _Node(other, other.initial))
        self.choices = {
            _Node(machine, state): machine.events(state)
            for machine in (one, other)
            for state in machine.reachable()
        }
        self.examples: dict[Guard, Label | None] = {}

    def counterexample(self) -> Counterexample | None:
        first, second = self.starts
        rounds: list[_Classes] = [{node: node.ends for node in self.choices}]
        while rounds[-1][first] == rounds[-1][second]:
            finer = self._refine(rounds[-1])
            if len({*finer.values()}) == len({*rounds[-1].values()}):
                return None
            rounds.append(finer)
        return self._explain(rounds)

    def _refine(self, classes: _Classes) -> _Classes:
        """The states that one more label tells apart, apart."""
        groups: dict[int, list[_Node]] = {}  # a class -> one node of each finer class in it
        finer: dict[_Node, int] = {}
        fresh = count()
        for node, known in classes.items():
            alike = groups.setdefault(known, [])
            for twin in alike:
                if next(self._telling(twin, node, classes), None) is None:
                    finer[node] = finer[twin]
                    break
            else:
                finer[node] = next(fresh)
                alike.append(node)
        return finer

    def _telling(self, one: _Node, other: _Node, classes: _Classes) -> Iterator[Label]:
        """Labels that do not do the same in both, by these classes: one for each difference."""
        for left in self.choices[one]:
            for right in self.choices[other]:
                if self._masses(one, left, classes) == self._masses(other, right, classes):
                    continue
                label = self._example(left.guard, right.guard)
                if label is not None:
                    yield label

    def _example(self, left: Guard, right: Guard) -> Label | None:
        both = Guard((*left.postfix, *right.postfix, "&"))
        if both not in self.examples:
            self.examples[both] = both.example()
        return self.examples[both]

    def _masses(
        self, node: _Node, event: Event, classes: _Classes
    ) -> dict[tuple[float, int], float]:
        """How likely each reward is, together with each class of states that follows."""
        masses: defaultdict[tuple[float, int], float] = defaultdict(float)
        for chance, state, reward in event.outcomes:
            masses[reward, classes[_Node(node.machine, state)]] += chance
        return {key: round(mass, _DIGITS) for key, mass in masses.items()}

    def _explain(self, rounds: list[_Classes]) -> Counterexample:
        """Follow the labels that tell the initial states apart, to where it shows."""
        pair, trace = self.starts, list[Label]()
        while True:
            apart = next(k for k, r in enumerate(rounds) if r[pair[0]] != r[pair[1]])
            label = min(self._telling(*pair, rounds[apart - 1]), key=len)
            trace.append(label)
            events = [self._event(node, label) for node in pair]
            if apart == 1:
                return Counterexample(
                    trace=tuple(trace),
                    states=(pair[0].state, pair[1].state),
                    outcomes=(events[0].outcomes, events[1].outcomes),
                    machines=(self.machines[0].name, self.machines[1].name),
                )
            pair = self._next_pair(pair, events, rounds[apart - 1])

    def _event(self, node: _Node, label: Label) -> Event:
        return next(event for event in self.choices[node] if event.guard.holds(label))

    def _next_pair(
        self, pair: tuple[_Node, _Node], events: list[Event], classes: _Classes
    ) -> tuple[_Node, _Node]:
        """Where both can be after a label, paid alike and yet not alike."""
        ahead = [
            [(outcome.reward, _Node(node.machine, outcome.state)) for outcome in event.outcomes]
            for node, event in zip(pair, events, strict=True)
        ]
        masses = [
            self._masses(node, event, classes) for node, event in zip(pair, events, strict=True)
        ]

        def likelier(side: int, reward: float, node: _Node) -> bool:
            key = (reward, classes[node])
            return masses[side].get(key, 0.0) > masses[1 - side].get(key, 0.0)

        return next(
            (left, right)
            for reward, left in ahead[0]
            for other, right in ahead[1]
            if reward == other and left.ends == right.ends
            if likelier(0, reward, left) and likelier(1, reward, right)
        )


def _shown(outcome: Outcome) -> str:
    chance = f" with probability {outcome.probability:g}" if outcome.probability < 1.0 else ""
    return f"{outcome.state!r}, reward {outcome.reward:g}{chance}"
