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

from qrmax.planning.compilation import compiled, inlined, inner
from qrmax.planning.confidence_sets import largest_in_l1

if TYPE_CHECKING:  # numba does not read annotations
    from numpy.typing import NDArray

    from qrmax.empirical.successors import Seen
    from qrmax.planning.arrays import BoolArray, FloatArray, IntArray, TaskModel

    LongArray = NDArray[np.int64]

_compiled, _inner, _inlined = compiled, inner, inlined


class TransitionSets(NamedTuple):
    """Confidence sets around the empirical rows."""

    radius: FloatArray  # [s, a], of an L1 ball
    low: FloatArray  # [s, a, k], of an interval
    high: FloatArray  # [s, a, k]
    free: FloatArray  # [s, a], the upper end for states that are not listed
    intervals: bool  # else L1 balls
    anywhere: bool  # whether states that are not listed belong to the sets


@_inlined
def _largest_in_intervals(
    sets: TransitionSets,
    succ: IntArray,
    gain: FloatArray,
    best_first: LongArray,
    place: IntArray,
    size: int,
    q: int,
    s: int,
    a: int,
) -> float:
    """The largest expectation of G(q, .) with probabilities in intervals.

    `place[z]` is that of z in the list of s, or -1.
    """
    left, total = 1.0, 0.0
    for k in range(size):
        left -= sets.low[s, a, k]
        total += sets.low[s, a, k] * gain[q, succ[s, k]]
    i = 0
    while i < best_first.size:
        z = best_first[i]
        k = place[z]
        i += 1
        if k >= 0 or sets.anywhere:
            room = sets.high[s, a, k] - sets.low[s, a, k] if k >= 0 else sets.free[s, a]
            moved = min(left, room)
            total += moved * gain[q, z]
            left -= moved
            if left <= 0.0:
                i = best_first.size
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


@_inner
def _fill_means(seen: Seen, prob: FloatArray, reward: FloatArray) -> None:
    """P(x | s, a), and what each transition adds to the mean reward of (s, a)."""
    n, rho, listed, _, tau = seen
    for s in range(n.shape[0]):
        for a in range(n.shape[1]):
            for k in range(listed[s] if n[s, a] > 0 else 0):
                prob[s, a, k] = tau[s, a, k] / n[s, a]
                reward[s, a, k] = rho[s, a, k] / n[s, a]


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
    n, _, listed, succ, tau = seen
    n_q, n_states = u.shape
    n_actions, width = tau.shape[1:]
    gain, new = np.empty((n_q, n_states)), np.zeros((n_q, n_states))
    prob, reward = np.zeros(tau.shape), np.zeros(tau.shape)
    _fill_means(seen, prob, reward)
    worth, place = np.empty((2, width)), np.full(n_states, -1, np.int32)
    sweeps = 0
    while sweeps < limit:
        sweeps += 1
        _fill_gains(task, done, start, unit, u, gain)
        least, low, high = np.inf, np.inf, -np.inf
        for q in range(n_q):
            best_first = np.argsort(-gain[q], kind="mergesort")
            top = gain[q, best_first[0]]
            beyond = top if sets.anywhere else -np.inf
            for s in range(n_states):
                if done[q, s]:
                    continue
                best, size = -np.inf, listed[s]
                for k in range(size):
                    place[succ[s, k]] = k
                    worth[0, k] = gain[q, succ[s, k]]
                for a in range(n_actions):
                    if n[s, a] == 0:
                        total = unit + top
                    elif sets.intervals:
                        total = _largest_in_intervals(
                            sets, succ, gain, best_first, place, size, q, s, a
                        )
                    else:
                        for k in range(size):
                            worth[1, k] = prob[s, a, k]
                        total = largest_in_l1(worth, size, sets.radius[s, a], beyond)
                    for k in range(size):
                        total += reward[s, a, k]
                    if total > best:
                        best = total
                        policy[q, s] = a
                for k in range(size):
                    place[succ[s, k]] = -1
                new[q, s] = best
                least = min(least, best)
                low, high = min(low, best - u[q, s]), max(high, best - u[q, s])
        for q in range(n_q):
            for s in range(n_states):
                u[q, s] = 0.0 if done[q, s] else new[q, s] - least
        if high - low < accuracy:
            break
    return sweeps
