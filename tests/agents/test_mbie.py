"""MBIE and MBIE-EB: bonuses and radii of their papers, on the product and factored."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from amounts import amount
from learners import Variant, trial
from qrmax import Edge, Problem, RewardMachine
from qrmax.agents.revising.empirical_rows import EmpiricalRows
from qrmax.agents.revising.mbie import l1_radius
from qrmax.errors import ModelError
from qrmax.problems.simulator import Step
from random_problems import NON_NEGATIVE, problems
from small_problems import LEFT, RIGHT, errand

pytestmark = pytest.mark.small_enough_without_jit

NAMES = ["mbie-eb", "qr-mbie-eb", "qr-mbie-eb-rm", "mbie", "qr-mbie", "qr-mbie-rm"]


def empirical(name: str, problem: Problem, steps: int = 0, **told: Any) -> EmpiricalRows:
    agent = trial(name, problem, **{"t_min": 1, **told}).rush(steps).agent
    assert isinstance(agent, EmpiricalRows)
    return agent


def idle(limit: int | None = None) -> Problem:
    """A machine of one state that never pays, on the cells of an errand."""
    return errand(machine=RewardMachine([Edge("go", "key", "go")], initial="go"), limit=limit)


def step_to(s: int) -> Step:
    return Step(s, 0, 0, 0.0, 0.0, False, False, False)


# --- rows


def test_a_row_is_what_was_seen_of_the_action_alone() -> None:
    agent = empirical("qr-mbie", idle())
    for x in (1, 1, 0):
        agent.update(1, 0, LEFT, step_to(x))
    agent.update(1, 0, RIGHT, step_to(2))
    rows = agent.planner.rows
    assert rows.prob[1, LEFT, :3].tolist() == [2 / 3, 1 / 3, 0.0]
    assert rows.prob[1, RIGHT, :3].tolist() == [0.0, 0.0, 1.0]


def test_the_bonus_of_mbie_eb_shrinks_with_the_visit_count() -> None:
    agent = empirical("qr-mbie-eb", idle(), beta=0.5)
    for _ in range(4):
        agent.update(1, 0, LEFT, step_to(1))
    assert agent.planner.rows.base[1].tolist() == [0.5 / 2.0, np.inf]
    assert not agent.planner.rows.radius.any()


@pytest.mark.parametrize(("support", "m"), [("seen", 3), ("all", 4)])
def test_the_radius_of_mbie_counts_the_outcomes_that_may_be(support: str, m: int) -> None:
    agent = empirical("qr-mbie", idle(), radius_scale=0.7, delta=0.1, support=support)
    for a, x in ((LEFT, 1), (LEFT, 0), (LEFT, 1), (LEFT, 0), (RIGHT, 2)):
        agent.update(1, 0, a, step_to(x))
    for a, n in ((LEFT, 4), (RIGHT, 1)):
        expected = 0.7 * math.sqrt(2.0 * (math.log(2**m - 2) - math.log(0.1)) / n)
        assert agent.planner.rows.radius[1, a] == pytest.approx(expected)


def test_a_single_outcome_is_certain_and_many_are_no_overflow() -> None:
    n = np.array([1])
    assert l1_radius(n, np.array([1]), 0.05).tolist() == [0.0]
    many = l1_radius(n, np.array([100_000]), 0.05)
    assert many == pytest.approx(math.sqrt(2.0 * (100_000 * math.log(2.0) - math.log(0.05))))


def test_the_threshold_does_not_grow() -> None:
    agent = empirical("qr-mbie-eb-rm", errand(slip=0.2, limit=15), 15_000, t_min=2)
    assert agent.threshold == 2


# --- values


@given(problem=problems(NON_NEGATIVE), steps=st.integers(1, 100), beta=st.sampled_from([0.0, 0.3]))
@settings(max_examples=amount(12, plain=4))
def test_mbie_eb_on_the_product_is_plain_value_iteration(
    problem: Problem, steps: int, beta: float
) -> None:
    """On counts of pairs that are kept here, from the steps as they are."""
    assume(problem.start()[~problem.done()].any())
    told = {"beta": beta, "gamma": 0.5, "r_max": 20.0, "tolerance": 1e-12, "t_min": 1}
    tried = trial("mbie-eb", problem, **told)
    n_x = problem.n_states * problem.n_task_states
    tau, paid = np.zeros((2, n_x, problem.n_actions, n_x))
    over = np.zeros(n_x, dtype=bool)
    for _ in range(steps):
        if tried.simulator.over:
            tried.simulator.reset()
        s, q = tried.simulator.s, tried.simulator.q
        a = tried.agent.act(s, q)
        step = tried.simulator.step(a)
        tried.agent.update(s, q, a, step)
        x, x_next = (pair[0] * problem.n_task_states + pair[1] for pair in ((s, q), step[:2]))
        tau[x, a, x_next] += 1
        paid[x, a, x_next] += step.r_env + step.r_task
        over[x_next] |= step.terminated
    agent = tried.agent
    agent.counted[:] = -1  # plan with the counts of now, as the paper does after every step
    agent.planner.revise(agent._changed[: agent.estimate()])
    agent.planner.replan()
    n = np.maximum(tau.sum(axis=2), 1)
    value = np.full(n_x, 40.0)
    for _ in range(60):
        table = (paid.sum(axis=2) + 0.5 * tau @ value) / n + beta / np.sqrt(n)
        table = np.where(tau.any(axis=2), np.minimum(table, 40.0), 40.0)
        value = np.where(over, 0.0, table.max(axis=1))
    np.testing.assert_allclose(agent.planner.tables.value[0], value, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("product", "factored"), [("mbie-eb", "qr-mbie-eb-rm"), ("mbie", "qr-mbie-rm")]
)
def test_without_a_task_the_product_is_the_world(product: str, factored: str) -> None:
    one, other = (
        empirical(name, idle(limit=9), 400, t_min=2, growth=50) for name in (product, factored)
    )
    assert (one.seen.arrays.tau == other.seen.arrays.tau).all()
    assert (one.planner.tables.value == other.planner.tables.value).all()
    assert (one.q == other.q).all()


@pytest.mark.parametrize("name", NAMES)
def test_only_the_product_counts_pairs(name: str) -> None:
    agent = empirical(name, errand(limit=15), 50)
    assert len(agent.seen.arrays.n) == (12 if name in ("mbie", "mbie-eb") else 4)
    assert agent.known().of == 2 * len(agent.seen.arrays.n)
    assert agent.policy().shape == (4, 3)
    assert Variant(name).knows_machine == name.endswith("-rm")


# --- saving


def holding(value: float) -> Callable[[np.ndarray], Any]:
    def change(array: np.ndarray) -> np.ndarray:
        array.flat[0] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("planner.base", -1.0),
        ("planner.base", np.nan),
        ("planner.base", 1e301),
        ("planner.radius", np.nan),
        ("planner.task.next_state", 1),
        ("rows.alpha", 1.0),
        ("seen.outcome", 12),
    ],
)
def test_arrays_that_no_run_leads_to_are_refused(name: str, value: float) -> None:
    problem = errand(slip=0.2, limit=15)
    arrays = trial("mbie-eb", problem).rush(150).agent.snapshot()
    trial("mbie-eb", problem).agent.restore(arrays)
    arrays[name] = holding(value)(arrays[name])
    with pytest.raises(ModelError):
        trial("mbie-eb", problem).agent.restore(arrays)
