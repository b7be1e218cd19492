"""Transitions of the machine to learn from: the observed one, or counterfactual ones.

The machine reads a label and does not act on the world. So an agent that knows the machine can tell
from one real step what the same step would have done in every other machine state: counterfactual
experience. The RM variants of the agents are the plain ones with this in place of the observation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from qrmax.errors import ParameterError
from qrmax.logic.guards import Label
from qrmax.machines.machine_table import MachineTable
from qrmax.machines.reward_machine import RewardMachine
from qrmax.problems.simulator import Step

REAL, COUNTERFACTUAL = COUNTS = ("real", "counterfactual")
"""The samples that count towards a threshold: those of real steps, or of counterfactual ones."""


class TaskStep(NamedTuple):
    """A transition of the machine, observed or counterfactual."""

    q: int  # from
    q_next: int  # to
    r_task: float
    terminated: bool  # the episode is over in (s', q_next)


class Experience(Protocol):
    """The machine's transitions that a step from machine state q yields."""

    knows_machine: bool

    def __call__(self, q: int, step: Step) -> Sequence[TaskStep]:
        """The transitions of the machine to learn from."""
        ...


class Observed:
    """The observed transition alone: for agents that do not know the machine."""

    knows_machine = False

    def __call__(self, q: int, step: Step) -> Sequence[TaskStep]:
        """The observed transition."""
        return (TaskStep(q, step.q, step.r_task, step.terminated),)


class Task(Protocol):
    """A reward machine over numbered labels, such as that of a `Problem`."""

    machine: RewardMachine
    table: MachineTable  # over the labels that there are; it may grow

    @property
    def labels(self) -> Sequence[Label]:
        """The labels, in the order of the table."""
        ...


class Counterfactual:
    """Counterfactual transitions from every machine state: for agents that know the machine.

    Nothing is learned from its terminal states, in which no step is ever taken.
    """

    knows_machine = True

    def __init__(self, task: Task) -> None:
        if task.machine.is_stochastic:
            raise ParameterError(
                f"task {task.machine.name!r} is a stochastic reward machine, and agents that know "
                "the machine need a deterministic one; use 'qrmax' with t_task above 1, which "
                "learns it"
            )
        self.task = task
        self.live = np.flatnonzero(~task.table.terminal).tolist()
        self._table = task.table  # the one that the cache is of:
        self._steps: dict[tuple[int, bool], Sequence[TaskStep]] = {}  # label, world_ended

    def __call__(self, q: int, step: Step) -> Sequence[TaskStep]:  # noqa: ARG002 (it is any q)
        """The transitions from all machine states that are not terminal, in order."""
        table = self.task.table
        if table is not self._table:  # it has grown, or labels are numbered anew
            self._table = table
            self._steps.clear()
        case = (step.label, step.world_ended)
        steps = self._steps.get(case)
        if steps is None:
            steps = self._steps[case] = _steps_of(table, self.live, *case)
        return steps


class Twice:
    """Each real step as it happened, and once more among the counterfactual ones."""

    knows_machine = True

    def __init__(self, counterfactual: Experience) -> None:
        self.counterfactual = counterfactual
        self.observed = Observed()

    def __call__(self, q: int, step: Step) -> Sequence[TaskStep]:
        """The observed transition, then the counterfactual ones from every machine state."""
        return [*self.observed(q, step), *self.counterfactual(q, step)]


def _steps_of(
    table: MachineTable, live: Sequence[int], label: int, world_ended: bool
) -> Sequence[TaskStep]:
    nexts = table.next_state[:, label, 0].tolist()
    rewards = table.reward[:, label, 0].tolist()
    return tuple(
        TaskStep(p, nexts[p], rewards[p], bool(world_ended or table.terminal[nexts[p]]))
        for p in live
    )
