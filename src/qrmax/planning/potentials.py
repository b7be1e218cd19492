"""Constant potentials, which turn a reward on every step into rewards that are rare.

Shaping by a potential Phi(q), with 0 in terminal pairs, leaves the optimal policies as they
are and shifts the values (Ng, Harada and Russell 1999):

    R'(s, q, a, s', q') = R(s, q, a, s', q') + gamma Phi(q') - Phi(q),   V' = V - Phi

With c(q) a typical reward of a step while the machine is in q, and Phi(q) = c(q) / (1 - gamma), the
steps with just that reward have none any more: a cost of 0.001 per step becomes a reward of
0.001 / (1 - gamma) for ending the episode, which the moving front of `kernels.py` spreads in a few
backups per pair. If steps cost this or that, c(q) is the median, and the front starts from values
about as bad as never ending the episode, so that it is not drawn to where it has not been yet.
Values far from the end, which differ by less than the rounding of V, are still told apart by V', so
the greedy policy is taken from there.
"""

from __future__ import annotations

import numpy as np

from qrmax.planning.arrays import FloatArray
from qrmax.planning.models import Model, by_arrival
from qrmax.planning.residuals import rounding


def potential_of(model: Model, gamma: float) -> FloatArray | None:
    """The potential Phi `[q]`, or None if there is nothing to take out."""
    live = ~model.done.all(axis=0)
    world = _typical(model.env.reward[live].ravel())
    counts = np.bincount(model.task.label, minlength=model.task.reward.shape[1])
    dense = (model.task.reward != 0.0) @ counts * 2 > len(model.task.label)
    if world == 0.0 and not dense.any():
        return None
    step = np.full(len(dense), world)
    for q in np.flatnonzero(dense):
        step[q] += _typical(model.task.reward[q, model.task.label])
    return step / (1.0 - gamma) if step.any() else None


def _typical(rewards: FloatArray) -> float:
    """The median, if it is a cost or most rewards are just that; otherwise 0."""
    if np.count_nonzero(rewards) * 2 <= rewards.size:
        return 0.0
    median = float(np.partition(rewards, rewards.size // 2)[rewards.size // 2])
    common = np.count_nonzero(rewards == median) * 2 > rewards.size
    return median if common or median < 0.0 else 0.0


def shaped(model: Model, gamma: float, potential: FloatArray) -> Model:
    """The model with its rewards shaped by a potential `[q]`."""
    task = model.task
    world = _typical(model.env.reward[~model.done.all(axis=0)].ravel())
    next_state, prob = task.next_state[:, task.label], task.prob[:, task.label]  # [q, s, j]
    here = np.arange(len(task.label))[:, None]
    after = np.where(model.done[next_state, here], 0.0, potential[next_state])
    future = gamma * (prob * after).sum(axis=2)
    reward = task.reward[:, task.label] + world + future - potential[:, None]
    size = np.abs(task.reward[:, task.label]) + abs(world) + np.abs(potential).max()
    grain = rounding(model)
    reward[np.abs(reward) <= grain * size] = 0.0  # what is left of rounding
    rare = model.env.reward - world
    rare[np.abs(rare) <= grain * abs(world)] = 0.0
    return model._replace(env=model.env._replace(reward=rare), task=by_arrival(task, reward))
