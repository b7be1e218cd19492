"""Planning while the model is being learned: only what a change can reach is backed up again.

The planner starts knowing nothing, every value at `optimistic`. Each `learn_env` or `learn_task`
enters one known part; `replan` works off what follows from it, machine layer by machine layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.empirical.growth import padded
from qrmax.errors import ModelError, check_range
from qrmax.planning import kernels
from qrmax.planning.arrays import (
    EnvModel,
    FloatArray,
    IntArray,
    Order,
    Rules,
    Tables,
    TaskModel,
    Worklist,
)
from qrmax.planning.models import machine_layers, unlinked_env
from qrmax.problems.mdp import read_only

ROUNDING = 1e-9
MOST_WORTH = 1e300  # a value beyond it might become infinite on the way


class IncrementalPlanner:
    """Optimistic values of a factored model that becomes known piece by piece.

    >>> planner = IncrementalPlanner(2, 2, 1, gamma=0.5, optimistic=2.0)
    >>> planner.learn_env(0, 0, succ=[1], prob=[1.0], reward=0.0)
    >>> planner.learn_task(0, 1, next_state=[1], prob=[1.0], reward=1.0)
    >>> planner.finish(1, 1)
    True
    >>> planner.replan()  # how many backups it took
    2
    >>> planner.value.tolist()
    [[1.0, 2.0], [2.0, 0.0]]
    """

    def __init__(
        self,
        n_states: int,
        n_task_states: int,
        n_actions: int,
        *,
        gamma: float,
        optimistic: float,
        tolerance: float = 1e-10,
    ) -> None:
        check_range("gamma", gamma, above=0.0, below=1.0)
        self.rules = Rules(gamma, tolerance, float(optimistic), signed=False)
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
        self._work = _nothing_waiting(n_task_states, n_states)
        self.moves = np.eye(n_task_states, dtype=bool)  # [q, q']: seen machine moves
        self._without_task = False
        self._rows: dict[tuple[int, int], list[float]] = {}
        self._find_order()

    @classmethod
    def without_task(
        cls, n_states: int, n_actions: int, *, gamma: float, optimistic: float, tolerance: float
    ) -> IncrementalPlanner:
        """A planner for a plain process: its machine has one state and pays nothing."""
        planner = cls(
            n_states, 1, n_actions, gamma=gamma, optimistic=optimistic, tolerance=tolerance
        )
        planner._without_task = True
        planner._know_that_there_is_no_task(0)
        return planner

    def _hold(self, env: EnvModel) -> None:
        """Keep a model of the world; compiled code reads views of it that are as of any world.

        Those of a given world cannot be written to: were these any different, everything would be
        compiled for each.
        """
        self._succ, self._prob = env.succ, env.prob
        self.env = env._replace(succ=read_only(env.succ), prob=read_only(env.prob))

    def _know_that_there_is_no_task(self, first: int) -> None:
        """The machine of states from the first one on: it stays, and pays nothing."""
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
        table = kernels.action_values(self.env, self.tables, self.rules.optimistic)
        return np.moveaxis(table, 0, 1)

    def q_at(self, s: int, q: int) -> FloatArray:
        """The optimistic value of every action in (s, q)."""
        values: FloatArray = kernels.action_values_at(
            self.env, self.tables, self.rules.optimistic, q, s
        )
        return values

    def row(self, s: int, q: int) -> list[float]:
        """The values of `q_at` as a list, kept until something changes."""
        row = self._rows.get((s, q))
        if row is None:
            row = self._rows[s, q] = self.q_at(s, q).tolist()
        return row

    def forget_rows(self) -> None:
        """Work out all rows anew: compiled code is about to change the tables."""
        self._rows.clear()

    def greedy(self) -> IntArray:
        """The best action of each pair, `[s, q]`: the first of equals."""
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
        """Enter the outcomes of action a in state s and its mean reward."""
        self._rows.clear()
        if np.isfinite(self.env.reward[s, a]):  # its successors are linked, and links stay
            raise ModelError(f"action {a} of state {s} is known already")
        count = len(succ)
        if count > self.env.succ.shape[2]:
            self._widen_env(count)
        self._succ[s, a, :count] = succ
        self._prob[s, a, :count] = prob
        self.env.reward[s, a] = reward
        self._mind_the_sign(reward)
        pair = s * self.env.reward.shape[1] + a
        succ, prob, _, head, link = self.env
        kernels.env_changed(succ, prob, head, link, self._work, pair, pair + 1)

    def learn_task(
        self,
        q: int,
        s: int,
        next_state: Sequence[int] | IntArray,
        prob: Sequence[float] | FloatArray,
        reward: float,
    ) -> None:
        """Enter what the machine does in q on arriving in world state s, and its mean reward."""
        self._rows.clear()
        count = len(next_state)
        if count > self.task.prob.shape[2]:
            self._widen_task(count)
        self.task.next_state[q, s, :count] = next_state
        self.task.prob[q, s] = 0.0  # what was said of it before no longer holds
        self.task.prob[q, s, :count] = prob
        self.task.reward[q, s] = reward
        self._mind_the_sign(reward)
        for target in next_state:
            if not self.moves[q, target]:
                self.moves[q, target] = True
                self._find_order()
        kernels.task_changed(self.env, self.task, self.tables, self._work, self.rules.gamma, q, s)

    def finish(self, s: int, q: int) -> bool:
        """Enter that the episode ends in (s, q), so that V is 0; returns whether that is news."""
        if self.tables.done[q, s]:
            return False
        self._rows.clear()
        self.tables.done[q, s] = True
        self.tables.value[q, s] = 0.0
        kernels.value_changed(self.env, self.task, self.tables, self._work, self.rules.gamma, q, s)
        return True

    def grow(self, n_states: int) -> None:
        """Make room for more world states, of which nothing is known; between two plans."""
        self._rows.clear()
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
        if self._without_task:
            self._know_that_there_is_no_task(before)
        self._work = _nothing_waiting(n_q, n_states)

    def replan(self) -> int:
        """Bring all values up to date; returns how many backups it took."""
        self._rows.clear()
        backups: int = kernels.settle(
            self.env, self.task, self.tables, self._work, self._order, self.rules
        )
        return backups

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Everything the planner knows, as named arrays (not copies)."""
        return {
            **{f"env.{name}": array for name, array in self.env._asdict().items()},
            **{f"task.{name}": array for name, array in self.task._asdict().items()},
            **{f"tables.{name}": array for name, array in self.tables._asdict().items()},
            **{f"work.{name}": array for name, array in self._work._asdict().items()},
            "moves": self.moves,
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a snapshot."""
        self._rows.clear()
        n_q, n_states = self.tables.value.shape
        edges = arrays["env.succ"].size
        _check_numbers(
            arrays,
            {
                "env.succ": (0, n_states),
                "env.head": (kernels.NO_EDGE, edges),
                "env.link": (kernels.NOT_LINKED, edges),
                "task.label": (0, n_states),
                "task.next_state": (0, n_q),
                "work.ring": (0, n_states),
                "work.first": (0, n_states),
                "work.length": (0, n_states + 1),
            },
        )
        env = EnvModel(*(arrays[f"env.{name}"].copy() for name in EnvModel._fields))
        task = TaskModel(*(arrays[f"task.{name}"].copy() for name in TaskModel._fields))
        tables = Tables(*(arrays[f"tables.{name}"].copy() for name in Tables._fields))
        work = Worklist(*(arrays[f"work.{name}"].copy() for name in Worklist._fields))
        _check_worklist(work)
        self._check_model(env, task, tables)
        self._hold(env)
        self.task, self.tables, self._work = task, tables, work
        self.moves = arrays["moves"].copy()
        self._find_order()
        self._mind_the_sign(min(self.env.reward.min(), self.task.reward.min()))

    def _check_model(self, env: EnvModel, task: TaskModel, tables: Tables) -> None:
        """Refuse what no samples can have led to: planning with it might never settle."""
        worth = self.rules.optimistic
        factors = {"env": (env.prob, env.reward), "task": (task.prob, task.reward)}
        for name, (prob, reward) in factors.items():
            if not (prob >= 0.0).all() or not (prob.sum(axis=-1) <= 1.0 + ROUNDING).all():
                raise ModelError(f"{name}.prob: the probabilities of a pair do not add up")
            known = np.isfinite(reward)
            if not (known | (reward == np.inf)).all():
                raise ModelError(f"{name}.reward: not a number, or below all numbers")
            worth += float(np.abs(reward[known]).max(initial=0.0)) / (1.0 - self.rules.gamma)
        if not np.array_equal(task.label, self.task.label):
            raise ModelError("task.label: the machine is not learned state by state")
        if not worth <= MOST_WORTH or not (np.abs(tables.value) <= worth * (1 + ROUNDING)).all():
            raise ModelError(f"tables.value: a value beyond {min(worth, MOST_WORTH):g}")
        if not np.array_equal(kernels.gains(task, tables.value, self.rules.gamma), tables.gain):
            raise ModelError("tables.gain is not what follows from the values")

    def _mind_the_sign(self, reward: float) -> None:
        """Note that there are costs: from now on what adds up may cancel."""
        if reward < 0.0 and not self.rules.signed:
            self.rules = self.rules._replace(signed=True)

    def _find_order(self) -> None:
        """The order of solving, as far as the machine's moves have been seen."""
        n_q = len(self.moves)
        states = np.arange(n_q, dtype=np.int32)
        moves = np.where(self.moves, states[None, :], states[:, None]).astype(np.int32)
        layers = machine_layers(moves, np.zeros(n_q, dtype=bool))
        to, feeders = np.nonzero(self.moves.T)
        self._order = Order(
            states=np.concatenate(layers),
            ends=np.cumsum([len(layer) for layer in layers], dtype=np.int32),
            feeders=feeders.astype(np.int32),
            feeder_ends=np.cumsum(np.bincount(to, minlength=n_q), dtype=np.int32),
        )

    def _widen_env(self, needed: int) -> None:
        """Make room for actions with more successors; doubling, so that it happens seldom."""
        old = self.env
        width = max(needed, 2 * old.succ.shape[2])
        shape = (*old.reward.shape, width)
        succ, prob = padded(old.succ, *shape), padded(old.prob, *shape)
        # edges are numbered by the width
        head, link = kernels.link_predecessors(read_only(succ), read_only(prob))
        self._hold(old._replace(succ=succ, prob=prob, head=head, link=link))

    def _widen_task(self, needed: int) -> None:
        """Make room for machine events with more outcomes."""
        width = max(needed, 2 * self.task.prob.shape[2])
        shape = (*self.task.reward.shape, width)
        self.task = self.task._replace(
            next_state=padded(self.task.next_state, *shape), prob=padded(self.task.prob, *shape)
        )


def _nothing_waiting(n_task_states: int, n_states: int) -> Worklist:
    return Worklist(
        ring=np.zeros((n_task_states, n_states), dtype=np.int32),
        first=np.zeros(n_task_states, dtype=np.int32),
        length=np.zeros(n_task_states, dtype=np.int32),
        waiting=np.zeros((n_task_states, n_states), dtype=bool),
    )


def _check_numbers(
    arrays: Mapping[str, NDArray[Any]], allowed: Mapping[str, tuple[int, int]]
) -> None:
    """Refuse indices that point nowhere, and chains without an end: compiled code does not look."""
    for one, other in (("env.succ", "env.prob"), ("task.next_state", "task.prob")):
        if arrays[one].shape != arrays[other].shape or arrays[one].size == 0:
            raise ModelError(f"{one} and {other} do not fit together")
    for name, (low, high) in allowed.items():
        array = arrays[name]
        if array.size and not (low <= array.min() and array.max() < high):
            raise ModelError(f"{name} points outside {low} to {high - 1}")
    if arrays["env.link"].size != arrays["env.succ"].size:
        raise ModelError("env.link has another size than env.succ")
    chained = np.concatenate([arrays["env.head"], arrays["env.link"]])
    chained = chained[chained >= 0]
    if len(np.unique(chained)) != len(chained):
        raise ModelError("env.link leads to an edge twice")
    if (arrays["env.link"].ravel()[chained] == kernels.NOT_LINKED).any():
        raise ModelError("env.link leads to an edge that is not linked")


def _check_worklist(work: Worklist) -> None:
    """Refuse a worklist on which not all that waits stands once."""
    n_states = work.ring.shape[1]
    for ring, first, length, waiting in zip(*work, strict=True):
        listed = ring[(first + np.arange(length)) % n_states]
        if not np.array_equal(np.sort(listed), np.flatnonzero(waiting)):
            raise ModelError("work.ring does not have all that waits, each once")
