"""Extended value iteration: the best average reward of the models in confidence sets (compiled).

    G(q, z)    = R_Q(q, z) + u(q', z)                 q' the machine's state after q, on reaching z
               = R_Q(q, z) + sum start(q, s) u(q, s)  if the episode is over there
               = r_max + max_q' u(q', z)              if z was never reached
    u'(q, s)   = max_a R(s, a) + max { sum_z p(z) G(q, z) :  p in the set of (s, a) }
               = r_max + max_z G(q, z)                for an action that was never tried

until the span of u' - u is small. The set of (s, a) is one of

    L1 ball       sum_z |p(z) - P(z)| <= radius(s, a)
    intervals     low(s, a, z) <= p(z) <= high(s, a, z)

on the listed successors and, `anywhere`, on all states: those that were never seen from s have
P(z) = low = 0 and high = `free(s, a)`. In intervals, all successors begin at `low`, and the rest of
the probability goes to the best ones in turn, each up to `high`.

There is no average reward to converge to if some pairs cannot lead to others, so that sweeps are
limited; u is kept from plan to plan. Its least entry is subtracted, as only differences count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qrmax.planning.compilation import compiled, inner
from qrmax.planning.confidence_sets import largest_in_l1

if TYPE_CHECKING:  # numba does not read annotations
    from numpy.typing import NDArray

    from qrmax.empirical.successors import Seen
    from qrmax.planning.arrays import BoolArray, FloatArray, IntArray, TaskModel

    LongArray = NDArray[np.int64]

_compiled, _inner = compiled, inner


class TransitionSets(NamedTuple):
    """Confidence sets around the empirical rows."""

    radius: FloatArray  # [s, a], of an L1 ball
    low: FloatArray  # [s, a, k], of an interval
    high: FloatArray  # [s, a, k]
    free: FloatArray  # [s, a], the upper end for states that are not listed
    intervals: bool  # else L1 balls
    anywhere: bool  # whether states that are not listed belong to the sets


@_inner
def _largest_in_intervals(
    seen: Seen, sets: TransitionSets, s: int, a: int, gain: FloatArray, best_first: LongArray
) -> float:
    """The largest expectation of G(q, .) with probabilities in intervals."""
    outcome, size = seen.outcome, seen.listed[s]
    left, total = 1.0, 0.0
    for k in range(size):
        left -= sets.low[s, a, k]
        total += sets.low[s, a, k] * gain[outcome[s, k]]
    for i in range(best_first.size):
        z, room = best_first[i], sets.free[s, a]
        place = 0
        while place < size and outcome[s, place] != z:
            place += 1
        if place < size:
            room = sets.high[s, a, place] - sets.low[s, a, place]
        elif not sets.anywhere:
            continue
        moved = min(left, room)
        total += moved * gain[z]
        left -= moved
        if left <= 0.0:
            break
    return total


@_inner
def _fill_gains(
    task: TaskModel,
    done: BoolArray,
    start: FloatArray,
    unit: float,
    u: FloatArray,
    gain: FloatArray,
) -> None:
    """G of all pairs."""
    again = 0.0
    for q in range(u.shape[0]):
        for s in range(u.shape[1]):
            again += start[q, s] * u[q, s]
    for q in range(u.shape[0]):
        for s in range(u.shape[1]):
            if task.reward[q, s] == np.inf:
                best = u[0, s]
                for p in range(1, u.shape[0]):
                    best = max(best, u[p, s])
                gain[q, s] = unit + best
            else:
                q_next = task.next_state[q, s, 0]
                gain[q, s] = task.reward[q, s] + (again if done[q_next, s] else u[q_next, s])


@_compiled
def extended_value_iteration(
    seen: Seen,
    task: TaskModel,
    done: BoolArray,
    start: FloatArray,
    sets: TransitionSets,
    unit: float,
    accuracy: float,
    limit: int,
    u: FloatArray,
    policy: IntArray,
) -> int:
    """Update u and the greedy policy, both `[q, s]`; returns the number of sweeps.

    `start` is the distribution of starts, `unit` the largest reward of a step; stops when the span
    of a change is below the accuracy, or after so many sweeps.
    """
    n, rho, listed, outcome, tau = seen
    n_q, n_states = u.shape
    n_actions = n.shape[1]
    gain, new = np.empty((n_q, n_states)), np.zeros((n_q, n_states))
    worth = np.empty((2, outcome.shape[1]))
    sweeps = 0
    while sweeps < limit:
        sweeps += 1
        _fill_gains(task, done, start, unit, u, gain)
        least, low, high = np.inf, np.inf, -np.inf
        for q in range(n_q):
            best_first = np.argsort(-gain[q], kind="mergesort")
            top = gain[q, best_first[0]]
            for s in range(n_states):
                if done[q, s]:
                    continue
                best = -np.inf
                for a in range(n_actions):
                    if n[s, a] == 0:
                        total = unit + top
                    else:
                        total = 0.0
                        if sets.intervals:
                            total += _largest_in_intervals(seen, sets, s, a, gain[q], best_first)
                        else:
                            for k in range(listed[s]):
                                worth[0, k] = gain[q, outcome[s, k]]
                                worth[1, k] = tau[s, a, k] / n[s, a]
                            beyond = top if sets.anywhere else -np.inf
                            size, radius = listed[s], sets.radius[s, a]
                            total += largest_in_l1(worth, size, radius, beyond)
                        for k in range(listed[s]):
                            total += rho[s, a, k] / n[s, a]
                    if total > best:
                        best = total
                        policy[q, s] = a
                new[q, s] = best
                least = min(least, best)
                low, high = min(low, best - u[q, s]), max(high, best - u[q, s])
        for q in range(n_q):
            for s in range(n_states):
                u[q, s] = 0.0 if done[q, s] else new[q, s] - least
        if high - low < accuracy:
            break
    return sweeps
