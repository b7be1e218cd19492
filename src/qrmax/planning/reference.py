"""The equations in NumPy: what the kernels must compute, and what the tests hold them to.

Slow and plain on purpose. Tables are `[s, q]`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from qrmax.planning.arrays import (
    Belief,
    BoolArray,
    FloatArray,
    IntArray,
    Rows,
    Stages,
    TaskModel,
)
from qrmax.planning.confidence_sets import CHI_SQUARE, L1_ANYWHERE
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.problem import Problem


def gains(problem: Problem, value: FloatArray, gamma: float) -> FloatArray:
    """G(q, s') = sum_j P(j | q, s') (R_Q(q, s', j) + gamma V(s', q_j)) as `[s', q]`."""
    next_q, prob, reward = (part[:, problem.label] for part in problem.table[:3])  # [q, s', j]
    live = np.where(problem.done(), 0.0, value)
    future = live[np.arange(problem.n_states)[:, None], next_q]
    return np.asarray(np.einsum("qsj,qsj->sq", prob, reward + gamma * future))


def action_values(problem: Problem, value: FloatArray, gamma: float) -> FloatArray:
    """Q(s, q, a) = R_E(s, a) + sum_s' P(s' | s, a) G(q, s') as `[s, q, a]`, 0 where done."""
    gain = gains(problem, value, gamma)[problem.mdp.succ]  # [s, a, k, q]
    table = np.einsum("sak,sakq->sqa", problem.mdp.prob, gain)
    table += problem.mdp.expected_reward()[:, None, :]
    return np.where(problem.done()[:, :, None], 0.0, table)


def solve(problem: Problem, gamma: float) -> FloatArray:
    """V on the factors, by sweeps over all pairs at once."""
    value = np.zeros((problem.n_states, problem.n_task_states))
    for _ in range(_sweeps(gamma)):
        value = action_values(problem, value, gamma).max(axis=2)
    return value


def solve_product(product: TabularMDP, gamma: float) -> FloatArray:
    """V of any tabular process by plain value iteration: knows nothing of tasks."""
    value = np.zeros(product.n_states)
    for _ in range(_sweeps(gamma)):
        future = np.where(product.terminal[product.succ], 0.0, value[product.succ])
        worth = (product.prob * (product.reward + gamma * future)).sum(axis=2).max(axis=1)
        value = np.where(product.terminal, 0.0, worth)
    return value


def solve_optimistic(
    problem: Problem,
    gamma: float,
    known_env: BoolArray,
    known_task: BoolArray,
    optimistic: float | FloatArray,
    bonus: float | FloatArray = 0.0,
) -> FloatArray:
    """V if only some (s, a), (q, s') are known; a backup that needs more is `optimistic`.

    Others have a `bonus` added. Both may be tables `[s, q, a]`.
    """
    listed = (problem.mdp.prob > 0)[:, :, :, None]  # [s, a, k, 1]
    arrivals = known_task.T[problem.mdp.succ]  # [s, a, k, q]
    covered = (arrivals | ~listed).all(axis=2) & known_env[:, :, None]  # [s, a, q]
    usable = np.moveaxis(covered, 2, 1)  # [s, q, a]
    value = np.where(problem.done(), 0.0, np.max(optimistic))
    for _ in range(_sweeps(gamma)):
        table = np.where(usable, action_values(problem, value, gamma) + bonus, optimistic)
        value = np.where(problem.done(), 0.0, table.max(axis=2))
    return value


def _sweeps(gamma: float) -> int:
    """As many as shrink any error to nothing; to watch for changes would be to trust rounding."""
    return math.ceil(math.log(1e-24) / math.log(gamma))


def backward_induction(
    belief: Belief, task: TaskModel, done: BoolArray, stages: Stages
) -> FloatArray:
    """Q of every option, `[h, y, x, o]`, on what an agent believes: `stages` are only read."""
    n_y, n_x = done.shape
    weight = belief.weight * (np.arange(belief.succ.shape[1]) < belief.listed[:, None])[:, :, None]
    arrivals = np.arange(n_x)
    value = np.zeros((n_y, n_x))
    table = np.empty((len(stages.v_max), n_y, n_x, belief.reward.shape[1]))
    for h in reversed(range(len(stages.v_max))):
        top = stages.v_max[h]
        after = value[task.next_state[:, task.label], arrivals[None, :, None]]  # [y, x, j]
        gain = task.reward[:, task.label]
        gain = gain + stages.gamma * (task.prob[:, task.label] * after).sum(axis=2)
        beyond = np.full(n_y, top) if stages.optimistic_prior else gain.sum(axis=1)
        ahead = gain[:, belief.succ]  # [y, x, k]
        mean = np.einsum("xko,yxk->yxo", weight, ahead)
        off = ahead[:, :, :, None] - mean[:, :, None, :]
        variance = np.einsum("xko,yxko->yxo", weight, off**2)
        bonus = belief.flat + belief.slope * top + belief.spread * np.sqrt(np.maximum(variance, 0))
        worth = belief.reward + belief.rest * beyond[:, None, None] + mean + np.minimum(bonus, top)
        table[h] = np.minimum(worth, top)
        value = np.where(done, 0.0, table[h].max(axis=2))
    return table


class PolicyValues(NamedTuple):
    """Value, success probability and length of a policy from the start distribution."""

    start_value: float
    success: float
    lengths: float  # mean of (length x success)


def evaluate(
    problem: Problem, policy: IntArray, gamma: float, max_episode_steps: int | None
) -> PolicyValues:
    """A policy `[s, q]` or `[h, s, q]` as dense Markov chains: tiny problems only."""
    product = problem.product()
    goal = np.tile(problem.table.success, problem.n_states)  # [pair]
    stages = policy.reshape(-1, product.n_states) if policy.ndim == 3 else None
    if max_episode_steps is None and stages is None:
        return _evaluate_forever(product, *_chain(product, policy.reshape(-1)), goal, gamma)
    limit = min(n for n in (max_episode_steps, None if stages is None else len(stages)) if n)
    mass = product.start.copy()
    value, success, lengths = 0.0, float(mass[goal].sum()), 0.0
    for step in range(1, limit + 1):
        actions = policy.reshape(-1) if stages is None else stages[step - 1]
        chain, reward = _chain(product, actions)
        mass = np.where(product.terminal, 0.0, mass)
        value += gamma ** (step - 1) * float(mass @ reward)
        mass = mass @ chain
        success += float(mass[goal].sum())
        lengths += step * float(mass[goal].sum())
    return PolicyValues(value, success, lengths)


def _chain(product: TabularMDP, actions: IntArray) -> tuple[FloatArray, FloatArray]:
    """Transition matrix and mean rewards of these actions."""
    pairs = np.arange(product.n_states)
    chain = np.zeros((product.n_states, product.n_states))
    succ, prob = product.succ[pairs, actions], product.prob[pairs, actions]
    np.add.at(chain, (pairs[:, None], succ), prob)
    chain[product.terminal] = 0.0
    reward = (prob * product.reward[pairs, actions]).sum(axis=1) * ~product.terminal
    return chain, reward


def _evaluate_forever(
    product: TabularMDP, chain: FloatArray, reward: FloatArray, goal: BoolArray, gamma: float
) -> PolicyValues:
    identity = np.eye(product.n_states)
    value = np.linalg.solve(identity - gamma * chain, reward)
    reaches = goal.copy()  # pairs from which success is possible; elsewhere the system is singular
    while True:
        wider = reaches | ((chain @ reaches) > 0)
        if (wider == reaches).all():
            break
        reaches = wider
    inner = reaches & ~goal
    inside = np.ix_(inner, inner)
    h = goal.astype(np.float64)
    h[inner] = np.linalg.solve(identity[inside] - chain[inside], chain[inner][:, goal].sum(axis=1))
    w = np.zeros(product.n_states)
    w[inner] = np.linalg.solve(identity[inside] - chain[inside], h[inner])
    return PolicyValues(
        float(product.start @ value), float(product.start @ h), float(product.start @ w)
    )


def largest_expectation(prob: FloatArray, gain: FloatArray, radius: float) -> float:
    """The largest expectation in a chi-square ball around `prob`, by its dual.

    min over eta of eta + sqrt((1 + radius) E max(gain - eta, 0)^2), a convex function of eta, whose
    minimum is at most the largest gain (Duchi and Namkoong, 2021).
    """
    best, size = float(gain.max()), float(np.ptp(gain))
    if size == 0.0 or radius == 0.0:
        return float(prob @ gain)

    def bound(eta: float) -> float:
        second_moment = float(prob @ np.maximum(gain - eta, 0.0) ** 2)
        return eta + math.sqrt((1.0 + radius) * second_moment)

    low, high = best - size * (2.0 + 2.0 / math.sqrt(radius) + 1.0 / radius), best
    for _ in range(300):
        third = (high - low) / 3.0
        low, high = (
            (low, high - third) if bound(low + third) < bound(high - third) else (low + third, high)
        )
    return bound(low)


def largest_expectation_in_l1(
    prob: FloatArray, gain: FloatArray, radius: float, beyond: float = -math.inf
) -> float:
    """The largest expectation in an L1 ball around `prob`: from the worst successors to the best.

    `beyond` is the gain of a successor with probability 0, minus infinity for none.
    """
    best, left, total = max(float(gain.max()), beyond), radius / 2.0, 0.0
    for k in np.argsort(gain):
        moved = min(left, float(prob[k]))
        left -= moved
        total += moved * best + (float(prob[k]) - moved) * float(gain[k])
    return total


def back_up_confidence_sets(
    rows: Rows, task: TaskModel, done: BoolArray, gamma: float, optimistic: float, value: FloatArray
) -> FloatArray:
    """V, `[q, s]`, after one backup of every pair over confidence sets (`confidence_sets.py`).

    A contraction: the only value that it does not change is the solution.
    """
    n_q, n_states = done.shape
    after = value[task.next_state, np.arange(n_states)[None, :, None]]  # [q, s, j]
    known = task.reward + gamma * (task.prob * after).sum(axis=2)
    gain = np.where(np.isinf(task.reward), optimistic, known)
    table = np.full((n_q, n_states, rows.base.shape[1]), optimistic)
    for q, s, a in np.ndindex(table.shape):
        if rows.base[s, a] < np.inf:
            count, radius = rows.listed[s], float(rows.radius[s, a])
            ahead = rows.reward[s, a, :count] + gain[q, rows.succ[s, :count]]
            prob = rows.prob[s, a, :count]
            if rows.ball is CHI_SQUARE:
                worth = largest_expectation(prob, ahead, radius)
            else:
                beyond = optimistic if rows.ball == L1_ANYWHERE else -math.inf
                worth = largest_expectation_in_l1(prob, ahead, radius, beyond)
            table[q, s, a] = min(optimistic, float(rows.base[s, a]) + worth)
    return np.where(done, 0.0, table.max(axis=2))
