"""Backward induction into a table of action values for every stage (compiled).

    Q_h(x, a) = r(x, a) + gamma sum_y p(y | x, a) V_h+1(y) + b_h(x, a)     h = H - 1 down to 0
    V_h(x)    = max_a Q_h(x, a),  0 where the episode is over              V_H = 0

for models of pairs x = (s, q), whose bonuses b_h depend on the stage, whose values are kept from
one episode to the next, or whose options have successors of their own:

    plan_with_bonuses  b_h(x, a) is given, and Q_h clipped at v_h (the published comparison);
                       `keep_up_with_bonuses` computes only what changes
    plan_monotone      b_h(x, a) of Azar, Osband and Munos (2017), and Q_h never rises
    plan_models        the best of several sampled models, without a bonus

`finite_horizon.py` is quicker, for bonuses that depend on the stage through v_h and Var alone;
`machine_stages.py` is on the two factors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qrmax.errors import ParameterError
from qrmax.planning.compilation import compiled, inner

if TYPE_CHECKING:  # numba does not read annotations
    from qrmax.empirical.successors import Seen
    from qrmax.planning.arrays import BoolArray, FloatArray, IntArray
    from qrmax.planning.finite_horizon import Feeders

_compiled, _inner = compiled, inner


class Concentration(NamedTuple):
    """The constants of the bonuses of Azar, Osband and Munos."""

    log: float  # L = ln(5 S A T / delta)
    top: float  # the largest return of an episode, H in the paper
    hoeffding: bool  # UCBVI-CH; else UCBVI-BF
    correction: float  # 100^2 H^3 S^2 A L^2, times the square of the largest reward


class SampledModels(NamedTuple):
    """Models of the world, of which the most optimistic is assumed: options o = b |A| + a."""

    succ: IntArray  # [x, o, k]
    weight: FloatArray  # [x, o, k]
    listed: IntArray  # [x, o], the number of successors
    rest: FloatArray  # [x, o], the probability of what is not listed
    reward: FloatArray  # [x, o]


class Means(NamedTuple):
    """The empirical model of the pairs that were tried."""

    reward: FloatArray  # [x, a]
    share: FloatArray  # [x, a, k], of the successors


def make_means(seen: Seen) -> Means:
    """Allocate the means of counts."""
    return Means(np.zeros(seen.n.shape), np.zeros(seen.tau.shape))


def make_table(horizon: int, n_x: int, n_actions: int) -> FloatArray:
    """Allocate a table `[h, x, a]`."""
    try:
        return np.zeros((horizon, n_x, n_actions))
    except (MemoryError, ValueError) as error:  # ValueError: beyond any address space
        raise ParameterError(
            f"horizon is {horizon}: action values of {n_x} pairs take "
            f"{horizon * n_x * n_actions * 8 / 1e9:,.0f} GB of memory; give a smaller one"
        ) from error


@_inner
def _average(seen: Seen, means: Means, x: int) -> int:
    """Update the means of x; returns its visit count."""
    n, rho, listed, _, tau = seen
    visits = 0
    for a in range(n.shape[1]):
        visits += n[x, a]
        if n[x, a] > 0:
            means.reward[x, a] = rho[x, a] / n[x, a]
            for k in range(listed[x]):
                means.share[x, a, k] = tau[x, a, k] / n[x, a]
    return visits


@_compiled
def plan_with_bonuses(
    seen: Seen,
    bonus: FloatArray,
    v_max: FloatArray,
    gamma: float,
    adds: bool,
    means: Means,
    totals: FloatArray,
    values: FloatArray,
) -> None:
    """Fill a table with the empirical model; a pair never tried leads to any x with equal chance.

    `bonus[h, x, a]` is left out unless it `adds`; that of a pair never tried is v_h. No episode is
    known to end. The table may have fewer stages than the plan: the first of them. `means` are
    computed, and `totals[h]` becomes the sum of V_h.
    """
    n, _, listed, outcome, _ = seen
    stages, n_x, n_actions = values.shape
    known, others, n_known = np.empty(n_x, np.int32), np.empty(n_x, np.int32), 0
    for x in range(n_x):
        if _average(seen, means, x) > 0:
            known[n_known] = x
            n_known += 1
        else:
            others[x - n_known] = x
    ahead, total = np.zeros(n_x), 0.0  # gamma V_h+1, and the sum of V_h+1
    value = np.empty(n_known)  # V_h
    for h in range(v_max.size - 1, -1, -1):
        anywhere, top = gamma * (total / n_x), v_max[h]
        blank = min(anywhere + top, top) if adds else min(anywhere, top)
        total = (n_x - n_known) * blank
        for i in range(n_known):
            x, best = known[i], -np.inf
            for a in range(n_actions):
                worth = anywhere
                if n[x, a] > 0:
                    worth = means.reward[x, a]
                    for k in range(listed[x]):
                        worth += means.share[x, a, k] * ahead[outcome[x, k]]
                if adds:
                    worth += bonus[h, x, a]
                worth = worth if worth < top else top
                if h < stages:
                    values[h, x, a] = worth
                best = max(best, worth)
            value[i] = best
            total += best
        for i in range(n_known):
            ahead[known[i]] = gamma * value[i]
        for i in range(n_x - n_known):
            ahead[others[i]] = gamma * blank
        if h < stages:
            totals[h] = total
            for i in range(n_x - n_known):
                for a in range(n_actions):
                    values[h, others[i], a] = blank


@_compiled
def keep_up_with_bonuses(
    seen: Seen,
    bonus: FloatArray,
    v_max: FloatArray,
    gamma: float,
    planned: IntArray,
    feeders: Feeders,
    means: Means,
    totals: FloatArray,
    values: FloatArray,
) -> bool:
    """Change a table that `plan_with_bonuses` filled to what it would fill in now, with bonuses.

    Only x that were visited since, `planned[x]` times before, are computed at every stage, and x
    with a successor whose value is another, be it by a bit. This is possible while the mean of V is
    positive at every stage, so that pairs never tried have the value v_h: returns whether it was.
    """
    n, _, listed, outcome, _ = seen
    horizon, n_x, n_actions = values.shape
    possible = True
    for h in range(horizon):
        possible &= totals[h] > 1e-6 * n_x * v_max[h]  # far more than rounding errors
    work = np.empty((3, n_x), np.int32)  # visited since; others, of one stage, by turns
    queued = np.full(n_x, horizon, np.int32)  # the last stage to compute; -1 if all
    ahead, visited, more = np.zeros(outcome.shape[1]), 0, 0
    for x in range(n_x if possible else 0):
        visits = 0
        for a in range(n_actions):
            visits += n[x, a]
        if visits != planned[x]:
            planned[x], queued[x] = _average(seen, means, x), -1
            work[0, visited] = x
            visited += 1
    for h in range(horizon - 1, -1, -1):
        top, now, count, more = v_max[h], 1 + h % 2, visited + more, 0
        for i in range(count):
            x = work[0, i] if i < visited else work[now, i - visited]
            before = best = -np.inf
            for k in range(listed[x] if h + 1 < horizon else 0):
                after = -np.inf
                for a in range(n_actions):
                    after = max(after, values[h + 1, outcome[x, k], a])
                ahead[k] = gamma * after
            for a in range(n_actions):
                before = max(before, values[h, x, a])
                worth = top
                if n[x, a] > 0:
                    worth = means.reward[x, a]
                    for k in range(listed[x] if h + 1 < horizon else 0):
                        worth += means.share[x, a, k] * ahead[k]
                    worth += bonus[h, x, a]
                    worth = worth if worth < top else top
                values[h, x, a] = worth
                best = max(best, worth)
            if best != before:
                totals[h] += best - before
                for f in range(feeders.ends[x - 1] if x > 0 else 0, feeders.ends[x]):
                    if queued[feeders.feeder[f]] >= h:
                        queued[feeders.feeder[f]] = h - 1
                        work[3 - now, more] = feeders.feeder[f]
                        more += 1
        possible &= totals[h] > 1e-6 * n_x * top
    return possible


@_compiled
def plan_monotone(
    seen: Seen,
    done: BoolArray,
    visits: IntArray,
    rule: Concentration,
    gamma: float,
    values: FloatArray,
) -> None:
    """Lower a table to the optimistic values of the counts of now; no value rises.

    `visits[h, x]` is the number of episodes that were in x at stage h. A pair that was never tried
    keeps its value. Where the episode is over, values are 0.
    """
    n, rho, listed, outcome, tau = seen
    log, top, hoeffding, correction = rule
    horizon, n_x, n_actions = values.shape
    value, ahead = np.zeros(n_x), np.zeros(n_x)  # V_h, gamma V_h+1
    for h in range(horizon - 1, -1, -1):
        for x in range(n_x):
            ahead[x] = gamma * value[x]
        for x in range(n_x):
            if done[x]:
                value[x] = 0.0
                for a in range(n_actions):
                    values[h, x, a] = 0.0
                continue
            best = -np.inf
            for a in range(n_actions):
                tried = n[x, a]
                if tried > 0:
                    mean = variance = unsure = 0.0
                    for k in range(listed[x]):
                        mean += tau[x, a, k] / tried * ahead[outcome[x, k]]
                    if hoeffding:
                        bonus = 7.0 * top * log * np.sqrt(1.0 / tried)
                    else:
                        for k in range(listed[x]):
                            share, y = tau[x, a, k] / tried, outcome[x, k]
                            variance += share * (ahead[y] - mean) * (ahead[y] - mean)
                            if h + 1 < horizon:  # the value after the last stage is known
                                met, most = visits[h + 1, y], top * top
                                unsure += share * (min(correction / met, most) if met > 0 else most)
                        bonus = np.sqrt(8.0 * log * variance / tried)
                        bonus += 14.0 * top * log / (3.0 * tried)
                        bonus += np.sqrt(8.0 * unsure / tried)
                    worth = min(top, rho[x, a] / tried + mean + bonus)
                    values[h, x, a] = min(values[h, x, a], worth)
                best = max(best, values[h, x, a])
            value[x] = best


@_compiled
def plan_models(
    models: SampledModels,
    done: BoolArray,
    v_next: FloatArray,
    optimistic: bool,
    gamma: float,
    values: FloatArray,
) -> None:
    """Fill a table with the largest value among the models, `[h, x, a]`.

    What is not listed is worth `v_next[h]` if that is `optimistic`, else the mean of V_h+1.
    """
    succ, weight, listed, rest, reward = models
    horizon, n_x, n_actions = values.shape
    value, ahead = np.zeros(n_x), np.zeros(n_x)  # V_h, gamma V_h+1
    for h in range(horizon - 1, -1, -1):
        unseen = 0.0
        for x in range(n_x):
            ahead[x] = gamma * value[x]
            unseen += ahead[x]
        unseen = gamma * v_next[h] if optimistic else unseen / n_x
        for x in range(n_x):
            for a in range(n_actions):
                values[h, x, a] = 0.0 if done[x] else -np.inf
            value[x] = 0.0
            if done[x]:
                continue
            best = -np.inf
            for o in range(reward.shape[1]):
                worth = reward[x, o] + rest[x, o] * unseen
                for k in range(listed[x, o]):
                    worth += weight[x, o, k] * ahead[succ[x, o, k]]
                a = o % n_actions
                values[h, x, a] = max(values[h, x, a], worth)
                best = max(best, worth)
            value[x] = best
