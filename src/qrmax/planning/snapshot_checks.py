"""Checks of planner snapshots: refuse arrays that no sequence of updates can have led to.

Compiled code trusts what it is given: an index out of range would crash it, a chain without an end
or values that never settle would hang it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import ModelError
from qrmax.planning import kernels
from qrmax.planning.arrays import (
    EnvModel,
    Exploration,
    FloatArray,
    Rows,
    Rules,
    TaskModel,
    Worklist,
)

ROUNDING = 1e-9
MAX_VALUE = 1e300  # anything beyond might overflow on the way


def check_indices(arrays: Mapping[str, NDArray[Any]], n_task_states: int, n_states: int) -> None:
    """Refuse indices out of range, and chains of predecessors without an end."""
    for one, other in (("env.succ", "env.prob"), ("task.next_state", "task.prob")):
        if arrays[one].shape != arrays[other].shape or arrays[one].size == 0:
            raise ModelError(f"{one} and {other} do not fit together")
    edges = arrays["env.succ"].size
    allowed = {
        "env.succ": (0, n_states),
        "task.label": (0, n_states),
        "task.next_state": (0, n_task_states),
        "work.ring": (0, n_states),
        "work.first": (0, n_states),
        "work.length": (0, n_states + 1),
    }
    for name, (low, high) in allowed.items():
        array = arrays[name]
        if array.size and not (low <= array.min() and array.max() < high):
            raise ModelError(f"{name} points outside {low} to {high - 1}")
    check_links(arrays["env.head"], arrays["env.link"], edges)


def check_links(head: NDArray[Any], link: NDArray[Any], edges: int) -> None:
    """Refuse chains of predecessors that lead out of range, or to an edge twice."""
    if link.size != edges:
        raise ModelError("env.link has another size than env.succ")
    for name, array, low in (("head", head, kernels.NO_EDGE), ("link", link, kernels.NOT_LINKED)):
        if array.size and not (low <= array.min() and array.max() < edges):
            raise ModelError(f"env.{name} points outside {low} to {edges - 1}")
    chained = np.concatenate([head, link])
    chained = chained[chained >= 0]
    if len(np.unique(chained)) != len(chained):
        raise ModelError("env.link leads to an edge twice")
    if (link.ravel()[chained] == kernels.NOT_LINKED).any():
        raise ModelError("env.link leads to an edge that is not linked")


def check_chains(env: EnvModel | Rows) -> None:
    """Refuse chains with edges into other states: to revise an estimate is to look for its edges.

    Follows `head` and `link` in rounds, one edge of every chain at a time.
    """
    succ, link = env.succ.ravel(), env.link
    states = np.flatnonzero(env.head != kernels.NO_EDGE)
    edges = env.head[states]
    linked = 0
    while states.size:
        linked += states.size
        if (succ[edges] != states).any():
            raise ModelError("env.link has an edge in the chain of another state")
        goes_on = link[edges] != kernels.NO_EDGE
        states, edges = states[goes_on], link[edges[goes_on]]
    if linked != np.count_nonzero(link != kernels.NOT_LINKED):
        raise ModelError("env.link has an edge that no chain leads to")


def check_worklist(work: Worklist) -> None:
    """Refuse a worklist on which not all that waits stands once."""
    n_states = work.ring.shape[1]
    for ring, first, length, waiting in zip(*work, strict=True):
        listed = ring[(first + np.arange(length)) % n_states]
        if not np.array_equal(np.sort(listed), np.flatnonzero(waiting)):
            raise ModelError("work.ring does not have each queued state exactly once")


def check_exploration(exploration: Exploration, sizes: tuple[int, int, int]) -> None:
    """Refuse bonuses and values of the unknown of other shapes, or that are not finite."""
    shapes = {"env_bonus": sizes[1:], "bonus": sizes, "unknown": sizes}
    for name, array in exploration._asdict().items():
        if array.shape != shapes[name] or array.dtype != np.float64:
            raise ModelError(
                f"exploration.{name} holds {array.dtype} of shape {array.shape}; needed: float64 "
                f"of {shapes[name]}"
            )
        if not (np.abs(array) <= MAX_VALUE).all():
            raise ModelError(f"exploration.{name}: a number beyond {MAX_VALUE:g}")


def check_factor(name: str, prob: FloatArray, reward: FloatArray) -> None:
    """Refuse probabilities and rewards of a factor that are none."""
    if not (prob >= 0.0).all() or not (prob.sum(axis=-1) <= 1.0 + ROUNDING).all():
        raise ModelError(f"{name}.prob: the probabilities of a pair do not sum to 1")
    if not (np.isfinite(reward) | (reward == np.inf)).all():
        raise ModelError(f"{name}.reward: not a number, or -inf")


def check_values(value: FloatArray, most: float) -> None:
    """Refuse values beyond the most that the model can bring."""
    if not most <= MAX_VALUE or not (np.abs(value) <= most).all():
        raise ModelError(f"tables.value: a value beyond {min(most, MAX_VALUE):g}")


def largest_value(
    env: EnvModel, task: TaskModel, exploration: Exploration | None, rules: Rules, waits: bool
) -> float:
    """The largest |V| that backups of this model leave.

    Every Bellman equation holds up to the tolerance, unless something `waits` to be backed up: then
    values may be those of estimates that have been revised since.
    """
    gamma, tolerance, optimistic = rules.gamma, rules.tolerance, abs(rules.optimistic)
    largest = [np.abs(reward[np.isfinite(reward)]).max(initial=0.0) for reward in (env[2], task[3])]
    if exploration is not None:
        largest += [np.abs(bonus).max(initial=0.0) for bonus in exploration[:2]]
        optimistic = max(optimistic, float(np.abs(exploration.unknown).max(initial=0.0)))
    rest = 1.0 - gamma * (1.0 + tolerance)
    exact = optimistic + sum(map(float, largest)) / (1.0 - gamma)
    if not exact <= MAX_VALUE:
        return exact
    if waits or rest <= 0.0:
        return MAX_VALUE
    return exact * (1.0 + ROUNDING) * (1.0 + tolerance) * (1.0 - gamma) / rest
