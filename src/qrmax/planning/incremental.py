"""Planning while the model is being learned: only what a change can reach is backed up again.

The planner starts knowing nothing, every value at `optimistic`. Each `learn_env` or `learn_task`
enters one known part; `replan` works off what follows from it, machine layer by machine layer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from qrmax.errors import ModelError, check_range
from qrmax.planning import kernels
from qrmax.planning.arrays import FloatArray, IntArray, Rules, Tables, TaskModel, Worklist
from qrmax.planning.models import machine_layers, unlinked_env


class IncrementalPlanner:
    """Optimistic values of a factored model that becomes known piece by piece.

    `successors` and `outcomes` are the most successors of an action and the most next machine
    states on one arrival.

    >>> planner = IncrementalPlanner(2, 2, 1, gamma=0.5, optimistic=2.0)
    >>> planner.learn_env(0, 0, succ=[1], prob=[1.0], reward=0.0)
    >>> planner.learn_task(0, 1, next_state=[1], prob=[1.0], reward=1.0)
    >>> planner.finish(1, 1)
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
        successors: int = 1,
        outcomes: int = 1,
        tolerance: float = 1e-10,
        signed: bool = False,
    ) -> None:
        check_range("gamma", gamma, above=0.0, below=1.0)
        self.rules = Rules(gamma, tolerance, float(optimistic), signed)
        pairs = (n_task_states, n_states)
        arrivals = (*pairs, outcomes)
        self.env = unlinked_env(n_states, n_actions, successors)
        self.task = TaskModel(
            label=np.arange(n_states, dtype=np.int32),  # the machine is learned state by state
            next_state=np.zeros(arrivals, dtype=np.int32),
            prob=np.zeros(arrivals),
            reward=np.full(pairs, np.inf),
        )
        self.tables = Tables(
            value=np.full(pairs, self.rules.optimistic),
            gain=np.full(pairs, np.inf),
            done=np.zeros(pairs, dtype=bool),
        )
        self._work = Worklist(
            ring=np.zeros(pairs, dtype=np.int32),
            first=np.zeros(n_task_states, dtype=np.int32),
            length=np.zeros(n_task_states, dtype=np.int32),
            waiting=np.zeros(pairs, dtype=bool),
        )
        self._moves = np.eye(n_task_states, dtype=bool)  # [q, q']: seen machine moves
        self._layers = self._find_layers()

    @property
    def value(self) -> FloatArray:
        """The optimistic values, `[s, q]`."""
        return self.tables.value.T

    @property
    def q(self) -> FloatArray:
        """The optimistic value of every action, `[s, q, a]`."""
        table = kernels.action_values(self.env, self.tables, self.rules.optimistic)
        return np.moveaxis(table, 0, 1)

    def learn_env(self, s: int, a: int, succ: ArrayLike, prob: ArrayLike, reward: float) -> None:
        """Enter the outcomes of action a in state s and its mean reward."""
        if np.isfinite(self.env.reward[s, a]):  # its successors are linked, and links stay
            raise ModelError(f"action {a} of state {s} is known already")
        count = len(np.atleast_1d(succ))
        self.env.succ[s, a, :count] = succ
        self.env.prob[s, a, :count] = prob
        self.env.reward[s, a] = reward
        kernels.link_pair(self.env.succ, self.env.prob, self.env.head, self.env.link, s, a)
        kernels.env_changed(self._work, s)

    def learn_task(
        self, q: int, s: int, next_state: ArrayLike, prob: ArrayLike, reward: float
    ) -> None:
        """Enter what the machine does in q on arriving in world state s, and its mean reward."""
        count = len(np.atleast_1d(next_state))
        self.task.next_state[q, s, :count] = next_state
        self.task.prob[q, s] = 0.0  # what was said of it before no longer holds
        self.task.prob[q, s, :count] = prob
        self.task.reward[q, s] = reward
        targets = np.atleast_1d(np.asarray(next_state))
        if not self._moves[q, targets].all():
            self._moves[q, targets] = True
            self._layers = self._find_layers()
        kernels.task_changed(self.env, self.task, self.tables, self._work, self.rules.gamma, q, s)

    def finish(self, s: int, q: int) -> None:
        """Enter that the episode ends in (s, q): nothing more is to be had there."""
        self.tables.done[q, s] = True
        self.tables.value[q, s] = 0.0
        kernels.value_changed(self.env, self.task, self.tables, self._work, self.rules.gamma, q, s)

    def replan(self) -> int:
        """Bring all values up to date; returns how many backups it took."""
        return sum(
            kernels.settle(self.env, self.task, self.tables, self._work, layer, self.rules)
            for layer in self._layers
        )

    def _find_layers(self) -> tuple[IntArray, ...]:
        """The machine's layers as far as its moves have been seen."""
        n_q = len(self._moves)
        states = np.arange(n_q, dtype=np.int32)
        moves = np.where(self._moves, states[None, :], states[:, None]).astype(np.int32)
        return machine_layers(moves, np.zeros(n_q, dtype=bool))
