"""The one rule by which chance chooses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmax.draw import draw

JUST_BELOW_1 = float(np.nextafter(1.0, 0.0))


@pytest.mark.parametrize(
    ("u", "index"), [(0.0, 1), (0.24, 1), (0.25, 3), (0.74, 3), (0.75, 4), (JUST_BELOW_1, 4)]
)
def test_a_number_falls_into_the_share_that_covers_it(u: float, index: int) -> None:
    weights = [0.0, 0.25, 0.0, 0.5, 0.25, 0.0]
    assert draw(weights, u) == index
    assert draw(np.array(weights), u) == index


def test_what_rounding_leaves_over_falls_to_the_last_possible_one() -> None:
    assert draw([0.3, 0.6999999, 0.0], JUST_BELOW_1) == 1


@given(
    st.lists(st.sampled_from([0.0, 0.1, 1 / 3, 1.0]), min_size=1).filter(any),
    st.floats(0.0, 1.0, exclude_max=True),
)
def test_what_is_impossible_is_never_drawn(weights: list[float], u: float) -> None:
    shares = np.array(weights) / sum(weights)
    assert shares[draw(shares, u)] > 0.0


def test_each_is_drawn_as_often_as_it_should_be() -> None:
    weights, samples = np.array([0.5, 0.0, 0.2, 0.3]), 20_000
    rng = np.random.default_rng(5)
    seen = np.bincount([draw(weights, rng.random()) for _ in range(samples)], minlength=4)
    deviation = np.sqrt(weights * (1 - weights) / samples)
    assert (np.abs(seen / samples - weights) <= 5 * deviation).all()
