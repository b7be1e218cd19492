"""Optimistic planning over confidence sets of transition rows, on the two factors (compiled).

    G(q, x)    = R_Q(q, x) + gamma sum_q' P(q' | q, x) V(x, q')     v_max while it is unknown
    Q(s, q, a) = min(v_max, U_sa (R(s, a, .) + G(q, .)))            v_max while (s, a) is unknown
    V(s, q)    = max_a Q(s, q, a),  0 if (s, q) is terminal

    U_sa W     = max { sum_x p(x) W(x) :  p a distribution, |p - P(. | s, a)| <= radius(s, a) }

is the largest expectation in a ball around the row P(. | s, a). A `base` value may be added to it,
such as an exploration bonus. There are three kinds of balls:

    CHI_SQUARE    sum_x (p(x) - P(x))^2 / P(x),  p on the listed successors of s
    L1            sum_x |p(x) - P(x)|,           p on the listed successors of s
    L1_ANYWHERE   the same, p on these and on one more that is worth v_max

*Chi-square.* With radius c^2 / n it is E_P W + c sd_P(W) / sqrt(n), unless that needs negative
probabilities: then the lowest successors drop out one after the other. With A the successors that
are left, P(A) their probability, and mean and variance those of P given A,

    U W = mean_A + sqrt(((1 + radius) P(A) - 1) var_A)

until the best successor alone fits into the ball. (Of successors with P(x) > 0: others have no
probability anywhere in the ball.)

*L1.* Half the radius of probability moves from the worst successors to the best (Strehl and
Littman, 2008). Mass that may go ANYWHERE goes to v_max, so that values much below v_max drown.

U is monotone and non-expansive: the optimistic Bellman operator is a gamma-contraction with one
fixed point, which backups in any order approach. (A bonus that depends on values and is merely
capped is not monotone, and sweeps may cycle.) On the listed successors no value exceeds that of the
best, and nothing depends on the scale of rewards. Radius 0 is the plain expectation.

Backups go through worklists, one for each machine state, machine layers last first, as in
`kernels.settle`. NumPy's version is `reference.back_up_confidence_sets`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qrmax.planning.arrays import Rows, Tables, Worklist
from qrmax.planning.compilation import compiled, inlined, inner

if TYPE_CHECKING:  # numba does not read annotations
    from qrmax.planning.arrays import FloatArray, IntArray, Order, Rules, TaskModel

_compiled, _inner, _inlined = compiled, inner, inlined

NO_EDGE = -1  # as in kernels.py
_NEGLIGIBLE = 1e-300  # as in kernels.py

CHI_SQUARE, L1, L1_ANYWHERE = BALLS = (None, 1, 2)
"""Kinds of confidence sets; one is None, so that kernels are compiled without the others."""


# --- backups


@_inlined
def fill_row_values(
    rows: Rows,
    gain: FloatArray,
    optimistic: float,
    q: int,
    s: int,
    worth: FloatArray,
    values: FloatArray,
) -> None:
    """Q(s, q, .) into `values`, given G; `worth`, `[2, k]`, is a buffer for all successors.

    In one piece, and inlined: to pass arrays on for every action would cost more than the rest.
    """
    if rows.ball is not CHI_SQUARE:
        _fill_by_l1(rows, gain, optimistic, q, s, worth, values)
        return
    succ, listed, prob, reward, base, radius = rows[:6]
    size = listed[s]
    for a in range(values.size):
        if base[s, a] == np.inf:
            values[a] = optimistic
            continue
        if base[s, a] == -np.inf:
            values[a] = -np.inf
            continue
        best, lowest, mean = -np.inf, np.inf, 0.0
        top = 0.0  # the probability of the best
        for k in range(size):
            w, p = reward[s, a, k] + gain[q, succ[s, k]], prob[s, a, k]
            worth[0, k] = w
            if p > 0.0:  # others are out of reach
                if w > best:
                    best, top = w, p
                elif w == best:
                    top += p
                lowest = min(lowest, w)
                mean += p * w
        found, mass, wide = mean, 1.0, 1.0 + radius[s, a]
        reaches = top * wide >= 1.0  # the best alone
        if reaches and radius[s, a] > 0.0 and best != lowest:
            found = best
        searching = not reaches and radius[s, a] > 0.0 and best != lowest
        while searching:
            variance = 0.0
            for k in range(size):
                if worth[0, k] >= lowest:
                    variance += prob[s, a, k] * (worth[0, k] - mean) * (worth[0, k] - mean)
            variance /= mass
            free = mass * wide - 1.0
            if free <= 0.0 or variance <= 0.0:  # by rounding
                found, searching = mean, False
            elif np.sqrt(free) * (mean - lowest) <= np.sqrt(variance):
                found, searching = min(best, mean + np.sqrt(free * variance)), False
            else:  # the lowest drop out
                least, lowest = lowest, np.inf
                mass = mean = 0.0
                for k in range(size):
                    if worth[0, k] > least and prob[s, a, k] > 0.0:
                        lowest = min(lowest, worth[0, k])
                        mass += prob[s, a, k]
                        mean += prob[s, a, k] * worth[0, k]
                mean /= mass
        values[a] = min(base[s, a] + found, optimistic)


@_inlined
def _fill_by_l1(
    rows: Rows,
    gain: FloatArray,
    optimistic: float,
    q: int,
    s: int,
    worth: FloatArray,
    values: FloatArray,
) -> None:
    """The same by L1 balls."""
    succ, listed, prob, reward, base, radius = rows[:6]
    size = listed[s]
    beyond = optimistic if rows.ball == L1_ANYWHERE else -np.inf
    for a in range(values.size):
        if base[s, a] == np.inf:
            values[a] = optimistic
        elif base[s, a] == -np.inf:
            values[a] = -np.inf
        else:
            for k in range(size):
                worth[0, k] = reward[s, a, k] + gain[q, succ[s, k]]
                worth[1, k] = prob[s, a, k]
            total = base[s, a] + largest_in_l1(worth, size, radius[s, a], beyond)
            values[a] = min(total, optimistic)


@_inlined
def largest_in_l1(worth: FloatArray, size: int, radius: float, beyond: float) -> float:
    """U W, with W and P the first `size` entries of `worth[0]` and `worth[1]`.

    `beyond` is the value of a successor that is not listed.
    """
    best, mean = beyond, 0.0
    for k in range(size):
        best = max(best, worth[0, k])
        mean += worth[1, k] * worth[0, k]
    left, level = 0.5 * radius, -np.inf
    while left > 0.0:
        lowest, mass = np.inf, 0.0
        for k in range(size):
            if level < worth[0, k] < lowest:
                lowest, mass = worth[0, k], worth[1, k]
            elif worth[0, k] == lowest:
                mass += worth[1, k]
        if lowest >= best:
            mean, left = best, 0.0
        else:
            moved = min(left, mass)
            mean += moved * (best - lowest)
            left -= moved
            level = lowest
    return min(best, mean)


@_compiled
def row_values(
    rows: Rows, gain: FloatArray, optimistic: float, q: int, s: int, values: FloatArray
) -> None:
    """Q(s, q, .) into `values`, given G, even if (s, q) is terminal."""
    fill_row_values(rows, gain, optimistic, q, s, np.empty((2, rows.succ.shape[1])), values)


@_compiled
def all_row_values(rows: Rows, tables: Tables, optimistic: float, table: FloatArray) -> None:
    """Q as `[q, s, a]` into a table, 0 in terminal pairs."""
    worth, values = np.empty((2, rows.succ.shape[1])), np.zeros(table.shape[2])
    for q in range(table.shape[0]):
        for s in range(table.shape[1]):
            if tables.done[q, s]:
                for a in range(values.size):
                    table[q, s, a] = 0.0
                continue
            fill_row_values(rows, tables.gain, optimistic, q, s, worth, values)
            for a in range(values.size):
                table[q, s, a] = values[a]


# --- chains of predecessors


@_compiled
def link_successors(rows: Rows, s: int, first: int) -> None:
    """Enter the successors of s from number `first` on into the chains of predecessors."""
    for k in range(first, rows.listed[s]):
        edge, target = s * rows.succ.shape[1] + k, rows.succ[s, k]
        rows.link[edge] = rows.head[target]
        rows.head[target] = edge


# --- worklists


@_inner
def _push(work: Worklist, q: int, s: int) -> None:
    """Queue (q, s) for a backup, once."""
    ring, first, length, waiting = work
    if not waiting[q, s]:
        waiting[q, s] = True
        place = first[q] + length[q]
        if place >= ring.shape[1]:
            place -= ring.shape[1]
        ring[q, place] = s
        length[q] += 1


@_compiled
def rows_changed(work: Worklist, changed: IntArray) -> None:
    """Queue the states whose rows have changed, in every machine state."""
    for q in range(work.ring.shape[0]):
        for i in range(changed.size):
            _push(work, q, changed[i])


@_inner
def _gain_at(
    task: TaskModel, value: FloatArray, gamma: float, optimistic: float, q: int, s: int
) -> float:
    """G(q, s)."""
    total = task.reward[q, s]
    if total == np.inf:
        return optimistic
    for j in range(task.next_state.shape[2]):
        p = task.prob[q, s, j]
        if p > 0.0:
            total += gamma * p * value[task.next_state[q, s, j], s]
    return float(total)


@_compiled
def arrival_changed(
    rows: Rows, task: TaskModel, tables: Tables, work: Worklist, rules: Rules, q: int, s: int
) -> None:
    """Update G(q, s), and queue the predecessors of s: the machine or V(s, .) has changed."""
    gain = _gain_at(task, tables.value, rules.gamma, rules.optimistic, q, s)
    if gain == tables.gain[q, s]:
        return
    tables.gain[q, s] = gain
    width = rows.succ.shape[1]
    edge = rows.head[s]
    while edge != NO_EDGE:
        _push(work, q, edge // width)
        edge = rows.link[edge]


@_compiled
def fill_gains(task: TaskModel, tables: Tables, rules: Rules) -> None:
    """G of all pairs."""
    for q in range(tables.gain.shape[0]):
        for s in range(tables.gain.shape[1]):
            tables.gain[q, s] = _gain_at(task, tables.value, rules.gamma, rules.optimistic, q, s)


@_compiled
def settle_rows(
    rows: Rows, task: TaskModel, tables: Tables, work: Worklist, order: Order, rules: Rules
) -> int:
    """Process the worklists, layer by layer; returns the number of backups."""
    succ, listed, head, link = rows.succ, rows.listed, rows.head, rows.link
    value, gain, done = tables
    ring, first, length, waiting = work
    states, ends, feeders, feeder_ends = order
    gamma, tolerance, optimistic, signed = rules
    n_states, width = ring.shape[1], succ.shape[1]
    worth, values = np.empty((2, width)), np.empty(rows.base.shape[1])
    backups, layer, begin = 0, 0, 0
    while layer < ends.size:
        busy = False
        for place in range(begin, ends[layer]):
            q = states[place]
            for _ in range(length[q]):  # those queued when this round begins
                s = ring[q, first[q]]
                first[q] = first[q] + 1 if first[q] + 1 < n_states else 0
                length[q] -= 1
                waiting[q, s] = False
                if done[q, s]:
                    continue
                backups += 1
                fill_row_values(rows, gain, optimistic, q, s, worth, values)
                new = values[0]
                for a in range(1, values.size):
                    new = max(new, values[a])
                size = abs(new)
                if signed:  # terms may cancel
                    for k in range(listed[s]):
                        size = max(size, abs(gain[q, succ[s, k]]))
                if abs(new - value[q, s]) <= tolerance * size + _NEGLIGIBLE:
                    continue
                value[q, s] = new
                busy = True
                for i in range(feeder_ends[q - 1] if q > 0 else 0, feeder_ends[q]):
                    p = feeders[i]
                    leads = False
                    for j in range(task.next_state.shape[2]):
                        at_q = task.next_state[p, s, j] == q
                        leads = leads or (at_q and task.prob[p, s, j] > 0.0)
                    if leads:
                        gain[p, s] = _gain_at(task, value, gamma, optimistic, p, s)
                        # as `_push`, which would cost more than the rest
                        edge, end = head[s], first[p] + length[p]
                        if end >= n_states:
                            end -= n_states
                        while edge != NO_EDGE:
                            x = edge // width
                            if not waiting[p, x]:
                                waiting[p, x] = True
                                ring[p, end] = x
                                length[p] += 1
                                end = end + 1 if end + 1 < n_states else 0
                            edge = link[edge]
        if not busy:
            begin = ends[layer]
            layer += 1
    return backups
