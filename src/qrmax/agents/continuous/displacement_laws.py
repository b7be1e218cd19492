"""Laws of displacement, one for each action, fitted robustly.

    s' - s = f_a(s) + noise        f_a: a polynomial of degree 0, 1 or 2

Everything is in units of a typical move: dimension i is divided by the 0.9 quantile of
|s'_i - s_i|, or by a fortieth of its range if that is larger (and each cell of that size counts
once).

Some moves do not follow the law: walls stop them. So the constant law is the mode of the
displacements, and a fit uses Tukey's biweight with the median absolute deviation for its scale. A
higher degree is taken if it halves the median error on held-out samples, and explains half as many
samples again. Each place (a cube of half
a unit) gives one sample, its last one: repeated attempts at one wall would outvote all others.

The noise is represented by its mean and two points on each principal axis, 2 standard deviations
away, with weights such that the covariance is that of the residuals.

Assumes that most places where an action was tried are free of obstacles. Not assumed: that
displacements are parallel to axes, or noise independent in each.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.planning.arrays import FloatArray

PLACE = 0.5  # the side of a place
CLOSE = 0.25  # displacements this near one another are alike
OUTLYING = 5.0  # standard deviations
TRIMMED = 3.0  # the same, for the noise itself
LEAST_SIGMA = 0.004  # differences below this are no noise
MOST_PLACES = 400  # the last ones are fitted to
FOLDS = 5
ROUNDS = 10
BENT_FROM = 40  # places before a higher degree is tried
MOST_AXES = 8  # of the noise
QUADRATIC, LINEAR = 6, 32  # dimensions up to which laws are


class Fit(NamedTuple):
    """The law of one action."""

    coefficient: FloatArray  # [feature, d]
    covariance: FloatArray  # of the noise, [d, d]
    sigma: FloatArray  # [d], robust


def typical_move(x: FloatArray, y: FloatArray) -> FloatArray:
    """The unit of each dimension, from transitions `[n, d]`; 1 where nothing ever changes."""
    least = np.ptp(np.concatenate([x, y]), axis=0) / 40.0
    kept = _one_per_place(x, np.where(least > 0.0, least, 1.0))
    unit = np.maximum(np.quantile(np.abs(y - x)[kept], 0.9, axis=0), least)
    return np.asarray(np.where(unit > 0.0, unit, 1.0))


def largest_degree(dimension: int) -> int:
    """The degree of the polynomials that are tried in this dimension."""
    return 2 if dimension <= QUADRATIC else 1 if dimension <= LINEAR else 0


def feature_count(dimension: int, degree: int) -> int:
    """The number of features of a polynomial."""
    return (1, 1 + dimension, 1 + dimension + dimension * (dimension + 1) // 2)[degree]


def features_of(x: FloatArray, degree: int) -> FloatArray:
    """1, x_i and x_i x_j up to a degree, `[n, feature]`."""
    columns = [np.ones(len(x))]
    if degree >= 1:
        columns += [*x.T]
    if degree >= 2:
        pairs = combinations_with_replacement(range(x.shape[1]), 2)
        columns += [x[:, i] * x[:, j] for i, j in pairs]
    return np.stack(columns, axis=1)


def fit_law(x: FloatArray, displacement: FloatArray) -> Fit:
    """Fit the law of an action to transitions from x, centred, `[n, d]`."""
    kept = _one_per_place(x, np.full(x.shape[1], PLACE))[-MOST_PLACES:]
    x, y = x[kept], displacement[kept]
    n, d = x.shape
    coefficient = np.zeros((feature_count(d, largest_degree(d)), d))
    typical = _mode(y)
    ones = np.ones((n, 1))
    near = np.linalg.norm(y - typical, axis=1) < CLOSE
    start = y - y[near].mean(axis=0)
    found = _robust(ones, y, start)
    coefficient[0] = y[near].mean(axis=0) if found is None else found[0]
    residual = y - coefficient[0]
    if n >= BENT_FROM:
        error = _held_out(ones, y, start)
        for degree in range(1, largest_degree(d) + 1):
            features = features_of(x, degree)
            count = features.shape[1]
            if n < 4 * count:
                break
            start = y - features @ np.linalg.lstsq(features, y, rcond=None)[0]
            found, score = _robust(features, y, start), _held_out(features, y, start)
            if found is None or score >= 0.5 * error - 1e-3:
                continue
            rest = y - features @ found
            if _explained(rest) >= 1.5 * _explained(residual):
                error, residual = score, rest
                coefficient[:] = 0.0
                coefficient[:count] = found
    return Fit(coefficient, *_noise(residual))


def noise_points(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Draws of the noise `[k, d]`, the first of them 0, and their weights `[k]`."""
    d = len(covariance)
    variance, axes = np.linalg.eigh(covariance)
    count = min(d, MOST_AXES)
    sigma = np.sqrt(np.maximum(variance[::-1][:count], 0.0))
    radius = max(2.0, float(np.sqrt(count)))
    arms = radius * sigma[:, None] * axes[:, ::-1][:, :count].T
    draw = np.concatenate([np.zeros((1, d)), arms, -arms])
    weight = np.where(sigma > 5.0 * LEAST_SIGMA, 0.5 / radius**2, 0.0)
    rest = max(1.0 - 2.0 * weight.sum(), 0.0)
    return draw, np.concatenate([[rest], weight, weight])


def _one_per_place(x: FloatArray, width: FloatArray) -> NDArray[np.int64]:
    """The last sample of each place, of a width `[d]`."""
    place = np.floor(x[::-1] / width)
    _, index = np.unique(place, axis=0, return_index=True)
    return np.sort(len(x) - 1 - index)


def _mode(y: FloatArray) -> FloatArray:
    """The displacement with most others nearby; of equals the longest, as walls shorten moves."""
    off = np.square(y[:, None] - y[None]).sum(axis=2)
    near = off < CLOSE**2
    score = near.sum(axis=1) - 1e-3 * np.where(near, off, 0.0).sum(axis=1) / CLOSE**2
    best = np.lexsort((np.linalg.norm(y, axis=1), np.round(score, 6)))[-1]
    return np.asarray(y[best])


def _explained(residual: FloatArray) -> int:
    """The number of samples that a law explains."""
    return int((np.linalg.norm(residual, axis=1) < 0.5 * CLOSE).sum())


def _scale(residual: FloatArray) -> FloatArray:
    spread = 1.4826 * np.median(np.abs(residual), axis=0)
    return np.asarray(np.maximum(spread, LEAST_SIGMA))


def _robust(features: FloatArray, y: FloatArray, start: FloatArray) -> FloatArray | None:
    """Coefficients by iterated weights, from residuals to start with; None if too few remain."""
    residual, count = start, features.shape[1]
    ridge = 1e-3 * np.eye(count)
    inside = np.linalg.norm(start, axis=1) < CLOSE
    if inside.sum() <= count:
        inside[:] = True
    found = None
    for _ in range(ROUNDS):
        far = np.square(residual / (OUTLYING * _scale(residual[inside]))).max(axis=1)
        weight = np.maximum(1.0 - far, 0.0)[:, None]  # the square root of Tukey's
        inside = far < 1.0
        if inside.sum() < count + 1:
            break
        left = np.vstack([features * weight, ridge])
        right = np.vstack([y * weight, np.zeros((count, y.shape[1]))])
        found = np.linalg.lstsq(left, right, rcond=None)[0]
        residual = y - features @ found
    return found


def _held_out(features: FloatArray, y: FloatArray, start: FloatArray) -> float:
    """The median absolute error on samples that were not fitted to, summed over dimensions."""
    fold = np.arange(len(y)) % FOLDS
    error = np.empty_like(y)
    for each in range(FOLDS):
        others, these = fold != each, fold == each
        found = _robust(features[others], y[others], start[others])
        if found is None:
            return np.inf
        error[these] = y[these] - features[these] @ found
    return float(np.median(np.abs(error), axis=0).sum())


def _noise(residual: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Covariance and standard deviations of the residuals that are not outlying."""
    d = residual.shape[1]
    inside = np.linalg.norm(residual, axis=1) < CLOSE
    kept = residual[inside] if inside.sum() > 2 else residual
    for _ in range(3):
        if len(kept) <= 2:
            return 1e-4 * np.eye(d), np.full(d, 0.01)
        kept = residual[(np.abs(residual) < TRIMMED * _scale(kept)).all(axis=1)]
    covariance = kept.T @ kept / max(len(kept), 1)
    return covariance, np.maximum(np.sqrt(np.diag(covariance)), LEAST_SIGMA)
