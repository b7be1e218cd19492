"""UCRL2-RM: its sets, its plans beside dense extended value iteration, and when it plans."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from amounts import amount
from learners import Trial, trial
from qrmax import Problem
from qrmax.agents.revising.ucrl2_rm import (
    SWEEPS,
    UCRL2RM,
    bernstein_interval,
    laplace_radius,
)
from qrmax.errors import ModelError
from qrmax.planning import reference
from random_problems import NON_NEGATIVE, problems
from small_problems import errand

pytestmark = pytest.mark.small_enough_without_jit

both = pytest.mark.parametrize("name", ["ucrl2-rm-l", "ucrl2-rm-b"])


def played(name: str, problem: Problem, steps: int, **told: Any) -> tuple[Trial, UCRL2RM]:
    tried = trial(name, problem, **told).rush(steps)
    assert isinstance(tried.agent, UCRL2RM)
    return tried, tried.agent


# --- sets


def test_the_radius_is_that_of_the_formula() -> None:
    n, m, d = 7, 5, 0.001
    log = math.log(math.sqrt(n + 1) * (2**m - 2) / d)
    expected = math.sqrt(2 * (1 + 1 / n) * log / n)
    assert laplace_radius(np.array([n]), np.array([m]), d)[0] == pytest.approx(expected)


@pytest.mark.parametrize("n", [1, 20, 300, 10_000])
@pytest.mark.parametrize("p", [0.0, 0.01, 0.3, 1.0])
def test_the_interval_has_what_the_inequality_allows_and_nothing_else(n: int, p: float) -> None:
    d, eta = 0.001, 1.12
    spent = max(math.e, n)
    bound = eta * math.log(math.log(spent) * math.log(eta * spent) / (d * math.log(eta) ** 2))
    low, high = bernstein_interval(np.array([p]), np.array([n]), d)
    x = np.linspace(0.0, 1.0, 5001)
    allowed = np.abs(p - x) <= np.sqrt(2 * bound * x * (1 - x) / n) + bound / (3 * n)
    clear = (np.abs(x - low) > 1e-9) & (np.abs(x - high) > 1e-9)
    assert (allowed == (low <= x) & (x <= high))[clear].all()


@pytest.mark.parametrize("p", [0.0, 0.3])
def test_intervals_shrink_with_samples(p: float) -> None:
    """In the public code of the authors they do not: ends are used as radii there."""
    n = np.array([10, 1000, 100_000, 10_000_000])
    low, high = bernstein_interval(np.full(4, p), n, 0.001)
    assert (np.diff(high - low) < 0.0).all()
    assert high[-1] - low[-1] < 0.01


# --- plans


def densely(agent: UCRL2RM, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Extended value iteration from u on, with tables of all states: u and the action values."""
    n, rho, listed, outcome, tau = agent.seen.arrays
    task, done, sets = agent.planner.task, agent.planner.tables.done, agent.make_sets()
    (n_q, states), starts = u.shape, agent.following.starts
    unit, arrivals = agent.config.r_max, np.arange(states)
    accuracy = unit / (100.0 + math.sqrt(agent.t))
    for _ in range(SWEEPS):
        again = (starts * u).sum() / max(1, starts.sum())
        gain = np.empty_like(u)
        for q, z in np.ndindex(n_q, states):
            q_next = task.next_state[q, z, 0]
            ahead = again if done[q_next, z] else u[q_next, z]
            unknown = np.isinf(task.reward[q, z])
            gain[q, z] = unit + u[:, z].max() if unknown else task.reward[q, z] + ahead
        values = np.zeros((n_q, states, agent.sizes.actions))
        for q, s, a in np.ndindex(values.shape):
            top = gain[q].max()
            if n[s, a] == 0:
                values[q, s, a] = unit + top
                continue
            k = arrivals[: listed[s]]
            z, p = outcome[s, k], tau[s, a, k] / n[s, a]
            if sets.intervals:
                low, high = np.zeros(states), np.full(states, sets.free[s, a])
                high = high if sets.anywhere else np.zeros(states)
                low[z], high[z] = sets.low[s, a, k], sets.high[s, a, k]
                dense = low.copy()
                for best in np.argsort(-gain[q], kind="stable"):
                    dense[best] += min(1.0 - dense.sum(), high[best] - low[best])
                best_mean = float(dense @ gain[q])
            else:
                beyond = top if sets.anywhere else -math.inf
                radius = float(sets.radius[s, a])
                best_mean = reference.largest_expectation_in_l1(p, gain[q, z], radius, beyond)
            values[q, s, a] = rho[s, a].sum() / n[s, a] + best_mean
        new = values.max(axis=2)
        change = (new - u)[~done]
        u = np.where(done, 0.0, new - new[~done].min())
        if np.ptp(change) < accuracy:
            break
    return u, values


@both
@given(
    problem=problems(NON_NEGATIVE),
    steps=st.integers(1, 80),
    support=st.sampled_from(["all", "seen"]),
    scale=st.sampled_from([0.01, 0.1, 0.5]),
)
@settings(max_examples=amount(8, plain=3))
def test_the_plan_is_that_of_dense_extended_value_iteration(
    name: str, problem: Problem, steps: int, support: str, scale: float
) -> None:
    assume(problem.start()[~problem.done()].any())
    assume(not problem.machine.is_stochastic)
    told = {"support": support, "radius_scale": scale, "r_max": 20.0}
    _, agent = played(name, problem, steps, **told)
    before = agent.bias.copy()
    agent.plan()
    u, values = densely(agent, before)
    np.testing.assert_allclose(agent.bias, u, rtol=1e-6, atol=1e-6)
    chosen = np.take_along_axis(values, agent.following.policy[:, :, None], axis=2)[:, :, 0]
    live = ~agent.planner.tables.done
    np.testing.assert_allclose(chosen[live], values.max(axis=2)[live], rtol=1e-6, atol=1e-6)


@both
def test_it_plans_when_visits_have_doubled(name: str) -> None:
    tried, agent = played(name, errand(slip=0.2, limit=15), 0)
    plans = 0
    for _ in range(400):
        before = agent.following.planned.copy(), agent.seen.arrays.n.copy()
        tried.play(1)
        planned, n = before
        if (agent.following.planned != planned).any():
            plans += 1
            assert (agent.following.planned == n).all()
            assert ((n - planned) >= np.maximum(1, planned)).any()
    assert 8 < plans < 8 * math.log2(400) + 16


@both
def test_the_start_of_an_episode_follows_its_end(name: str) -> None:
    tried, agent = played(name, errand(slip=0.2, limit=15), 300)
    assert agent.following.starts.sum() == tried.simulator.state[4]
    assert (agent.following.starts > 0).sum() == 1


# --- saving


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("plan.policy", 2),
        ("plan.policy", -1),
        ("plan.planned", 10**6),
        ("plan.starts", -1),
        ("plan.bias", np.nan),
        ("seen.outcome", 99),
    ],
)
def test_arrays_that_no_run_leads_to_are_refused(name: str, value: float) -> None:
    problem = errand(slip=0.2, limit=15)
    arrays = played("ucrl2-rm-b", problem, 150)[1].snapshot()
    played("ucrl2-rm-b", problem, 0)[1].restore(arrays)
    arrays[name].flat[0] = value
    with pytest.raises(ModelError):
        played("ucrl2-rm-b", problem, 0)[1].restore(arrays)
