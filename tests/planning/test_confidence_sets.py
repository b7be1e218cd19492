"""Optimism over confidence sets: the kernels beside the dual, and beside numbers known by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.optimize
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from amounts import amount
from learners import Variant, trial
from qrmax.agents.revising.revising_agent import RevisingAgent
from qrmax.empirical.successors import Successors
from qrmax.planning import reference
from qrmax.planning.confidence_sets import CHI_SQUARE, L1, L1_ANYWHERE, row_values
from qrmax.planning.row_planner import RowPlanner
from random_problems import ANY_SIGN, NON_NEGATIVE, problems

pytestmark = pytest.mark.small_enough_without_jit


def worth(
    prob: list[float],
    gain: list[float],
    radius: float,
    optimistic: float = 1e9,
    ball: int | None = CHI_SQUARE,
) -> float:
    """The value of the one action of state 0, which leads to states with these gains."""
    seen = Successors(max(len(gain), 2), 1, by_successor=True)
    for x in range(len(gain)):
        seen.record(0, 0, outcome=x, reward=0.0)
    planner = RowPlanner(
        seen.arrays, 1, gamma=0.9, optimistic=optimistic, tolerance=1e-9, ball=ball
    )
    planner.rows.prob[0, 0, : len(prob)] = prob
    planner.rows.base[0, 0], planner.rows.radius[0, 0] = 0.0, radius
    values = np.empty(1)
    row_values(planner.rows, np.array([[*gain, 0.0]]), optimistic, 0, 0, values)
    return float(values[0])


def test_a_small_radius_adds_standard_deviations() -> None:
    prob, gain, c, n = np.array([0.5, 0.3, 0.2]), np.array([1.0, 2.0, 4.0]), 2.0, 40
    mean = prob @ gain
    deviation = math.sqrt(prob @ (gain - mean) ** 2)
    assert worth([*prob], [*gain], c**2 / n) == pytest.approx(mean + c * deviation / math.sqrt(n))


def test_radius_0_is_the_expectation() -> None:
    assert worth([0.25, 0.75], [4.0, 8.0], 0.0) == 7.0


def test_a_large_radius_is_the_best_successor_and_no_more() -> None:
    assert worth([0.25, 0.75], [8.0, 4.0], 2.999) < 8.0
    assert worth([0.25, 0.75], [8.0, 4.0], 3.0) == 8.0  # (1 - 1/4)^2 / (1/4) + 3/4
    assert worth([0.25, 0.75], [8.0, 4.0], 1e6) == 8.0
    assert worth([0.25, 0.75], [8.0, 4.0], 1e6, optimistic=5.0) == 5.0


def test_the_lowest_successor_drops_out_before_its_probability_is_negative() -> None:
    """Mass 0.9 is left on the others: their mean and variance, and the radius that is left."""
    prob, gain, radius = [0.1, 0.8, 0.1], [-10.0, 1.0, 2.0], 0.5
    mean = (0.8 * 1.0 + 0.1 * 2.0) / 0.9
    variance = (0.8 * (1.0 - mean) ** 2 + 0.1 * (2.0 - mean) ** 2) / 0.9
    by_hand = mean + math.sqrt((1.5 * 0.9 - 1.0) * variance)
    assert worth(prob, gain, radius) == pytest.approx(by_hand)


def test_values_of_any_scale_are_treated_alike() -> None:
    prob, gain = [0.5, 0.3, 0.2], [0.1, 2.0, 3.0]
    for radius in (0.01, 0.5, 2.0):
        small = worth(prob, [2.0**-40 * x for x in gain], radius)
        assert small == 2.0**-40 * worth(prob, gain, radius)


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 6),
    radius=st.sampled_from([0.0, 0.01, 0.3, 1.0, 4.0]),
    gains=st.sampled_from([[0.0, 1.0], [0.0, 1e-9, 10.0], [-5.0, 0.0, 0.5, 3.0]]),
)
@settings(max_examples=amount(100, plain=30))
def test_the_kernel_finds_what_the_dual_says(
    seed: int, size: int, radius: float, gains: list[float]
) -> None:
    rng = np.random.default_rng(seed)
    prob, gain = rng.dirichlet(np.full(size, 0.5)), rng.choice(gains, size)
    found, dual = (
        worth([*prob], [*gain], radius),
        reference.largest_expectation(prob, gain, radius),
    )
    assert found == pytest.approx(dual, abs=1e-6 * np.abs(gain).max())
    assert prob @ gain - 1e-9 <= found <= gain.max() + 1e-9


def test_successors_without_probability_count_for_nothing() -> None:
    for radius in (0.0, 0.1, 4.0):
        known = worth([0.4, 0.6], [1.0, 1.0 + 2**-52], radius)
        assert worth([0.4, 0.0, 0.6, 0.0], [1.0, 9.0, 1.0 + 2**-52, -9.0], radius) == known
    assert worth([1.0, 0.0], [1e-9, 10.0], 4.0) == 1e-9


# --- L1


def test_half_the_radius_moves_from_the_worst_to_the_best() -> None:
    prob, gain = [0.2, 0.5, 0.3], [1.0, 5.0, 2.0]
    assert worth(prob, gain, 0.1, ball=L1) == pytest.approx(0.15 * 1 + 0.55 * 5 + 0.3 * 2)
    assert worth(prob, gain, 0.6, ball=L1) == pytest.approx(0.8 * 5 + 0.2 * 2)
    assert worth(prob, gain, 1.0, ball=L1) == worth(prob, gain, 9.0, ball=L1) == 5.0


def test_mass_that_may_go_anywhere_is_worth_the_most_there_is() -> None:
    """However little there is to gain: this is what drowns small values."""
    prob, gain = [0.2, 0.8], [0.0, 1e-6]
    assert worth(prob, gain, 0.1, optimistic=10.0, ball=L1) < 1e-6
    anywhere = worth(prob, gain, 0.1, optimistic=10.0, ball=L1_ANYWHERE)
    assert anywhere == pytest.approx(0.05 * 10.0 + 0.8 * 1e-6)


@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 6),
    radius=st.sampled_from([0.0, 0.01, 0.3, 1.0, 2.0, 4.0]),
    gains=st.sampled_from([[0.0, 1.0], [0.0, 1e-9, 10.0], [-5.0, 0.0, 0.5, 3.0]]),
    beyond=st.sampled_from([None, 10.0, 20.0]),
)
@settings(max_examples=amount(100, plain=30))
def test_the_kernel_finds_what_linear_programming_finds(
    seed: int, size: int, radius: float, gains: list[float], beyond: float | None
) -> None:
    rng = np.random.default_rng(seed)
    prob, gain = rng.dirichlet(np.full(size, 0.5)), rng.choice(gains, size)
    ball, most = (L1, 1e9) if beyond is None else (L1_ANYWHERE, beyond)
    found = worth([*prob], [*gain], radius, most, ball)
    if beyond is not None:
        prob, gain = np.append(prob, 0.0), np.append(gain, beyond)
    assert found == pytest.approx(_by_linear_programming(prob, gain, radius), abs=1e-7)
    assert found == pytest.approx(reference.largest_expectation_in_l1(prob, gain, radius))


def _by_linear_programming(prob: np.ndarray, gain: np.ndarray, radius: float) -> float:
    """Over p and the sizes d >= |p - P|, which sum to the radius at most."""
    size = len(prob)
    eye, zero = np.eye(size), np.zeros(size)
    solved = scipy.optimize.linprog(
        np.concatenate([-gain, zero]),
        A_ub=np.block([[eye, -eye], [-eye, -eye], [zero, np.ones(size)]]),
        b_ub=np.concatenate([prob, -prob, [radius]]),
        A_eq=np.concatenate([np.ones(size), zero])[None],
        b_eq=[1.0],
    )
    return float(-solved.fun)


# --- plans


@pytest.mark.parametrize(
    ("name", "support"),
    [
        ("qr-ucb", "seen"),
        ("qr-ucb-rm", "seen"),
        ("qr-psrl", "seen"),
        ("qr-effects", "seen"),
        ("qr-mbie-rm", "seen"),
        ("mbie", "all"),
        ("mbie-eb", "seen"),
    ],
)
@given(
    problem=problems(NON_NEGATIVE) | problems(ANY_SIGN),
    steps=st.integers(1, 120),
    t_min=st.integers(1, 3),
)
@settings(max_examples=amount(25, plain=5))
def test_the_plan_of_an_agent_is_the_fixed_point(
    name: str, support: str, problem: object, steps: int, t_min: int
) -> None:
    assume(problem.start()[~problem.done()].any())
    assume(not (Variant(name).knows_machine and problem.machine.is_stochastic))
    told = {"support": support, "gamma": 0.5, "t_min": t_min, "r_max": 1000.0, "tolerance": 1e-12}
    agent = trial(name, problem, **told).rush(steps).agent
    assert isinstance(agent, RevisingAgent)
    planner = agent.planner
    value, done = planner.tables.value, planner.tables.done
    backed_up = reference.back_up_confidence_sets(
        planner.rows, planner.task, done, 0.5, planner.rules.optimistic, value
    )
    np.testing.assert_allclose(value, backed_up, rtol=1e-7, atol=1e-6)
