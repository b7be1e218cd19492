"""Every value is within its bound of an oracle, and bounds are small, on problems that are hard."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

import qrmax
from planning_oracle import (
    GAMMAS,
    KINDS,
    chains,
    followed,
    optimal_values,
    policy_values,
    random_machine,
    random_problem,
    staged_values,
    success_and_lengths,
)
from qrmax.planning.models import model_of

BATCHES, BATCH = 40, 50
ORACLE = 1e-20  # of what is allowed: the oracle itself gives 1e-50 for some zeros


class Batch(NamedTuple):
    """Problems of one shape and kind, each with a discount and a random policy."""

    problems: list[qrmax.Problem]
    gammas: np.ndarray
    policies: np.ndarray  # [i, s, q]


def random_batch(number: int) -> Batch:
    rng = np.random.default_rng([16, number])
    machine, n, n_actions = random_machine(rng), int(rng.integers(1, 7)), int(rng.integers(1, 4))
    kind = KINDS[number % len(KINDS)]
    problems = [random_problem(rng, kind, machine, n, n_actions) for _ in range(BATCH)]
    shape = (BATCH, n, problems[0].n_task_states)
    return Batch(problems, rng.choice(GAMMAS, BATCH), rng.integers(0, n_actions, shape))


def assert_within(found: float, exact: float, bound: float, allowed: float) -> None:
    """The error is within its bound, which is itself no more than allowed."""
    assert abs(found - exact) <= bound + ORACLE * allowed
    assert bound <= allowed


@pytest.mark.parametrize("number", range(BATCHES))
def test_2000_random_problems_are_solved_within_their_bounds(number: int) -> None:
    """Gamma to 0.99999, rewards 1e-8 to 1e8, periodic, slowly mixing, stochastic machines."""
    problems, gammas, _ = random_batch(number)
    exact = optimal_values(chains(problems), gammas)
    for problem, gamma, value in zip(problems, gammas.tolist(), exact, strict=True):
        solution = qrmax.solve(problem, gamma)
        bound = solution.error_bound.reshape(-1)
        scale = np.abs(value).max() + model_of(problem).scale.reward
        allowed = 1e-12 * scale / (1.0 - gamma) + 1e-270
        assert (np.abs(solution.value.reshape(-1) - value) <= bound + ORACLE * allowed).all()
        assert bound.max() <= allowed
        start = problem.start().reshape(-1) @ value
        assert_within(solution.start_value, start, solution.start_error_bound, allowed)


@pytest.mark.parametrize("number", range(0, BATCHES, 2))
def test_1000_random_policies_are_evaluated_within_their_bounds(number: int) -> None:
    problems, gammas, policies = random_batch(number)
    chain = chains(problems)
    flat = policies.reshape(BATCH, -1)
    values = policy_values(chain, flat, gammas)
    goals = np.stack([np.tile(p.table.success, p.n_states) for p in problems])
    chances, lengths = success_and_lengths(chain, flat, goals)
    for i, problem in enumerate(problems):
        found = qrmax.evaluate(problem, policies[i], float(gammas[i]), None)
        bound = found.error_bound
        assert bound is not None
        start = problem.start().reshape(-1)
        scale = np.abs(values[i]).max() + model_of(problem).scale.reward
        allowed = 1e-12 * scale / (1.0 - gammas[i]) + 1e-270
        assert_within(found.start_value, start @ values[i], bound.start_value, allowed)
        assert_within(found.success, start @ chances[i], bound.success, 1e-4)
        if found.mean_length is not None:
            mean = (start @ lengths[i]) / (start @ chances[i])
            assert bound.mean_length is not None
            assert_within(found.mean_length, mean, bound.mean_length, 1e-3 * mean)


@pytest.mark.parametrize(("gamma", "limit"), [(0.9, 1), (0.999, 200), (1.0, 40)])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_policies_that_are_cut_off_are_evaluated_within_their_bounds(
    number: int, gamma: float, limit: int
) -> None:
    problems, _, policies = random_batch(number)
    goals = np.stack([np.tile(p.table.success, p.n_states) for p in problems])
    starts = np.stack([p.start().reshape(-1) for p in problems])
    chain, flat = chains(problems), policies.reshape(BATCH, -1)
    exact = zip(*followed(chain, flat, goals, starts, gamma, limit), strict=True)
    for problem, policy, (value, success, lengths) in zip(problems, policies, exact, strict=True):
        found = qrmax.evaluate(problem, policy, gamma, limit)
        bound = found.error_bound
        assert bound is not None
        allowed = 1e-12 * limit**2 * model_of(problem).scale.reward
        assert_within(found.start_value, value, bound.start_value, allowed)
        assert_within(found.success, success, bound.success, 1e-12 * limit)
        if found.mean_length is not None:
            assert bound.mean_length is not None
            assert_within(found.mean_length, lengths / success, bound.mean_length, 1e-9 * limit)


@pytest.mark.parametrize(("gamma", "horizon"), [(0.9, 1), (0.999, 50), (1.0, 20)])
def test_staged_optima_are_within_their_bounds(gamma: float, horizon: int) -> None:
    problems = random_batch(4).problems
    for problem, value in zip(
        problems, staged_values(chains(problems), gamma, horizon), strict=True
    ):
        solution = qrmax.solve_horizon(problem, horizon, gamma)
        start = problem.start().reshape(-1) @ value
        allowed = 1e-12 * horizon**2 * model_of(problem).scale.reward
        assert_within(solution.start_value, start, solution.start_error_bound, allowed)


def test_small_values_are_bounded_relative_to_themselves() -> None:
    """The bound is no constant: 0.9^1000 is bounded by about 1e-13 of itself, not of 1."""
    succ = np.minimum(np.arange(1001) + 1, 1000)[:, None, None]
    task = qrmax.RewardMachine(
        [qrmax.Edge("go", "end", "there", 1.0)], initial="go", success=["there"]
    )
    mdp = qrmax.TabularMDP(succ, np.ones((1001, 1, 1)), start=0)
    problem = qrmax.Problem(mdp, task, [(), ("end",)], [0] * 1000 + [1])
    solution = qrmax.solve(problem, 0.9)
    assert solution.start_error_bound <= 1e-9 * solution.start_value
    assert abs(Fraction(solution.start_value) - Fraction(0.9) ** 999) <= solution.start_error_bound
