"""Comparing a policy with a number: never wrong, and undecided only where it is too close."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qrmax
from qrmax.planning import kernels, reference
from qrmax.planning.comparison import Comparison
from random_problems import ANY_SIGN, NON_NEGATIVE, problems, random_policy, size_of
from small_problems import LEFT, RIGHT, errand, riverswim

pytestmark = pytest.mark.small_enough_without_jit

COSTS_ONLY = (0.0, -1.0, -0.25)
NOTHING_PAYS = (0.0,)
ANY_REWARDS = st.sampled_from([NON_NEGATIVE, ANY_SIGN, COSTS_ONLY, NOTHING_PAYS])
CLOSE = 1e-7  # relative to the size of what is summed: here one need not tell which is larger


@st.composite
def policies(draw: st.DrawFn, problem: qrmax.Problem, solution: qrmax.Solution) -> np.ndarray:
    """The optimal policy with some, none or all of its actions changed at random."""
    seed, share = draw(st.integers(0, 999)), draw(st.sampled_from([0.0, 0.2, 1.0]))
    changed = np.random.default_rng(seed).random(solution.policy.shape) < share
    return np.where(changed, random_policy(problem, seed), solution.policy)


@given(data=st.data())
def test_a_comparison_agrees_with_the_value_on_any_problem(data: st.DataObject) -> None:
    problem = data.draw(problems(data.draw(ANY_REWARDS)))
    problem.max_episode_steps = data.draw(st.sampled_from([None, 1, 2, 7, 40]))
    gamma = data.draw(st.sampled_from([0.3, 0.9, 0.97]))
    solution = qrmax.solve(problem, gamma)
    policy = data.draw(policies(problem, solution))
    value = reference.evaluate(problem, policy, gamma, problem.max_episode_steps).start_value
    size = size_of(problem, solution.value)
    offset = data.draw(st.sampled_from([0.0, 1e-13, 1e-5, 1e-3, 0.05, 0.3, 1.0, 3.0]))
    threshold = value + data.draw(st.sampled_from([-1.0, 1.0])) * offset * size
    if data.draw(st.booleans()):
        threshold = 0.95 * solution.start_value
    verdict = Comparison(solution).exceeds(policy, threshold)
    if abs(value - threshold) > CLOSE * size:
        assert verdict is (value > threshold)
    elif verdict is not None:
        rounding = 1e-13 * size  # of the value itself, as computed here
        assert value > threshold - rounding if verdict else value < threshold + rounding


def test_what_differs_by_more_than_rounding_is_told_apart() -> None:
    problem = errand(slip=0.1, limit=1000)
    solution = qrmax.solve(problem)
    comparison, value = Comparison(solution), qrmax.evaluate(problem, solution.policy).start_value
    assert comparison.exceeds(solution.policy, value) is None
    assert comparison.exceeds(solution.policy, value * (1 - 1e-7)) is True
    assert comparison.exceeds(solution.policy, value * (1 + 1e-7)) is False


def test_values_that_were_solved_loosely_are_compared_with_what_they_may_be_off_by() -> None:
    problem = riverswim()
    loose, exact = qrmax.solve(problem, 0.99, tolerance=1e-3), qrmax.solve(problem, 0.99)
    assert loose.start_value < exact.start_value * (1 - 1e-6)
    between = (loose.start_value + exact.start_value) / 2
    assert Comparison(loose).exceeds(exact.policy, between) is not False


def test_costs_that_an_episode_is_cut_off_before_are_not_held_against_a_policy() -> None:
    """V* counts what comes after the limit, which here is nothing but cost."""
    mdp = qrmax.TabularMDP([[[0], [0]]], np.ones((1, 2, 1)), [[[-1.0], [-2.0]]])
    task = qrmax.RewardMachine([], initial="q", states=["q"])
    problem = qrmax.Problem(mdp, task, [()], [0], max_episode_steps=3)
    solution = qrmax.solve(problem)
    assert solution.start_value == pytest.approx(-10.0)
    comparison, policy = Comparison(solution), np.zeros((1, 1), dtype=int)
    worth = -(1 + 0.9 + 0.81)
    assert comparison.exceeds(policy, worth - 0.01) is True
    assert comparison.exceeds(policy, worth + 0.01) is False
    assert comparison.exceeds(policy + 1, worth) is False


def test_a_policy_that_gets_nowhere_is_found_out_within_a_few_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once n steps are wasted, no more than 0.9^n of the optimum is left to hope for."""
    problem = errand(cells=50, start=20, limit=1000)
    comparison = Comparison(qrmax.solve(problem))
    for name in ("_follow", "_lay_out", "_spread"):  # interpreted
        kernel = getattr(kernels, name)
        monkeypatch.setattr(kernels, name, getattr(kernel, "py_func", kernel))
    spread, steps = kernels._spread, []

    def counted(*arguments: object) -> object:
        steps.append(1)
        return spread(*arguments)

    monkeypatch.setattr(kernels, "_spread", counted)
    best = qrmax.solve(problem).start_value
    to_and_fro = np.full((50, 3), LEFT)
    to_and_fro[19] = RIGHT
    assert comparison.exceeds(to_and_fro, 0.95 * best) is False
    assert len(steps) == 2  # one on the way to the key, one back
    steps.clear()
    assert comparison.exceeds(to_and_fro, 0.5 * best) is False
    assert len(steps) == 8
