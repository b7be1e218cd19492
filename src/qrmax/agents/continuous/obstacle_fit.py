"""Obstacles fitted to stopped moves, and opened by moves that cross them (compiled).

A move falls short of the law by r = s' - s - f_a(s). What stops it takes away the part across its
surface, so that r / |r| is normal to it, up to the noise. The surface goes through arrivals c_j:

    n = argmin over |n| = 1 of  sum_j w_j (n . (c_j - c_i))^2 + tau^2 sum_j kappa_j (1 - (n . m)^2)

over the stops nearby whose directions are alike, with kappa = (|r| / sigma)^2, 30 in all at most,
the mean direction m, and tau the root mean square of n . (c_j - c_i), fitted in turn, or the median
of all tau if stops are too few. Stops at an exact wall are on one plane, and tau becomes 0: then
points on both sides of a wall are told apart even if they differ by rounding alone. Inverse
iteration finds n, in any dimension.

An obstacle reaches half a unit sideways. A move that has crossed its plane, clearly, at a distance
r from its centre leaves it r / 2.

Not assumed: surfaces parallel to axes, or straight for longer than a few moves.
"""

from __future__ import annotations

import math

import numpy as np

from qrmax.agents.continuous.local_model import Arrivals, Obstacles
from qrmax.agents.continuous.near_points import collect, enter
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.planning.compilation import compiled, inner

EXTENT = 0.5  # rho, before any move has crossed it
SPAN = 1.5  # stops this near one another may belong to one surface
ALIKE = 0.7  # the cosine of their directions, at least
MOST_CERTAIN = 30.0  # kappa in all: laws are not exact, so that directions have a common error
TRUE = 0.85  # the cosine of a fitted normal and the mean direction, at least
LONE = 0.02  # slack of an obstacle without company
LEAST_SLACK, MOST_SLACK = 3e-10, 0.2
NO_FIT, TOO_FEW = -1.0, -2.0  # marks in place of tau
ROUNDS = 12
MERGED = 0.15  # stops this near one another, of the same direction, are one


@inner
def squared(a: FloatArray, i: int, b: FloatArray, n: int) -> float:
    """The squared distance of two rows."""
    off = 0.0
    for j in range(a.shape[1]):
        off += (a[i, j] - b[n, j]) ** 2
    return off


@inner
def _cosine(a: FloatArray, i: int, b: FloatArray, n: int) -> float:
    cos = 0.0
    for j in range(a.shape[1]):
        cos += a[i, j] * b[n, j]
    return cos


@compiled
def add_arrivals(
    at: FloatArray,
    kind: IntArray,
    reward: FloatArray,
    apart: float,
    arrivals: Arrivals,
    count: int,
    found: IntArray,
) -> int:
    """Enter arrivals unless there is one of the same kind nearby; returns the new count."""
    for n in range(len(at)):
        new = True
        for m in range(collect(arrivals.cells, at[n], found)):
            i = found[m]
            if arrivals.kind[i] == kind[n] and squared(arrivals.at, i, at, n) < apart**2:
                new = False
                break
        if new:
            for j in range(at.shape[1]):
                arrivals.at[count, j] = at[n, j]
            arrivals.kind[count] = kind[n]
            arrivals.reward[count] = reward[n]
            enter(arrivals.cells, arrivals.at[count], count)
            count += 1
    return count


@compiled
def add_stops(
    at: FloatArray,
    raw: FloatArray,
    evidence: FloatArray,
    obstacles: Obstacles,
    first: FloatArray,
    strength: FloatArray,
    count: int,
    found: IntArray,
) -> int:
    """Enter stopped moves unless there is one nearby; `raw` are directions."""
    for n in range(len(at)):
        new = True
        for m in range(collect(obstacles.cells, at[n], found)):
            i = found[m]
            near = squared(obstacles.at, i, at, n) < MERGED**2
            if near and _cosine(first, i, raw, n) > 0.9:
                new = False
                if evidence[n] > strength[i]:  # a longer way short: a better direction
                    strength[i] = evidence[n]
                    for j in range(at.shape[1]):
                        first[i, j] = raw[n, j]
                        obstacles.at[i, j] = at[n, j]
                break
        if new:
            for j in range(at.shape[1]):
                obstacles.at[count, j] = at[n, j]
                first[count, j] = raw[n, j]
            strength[count] = evidence[n]
            enter(obstacles.cells, obstacles.at[count], count)
            count += 1
    return count


@inner
def _solve(matrix: FloatArray, x: FloatArray) -> None:
    """Gaussian elimination with pivoting, in place."""
    d = x.size
    for i in range(d):
        p = i
        for r in range(i + 1, d):
            if abs(matrix[r, i]) > abs(matrix[p, i]):
                p = r
        if matrix[p, i] == 0.0:
            continue
        if p != i:
            for c in range(d):
                kept = matrix[i, c]
                matrix[i, c] = matrix[p, c]
                matrix[p, c] = kept
            kept = x[i]
            x[i] = x[p]
            x[p] = kept
        for r in range(i + 1, d):
            f = matrix[r, i] / matrix[i, i]
            for c in range(i, d):
                matrix[r, c] -= f * matrix[i, c]
            x[r] -= f * x[i]
    for i in range(d - 1, -1, -1):
        for c in range(i + 1, d):
            x[i] -= matrix[i, c] * x[c]
        x[i] = x[i] / matrix[i, i] if matrix[i, i] != 0.0 else 0.0


@inner
def _normalise(x: FloatArray) -> None:
    size = 0.0
    for j in range(x.size):
        size += x[j] ** 2
    size = math.sqrt(size)
    if size > 0.0:
        for j in range(x.size):
            x[j] /= size


@inner
def _offset(at: FloatArray, o: int, i: int, normal: FloatArray) -> float:
    off = 0.0
    for j in range(normal.size):
        off += (at[o, j] - at[i, j]) * normal[j]
    return off


@compiled
def fit_obstacles(
    obstacles: Obstacles, first: FloatArray, strength: FloatArray, count: int, found: IntArray
) -> None:
    """Fit normals and slack of all obstacles, and reset their extents."""
    at, d = obstacles.at, obstacles.at.shape[1]
    mean, normal = np.empty(d), np.empty(d)
    alike = np.empty(found.size, dtype=np.int32)
    for i in range(count):
        others = 0
        for j in range(d):
            mean[j] = strength[i] * first[i, j]
        total = strength[i]
        for m in range(collect(obstacles.cells, at[i], found)):
            o = found[m]
            close = o != i and squared(at, i, at, o) < SPAN**2
            if close and _cosine(first, i, first, o) > ALIKE:
                alike[others] = o
                others += 1
                total += strength[o]
                for j in range(d):
                    mean[j] += strength[o] * first[o, j]
        _normalise(mean)
        tau = _fit_plane(at, i, alike, others, mean, min(total, MOST_CERTAIN), normal)
        cos = 0.0
        for j in range(d):
            cos += normal[j] * mean[j]
        if others == 0 or abs(cos) < TRUE:
            for j in range(d):
                normal[j] = mean[j]
            tau, cos = NO_FIT, 1.0
        elif others < d:
            tau = TOO_FEW
        for j in range(d):
            obstacles.normal[i, j] = normal[j] if cos > 0.0 else -normal[j]
        obstacles.slack[i] = tau
        obstacles.extent[i] = EXTENT
    usual = _usual(obstacles.slack, count)
    for i in range(count):
        tau = obstacles.slack[i]
        if tau == NO_FIT:
            tau = 0.5 * LONE
        elif tau == TOO_FEW:
            tau = usual
        obstacles.slack[i] = min(max(2.0 * tau, LEAST_SLACK), MOST_SLACK)


@inner
def _usual(tau: FloatArray, count: int) -> float:
    """The median of those tau that are fitted; half of LONE if there are none."""
    fitted = np.empty(count + 1)
    n = 0
    for i in range(count):
        if tau[i] not in (NO_FIT, TOO_FEW):
            j = n
            while j > 0 and fitted[j - 1] > tau[i]:
                fitted[j] = fitted[j - 1]
                j -= 1
            fitted[j] = tau[i]
            n += 1
    return fitted[n // 2] if n > 0 else 0.5 * LONE


@inner
def _fit_plane(
    at: FloatArray,
    i: int,
    alike: IntArray,
    others: int,
    mean: FloatArray,
    total: float,
    normal: FloatArray,
) -> float:
    """Write the normal of the plane through stop i and its like; returns tau."""
    d = mean.size
    matrix, work = np.empty((d, d)), np.empty((d, d))
    for j in range(d):
        normal[j] = mean[j]
    tau = 0.1
    for _ in range(ROUNDS):
        for j in range(d):
            for c in range(d):
                matrix[j, c] = -mean[j] * mean[c] * tau**2 * total
            matrix[j, j] += tau**2 * total
        for m in range(others):
            o = alike[m]
            w = 1.0 / (1.0 + (_offset(at, o, i, normal) / (3.0 * tau)) ** 4)
            for j in range(d):
                for c in range(d):
                    matrix[j, c] += w * (at[o, j] - at[i, j]) * (at[o, c] - at[i, c])
        trace = 0.0
        for j in range(d):
            trace += matrix[j, j]
        for _again in range(2):
            for j in range(d):
                for c in range(d):
                    work[j, c] = matrix[j, c]
                work[j, j] += 1e-13 * trace + 1e-30
            _solve(work, normal)
            _normalise(normal)
        fit, weights = 0.0, 0.0
        for m in range(others):
            off = _offset(at, alike[m], i, normal)
            w = 1.0 / (1.0 + (off / (3.0 * tau)) ** 4)
            fit += w * off * off
            weights += w
        if weights > 0.0:
            tau = max(math.sqrt(fit / weights), 1e-13)
    return tau


@compiled
def open_obstacles(
    obstacles: Obstacles, s: FloatArray, t: FloatArray, margin: float, found: IntArray
) -> None:
    """Shrink obstacles that moves from s to t have crossed."""
    d = s.shape[1]
    at = obstacles.at
    for n in range(len(s)):
        for m in range(collect(obstacles.cells, s[n], found)):
            i = found[m]
            a_s, a_t = 0.0, 0.0
            for j in range(d):
                a_s += (s[n, j] - at[i, j]) * obstacles.normal[i, j]
                a_t += (t[n, j] - at[i, j]) * obstacles.normal[i, j]
            clear = margin + obstacles.slack[i]
            if a_s * a_t >= 0.0 or abs(a_s) < clear or abs(a_t) < clear:
                continue
            part = a_s / (a_s - a_t)
            off = 0.0
            for j in range(d):
                off += (s[n, j] + part * (t[n, j] - s[n, j]) - at[i, j]) ** 2
            obstacles.extent[i] = min(obstacles.extent[i], 0.5 * math.sqrt(off))
