"""A reward machine over labels as they turn up, each of them worked out once.

An environment has a handful of labels and is stepped millions of times. So guards are evaluated
when a label is read for the first time, for all machine states; from then on it is a lookup.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from qrmax.logic.guards import Label, as_label
from qrmax.machines.reward_machine import RewardMachine
from qrmax.seeding import Chance

PLAIN = frozenset({set, frozenset, tuple, list})
"""The usual types of labels: collections whose elements are the names."""


class Move(NamedTuple):
    """A transition of the machine."""

    q: int  # the machine state reached
    reward: float
    terminal: bool  # it ends the episode
    success: bool


class Reading(NamedTuple):
    """A label, and the transition it makes from every machine state."""

    label: Label
    names: tuple[str, ...]  # in alphabetical order
    first: int | None  # the machine state after a reset into it; None if that is random
    moves: tuple[Move | None, ...]  # [q]; None if the machine moves at random


class LabelReader:
    """Reads labels for a machine, and remembers what each does.

    >>> from qrmax.machines.reward_machine import Edge
    >>> task = RewardMachine([Edge("go", "goal", "there", 1)], initial="go", success=["there"])
    >>> reader = LabelReader(task)
    >>> reader.read({"goal"}).moves[0]
    Move(q=1, reward=1.0, terminal=True, success=True)
    """

    def __init__(self, machine: RewardMachine) -> None:
        self.machine = machine
        self.live = [q for q, name in enumerate(machine.states) if name not in machine.terminal]
        self._known: dict[Label, Reading] = {}

    def read(self, given: Iterable[str], where: str = "a label") -> Reading:
        """Read a label; `where` tells an error where it came from."""
        if type(given) in PLAIN:  # a text or a mapping is a collection too, of something else
            try:
                return self._known[frozenset(given)]
            except (KeyError, TypeError):
                pass
        label = as_label(given, where)
        if label not in self._known:
            self._known[label] = self._work_out(label)
        return self._known[label]

    def first(self, reading: Reading) -> int:
        """The machine state at the start of an episode whose first observation has this label."""
        if reading.first is not None:
            return reading.first
        return self.machine.index(self.machine.reset(reading.label))  # says what is wrong

    def draw(self, q: int, reading: Reading, rng: Chance) -> Move:
        """Draw a transition from machine state q; one random number where there is a choice."""
        state, reward = self.machine.step(self.machine.states[q], reading.label, rng)
        return self._move(state, reward)

    def _work_out(self, label: Label) -> Reading:
        moves: list[Move | None] = []
        for state in self.machine.states:
            outcomes = self.machine.outcomes(state, label)
            certain = len(outcomes) == 1
            moves.append(self._move(outcomes[0].state, outcomes[0].reward) if certain else None)
        first = self.machine.first_state(label)
        start = None if first is None else self.machine.index(first)
        return Reading(label, tuple(sorted(label)), start, tuple(moves))

    def _move(self, state: str, reward: float) -> Move:
        machine = self.machine
        return Move(
            machine.index(state), reward, state in machine.terminal, state in machine.success
        )
