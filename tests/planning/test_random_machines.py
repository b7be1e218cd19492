"""Planning with chance in the task, on problems that can be solved by hand."""

from __future__ import annotations

import numpy as np
import pytest

import qrmax
from coffee_task import pick_up
from qrmax.planning.models import model_of

pytestmark = pytest.mark.small_enough_without_jit

STAY = np.zeros((2, 4), dtype=int)  # there is one action; for machines of up to four states


def shop(machine: qrmax.RewardMachine) -> qrmax.Problem:
    """From the street into a shop that has coffee, and there for ever."""
    mdp = qrmax.TabularMDP([[[1]], [[1]]], [[[1.0]], [[1.0]]], start=0)
    return qrmax.Problem(mdp, machine, [(), ["coffee"]], [0, 1])


def evaluate(problem: qrmax.Problem, limit: int | None = None) -> qrmax.Evaluation:
    return qrmax.evaluate(problem, STAY[:, : problem.n_task_states], 0.9, max_episode_steps=limit)


@pytest.mark.parametrize("chance", [0.8, 0.3, 1e-6])
@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.999])
def test_trying_until_it_succeeds_is_a_geometric_series(chance: float, gamma: float) -> None:
    solution = qrmax.solve(shop(pick_up(chance)), gamma)
    exact = chance / (1 - gamma * (1 - chance))
    assert solution.start_value == pytest.approx(exact, rel=1e-9)
    assert solution.q[:, 0, 0].tolist() == pytest.approx([exact, exact], rel=1e-9)


def test_trying_until_it_succeeds_takes_one_over_the_chance_steps() -> None:
    result = evaluate(shop(pick_up(0.8)))
    assert result.success == pytest.approx(1.0)
    assert result.mean_length == pytest.approx(1 / 0.8)
    assert result.start_value == pytest.approx(0.8 / (1 - 0.9 * 0.2))


def test_three_tries_succeed_unless_all_three_fail() -> None:
    result = evaluate(shop(pick_up(0.8)), limit=3)
    assert result.success == pytest.approx(1 - 0.2**3)
    lengths = 0.8 * 1 + 0.16 * 2 + 0.032 * 3
    assert result.mean_length == pytest.approx(lengths / (1 - 0.2**3))
    assert result.start_value == pytest.approx(0.8 * (1 + 0.9 * 0.2 + (0.9 * 0.2) ** 2))


def test_what_is_paid_at_random_counts_by_its_mean() -> None:
    machine = qrmax.RewardMachine(
        [
            qrmax.Edge("start", "coffee", "done", 1.0, probability=0.25),
            qrmax.Edge("start", "coffee", "done", 5.0, probability=0.5),
        ],
        initial="start",
        success=["done"],
    )
    problem = shop(machine)
    assert qrmax.solve(problem).start_value == pytest.approx(2.75 / (1 - 0.9 * 0.25))
    assert model_of(problem).task.reward.tolist() == [[0.0, 2.75], [0.0, 0.0]]
    assert evaluate(problem).success == pytest.approx(1.0)


def test_success_and_failure_share_the_chances() -> None:
    machine = qrmax.RewardMachine(
        [
            qrmax.Edge("start", "coffee", "won", 1.0, probability=0.5),
            qrmax.Edge("start", "coffee", "lost", -2.0, probability=0.2),
        ],
        initial="start",
        success=["won"],
        failure=["lost"],
    )
    result = evaluate(shop(machine))
    assert result.success == pytest.approx(5 / 7)
    assert result.mean_length == pytest.approx(1 / 0.7)
    assert result.start_value == pytest.approx((0.5 - 0.4) / (1 - 0.9 * 0.3))


def test_the_nominal_run_takes_the_likeliest_outcome_of_the_machine() -> None:
    assert evaluate(shop(pick_up(0.8))).nominal_length == 1
    assert evaluate(shop(pick_up(0.4))).nominal_length is None  # staying is likelier


def test_the_nominal_problem_keeps_the_chances_of_its_machine() -> None:
    nominal = shop(pick_up(0.8)).nominal()
    assert nominal.machine.is_stochastic
    assert qrmax.solve(nominal).start_value == pytest.approx(0.8 / (1 - 0.9 * 0.2))


def test_the_best_action_weighs_the_chances_of_the_task() -> None:
    """Left pays 1 for sure, right pays 3 with 0.3: right is better, if it may be tried again."""
    mdp = qrmax.TabularMDP(
        [[[1], [2]], [[1], [1]], [[2], [2]]], np.ones((3, 2, 1)), terminal=[False] * 3
    )
    labels = [(), ["sure"], ["risky"]]
    for again, best in ((True, 1), (False, 0)):
        lose = [] if again else [qrmax.Edge("go", "risky", "lost", probability=0.7)]
        edges = [qrmax.Edge("go", "sure", "won", 1.0), qrmax.Edge("go", "risky", "won", 3.0, 0.3)]
        machine = qrmax.RewardMachine(
            [*edges, *lose], initial="go", success=["won"], failure=["lost"]
        )
        problem = qrmax.Problem(mdp, machine, labels, [0, 1, 2])
        assert qrmax.solve(problem).policy[0, 0] == best
