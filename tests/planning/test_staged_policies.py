"""Policies that depend on the stage, `[h, s, q]`: what they bring, and which are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qrmax
from qrmax.errors import ParameterError
from qrmax.planning import reference
from qrmax.planning.policy_evaluation import nominal_length
from random_problems import problems, random_policy, size_of
from small_problems import LEFT, RIGHT, errand, payday

pytestmark = pytest.mark.small_enough_without_jit

gammas = st.sampled_from([0.5, 0.9, 1.0])


def staged(problem: qrmax.Problem, stages: int, seed: int) -> np.ndarray:
    """An action for each stage and pair."""
    return np.stack([random_policy(problem, seed + h) for h in range(stages)])


@given(
    problem=problems(),
    seed=st.integers(0, 1000),
    stages=st.integers(1, 9),
    limit=st.sampled_from([None, 1, 2, 7, 40]),
    gamma=gammas,
)
def test_evaluation_equals_the_reference(
    problem: qrmax.Problem, seed: int, stages: int, limit: int | None, gamma: float
) -> None:
    policy = staged(problem, stages, seed)
    result = qrmax.evaluate(problem, policy, gamma, max_episode_steps=limit)
    value, success, lengths = reference.evaluate(problem, policy, gamma, limit)
    slack = 1e-9 * size_of(problem, np.zeros(1))
    assert result.start_value == pytest.approx(value, rel=1e-9, abs=slack)
    assert result.success == pytest.approx(success, rel=1e-9, abs=1e-15)
    if success > 0:
        assert result.mean_length == pytest.approx(lengths / success, rel=1e-8)
    else:
        assert result.mean_length is None


@given(problems(), st.integers(0, 1000), st.integers(1, 9), gammas)
def test_equal_stages_are_a_stationary_policy_with_a_limit(
    problem: qrmax.Problem, seed: int, stages: int, gamma: float
) -> None:
    policy = random_policy(problem, seed)
    once = qrmax.evaluate(problem, policy, gamma, max_episode_steps=stages)
    many = qrmax.evaluate(problem, np.stack([policy] * stages), gamma, max_episode_steps=None)
    slack = 1e-9 * size_of(problem, np.zeros(1))
    assert many.start_value == pytest.approx(once.start_value, rel=1e-9, abs=slack)
    assert many.success == pytest.approx(once.success, rel=1e-9, abs=1e-15)
    assert many.nominal_length == once.nominal_length


@given(problems(), st.integers(0, 1000), st.integers(1, 9))
def test_the_nominal_length_is_that_of_the_run_without_chance(
    problem: qrmax.Problem, seed: int, stages: int
) -> None:
    """Played one step after the other, for more stages than there are pairs, too."""
    policy = staged(problem, stages, seed)
    world, table = problem.mdp.nominal(), problem.table
    s, q = np.unravel_index(int(problem.start().T.argmax()), problem.start().T.shape)[::-1]
    steps = 0
    while steps < stages and not problem.done()[s, q]:
        s = world.succ[s, policy[steps, s, q], 0]
        read = problem.label[s]
        q = table.next_state[q, read, table.prob[q, read].argmax()]
        steps += 1
    expected = steps if problem.done()[s, q] and table.success[q] else None
    assert nominal_length(problem, policy) == expected
    assert qrmax.evaluate(problem, policy).nominal_length == expected


def test_a_run_may_be_longer_than_there_are_pairs() -> None:
    """To and fro until the last moment, and then straight to the goal."""
    problem = errand()  # 4 cells, 3 task states
    there = [LEFT, RIGHT, RIGHT, RIGHT]  # one step to the key, three to the exit
    policy = np.zeros((44, 4, 3), dtype=int)
    for h, a in enumerate([RIGHT, LEFT] * 20 + there):
        policy[h] = a
    assert policy.shape[0] > problem.n_states * problem.n_task_states
    found = qrmax.evaluate(problem, policy, 1.0)
    assert found == qrmax.Evaluation(1.0, 1.0, 44.0, 44)
    assert nominal_length(problem, policy) == 44


def test_one_stage_that_differs_makes_a_difference() -> None:
    problem = payday()
    work = np.zeros((3, 2, 1), dtype=int)
    leave_last, leave_first = work.copy(), work.copy()
    leave_last[2], leave_first[0] = 1, 1
    found = [
        qrmax.evaluate(problem, each, 1.0).start_value for each in (work, leave_last, leave_first)
    ]
    assert found == [3.0, 4.0, 2.0]


def test_a_policy_is_followed_for_as_long_as_it_and_the_problem_allow() -> None:
    problem = payday()
    work = np.zeros((3, 2, 1), dtype=int)
    assert qrmax.evaluate(problem, work, 1.0, None).start_value == 3.0
    assert qrmax.evaluate(problem, work, 1.0, 2).start_value == 2.0
    assert qrmax.evaluate(problem, work, 1.0, 9).start_value == 3.0


def test_gamma_may_be_1_only_where_there_is_a_limit() -> None:
    problem = payday()
    work = np.zeros((2, 1), dtype=int)
    assert qrmax.evaluate(problem, work, 1.0, 7).start_value == 7.0
    assert qrmax.evaluate(problem, work[None], 1.0).start_value == 1.0
    with pytest.raises(ParameterError, match="gamma is 1"):
        qrmax.evaluate(problem, work, 1.0)
    for policy in (work, work[None]):
        with pytest.raises(ParameterError, match=r"gamma is 1\.1"):
            qrmax.evaluate(problem, policy, 1.1, 7)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.zeros((5, 3, 4), dtype=int), r"shape \(5, 3, 4\); .*of shape \(stages, 4, 3\)"),
        (np.zeros((0, 4, 3), dtype=int), r"shape \(0, 4, 3\)"),
        (np.zeros((1, 5, 4, 3), dtype=int), r"shape \(1, 5, 4, 3\)"),
        (np.zeros((5, 4, 3)), "float64"),
        (np.zeros((5, 4, 3), dtype=bool), "bool"),
    ],
)
def test_a_policy_of_the_wrong_form_is_refused(policy: np.ndarray, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        qrmax.evaluate(errand(), policy)


@pytest.mark.parametrize("action", [2, -1])
def test_an_action_that_is_none_is_refused_with_its_stage(action: int) -> None:
    policy = np.zeros((5, 4, 3), dtype=int)
    policy[3, 2, 1] = action
    message = f"policy is {action} at stage 3, state 2, task state 1; allowed: 0 to 1"
    with pytest.raises(ParameterError, match=message):
        qrmax.evaluate(errand(), policy)
