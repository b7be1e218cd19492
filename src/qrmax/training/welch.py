"""Welch's t-test of equal means, from the moments of two samples.

Moments can be merged, so that the evidence on a policy that is tested again adds up. With n values
of mean m and sum of squared deviations d in each sample,

    t = (m1 - m2) / sqrt(v1 + v2)     v = d / (n (n - 1))

and t has about (v1 + v2)^2 / (v1^2 / (n1 - 1) + v2^2 / (n2 - 1)) degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from qrmax.errors import MOST, ParameterError, shown
from qrmax.planning.arrays import FloatArray


class Moments(NamedTuple):
    """Mean and deviations of a sample."""

    n: int
    mean: float
    deviations: float  # the sum of their squares
    lowest: float
    highest: float

    @property
    def variance_of_mean(self) -> float:
        """The estimated variance of the mean."""
        return self.deviations / (self.n * (self.n - 1))

    @property
    def is_constant(self) -> bool:
        """Whether all values are equal."""
        return self.lowest == self.highest


def moments(sample: FloatArray) -> Moments:
    """The moments of a sample; without any error if all its values are equal."""
    lowest, highest, mean = float(sample.min()), float(sample.max()), float(sample.mean())
    if lowest == highest:  # a computed variance may be rounded up
        return Moments(len(sample), lowest, 0.0, lowest, highest)
    return Moments(len(sample), mean, float(((sample - mean) ** 2).sum()), lowest, highest)


def merged(one: Moments, other: Moments) -> Moments:
    """The moments of two samples together."""
    n, apart = one.n + other.n, other.mean - one.mean
    lowest, highest = min(one.lowest, other.lowest), max(one.highest, other.highest)
    if lowest == highest:
        return Moments(n, lowest, 0.0, lowest, highest)
    between = apart**2 * one.n * other.n / n
    mean = one.mean + apart * other.n / n
    return Moments(n, mean, one.deviations + other.deviations + between, lowest, highest)


def read_moments(numbers: Any) -> Moments:
    """Moments from plain data, as in the files of runs; an error if no sample can have them."""
    if isinstance(numbers, Sequence) and len(numbers) == len(Moments._fields):
        found = Moments(*numbers)
        plain = all(type(number) in (int, float) and abs(number) < np.inf for number in found)
        if (
            plain
            and type(found.n) is int
            and 2 <= found.n <= MOST
            and found.lowest <= found.mean <= found.highest
            and found.deviations >= 0.0
        ):
            return found
    raise ParameterError(f"inconsistent moments of sampled returns: {shown(numbers)}")


def p_value(first: Moments, second: Moments) -> float:
    """The two-sided p-value; 1 or 0 if neither sample has any variance."""
    from scipy.special import stdtr  # slow to import, and needed for this test only

    difference = first.mean - second.mean
    if first.is_constant and second.is_constant:
        return float(difference == 0.0)
    variances = np.array([first.variance_of_mean, second.variance_of_mean])
    total = float(variances.sum())
    if total == 0.0:
        return float(difference == 0.0)
    freedom = total**2 / float((variances**2 / [first.n - 1, second.n - 1]).sum())
    return float(2.0 * stdtr(freedom, -abs(difference) / np.sqrt(total)))


def welch_p_value(first: FloatArray, second: FloatArray) -> float:
    """The two-sided p-value of two samples; 1 or 0 if neither has any variance."""
    unit = max(np.abs(first).max(), np.abs(second).max())  # squares of small numbers would be 0
    return p_value(*(moments(sample / unit if unit else sample) for sample in (first, second)))
