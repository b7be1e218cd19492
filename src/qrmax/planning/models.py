"""The two factors of a problem as the arrays that planning kernels take."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from qrmax.planning import kernels
from qrmax.planning.arrays import (
    BoolArray,
    EnvModel,
    FloatArray,
    IntArray,
    Likeliest,
    Order,
    TaskModel,
    Worklist,
)
from qrmax.problems.problem import Problem


class Scale(NamedTuple):
    """The sizes that rounding errors are relative to."""

    lowest: float  # of all rewards of the world and of the machine, taken apart
    highest: float
    mass: float  # the largest sum of probabilities of a step, 1 up to rounding

    @property
    def reward(self) -> float:
        """The largest reward of the world or of the machine."""
        return max(-self.lowest, self.highest)


class Model(NamedTuple):
    """Both factors, the terminal pairs, and the order to solve the machine in."""

    env: EnvModel
    task: TaskModel
    done: BoolArray  # [q, s]
    success: FloatArray  # [q, s], 1 where the episode has ended well
    likeliest: Likeliest
    layers: tuple[IntArray, ...]  # groups of machine states, last first
    start: FloatArray  # [q, s]
    scale: Scale


ROUNDING = 1e-15  # of a sum of probabilities


_models: WeakKeyDictionary[Problem, Model] = WeakKeyDictionary()


def model_of(problem: Problem) -> Model:
    """The planner's view of a problem, made once for each problem."""
    if problem not in _models:
        _models[problem] = _build(problem)
    return _models[problem]


def unlinked_env(n_states: int, n_actions: int, n_successors: int) -> EnvModel:
    """An environment model in which every state-action pair is unknown."""
    shape = (n_states, n_actions, n_successors)
    return EnvModel(
        succ=np.zeros(shape, dtype=np.int32),
        prob=np.zeros(shape),
        reward=np.full(shape[:2], np.inf),
        head=np.full(n_states, kernels.NO_EDGE, dtype=np.int32),
        link=np.full(np.prod(shape), kernels.NOT_LINKED, dtype=np.int32),
    )


def _build(problem: Problem) -> Model:
    mdp, table = problem.mdp, problem.table
    head, link = kernels.link_predecessors(mdp.succ, mdp.prob)
    start = np.ascontiguousarray(problem.start().T)
    return Model(
        env=EnvModel(mdp.succ, mdp.prob, mdp.expected_reward(), head, link),
        task=TaskModel(
            label=problem.label.copy(),  # writable as all task arrays are: one compilation serves
            next_state=table.next_state,
            prob=table.prob,
            reward=(table.prob * table.reward).sum(axis=2),
        ),
        done=np.ascontiguousarray(problem.done().T),
        success=np.repeat(table.success.astype(np.float64)[:, None], mdp.n_states, axis=1),
        likeliest=_likeliest(problem, start),
        layers=machine_layers(table.next_state, table.terminal),
        start=start,
        scale=_scale(problem),
    )


def _scale(problem: Problem) -> Scale:
    mdp, table = problem.mdp, problem.table
    rewards = (part.reward[part.prob > 0.0] for part in (mdp, table))
    lowest, highest = zip(*((kind.min(), kind.max()) for kind in rewards), strict=True)
    mass = float(mdp.prob.sum(axis=2).max() * table.prob.sum(axis=2).max())
    return Scale(float(min(lowest)), float(max(highest)), max(1.0, mass * (1.0 + ROUNDING)))


def by_arrival(task: TaskModel, reward: FloatArray) -> TaskModel:
    """The same machine with a reward `[q, s]` for arriving in s, whatever its label."""
    return TaskModel(
        label=np.arange(len(task.label), dtype=np.int32),
        next_state=np.ascontiguousarray(task.next_state[:, task.label]),
        prob=np.ascontiguousarray(task.prob[:, task.label]),
        reward=np.ascontiguousarray(reward),
    )


def _likeliest(problem: Problem, start: FloatArray) -> Likeliest:
    task = problem.table
    moves = np.take_along_axis(task.next_state, task.prob.argmax(axis=2)[:, :, None], axis=2)
    q, s = divmod(int(start.argmax()), start.shape[1])
    env = problem.mdp.nominal().succ
    return Likeliest(env[:, :, 0].copy(), moves[:, :, 0].copy(), q, s)


def machine_layers(next_state: IntArray, terminal: BoolArray) -> tuple[IntArray, ...]:
    """The strongly connected components of a machine, last first (Tarjan, without recursion).

    A component is solved once all that it can lead to is. Terminal states need no solving.

    >>> layers = machine_layers(np.array([[0, 1], [0, 2], [2, 2]]), np.array([False, False, True]))
    >>> [layer.tolist() for layer in layers]
    [[0, 1]]
    """
    n = len(terminal)
    index, low = [-1] * n, [0] * n
    path: list[int] = []
    on_path = [False] * n
    layers: list[IntArray] = []
    counter = 0
    for root in range(n):
        if index[root] >= 0:
            continue
        work = [(root, iter(np.unique(next_state[root]).tolist()))]
        while work:
            q, targets = work[-1]
            if index[q] < 0:
                index[q] = low[q] = counter
                counter += 1
                path.append(q)
                on_path[q] = True
            for target in targets:
                if index[target] < 0:
                    work.append((target, iter(np.unique(next_state[target]).tolist())))
                    break
                if on_path[target]:
                    low[q] = min(low[q], low[target])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[q])
                if low[q] == index[q]:
                    at = path.index(q)
                    component, path = path[at:], path[:at]
                    for member in component:
                        on_path[member] = False
                    if not terminal[q]:
                        layers.append(np.array(sorted(component), dtype=np.int32))
    return tuple(layers)


def solving_order(moves: BoolArray) -> Order:
    """The machine states in the order of solving, given the moves that there are, `[q, q']`."""
    n_q = len(moves)
    states = np.arange(n_q, dtype=np.int32)
    targets = np.where(moves, states[None, :], states[:, None]).astype(np.int32)
    layers = machine_layers(targets, np.zeros(n_q, dtype=bool))
    to, feeders = np.nonzero(moves.T)
    return Order(
        states=np.concatenate(layers),
        ends=np.cumsum([len(layer) for layer in layers], dtype=np.int32),
        feeders=feeders.astype(np.int32),
        feeder_ends=np.cumsum(np.bincount(to, minlength=n_q), dtype=np.int32),
    )


def empty_worklist(n_task_states: int, n_states: int) -> Worklist:
    """Worklists on which nothing is queued."""
    return Worklist(
        ring=np.zeros((n_task_states, n_states), dtype=np.int32),
        first=np.zeros(n_task_states, dtype=np.int32),
        length=np.zeros(n_task_states, dtype=np.int32),
        waiting=np.zeros((n_task_states, n_states), dtype=bool),
    )
