"""Empirical estimate of delta_LSH, the probability that SimHash makes a bucket too wide.

The bound of Bucket-QR-Max assumes (Bounded discretisation error) that states in the same bucket are
at most phi apart, and that rewards and transitions are Lipschitz in the state, with a constant L;
the theorem asks for phi <= beta / L. SimHash draws its hyperplanes at random, so

    delta_LSH = P(the partition drawn has a bucket wider than phi)

and the guarantee holds with probability 1 - (delta + delta_LSH). It is estimated by Monte Carlo: K
partitions are drawn, and in each of them n observations are scattered uniformly over the plane. The
estimate is the share of the partitions in which two observations in the same bucket are more than
phi apart, with its 95 % Wilson interval. Such a pair proves a violation, and n observations may
miss one: the estimate approaches delta_LSH from below as n grows.

The width of a bucket is that of the observations in it, along the widest of 32 directions: in a
plane at least 99.8 % of the largest distance, and never more.

L of transitions, in l1 distance, is that of the noise: two normal distributions with standard
deviation sigma whose means are x apart are sqrt(2 / pi) x / sigma apart, at most, and so are
expected rewards, in units of R_max. At walls no L holds, as nearby states on either side of one
move to different places, which this leaves out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qrmax.agents.buckets.in_buckets import BucketSettings
from qrmax.agents.buckets.simhash import words_of_all
from qrmax.analysis.bucket_diagnosis import Scattered, scatter
from qrmax.errors import check_count, check_range
from qrmax.problems.continuous_problem import ContinuousProblem

DIRECTIONS = 32  # along which the width of a bucket is measured
Z = 1.959963984540054  # the 97.5 % quantile of the standard normal distribution


@dataclass(frozen=True, kw_only=True, slots=True)
class LSHFailure:
    """Violations of a bound on the width of buckets, in random partitions of a plane."""

    diameter: float  # phi
    partitions: int  # K
    samples: int  # n, in each of them
    violations: int  # partitions with a bucket wider than phi
    in_wide_buckets: float  # the share of the observations that are in such buckets
    buckets: tuple[int, int, int]  # the least, the median and the largest number of buckets
    widest: tuple[float, float, float]  # the same of the width of the widest bucket

    @property
    def probability(self) -> float:
        """The estimate of delta_LSH."""
        return self.violations / self.partitions

    @property
    def interval(self) -> tuple[float, float]:
        """Its 95 % confidence interval (Wilson)."""
        return wilson(self.violations, self.partitions)


def lipschitz_constant(problem: ContinuousProblem) -> float:
    """L of the transitions of a plane without walls; infinite if there is no noise.

    >>> import qrmax
    >>> round(lipschitz_constant(qrmax.make("continuous/office/map1/exp1", noise=0.05)), 2)
    15.96
    """
    plane = problem.plane
    spread = float((plane.noise[: len(plane.scale)] * plane.scale).min())
    return math.sqrt(2.0 / math.pi) / spread if spread > 0.0 else math.inf


def estimate_lsh_failure(
    problem: ContinuousProblem,
    settings: BucketSettings,
    diameter: float,
    rng: np.random.Generator,
    *,
    partitions: int = 100,
    samples: int = 10_000,
) -> LSHFailure:
    """Estimate the probability that a bucket is wider than `diameter`, in units of observations.

    >>> import qrmax
    >>> line = qrmax.make("continuous/line/ab")
    >>> grid = BucketSettings(grid=20)
    >>> found = estimate_lsh_failure(line, grid, 0.06, np.random.default_rng(7), partitions=3)
    >>> found.probability, found.buckets
    (0.0, (20, 20, 20))
    """
    check_range("diameter", diameter, at_least=0.0)
    check_count("partitions", partitions)
    check_count("samples", samples)
    widths, counts, shares = [], [], []
    for _ in range(partitions):
        seen = scatter(problem, samples, rng)
        numbers = _numbers(problem, settings, seen, rng)
        of_buckets = bucket_widths(seen.observations, numbers)
        sizes = np.bincount(numbers)
        widths.append(float(of_buckets.max()))
        counts.append(len(sizes))
        shares.append(float(sizes[of_buckets > diameter].sum()) / samples)
    return LSHFailure(
        diameter=diameter,
        partitions=partitions,
        samples=samples,
        violations=sum(width > diameter for width in widths),
        in_wide_buckets=float(np.mean(shares)),
        buckets=(min(counts), int(np.median(counts)), max(counts)),
        widest=(min(widths), float(np.median(widths)), max(widths)),
    )


def bucket_widths(
    observations: NDArray[np.float64], numbers: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The width of each bucket: the range of its observations along the widest direction.

    >>> at = np.array([[0.0, 0.0], [3.0, 4.0], [9.0, 9.0]])
    >>> bucket_widths(at, np.array([0, 0, 1])).round(1).tolist()
    [5.0, 0.0]
    """
    order = np.argsort(numbers, kind="stable")
    first = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    seen = observations[order]
    widths = np.zeros(len(first))
    for direction in _directions(seen.shape[1]):
        along = seen @ direction
        span = np.maximum.reduceat(along, first) - np.minimum.reduceat(along, first)
        np.maximum(widths, span, out=widths)
    return widths


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % confidence interval of a probability (Wilson, 1927).

    >>> [round(end, 3) for end in wilson(0, 100)]
    [0.0, 0.037]
    """
    share, spread = successes / trials, Z * Z / trials
    middle = (share + spread / 2.0) / (1.0 + spread)
    half = math.sqrt(spread * (share * (1.0 - share) + spread / 4.0)) / (1.0 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def _numbers(
    problem: ContinuousProblem, settings: BucketSettings, seen: Scattered, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The buckets of observations in a new partition, numbered from 0."""
    projection = settings.projection(problem.observations.dimension, rng)
    labels = seen.labels if settings.event_aware else np.zeros_like(seen.labels)
    normal = problem.observations.normalise_all(seen.observations)
    words = words_of_all(projection, normal, labels.astype(np.int64))
    _, numbers = np.unique(words, axis=0, return_inverse=True)
    return numbers.ravel().astype(np.int64)


def _directions(dimension: int) -> NDArray[np.float64]:
    if dimension == 1:
        return np.ones((1, 1))
    angle = np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)
