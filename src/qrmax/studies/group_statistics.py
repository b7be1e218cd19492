"""Statistics of groups of problems: means over problems, each of the mean over its runs.

    mean      of the problems' means: every problem has the same weight, however many runs it has
    std       sample standard deviation (n - 1) of the problems' means: how much problems differ
    interval  95 % stratified bootstrap interval of the mean, runs resampled within each problem

With right-censored runs the mean is unknown. What is known is a lower bound, with the budget in
place of the steps of such runs; see `statistics.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qrmax.studies.statistics import (
    Estimate,
    FloatArray,
    Interval,
    Steps,
    bootstrap,
    moved_down,
    summarize,
)


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """Summary of the steps to threshold of a learner on several problems."""

    problems: int  # with complete runs
    n: int  # runs on all of them
    censored: int
    mean: float | None  # None if a run is censored
    at_least: float  # a lower bound on the mean; the mean itself if no run is censored
    std: float | None  # over problems; None if a run is censored, or with fewer than two problems
    interval: Interval | None  # of the mean; None if a run is censored


def summarize_group(problems: Sequence[Steps], seed: int = 0) -> GroupSummary:
    """The mean over problems of the mean steps, its dispersion, and its confidence interval.

    >>> one, other = Steps((100, 300), 0, 1000), Steps((400, 400), 0, 1000)
    >>> found = summarize_group([one, other])
    >>> found.mean, round(found.std or 0.0, 1)
    (300.0, 141.4)
    >>> found = summarize_group([one, Steps((400,), censored=1, budget=1000)])
    >>> found.mean, found.at_least
    (None, 450.0)
    """
    found = [summarize(steps, seed) for steps in problems]
    censored = sum(summary.censored for summary in found)
    means = np.array([summary.mean_at_least for summary in found])
    low, high = bootstrap([steps.values() for steps in problems], mean_of_means, seed=seed)
    resolution = max((steps.resolution or 1 for steps in problems), default=1)
    if any(steps.dense is not None for steps in problems):
        low, _ = bootstrap([steps.earliest() for steps in problems], mean_of_means, seed=seed)
        resolution = 1
    known = censored == 0
    return GroupSummary(
        problems=len(found),
        n=sum(summary.n for summary in found),
        censored=censored,
        mean=float(means.mean()) if known else None,
        at_least=float(means.mean()),
        std=float(means.std(ddof=1)) if known and len(means) > 1 else None,
        interval=Interval(moved_down(low, resolution), high) if known else None,
    )


def group_mean(strata: Sequence[FloatArray], seed: int = 0) -> Estimate:
    """The mean over problems of the mean over runs, with its 95 % confidence interval.

    >>> group_mean([np.array([0.5, 0.5]), np.array([1.0])])
    Estimate(value=0.75, low=0.75, high=0.75)
    """
    low, high = bootstrap(strata, mean_of_means, seed=seed)
    return Estimate(float(mean_of_means(*strata)), low, high)


def mean_of_means(*samples: FloatArray) -> FloatArray:
    """The mean over arrays of the mean over their last axis."""
    return np.asarray(np.mean([sample.mean(axis=-1) for sample in samples], axis=0))
