"""The transition and reward tables of a reward machine over numbered labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.logic.guards import Label

if TYPE_CHECKING:
    from qrmax.machines.reward_machine import RewardMachine

RANDOM_START = -1
"""Marks a label whose first transition is stochastic: no definite start state."""


class MachineTable(NamedTuple):
    """The outcomes of every label in every state.

    Outcome j of reading a label in q leads to `next_state` with probability `prob` and gives
    `reward`. Rows are padded to the same number of outcomes: probability 0, reward 0, stay in q. A
    deterministic machine has one outcome everywhere, of probability exactly 1.
    """

    next_state: NDArray[np.int32]  # [q, label, j]
    prob: NDArray[np.float64]  # [q, label, j]
    reward: NDArray[np.float64]  # [q, label, j]
    terminal: NDArray[np.bool_]  # [q]
    success: NDArray[np.bool_]  # [q]
    initial: NDArray[np.int32]  # [label]: the state after a reset to a state with this label,
    # or RANDOM_START


def table_of(machine: RewardMachine, labels: Sequence[Label]) -> MachineTable:
    """Tabulate a machine over these labels, numbered in this order."""
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
            [RANDOM_START if state is None else machine.index(state) for state in first],
            dtype=np.int32,
        ),
    )
