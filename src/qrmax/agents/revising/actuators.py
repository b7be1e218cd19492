"""An actuator prior: an action may act like another one, the same way everywhere (compiled).

    K[a, b]       the probability that action a acts like action b, one matrix for the world
    x*(s, b)      the hidden nominal successor of (s, b), with posterior pm(s, b, x) on L(s), and
                  pu(s, b) that it was never seen from s

The structured row is p_K(x | s, a) ~ sum_b K[a, b] pm(s, b, x), over tried b. The posterior is
found in two mean-field rounds over the actions,

    log pm(s, b, x) = log(1 - h + h kappa)
                      + sum_a tau(s, a, x) log((r_a(x) + K[a, b] + e) / (r_a(x) + e)) + const
    r_a(x) = sum_{tried b' != b} K[a, b'] pm(s, b', x) + sum_{untried b'} K[a, b'] / (|A| + 1)
    h      = min(1, sum_{b' != b} pm(s, b', x)),  the probability that another action leads to x

with the weight 1 for "never seen", and e = 0.001. Two actions seldom share a successor: kappa is
the expected number of partners of an action that leads to x, one number for x = s and one for
x != s. K is fitted by expectation maximisation over the states in which all actions were tried.

Each row is one of three, by Bayes factors:

    w0   free       Dirichlet(alpha / m)
    w1   near p_K   Dirichlet(beta (0.9 p_K + 0.1 / m)),  beta = 10
    w2   p_K itself

The last two pay 1 / (m + 1) for choosing a successor. Prior weights are the mean responsibilities
of the rows with three samples or more, so that in a world without this structure w0 is near 1, and
rows are those of `transition_rows.py`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qrmax.agents.revising.transition_rows import mean_reward
from qrmax.planning.compilation import compiled, inner

if TYPE_CHECKING:  # numba does not read annotations
    from qrmax.empirical.successors import Seen
    from qrmax.planning.arrays import FloatArray, IntArray, Rows

_compiled, _inner = compiled, inner

SAME, OTHER = 1.0, 0.3  # prior counts of K, on and off the diagonal
LEAST_SELF, LEAST_OTHER = 0.02, 0.01  # the smallest kappa of x = s, and of others
_BETA = 10.0
_TINY = 1e-3  # e
_ROUNDS = 2
_JUDGED = 3  # samples from which on a row counts for the prior weights
_DOUBTED = 4  # samples up to which a pair that looks like slips alone is not known
_DOUBT = 0.1
_LASTING = 200.0  # pseudo-samples of the nominal successor of a row of p_K


class Actuators(NamedTuple):
    """Parameters that are fitted to the whole world."""

    matrix: FloatArray  # K, [a, b]
    kappa: FloatArray  # [2]: of x = s, of others
    weight: FloatArray  # [3]: w0, w1, w2


class RowRule(NamedTuple):
    """Rules by which rows are made from posteriors."""

    alpha: float  # of the evidence for free rows
    shrinkage: float  # the same, or 0: free rows are frequencies
    threshold: int  # samples before a pair counts as known
    squared_scale: float  # c^2
    doubts: bool  # whether pairs that look like slips alone are unknown


def make_actuators(actions: int) -> Actuators:
    """The parameters before anything was fitted."""
    matrix = np.full((actions, actions), OTHER) + (SAME - OTHER) * np.eye(actions)
    matrix /= matrix.sum(axis=1, keepdims=True)
    return Actuators(matrix, np.array([1.0, 1.0]), np.full(3, 1.0 / 3.0))


@_inner
def _fit_state(seen: Seen, actuators: Actuators, s: int, pm: FloatArray) -> None:
    """pm(s, b, k) for the tried actions b; the entry after the last successor is pu(s, b)."""
    n, _, listed, outcome, tau = seen
    matrix, kappa = actuators.matrix, actuators.kappa
    actions, size = n.shape[1], listed[s]
    for b in range(actions):
        for k in range(size):
            pm[b, k] = tau[s, b, k] / (n[s, b] + 1.0)
        pm[b, size] = 1.0 / (n[s, b] + 1.0)
    for _ in range(_ROUNDS):
        for b in range(actions):
            if n[s, b] == 0:
                continue
            most = 0.0  # the logarithm of the largest weight; that of "never seen" is 0
            for k in range(size):
                taken = 0.0
                for other in range(actions):
                    if other != b and n[s, other] > 0:
                        taken += pm[other, k]
                taken = min(1.0, taken)
                shared = kappa[0] if outcome[s, k] == s else kappa[1]
                total = math.log(1.0 - taken + taken * shared)
                for a in range(actions):
                    if tau[s, a, k] > 0:
                        rest = _TINY
                        for other in range(actions):
                            if other != b:
                                tried = n[s, other] > 0
                                share = pm[other, k] if tried else 1.0 / (actions + 1.0)
                                rest += matrix[a, other] * share
                        total += tau[s, a, k] * math.log((rest + matrix[a, b]) / rest)
                pm[b, k] = total
                most = max(most, total)
            mass = math.exp(-most)
            pm[b, size] = mass
            for k in range(size):
                pm[b, k] = math.exp(pm[b, k] - most)
                mass += pm[b, k]
            for k in range(size + 1):
                pm[b, k] /= mass


@_inner
def _structured_row(
    n: IntArray, matrix: FloatArray, pm: FloatArray, s: int, a: int, size: int, row: FloatArray
) -> None:
    """p_K(. | s, a) into `row`."""
    total = 0.0
    for k in range(size):
        row[k] = 0.0
        for b in range(n.shape[1]):
            if n[s, b] > 0:
                row[k] += matrix[a, b] * pm[b, k]
        total += row[k]
    for k in range(size):
        row[k] = row[k] / total if total > 0.0 else 1.0 / size


@_inner
def _responsibilities(
    seen: Seen,
    weight: FloatArray,
    alpha: float,
    s: int,
    a: int,
    row: FloatArray,
    share: FloatArray,
) -> None:
    """The posterior weights of the three kinds of rows into `share`."""
    n, _, listed, _, tau = seen
    size, visits = listed[s], n[s, a]
    free = math.lgamma(alpha) - math.lgamma(alpha + visits)
    near = math.lgamma(_BETA) - math.lgamma(_BETA + visits) - math.log(size + 1.0)
    exact = -math.log(size + 1.0)
    for k in range(size):
        times = tau[s, a, k]
        if times > 0:
            prior = _BETA * (0.9 * row[k] + 0.1 / size)
            free += math.lgamma(times + alpha / size) - math.lgamma(alpha / size)
            near += math.lgamma(times + prior) - math.lgamma(prior)
            exact += times * math.log(max(row[k], 1e-300))
    share[0], share[1], share[2] = free, near, exact
    most = max(free, near, exact)
    total = 0.0
    for i in range(3):
        share[i] = weight[i] * math.exp(share[i] - most)
        total += share[i]
    for i in range(3):
        share[i] /= total


@_compiled
def fit_actuators(seen: Seen, alpha: float, actuators: Actuators, fitted: Actuators) -> None:
    """One step of expectation maximisation: K, kappa and weights into `fitted`."""
    n, _, listed, outcome, tau = seen
    actions, room = n.shape[1], outcome.shape[1] + 1
    pm, row, share = np.empty((actions, room)), np.empty(room), np.empty(3)
    counts = np.empty((actions, actions))
    for a in range(actions):
        for b in range(actions):
            counts[a, b] = SAME if a == b else OTHER
    partners, leading, judged = np.zeros(2), np.zeros(2), np.zeros(3)
    rows = 0
    for s in range(n.shape[0]):
        everything, something = True, False
        for a in range(actions):
            everything = everything and n[s, a] > 0
            something = something or n[s, a] >= _JUDGED
        if not everything and not something:
            continue
        _fit_state(seen, actuators, s, pm)
        for a in range(actions):
            if n[s, a] >= _JUDGED and listed[s] > 1:
                _structured_row(n, actuators.matrix, pm, s, a, listed[s], row)
                _responsibilities(seen, actuators.weight, alpha, s, a, row, share)
                rows += 1
                for i in range(3):
                    judged[i] += share[i]
        if not everything:
            continue
        for k in range(listed[s]):
            where, whole, squares = 0 if outcome[s, k] == s else 1, 0.0, 0.0
            for b in range(actions):
                whole += pm[b, k]
                squares += pm[b, k] * pm[b, k]
            partners[where] += whole * whole - squares  # twice the expected pairs
            leading[where] += whole
            for a in range(actions):
                total = _TINY * _TINY
                for b in range(actions):
                    total += actuators.matrix[a, b] * pm[b, k]
                for b in range(actions):
                    counts[a, b] += tau[s, a, k] * actuators.matrix[a, b] * pm[b, k] / total
    for a in range(actions):
        total = 0.0
        for b in range(actions):
            total += counts[a, b]
        for b in range(actions):
            fitted.matrix[a, b] = counts[a, b] / total
    for where in range(2):
        least = LEAST_SELF if where == 0 else LEAST_OTHER
        found = partners[where] / leading[where] if leading[where] > 0.0 else 1.0
        fitted.kappa[where] = min(1.0, max(least, found))
    for i in range(3):
        fitted.weight[i] = (judged[i] + 1.0) / (rows + 3.0)


@_compiled
def fill_rows(
    seen: Seen,
    actuators: Actuators,
    rule: RowRule,
    counted: IntArray,
    rows: Rows,
    changed: IntArray,
) -> int:
    """Estimate the rows of the states in which some visit count is not `counted[s, a]`.

    Returns the number of states with changes, which are listed in `changed`.
    """
    n, rho, listed, outcome, tau = seen
    alpha, shrinkage, threshold, squared_scale, doubts = rule
    actions, room = n.shape[1], outcome.shape[1] + 1
    pm, row, share = np.empty((actions, room)), np.empty(room), np.empty(3)
    found = 0
    for s in range(n.shape[0]):
        stale = False
        for a in range(actions):
            stale = stale or n[s, a] != counted[s, a]
            counted[s, a] = n[s, a]
        if not stale or listed[s] == 0:
            continue
        size = listed[s]
        _fit_state(seen, actuators, s, pm)
        for a in range(actions):
            visits = n[s, a]
            if visits == 0:
                continue
            _structured_row(n, actuators.matrix, pm, s, a, size, row)
            _responsibilities(seen, actuators.weight, alpha, s, a, row, share)
            nominal = 0.0
            for k in range(size):
                nominal = max(nominal, pm[a, k])
                near = _BETA * (0.9 * row[k] + 0.1 / size)
                rows.prob[s, a, k] = (
                    share[0] * (tau[s, a, k] + shrinkage / size) / (visits + shrinkage)
                    + share[1] * (tau[s, a, k] + near) / (visits + _BETA)
                    + share[2] * row[k]
                )
                rows.reward[s, a, k] = mean_reward(rho, tau, s, a, k)
            variance = share[0] / visits + share[1] / (visits + _BETA)
            variance += share[2] * min(1.0, 1.0 - nominal + 1.0 / (visits + _LASTING))
            rows.radius[s, a] = squared_scale * variance
            slips = doubts and visits < _DOUBTED and pm[a, size] * (1.0 - share[0]) > _DOUBT
            rows.base[s, a] = 0.0 if visits >= threshold and not slips else np.inf
        changed[found] = s
        found += 1
    return found
