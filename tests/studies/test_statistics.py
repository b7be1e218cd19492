"""Statistics of steps: by hand, beside SciPy, and with runs that never got there."""

from __future__ import annotations

import math
import time
from dataclasses import astuple
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from qrmax.errors import ParameterError
from qrmax.studies.statistics import (
    Estimate,
    Interval,
    Steps,
    Summary,
    bootstrap,
    comparable,
    interquartile_mean,
    median,
    probability_of_improvement,
    summarize,
)

INF = math.inf
BUDGET = 1000

SOME_STEPS = st.lists(st.integers(0, BUDGET), min_size=1, max_size=12)
RUNS = st.builds(
    lambda reached, censored: Steps(tuple(reached), censored, BUDGET), SOME_STEPS, st.integers(0, 9)
) | st.builds(lambda censored: Steps((), censored, BUDGET), st.integers(1, 9))


def numbers(summary: Summary) -> list[float]:
    """Every number in a summary."""
    found: list[float] = []
    for field in astuple(summary):
        found += field if isinstance(field, tuple) else [] if field is None else [field]
    return found


def mean(values: np.ndarray) -> np.ndarray:
    return np.asarray(values.mean(axis=-1))


# --- by hand


def test_a_summary_without_censored_runs_is_that_of_the_textbook() -> None:
    summary = summarize(Steps((100, 200, 300, 400, 1000), censored=0, budget=BUDGET))
    assert (summary.n, summary.censored, summary.budget) == (5, 0, BUDGET)
    assert summary.mean == summary.mean_at_least == 400.0
    assert summary.std == pytest.approx(math.sqrt((300**2 + 200**2 + 100**2 + 600**2) / 4))
    assert summary.median.value == 300.0
    assert summary.iqm.value == 300.0  # of 200, 300 and 400
    assert summary.mean_interval is not None
    assert summary.mean_interval.low < 400.0 < summary.mean_interval.high


def test_censored_runs_are_not_in_the_mean() -> None:
    summary = summarize(Steps((100, 200), censored=8, budget=BUDGET))
    assert summary.mean == 150.0
    assert summary.std == pytest.approx(math.sqrt(5000.0))
    assert summary.mean_interval is None
    assert summary.mean_at_least == (100 + 200 + 8 * BUDGET) / 10


def test_where_no_run_got_there_nothing_is_known_but_the_budget() -> None:
    summary = summarize(Steps((), censored=3, budget=BUDGET))
    assert (summary.mean, summary.std, summary.mean_interval) == (None, None, None)
    assert summary.median == summary.iqm == Estimate(INF, INF, INF)
    assert summary.mean_at_least == BUDGET


def test_one_run_has_a_mean_and_no_spread() -> None:
    summary = summarize(Steps((700,), censored=0, budget=BUDGET))
    assert (summary.mean, summary.std, summary.mean_interval) == (700.0, None, (700.0, 700.0))
    assert summary.median == summary.iqm == Estimate(700.0, 700.0, 700.0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5.0], 5.0),
        ([1.0, 2.0], 1.5),
        ([1.0, 2.0, 30.0], 11.0),  # of three runs none is dropped
        ([0.0, 1.0, 2.0, 99.0], 1.5),
        ([0.0, 1.0, 2.0, INF], 1.5),
        ([0.0, 1.0, INF, INF], INF),
        ([0.0, 0.0, 1.0, 2.0, 3.0, 4.0, INF, INF], 2.5),
        ([INF, INF, INF, INF], INF),
    ],
)
def test_the_iqm_is_infinite_only_where_a_run_that_is_kept_is(
    values: list[float], expected: float
) -> None:
    assert interquartile_mean(np.array(values)) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [([5.0], 5.0), ([1.0, 4.0], 2.5), ([1.0, INF], INF), ([1.0, 2.0, INF], 2.0), ([INF, INF], INF)],
)
def test_the_median_is_infinite_only_where_a_run_in_the_middle_is(
    values: list[float], expected: float
) -> None:
    assert median(np.array(values)) == expected


def test_statistics_work_on_the_last_axis() -> None:
    table = np.array([[4.0, 2.0, 3.0, 1.0], [INF, 0.0, 8.0, 6.0]])
    assert interquartile_mean(table).tolist() == [2.5, 7.0]
    assert median(table).tolist() == [2.5, 7.0]


# --- for any runs


@given(values=st.lists(st.floats(0.0, 1e9), min_size=1, max_size=40))
def test_without_censored_runs_iqm_and_median_are_those_of_scipy_and_numpy(
    values: list[float],
) -> None:
    array = np.array(values)
    assert interquartile_mean(array) == pytest.approx(stats.trim_mean(array, 0.25), rel=1e-12)
    assert median(array) == pytest.approx(np.median(array), rel=1e-12)


@given(runs=RUNS, seed=st.integers(0, 2**40))
def test_no_number_is_ever_nan_and_every_interval_is_in_order(runs: Steps, seed: int) -> None:
    summary = summarize(runs, seed)
    assert not any(math.isnan(number) for number in numbers(summary))
    for _, low, high in (summary.median, summary.iqm):
        assert low <= high
    assert (summary.mean_interval is None) == (runs.censored > 0)


@given(reached=SOME_STEPS, censored=st.integers(0, 5), chance=st.randoms(use_true_random=False))
def test_the_order_of_runs_does_not_matter(reached: list[int], censored: int, chance) -> None:
    shuffled = list(reached)
    chance.shuffle(shuffled)
    one = summarize(Steps(tuple(reached), censored, BUDGET))
    other = summarize(Steps(tuple(shuffled), censored, BUDGET))
    assert other.median.value == one.median.value
    assert other.iqm.value == pytest.approx(one.iqm.value, rel=1e-12)
    assert other.mean == pytest.approx(one.mean, rel=1e-12)


@given(reached=st.lists(st.integers(0, BUDGET), min_size=1, max_size=15))
def test_cutting_off_the_slowest_run_makes_no_statistic_smaller(reached: list[int]) -> None:
    reached.sort()
    summaries = [
        summarize(Steps(tuple(reached[: len(reached) - cut]), cut, BUDGET))
        for cut in range(len(reached) + 1)
    ]
    for before, after in pairwise(summaries):
        assert all(b <= a for b, a in zip(before.iqm, after.iqm, strict=True))
        assert all(b <= a for b, a in zip(before.median, after.median, strict=True))
        assert before.mean_at_least <= after.mean_at_least + 1e-9


@given(runs=RUNS)
def test_the_mean_over_all_runs_is_at_least_that_with_the_budget_for_the_censored_ones(
    runs: Steps,
) -> None:
    expected = np.minimum(runs.values(), runs.budget).mean()
    assert summarize(runs).mean_at_least == pytest.approx(expected, rel=1e-12)


# --- the bootstrap


def test_the_seed_alone_decides_an_interval() -> None:
    runs = Steps(tuple(range(100, 900, 37)), censored=2, budget=BUDGET)
    np.random.seed(1)  # noqa: NPY002  # a state that must neither matter nor change
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    first = summarize(runs, seed=5)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    assert summarize(runs, seed=5) == first
    assert len({summarize(runs, seed=seed).iqm for seed in range(10)}) > 5


def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    chance = np.random.default_rng(0)
    trials, truth = 300, 10.0
    intervals = [bootstrap([chance.normal(truth, 2.0, 50)], mean, seed=i) for i in range(trials)]
    share = np.mean([low <= truth <= high for low, high in intervals])
    assert abs(share - 0.94) < 4 * math.sqrt(0.94 * 0.06 / trials)  # 50 runs: a little below 0.95


def test_an_interval_of_the_mean_is_as_wide_as_theory_says() -> None:
    values = np.random.default_rng(1).normal(0.0, 1.0, 400)
    low, high = bootstrap([values], mean, resamples=20_000)
    expected = 2 * 1.96 * values.std() / math.sqrt(400)
    assert high - low == pytest.approx(expected, rel=0.03)


def test_runs_are_drawn_with_replacement_and_within_their_stratum() -> None:
    seen: list[np.ndarray] = []

    def look(*samples: np.ndarray) -> np.ndarray:
        seen.extend(samples)
        return samples[0][:, 0]

    strata = [np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0]), np.array([INF])]
    bootstrap(strata, look, resamples=500)
    assert [sample.shape for sample in seen] == [(500, 3), (500, 2), (500, 1)]
    for stratum, sample in zip(strata, seen, strict=True):
        assert set(sample.ravel()) == set(stratum)
    rows = {tuple(row) for row in seen[0]}
    assert rows > set(permutations((1.0, 2.0, 3.0)))
    assert len(rows) == 27  # every way to draw three with replacement


def test_strata_are_drawn_independently() -> None:
    values = np.arange(20.0)
    difference = bootstrap([values, values], lambda x, y: mean(x) - mean(y), resamples=4000)
    assert difference.high - difference.low == pytest.approx(
        2 * 1.96 * values.std() * math.sqrt(2 / 20), rel=0.1
    )


def test_differences_between_strata_do_not_widen_an_interval() -> None:
    near, far = np.array([1.0, 2.0, 3.0]), np.array([1001.0, 1002.0, 1003.0])
    low, high = bootstrap([near, far], lambda x, y: (mean(x) + mean(y)) / 2)
    assert 501.0 < low < 502.0 < high < 503.0


def test_the_ends_of_an_interval_leave_out_a_fortieth_on_either_side() -> None:
    in_order = np.arange(2001.0)
    assert bootstrap([in_order], lambda x: np.arange(float(len(x))), resamples=2001) == Interval(
        50.0, 1950.0
    )


def test_an_interval_reaches_infinity_where_many_resamples_do() -> None:
    rarely = summarize(Steps(tuple(range(100, 130)), censored=1, budget=BUDGET)).iqm
    often = summarize(Steps(tuple(range(100, 107)), censored=2, budget=BUDGET)).iqm
    assert 100.0 < rarely.low < rarely.value < rarely.high < 130.0
    assert 100.0 < often.low < often.value < 107.0 < often.high == INF


def test_ninety_summaries_of_thirty_runs_take_less_than_two_seconds() -> None:
    chance = np.random.default_rng(0)
    cells = [Steps(tuple(chance.integers(1, BUDGET, 25).tolist()), 5, BUDGET) for _ in range(90)]
    began = time.process_time()
    for cell in cells:
        summarize(cell)
    assert time.process_time() - began < 2.0


# --- which is better


def test_the_quicker_of_two_is_certainly_better() -> None:
    quick, slow = Steps((1, 2, 3), 0, BUDGET), Steps((4, 5), 1, BUDGET)
    assert probability_of_improvement([quick], [slow]) == Estimate(1.0, 1.0, 1.0)
    assert probability_of_improvement([slow], [quick]) == Estimate(0.0, 0.0, 0.0)


def test_pairs_are_counted_and_ties_count_half() -> None:
    ours, theirs = Steps((100, 200), 1, BUDGET), Steps((200, 300), 1, BUDGET)
    points = (1 + 1 + 1) + (0.5 + 1 + 1) + (0 + 0 + 0.5)  # 100, 200, and the one cut off
    assert probability_of_improvement([ours], [theirs]).value == pytest.approx(points / 9)


def test_two_that_never_get_there_tie() -> None:
    never = Steps((), 4, BUDGET)
    assert probability_of_improvement([never], [never]) == Estimate(0.5, 0.5, 0.5)


def test_every_problem_has_the_same_weight() -> None:
    quick, slow = Steps((1,), 0, BUDGET), Steps(tuple(range(2, 11)), 0, BUDGET)
    assert probability_of_improvement([quick, quick, slow], [slow, slow, quick]).value == (
        pytest.approx(2 / 3)
    )


@given(problems=st.lists(st.tuples(RUNS, RUNS), min_size=1, max_size=4), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_one_is_better_or_the_other_is(problems: list[tuple[Steps, Steps]], seed: int) -> None:
    ours, theirs = [list(side) for side in zip(*problems, strict=True)]
    one = probability_of_improvement(ours, theirs, seed)
    other = probability_of_improvement(theirs, ours, seed)
    assert one.value + other.value == pytest.approx(1.0)
    assert 0.0 <= one.low <= one.high <= 1.0


@given(ours=RUNS, theirs=RUNS)
def test_the_probability_is_the_u_statistic_of_mann_and_whitney(ours: Steps, theirs: Steps) -> None:
    u = stats.mannwhitneyu(theirs.values(), ours.values(), method="asymptotic").statistic
    expected = u / (ours.n * theirs.n)
    assert probability_of_improvement([ours], [theirs]).value == pytest.approx(expected)


def test_runs_cut_off_at_different_budgets_are_not_compared() -> None:
    short, long = Steps((10,), 1, 100), Steps((500,), 0, BUDGET)
    assert not comparable(short, long)
    with pytest.raises(ParameterError, match="problem 1: runs with a budget of 100 steps beside"):
        probability_of_improvement([long, short], [long, long])


def test_budgets_that_no_run_hit_do_not_matter() -> None:
    short, long = Steps((10,), 0, 100), Steps((500,), 0, BUDGET)
    assert comparable(short, long)
    assert probability_of_improvement([short], [long]).value == 1.0


# --- what is refused


@pytest.mark.parametrize(
    ("reached", "censored", "budget", "message"),
    [
        ((), 0, 10, "at least one run"),
        ((5,), -1, 10, "at least one run"),
        ((5, 11), 0, 10, "has 11 steps; allowed: 0 to 10"),
        ((-1,), 0, 10, "has -1 steps"),
        ((5,), 0, 0, "budget is 0"),
    ],
)
def test_runs_that_cannot_be_are_refused(
    reached: tuple[int, ...], censored: int, budget: int, message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        Steps(reached, censored, budget)


def test_problems_must_come_in_pairs() -> None:
    runs = Steps((1,), 0, 10)
    with pytest.raises(ParameterError, match="2 problems beside runs on 1"):
        probability_of_improvement([runs, runs], [runs])
    with pytest.raises(ParameterError, match="at least one"):
        probability_of_improvement([], [])


def test_a_bootstrap_needs_resamples_and_a_seed() -> None:
    with pytest.raises(ParameterError, match="resamples is 0"):
        bootstrap([np.ones(3)], mean, resamples=0)
    with pytest.raises(ParameterError, match="seed is -1"):
        summarize(Steps((1,), 0, 10), seed=-1)
