"""Laws of displacement, one for each action, fitted robustly."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from qrmax.agents.continuous.local_model import Law


def feature_count(d, degree):
    return [1, 1 + d, 1 + d + d * (d + 1) // 2][degree]


def features_of(x, degree):
    n, d = x.shape
    columns = [np.ones(n)]
    if degree >= 1:
        columns += [x[:, i] for i in range(d)]
    if degree >= 2:
        columns += [x[:, i] * x[:, j] for i, j in combinations_with_replacement(range(d), 2)]
    return np.stack(columns, axis=1)


SIGMAS = 5.0
LEAST = 0.02  # least noise considered


def one_per_place(x, width):
    """The last sample of each cell."""
    cell = np.floor(x[::-1] / width).astype(np.int64)
    _, index = np.unique(cell, axis=0, return_index=True)
    return np.sort(len(x) - 1 - index)


def mode_of(d, radius):
    """The sample with most others nearby."""
    off = ((d[:, None] - d[None]) ** 2).sum(-1)
    near = off < radius**2
    score = near.sum(1) - 1e-3 * np.where(near, off, 0).sum(1) / radius**2
    # ties to the longer displacement
    size = np.linalg.norm(d, axis=1)
    return d[np.lexsort((size, np.round(score, 6)))[-1]]


def scale_of(r):
    return np.maximum(1.4826 * np.median(np.abs(r), axis=0), 1e-9)


def robust_fit(f, d, start, rounds=10):
    """Tukey's biweight; `start` residuals."""
    r = start
    c = None
    for _ in range(rounds):
        s = np.maximum(scale_of(r), LEAST / SIGMAS)
        u = np.sqrt(((r / (SIGMAS * s)) ** 2).max(1))
        w = np.where(u < 1, (1 - u**2) ** 2, 0)
        if (w > 0).sum() < f.shape[1] + 1:
            return c
        sw = np.sqrt(w)[:, None]
        c = np.linalg.lstsq(np.vstack([f * sw, 1e-3 * np.eye(f.shape[1])]), np.vstack([d * sw, np.zeros((f.shape[1], d.shape[1]))]), rcond=None)[0]
        r = d - f @ c
    return c


def held_out(f, d, start, r0):
    """Median absolute residual of five folds."""
    out = np.empty_like(d)
    fold = np.arange(len(d)) % 5
    for k in range(5):
        c = robust_fit(f[fold != k], d[fold != k], start[fold != k])
        if c is None:
            return np.inf
        out[fold == k] = d[fold == k] - f[fold == k] @ c
    return np.median(np.abs(out), axis=0).sum()


def fit_law(x, displacement, width=0.5, most=400):
    """Coefficients [feature, d], noise covariance [d, d], scale [d]."""
    d = x.shape[1]
    full = feature_count(d, 2) if d <= 6 else feature_count(d, 1)
    coefficient = np.zeros((full, d))
    keep = one_per_place(x, width)[-most:]
    x, y = x[keep], displacement[keep]
    centre = mode_of(y, 0.25)
    start = y - centre
    inside = np.linalg.norm(start, axis=1) < 0.25
    mean = y[inside].mean(0)
    coefficient[0] = mean
    best_r, best = y - mean, None
    if len(x) >= 20:
        base = held_out(features_of(x, 0), y, start, None)
        for degree in (1, 2):
            m = feature_count(d, degree)
            if m > full or len(x) < 4 * m:
                break
            f = features_of(x, degree)
            starts = y - np.median(y, axis=0)
            c0 = np.linalg.lstsq(f, y, rcond=None)[0]
            score = held_out(f, y, y - f @ c0, None)
            if score < 0.5 * base - 1e-3:
                c = robust_fit(f, y, y - f @ c0)
                if c is not None:
                    base = score
                    coefficient[:] = 0.0
                    coefficient[:m] = c
                    best_r = y - f @ c
    if not coefficient[1:].any():
        c = robust_fit(np.ones((len(y), 1)), y, np.where(inside[:, None], y - mean, np.inf) if False else y - mean)
        if c is not None:
            coefficient[0] = c[0]
        best_r = y - coefficient[0]
    ok = np.linalg.norm(best_r, axis=1) < 0.25
    r = best_r[ok] if ok.sum() > 2 else best_r
    for _ in range(3):
        s = np.maximum(scale_of(r), LEAST / SIGMAS) if len(r) > 2 else np.full(d, 0.1)
        ok = (np.abs(best_r) < SIGMAS * s).all(1)
        r = best_r[ok]
    cov = r.T @ r / max(len(r), 1) if len(r) > 2 else np.eye(d) * 1e-4
    return coefficient, cov, np.sqrt(np.maximum(np.diag(cov), (LEAST / SIGMAS) ** 2))


def noise_points(cov):
    """Points and weights with this covariance: the middle, and 2 sigma on the principal axes."""
    d = len(cov)
    values, axes = np.linalg.eigh(cov)
    radius = max(2.0, np.sqrt(d))
    weight = 1.0 / (2 * radius**2)
    arms = radius * np.sqrt(np.maximum(values, 0.0)) * axes  # columns
    draw = np.zeros((2 * d + 1, d))
    draw[1 : d + 1] = arms.T
    draw[d + 1 :] = -arms.T
    w = np.full(2 * d + 1, weight)
    for i in range(d):
        if np.sqrt(max(values[i], 0.0)) < LEAST:
            w[1 + i] = w[d + 1 + i] = 0.0
    w[0] = 0.0
    w[0] = max(1.0 - w.sum(), 0.0)
    return draw, w / w.sum()
