"""The numbers of the paper's theory: by hand, in the paper's scenario, and by their own logic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmax.errors import ParameterError
from qrmax.theory import (
    CONCENTRATIONS,
    Bound,
    Concentration,
    Goal,
    Sizes,
    bucket_bound,
    bucket_diameter,
    comparison,
    qrmax_bound,
    rmax_bound,
)

REFERENCE = Sizes(states=225, actions=4, task_states=8)  # the paper's 15 x 15 grid
TINY = Sizes(states=2, actions=3, task_states=5)
EASY = Goal(epsilon=0.8, delta=0.12, gamma=0.5, r_max=1.0)  # beta = 0.1, R_max / beta = 10

sizes = st.builds(
    Sizes,
    states=st.integers(1, 10**6),
    actions=st.integers(1, 100),
    task_states=st.integers(1, 1000),
)
goals = st.builds(
    Goal,
    epsilon=st.floats(0.01, 0.9),
    delta=st.floats(1e-6, 0.99),
    gamma=st.floats(0.1, 0.99),
    r_max=st.floats(1.0, 100.0),
)
concentrations = st.sampled_from(CONCENTRATIONS)


# By hand


def test_hoeffding_thresholds_are_8_over_beta_squared_times_the_logarithm() -> None:
    bound = qrmax_bound(TINY, EASY, concentration="hoeffding", deterministic=False)
    assert bound.t_env == math.ceil(800 * math.log(100)) == 3685  # 2 x 6 / 0.12 = 100
    assert bound.t_task == math.ceil(800 * math.log(20 / 0.12)) == 4093
    assert rmax_bound(TINY, EASY, concentration="hoeffding").t_env == 4972  # 800 ln 500


def test_weissman_thresholds_grow_with_the_number_of_outcomes() -> None:
    bound = qrmax_bound(TINY, EASY, concentration="weissman", deterministic=False)
    assert bound.t_env == math.ceil(200 * math.log(4 * 100)) == 1199  # two states: 2^2 = 4
    assert bound.t_task == math.ceil(200 * math.log(32 * 20 / 0.12)) == 1717  # 2^5 = 32
    assert rmax_bound(TINY, EASY).t_env == math.ceil(200 * math.log(1024 * 500)) == 2630


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_a_deterministic_machine_is_known_after_one_sample(concentration: Concentration) -> None:
    assert qrmax_bound(REFERENCE, EASY, concentration=concentration).t_task == 1


def test_the_horizon_and_the_escape_probability() -> None:
    assert EASY.horizon == math.ceil(2 * math.log(5)) == 4
    assert EASY.escape_probability == pytest.approx(0.2)
    assert EASY.beta == pytest.approx(0.1)
    assert Goal(epsilon=0.1, delta=0.05, gamma=0.9, r_max=1000.0).horizon == 123  # 10 ln 200000


def test_the_bound_on_the_steps_is_h_u_over_p_times_the_logarithm() -> None:
    bound = qrmax_bound(TINY, EASY, concentration="hoeffding")
    unknown = 6 * 3685 + 10 * 1
    steps = math.ceil(20 * unknown * math.log(unknown / 0.12))  # H / p = 4 / 0.2
    error = pytest.approx(2 * (0.2 + 0.5 * 2 * 0.1) / 0.5)  # xi_R = 2 beta, V_max = 2
    assert bound == Bound(t_env=3685, t_task=1, unknown=unknown, steps=steps, value_error=error)
    assert steps == 5_363_880


def test_rmax_learns_every_triple_of_the_product() -> None:
    bound = rmax_bound(TINY, EASY, concentration="hoeffding")
    assert (bound.t_task, bound.unknown) == (None, 30 * 4972)


def test_buckets_need_half_of_beta_and_count_rewards_and_transitions_apart() -> None:
    bound = bucket_bound(TINY, EASY)
    assert bound.t_env == math.ceil(3200 * math.log(100)) == 14737  # R_max / beta = 20
    assert bound.t_task == math.ceil(3200 * math.log(20 / 0.12)) == 16372
    assert bound.unknown == 6 * 2 * 14737 + 10 * 2 * 16372
    assert bucket_diameter(EASY, lipschitz=2.0) == pytest.approx(0.025)


def test_the_accuracy_of_the_appendix_misses_what_section_4_2_asks_for() -> None:
    beta, v_max, gamma = 0.0025, 10.0, 0.9
    goal = Goal(epsilon=0.1, delta=0.05, gamma=gamma)

    def error(rewards: int, transitions: int) -> float:
        return 2 * (rewards * beta + gamma * v_max * transitions * beta) / (1 - gamma)

    both = qrmax_bound(TINY, goal, deterministic=False).value_error
    assert rmax_bound(TINY, goal).value_error == pytest.approx(error(1, 1)) == pytest.approx(0.5)
    assert qrmax_bound(TINY, goal).value_error == pytest.approx(error(2, 1)) == pytest.approx(0.55)
    assert both == pytest.approx(error(3, 2)) == pytest.approx(1.05)
    assert bucket_bound(TINY, goal).value_error == pytest.approx(both / 2)


# The paper's scenario


def test_the_reference_scenario_comes_out_as_printed() -> None:
    rows = {method.name: method for method in comparison(REFERENCE, horizon=250, successors=3)}
    assert rows["QR-Max"].paper_entries == 204_300  # 0.204 M
    assert rows["PSRL, OPSRL"].paper_entries == 50_625_000  # 50.6 M
    assert rows["PSRL, OPSRL"].paper_entries / rows["QR-Max"].paper_entries == pytest.approx(
        250, rel=0.01
    )
    assert rows["QR-Max"].paper_samples == 2_700  # 2.7 k


def test_the_samples_of_ucbvi_are_not_those_printed_but_those_of_the_formula() -> None:
    ucbvi = comparison(REFERENCE, horizon=250, successors=3)[1]
    assert ucbvi.name == "UCBVI"
    assert ucbvi.paper_samples == 225 * 4 * 250**3 == 14_062_500_000
    assert ucbvi.paper_samples * 250 == pytest.approx(3.5e12, rel=0.01)  # what is printed


def test_the_other_rows_of_the_table() -> None:
    rows = {method.name: method for method in comparison(TINY, horizon=7, successors=2)}
    assert rows["R-Max"].paper_entries == 4 * 3 * 25
    assert rows["R-Max"].paper_samples == 30
    assert rows["QRM"].paper_entries == rows["QRM"].our_entries == 30
    assert rows["UCBVI"].paper_entries == 7 * 4 * 3
    assert [name for name, row in rows.items() if row.paper_samples is None] == [
        "PSRL, OPSRL",
        "QRM",
    ]


def test_what_the_library_stores_is_linear_in_the_states() -> None:
    rows = {method.name: method for method in comparison(REFERENCE, horizon=250, successors=3)}
    assert rows["QR-Max"].our_entries == 225 * 4 * 3 + 225 * 8
    assert rows["R-Max"].our_entries == 225 * 8 * 4 * 3
    episodic = 225 * 8 * 4 * 3 + 250 * 225 * 8
    assert rows["UCBVI"].our_entries == rows["PSRL, OPSRL"].our_entries == episodic


# By their own logic


@given(sizes, goals)
def test_weissman_holds_at_the_threshold_and_fails_one_sample_before(
    size: Sizes, goal: Goal
) -> None:
    def log_slack(samples: int, components: int, outcomes: int) -> float:
        """ln of delta / (2 N), less ln of 2^n exp(-m beta^2 / (2 R_max^2))."""
        allowed = math.log(goal.delta / (2 * components))
        failing = outcomes * math.log(2) - samples * (goal.beta / goal.r_max) ** 2 / 2
        return allowed - failing

    bound = qrmax_bound(size, goal, deterministic=False)
    assert bound.t_task is not None
    product = rmax_bound(size, goal)
    for samples, components, outcomes in (
        (bound.t_env, size.states * size.actions, size.states),
        (bound.t_task, size.states * size.task_states, size.task_states),
        (product.t_env, size.triples, size.states * size.task_states),
    ):
        rounding = 1e-14 * outcomes + 1e-12  # of the two sums above
        assert log_slack(samples, components, outcomes) >= -rounding
        assert log_slack(samples - 1, components, outcomes) < rounding


@given(sizes, goals)
def test_both_thresholds_suffice_for_the_rewards(size: Sizes, goal: Goal) -> None:
    components = size.states * size.actions
    for concentration in CONCENTRATIONS:
        samples = qrmax_bound(size, goal, concentration=concentration).t_env
        log_failure = math.log(2) - 2 * samples * (goal.beta / goal.r_max) ** 2
        assert log_failure <= math.log(goal.delta / (2 * components)) + 1e-9


@given(sizes, goals)
def test_hoeffding_suffices_for_the_transitions_of_small_worlds_only(
    size: Sizes, goal: Goal
) -> None:
    hoeffding = qrmax_bound(size, goal, concentration="hoeffding").t_env
    weissman = qrmax_bound(size, goal, concentration="weissman").t_env
    spare = 3 * math.log(2 * size.pairs / goal.delta) - size.states * math.log(2)
    if abs(spare) > 1e-6 * size.states:
        assert (hoeffding >= weissman) == (spare > 0)


@given(sizes, goals, concentrations, st.booleans())
def test_asking_for_more_never_costs_less(
    size: Sizes, goal: Goal, concentration: Concentration, deterministic: bool
) -> None:
    def costs(**changes: float) -> list[int]:
        asked = {name: getattr(goal, name) for name in ("epsilon", "delta", "gamma", "r_max")}
        other = Goal(**{**asked, **changes})
        factored = qrmax_bound(
            size, other, concentration=concentration, deterministic=deterministic
        )
        product = rmax_bound(size, other, concentration=concentration)
        buckets = bucket_bound(size, other)
        return [
            number
            for bound in (factored, product, buckets)
            for number in (bound.t_env, bound.t_task or 0, bound.unknown, bound.steps)
        ]

    plain = costs()
    for dearer in (
        costs(epsilon=goal.epsilon / 2),
        costs(delta=goal.delta / 2),
        costs(gamma=(1 + goal.gamma) / 2),
        costs(r_max=goal.r_max * 2),
    ):
        assert all(more >= less for less, more in zip(plain, dearer, strict=True))
        assert dearer[0] > plain[0]  # m_E, strictly


@given(sizes, goals, concentrations)
def test_the_factored_bound_is_below_that_of_the_product(
    size: Sizes, goal: Goal, concentration: Concentration
) -> None:
    factored = qrmax_bound(size, goal, concentration=concentration)
    product = rmax_bound(size, goal, concentration=concentration)
    assert factored.t_env <= product.t_env
    if size.task_states > 1:
        assert factored.unknown < product.unknown
        assert factored.steps < product.steps


@given(goals)
def test_the_value_error_is_in_proportion_to_epsilon_and_never_within_it(goal: Goal) -> None:
    error = qrmax_bound(TINY, goal).value_error
    assert error > goal.epsilon
    share = goal.epsilon**2 / error  # asking for this much ...
    stricter = Goal(epsilon=share, delta=goal.delta, gamma=goal.gamma, r_max=goal.r_max)
    promised = qrmax_bound(TINY, stricter).value_error
    assert promised == pytest.approx(goal.epsilon)  # ... promises epsilon


def test_nothing_overflows() -> None:
    vast = Sizes(states=10**9, actions=10**9, task_states=10**9)
    for goal in (
        Goal(epsilon=0.1, delta=0.05),
        Goal(epsilon=5e-324, delta=5e-324, gamma=math.nextafter(1, 0), r_max=1.7e308),
    ):
        for bound in (qrmax_bound(vast, goal), rmax_bound(vast, goal), bucket_bound(vast, goal)):
            assert bound.steps > bound.unknown > bound.t_env > 1


def test_numbers_of_numpy_are_numbers() -> None:
    goal = Goal(epsilon=np.float32(0.5), delta=np.float64(0.25), gamma=np.float64(0.5), r_max=1)
    size = Sizes(states=np.int32(2), actions=np.int64(3), task_states=5)
    plain = Goal(epsilon=0.5, delta=0.25, gamma=0.5, r_max=1.0)
    assert rmax_bound(size, goal) == rmax_bound(TINY, plain)


# Errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon is 0.0; allowed: numbers above 0.0, below 10.0"),
        ({"epsilon": 10.0}, "epsilon is 10.0"),
        ({"epsilon": math.nan}, "epsilon is nan"),
        ({"epsilon": "0.1"}, "epsilon is '0.1'"),
        ({"delta": 0.0}, "delta is 0.0; allowed: numbers above 0.0, below 1.0"),
        ({"delta": 1.0}, "delta is 1.0"),
        ({"gamma": 1.0}, "gamma is 1.0; allowed: numbers above 0.0, below 1.0"),
        ({"r_max": 0.0}, "r_max is 0.0; allowed: numbers above 0.0, below inf"),
        ({"r_max": math.inf}, "r_max is inf"),
    ],
)
def test_a_goal_out_of_range_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as raised:
        Goal(**{"epsilon": 0.1, "delta": 0.05, **change})
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize("name", ["states", "actions", "task_states"])
def test_sizes_are_whole_numbers_from_1_on(name: str) -> None:
    for wrong in (0, 1.5, True):
        with pytest.raises(ParameterError, match=f"{name} is {wrong}; allowed: whole numbers"):
            Sizes(**{"states": 2, "actions": 2, "task_states": 2, name: wrong})


def test_other_arguments_are_checked_too() -> None:
    with pytest.raises(ParameterError, match="concentration is 'chernoff'; allowed: 'hoeffding'"):
        rmax_bound(TINY, EASY, concentration="chernoff")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="horizon is 0"):
        comparison(TINY, horizon=0, successors=1)
    with pytest.raises(ParameterError, match="successors is 0"):
        comparison(TINY, horizon=1, successors=0)
    with pytest.raises(ParameterError, match=r"lipschitz is -1\.0"):
        bucket_diameter(EASY, lipschitz=-1.0)
