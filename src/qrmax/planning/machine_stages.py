"""Stage tables on the two factors, with the bonus of Lin and Zhang, 2025 (compiled).

    Q_h(q, s, a) = min(top, Q_h of the last plan, fixed_h + E_p W_h+1 + slope sqrt(Var_p W_h+1))
    W_h(q, z)    = gamma V_h(q', z),  q' the machine's state after it was in q and z was reached
    V_h(q, s)    = max_a Q_h(q, s, a),  0 where the episode is over;  V_H = 0

    slope        = c sqrt(8 L / n)
    fixed_h      = rho / n + E_p R_Q
                   + c (14 top L / (3 n) + sqrt(8 E_p u_h+1 / n) + r sqrt(2 L / n))
    u_h(z)       = min(C / N'_h(z), top^2)

No value rises, and a pair that was never tried keeps its own. Counts are by (s, a); the machine is
deterministic, and known where it has been. N'_h(z) is the number of episodes that were in z at
stage h, and C so large that u_h is mostly top^2, which `corrects` tells. Then `fixed` is the same
at all stages, and `keep_up_with_machine` computes only what can be another value than in the last
plan, for four actions at a time. `plan_with_machine` is the definition: both fill in the same
values, bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from qrmax.planning.compilation import compiled, inner
from qrmax.planning.lanes import LANES, add, fill, load, mul, part, root, sub

if TYPE_CHECKING:  # numba does not read annotations
    from collections.abc import Callable

    from qrmax.empirical.successors import Seen
    from qrmax.planning.arrays import BoolArray, FloatArray, IntArray, TaskModel
    from qrmax.planning.finite_horizon import Feeders

_compiled, _inner = compiled, inner
_at = cast("Callable[[Any], int]", np.uint64)  # an index that needs no check for being negative


class MachineBonus(NamedTuple):
    """The constants of the bonus of Lin and Zhang, who share samples among machine states."""

    log: float  # L = ln(6 O A T / delta)
    top: float  # the largest return of an episode, H in the paper
    correction: float  # C = 100^2 H^3 O^2 A L^2, times the square of the largest reward
    unit: float  # r, the largest reward
    scale: float  # c


class KeptPlan(NamedTuple):
    """The terms of the last plan, from which the next one is made."""

    planned: IntArray  # [s], visit count; -1: everything is to be computed
    over: BoolArray  # [q, s], whether the episode is over there
    value: FloatArray  # [h, q, s], V_h; V_H too
    share: FloatArray  # [s, k, a], of the successors; actions are padded, here and below
    fixed: FloatArray  # [q, s, a]
    slope: FloatArray  # [s, a]


def make_kept_plan(horizon: int, n_task_states: int, seen: Seen) -> KeptPlan:
    """Allocate the terms of a plan for these counts, of which everything is to be computed."""
    n_states, n_actions, n_succ = seen.tau.shape
    width = -(-n_actions // LANES) * LANES
    return KeptPlan(
        planned=np.full(n_states, -1, dtype=np.int32),
        over=np.zeros((n_task_states, n_states), dtype=bool),
        value=np.zeros((horizon + 1, n_task_states, n_states)),
        share=np.zeros((n_states, n_succ, width)),
        fixed=np.zeros((n_task_states, n_states, width)),
        slope=np.zeros((n_states, width)),
    )


def corrects(visits: IntArray, rule: MachineBonus) -> bool:
    """Whether u_h may be less than top^2 somewhere.

    Every episode begins at stage 0, so that none of the counts is above the number of episodes.
    """
    episodes = int(visits[0].sum())
    return episodes > 0 and not rule.correction / episodes >= rule.top * rule.top


@_compiled
def plan_with_machine(
    seen: Seen,
    task: TaskModel,
    done: BoolArray,
    visits: IntArray,
    rule: MachineBonus,
    gamma: float,
    values: FloatArray,
) -> None:
    """Lower a table `[h, s |Q| + q, a]` to the optimistic values of the counts of now.

    `visits[h, s]` is N', the number of episodes that were in s at stage h.
    """
    n, rho, listed, outcome, tau = seen
    log, top, correction, unit, scale = rule
    horizon, n_actions = values.shape[0], values.shape[2]
    n_q, n_states = done.shape
    value = np.zeros((n_q, n_states))  # V_h+1
    for h in range(horizon - 1, -1, -1):
        ahead = np.empty((n_q, n_states))  # W_h+1
        for q in range(n_q):
            for s in range(n_states):
                ahead[q, s] = gamma * value[task.next_state[q, s, 0], s]
        for s in range(n_states):
            for q in range(n_q):
                x, best = s * n_q + q, -np.inf
                for a in range(n_actions):
                    tried = n[s, a]
                    if done[q, s]:
                        values[h, x, a] = 0.0
                    elif tried > 0:
                        paid = unsure = mean = variance = 0.0
                        for k in range(listed[s]):
                            share, z = tau[s, a, k] / tried, outcome[s, k]
                            met = visits[h + 1, z] if h + 1 < horizon else 0
                            most = min(correction / met, top * top) if met > 0 else top * top
                            paid += share * task.reward[q, z]
                            unsure += share * most
                            mean += share * ahead[q, z]
                        for k in range(listed[s]):
                            share, off = tau[s, a, k] / tried, ahead[q, outcome[s, k]] - mean
                            variance += share * off * off
                        bonus = 14.0 * top * log / (3.0 * tried) + np.sqrt(8.0 * unsure / tried)
                        bonus += unit * np.sqrt(2.0 * log / tried)
                        fixed = rho[s, a] / tried + paid + scale * bonus
                        slope = scale * np.sqrt(8.0 * log / tried)
                        worth = fixed + mean + slope * np.sqrt(variance)
                        values[h, x, a] = min(values[h, x, a], min(top, worth))
                    best = max(best, values[h, x, a])
                value[q, s] = best


@_compiled
def keep_up_with_machine(
    seen: Seen,
    task: TaskModel,
    done: BoolArray,
    rule: MachineBonus,
    gamma: float,
    feeders: Feeders,
    kept: KeptPlan,
    values: FloatArray,
) -> None:
    """Lower a table to what `plan_with_machine` would make of it, as long as u_h is top^2.

    Computed at every stage are the pairs of an s that was visited since the last plan, and those
    with a successor whose value is another than then, be it by a bit. `feeders` are predecessors.
    """
    listed, outcome, n = seen.listed, seen.outcome, seen.n
    _, _, value, share, fixed, slope = kept
    horizon, n_actions = values.shape[0], values.shape[2]
    n_q, n_states = done.shape
    n_succ, width, top = share.shape[1], share.shape[2], rule.top
    shares, fixes, slopes = share.reshape(-1), fixed.reshape(-1), slope.reshape(-1)
    work = np.empty((3, n_q * n_states), np.int32)  # pairs of all stages; of one stage, by turns
    queued = np.full(n_q * n_states, horizon, np.int32)  # the last stage to compute; -1 if all
    ahead, always, more = np.empty(n_succ), 0, 0
    _end_episodes(done, feeders, kept, values)
    for s in range(n_states):
        if _take_up(seen, task, rule, kept, values, s):
            for q in range(n_q):
                if not done[q, s]:
                    queued[q * n_states + s] = -1
                    work[0, always] = q * n_states + s
                    always += 1
    for h in range(horizon - 1, -1, -1):
        now, count, more = 1 + h % 2, always + more, 0
        for i in range(count):
            pair = work[0, i] if i < always else work[now, i - always]
            q, s = pair // n_states, pair % n_states
            x, best = s * n_q + q, -np.inf
            for k in range(listed[s]):
                z = outcome[s, k]
                ahead[k] = gamma * value[h + 1, task.next_state[q, z, 0], z]
            for lane in range(0, width, LANES):
                mean, variance = fill(0.0), fill(0.0)
                e = _at(s * n_succ * width + lane)
                for k in range(listed[s]):
                    mean = add(mean, mul(load(shares, e), fill(ahead[k])))
                    e += _at(width)
                e = _at(s * n_succ * width + lane)
                for k in range(listed[s]):
                    off = sub(fill(ahead[k]), mean)
                    variance = add(variance, mul(mul(load(shares, e), off), off))
                    e += _at(width)
                bonus = mul(load(slopes, _at(s * width + lane)), root(variance))
                still = load(fixes, _at((q * n_states + s) * width + lane))
                worth = add(add(still, mean), bonus)
                for j in range(LANES):
                    a = lane + j
                    if a < n_actions:
                        if n[s, a] > 0:
                            values[h, x, a] = min(values[h, x, a], min(top, part(worth, j)))
                        best = max(best, values[h, x, a])
            if best != value[h, q, s]:
                value[h, q, s] = best
                for before in range(n_q if h > 0 else 0):
                    if task.next_state[before, s, 0] == q:
                        for f in range(feeders.ends[s - 1] if s > 0 else 0, feeders.ends[s]):
                            origin = before * n_states + feeders.feeder[f]
                            if queued[origin] >= h and not done[before, feeders.feeder[f]]:
                                queued[origin] = h - 1
                                work[3 - now, more] = origin
                                more += 1


@_inner
def _end_episodes(done: BoolArray, feeders: Feeders, kept: KeptPlan, values: FloatArray) -> None:
    """Set the values of pairs that are known to end the episode since the last plan to 0."""
    n_q, n_states = done.shape
    for q in range(n_q):
        for s in range(n_states):
            if done[q, s] and not kept.over[q, s]:
                kept.over[q, s] = True
                for h in range(values.shape[0]):
                    kept.value[h, q, s] = 0.0
                    for a in range(values.shape[2]):
                        values[h, s * n_q + q, a] = 0.0
                for f in range(feeders.ends[s - 1] if s > 0 else 0, feeders.ends[s]):
                    kept.planned[feeders.feeder[f]] = min(kept.planned[feeders.feeder[f]], 0)


@_inner
def _take_up(
    seen: Seen, task: TaskModel, rule: MachineBonus, kept: KeptPlan, values: FloatArray, s: int
) -> bool:
    """Compute the terms of s, if it was visited since the last plan; whether it was."""
    n, rho, listed, outcome, tau = seen
    log, top, _, unit, scale = rule
    n_q, visited = kept.over.shape[0], 0
    for a in range(n.shape[1]):
        visited += n[s, a]
    if kept.planned[s] == visited:
        return False
    for q in range(n_q if kept.planned[s] < 0 else 0):
        for h in range(values.shape[0]):
            best = -np.inf
            for a in range(n.shape[1]):
                best = max(best, values[h, s * n_q + q, a])
            kept.value[h, q, s] = best
    kept.planned[s] = visited
    for a in range(n.shape[1]):
        tried = n[s, a]
        if tried > 0:
            unsure = 0.0
            for k in range(listed[s]):
                kept.share[s, k, a] = tau[s, a, k] / tried
                unsure += kept.share[s, k, a] * (top * top)
            bonus = 14.0 * top * log / (3.0 * tried) + np.sqrt(8.0 * unsure / tried)
            bonus += unit * np.sqrt(2.0 * log / tried)
            kept.slope[s, a] = scale * np.sqrt(8.0 * log / tried)
            for q in range(n_q):
                paid = 0.0
                for k in range(listed[s]):
                    paid += kept.share[s, k, a] * task.reward[q, outcome[s, k]]
                kept.fixed[q, s, a] = rho[s, a] / tried + paid + scale * bonus
    return True
