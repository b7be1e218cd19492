"""Observations as numbers from -1 to 1, and what is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmax.errors import ObservationError, ParameterError
from qrmax.problems.observations import Observations

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), finite)
def test_every_number_becomes_one_from_minus_1_to_1(low: float, width: float, x: float) -> None:
    box = Observations([low, -np.inf], [low + width, np.inf])
    inside = box.normalise([x, x])
    assert (np.abs(inside) <= 1.0).all()
    assert box.normalise([low, 0.0]).tolist() == [-1.0, 0.0]


def test_bounds_beyond_reason_are_none() -> None:
    largest = float(np.finfo(np.float32).max)
    assert Observations([-largest], [largest]).scaling.squashed.all()


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        ([0.5], "has 1 numbers; needed: 2"),
        ([[0.5, 1.0], [0.5, 1.0]], "has 4 numbers; needed: 2"),
        ([np.nan, 0.0], "has nan in dimension 0"),
        ([0.0, -np.inf], "has -inf in dimension 1"),
        ("left", "not a vector of 2 numbers"),
        (None, "has nan in dimension 0|has 1 numbers"),
        ([1.0, "x"], "not a vector"),
        ([[0.5, 1.0]], r"has the shape \(1, 2\); needed: \(2,\)"),
    ],
)
def test_what_is_no_observation_is_an_error(observation: object, message: str) -> None:
    with pytest.raises(ObservationError, match=message):
        Observations([0.0, 0.0], [1.0, 1.0]).normalise(observation)


def test_many_observations_are_normalised_as_each_of_them() -> None:
    box = Observations([0.0, -np.inf], [10.0, np.inf])
    many = np.random.default_rng(7).normal(5.0, 10.0, size=(50, 2)).astype(np.float32)
    assert box.normalise_all(many).tolist() == [box.normalise(one).tolist() for one in many]
    assert box.normalise_all(np.empty((0, 2))).shape == (0, 2)


@pytest.mark.parametrize(
    ("observations", "message"),
    [
        ([[0.0, 0.0], [0.0, np.nan]], r"\[0.0, nan\] has nan in dimension 1"),
        ([[0.0, 0.0, 0.0]], "has 3 numbers; needed: 2"),
        ([0.0, 0.0], "has 1 numbers; needed: 2"),
    ],
)
def test_one_that_is_none_among_many_is_an_error(observations: object, message: str) -> None:
    with pytest.raises(ObservationError, match=message):
        Observations([0.0, 0.0], [1.0, 1.0]).normalise_all(observations)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ([0.0], [1.0, 2.0], "1 and 2 dimensions"),
        ([], [], "at least one"),
        ([0.0, 2.0], [1.0, 2.0], "dimension 1 is bounded by 2 and 2"),
        ([np.nan], [1.0], "dimension 0"),
    ],
)
def test_bounds_that_bound_nothing_are_an_error(
    low: list[float], high: list[float], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        Observations(low, high)
