"""Inverse-CDF sampling from a discrete distribution, shared by Python and compiled code."""

from __future__ import annotations

from collections.abc import Iterable


def draw(weights: Iterable[float], u: float) -> int:
    """Draw an index from a discrete distribution by inverse-CDF sampling.

    If the weights sum to slightly less than `u` due to rounding, the last index with a positive
    weight is drawn, never one of probability 0.

    Args:
        weights: the probabilities.
        u: a uniform random number in [0, 1).

    >>> [draw([0.5, 0.0, 0.5], u) for u in (0.0, 0.49, 0.5, 0.99)]
    [0, 0, 2, 2]
    """
    last = 0
    for index, weight in enumerate(weights):
        if weight > 0.0:
            u -= weight
            last = index
            if u < 0.0:
                break
    return last
