"""Paired comparisons of two learners over problems: ratios of steps, and who needs fewer.

    speedup         the geometric mean over problems of (median steps of the other) / (ours)
    P(X < Y)        the probability of improvement of Agarwal et al. (2021, "Deep RL at the edge of
                    the statistical precipice"), with steps in place of scores:

        P(X < Y) = 1/M sum_m 1/(K L) sum_i sum_j S(x_mi, y_mj)
        S(x, y)  = 1 if x < y,  1/2 if x = y,  0 else

with K runs x_m1, ... of ours on problem m of M, and L of the other. A run that hit its budget came
after all that did not, so that S is known unless both did. Such a pair counts 1/2, and the share of
such pairs is `undecided`: with longer budgets P(X < Y) would have come out at most half of that
higher or lower.

In a median, a run that hit its budget counts with the budget. So problems on which the median of
the other learner is at the budget make the speedup a lower bound, those on which ours is an upper
bound.

Intervals are 95 % percentile bootstrap intervals. Over `runs`, these are resampled within each
problem: the problems are all that one asks about. Over `problems`, pairs are resampled: problems
are a sample themselves, such as those of a generator, and there may be one run on each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qrmax.errors import ParameterError
from qrmax.studies.statistics import (
    Estimate,
    FloatArray,
    Steps,
    bootstrap,
    median,
    probability_of_improvement,
)


class Comparison(NamedTuple):
    """A learner beside another one, on the problems on which both have runs."""

    problems: int
    speedup: Estimate
    improvement: Estimate
    ours_at_budget: int  # problems on which our median is at the budget: an upper bound
    theirs_at_budget: int  # problems on which theirs is: a lower bound
    undecided: float  # the share of pairs of runs both of which hit their budget
    over_problems: bool  # whether problems were resampled, rather than runs


def compare(ours: Sequence[Steps], theirs: Sequence[Steps], seed: int = 0) -> Comparison:
    """Compare runs on the same problems: `ours[i]` and `theirs[i]` are those on problem i.

    Problems are resampled if one of the learners has a single run on each, else runs.

    >>> ours = [Steps((100, 200), 0, 1000), Steps((50, 50), 0, 1000)]
    >>> theirs = [Steps((300, 300), 0, 1000), Steps((200,), 1, 1000)]
    >>> found = compare(ours, theirs)
    >>> round(found.speedup.value, 3), found.improvement.value, found.theirs_at_budget
    (4.899, 1.0, 1)
    """
    if len(ours) != len(theirs) or not ours:
        raise ParameterError(
            f"runs on {len(ours)} problems beside runs on {len(theirs)}; allowed: the same "
            "problems, at least one"
        )
    pairs = [*zip(ours, theirs, strict=True)]
    alone = all(min(one.n, other.n) == 1 for one, other in pairs)
    logs = np.array([_log_ratio(_clipped(one), _clipped(other)) for one, other in pairs])
    if alone:
        shares = np.array([_share(one, other, seed) for one, other in pairs])
        low, high = bootstrap([logs], _mean, seed=seed)
        improvement = Estimate(float(shares.mean()), *bootstrap([shares], _mean, seed=seed))
    else:
        strata = [array for one, other in pairs for array in (_clipped(one), _clipped(other))]
        low, high = bootstrap(strata, _mean_log_ratio, seed=seed)
        improvement = probability_of_improvement(ours, theirs, seed)
    return Comparison(
        problems=len(pairs),
        speedup=Estimate(*(float(np.exp(x)) for x in (logs.mean(), low, high))),
        improvement=improvement,
        ours_at_budget=sum(not np.isfinite(median(one.values())) for one in ours),
        theirs_at_budget=sum(not np.isfinite(median(other.values())) for other in theirs),
        undecided=float(np.mean([_undecided(one, other) for one, other in pairs])),
        over_problems=alone,
    )


def _clipped(steps: Steps) -> FloatArray:
    """The steps of each run, at least one, with the budget in place of more."""
    return steps.values().clip(min=1.0, max=steps.budget)


def _undecided(ours: Steps, theirs: Steps) -> float:
    return ours.censored / ours.n * (theirs.censored / theirs.n)


def _share(ours: Steps, theirs: Steps, seed: int) -> float:
    return probability_of_improvement([ours], [theirs], seed).value


def _log_ratio(ours: FloatArray, theirs: FloatArray) -> FloatArray:
    return np.asarray(np.log(median(theirs)) - np.log(median(ours)))


def _mean_log_ratio(*samples: FloatArray) -> FloatArray:
    pairs = zip(samples[::2], samples[1::2], strict=True)
    return np.asarray(np.mean([_log_ratio(ours, theirs) for ours, theirs in pairs], axis=0))


def _mean(values: FloatArray) -> FloatArray:
    return np.asarray(values.mean(axis=-1))
