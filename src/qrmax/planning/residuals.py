"""Bellman residuals, and the sizes that their rounding is relative to, in NumPy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qrmax.planning import kernels
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.planning.models import Model

EPS = float(np.finfo(np.float64).eps)
_CHUNK = 2**15  # states whose action values are computed at a time


class Residual(NamedTuple):
    """Bellman residual of V; 0 in terminal pairs."""

    size: FloatArray  # [i, s], |T V - V| as computed, for the machine states asked for
    mass: (
        FloatArray  # [i, s], the largest sum over an action of the sizes of what adds up or cancels
    )


def residual(
    model: Model,
    value: FloatArray,
    gamma: float,
    policy: IntArray = kernels.ANY_ACTION,
    layer: IntArray | None = None,
) -> Residual:
    """The residual of V `[q, s]` under a policy `[q, s]`, or under the best one, for some q."""
    env, task = model.env, model.task
    asked = np.arange(len(value)) if layer is None else layer
    gain = kernels.gains(task, value, gamma)
    sizes = task._replace(reward=np.abs(task.reward))
    gain_mass = kernels.gains(sizes, np.abs(value), gamma)
    found = Residual(np.empty((len(asked), value.shape[1])), np.empty((len(asked), value.shape[1])))
    for first in range(0, value.shape[1], _CHUNK):
        part = slice(first, first + _CHUNK)
        for i, q in enumerate(asked):
            succ, prob, reward = env.succ[part], env.prob[part], env.reward[part]  # [s, a, k]
            if policy.size:
                a = policy[q, part, None]
                succ = np.take_along_axis(succ, a[:, :, None], axis=1)
                prob = np.take_along_axis(prob, a[:, :, None], axis=1)
                reward = np.take_along_axis(reward, a, axis=1)
            worth = reward + np.einsum("sak,sak->sa", prob, gain[q, succ])
            mass = np.abs(reward) + np.einsum("sak,sak->sa", prob, gain_mass[q, succ])
            found.size[i, part] = np.abs(worth.max(axis=1) - value[q, part])
            error = rounding(model) * mass
            best = worth + error >= (worth - error).max(axis=1, keepdims=True)  # or may be
            found.mass[i, part] = np.where(best, mass, 0.0).max(axis=1)
    for table in found:
        table[model.done[asked]] = 0.0
    return found


def rounding(model: Model) -> float:
    """The rounding of a backup relative to its mass, with its terms counted generously."""
    terms = int(model.env.succ.shape[2] + model.task.next_state.shape[2]) + 8
    return terms * EPS
