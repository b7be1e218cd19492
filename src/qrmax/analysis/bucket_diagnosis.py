"""Diagnosis of buckets: their size, and whether they mix labels that the machine tells apart.

The theory of Bucket-QR-Max asks for buckets of small diameter, and a bucket with more than one
label makes the machine look stochastic. SimHash guarantees neither. So both are measured, on given
observations or on a uniform sample of a plane.

The diameter of a bucket is measured by the diagonal of the smallest box around its observations, in
their own units: at least the largest distance between two of them, and at most sqrt(d) times that.
It takes O(n log n) for n observations; all distances would take O(n^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrmax.agents.buckets.buckets import NOTHING, Buckets
from qrmax.agents.buckets.in_buckets import BucketPolicy
from qrmax.errors import check_count
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.plane import NEAR


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """Size and purity of the buckets of a sample of observations."""

    observations: int
    unknown: int  # of these, in buckets never visited; they are left out below
    buckets: int = 0  # that any of them is in
    singletons: int = 0  # of these, that only one is in
    largest_diameter: float = 0.0
    mean_diameter: float = 0.0  # over the buckets that have two or more
    mixed_buckets: float = 0.0  # the share of the buckets that have more than one label
    in_mixed_buckets: float = 0.0  # the share of the observations that are in these


class Scattered(NamedTuple):
    """A uniform sample of the observations of a plane."""

    observations: NDArray[np.float64]  # [n, d]
    labels: NDArray[np.int32]  # [n]


def diagnose(
    buckets: Buckets | BucketPolicy, observations: ArrayLike, labels: ArrayLike
) -> Diagnosis:
    """Measure buckets on observations `[n, d]` and the numbers of their labels `[n]`.

    >>> from qrmax.agents.buckets.simhash import uniform_grid
    >>> from qrmax.problems.observations import Observations
    >>> buckets = Buckets(Observations([0.0], [1.0]), uniform_grid(1, cells=2))
    >>> [buckets.number([x], label=0) for x in (0.1, 0.6)]
    [0, 1]
    >>> found = diagnose(buckets, [[0.0], [0.25], [0.375], [0.75]], labels=[0, 0, 1, 0])
    >>> found.buckets, found.singletons, found.largest_diameter, found.mixed_buckets
    (2, 1, 0.375, 0.5)
    """
    buckets = buckets.buckets if isinstance(buckets, BucketPolicy) else buckets
    numbers = buckets.find_all(observations, labels)
    unknown = int((numbers == NOTHING).sum())
    order = np.argsort(numbers, kind="stable")[unknown:]  # bucket by bucket
    if not len(order):
        return Diagnosis(observations=len(numbers), unknown=unknown)
    first = np.flatnonzero(np.diff(numbers[order], prepend=NOTHING))
    sizes = np.diff(first, append=len(order))
    seen = np.asarray(observations, dtype=np.float64).reshape(len(numbers), -1)[order]
    diameters = np.linalg.norm(_spread(seen, first), axis=1)[sizes > 1]
    mixed = _spread(np.asarray(labels)[order], first) > 0
    return Diagnosis(
        observations=len(numbers),
        unknown=unknown,
        buckets=len(first),
        singletons=int((sizes == 1).sum()),
        largest_diameter=float(diameters.max(initial=0.0)),
        mean_diameter=float(diameters.mean()) if len(diameters) else 0.0,
        mixed_buckets=float(mixed.mean()),
        in_mixed_buckets=float(sizes[mixed].sum() / len(order)),
    )


def scatter(problem: ContinuousProblem, samples: int, rng: np.random.Generator) -> Scattered:
    """Sample exact observations, with labels, uniformly from a plane without its solid cells.

    >>> import qrmax
    >>> line = qrmax.make("continuous/line/ab")
    >>> scatter(line, 3, np.random.default_rng(7)).observations.shape
    (3, 1)
    """
    check_count("samples", samples)
    plane = problem.plane
    solid = np.all(plane.wall, axis=1) & (np.arange(problem.n_cells) != problem.start)
    cells = rng.choice(np.flatnonzero(~solid), size=samples)
    corners = np.stack([cells % plane.columns, cells // plane.columns], axis=1)
    position = corners + np.minimum(rng.random((samples, 2)), 1.0 - NEAR)  # or of the next cell
    return Scattered(problem.observe(position), problem.label[cells])


def _spread(values: NDArray[Any], first: NDArray[np.int64]) -> NDArray[Any]:
    """The range of the values in each group; groups begin at `first`."""
    return np.asarray(np.maximum.reduceat(values, first) - np.minimum.reduceat(values, first))
