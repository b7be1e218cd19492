"""What buckets allow, once they are known evenly."""

from __future__ import annotations

import numpy as np
import pytest

import qrmax
from qrmax.agents.buckets.buckets import Buckets
from qrmax.agents.buckets.simhash import simhash, uniform_grid
from qrmax.analysis.bucket_plan import plan_on_buckets
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.seeding import stream
from qrmax.training.plane_evaluator import PlaneEvaluator

GAMMA = 0.95


def success(problem: ContinuousProblem, buckets: Buckets, samples: int = 20_000) -> float:
    policy = plan_on_buckets(problem, buckets, GAMMA, np.random.default_rng(7), samples)
    return PlaneEvaluator(problem, GAMMA).success(policy, 200, stream(7, "evaluation"))


def test_a_fine_grid_allows_what_is_optimal() -> None:
    line = qrmax.make("continuous/line/ab", max_episode_steps=200)
    assert success(line, Buckets(line.observations, uniform_grid(1, cells=40))) == 1.0


def test_one_bucket_allows_nothing() -> None:
    lake = qrmax.make("continuous/frozen-lake/abc", max_episode_steps=100)
    assert success(lake, Buckets(lake.observations, uniform_grid(2, cells=1)), 1000) == 0.0


def test_buckets_that_mix_holes_with_ice_allow_less() -> None:
    """With these hyperplanes: how much less differs between draws of them."""
    lake = qrmax.make("continuous/frozen-lake/abc", max_episode_steps=300)
    hyperplanes = simhash(2, 8, 8, 0.7, np.random.default_rng(101))
    mixed, aware = (
        success(lake, Buckets(lake.observations, hyperplanes, event_aware=aware))
        for aware in (False, True)
    )
    assert mixed < 0.3 < 0.7 < aware


@pytest.mark.parametrize("aware", [False, True])
def test_the_same_samples_make_the_same_plan(aware: bool) -> None:
    corridor = qrmax.make("continuous/corridor/abc")
    tables = []
    for _ in range(2):
        hyperplanes = simhash(2, 4, 4, 1.0, np.random.default_rng(1))
        buckets = Buckets(corridor.observations, hyperplanes, event_aware=aware)
        rng = np.random.default_rng(2)
        tables.append(plan_on_buckets(corridor, buckets, GAMMA, rng, samples=300).table)
    np.testing.assert_array_equal(*tables)
