"""Obstacles fitted to stopped moves (compiled)."""

from __future__ import annotations

import math

import numpy as np

from qrmax.agents.continuous.local_model import ALIKE, EXTENT, LONE, SPAN, Arrivals, Obstacles
from qrmax.agents.continuous.near_points import collect, enter
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.planning.compilation import compiled, inner

MERGED = 0.08  # stops this near one another, of the same direction, are one


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
    pay: FloatArray,
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
            arrivals.pay[count] = pay[n]
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
    at = obstacles.at
    d = at.shape[1]
    matrix, work = np.empty((d, d)), np.empty((d, d))
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
        for j in range(d):
            normal[j] = mean[j]
        tau = 0.1
        for _ in range(4):
            trace = 0.0
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
        cos = 0.0
        for j in range(d):
            cos += normal[j] * mean[j]
        if others == 0 or abs(cos) < 0.85:
            for j in range(d):
                normal[j] = mean[j]
            tau, cos = LONE / 2.0, 1.0
        for j in range(d):
            obstacles.normal[i, j] = normal[j] if cos > 0.0 else -normal[j]
        obstacles.slack[i] = min(max(2.0 * tau, 1e-10), 0.2)
        obstacles.extent[i] = EXTENT


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
