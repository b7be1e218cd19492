"""PSRL and OPSRL: what they draw is distributed as it should be, and what they count is fair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from scipy import stats

from learners import trial
from qrmax.agents.episodic import beliefs
from qrmax.agents.episodic.beliefs import Prior, draw_posterior
from qrmax.agents.episodic.finite_horizon_agent import FiniteHorizon
from qrmax.empirical.successors import Successors
from qrmax.planning.arrays import Belief
from qrmax.planning.finite_horizon import make_belief, stage_values
from small_problems import errand
from small_runs import RIGHT, corridor

pytestmark = [
    pytest.mark.small_enough_without_jit,
    pytest.mark.filterwarnings("ignore:overflow encountered"),  # random bits are made by it
]

COMPILED = not numba.config.DISABLE_JIT
MOST_DEVIATIONS = 5.0  # by chance once in 1.7 million; the seeds are fixed
LEAST_P = 1e-6


def deviations(sample: np.ndarray, mean: float, variance: float) -> float:
    """How far the mean of a sample is from the truth, in standard errors."""
    return float(abs(sample.mean() - mean) / np.sqrt(variance / len(sample)))


# --- numbers


@numba.njit
def _drawn(draw: Any, count: int, seed: int) -> Any:
    numbers, state = np.empty(count), np.uint64(seed)
    for i in range(count):
        numbers[i], state = draw(state)
    return numbers


@numba.njit
def _drawn_with(draw: Any, parameters: Any, count: int, seed: int) -> Any:
    numbers, state = np.empty(count), np.uint64(seed)
    for i in range(count):
        numbers[i], state = draw(*parameters, state)
    return numbers


@pytest.mark.parametrize("seed", [0, 1, 2**53 - 1])
def test_uniform_numbers_are_uniform_and_independent(seed: int) -> None:
    u = _drawn(beliefs.uniform, 2_000_000 if COMPILED else 5000, seed)
    assert u.min() > 0.0
    assert u.max() < 1.0
    assert deviations(u, 1 / 2, 1 / 12) < MOST_DEVIATIONS
    assert deviations((u - 0.5) ** 2, 1 / 12, 1 / 180) < MOST_DEVIATIONS
    for gap in (1, 2, 3, 7):
        assert deviations((u[gap:] - 0.5) * (u[:-gap] - 0.5), 0.0, 1 / 144) < MOST_DEVIATIONS
    assert stats.kstest(u[:200_000], "uniform").pvalue > LEAST_P


def test_normal_numbers_are_normal_to_the_fourth_moment_and_far_out() -> None:
    """Tails that are a little off hardly show elsewhere."""
    x = _drawn(beliefs.normal, 8_000_000 if COMPILED else 5000, 3)
    for power, mean, variance in [(1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)]:
        assert deviations(x**power, mean, variance) < MOST_DEVIATIONS, power
    for bound in (0.5, 2.0, 3.4, 3.442619855899, 3.5, 4.0):
        beyond = float(stats.norm.sf(bound))
        for side in (x, -x):
            share = side > bound
            assert deviations(share, beyond, beyond * (1 - beyond)) < MOST_DEVIATIONS, bound
    assert stats.kstest(x[:500_000], "norm").pvalue > LEAST_P


def test_tails_of_normal_numbers_have_the_right_shape() -> None:
    x = np.abs(_drawn(beliefs.normal, 20_000_000 if COMPILED else 5000, 5))
    tail = x[x > beliefs._TAIL]
    assert len(tail) > (10_000 if COMPILED else 0)
    assert stats.kstest(tail, stats.truncnorm(beliefs._TAIL, np.inf).cdf).pvalue > LEAST_P


@pytest.mark.parametrize("shape", [0.02, 0.5, 1.0, 1.2, 3.0, 30.0, 1e4])
def test_gamma_numbers_have_their_mean_variance_and_distribution(shape: float) -> None:
    x = _drawn_with(beliefs.gamma, (shape,), 1_000_000 if COMPILED else 3000, 6)
    assert (x >= 0.0).all()
    assert deviations(x, shape, shape) < MOST_DEVIATIONS
    fourth = 3 * shape**2 + 6 * shape  # central moment
    assert deviations((x - shape) ** 2, shape, fourth - shape**2) < MOST_DEVIATIONS
    assert stats.kstest(x[:200_000], stats.gamma(shape).cdf).pvalue > LEAST_P


def test_a_gamma_number_of_a_tiny_shape_is_no_error() -> None:
    x = _drawn_with(beliefs.gamma, (1e-9,), 1000, 6)
    assert np.isfinite(x).all()
    assert (x == 0.0).mean() > 0.99


@pytest.mark.parametrize(("paid", "unpaid"), [(0, 0), (3, 0), (0, 5), (1, 1), (2, 7), (900, 1)])
def test_beta_numbers_have_their_mean_variance_and_distribution(paid: int, unpaid: int) -> None:
    x = _drawn_with(beliefs.beta, (float(paid), float(unpaid)), 1_000_000 if COMPILED else 3000, 8)
    true = stats.beta(1 + paid, 1 + unpaid)
    assert (x >= 0.0).all()
    assert (x <= 1.0).all()
    assert deviations(x, true.mean(), true.var()) < MOST_DEVIATIONS
    spread = true.expect(lambda p: (p - true.mean()) ** 4) - true.var() ** 2
    assert deviations((x - true.mean()) ** 2, true.var(), spread) < MOST_DEVIATIONS
    assert stats.kstest(x[:200_000], true.cdf).pvalue > LEAST_P


# --- models

N_X, N_ACTIONS = 5, 2
DRAWS = 100_000 if COMPILED else 400
COUNTS = {(0, 0): {3: 4, 1: 1}, (0, 1): {3: 2}, (1, 0): {0: 1, 1: 1, 2: 1, 3: 1, 4: 1}}
PAID = {(0, 0): 2, (0, 1): 2, (1, 0): 0}  # of the samples above
LOWEST, SPAN = -1.0, 4.0


def experience() -> Successors:
    seen = Successors(N_X, N_ACTIONS)
    for (x, a), followed in COUNTS.items():
        paid = PAID[x, a]
        for x_next, times in followed.items():
            for _ in range(times):
                seen.record(x, a, x_next, float(paid > 0))
                paid -= 1
    return seen


def drawn(
    *, optimistic_prior: bool, strength: float, draws: int = DRAWS
) -> tuple[Belief, Successors]:
    seen = experience()
    belief = make_belief(N_X, N_ACTIONS * draws, seen.arrays.outcome.shape[1])
    beliefs.list_successors(seen.arrays, belief)
    prior = Prior(strength, optimistic_prior, LOWEST, SPAN, draws)
    draw_posterior(seen.arrays, prior, np.uint64(11), belief)
    return belief, seen


@pytest.mark.skipif(not COMPILED, reason="takes many draws")
def test_a_draw_so_small_that_its_inverse_overflows_is_that_of_nothing_seen() -> None:
    n_x, n_actions = 8, 4
    seen = Successors(n_x, n_actions).arrays
    belief = make_belief(n_x, n_actions, seen.outcome.shape[1])
    for state in range(20_000):  # 640,000 draws, of which 1 in 28,000 is that small
        draw_posterior(seen, Prior(1e-6, False, LOWEST, SPAN, 1), np.uint64(state), belief)
        assert np.isfinite(belief.rest).all()


def of_pair(belief: Belief, x: int, a: int) -> tuple[dict[int, np.ndarray], np.ndarray, np.ndarray]:
    """Weights by successor, the rest and the rewards of all draws."""
    options = slice(a, belief.reward.shape[1], N_ACTIONS)
    weight = {int(belief.succ[x, k]): belief.weight[x, k, options] for k in range(belief.listed[x])}
    return weight, belief.rest[x, options], belief.reward[x, options]


def check_share(p: np.ndarray, ours: float, others: float) -> None:
    """That probabilities are draws from Beta(ours, others)."""
    if others == 0.0:
        assert p == pytest.approx(1.0)
        return
    true = stats.beta(ours, others)
    mean = ours / (ours + others)
    assert deviations(p, mean, mean * (1 - mean) / (ours + others + 1)) < MOST_DEVIATIONS
    fourth = true.expect(lambda p: (p - mean) ** 4)
    assert deviations((p - mean) ** 2, true.var(), fourth - true.var() ** 2) < MOST_DEVIATIONS
    assert stats.kstest(p, true.cdf).pvalue > LEAST_P


pairs = pytest.mark.parametrize(("x", "a"), COUNTS)


@pairs
@pytest.mark.parametrize("strength", [1.0, 3.5])
def test_psrl_draws_from_the_dirichlet_posterior(x: int, a: int, strength: float) -> None:
    belief, _ = drawn(optimistic_prior=False, strength=strength)
    weight, rest, _ = of_pair(belief, x, a)
    followed = COUNTS[x, a]
    n, each, others = sum(followed.values()), strength / N_X, N_X - len(followed)
    for x_next, times in followed.items():
        probability = weight[x_next] + rest  # what is weighed is more than the share of the others
        check_share(probability, times + each, n + strength - times - each)
    if others:
        check_share(rest * others, each * others, n + strength - each * others)
    assert sum(weight.values()) + rest * N_X == pytest.approx(1.0)
    assert all((w == 0.0).all() for x_next, w in weight.items() if x_next not in followed)


def test_psrl_draws_successors_that_go_together_as_in_a_dirichlet() -> None:
    belief, _ = drawn(optimistic_prior=False, strength=1.0)
    weight, rest, _ = of_pair(belief, 0, 0)
    first, second = (weight[x_next] + rest for x_next in (3, 1))
    means = 4.2 / 6, 1.2 / 6
    product = (first - means[0]) * (second - means[1])
    assert deviations(product, -means[0] * means[1] / 7, product.var()) < MOST_DEVIATIONS


def test_psrl_takes_what_was_never_tried_to_lead_anywhere() -> None:
    belief, _ = drawn(optimistic_prior=False, strength=1.0)
    for x, a in [(1, 1), (2, 0), (4, 1)]:
        weight, rest, reward = of_pair(belief, x, a)
        assert rest == pytest.approx(1 / N_X)
        assert all((w == 0.0).all() for w in weight.values())
        assert stats.kstest((reward - LOWEST) / SPAN, "uniform").pvalue > LEAST_P


@pytest.mark.parametrize("strength", [1e-6, 1e50])
def test_a_prior_that_is_next_to_nothing_or_to_certainty_is_no_error(strength: float) -> None:
    belief, _ = drawn(optimistic_prior=False, strength=strength, draws=50)
    weight, rest, _ = of_pair(belief, 0, 0)
    assert sum(weight.values()) + rest * N_X == pytest.approx(1.0)
    assert (rest < 1e-3).all() if strength < 1 else rest == pytest.approx(1 / N_X)
    assert of_pair(belief, 2, 0)[1] == pytest.approx(1 / N_X)


@pairs
@pytest.mark.parametrize("strength", [1.0, 3.5])
def test_opsrl_draws_with_one_more_successor(x: int, a: int, strength: float) -> None:
    belief, _ = drawn(optimistic_prior=True, strength=strength)
    weight, rest, _ = of_pair(belief, x, a)
    followed = COUNTS[x, a]
    n = sum(followed.values())
    for x_next, times in followed.items():
        check_share(weight[x_next], times, n + strength - times)
    check_share(rest, strength, n)
    assert sum(weight.values()) + rest == pytest.approx(1.0)
    assert all((w == 0.0).all() for x_next, w in weight.items() if x_next not in followed)


def test_opsrl_hopes_for_the_best_of_what_was_never_tried() -> None:
    belief, _ = drawn(optimistic_prior=True, strength=1.0, draws=20)
    for x, a in [(1, 1), (2, 0), (4, 1)]:
        assert (of_pair(belief, x, a)[2] == np.inf).all()


@pairs
@pytest.mark.parametrize("optimistic_prior", [False, True])
def test_rewards_are_drawn_from_the_beta_posterior(x: int, a: int, optimistic_prior: bool) -> None:
    belief, seen = drawn(optimistic_prior=optimistic_prior, strength=1.0)
    n, paid = int(seen.arrays.n[x, a]), PAID[x, a]
    assert seen.arrays.rho[x, a] == paid
    reward = of_pair(belief, x, a)[2]
    check_share((reward - LOWEST) / SPAN, 1 + paid, 1 + n - paid)


def test_models_that_are_drawn_at_once_are_independent() -> None:
    belief, _ = drawn(optimistic_prior=True, strength=1.0)
    rest = of_pair(belief, 0, 0)[1] - 1 / 6
    assert deviations(rest[1:] * rest[:-1], 0.0, rest.var() ** 2) < MOST_DEVIATIONS


# --- the agents


@pytest.mark.parametrize("name", ["psrl", "psrl-rm", "opsrl"])
def test_every_episode_has_a_draw_of_its_own(name: str) -> None:
    agent, same = (trial(name, corridor()).play(50).agent for _ in range(2))
    assert isinstance(agent, FiniteHorizon)
    assert isinstance(same, FiniteHorizon)
    drawn_rewards = []
    for _ in range(3):
        for each in (agent, same):
            each.begin_episode(2, 0)
        tried = agent.seen.arrays.n.any(axis=1)
        assert np.array_equal(agent.plan.belief.reward, same.plan.belief.reward)
        drawn_rewards.append(agent.plan.belief.reward[tried].copy())
    assert not np.array_equal(drawn_rewards[0], drawn_rewards[1])
    assert not np.array_equal(drawn_rewards[1], drawn_rewards[2])


@pytest.mark.parametrize("name", ["psrl", "psrl-rm"])
def test_psrl_assumes_the_best_of_several_models(name: str) -> None:
    agent = trial(name, errand(), samples=3, horizon=10).play(50).agent
    assert isinstance(agent, FiniteHorizon)
    agent.begin_episode(0, 0)
    n_actions = agent.sizes.actions
    values, options = np.empty(n_actions), np.empty(3 * n_actions)
    apart = 0
    for y, x in np.argwhere(~agent.done):
        stage_values(agent.plan.belief, agent.plan.stages, 5, y, x, options)
        stage_values(agent.plan.belief, agent.plan.stages, 5, y, x, values)
        assert (values == options.reshape(3, n_actions).max(axis=0)).all()
        apart += len(set(options[::n_actions].tolist())) == 3
    assert apart  # the three models differ


@pytest.mark.parametrize("name", ["psrl", "psrl-rm"])
def test_compiled_steps_with_several_models_are_those_in_python(name: str) -> None:
    slow, fast = (trial(name, errand(), samples=3, horizon=10) for _ in range(2))
    assert slow.play(300).state() == fast.rush(300).state()


def teller(**settings: Any) -> FiniteHorizon:
    agent = trial("psrl", errand(), **settings).agent
    assert isinstance(agent, FiniteHorizon)
    return agent


@pytest.mark.parametrize(("reward", "share"), [(1.0, 0.5), (0.0, 0.25), (2.9, 0.975)])
def test_a_reward_counts_as_paid_as_often_as_it_is_large(reward: float, share: float) -> None:
    agent = teller(r_min=-1.0, r_max=3.0)
    counted = np.array([agent.counted(reward) for _ in range(20_000)])
    assert set(counted) == {0.0, 1.0}
    assert deviations(counted, share, share * (1 - share)) < MOST_DEVIATIONS


@pytest.mark.parametrize(
    ("settings", "counted"),
    [
        ({"r_min": -1.0, "r_max": 3.0}, {-1.0: 0, 3.0: 1, -7.0: 0, 10.0: 1}),
        ({"r_min": 0.0, "r_max": 1.0}, {0.0: 0, 1.0: 1, -1e-9: 0, 1.5: 1}),
        ({"r_min": 0.0, "r_max": 0.0}, {0.0: 0, 5.0: 0, -5.0: 0}),  # they cannot differ
    ],
)
def test_rewards_at_the_ends_and_beyond_leave_nothing_to_chance(
    settings: dict[str, float], counted: dict[float, int]
) -> None:
    agent = teller(**settings)
    before = agent.rng.position()
    assert {reward: agent.counted(reward) for reward in counted} == counted
    assert agent.rng.position() == before


@pytest.mark.parametrize("play", ["play", "rush"])
def test_where_all_rewards_are_alike_they_are_known(play: str) -> None:
    tried = trial("psrl", corridor(), r_min=0.0, r_max=0.0)
    loop: Callable[[int], object] = getattr(tried, play)
    loop(200)
    assert isinstance(tried.agent, FiniteHorizon)
    assert (tried.agent.plan.belief.reward[:, :2] == 0.0).all()
    assert (tried.agent.seen.arrays.rho == 0.0).all()


def test_the_mean_of_what_was_counted_is_the_mean_of_what_was_paid() -> None:
    """Each move to the right pays 1/4, which is 1/5 of the most."""
    problem = corridor(bonus=0.25)
    agent = trial("psrl", problem, r_max=1.25, seed=2).rush(60_000 if COMPILED else 2000).agent
    assert isinstance(agent, FiniteHorizon)
    n, rho = (part[:, RIGHT] for part in agent.seen.arrays[:2])
    beside_the_door = np.arange(len(n)) // problem.n_task_states == problem.n_states - 2
    often = (n > 100) & ~beside_the_door
    assert often.any()
    shares, error = (rho / np.maximum(n, 1))[often], np.sqrt(0.2 * 0.8 / n[often])
    assert (np.abs(shares - 0.2) < MOST_DEVIATIONS * error).all()
