"""Rows of learning curves."""

from __future__ import annotations

import math
from typing import NamedTuple


class Point(NamedTuple):
    """One row of a learning curve. Unknown quantities are None.

    On an environment a row has the means of rollouts of the greedy policy, with 95 % confidence
    intervals (`..._low`, `..._high`). If there is no second instance for rollouts, a row sums up
    the training episodes that ended since the previous row.
    """

    step: int
    start_value: float | None  # discounted return of an episode
    gap: float | None  # to the optimum, relative
    success: float | None  # probability
    nominal_length: int | None  # of the episode in which the most likely outcome always happens
    episodes: int | None = None  # of training, that have begun
    episode_return: float | None = None  # undiscounted
    length: float | None = None  # mean number of steps of an episode
    success_low: float | None = None
    success_high: float | None = None
    start_value_low: float | None = None
    start_value_high: float | None = None
    episode_return_low: float | None = None
    episode_return_high: float | None = None
    length_low: float | None = None
    length_high: float | None = None
    own_gap: float | None = None  # by the learner's own objective, if the rule has a yardstick


def relative_gap(value: float, best: float) -> float:
    """The difference between a value and the optimum, relative to the optimum.

    >>> relative_gap(0.9, 1.0), relative_gap(-2.0, -1.0), relative_gap(0.0, 0.0)
    (0.09999999999999998, 1.0, 0.0)
    """
    if value == best:
        return 0.0
    return (best - value) / abs(best) if best != 0.0 else math.copysign(math.inf, best - value)
