"""What buckets look like, by observations that can be counted on one hand, and all over a plane."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qrmax
from amounts import amount
from bucket_trials import bucket_trial
from qrmax.agents.buckets.buckets import Buckets
from qrmax.agents.buckets.in_buckets import BucketPolicy
from qrmax.agents.buckets.simhash import simhash, uniform_grid
from qrmax.analysis.bucket_diagnosis import Diagnosis, diagnose, scatter
from qrmax.errors import ObservationError, ParameterError
from qrmax.problems.observations import Observations
from qrmax.problems.plane import cell_of

pytestmark = pytest.mark.small_enough_without_jit


def quarters(*, aware: bool = False) -> Buckets:
    """A square of 4 x 4 in four buckets, three of which have turned up."""
    buckets = Buckets(Observations([0, 0], [4, 4]), uniform_grid(2, cells=2), event_aware=aware)
    for place in ([1, 1], [3, 1], [1, 3]):
        for label in (0, 1):
            buckets.number(place, label)
    return buckets


POINTS = np.array(
    [[0.0, 0.0], [1.5, 0.5], [1.0, 2.0 - 1e-9], [3.0, 1.0], [0.0, 2.0], [0.0, 3.5], [3.0, 3.0]]
)
LABELS = [0, 0, 1, 0, 1, 1, 0]


def test_a_case_by_hand() -> None:
    """Three observations in the first bucket, one in the second, two in the third, one nowhere."""
    found = diagnose(quarters(), POINTS, LABELS)
    assert (found.observations, found.unknown) == (7, 1)
    assert (found.buckets, found.singletons) == (3, 1)
    assert found.largest_diameter == pytest.approx(2.5)  # of the box from (0, 0) to (1.5, 2)
    assert found.mean_diameter == pytest.approx((2.5 + 1.5) / 2)
    assert found.mixed_buckets == pytest.approx(1 / 3)
    assert found.in_mixed_buckets == pytest.approx(3 / 6)


def test_buckets_that_are_aware_of_events_never_mix_them() -> None:
    found = diagnose(quarters(aware=True), POINTS, LABELS)
    assert found.buckets == 4
    assert found.mixed_buckets == found.in_mixed_buckets == 0.0
    assert (found.singletons, found.largest_diameter) == (2, pytest.approx(np.hypot(1.5, 0.5)))


def test_a_policy_is_looked_at_by_its_buckets() -> None:
    policy = BucketPolicy(np.zeros((64, 2), dtype=np.int32), quarters())
    assert diagnose(policy, POINTS, LABELS) == diagnose(quarters(), POINTS, LABELS)


def test_where_nothing_is_known_there_is_nothing_to_see() -> None:
    fresh = Buckets(Observations([0, 0], [4, 4]), uniform_grid(2, cells=2))
    assert diagnose(fresh, POINTS, LABELS) == Diagnosis(observations=7, unknown=7)
    assert diagnose(quarters(), np.empty((0, 2)), []) == Diagnosis(observations=0, unknown=0)


def test_what_is_no_observation_is_refused() -> None:
    with pytest.raises(ObservationError, match="nan in dimension 0"):
        diagnose(quarters(), [[np.nan, 0.0]], [0])
    with pytest.raises(ParameterError, match="labels have shape"):
        diagnose(quarters(), POINTS, [0])


def test_pictures_are_measured_in_their_own_units() -> None:
    dark, light = np.zeros((2, 2), dtype=np.uint8), np.full((2, 2), 100, dtype=np.uint8)
    box = Observations(np.zeros((2, 2)), np.full((2, 2), 255))
    buckets = Buckets(box, uniform_grid(4, cells=1))
    buckets.number(dark, 0)
    assert diagnose(buckets, [dark, light], [0, 0]).largest_diameter == 200.0


@given(st.integers(0, 999), st.sampled_from([1, 2, 3]))
def test_the_diagonal_bounds_the_largest_distance(seed: int, dimension: int) -> None:
    rng = np.random.default_rng(seed)
    box = Observations([0.0] * dimension, [5.0] * dimension)
    buckets = Buckets(box, simhash(dimension, 2, 3, 1.0, rng))
    points, labels = rng.uniform(0.0, 5.0, (60, dimension)), rng.integers(0, 2, 60)
    numbers = np.array([buckets.number(point, 0) for point in points])
    groups = [numbers == number for number in range(len(buckets))]
    exact = [
        np.linalg.norm(points[group][:, None] - points[group][None], axis=2).max()
        for group in groups
    ]
    found = diagnose(buckets, points, labels)
    assert max(exact) <= found.largest_diameter + 1e-12 <= np.sqrt(dimension) * max(exact) + 1e-9
    paired = [far for far, group in zip(exact, groups, strict=True) if group.sum() > 1]
    assert np.mean(paired) <= found.mean_diameter + 1e-12
    assert found.mean_diameter <= np.sqrt(dimension) * np.mean(paired) + 1e-9
    mixed = [len(set(labels[group])) > 1 for group in groups]
    assert found.mixed_buckets == pytest.approx(np.mean(mixed))
    inside = sum(int(group.sum()) for group, mix in zip(groups, mixed, strict=True) if mix)
    assert found.in_mixed_buckets == pytest.approx(inside / 60)
    assert found.singletons == sum(group.sum() == 1 for group in groups)


# --- all over a plane


@pytest.mark.parametrize("name", ["line/ab", "bottleneck/abc", "frozen-lake/abc"])
def test_observations_are_scattered_evenly_over_all_but_the_solid_cells(name: str) -> None:
    problem = qrmax.make(f"continuous/{name}")
    plane = problem.plane
    observations, labels = scatter(problem, 40_000, np.random.default_rng(7))
    assert observations.shape == (40_000, len(plane.scale))
    position = np.hstack([observations / plane.scale, np.full((40_000, 1), 0.5)])[:, :2]
    cells = [cell_of(plane, float(x), float(y)) for x, y in position]
    inner = np.abs(position - np.rint(position)).min(axis=1) > 1e-6  # not where rounding decides
    np.testing.assert_array_equal(labels[inner], problem.label[cells][inner])
    solid = plane.wall.all(axis=1)
    counts = np.bincount(cells, minlength=problem.n_cells)
    assert not counts[solid].any()
    assert solid.any() == name.startswith("bottleneck")
    mean = 40_000 / (~solid).sum()
    assert np.abs(counts[~solid] - mean).max() < 6.0 * np.sqrt(mean)


def test_a_single_cell_is_not_solid() -> None:
    problem = qrmax.make("continuous/line/ab")
    everywhere = problem.plane._replace(wall=np.ones_like(problem.plane.wall))
    problem.plane = everywhere
    observations, _ = scatter(problem, 100, np.random.default_rng(7))
    assert observations.max() < 0.05  # the start


# --- of a run


def test_a_run_says_what_its_buckets_look_like() -> None:
    options = {"stop": "budget", "evaluate_every": 10**9, "t_env": 5}
    options["max_steps"] = amount(20_000, plain=5000)
    lake = qrmax.make("continuous/frozen-lake/abc")
    run = qrmax.train("bucket-qrmax", lake, grid=10, **options)
    found = run.diagnosis(5000)
    assert found == run.diagnosis(5000)
    assert found.observations == 5000
    assert 50 < found.buckets <= len(run.agent.buckets) <= 100
    assert found.largest_diameter < np.sqrt(2.0)  # a bucket is a cell
    assert found.mixed_buckets == 0.0
    coarse = qrmax.train("bucket-qrmax", lake, grid=4, **options).diagnosis(5000)
    assert coarse.mixed_buckets > 0.0
    assert 2.5 < coarse.mean_diameter < 2.5 * np.sqrt(2.0)


def test_what_has_no_buckets_of_a_plane_says_so() -> None:
    run = qrmax.train("qrmax", qrmax.make("office/map1/exp1"), max_steps=10, stop="budget")
    with pytest.raises(ParameterError, match=r"'qrmax' on 'office/map1/exp1' has no buckets"):
        run.diagnosis()


def test_a_number_of_samples_that_is_none_is_refused() -> None:
    with pytest.raises(ParameterError, match="samples is 0; allowed: "):
        scatter(qrmax.make("continuous/line/ab"), 0, np.random.default_rng(7))


def test_an_agent_that_has_seen_little_is_diagnosed_by_that() -> None:
    problem = qrmax.make("continuous/line/ab")
    tried = bucket_trial("bucket-qrmax", problem, grid=20).play(3)
    found = diagnose(tried.agent.buckets, *scatter(problem, 1000, np.random.default_rng(7)))
    assert found.buckets == len(tried.agent.buckets) <= 3
    assert found.unknown > 700
