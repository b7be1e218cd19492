"""Statistics of right-censored steps to threshold.

A run that hit its budget is *right-censored*: its steps to threshold exceed the budget. Such runs
are counted, and never averaged as if they had finished. In rank statistics they come after all runs
that finished, as if they had taken infinitely many steps. With n runs:

    median    the mean of the one or two runs in the middle
    IQM       the interquartile mean: that of the runs left without the floor(n / 4) quickest and as
              many of the slowest (Agarwal et al., 2021, "Deep RL at the edge of the statistical
              precipice")
    P(X < Y)  the share of pairs of runs in which X took fewer steps, and half the share of ties;
              two censored runs tie

A median or an IQM is infinite if and only if one of the runs that it averages is censored.

Confidence intervals are those of the percentile bootstrap: n runs are drawn with replacement,
separately within each stratum, and the interval holds 95 % of the statistic's values on such
resamples. Its ends are values that occurred, as a number and infinity cannot be interpolated. An
interval from few runs is too narrow, and one from a single run is a point.

Steps are interval-censored, too: if policies are evaluated every r steps, a run recorded at n met
its threshold after more than n - r and at most n steps. So each statistic here is at most r too
large, and the lower end of its confidence interval is moved down by r (r > 1). Where evaluations
become rarer as training goes on, the lower end is that of the evaluations before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import ParameterError, check_count, shown
from qrmax.seeding import check_seed
from qrmax.training.check_schedule import check_before

FloatArray = NDArray[np.float64]

LEFT_OUT = 0.025
"""The share of resamples on either side of an interval."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps to threshold of several runs of the same kind, at most `budget` each.

    >>> Steps(reached=(700, 500), censored=1, budget=1000).values()
    array([700., 500.,  inf])
    """

    reached: tuple[int, ...]  # the steps of the uncensored runs
    censored: int  # the number of right-censored runs
    budget: int
    resolution: int | None = None  # steps between two evaluations of a run; None: unknown
    dense: int | None = None  # evaluations before they become rarer; see training/check_schedule.py

    def __post_init__(self) -> None:
        check_count("budget", self.budget)
        if self.resolution is not None:
            check_count("resolution", self.resolution)
        if self.censored < 0 or self.n == 0:
            raise ParameterError(
                f"{len(self.reached)} uncensored runs and {self.censored} censored ones; "
                "allowed: at least one run in all"
            )
        if outside := [steps for steps in self.reached if not 0 <= steps <= self.budget]:
            raise ParameterError(
                f"an uncensored run has {shown(outside[0])} steps; allowed: 0 to {self.budget}, "
                "the budget"
            )

    @property
    def n(self) -> int:
        """The number of runs, right-censored ones included."""
        return len(self.reached) + self.censored

    def values(self) -> FloatArray:
        """The steps of each run, infinite for the censored ones."""
        return np.array([*self.reached, *[np.inf] * self.censored], dtype=np.float64)

    def earliest(self) -> FloatArray:
        """The last evaluation before the steps of each run: it met its threshold after that.

        >>> Steps((500, 6000), 1, 10_000, resolution=100, dense=25).earliest()
        array([ 400., 5600.,   inf])
        """
        before = [check_before(n, self.resolution or 1, self.dense) for n in self.reached]
        return np.array([*before, *[np.inf] * self.censored], dtype=np.float64)


class Interval(NamedTuple):
    """A confidence interval; either end may be infinite."""

    low: float
    high: float


class Estimate(NamedTuple):
    """A statistic with its 95 % bootstrap confidence interval; infinite if censored."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Summary of the steps to threshold of several runs."""

    n: int
    censored: int
    budget: int
    mean: float | None  # of the uncensored runs; None if there are none
    std: float | None  # sample standard deviation of the same (n - 1); None if fewer than two
    mean_interval: Interval | None  # None if a run is censored: the mean is unknown
    mean_bounds: Interval  # without an upper end if a run is censored, or if there is one only
    median: Estimate
    iqm: Estimate
    resolution: int | None = None  # steps between two evaluations; None: unknown

    @property
    def mean_at_least(self) -> float:
        """A lower bound on the mean over all runs: censored ones take at least the budget.

        >>> summarize(Steps((200, 400), censored=2, budget=1000)).mean_at_least
        650.0
        """
        reached = self.n - self.censored
        return ((self.mean or 0.0) * reached + self.budget * self.censored) / self.n


def summarize(steps: Steps, seed: int = 0) -> Summary:
    """Mean, standard deviation, median and IQM of the steps, with confidence intervals.

    >>> summary = summarize(Steps((500, 600, 700, 800), censored=1, budget=1000))
    >>> summary.mean, summary.median.value, summary.iqm.value
    (650.0, 700.0, 700.0)
    >>> summary.iqm.high
    inf

    Evaluations that are 100 steps apart cannot distinguish 500 from 401:

    >>> summarize(Steps((500, 500), censored=0, budget=1000, resolution=100)).mean_interval
    Interval(low=400.0, high=500.0)
    """
    reached, values = np.array(steps.reached, dtype=np.float64), steps.values()
    earliest = None if steps.dense is None else steps.earliest()
    interval = bootstrap([values.clip(max=steps.budget)], _mean, seed=seed)
    interval = interval._replace(low=moved_down(interval.low, steps.resolution))
    if earliest is not None:
        low, _ = bootstrap([earliest.clip(max=steps.budget)], _mean, seed=seed)
        interval = interval._replace(low=low)
    is_open = steps.censored > 0 or steps.n == 1
    return Summary(
        n=steps.n,
        censored=steps.censored,
        budget=steps.budget,
        mean=float(reached.mean()) if len(reached) else None,
        std=float(reached.std(ddof=1)) if len(reached) > 1 else None,
        mean_interval=None if steps.censored else interval,
        mean_bounds=interval._replace(high=np.inf) if is_open else interval,
        median=_estimate([values], median, seed, steps.resolution, earliest),
        iqm=_estimate([values], interquartile_mean, seed, steps.resolution, earliest),
        resolution=steps.resolution,
    )


def median(values: FloatArray) -> FloatArray:
    """The median over the last axis, infinite if a run in the middle is."""
    return _trimmed_mean(values, (values.shape[-1] - 1) // 2)


def interquartile_mean(values: FloatArray) -> FloatArray:
    """The mean over the middle half of the last axis, infinite if a run in it is.

    >>> float(interquartile_mean(np.array([1.0, 5.0, 7.0, np.inf])))
    6.0
    """
    return _trimmed_mean(values, values.shape[-1] // 4)


def bootstrap(
    strata: Sequence[FloatArray],
    statistic: Callable[..., FloatArray],
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Stratified bootstrap confidence interval (95 %) of a statistic.

    `statistic` takes one array `[resample, run]` for each stratum and returns one value for each
    resample. The seed determines the interval.

    >>> bootstrap([np.array([1.0, 2.0, 3.0]), np.array([10.0])], lambda x, y: x[:, 0] + y[:, 0])
    Interval(low=11.0, high=13.0)
    """
    check_count("resamples", resamples)
    check_seed(seed)
    chance = np.random.Generator(np.random.PCG64(seed))
    samples = [
        stratum[chance.integers(len(stratum), size=(resamples, len(stratum)))] for stratum in strata
    ]
    ordered = np.sort(statistic(*samples))
    outside = int(LEFT_OUT * (resamples - 1))
    return Interval(float(ordered[outside]), float(ordered[resamples - 1 - outside]))


def mean_estimate(values: FloatArray, seed: int = 0, *, resolution: int | None = None) -> Estimate:
    """The mean over runs, with its 95 % bootstrap confidence interval.

    The resolution is that of steps, if there is one.

    >>> mean_estimate(np.array([0.5, 0.5, 0.5]))
    Estimate(value=0.5, low=0.5, high=0.5)
    """
    return _estimate([values], _mean, seed, resolution)


def comparable(ours: Steps, theirs: Steps) -> bool:
    """Whether runs can be ranked: either none is censored, or all have the same budget."""
    return ours.budget == theirs.budget or ours.censored == theirs.censored == 0


def probability_of_improvement(
    ours: Sequence[Steps], theirs: Sequence[Steps], seed: int = 0
) -> Estimate:
    """Probability that a run of ours takes fewer steps than one of theirs.

    `ours[i]` and `theirs[i]` are runs on problem i. The probabilities of all problems are averaged;
    a tie counts half, and so do two censored runs.

    >>> ours, theirs = Steps((100, 200), 0, 1000), Steps((200, 300), 2, 1000)
    >>> probability_of_improvement([ours], [theirs]).value
    0.9375
    """
    if len(ours) != len(theirs) or not ours:
        raise ParameterError(
            f"runs on {len(ours)} problems beside runs on {len(theirs)}; allowed: the same "
            "problems, at least one"
        )
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if not comparable(one, other):
            raise ParameterError(
                f"problem {number}: runs with a budget of {one.budget} steps beside runs with "
                f"{other.budget}; allowed: the same budget, or none censored"
            )
    pairs = chain.from_iterable(zip(ours, theirs, strict=True))
    return _estimate([steps.values() for steps in pairs], _mean_improvement, seed)


def _estimate(
    strata: Sequence[FloatArray],
    statistic: Callable[..., FloatArray],
    seed: int,
    resolution: int | None = None,
    earliest: FloatArray | None = None,
) -> Estimate:
    low, high = bootstrap(strata, statistic, seed=seed)
    low = moved_down(low, resolution)
    if earliest is not None:
        low, _ = bootstrap([earliest], statistic, seed=seed)
    return Estimate(float(statistic(*strata)), low, high)


def moved_down(low: float, resolution: int | None) -> float:
    """The lower end of a confidence interval, corrected for the resolution of the steps."""
    return low if resolution in (None, 1) else max(0.0, low - resolution)


def _mean(values: FloatArray) -> FloatArray:
    return _trimmed_mean(values, 0)


def _trimmed_mean(values: FloatArray, dropped: int) -> FloatArray:
    """The mean over the last axis without the `dropped` smallest and `dropped` largest."""
    kept = np.sort(values, axis=-1)[..., dropped : values.shape[-1] - dropped]
    return np.asarray(kept.mean(axis=-1))  # never nan, as there is no -inf


def _mean_improvement(*samples: FloatArray) -> FloatArray:
    """The mean over the problems, each with two consecutive samples: ours and theirs."""
    problems = zip(samples[::2], samples[1::2], strict=True)
    shares = [_improvement(ours, theirs) for ours, theirs in problems]
    return np.asarray(np.mean(shares, axis=0))


def _improvement(ours: FloatArray, theirs: FloatArray) -> FloatArray:
    """The share of pairs over the last axes in which ours is less, and half that of ties."""
    points = np.zeros(ours.shape[:-1])
    for j in range(theirs.shape[-1]):  # all pairs at once would be an array of resamples x n x n
        rival = theirs[..., j, None]
        points += (ours < rival).sum(axis=-1)
        points += (ours <= rival).sum(axis=-1)  # less counts two points by now, a tie one
    return np.asarray(points / (2 * ours.shape[-1] * theirs.shape[-1]))
