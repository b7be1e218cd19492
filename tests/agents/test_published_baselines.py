"""The baselines of the published comparison, beside their rules written out in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from learners import trial
from qrmax import Problem
from qrmax.agents.episodic.published_baselines import PublishedOPSRL, PublishedUCBVI
from qrmax.problems.simulator import Step
from random_problems import problems
from small_problems import RIGHT, errand

pytestmark = pytest.mark.small_enough_without_jit

KINDS = ["ucbvi-sb-published", "ucbvi-b-published", "ucbvi-h-published"]
HORIZON, C = 6, 0.7


class ByTheRules:
    """UCBVI with dense tables: all that was tried, at which stage, and the values planned."""

    def __init__(self, name: str, n_x: int, n_actions: int, gamma: float) -> None:
        self.name, self.gamma = name, gamma
        self.v_max = np.array([sum(gamma**i for i in range(HORIZON - h)) for h in range(HORIZON)])
        self.n = np.zeros((n_x, n_actions))
        self.reward = np.zeros((n_x, n_actions))
        self.p = np.full((n_x, n_actions, n_x), 1.0 / n_x)
        self.bonus = np.ones((HORIZON, n_x, n_actions)) * self.v_max[:, None, None]
        self.value = np.zeros((HORIZON + 1, n_x))

    def plan(self, *, with_bonus: bool) -> np.ndarray:
        table, value = np.empty_like(self.bonus), np.zeros((HORIZON + 1, len(self.n)))
        for h in reversed(range(HORIZON)):
            table[h] = self.reward + self.gamma * (self.p @ value[h + 1])
            table[h] = np.minimum(table[h] + with_bonus * self.bonus[h], self.v_max[h])
            value[h] = table[h].max(axis=1)
        if with_bonus:
            self.value = value
        return table

    def learn(self, h: int, x: int, a: int, reward: float, x_next: int) -> None:
        self.n[x, a] += 1
        n, share = self.n[x, a], 1.0 / self.n[x, a]
        self.reward[x, a] += share * (reward - self.reward[x, a])
        self.p[x, a] *= 1.0 - share
        self.p[x, a, x_next] += share
        value, v = self.value[h + 1], self.v_max[h]
        variance = max(self.p[x, a] @ value**2 - (self.p[x, a] @ value) ** 2, 0.0)
        if h == HORIZON - 1:
            variance = 0.0
        bonus = {
            "ucbvi-sb-published": C / np.sqrt(n) + v / n,
            "ucbvi-b-published": C * (np.sqrt(variance / n) + v / n),
            "ucbvi-h-published": C * v / 2 / np.sqrt(n),
        }[self.name]
        self.bonus[h, x, a] = min(bonus, v)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_of_ucbvi_is_the_one_by_the_rules(name: str, seed: int) -> None:
    problem = errand(slip=0.3, limit=9)
    tried = trial(name, problem, seed=seed, gamma=0.9, horizon=HORIZON, bonus_scale=C)
    agent, simulator = tried.agent, tried.simulator
    assert isinstance(agent, PublishedUCBVI)
    n_q, (n_x, n_actions) = problem.n_task_states, agent.seen.arrays.n.shape
    rules = ByTheRules(name, n_x, n_actions, 0.9)
    table = np.empty(0)
    for _ in range(250):
        if simulator.over:
            table = rules.plan(with_bonus=True)
        h = 0 if simulator.over else agent.stage
        s, q, a, step = tried.step()
        np.testing.assert_allclose(agent.table.values, table, rtol=1e-6)
        rules.learn(h, s * n_q + q, a, step.r_env + step.r_task, step.s * n_q + step.q)
    np.testing.assert_allclose(agent.table.bonus, rules.bonus, rtol=1e-5, atol=1e-7)
    greedy = rules.plan(with_bonus=False)[0].reshape(agent.q.shape)
    np.testing.assert_allclose(agent.q, greedy, rtol=1e-9)
    assert (agent.recommendation() == agent.policy()).all()  # at all stages
    assert agent.recommendation().shape == (HORIZON, *agent.policy().shape)


@given(problem=problems(), seed=st.integers(0, 1000), name=st.sampled_from(KINDS))
@settings(max_examples=20)
def test_a_plan_that_is_kept_up_is_one_made_from_scratch(
    problem: Problem, seed: int, name: str
) -> None:
    assume(problem.start()[~problem.done()].any())
    told = {"seed": seed, "horizon": HORIZON, "r_max": 1.0, "r_min": 0.0}
    kept_up, anew = (trial(name, problem, **told) for _ in range(2))
    for _ in range(60):
        assert isinstance(anew.agent, PublishedUCBVI)
        anew.agent._totals[:] = 0.0
        kept_up.play(1)
        anew.play(1)
    assert kept_up.state() == anew.state()


@pytest.mark.parametrize("name", KINDS)
def test_a_visit_renews_the_bonus_of_its_stage_alone(name: str) -> None:
    agent = trial(name, errand(), gamma=1.0, horizon=3).agent
    assert isinstance(agent, PublishedUCBVI)
    agent.begin_episode(1, 0)
    before = agent.table.bonus.copy()
    for _ in range(2):
        agent.update(1, 0, RIGHT, Step(1, 0, 0, 0.0, 0.0, False, False, False))
    changed = np.argwhere(agent.table.bonus != before).tolist()
    x = agent.place(1, 0)[1]
    at_first = [[0, x, RIGHT]] if name == "ucbvi-h-published" else []
    assert changed == [*at_first, [1, x, RIGHT]]  # of one visit, the others' would exceed v_h


def test_an_end_is_like_any_pair_that_was_never_tried() -> None:
    agent = trial("ucbvi-h-published", errand(), gamma=1.0, horizon=3).agent
    assert isinstance(agent, PublishedUCBVI)
    agent.begin_episode(1, 0)
    agent.update(2, 1, RIGHT, Step(3, 2, 0, 0.0, 1.0, True, False, False))
    agent.begin_episode(1, 0)
    end = agent.place(3, 2)[1]
    assert agent.done[0, end]
    assert agent.table.values[:, end].max(axis=1).tolist() == [3.0, 2.0, 1.0]


def _means(agent: PublishedOPSRL, n_x: int) -> tuple[np.ndarray, np.ndarray]:
    n, rho, listed, outcome, tau = agent.seen.arrays
    p = np.full((*n.shape, n_x), agent.config.prior / n_x)
    for x, a in np.ndindex(n.shape):
        for k in range(listed[x]):
            p[x, a, outcome[x, k]] += tau[x, a, k]
    return p / p.sum(axis=2, keepdims=True), (1.0 + rho) / (2.0 + n)


@pytest.mark.parametrize("settings", [{}, {"prior": 5.0, "samples": 1}])
def test_opsrl_recommends_what_is_best_by_the_means_of_its_posterior(
    settings: dict[str, Any],
) -> None:
    tried = trial("opsrl-published", errand(slip=0.2, limit=9), horizon=HORIZON, **settings)
    agent = tried.rush(200).agent
    assert isinstance(agent, PublishedOPSRL)
    p, reward = _means(agent, len(agent.seen.arrays.n))
    value = np.zeros(len(p))
    for _ in range(HORIZON):
        table = reward + 0.9 * (p @ value)
        value = table.max(axis=1)
    np.testing.assert_allclose(agent.q, table.reshape(agent.q.shape))
    untried = agent.seen.arrays.n == 0
    assert untried.any()
    assert (reward[untried] == 0.5).all()
