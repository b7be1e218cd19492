"""UCBVI-PRM: the plan is that of the paper's formula, written out in NumPy, when it is due."""

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
from qrmax.agents.episodic.ucbvi_prm import UCBVIPRM
from qrmax.errors import ModelError
from qrmax.planning.machine_stages import plan_with_machine
from random_problems import NON_NEGATIVE, problems
from small_problems import errand

pytestmark = pytest.mark.small_enough_without_jit


def played(problem: Problem, steps: int, **told: Any) -> tuple[Trial, UCBVIPRM]:
    tried = trial("ucbvi-prm", problem, **{"gamma": 1.0, **told}).rush(steps)
    assert isinstance(tried.agent, UCBVIPRM)
    return tried, tried.agent


def upper_bounds(agent: UCBVIPRM, before: np.ndarray) -> np.ndarray:
    """The formula of the paper with dense tables, `[h, q, s, a]`."""
    config, (states, task_states, actions) = agent.config, agent.sizes
    horizon, unit = config.horizon, config.r_max - config.r_min
    log = math.log(6 * states * actions * config.total_steps / config.delta)
    top = unit * sum(config.gamma**h for h in range(horizon))
    wide = 100**2 * horizon**3 * states**2 * actions * log**2 * unit**2
    n, rho, listed, outcome, tau = agent.seen.arrays
    p, arrivals = np.zeros((states, actions, states)), np.arange(states)
    for s in arrivals:
        p[s][:, outcome[s, : listed[s]]] = tau[s, :, : listed[s]]
    p /= np.maximum(n, 1)[:, :, None]
    table, value = np.full_like(before, top), np.zeros((task_states, states))
    for h in reversed(range(horizon)):
        met = agent.table.visits[h + 1] if h + 1 < horizon else np.zeros(states)
        unsure = np.minimum(np.where(met > 0, wide / np.maximum(met, 1), np.inf), top**2)
        for q, s, a in np.ndindex(table.shape[1:]):
            if n[s, a] > 0:
                ahead = config.gamma * value[agent.task.next_state[q, :, 0], arrivals]
                mean = p[s, a] @ ahead
                bonus = math.sqrt(8 * log * (p[s, a] @ (ahead - mean) ** 2) / n[s, a])
                bonus += 14 * top * log / (3 * n[s, a])
                bonus += math.sqrt(8 * (p[s, a] @ unsure) / n[s, a])
                bonus += unit * math.sqrt(2 * log / n[s, a])
                worth = rho[s, a] / n[s, a] + p[s, a] @ agent.task.reward[q] + mean
                worth += config.bonus_scale * bonus
                table[h, q, s, a] = min(worth, top, before[h, q, s, a])
        table[h] = np.where(agent.done[:, :, None], 0.0, table[h])
        value = table[h].max(axis=2)
    return table


@given(
    problem=problems(NON_NEGATIVE),
    steps=st.integers(1, 120),
    gamma=st.sampled_from([0.9, 1.0]),
    bonus_scale=st.sampled_from([0.0, 0.001, 0.02, 1.0]),
)
@settings(max_examples=amount(15, plain=6))
def test_the_plan_is_that_of_the_formula(
    problem: Problem, steps: int, gamma: float, bonus_scale: float
) -> None:
    assume(problem.start()[~problem.done()].any())
    assume(not problem.machine.is_stochastic)
    told = {"gamma": gamma, "horizon": 4, "bonus_scale": bonus_scale, "r_max": 20.0}
    _, agent = played(problem, steps, **told)
    states, task_states, actions = agent.sizes
    by_factors = agent.table.values.reshape(4, states, task_states, actions).swapaxes(1, 2)
    before = by_factors.copy()
    agent.plan()
    np.testing.assert_allclose(by_factors, upper_bounds(agent, before), rtol=1e-9, atol=1e-9)


def by_definition(agent: UCBVIPRM, values: np.ndarray) -> np.ndarray:
    """The next plan from these values, every pair of it computed at every stage."""
    table, gamma = values.copy(), float(agent.config.gamma)
    visits = agent.table.visits
    plan_with_machine(agent.seen.arrays, agent.task, agent.done, visits, agent.rule, gamma, table)
    return table


@given(
    problem=problems(NON_NEGATIVE),
    horizon=st.integers(1, 12),
    bonus_scale=st.sampled_from([0.0, 0.001, 0.02]),
    enough=st.sampled_from([None, 1, 30]),
    lapse=st.integers(1, 90),
)
@settings(max_examples=amount(30, plain=4))
def test_what_can_have_changed_is_all_that_changes(
    problem: Problem, horizon: int, bonus_scale: float, enough: int | None, lapse: int
) -> None:
    """Every plan of a run is that of the definition, bit for bit.

    Also if the counts of stages matter after `enough` episodes, and after the agent was restored.
    """
    assume(problem.start()[~problem.done()].any())
    assume(not problem.machine.is_stochastic)
    told = {"gamma": 0.9, "horizon": horizon, "bonus_scale": bonus_scale, "r_max": 20.0}
    tried, agent = played(problem, 0, **told)
    if enough is not None:
        agent.rule = agent.rule._replace(correction=enough * agent.rule.top**2)
    for turn in range(120):
        before, n = agent.table.values.copy(), agent.seen.arrays.n.copy()
        tried.play(1)
        tried_now = agent.seen.arrays.n[agent.seen.arrays.n != n]
        if (tried_now & (tried_now - 1) == 0).all():
            assert (agent.table.values == by_definition(agent, before)).all()
        if turn == lapse:
            agent.restore(agent.snapshot())


def test_visits_of_a_stage_count_in_all_machine_states() -> None:
    tried, agent = played(errand(slip=0.2), 0, horizon=5)
    expected = np.zeros((5, 4), dtype=int)
    for _ in range(200):
        if tried.simulator.over or agent.episode_over:
            stage, s = 0, 1  # where errands begin
        else:
            stage, s = agent.stage, tried.simulator.s
        expected[stage, s] += 1
        tried.play(1)
    assert agent.table.visits.tolist() == expected.tolist()


def test_it_plans_when_a_count_is_a_power_of_two_and_not_otherwise() -> None:
    tried, agent = played(errand(slip=0.2), 0, horizon=30, bonus_scale=0.01)
    planned, during = 0, False
    for _ in range(300):
        before = agent.table.values.copy(), agent.seen.arrays.n.copy()
        tried.play(1)
        n = agent.seen.arrays.n[agent.seen.arrays.n != before[1]]
        if (agent.table.values != before[0]).any():
            planned += 1
            during = during or 0 < agent.stage < 30
            assert (n & (n - 1) == 0).all()
    assert planned > 10
    assert during


def test_no_value_rises() -> None:
    tried, agent = played(errand(slip=0.2), 50, horizon=9, bonus_scale=0.01)
    for _ in range(30):
        before = agent.table.values.copy()
        tried.rush(20)
        assert (agent.table.values <= before).all()


def test_with_the_constants_of_the_proof_nothing_is_told_apart() -> None:
    """After thousands of steps in a world of four states; the published scale does."""
    highest = []
    for told in ({"bonus_scale": 1.0}, {}):
        _, agent = played(errand(slip=0.2), 5000, horizon=9, **told)
        highest.append(agent.table.values[0].max())
    assert highest[0] > 8.9
    assert highest[1] < 1.5


@pytest.mark.parametrize(
    ("name", "value"), [("task.next_state", 3), ("task.next_state", -1), ("seen.outcome", 99)]
)
def test_arrays_that_no_run_leads_to_are_refused(name: str, value: int) -> None:
    problem = errand(slip=0.2)
    _, agent = played(problem, 150, horizon=9)
    arrays = agent.snapshot()
    arrays[name].flat[0] = value
    with pytest.raises(ModelError):
        played(problem, 0, horizon=9)[1].restore(arrays)
