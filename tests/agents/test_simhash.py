"""SimHash and the uniform grid: what becomes of an observation."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmax.agents.buckets.simhash import Projection, simhash, uniform_grid, words_of, words_of_all
from qrmax.agents.registry import make_config
from qrmax.errors import ParameterError

pytestmark = pytest.mark.small_enough_without_jit


def drawn(
    dimension: int = 2, functions: int = 4, bits: int = 8, offset: float = 1.0, seed: int = 7
) -> Projection:
    return simhash(dimension, functions, bits, offset, np.random.default_rng(seed))


def keys(projection: Projection, points: np.ndarray) -> np.ndarray:
    """The words of each point, without the label's."""
    return words_of_all(projection, points, np.zeros(len(points), dtype=np.int64))[:, 1:]


def bits_of(projection: Projection, points: np.ndarray) -> np.ndarray:
    """The numbers of the rows, one by one: `[point, row]`."""
    found = words_of_all(projection, points, np.zeros(len(points), dtype=np.int64))
    widths = [int(most).bit_length() for most in projection.top]
    return (found[:, projection.word] >> projection.shift) & ((1 << np.array(widths)) - 1)


def square(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (count, 2))


# --- SimHash


@pytest.mark.parametrize(("functions", "bits"), [(1, 1), (4, 8), (3, 11), (64, 64)])
def test_there_are_as_many_hyperplanes_as_functions_times_bits(functions: int, bits: int) -> None:
    projection = drawn(5, functions, bits)
    assert projection.rows.shape == (functions * bits, 1 + 5)
    assert projection.top.tolist() == [1] * (functions * bits)
    places = set(zip(projection.word.tolist(), projection.shift.tolist(), strict=True))
    assert len(places) == functions * bits  # no two bits in the same place
    assert projection.words == 1 + -(-functions * bits // 32)


def test_a_bit_is_the_side_of_a_hyperplane() -> None:
    projection, points = drawn(3, 2, 5), np.random.default_rng(0).uniform(-1.0, 1.0, (500, 3))
    distance = points @ projection.rows[:, 1:].T + projection.rows[:, 0] - 1.0
    assert np.abs(distance).min() > 1e-12  # none is so close that rounding decides
    np.testing.assert_array_equal(bits_of(projection, points), distance > 0.0)


def test_through_the_middle_all_points_of_a_ray_share_a_bucket() -> None:
    projection = drawn(offset=0.0)
    for direction in square(200):
        ray = direction * np.linspace(0.01, 1.0, 30)[:, None]
        assert len(np.unique(keys(projection, ray), axis=0)) == 1


def test_with_an_offset_they_do_not() -> None:
    projection = drawn(offset=1.0)
    rays = [direction * np.linspace(0.01, 1.0, 30)[:, None] for direction in square(200)]
    assert np.mean([len(np.unique(keys(projection, ray), axis=0)) > 1 for ray in rays]) > 0.95


def test_the_nearer_two_points_the_more_bits_they_share() -> None:
    """On average over hyperplanes, by the angle or, with an offset, by the distance."""
    projection, here = drawn(functions=64, bits=64), square(200)
    shared = []
    for far in (0.01, 0.1, 0.3, 1.0):
        there = here + far * np.array([0.6, 0.8])
        shared.append((bits_of(projection, here) == bits_of(projection, there)).mean())
    assert all(nearer > farther + 0.01 for nearer, farther in pairwise(shared))
    assert shared[0] > 0.99


@pytest.mark.parametrize("m", [16, 32, 64])
def test_a_square_has_about_a_third_of_half_the_square_of_the_hyperplanes_as_buckets(
    m: int,
) -> None:
    """m lines make at most 1 + m + m(m - 1)/2 cells of the plane; some meet outside the square."""
    found = [
        len(np.unique(keys(drawn(functions=m // 8, seed=seed), square(20_000)), axis=0))
        for seed in range(8)
    ]
    assert max(found) <= 1 + m + m * (m - 1) // 2
    assert 0.25 < np.mean(found) / (m * m / 2) < 0.45
    through = drawn(functions=m // 8, offset=0.0)
    assert len(np.unique(keys(through, square(20_000)), axis=0)) <= 2 * m  # sectors only


def test_the_same_seed_draws_the_same_hyperplanes_and_another_seed_others() -> None:
    first, again, other = (drawn(seed=seed).rows for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not (first == other).any()


@given(st.integers(1, 40), st.integers(0, 9), st.booleans())
def test_one_by_one_or_all_at_once_is_the_same(dimension: int, seed: int, grid: bool) -> None:
    rng = np.random.default_rng(seed)
    projection = uniform_grid(dimension, 2 + seed) if grid else drawn(dimension, seed=seed)
    points, labels = rng.uniform(-1.0, 1.0, (20, dimension)), rng.integers(0, 5, 20)
    assert words_of_all(projection, points, labels).tolist() == [
        words_of(projection, point, int(label)) for point, label in zip(points, labels, strict=True)
    ]


@given(st.integers(0, 999))
def test_numbers_are_added_in_one_order_where_rounding_decides(seed: int) -> None:
    """b first, then dimension by dimension, as the compiled loop does it: 1 + 1e16 is 1e16."""
    rng = np.random.default_rng(seed)
    rows = rng.choice([1e16, -1e16, 1.0, 0.5, 0.0], (12, 13))
    projection = uniform_grid(12, 4)._replace(rows=rows)
    x = rng.choice([-1.0, 1.0], 12)
    expected = []
    for b, *w in rows.tolist():
        total = b
        for weight, value in zip(w, x.tolist(), strict=True):
            total += weight * value
        expected.append(min(max(int(np.floor(total)), 0), 3))
    assert bits_of(projection, x[None]).tolist() == [expected]
    assert (
        words_of(projection, x, 0)
        == words_of_all(projection, x[None], np.zeros(1, int)).tolist()[0]
    )


# --- the grid


@pytest.mark.parametrize(("dimension", "cells"), [(1, 1), (1, 10), (2, 7), (3, 1000), (2, 2**20)])
def test_a_grid_numbers_the_place_along_each_axis(dimension: int, cells: int) -> None:
    projection = uniform_grid(dimension, cells)
    points = np.random.default_rng(0).uniform(-1.0, 1.0, (300, dimension))
    expected = np.floor((points + 1.0) * cells / 2.0)
    np.testing.assert_array_equal(bits_of(projection, points), expected)


def test_the_border_belongs_to_the_outermost_cells() -> None:
    projection = uniform_grid(2, 10)
    assert bits_of(projection, np.array([[-1.0, 1.0]])).tolist() == [[0, 9]]


# --- settings that make no sense


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"functions": 65, "bits": 64}, "functions times bits is 4160; allowed: .* at most 4096"),
        ({"functions": 10**9, "bits": 10**9}, "functions times bits is 10{18}; allowed: "),
        ({"functions": 0, "grid": 10}, "functions is 0; allowed: "),  # even where not used
        ({"offset": -1.0, "grid": 10}, "offset is -1.0; allowed: "),
        ({"grid": 2**20 + 1}, "grid is 1048577; allowed: .* at most 1048576"),
    ],
)
@pytest.mark.parametrize("name", ["bucket-qrmax", "bucket-qrmax-rm", "bucket-rmax"])
def test_settings_that_make_no_sense_together_are_refused(
    name: str, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ParameterError, match=f"^{message}"):
        make_config(name, settings)


def test_a_grid_of_too_many_dimensions_is_refused() -> None:
    with pytest.raises(ParameterError, match="dimensions of a grid is 21168; allowed: "):
        uniform_grid(84 * 84 * 3, 10)
