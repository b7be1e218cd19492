"""Transition rows shrunk towards the successors of all actions, by empirical Bayes (compiled).

    L(s)         the successors that were seen from s under any action, m = |L(s)|
    P(x | s, a)  = (tau(s, a, x) + alpha / m) / (n(s, a) + alpha)            x in L(s)
    R(s, a, x)   the mean reward of the transition, or that of all actions if a never led to x

P is the posterior mean under a symmetric Dirichlet prior on L(s). One alpha for the world: that of
a grid which maximises the marginal likelihood of all counts, which is, with g = log Gamma,

    sum_sa  g(alpha) - g(alpha + n) + sum_x g(tau + alpha / m) - g(alpha / m)

so that it is small where actions lead to few of the successors, and large where they are alike.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from qrmax.agents.episodic.beliefs import gamma
from qrmax.planning.compilation import compiled, inner

if TYPE_CHECKING:  # numba does not read annotations
    from qrmax.agents.episodic.beliefs import Bits
    from qrmax.empirical.successors import Seen
    from qrmax.planning.arrays import FloatArray, IntArray, Rows

_compiled, _inner = compiled, inner

ALPHAS: FloatArray = np.array([0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0])
"""The grid of alpha."""

FIRST_ALPHA = 1.0
"""Before any estimate."""


@_compiled
def log_evidence(seen: Seen, alphas: FloatArray, evidence: FloatArray) -> None:
    """The log marginal likelihood of all counts, for each alpha."""
    n, _, listed, _, tau = seen
    for i in range(alphas.size):
        alpha, total = alphas[i], 0.0
        whole = math.lgamma(alpha)
        for s in range(n.shape[0]):
            observed = successors_seen(tau, s, listed[s])
            if observed < 2:
                continue  # there is nothing to tell
            each = alpha / observed
            part = math.lgamma(each)
            for a in range(n.shape[1]):
                if n[s, a] == 0:
                    continue
                total += whole - math.lgamma(alpha + n[s, a])
                for k in range(listed[s]):
                    if tau[s, a, k] > 0:
                        total += math.lgamma(tau[s, a, k] + each) - part
        evidence[i] = total


@_inner
def successors_seen(tau: IntArray, s: int, listed: int) -> int:
    """The listed successors of s that were observed: others are only expected."""
    found = 0
    for k in range(listed):
        times = 0
        for a in range(tau.shape[1]):
            times += tau[s, a, k]
        if times > 0:
            found += 1
    return found


def likeliest_alpha(seen: Seen) -> float:
    """The alpha of the grid with the largest marginal likelihood; the first of equals.

    >>> from qrmax.empirical.successors import Successors
    >>> seen = Successors(3, 2, by_successor=True)
    >>> for _ in range(9):
    ...     _ = seen.record(0, 0, outcome=1, reward=0.0), seen.record(0, 1, outcome=2, reward=0.0)
    >>> likeliest_alpha(seen.arrays)
    0.1
    """
    evidence = np.empty(ALPHAS.size)
    log_evidence(seen, ALPHAS, evidence)
    return float(ALPHAS[evidence.argmax()])


@_compiled
def estimate_rows(
    seen: Seen,
    alpha: float,
    threshold: int,
    squared_scale: float,
    counted: IntArray,
    rows: Rows,
    changed: IntArray,
) -> int:
    """Estimate the rows of all pairs whose visit count is not `counted[s, a]`, which is updated.

    Pairs with fewer visits than the threshold are unknown; others have the radius c^2 / n. Returns
    the number of states with changes, which are listed in `changed`.
    """
    n, rho, listed, _, tau = seen
    prob, reward, base, radius = rows.prob, rows.reward, rows.base, rows.radius
    found = 0
    for s in range(n.shape[0]):
        news = False
        for a in range(n.shape[1]):
            visits = n[s, a]
            if visits == counted[s, a]:
                continue
            counted[s, a] = visits
            if visits == 0:
                continue
            for k in range(listed[s]):
                prob[s, a, k] = (tau[s, a, k] + alpha / listed[s]) / (visits + alpha)
                reward[s, a, k] = mean_reward(rho, tau, s, a, k)
            known = visits >= threshold
            news = news or known or base[s, a] == 0.0
            base[s, a] = 0.0 if known else np.inf
            radius[s, a] = squared_scale / visits
        if news:
            changed[found] = s
            found += 1
    return found


@_compiled
def draw_rows(
    seen: Seen,
    alpha: float,
    threshold: int,
    state: Bits,
    counted: IntArray,
    rows: Rows,
    changed: IntArray,
) -> int:
    """Sample the rows of all pairs with a negative `counted[s, a]`, which becomes the visit count.

    P(. | s, a) ~ Dirichlet(tau + alpha / m), with radius 0: a sampled row is taken for the truth.
    Rewards, thresholds and results are those of `estimate_rows`.
    """
    n, rho, listed, _, tau = seen
    prob, reward, base = rows.prob, rows.reward, rows.base
    found = 0
    for s in range(n.shape[0]):
        news = False
        for a in range(n.shape[1]):
            if counted[s, a] >= 0:
                continue
            counted[s, a] = n[s, a]
            known = n[s, a] >= threshold
            news = news or known or base[s, a] == 0.0
            base[s, a] = 0.0 if known else np.inf
            if not known:
                continue
            total = 0.0
            for k in range(listed[s]):
                prob[s, a, k], state = gamma(tau[s, a, k] + alpha / listed[s], state)
                reward[s, a, k] = mean_reward(rho, tau, s, a, k)
                total += prob[s, a, k]
            for k in range(listed[s]):
                prob[s, a, k] /= total
        if news:
            changed[found] = s
            found += 1
    return found


@_inner
def mean_reward(rho: FloatArray, tau: IntArray, s: int, a: int, k: int) -> float:
    """R(s, a, x), with x the k-th successor of s."""
    if tau[s, a, k] > 0:
        return float(rho[s, a, k] / tau[s, a, k])
    total, times = 0.0, 0
    for b in range(tau.shape[1]):
        total += rho[s, b, k]
        times += tau[s, b, k]
    return float(total / times)
