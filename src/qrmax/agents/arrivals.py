"""Counting the machine's transitions by the state reached, or by its label.

    by state    tau_Q, rho_Q, n_Q  by (q, s')
    by label    tau_Q, rho_Q, n_Q  by (q, L(s'))

The machine reads labels, so that samples of all states with one label are samples of the same
transition. By label, an estimate is entered for every state of that label that was visited: L(s')
is known once s' was entered, and at once all that was learned of its label holds there. An episode
that ends although the world has not ended it has reached a terminal state of the machine, in which
every episode ends, wherever it is.

Assumes, if counts are by label: labels are functions of the state, as those of a `Problem` are. A
state that shows a second label is refused with an `AgentError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qrmax.empirical.counts import Counter, Estimate
from qrmax.errors import AgentError, ModelError
from qrmax.planning.arrays import BoolArray, FloatArray, IntArray, TaskModel

STATE, LABEL = TASK_BY = ("state", "label")
"""The keys of the machine's counters: states reached, or their labels."""

NOT_VISITED = -1


class TaskPlanner(Protocol):
    """The part of a planner that has the machine."""

    task: TaskModel

    def learn_task(
        self, q: int, s: int, next_state: Sequence[int] | IntArray, prob: FloatArray, reward: float
    ) -> None:
        """Enter or revise the machine's transition and mean reward in q on arriving in s."""

    def finish(self, s: int, q: int) -> bool:
        """Mark (s, q) as terminal; returns whether it was not marked before."""


class Arrivals:
    """The places of states in the counters of the machine: their own, or those of their labels.

    Args:
        states: the number of states.
        task_states: the number of machine states.
        threshold: the samples after which a transition of the machine is known.
        by_label: whether counts are by (q, label), instead of (q, s').
    """

    def __init__(self, states: int, task_states: int, *, threshold: int, by_label: bool) -> None:
        self.by_label = by_label
        columns = 1 if by_label else states
        self.task = Counter(task_states, columns, threshold=threshold, outcomes=1)
        self.place: IntArray = np.arange(states, dtype=np.int32)  # [s'], the column of the counters
        if by_label:
            self.place[:] = NOT_VISITED
        self.ends: BoolArray = np.zeros(task_states, dtype=bool)  # [q], every episode

    def grow(self, states: int) -> None:
        """Grow to more states, whose counts are their own."""
        self.place = np.arange(states, dtype=np.int32)
        self.task.grow(len(self.ends), states)

    def enter(self, planner: TaskPlanner, s: int, label: int) -> bool:
        """Note the label of a state that was entered; returns whether to replan."""
        if not self.by_label or self.place[s] == label:
            return False
        if self.place[s] != NOT_VISITED:
            raise AgentError(
                f"state {s} was entered with label number {label} and, before that, with number "
                f"{self.place[s]}: task_by = 'label' needs labels that are functions of the state; "
                "give task_by = 'state', or labels of transitions (labels_steps=True)"
            )
        columns = self.task.counts.n.shape[1]
        if label >= columns:
            self.task.grow(len(self.ends), label + 1)
        alike = np.flatnonzero(self.place == label)
        self.place[s] = label
        for q in np.flatnonzero(self.ends).tolist():
            planner.finish(s, q)
        if alike.size:
            _, next_state, prob, reward = planner.task
            other = alike[0]
            for q in np.flatnonzero(np.isfinite(reward[:, other])).tolist():
                seen = prob[q, other] > 0.0
                planner.learn_task(
                    q, s, next_state[q, other, seen], prob[q, other, seen], float(reward[q, other])
                )
        return True

    def learn(self, planner: TaskPlanner, q: int, s: int) -> None:
        """Plan with the estimate of the machine in q on arriving in s, or in a state alike."""
        estimate: Estimate = self.task.estimate(q, int(self.place[s]))
        alike = np.flatnonzero(self.place == self.place[s]).tolist() if self.by_label else (s,)
        for each in alike:
            planner.learn_task(q, each, *estimate)

    def finish(self, planner: TaskPlanner, s: int, q: int, *, world_ended: bool) -> bool:
        """Note that an episode has ended in (s, q); returns whether to replan."""
        if not planner.finish(s, q):
            return False
        if self.by_label and not world_ended:
            self.ends[q] = True
            for each in np.flatnonzero(self.place != NOT_VISITED).tolist():
                planner.finish(each, q)
        return True

    # --- saving

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The labels of states, if counts are by label; the counts are saved by the agent."""
        if not self.by_label:
            return {}
        return {"arrivals.place": self.place.copy(), "arrivals.ends": self.ends.copy()}

    def make_room_for(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Grow to as many labels as in a snapshot."""
        n = arrays.get("task.n")
        if self.by_label and n is not None and n.ndim == 2:
            self.task.grow(len(self.ends), max(n.shape[1], self.task.counts.n.shape[1]))

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Resume from a snapshot, before the counts; compiled code does not check indices."""
        if not self.by_label:
            return
        place, ends, n = arrays["arrivals.place"], arrays["arrivals.ends"], arrays["task.n"]
        for name, new, old in (("place", place, self.place), ("ends", ends, self.ends)):
            if new.shape != old.shape or new.dtype != old.dtype:
                raise ModelError(f"arrivals.{name}: not {old.dtype} of shape {old.shape}")
        columns = n.shape[1] if n.ndim == 2 else 0
        if not ((place >= NOT_VISITED) & (place < columns)).all():
            raise ModelError(f"arrivals.place: not one of {columns} labels, nor unknown")
        if not np.isin(np.flatnonzero(n.any(axis=0)), place).all():
            raise ModelError("arrivals.place: samples of a label that no state has shown")
        self.make_room_for(arrays)
        self.place, self.ends = place.copy(), ends.copy()
