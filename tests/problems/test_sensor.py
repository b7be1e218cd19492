"""Sensors: turned axes and noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qrmax
from qrmax.problems.continuous_problem import PlaneSimulator
from qrmax.problems.sensor import FARTHEST, Sensor
from qrmax.seeding import stream

MANY = 4000


@given(
    rotation=st.floats(-360.0, 360.0),
    places=st.lists(st.tuples(st.floats(0, 9), st.floats(0, 4)), min_size=1, max_size=9),
)
def test_places_are_found_again_and_lie_within_the_bounds(rotation: float, places: Any) -> None:
    sensor, at = Sensor.of(2, rotation), np.array(places)
    seen = sensor.observe(at)
    np.testing.assert_allclose(sensor.places(seen), at, atol=1e-12)
    low, high = sensor.bounds(np.array([9.0, 4.0]))
    assert ((low - 1e-9 <= seen) & (seen <= high + 1e-9)).all()


def test_unturned_axes_change_no_bit() -> None:
    at = np.random.default_rng(1).random((1000, 2)) * 7.3
    assert Sensor.of(2).observe(at).tobytes() == at.tobytes()
    assert Sensor.of(2).places(at).tobytes() == at.tobytes()


def test_noise_has_the_spread_that_was_asked_for_and_stays_in_the_box() -> None:
    problem = qrmax.make("continuous/frozen-lake/abc", noise=0.0, sensor_noise=0.2)
    player = PlaneSimulator(problem, stream(3, "world"), lambda seen, _: seen)
    seen = []
    for _ in range(MANY):
        player.reset()
        seen.append(player.observation())
    assert np.mean(seen, axis=0) == pytest.approx([5.5, 0.5], abs=0.02)
    assert np.std(seen, axis=0) == pytest.approx([0.2, 0.2], abs=0.01)
    np.testing.assert_allclose(problem.observations.low, [-FARTHEST * 0.2] * 2)
    assert (np.array(seen) >= problem.observations.low).all()


def test_an_observation_stays_the_same_until_the_next_step() -> None:
    problem = qrmax.make("continuous/frozen-lake/abc", sensor_noise=0.2)
    player = PlaneSimulator(problem, stream(3, "world"), lambda seen, _: seen)
    player.reset()
    first = player.observation().tolist()
    assert player.observation().tolist() == first == player.look().tolist()
    player.step(2)
    assert player.observation().tolist() != first
    assert player.position.tolist() != player.observation().tolist()


@pytest.mark.parametrize("options", [{"rotation": 40.0}, {"sensor_noise": 0.3}])
def test_rollouts_at_once_observe_as_a_player_does(options: dict[str, float]) -> None:
    """By the mean of what a policy is shown."""
    problem = qrmax.make(
        "continuous/frozen-lake/abc", max_episode_steps=4, decorations_terminate=False, **options
    )
    shown: list[Any] = []

    class Down:
        def actions(self, observations: Any, q: Any) -> Any:
            shown.append(observations)
            return np.full(len(q), 2)

    qrmax.problems.sampling.sample_episodes(problem, Down(), MANY, np.random.default_rng(1), 0.9)
    player, seen = PlaneSimulator(problem, stream(3, "world"), lambda seen, _: seen), []
    for _ in range(1000):
        player.reset()
        for _ in range(3):
            player.step(2)
        seen.append(player.observation())
    np.testing.assert_allclose(shown[3].mean(axis=0), np.mean(seen, axis=0), atol=0.05)
    np.testing.assert_allclose(shown[3].std(axis=0), np.std(seen, axis=0), atol=0.03)
