"""The share of partitions with buckets that are too wide, and their diameters."""

from __future__ import annotations

import math

import numpy as np
import pytest

import qrmax
from qrmax.agents.buckets.in_buckets import BucketSettings
from qrmax.analysis.lsh_failure import (
    bucket_widths,
    estimate_lsh_failure,
    lipschitz_constant,
    wilson,
)
from qrmax.errors import ParameterError

LINE = qrmax.make("continuous/line/ab")


def chance() -> np.random.Generator:
    return np.random.default_rng(7)


def test_the_cells_of_a_grid_are_as_wide_as_they_are() -> None:
    for diameter, expected in ((0.0499, 1.0), (0.0501, 0.0)):  # cells of 1 / 20
        found = estimate_lsh_failure(
            LINE, BucketSettings(grid=20), diameter, chance(), partitions=2, samples=20_000
        )
        assert found.probability == expected
    assert found.widest[1] == pytest.approx(0.05, abs=5e-4)


def test_more_hyperplanes_fail_less_often() -> None:
    shares = []
    for functions in (2, 8, 32):
        settings = BucketSettings(functions=functions)
        found = estimate_lsh_failure(LINE, settings, 0.2, chance(), partitions=30, samples=1000)
        low, high = found.interval
        assert low <= found.probability <= high
        shares.append(found.probability)
    assert shares[0] > shares[1] > shares[2]


def test_one_hyperplane_on_a_line_has_a_known_probability() -> None:
    # the cut is at -b / w on [-1, 1], Cauchy for offset 1: it is outside with probability 1/2, and
    # else leaves a part of half the line or more; so a part is wider than 0.9 of the line with
    # probability 1/2 + P(0.8 < |cut| < 1)
    settings = BucketSettings(functions=1, bits=1, offset=1.0)
    found = estimate_lsh_failure(LINE, settings, 0.9, chance(), partitions=400, samples=500)
    expected = 1.0 - 2.0 / math.pi * math.atan(0.8)
    low, high = found.interval
    assert low - 0.02 < expected < high + 0.02


def test_labels_keep_event_aware_buckets_apart() -> None:
    sizes = [
        estimate_lsh_failure(
            LINE, BucketSettings(grid=1, event_aware=aware), 1.0, chance(), partitions=1
        ).buckets[1]
        for aware in (False, True)
    ]
    assert sizes[0] == 1
    assert sizes[1] == len({*LINE.label.tolist()})


def test_widths_are_distances_in_every_direction() -> None:
    rng = np.random.default_rng(3)
    for angle in rng.uniform(0.0, np.pi, size=20):
        ends = np.array([[0.0, 0.0], [np.cos(angle), np.sin(angle)]])
        [width] = bucket_widths(ends, np.zeros(2, dtype=np.int64))
        assert 0.998 <= width <= 1.0 + 1e-12


def test_the_lipschitz_constant_is_that_of_the_noise() -> None:
    office = qrmax.make("continuous/office/map1/exp1", noise=0.1)
    assert lipschitz_constant(office) == pytest.approx(math.sqrt(2.0 / math.pi) / 0.1)
    still = qrmax.make("continuous/office/map1/exp1", noise=0.0)
    assert lipschitz_constant(still) == math.inf


def test_the_interval_of_a_share_is_wilsons() -> None:
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson(10, 10)[1] == pytest.approx(1.0)


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(ParameterError, match="partitions is 0"):
        estimate_lsh_failure(LINE, BucketSettings(), 0.1, chance(), partitions=0)
    with pytest.raises(ParameterError, match="diameter is -1"):
        estimate_lsh_failure(LINE, BucketSettings(), -1.0, chance())
