"""Means over groups of problems: equal weights, and nothing censored is averaged."""

from __future__ import annotations

import numpy as np
import pytest

from qrmax.studies.group_statistics import group_mean, summarize_group
from qrmax.studies.statistics import Steps


def test_every_problem_has_the_same_weight() -> None:
    found = summarize_group([Steps((100,) * 9, 0, 1000), Steps((500,), 0, 1000)])
    assert (found.problems, found.n, found.censored) == (2, 10, 0)
    assert found.mean == found.at_least == 300.0
    assert found.std == pytest.approx(np.std([100, 500], ddof=1))


def test_the_interval_resamples_runs_within_problems_only() -> None:
    found = summarize_group([Steps((100, 100), 0, 1000), Steps((900, 900), 0, 1000)])
    assert found.interval == (500.0, 500.0)  # the difference between problems is no uncertainty
    wide = summarize_group([Steps((100, 300), 0, 1000), Steps((900, 900), 0, 1000)])
    assert wide.interval == (500.0, 600.0)


def test_a_censored_run_leaves_a_lower_bound_alone() -> None:
    found = summarize_group([Steps((100, 200), 0, 1000), Steps((400,), censored=1, budget=1000)])
    assert (found.mean, found.std, found.interval) == (None, None, None)
    assert found.at_least == (150.0 + 700.0) / 2


def test_one_problem_has_no_spread() -> None:
    assert summarize_group([Steps((100, 200), 0, 1000)]).std is None


def test_the_resolution_of_steps_lowers_the_interval() -> None:
    found = summarize_group([Steps((300, 300), 0, 1000, resolution=100)])
    assert found.interval == (200.0, 300.0)


def test_means_of_other_numbers_have_intervals_too() -> None:
    found = group_mean([np.array([0.0, 1.0]), np.array([1.0, 1.0])])
    assert (found.value, found.low, found.high) == (0.75, 0.5, 1.0)
