"""A reward machine over numbered labels: what planners and learners read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.logic.guards import Label

if TYPE_CHECKING:
    from qrmax.machines.reward_machine import RewardMachine

BY_CHANCE = -1
"""No state to start in, since reading the label of the start would be random."""


class MachineTable(NamedTuple):
    """What every label does in every state.

    Outcome j of reading a label in q leads to `next_state`, with probability `prob`, and pays
    `reward`. An event with fewer outcomes than others is padded at the end: probability 0, reward
    0, stay in q. A certain machine has one outcome everywhere, of probability exactly 1.
    """

    next_state: NDArray[np.int32]  # [q, label, j]
    prob: NDArray[np.float64]  # [q, label, j]
    reward: NDArray[np.float64]  # [q, label, j]
    terminal: NDArray[np.bool_]  # [q]
    success: NDArray[np.bool_]  # [q]
    initial: NDArray[np.int32]  # [label]: the state after a reset into a world state so labelled,
    # or BY_CHANCE


def table_of(machine: RewardMachine, labels: Sequence[Label]) -> MachineTable:
    """The machine over these labels, numbered in this order."""
    states = machine.states
    shape = (len(states), len(labels), machine.most_outcomes)
    next_state = np.empty(shape, dtype=np.int32)
    next_state[:] = np.arange(len(states))[:, None, None]
    prob, reward = np.zeros(shape), np.zeros(shape)
    for q, state in enumerate(states):
        for number, label in enumerate(labels):
            for j, outcome in enumerate(machine.outcomes(state, label)):
                next_state[q, number, j] = machine.index(outcome.state)
                prob[q, number, j] = outcome.probability
                reward[q, number, j] = outcome.reward
    first = [machine.first_state(label) for label in labels]
    return MachineTable(
        next_state=next_state,
        prob=prob,
        reward=reward,
        terminal=np.array([state in machine.terminal for state in states]),
        success=np.array([state in machine.success for state in states]),
        initial=np.array(
            [BY_CHANCE if state is None else machine.index(state) for state in first],
            dtype=np.int32,
        ),
    )
