"""Incremental planning over confidence sets of transition rows, with pooled successor lists.

At first nothing is known, and every value is `optimistic`. The owner revises rows in place, says
which states they belong to (`revise`), and enters the machine's transitions (`learn_task`);
`replan` propagates the changes. `confidence_sets.py` has the equations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.empirical.growth import padded
from qrmax.empirical.successors import Seen
from qrmax.errors import ModelError
from qrmax.planning import confidence_sets, snapshot_checks
from qrmax.planning.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Rows,
    Rules,
    Tables,
    TaskModel,
)
from qrmax.planning.kernels import NO_EDGE, NOT_LINKED
from qrmax.planning.models import empty_worklist, solving_order

SAVED = ("prob", "reward", "base", "radius", "head", "link")
"""The parts of the rows that counts do not tell."""


class RowPlanner:
    """Optimistic values of a factored model with a confidence set around each transition row.

    Args:
        seen: observed successors and their counts; the lists are shared, not copied.
        n_task_states: the number of machine states.
        gamma: the discount factor.
        optimistic: the value of whatever is unknown, an upper bound on all values.
        tolerance: changes of a value by less, relative to it, are not propagated.
        initial: the value of pairs without a backup; by default `optimistic`.
        ball: the kind of confidence set, one of `confidence_sets.BALLS`.
    """

    def __init__(
        self,
        seen: Seen,
        n_task_states: int,
        *,
        gamma: float,
        optimistic: float,
        tolerance: float,
        initial: float | None = None,
        ball: int | None = confidence_sets.CHI_SQUARE,
    ) -> None:
        n_states = len(seen.listed)
        pairs = (n_task_states, n_states)
        self.rules = Rules(gamma, tolerance, optimistic, signed=False)
        self.rows = Rows(
            succ=seen.outcome,
            listed=seen.listed,
            prob=np.zeros(seen.tau.shape),
            reward=np.zeros(seen.tau.shape),
            base=np.full(seen.n.shape, np.inf),
            radius=np.zeros(seen.n.shape),
            head=np.empty(0, dtype=np.int32),
            link=np.empty(0, dtype=np.int32),
            ball=ball,
        )
        self.task = TaskModel(
            label=np.arange(n_states, dtype=np.int32),
            next_state=np.zeros((*pairs, 1), dtype=np.int32),
            prob=np.zeros((*pairs, 1)),
            reward=np.full(pairs, np.inf),
        )
        self.tables = Tables(
            value=np.full(pairs, optimistic if initial is None else initial),
            gain=np.full(pairs, optimistic),
            done=np.zeros(pairs, dtype=bool),
        )
        self.moves = np.eye(n_task_states, dtype=bool)  # [q, q']: observed machine transitions
        self._order = solving_order(self.moves)
        self._work = empty_worklist(*pairs)
        self._link_all()

    # --- the model

    def list_successors(self, seen: Seen, s: int) -> None:
        """Take note of successors that were added to the list of s."""
        if seen.outcome.shape[1] == self.rows.succ.shape[1]:
            confidence_sets.link_successors(self.rows, s, int(seen.listed[s]) - 1)
        else:
            self.widen(seen)

    def widen(self, seen: Seen) -> None:
        """Take note of longer successor lists."""
        self.rows = self.rows._replace(
            succ=seen.outcome,
            prob=padded(self.rows.prob, *seen.tau.shape),
            reward=padded(self.rows.reward, *seen.tau.shape),
        )
        self._link_all()  # the numbers of edges depend on the width

    def _link_all(self) -> None:
        n_states, width = self.rows.succ.shape
        self.rows = self.rows._replace(
            head=np.full(n_states, NO_EDGE, dtype=np.int32),
            link=np.full(n_states * width, NOT_LINKED, dtype=np.int32),
        )
        for s in np.flatnonzero(self.rows.listed).tolist():
            confidence_sets.link_successors(self.rows, s, 0)

    def revise(self, changed: IntArray) -> None:
        """Queue states whose rows have changed."""
        confidence_sets.rows_changed(self._work, changed)
        if (self.rows.reward[changed] < 0.0).any():
            self.rules = self.rules._replace(signed=True)

    def is_as_estimated(self, q: int, s: int, q_next: int, reward: float) -> bool:
        """Whether only this was ever observed of the machine in q on arriving in s."""
        task = self.task
        alone = task.prob[q, s, 0] == 1.0 and task.next_state[q, s, 0] == q_next
        return bool(alone and task.reward[q, s] == reward)

    def learn_task(
        self, q: int, s: int, next_state: Sequence[int] | IntArray, prob: FloatArray, reward: float
    ) -> None:
        """Enter or revise the machine's transition and mean reward in q on arriving in s."""
        count = len(next_state)
        if count > self.task.prob.shape[2]:
            shape = (*self.task.reward.shape, max(count, 2 * self.task.prob.shape[2]))
            wider = padded(self.task.next_state, *shape), padded(self.task.prob, *shape)
            self.task = self.task._replace(next_state=wider[0], prob=wider[1])
        self.task.next_state[q, s, :count] = next_state
        self.task.prob[q, s] = 0.0
        self.task.prob[q, s, :count] = prob
        self.task.reward[q, s] = reward
        if reward < 0.0:
            self.rules = self.rules._replace(signed=True)
        if not self.moves[q, next_state].all():
            self.moves[q, next_state] = True
            self._order = solving_order(self.moves)
        self._arrive(q, s)

    def finish(self, s: int, q: int) -> bool:
        """Mark (s, q) as terminal, with V = 0; returns whether it was not marked before."""
        if self.tables.done[q, s]:
            return False
        self.tables.done[q, s] = True
        self.tables.value[q, s] = 0.0
        leads = ((self.task.next_state[:, s] == q) & (self.task.prob[:, s] > 0.0)).any(axis=1)
        for p in np.flatnonzero(leads).tolist():
            self._arrive(p, s)
        return True

    def _arrive(self, q: int, s: int) -> None:
        confidence_sets.arrival_changed(
            self.rows, self.task, self.tables, self._work, self.rules, q, s
        )

    # --- values

    def replan(self) -> int:
        """Bring all values up to date; returns the number of backups."""
        return confidence_sets.settle_rows(
            self.rows, self.task, self.tables, self._work, self._order, self.rules
        )

    def adopt(self, task: TaskModel, done: BoolArray, moves: BoolArray) -> None:
        """Plan with the machine and the terminal pairs of another planner.

        What the machine does on arriving somewhere is worth 0 until it is known.
        """
        self.task = task._replace(reward=np.where(np.isinf(task.reward), 0.0, task.reward))
        self.moves, self._order = moves, solving_order(moves)
        self.tables = self.tables._replace(done=done)
        if (task.reward < 0.0).any():
            self.rules = self.rules._replace(signed=True)

    def solve(self) -> None:
        """Plan from the initial values, once all rows are written."""
        confidence_sets.fill_gains(self.task, self.tables, self.rules)
        self.revise(np.flatnonzero(self.rows.listed).astype(np.int32))
        self.replan()

    def q_at(self, s: int, q: int) -> FloatArray:
        """The value of every action in (s, q)."""
        values = np.empty(self.rows.base.shape[1])
        confidence_sets.row_values(self.rows, self.tables.gain, self.rules.optimistic, q, s, values)
        return values

    @property
    def q(self) -> FloatArray:
        """The value of every action, `[s, q, a]`."""
        table = np.empty((*self.tables.value.shape, self.rows.base.shape[1]))
        confidence_sets.all_row_values(self.rows, self.tables, self.rules.optimistic, table)
        return np.moveaxis(table, 0, 1)

    # --- saving

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Rows, machine and values as named arrays (not copies); only after `replan`."""
        return {
            **{name: getattr(self.rows, name) for name in SAVED},
            **{f"task.{name}": array for name, array in self.task._asdict().items()},
            "value": self.tables.value,
            "done": self.tables.done,
            "signed": np.array([self.rules.signed]),
        }

    def restore(self, seen: Seen, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Resume from a snapshot, with the counts that it belongs to."""
        saved: dict[str, Any] = {name: arrays[name].copy() for name in SAVED}
        rows = self.rows._replace(succ=seen.outcome, listed=seen.listed, **saved)
        task = TaskModel(*(arrays[f"task.{name}"].copy() for name in TaskModel._fields))
        value, done = arrays["value"].copy(), arrays["done"].copy()
        self._check_rows(rows, seen)
        self._check_task(task, value, done)
        self.rows, self.task = rows, task
        self.tables = Tables(value, np.empty_like(value), done)
        confidence_sets.fill_gains(self.task, self.tables, self.rules)
        q, s, j = np.nonzero(task.prob)
        self.moves[:] = np.eye(len(self.moves), dtype=bool)
        self.moves[q, task.next_state[q, s, j]] = True
        self._order = solving_order(self.moves)
        signed = bool(arrays["signed"][0] or min(rows.reward.min(), task.reward.min()) < 0.0)
        self.rules = self.rules._replace(signed=signed)

    def _check_rows(self, rows: Rows, seen: Seen) -> None:
        for name in ("prob", "reward"):
            if getattr(rows, name).shape != seen.tau.shape:
                raise ModelError(f"{name}: another shape than the transition counts")
        for name in ("base", "radius"):
            if getattr(rows, name).shape != seen.n.shape:
                raise ModelError(f"{name}: another shape than the visit counts")
        snapshot_checks.check_factor("rows", rows.prob, rows.reward)
        most = snapshot_checks.MAX_VALUE
        if not np.isfinite(rows.reward).all():
            raise ModelError("rows.reward: not a number, or infinite")
        if not ((rows.base == np.inf) | (rows.base >= 0.0) & (rows.base <= most)).all():
            raise ModelError("rows.base: not a bonus")
        beyond = np.arange(rows.prob.shape[2]) >= seen.listed[:, None]
        if (rows.prob.swapaxes(1, 2)[beyond] != 0.0).any():
            raise ModelError("rows.prob: a probability of a successor that is not listed")
        if not ((rows.radius >= 0.0) & (rows.radius <= most)).all():
            raise ModelError("rows.radius: not a radius")
        listed = (np.arange(rows.succ.shape[1]) < seen.listed[:, None]).ravel()
        snapshot_checks.check_links(rows.head, rows.link, len(listed))
        if (listed != (rows.link != NOT_LINKED)).any():
            raise ModelError("link: not exactly the listed successors are linked")
        snapshot_checks.check_chains(rows)

    def _check_task(self, task: TaskModel, value: FloatArray, done: NDArray[Any]) -> None:
        pairs = self.tables.value.shape
        fits = task.next_state.shape == task.prob.shape and task.prob.ndim == 3
        if not fits or task.prob.shape[:2] != pairs or task.reward.shape != pairs:
            raise ModelError(f"task: shapes do not fit {pairs}")
        if not ((task.next_state >= 0) & (task.next_state < pairs[0])).all():
            raise ModelError(f"task.next_state: a machine state is not one of 0 to {pairs[0] - 1}")
        if not np.array_equal(task.label, self.task.label):
            raise ModelError("task.label: the machine is not learned state by state")
        snapshot_checks.check_factor("task", task.prob, task.reward)
        if value.shape != pairs or done.shape != pairs or done.dtype != np.bool_:
            raise ModelError(f"value, done: shapes do not fit {pairs}")
        snapshot_checks.check_values(value, snapshot_checks.MAX_VALUE)
