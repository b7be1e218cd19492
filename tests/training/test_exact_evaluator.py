"""The evaluator: exact values, gaps, and sampled returns that agree with them."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import qrmax
from qrmax.errors import ModelError
from qrmax.planning import policy_evaluation
from qrmax.problems.simulator import Simulator
from qrmax.seeding import stream
from qrmax.training import exact_evaluator
from qrmax.training.exact_evaluator import ExactEvaluator, Point, relative_gap
from qrmax.training.stopping import Welch
from random_problems import problems, random_policy
from small_runs import corridor, fetching, never_fetching

MOST_DEVIATIONS = 4.5  # of a mean from the truth: by chance once in 150,000 samples


def deviations(
    problem: qrmax.Problem, policy: np.ndarray, episodes: int, gamma: float = 0.9
) -> float:
    """How far the mean of sampled returns is from the exact value, in standard errors."""
    returns = ExactEvaluator(problem, gamma).returns(policy, episodes, stream(1, "evaluation"))
    assert returns.shape == (episodes,)
    exact = qrmax.evaluate(problem, policy, gamma).start_value
    error = returns.std(ddof=1) / np.sqrt(episodes)
    distance = abs(returns.mean() - exact)
    return 0.0 if distance < 1e-9 * (1.0 + abs(exact)) else float(distance / error)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail rather than wait for ever."""

    def late(*_: object) -> None:
        pytest.fail(f"took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


# --- sampled returns


@pytest.mark.parametrize(
    "problem",
    [
        corridor(),
        corridor(limit=9, slip=0.3),  # most episodes are cut off
        corridor(chance=0.4),  # the machine draws, too
        corridor(bonus=0.5, limit=12),
        corridor(limit=None, bonus=-0.25, chance=0.7),
    ],
    ids=["plain", "truncated", "random machine", "world pays", "no limit"],
)
@pytest.mark.parametrize("gamma", [0.9, 0.5])
def test_sampled_returns_agree_with_the_exact_value(problem: qrmax.Problem, gamma: float) -> None:
    assert deviations(problem, fetching(problem), 20_000, gamma) < MOST_DEVIATIONS


@pytest.mark.parametrize("name", ["office/map0/exp0", "office/map1/exp1", "office/map4/exp6"])
def test_sampled_returns_of_optimal_policies_agree_with_their_value(name: str) -> None:
    problem = qrmax.make(name)
    assert deviations(problem, qrmax.solve(problem).policy, 20_000) < MOST_DEVIATIONS


@settings(max_examples=40)
@given(problem=problems(), seed=st.integers(0, 99), limit=st.sampled_from([1, 4, 40]))
def test_sampled_returns_agree_with_the_exact_value_on_any_problem(
    problem: qrmax.Problem, seed: int, limit: int
) -> None:
    problem.max_episode_steps = limit
    assume(not (problem.start() * problem.done()).any())  # sampling knows only real episodes
    assert deviations(problem, random_policy(problem, seed), 4000) < 6.0


def test_sampling_goes_on_in_its_stream_and_leaves_no_trace_elsewhere() -> None:
    evaluator, chance = ExactEvaluator(corridor(), 0.9), stream(3, "evaluation")
    policy = fetching(evaluator.problem)
    first, second = (evaluator.returns(policy, 500, chance) for _ in range(2))
    again = ExactEvaluator(corridor(), 0.9).returns(policy, 500, stream(3, "evaluation"))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    "problem", [corridor(bonus=0.25), corridor(chance=0.5, bonus=0.1, limit=11)]
)
def test_sampled_returns_are_those_of_episodes_played_one_step_after_the_other(
    problem: qrmax.Problem,
) -> None:
    """Numbers are drawn ahead in blocks that end in the middle of episodes: nothing is lost."""
    policy, gamma, episodes = fetching(problem), 0.9, 3000
    simulator = Simulator(problem, stream(0, "evaluation"))
    expected = []
    for _ in range(episodes):
        simulator.reset()
        total, discount = 0.0, 1.0
        while not simulator.over:
            step = simulator.step(policy[simulator.s, simulator.q])
            total += discount * (step.r_env + step.r_task)
            discount *= gamma
        expected.append(total)
    assert len(set(expected)) > 5
    sampled = ExactEvaluator(problem, gamma).returns(policy, episodes, stream(0, "evaluation"))
    assert sampled.tolist() == expected


def test_a_policy_that_never_ends_is_sampled_all_the_same() -> None:
    problem = corridor(limit=None, slip=0.0)
    evaluator = ExactEvaluator(problem, 0.9)
    with within(20.0):
        returns = evaluator.returns(never_fetching(problem), 100, stream(0, "evaluation"))
        assert not returns.any()
        assert not Welch(episodes=100).passes(
            never_fetching(problem), evaluator, stream(0, "evaluation")
        )
        run = qrmax.train("q-learning", problem, stop=Welch(episodes=50), max_steps=3000)
    assert run.trained > 0


def test_what_never_ends_and_always_pays_is_worth_what_discounting_makes_of_it() -> None:
    problem = corridor(limit=None, slip=0.0, bonus=1.0)
    with within(20.0):
        returns = ExactEvaluator(problem, 0.5).returns(
            never_fetching(problem), 10, stream(0, "any")
        )
    assert returns == pytest.approx(2.0, rel=1e-9)


# --- exact values


def test_a_row_of_the_curve_is_the_evaluation() -> None:
    problem = corridor()
    evaluator = ExactEvaluator(problem, 0.8)
    for policy in (fetching(problem), never_fetching(problem), random_policy(problem, 3)):
        evaluated = qrmax.evaluate(problem, policy, 0.8)
        assert evaluator.evaluate(policy) == evaluated
        best = qrmax.evaluate(problem, qrmax.solve(problem, 0.8).policy, 0.8)
        assert evaluator.point(70, policy) == Point(
            70,
            evaluated.start_value,
            relative_gap(evaluated.start_value, best.start_value),
            evaluated.success,
            evaluated.nominal_length,
        )
    assert evaluator.gap(fetching(problem)) == 0.0
    assert evaluator.gap(never_fetching(problem)) > 0.9


def test_a_policy_that_was_changed_is_judged_anew() -> None:
    evaluator = ExactEvaluator(corridor(), 0.9)
    policy = fetching(evaluator.problem)
    before = evaluator.evaluate(policy)
    policy[:] = never_fetching(evaluator.problem)
    assert evaluator.evaluate(policy) == qrmax.evaluate(evaluator.problem, policy) != before


def test_a_policy_that_was_changed_is_compared_anew() -> None:
    evaluator = ExactEvaluator(corridor(), 0.9)
    policy = fetching(evaluator.problem)
    assert evaluator.is_near(policy, 0.05)
    assert not evaluator.is_near(policy, -1e-6)  # another question about the same policy
    policy[:] = never_fetching(evaluator.problem)
    assert not evaluator.is_near(policy, 0.05)


def test_a_policy_that_stays_the_same_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator, evaluated = ExactEvaluator(corridor(), 0.9), []

    def evaluate(problem: qrmax.Problem, policy: np.ndarray, *rest: float, **more: bool) -> Any:
        evaluated.append(policy)
        return policy_evaluation.evaluate(problem, policy, *rest, **more)

    monkeypatch.setattr(exact_evaluator, "evaluate", evaluate)
    policy = fetching(evaluator.problem)
    for step in range(3):
        assert evaluator.point(step, policy.copy()).gap == evaluator.gap(policy) == 0.0
    assert len(evaluated) == 1 + 1  # this one and the optimum


@pytest.mark.small_enough_without_jit
@pytest.mark.parametrize(
    ("value", "best", "gap"),
    [
        (1.0, 1.0, 0.0),
        (0.75, 1.0, 0.25),
        (0.0, 2.0, 1.0),
        (-2.0, 2.0, 2.0),
        (-3.0, -2.0, 0.5),
        (3.0, 2.0, -0.5),
        (0.0, 0.0, 0.0),
        (-1.0, 0.0, math.inf),
        (1.0, 0.0, -math.inf),
    ],
)
def test_a_gap_is_relative_to_the_optimum(value: float, best: float, gap: float) -> None:
    assert relative_gap(value, best) == gap


def test_a_problem_whose_episodes_are_over_at_once_is_refused() -> None:
    problem = corridor()
    mdp = qrmax.TabularMDP(
        problem.mdp.succ, problem.mdp.prob, terminal=[True] * problem.n_states, start=2
    )
    over = qrmax.Problem(mdp, problem.machine, problem.labels, problem.label)
    with pytest.raises(ModelError, match="over before it begins"):
        qrmax.train("qrmax", over)
