"""Incremental planning on a learned model: only values that a change can affect are backed up.

At first nothing is known, and every value is `optimistic`. `learn_env` and `learn_task` enter or
revise the estimate of one pair, `set_bonus` and `set_unknown` its exploration bonus and optimistic
value; `replan` propagates the changes, machine layer by machine layer. The values are then those of
a full solve of the current model, up to the tolerance, whether they had to rise or to fall.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.empirical.growth import padded
from qrmax.errors import ModelError, check_range
from qrmax.planning import kernels, snapshot_checks
from qrmax.planning.arrays import (
    EnvModel,
    Exploration,
    FloatArray,
    IntArray,
    Rules,
    Tables,
    TaskModel,
    Worklist,
)
from qrmax.planning.models import empty_worklist, solving_order, unlinked_env
from qrmax.planning.snapshot_checks import MAX_VALUE, ROUNDING
from qrmax.problems.mdp import read_only


class IncrementalPlanner:
    """Optimistic values of a factored model that is learned and revised pair by pair.

    `optimistic` is the value of a backup that needs an unknown estimate: one number, or a table
    `[s, q, a]`. Changes of a value by less than `tolerance`, relative to it, are not propagated.

    >>> planner = IncrementalPlanner(2, 2, 1, gamma=0.5, optimistic=2.0)
    >>> planner.learn_env(0, 0, succ=[1], prob=[1.0], reward=0.0)
    >>> planner.learn_task(0, 1, next_state=[1], prob=[1.0], reward=1.0)
    >>> planner.finish(1, 1)
    True
    >>> planner.replan()  # the number of backups
    2
    >>> planner.value.tolist()
    [[1.0, 2.0], [2.0, 0.0]]
    >>> planner.learn_env(0, 0, succ=[1, 0], prob=[0.5, 0.5], reward=0.0)  # a revised estimate
    >>> planner.learn_task(0, 0, next_state=[0], prob=[1.0], reward=0.0)
    >>> planner.set_bonus(0, 0, 0.25)
    >>> _ = planner.replan()
    >>> round(planner.value[0, 0].item(), 6)  # 0.25 + 0.5 * 1 + 0.5 * 0.5 * itself
    1.0
    """

    def __init__(
        self,
        n_states: int,
        n_task_states: int,
        n_actions: int,
        *,
        gamma: float,
        optimistic: float | FloatArray,
        tolerance: float = 1e-10,
    ) -> None:
        check_range("gamma", gamma, above=0.0, below=1.0)
        largest = float(np.max(optimistic))
        self.rules = Rules(gamma, tolerance, largest, signed=largest < 0.0)
        pairs = (n_task_states, n_states)
        self._hold(unlinked_env(n_states, n_actions, 1))
        self.task = TaskModel(
            label=np.arange(n_states, dtype=np.int32),  # the machine is learned state by state
            next_state=np.zeros((*pairs, 1), dtype=np.int32),
            prob=np.zeros((*pairs, 1)),
            reward=np.full(pairs, np.inf),
        )
        self.tables = Tables(
            value=np.full(pairs, self.rules.optimistic),
            gain=np.full(pairs, np.inf),
            done=np.zeros(pairs, dtype=bool),
        )
        self._work = empty_worklist(n_task_states, n_states)
        self.moves = np.eye(n_task_states, dtype=bool)  # [q, q']: observed machine transitions
        self.exploration: Exploration | None = None  # allocated on first use
        self._without_task = False
        self.derived: dict[tuple[int, int], Any] = {}
        """Results that a user caches by pair (s, q): cleared when action values may change."""
        self._find_order()
        if np.ndim(optimistic):
            unknown = self._explore_by_pair().unknown
            unknown[:] = np.swapaxes(np.asarray(optimistic), 0, 1)
            self.tables.value[:] = unknown.max(axis=2)
            self._update_signed(float(unknown.min()))

    @classmethod
    def without_task(
        cls,
        n_states: int,
        n_actions: int,
        *,
        gamma: float,
        optimistic: float | FloatArray,
        tolerance: float = 1e-10,
    ) -> IncrementalPlanner:
        """A planner for a plain MDP: its machine has one state and no rewards."""
        planner = cls(
            n_states, 1, n_actions, gamma=gamma, optimistic=optimistic, tolerance=tolerance
        )
        planner._without_task = True
        planner._set_trivial_machine(0)
        return planner

    def _hold(self, env: EnvModel) -> None:
        """Keep a model of the world; compiled code reads it through read-only views.

        The arrays of a given world are read-only as well: with another type every kernel would be
        compiled twice.
        """
        self._succ, self._prob = env.succ, env.prob
        self.env = env._replace(succ=read_only(env.succ), prob=read_only(env.prob))

    def _set_trivial_machine(self, first: int) -> None:
        """Let the machine stay, without reward, on arriving in states from number `first` on."""
        self.task.prob[:, first:] = 1.0
        self.task.reward[:, first:] = 0.0
        self.tables.gain[:, first:] = self.rules.gamma * self.tables.value[:, first:]

    @property
    def value(self) -> FloatArray:
        """The optimistic values, `[s, q]`."""
        return self.tables.value.T

    @property
    def q(self) -> FloatArray:
        """The optimistic value of every action, `[s, q, a]`."""
        if self.exploration is None:
            table = kernels.action_values(self.env, self.tables, self.rules.optimistic)
        else:
            env_bonus, bonus, unknown = self.exploration
            table = kernels.action_values(self.env, self.tables, np.inf)
            table = np.where(np.isinf(table), unknown, table + (env_bonus + bonus))
            table[self.tables.done] = 0.0
        return np.moveaxis(table, 0, 1)

    def q_at(self, s: int, q: int) -> FloatArray:
        """The optimistic value of every action in (s, q)."""
        values: FloatArray
        known = (*self.env[:3], self.tables.gain)
        if self.exploration is None:
            values = kernels.action_values_at(*known, self.rules.optimistic, q, s)
        else:
            env_bonus, bonus, unknown = self.exploration
            values = kernels.action_values_at(*known, np.inf, q, s)
            values = np.where(
                np.isinf(values), unknown[q, s], values + (env_bonus[s] + bonus[q, s])
            )
        return values

    def greedy(self) -> IntArray:
        """The greedy policy, `[s, q]`; ties go to the first action."""
        if self.exploration is not None:
            return np.asarray(self.q.argmax(axis=2), dtype=np.int32)
        policy: IntArray = kernels.greedy(self.env, self.tables, self.rules.optimistic)
        return policy.T

    def learn_env(
        self,
        s: int,
        a: int,
        succ: Sequence[int] | IntArray,
        prob: Sequence[float] | FloatArray,
        reward: float,
    ) -> None:
        """Enter or revise the estimated transition and mean reward of (s, a).

        Args:
            s: The state.
            a: The action taken in it.
            succ: The observed successors, in any order and number.
            prob: The estimated probability of each of them.
            reward: The estimated mean reward.
        """
        self.derived.clear()
        n_states, n_actions, width = self.env.succ.shape
        _check_place("state", s, n_states)
        _check_place("action", a, n_actions)
        _check_estimate(f"action {a} in state {s}", succ, prob, reward, n_states)
        count = len(succ)
        if count > width:
            self._widen_env(count)
        if self.env.reward[s, a] != np.inf:
            new = np.asarray(succ, dtype=np.int32)
            kernels.unlink_replaced(*self.env[:2], *self.env[3:], new, s, a)
            self._prob[s, a, count:] = 0.0
        self._succ[s, a, :count] = succ
        self._prob[s, a, :count] = prob
        self.env.reward[s, a] = reward
        self._update_signed(reward)
        self._await_backup(s, a)

    def learn_task(
        self,
        q: int,
        s: int,
        next_state: Sequence[int] | IntArray,
        prob: Sequence[float] | FloatArray,
        reward: float,
    ) -> None:
        """Enter or revise the machine's transition and mean reward in q on arriving in state s.

        Args:
            q: The machine state.
            s: The world state reached.
            next_state: The observed next machine states.
            prob: The estimated probability of each of them.
            reward: The estimated mean reward of the machine.
        """
        self.derived.clear()
        n_q, n_states = self.task.reward.shape
        _check_place("machine state", q, n_q)
        _check_place("state", s, n_states)
        what = f"machine state {q} on arriving in state {s}"
        _check_estimate(what, next_state, prob, reward, n_q)
        count = len(next_state)
        if count > self.task.prob.shape[2]:
            self._widen_task(count)
        self.task.next_state[q, s, :count] = next_state
        self.task.prob[q, s] = 0.0  # erase the previous estimate
        self.task.prob[q, s, :count] = prob
        self.task.reward[q, s] = reward
        self._update_signed(reward)
        for target in next_state:
            if not self.moves[q, target]:
                self.moves[q, target] = True
                self._find_order()
        kernels.task_changed(self.env, self.task, self.tables, self._work, self.rules.gamma, q, s)

    def finish(self, s: int, q: int) -> bool:
        """Mark (s, q) as terminal, with V = 0; returns whether it was not marked before."""
        _check_place("state", s, self.tables.value.shape[1])
        _check_place("machine state", q, self.tables.value.shape[0])
        if self.tables.done[q, s]:
            return False
        self.derived.clear()
        self.tables.done[q, s] = True
        self.tables.value[q, s] = 0.0
        kernels.value_changed(self.env, self.task, self.tables, self._work, self.rules.gamma, q, s)
        return True

    def set_bonus(self, s: int, a: int, bonus: float, *, q: int | None = None) -> None:
        """Add an exploration bonus to the value of (s, q, a) once it is known.

        Args:
            s: The state.
            a: The action.
            bonus: The bonus, which replaces the previous one.
            q: The machine state; None for a bonus in all of them, in addition to the bonus of each.
        """
        env_bonus, by_task_state, _ = self._explore_by_pair()
        table = env_bonus if q is None else by_task_state[q]
        self._set_prospect(table, s, a, bonus, q)

    def set_unknown(self, s: int, a: int, value: float, *, q: int | None = None) -> None:
        """Set the value of (s, q, a) while a part of its model is unknown.

        Args:
            s: The state.
            a: The action.
            value: The optimistic value, in place of the planner's `optimistic`.
            q: The machine state; None for all of them.
        """
        unknown = self._explore_by_pair().unknown
        table = np.moveaxis(unknown, 0, 2) if q is None else unknown[q]
        self._set_prospect(table, s, a, value, q)

    def _set_prospect(
        self, table: FloatArray, s: int, a: int, number: float, q: int | None
    ) -> None:
        """Write a bonus or an optimistic value, and queue the affected pairs for a backup."""
        self.derived.clear()
        n_states, n_actions, _ = self.env.succ.shape
        _check_place("state", s, n_states)
        _check_place("action", a, n_actions)
        if not abs(number) <= MAX_VALUE:
            raise ModelError(f"action {a} in state {s}: {number} is not a bonus or a value")
        table[s, a] = number
        self._update_signed(number)
        self._await_backup(s, a, q)

    def _explore_by_pair(self) -> Exploration:
        """Tables of bonuses and optimistic values, allocated on first use."""
        if self.exploration is None:
            sizes = (*self.tables.value.shape, self.env.succ.shape[1])
            self.exploration = Exploration(
                env_bonus=np.zeros(sizes[1:]),
                bonus=np.zeros(sizes),
                unknown=np.full(sizes, self.rules.optimistic),
            )
        return self.exploration

    def _await_backup(self, s: int, a: int, q: int | None = None) -> None:
        """Link the successors of (s, a), and queue (s, q) for a backup, for one q or for all."""
        if q is None:
            succ, prob, _, head, link = self.env
            pair = s * succ.shape[1] + a
            kernels.env_changed(succ, prob, head, link, self._work, pair, pair + 1)
        elif not self._work.waiting[q, s]:
            ring, first, length, waiting = self._work
            ring[q, (first[q] + length[q]) % ring.shape[1]] = s
            length[q] += 1
            waiting[q, s] = True

    def grow(self, n_states: int) -> None:
        """Make room for more states, all unknown; only after `replan`."""
        self.derived.clear()
        before, env, task, tables = len(self.env.head), self.env, self.task, self.tables
        n_q = len(self.moves)
        pairs = (n_q, n_states)
        self._hold(
            EnvModel(
                succ=padded(env.succ, n_states),
                prob=padded(env.prob, n_states),
                reward=padded(env.reward, n_states, fill=np.inf),
                head=padded(env.head, n_states, fill=kernels.NO_EDGE),
                link=padded(env.link, n_states * env.succ[0].size, fill=kernels.NOT_LINKED),
            )
        )
        self.task = TaskModel(
            label=np.arange(n_states, dtype=np.int32),
            next_state=padded(task.next_state, *pairs),
            prob=padded(task.prob, *pairs),
            reward=padded(task.reward, *pairs, fill=np.inf),
        )
        self.tables = Tables(
            value=padded(tables.value, *pairs, fill=self.rules.optimistic),
            gain=padded(tables.gain, *pairs, fill=np.inf),
            done=padded(tables.done, *pairs),
        )
        if self.exploration is not None:
            env_bonus, bonus, unknown = self.exploration
            self.exploration = Exploration(
                env_bonus=padded(env_bonus, n_states),
                bonus=padded(bonus, *pairs),
                unknown=padded(unknown, *pairs, fill=self.rules.optimistic),
            )
        if self._without_task:
            self._set_trivial_machine(before)
        self._work = empty_worklist(n_q, n_states)

    def replan(self) -> int:
        """Bring all values up to date; returns the number of backups."""
        self.derived.clear()
        backups: int = kernels.settle(
            self.env,
            self.task,
            self.tables,
            self._work,
            self._order,
            self.rules,
            self.exploration,
        )
        return backups

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The state of the planner as named arrays (not copies)."""
        explored = {} if self.exploration is None else self.exploration._asdict()
        return {
            **{f"env.{name}": array for name, array in self.env._asdict().items()},
            **{f"task.{name}": array for name, array in self.task._asdict().items()},
            **{f"tables.{name}": array for name, array in self.tables._asdict().items()},
            **{f"work.{name}": array for name, array in self._work._asdict().items()},
            **{f"exploration.{name}": array for name, array in explored.items()},
            "moves": self.moves,
            "signed": np.array([self.rules.signed]),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Resume from a snapshot."""
        self.derived.clear()
        n_q, n_states = self.tables.value.shape
        snapshot_checks.check_indices(arrays, n_q, n_states)
        env = EnvModel(*(arrays[f"env.{name}"].copy() for name in EnvModel._fields))
        task = TaskModel(*(arrays[f"task.{name}"].copy() for name in TaskModel._fields))
        tables = Tables(*(arrays[f"tables.{name}"].copy() for name in Tables._fields))
        work = Worklist(*(arrays[f"work.{name}"].copy() for name in Worklist._fields))
        exploration = None
        if any(name.startswith("exploration.") for name in arrays):
            exploration = Exploration(
                *(arrays[f"exploration.{name}"].copy() for name in Exploration._fields)
            )
            snapshot_checks.check_exploration(exploration, (n_q, n_states, env.succ.shape[1]))
        snapshot_checks.check_worklist(work)
        self._check_model(env, task, tables, exploration, waits=bool(work.length.any()))
        self._hold(env)
        self.task, self.tables, self._work = task, tables, work
        self.exploration = exploration
        self.moves = arrays["moves"].copy()
        self._find_order()
        self.rules = self.rules._replace(signed=bool(arrays["signed"][0]))
        explored = () if exploration is None else exploration
        for numbers in (env.reward, task.reward, *explored):
            self._update_signed(float(numbers.min()))

    def _check_model(
        self,
        env: EnvModel,
        task: TaskModel,
        tables: Tables,
        exploration: Exploration | None,
        *,
        waits: bool,
    ) -> None:
        """Refuse a model that no samples can produce: planning with it might not converge."""
        snapshot_checks.check_factor("env", env.prob, env.reward)
        snapshot_checks.check_factor("task", task.prob, task.reward)
        snapshot_checks.check_chains(env)
        if not np.array_equal(task.label, self.task.label):
            raise ModelError("task.label: the machine is not learned state by state")
        most = snapshot_checks.largest_value(env, task, exploration, self.rules, waits)
        snapshot_checks.check_values(tables.value, most)
        if not np.array_equal(kernels.gains(task, tables.value, self.rules.gamma), tables.gain):
            raise ModelError("tables.gain does not match the values")

    def _update_signed(self, reward: float) -> None:
        """Note a negative number in the model: from now on terms of a sum may cancel."""
        if reward < 0.0 and not self.rules.signed:
            self.rules = self.rules._replace(signed=True)

    def _find_order(self) -> None:
        """The order of solving, by the machine transitions observed so far."""
        self._order = solving_order(self.moves)

    def _widen_env(self, needed: int) -> None:
        """Make room for actions with more successors; doubling, so that it happens rarely."""
        old = self.env
        width = max(needed, 2 * old.succ.shape[2])
        shape = (*old.reward.shape, width)
        succ, prob = padded(old.succ, *shape), padded(old.prob, *shape)
        # the numbers of edges depend on the width
        head, link = kernels.link_predecessors(read_only(succ), read_only(prob))
        self._hold(old._replace(succ=succ, prob=prob, head=head, link=link))

    def _widen_task(self, needed: int) -> None:
        """Make room for machine transitions with more outcomes."""
        width = max(needed, 2 * self.task.prob.shape[2])
        shape = (*self.task.reward.shape, width)
        self.task = self.task._replace(
            next_state=padded(self.task.next_state, *shape), prob=padded(self.task.prob, *shape)
        )


def _check_place(what: str, number: int, size: int) -> None:
    """Refuse a state or action that is out of range: compiled code does not check bounds."""
    if not 0 <= number < size:
        raise ModelError(f"{what} {number} is not one of 0 to {size - 1}")


def _check_estimate(
    what: str,
    outcomes: Sequence[int] | IntArray,
    prob: Sequence[float] | FloatArray,
    reward: float,
    size: int,
) -> None:
    """Refuse outcomes out of range, invalid distributions and rewards that are not finite."""
    listed, chances = (x.tolist() if isinstance(x, np.ndarray) else x for x in (outcomes, prob))
    if len(listed) != len(chances):
        raise ModelError(f"{what}: {len(outcomes)} outcomes and {len(prob)} probabilities")
    if listed and not 0 <= min(listed) <= max(listed) < size:
        raise ModelError(f"{what}: an outcome is not one of 0 to {size - 1}")
    if chances and not (min(chances) >= 0.0 and sum(chances) <= 1.0 + ROUNDING):
        raise ModelError(f"{what}: the probabilities are not a distribution")
    if not abs(reward) <= MAX_VALUE:
        raise ModelError(f"{what}: the mean reward is {reward}; allowed: a finite number")
