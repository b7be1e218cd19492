"""Backward induction: the kernel is the reference, and what it finds is the optimum."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qrmax
from qrmax.empirical.successors import Seen, Successors
from qrmax.errors import ParameterError
from qrmax.planning import reference
from qrmax.planning.arrays import Belief, BoolArray, FloatArray, IntArray, Stages, TaskModel
from qrmax.planning.finite_horizon import (
    FROM_SCRATCH,
    NEVER,
    NO_CHOICE,
    backward_induction,
    list_feeders,
    make_arrival,
    make_belief,
    make_stages,
    stage_values,
    stages_reached,
)
from qrmax.planning.staged_solution import solve_horizon
from random_problems import problems, size_of
from small_problems import payday, riverswim

pytestmark = pytest.mark.small_enough_without_jit

gammas = st.sampled_from([0.5, 0.9, 1.0])


# --- the kernel and the reference


class Case(NamedTuple):
    """Something to plan with."""

    belief: Belief
    task: TaskModel
    done: BoolArray  # [y, x]
    stages: Stages


@st.composite
def cases(
    draw: st.DrawFn, *, certain_machine: bool = False, optimistic_prior: bool | None = None
) -> Case:
    """Any number of actions and models; what is unknown, what never ends, and what adds a bonus."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_x, n_actions, n_models, n_succ, horizon = (
        draw(st.integers(1, most)) for most in (5, 6, 3, 3, 6)
    )
    n_y = draw(st.integers(1, 3))
    adds = draw(st.sampled_from([(), ("flat",), ("slope",), ("spread",), Belief._fields[-3:]]))
    belief = make_belief(n_x, n_actions * n_models, n_succ)
    used = slice(n_actions * n_models)
    shape = (n_x, n_actions * n_models)
    belief.listed[:] = rng.integers(0, n_succ + 1, n_x)
    belief.succ[:] = rng.integers(0, n_x, belief.succ.shape)
    mass = rng.random((n_x, n_succ + 1, shape[1])) * (rng.random((n_x, n_succ + 1, 1)) < 0.8)
    mass[:, :-1] *= (np.arange(n_succ) < belief.listed[:, None])[:, :, None]
    mass[:, -1] += 1e-3
    mass /= mass.sum(axis=1, keepdims=True)
    belief.weight[:, :, used] = mass[:, :-1]
    if draw(st.booleans()):
        belief.rest[:, used] = mass[:, -1] * rng.choice([1.0, 0.2])
    if "spread" not in adds and draw(st.booleans()):  # as PSRL has them; a variance has no meaning
        belief.weight[:, :, used] -= 0.05
    if draw(st.booleans()):  # never tried, as PSRL has them
        untried = rng.random(n_x) < 0.5
        belief.listed[untried], belief.weight[untried] = 0, 0.0
        belief.rest[untried, used] = 1.0 / n_x
    belief.reward[:, used] = rng.choice([0.0, 0.5, 1.0, -2.0, np.inf], shape)
    for part in adds:
        getattr(belief, part)[:, used] = rng.random(shape) * (rng.random(shape) < 0.7)
    optimistic = draw(st.booleans()) if optimistic_prior is None else optimistic_prior
    gamma, r_span = draw(gammas), draw(st.sampled_from([0.0, 1.0, 50.0]))
    stages = make_stages(horizon, gamma, r_span, (n_y, n_x), optimistic_prior=optimistic)
    task = _machine(rng, n_x, n_y, 1 if certain_machine else draw(st.integers(1, 2)))
    return Case(belief, task, rng.random((n_y, n_x)) < draw(st.sampled_from([0.0, 0.3])), stages)


def _machine(rng: np.random.Generator, n_x: int, n_y: int, n_outcomes: int) -> TaskModel:
    n_labels = int(rng.integers(1, 3))
    shape = (n_y, n_labels, n_outcomes)
    chance = rng.random(shape) + 1e-9
    return TaskModel(
        label=rng.integers(0, n_labels, n_x).astype(np.int32),
        next_state=rng.integers(0, n_y, shape).astype(np.int32),
        prob=chance / chance.sum(axis=2, keepdims=True),
        reward=rng.choice([0.0, 0.0, 1.0, -1.0], shape[:2]),
    )


def since_of(done: BoolArray) -> IntArray:
    """To plan everything but what is over."""
    return np.where(done, NEVER, 0).astype(np.int32)


def plan(case: Case, since: IntArray, choice: IntArray) -> None:
    """Plan from scratch."""
    belief, task, done, stages = case
    fresh, arrival = np.ones(len(belief.succ), dtype=bool), make_arrival(*done.shape)
    backward_induction(belief, task, since, fresh, FROM_SCRATCH, arrival, stages, choice)


def planned(case: Case, since: IntArray) -> tuple[FloatArray, IntArray]:
    """The value of every option, `[h, y, x, o]`, and what is chosen, `[h, y, x]`."""
    belief, _, _, stages = case
    choice = np.full(stages.ahead.shape, -1, dtype=np.int32)
    plan(case, since, choice)
    table = np.empty((*choice.shape, belief.reward.shape[1]))
    for h, y, x in np.ndindex(choice.shape):
        stage_values(belief, stages, h, y, x, table[h, y, x])
    return table, choice


@given(cases())
def test_the_kernel_is_the_reference(case: Case) -> None:
    table, _ = planned(case, since_of(case.done))
    expected = reference.backward_induction(*case)
    np.testing.assert_allclose(table, expected, rtol=1e-9, atol=1e-9)


@given(cases())
def test_the_choice_is_the_first_of_the_best(case: Case) -> None:
    table, choice = planned(case, since_of(case.done))
    best = np.where(case.done, -1, table.argmax(axis=3))
    np.testing.assert_array_equal(choice, best)


@given(cases())
def test_a_plan_without_a_choice_is_the_same_plan(case: Case) -> None:
    planned(case, since_of(case.done))
    ahead, beyond = case.stages.ahead.copy(), case.stages.beyond.copy()
    case.stages.ahead[:] = np.nan
    plan(case, since_of(case.done), NO_CHOICE)
    np.testing.assert_array_equal(case.stages.ahead, ahead)
    np.testing.assert_array_equal(case.stages.beyond, beyond)


@given(cases(), st.integers(1, 3))
def test_the_value_of_an_action_is_that_of_its_best_model(case: Case, n_models: int) -> None:
    table, _ = planned(case, since_of(case.done))
    n_options = table.shape[3]
    n_actions = max(1, n_options // n_models)
    values = np.empty(n_actions)
    for h, y, x in np.ndindex(table.shape[:3]):
        stage_values(case.belief, case.stages, h, y, x, values)
        for a in range(n_actions):
            assert values[a] == table[h, y, x, a::n_actions].max()


@given(cases(certain_machine=True, optimistic_prior=True), st.integers(0, 2**32 - 1))
def test_a_plan_that_is_kept_up_is_one_from_scratch_to_the_bit(case: Case, seed: int) -> None:
    """Whatever changes: models, what can be reached, what is over, and what the machine does."""
    rng, (belief, task, done, stages) = np.random.default_rng(seed), case
    arrival, since = make_arrival(*done.shape), since_of(done)
    kept, fresh = np.zeros(stages.ahead.shape, dtype=np.int32), np.ones(done.shape[1], dtype=bool)
    for _ in range(4):
        feeders = list_feeders(seen_in(belief))
        backward_induction(belief, task, since, fresh, feeders, arrival, stages, kept)
        anew, choice = stages._replace(ahead=np.full_like(stages.ahead, np.nan)), kept.copy()
        plan(case._replace(stages=anew), since, choice)
        np.testing.assert_array_equal(stages.ahead, anew.ahead)
        np.testing.assert_array_equal(kept, choice)
        fresh = rng.random(len(fresh)) < 0.4
        belief.reward[fresh] = np.minimum(belief.reward[fresh], rng.choice([0.0, 1.0]))
        belief.listed[fresh] = rng.integers(0, belief.succ.shape[1] + 1, fresh.sum())
        since[:, fresh] = rng.choice([0, 1, 3, NEVER], (len(since), fresh.sum()))
        y, label = (int(rng.integers(0, n)) for n in task.reward.shape)
        task.reward[y, label] = rng.choice([0.0, 2.0])
        task.next_state[y, label] = rng.integers(0, len(since))


def seen_in(belief: Belief) -> Seen:
    """The successors of a belief as counts."""
    nothing = Successors(len(belief.succ), 1).arrays
    return nothing._replace(listed=belief.listed, outcome=belief.succ)


@given(cases(certain_machine=True, optimistic_prior=True), st.integers(0, 2**32 - 1))
def test_what_cannot_be_reached_yet_plays_no_part_in_what_can(case: Case, seed: int) -> None:
    belief, task, done, stages = case
    starts = np.random.default_rng(seed).random(done.shape) < 0.3
    listed = np.arange(belief.succ.shape[1]) < belief.listed[:, None]
    since = np.empty(done.shape, dtype=np.int32)
    stages_reached(np.where(listed, belief.succ, -1), task, done, starts, since)
    everything, every_choice = planned(case, since_of(done))
    table, choice = planned(case, since)
    assert (since[starts & ~done] == 0).all()
    assert (since[done] == NEVER).all()
    reached = since <= np.arange(len(stages.v_max))[:, None, None]  # [h, y, x]
    np.testing.assert_array_equal(table[reached], everything[reached])
    np.testing.assert_array_equal(choice[reached], every_choice[reached])


@given(cases(certain_machine=True), st.integers(0, 2**32 - 1))
def test_what_is_reached_is_what_is_led_to(case: Case, seed: int) -> None:
    belief, task, done, _ = case
    starts = np.random.default_rng(seed).random(done.shape) < 0.3
    listed = np.arange(belief.succ.shape[1]) < belief.listed[:, None]
    since = np.empty(done.shape, dtype=np.int32)
    stages_reached(np.where(listed, belief.succ, -1), task, done, starts, since)
    front, expected = starts & ~done, np.full(done.shape, NEVER)
    for stage in range(done.size):
        expected[front & (expected == NEVER)] = stage
        following = np.zeros_like(front)
        for y, x in np.argwhere(front):
            for x_next in belief.succ[x, : belief.listed[x]]:
                following[task.next_state[y, task.label[x_next], 0], x_next] = True
        front = following & ~done
    np.testing.assert_array_equal(since, expected)


# --- the optimum of a problem


def plainly(process: qrmax.TabularMDP, horizon: int, gamma: float) -> FloatArray:
    """Q of any tabular process, `[h, state, a]`: knows nothing of tasks."""
    value, table = np.zeros(process.n_states), np.empty((horizon, *process.succ.shape[:2]))
    for h in reversed(range(horizon)):
        worth = process.reward + gamma * value[process.succ]
        table[h] = (process.prob * worth).sum(axis=2)
        value = np.where(process.terminal, 0.0, table[h].max(axis=1))
    return table


@given(problems(), st.integers(1, 8), gammas)
def test_the_optimum_is_that_of_the_product(
    problem: qrmax.Problem, horizon: int, gamma: float
) -> None:
    table = plainly(problem.product(), horizon, gamma)
    solution = solve_horizon(problem, horizon, gamma)
    shape = (problem.n_states, problem.n_task_states)
    value = np.where(problem.done(), 0.0, table[0].max(axis=1).reshape(shape))
    slack = 1e-9 * size_of(problem, table)
    np.testing.assert_allclose(solution.value, value, rtol=1e-9, atol=slack)
    assert solution.policy.shape == (horizon, *shape)
    chosen = solution.policy.reshape(horizon, -1, 1)
    short = table.max(axis=2) - np.take_along_axis(table, chosen, axis=2)[:, :, 0]
    assert (short[:, ~problem.done().ravel()] <= slack).all()


@given(problems(), st.integers(1, 8), gammas)
def test_the_optimal_policy_brings_the_optimal_value(
    problem: qrmax.Problem, horizon: int, gamma: float
) -> None:
    solution = solve_horizon(problem, horizon, gamma)
    brought = qrmax.evaluate(problem, solution.policy, gamma).start_value
    slack = 1e-9 * size_of(problem, solution.value)
    assert brought == pytest.approx(solution.start_value, rel=1e-9, abs=slack)


@settings(max_examples=8)
@given(problems())
def test_a_long_horizon_is_as_good_as_none(problem: qrmax.Problem) -> None:
    solution, endless = solve_horizon(problem, 200, 0.9), qrmax.solve(problem, 0.9)
    slack = 0.9**200 * 11 * size_of(problem, endless.value)
    np.testing.assert_allclose(solution.value, endless.value, rtol=1e-6, atol=slack)


def test_the_best_depends_on_the_stage_and_no_stationary_policy_is_as_good() -> None:
    """Work pays 1 a day; to leave pays 2, and is done on the last day."""
    problem = payday()
    solution = solve_horizon(problem, 3)
    assert solution.policy[:, 0, 0].tolist() == [0, 0, 1]
    assert solution.start_value == qrmax.evaluate(problem, solution.policy, 1.0).start_value == 4.0
    stationary = [
        qrmax.evaluate(problem, np.array(actions).reshape(2, 1), 1.0, 3).start_value
        for actions in product([0, 1], repeat=2)
    ]
    assert sorted(stationary) == [2.0, 2.0, 3.0, 3.0]


def test_every_staged_policy_of_a_tiny_problem_is_at_most_as_good() -> None:
    problem, horizon = payday(), 3
    values = [
        qrmax.evaluate(problem, np.array(actions).reshape(horizon, 2, 1), 0.9).start_value
        for actions in product([0, 1], repeat=2 * horizon)
    ]
    assert max(values) == pytest.approx(solve_horizon(problem, horizon, 0.9).start_value)
    assert max(values) == pytest.approx(1 + 0.9 + 0.81 * 2)


def test_a_machine_of_one_state_that_reads_one_label_pays_too() -> None:
    task = qrmax.RewardMachine([qrmax.Edge("go", "rain", "go", 2.0)], initial="go")
    world = qrmax.TabularMDP([[[0]]], [[[1.0]]])
    problem = qrmax.Problem(world, task, [["rain"]], [0])
    assert solve_horizon(problem, 5).start_value == 10.0


def test_the_river_is_swum_up_where_there_is_time() -> None:
    assert (solve_horizon(riverswim(), 5).policy[0, 0] == 0).all()  # too far: take what is near
    assert (solve_horizon(riverswim(), 40).policy[0] == 1).all()


@pytest.mark.parametrize(
    ("horizon", "gamma", "message"),
    [
        (0, 1.0, "horizon is 0; allowed: whole numbers from 1"),
        (2.5, 1.0, "horizon is 2.5"),
        (3, 0.0, "gamma is 0.0"),
        (3, 1.1, "gamma is 1.1"),
    ],
)
def test_what_is_no_horizon_or_gamma_is_refused(horizon: int, gamma: float, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        solve_horizon(payday(), horizon, gamma)


def test_a_solution_says_what_it_is_of() -> None:
    found = repr(solve_horizon(payday(), 3))
    assert found == "StagedSolution('payday': start value 4, horizon 3, gamma 1)"
