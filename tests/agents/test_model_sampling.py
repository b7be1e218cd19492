"""Exact posterior sampling: models are distributed as NumPy's Dirichlet, Beta and normal draws."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from scipy import stats

from learners import trial
from qrmax.agents.episodic.model_sampling import Posterior, begin_models, draw_on, make_models
from qrmax.agents.episodic.sampled_plan import plan_sampled
from qrmax.agents.episodic.sampling_agent import SamplingAgent
from qrmax.empirical.successors import Successors
from qrmax.planning.stage_tables import SampledModels, plan_models
from small_problems import errand

pytestmark = [
    pytest.mark.small_enough_without_jit,
    pytest.mark.filterwarnings("ignore:overflow encountered"),  # random bits are made by it
]

COMPILED = not numba.config.DISABLE_JIT
DRAWS = 20_000 if COMPILED else 150
MOST_DEVIATIONS, LEAST_P = 5.0, 1e-6  # the seeds are fixed
N_X = 12
COUNTS = {(0, 0): {3: 4, 1: 1}, (1, 0): {0: 2}, (2, 0): {}, (3, 0): dict.fromkeys(range(N_X), 1)}
PAID = 1.0  # of the samples of each pair, if there are any
LOWEST, SPAN = -1.0, 4.0

every_pair = pytest.mark.parametrize("x", range(len(COUNTS)))


@functools.cache
def drawn(**given: Any) -> SampledModels:
    """Many models at once, to be read only."""
    seen = Successors(N_X, 1)
    for (x, a), followed in COUNTS.items():
        paid = PAID
        for x_next, times in followed.items():
            for _ in range(times):
                seen.record(x, a, x_next, paid)
                paid = 0.0
    told = {"strength": 1.0, "optimistic": False, "gaussian": False, "lowest": LOWEST, "span": SPAN}
    posterior = Posterior(**told | given, draws=DRAWS)
    models = make_models(N_X, DRAWS, seen.arrays.outcome.shape[1], posterior)
    resume = np.zeros((N_X, DRAWS), dtype=np.uint64)
    begin_models(seen.arrays, posterior, np.uint64(5), models, resume)
    if not posterior.optimistic:
        complete(models, resume, posterior.strength / N_X)
    return models


def complete(models: SampledModels, resume: np.ndarray, each: float) -> None:
    """Draw all successors of all options."""
    n_x = len(models.rest)
    nowhere, marks = np.zeros(n_x), np.full(n_x, -1, dtype=np.int64)
    for x, o in np.ndindex(models.rest.shape):
        draw_on(models, resume, each, nowhere, 0.0, -np.inf, marks, x, o)


def dense(models: SampledModels, x: int) -> np.ndarray:
    """Probabilities `[draw, y]`, with what is not listed in a column of its own."""
    p = np.zeros((DRAWS, N_X + 1))
    for k in range(models.succ.shape[2]):
        rows = np.flatnonzero(models.listed[x] > k)
        p[rows, models.succ[x, rows, k]] += models.weight[x, rows, k]
    p[:, -1] = models.rest[x]
    return p


def deviations(sample: np.ndarray, mean: float, variance: float) -> float:
    return float(abs(sample.mean() - mean) / np.sqrt(variance / len(sample)))


def alpha_of(x: int, strength: float) -> np.ndarray:
    """The parameters of the Dirichlet posterior."""
    alpha = np.full(N_X, strength / N_X)
    for x_next, times in COUNTS[x, 0].items():
        alpha[x_next] += times
    return alpha


# --- transitions


@every_pair
@pytest.mark.parametrize("strength", [0.3, 1.0, 40.0])
def test_a_uniform_prior_gives_the_dirichlet_over_all_states(x: int, strength: float) -> None:
    p, alpha = dense(drawn(strength=strength), x), alpha_of(x, strength)
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert (p[:, -1] < 1e-11).all()
    total = alpha.sum()
    for y in range(N_X):
        mean = alpha[y] / total
        variance = mean * (1 - mean) / (total + 1)
        assert deviations(p[:, y], mean, variance) < MOST_DEVIATIONS
        if alpha[y] > 0.5:  # others have most of their draws next to 0
            true = stats.beta(alpha[y], total - alpha[y])
            assert stats.kstest(p[:, y], true.cdf).pvalue > LEAST_P
    other = (x + 5) % N_X  # covariances, too
    for y in (0, 3):
        if y != other:
            product = (p[:, y] - alpha[y] / total) * (p[:, other] - alpha[other] / total)
            true_product = -alpha[y] * alpha[other] / total**2 / (total + 1)
            assert deviations(product, true_product, product.var()) < MOST_DEVIATIONS


@every_pair
def test_values_of_models_are_those_of_numpys_dirichlet(x: int) -> None:
    """Of values that differ much; the even spread of `psrl` has too small a variance here."""
    values = np.random.default_rng(0).permutation(np.arange(N_X) ** 2.0)
    ours = dense(drawn(), x)[:, :-1] @ values
    numpys = np.random.default_rng(1).dirichlet(alpha_of(x, 1.0), DRAWS) @ values
    assert stats.ks_2samp(ours, numpys).pvalue > LEAST_P
    assert deviations(ours - numpys, 0.0, ours.var() + numpys.var()) < MOST_DEVIATIONS
    assert ours.var() == pytest.approx(numpys.var(), rel=0.06 if COMPILED else 0.8)


def test_a_pair_never_tried_may_lead_to_one_state_nearly_surely() -> None:
    """An even spread over all states would not."""
    p = dense(drawn(strength=1e-6), 2)
    assert (p[:, :-1].max(axis=1) > 0.999).mean() > 0.99
    assert stats.chisquare(np.bincount(p[:, :-1].argmax(axis=1), minlength=N_X)).pvalue > LEAST_P


@pytest.mark.parametrize("x", [0, 1, 2])
@pytest.mark.parametrize("strength", [1.0, 3.5])
def test_an_optimistic_prior_has_one_more_successor(x: int, strength: float) -> None:
    p, followed = dense(drawn(strength=strength, optimistic=True), x), COUNTS[x, 0]
    assert p.sum(axis=1) == pytest.approx(1.0)
    n = sum(followed.values())
    if n == 0:
        assert (p[:, -1] == 1.0).all()
        return
    assert stats.kstest(p[:, -1], stats.beta(strength, n).cdf).pvalue > LEAST_P
    numpys = np.random.default_rng(1).dirichlet([*followed.values(), strength], DRAWS)
    for column, y in enumerate(followed):
        assert stats.ks_2samp(p[:, y], numpys[:, column]).pvalue > LEAST_P
    assert set(np.flatnonzero(p.any(axis=0))) == {*followed, N_X}


# --- rewards


@every_pair
def test_binary_rewards_have_a_beta_posterior(x: int) -> None:
    n = sum(COUNTS[x, 0].values())
    paid = min(n, 1)
    share = (drawn().reward[x] - LOWEST) / SPAN
    assert stats.kstest(share, stats.beta(1 + paid, 1 + n - paid).cdf).pvalue > LEAST_P
    numpys = np.random.default_rng(2).beta(1 + paid, 1 + n - paid, DRAWS)
    assert stats.ks_2samp(share, numpys).pvalue > LEAST_P


@every_pair
def test_gaussian_rewards_have_a_normal_posterior(x: int) -> None:
    """Of a sum of 1, that is of 1 + n shares above the least reward, in units of the span."""
    n = sum(COUNTS[x, 0].values())
    above = (min(n, 1) * PAID - n * LOWEST) / SPAN
    share = (drawn(gaussian=True).reward[x] - LOWEST) / SPAN
    true = stats.norm(above / (1 + n), (1 + n) ** -0.5)
    assert stats.kstest(share, true.cdf).pvalue > LEAST_P
    assert deviations(share, true.mean(), true.var()) < MOST_DEVIATIONS
    assert deviations((share - true.mean()) ** 2, true.var(), 2 * true.var() ** 2) < MOST_DEVIATIONS


# --- planning with them


@pytest.mark.parametrize("optimistic", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_plan_is_that_of_the_best_model(optimistic: bool, seed: int) -> None:
    """Backward induction with matrices, for every state-action pair and stage."""
    rng = np.random.default_rng(seed)
    n_x, n_actions, n_models, horizon, gamma = 4, 2, 3, 5, 0.9
    options, room = n_actions * n_models, 3
    succ = rng.integers(0, n_x, (n_x, options, room)).astype(np.int32)
    share = rng.dirichlet(np.ones(room + 1), (n_x, options))
    listed = np.full((n_x, options), room, dtype=np.int32)
    weight = np.ascontiguousarray(share[:, :, :room])
    rest = np.ascontiguousarray(share[:, :, room])
    models = SampledModels(succ, weight, listed, rest, rng.random((n_x, options)))
    done, v_next = rng.random(n_x) < 0.3, rng.random(horizon)
    table = np.full((horizon, n_x, n_actions), np.nan)
    plan_models(models, done, v_next, optimistic, gamma, table)
    value = np.zeros(n_x)
    for h in reversed(range(horizon)):
        unseen = v_next[h] if optimistic else value.mean()
        worth = models.reward + gamma * ((weight * value[succ]).sum(axis=2) + rest * unseen)
        best = worth.reshape(n_x, n_models, n_actions).max(axis=1)
        best[done] = 0.0
        np.testing.assert_allclose(table[h], best)
        value = best.max(axis=1)


class Planned(NamedTuple):
    """A lazy plan, and the one with the same models drawn completely, `[h, x, a]`."""

    lazy: np.ndarray
    full: np.ndarray
    drawn: np.ndarray  # the number of successors drawn for the lazy plan


def planned(*, seed: int, optimistic: bool, gamma: float, samples: int) -> Planned:
    """Plans with models of random counts."""
    rng = np.random.default_rng(seed)
    n_x, n_actions, horizon = 30, 3, 25
    seen, options = Successors(n_x, n_actions), n_actions * samples
    for _ in range(200):
        x, a = rng.integers(0, n_x // 2), rng.integers(0, n_actions)
        seen.record(int(x), int(a), int(rng.integers(0, n_x)), float(rng.random() < 0.1))
    posterior = Posterior(1.0, optimistic, gaussian=False, lowest=-1.0, span=3.0, draws=samples)
    each, done = 0.0 if optimistic else 1.0 / n_x, rng.random(n_x) < 0.1
    v_next = np.sort(rng.random(horizon))[::-1].copy()
    v_next[-1] = 0.0
    tables = np.zeros((2, horizon, n_x, n_actions))
    models = make_models(n_x, options, seen.arrays.outcome.shape[1], posterior)
    resume = np.zeros((n_x, options), dtype=np.uint64)
    begin_models(seen.arrays, posterior, np.uint64(seed), models, resume)
    plan_sampled(models, resume, each, done, v_next, gamma, tables[0])
    drawn_so_far = models.listed.copy()
    if not optimistic:
        complete(models, resume, each)
    plan_models(models, done, v_next, optimistic, gamma, tables[1])
    return Planned(*tables, drawn_so_far)


@pytest.mark.parametrize("optimistic", [False, True])
@pytest.mark.parametrize(("gamma", "samples"), [(1.0, 4), (0.9, 1)])
def test_a_lazy_plan_is_that_of_the_models_drawn_completely(
    optimistic: bool, gamma: float, samples: int
) -> None:
    for seed in range(3):
        lazy, full, _ = planned(seed=seed, optimistic=optimistic, gamma=gamma, samples=samples)
        best = full.max(axis=2, keepdims=True)
        np.testing.assert_allclose(lazy.max(axis=2, keepdims=True), best, rtol=1e-12)
        np.testing.assert_array_equal(lazy.argmax(axis=2), full.argmax(axis=2))
        assert np.isneginf(lazy).any()  # an action that is certainly not the best
        assert (lazy <= full + 1e-9).all()


def test_successors_of_options_that_are_far_from_the_best_are_not_drawn() -> None:
    drawn = planned(seed=0, optimistic=False, gamma=1.0, samples=8).drawn
    assert drawn.mean() < drawn.max() / 2


def test_options_that_are_equally_good_are_all_in_the_table() -> None:
    """As where all rewards are alike: the first of them must not be the only one to be taken."""
    posterior = Posterior(1.0, optimistic=False, gaussian=False, lowest=0.0, span=0.0, draws=2)
    models, resume = make_models(3, 4, 4, posterior), np.zeros((3, 4), dtype=np.uint64)
    begin_models(Successors(3, 2).arrays, posterior, np.uint64(0), models, resume)
    table = np.full((5, 3, 2), np.nan)
    plan_sampled(models, resume, 1 / 3, np.zeros(3, dtype=bool), np.zeros(5), 1.0, table)
    assert not table.any()


# --- the agents


def sampler(name: str, **settings: Any) -> SamplingAgent:
    agent = trial(name, errand(), **{"gamma": 1.0, "horizon": 5, **settings}).agent
    assert isinstance(agent, SamplingAgent)
    return agent


@pytest.mark.parametrize("samples", [1, 3])
def test_an_extra_successor_is_worth_the_best_of_the_stages_that_follow(samples: int) -> None:
    """Of pairs that were never tried: a sampled reward, and then v_h+1."""
    agent = sampler("opsrl-exact", samples=samples)
    agent.begin_episode(1, 0)
    n_x, actions = agent.seen.arrays.n.shape
    rewards = agent._models.reward.reshape(n_x, samples, actions).max(axis=1)
    assert ((rewards > 0.0) & (rewards < 1.0)).all()
    for h, v_next in enumerate([4.0, 3.0, 2.0, 1.0, 0.0]):
        best = agent.table.values[h].max(axis=1)
        np.testing.assert_allclose(best, rewards.max(axis=1) + v_next)


@pytest.mark.parametrize("reward_posterior", ["beta", "gaussian"])
def test_a_uniform_prior_makes_it_psrl_with_several_draws(reward_posterior: str) -> None:
    told = {"samples": 3, "reward_posterior": reward_posterior, "seed": 4, "gamma": 0.9}
    problem = errand(slip=0.2, limit=15)
    one = trial("psrl-exact", problem, **told).rush(200)
    other = trial("opsrl-exact", problem, transition_prior="uniform", **told).rush(200)
    assert one.state() == other.state()
    assert one.state() != trial("opsrl-exact", problem, **told).rush(200).state()


def test_more_draws_are_more_optimistic() -> None:
    few, many = sampler("psrl-exact"), sampler("psrl-exact", samples=30)
    for agent in (few, many):
        agent.begin_episode(1, 0)
    optima = [agent.table.values[0].max(axis=1).mean() for agent in (few, many)]
    assert optima[1] > optima[0] + 0.5


def test_gaussian_rewards_are_summed_up_and_binary_ones_counted() -> None:
    problem = errand(slip=0.2, limit=15)
    told = {"r_min": -1.0, "r_max": 3.0, "seed": 3}
    binary = trial("psrl-exact", problem, **told).rush(300).agent
    normal = trial("psrl-exact", problem, reward_posterior="gaussian", **told).rush(300).agent
    assert isinstance(binary, SamplingAgent)
    assert isinstance(normal, SamplingAgent)
    (n, rho), (_, paid) = normal.seen.arrays[:2], binary.seen.arrays[:2]
    assert 0.0 < rho.sum() < n.sum() / 10  # 1 for each success, and nothing else
    assert paid.sum() > n.sum() / 10  # a quarter of the steps without reward count as 1, too
