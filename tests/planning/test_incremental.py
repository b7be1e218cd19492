import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import amount
from qrmax import Problem
from qrmax.errors import ModelError
from qrmax.planning import reference
from qrmax.planning.incremental import IncrementalPlanner
from random_problems import NON_NEGATIVE, problems

pytestmark = pytest.mark.small_enough_without_jit

OPTIMISTIC = 50_000.0


def planner_for(problem: Problem, gamma: float) -> IncrementalPlanner:
    """A planner that knows where episodes end, and nothing else."""
    planner = IncrementalPlanner(
        problem.n_states,
        problem.n_task_states,
        problem.n_actions,
        gamma=gamma,
        optimistic=OPTIMISTIC,
        tolerance=1e-14,
    )
    for s, q in np.argwhere(problem.done()):
        planner.finish(s, q)
    return planner


def learn_env(planner: IncrementalPlanner, problem: Problem, s: int, a: int) -> None:
    mdp = problem.mdp
    planner.learn_env(s, a, mdp.succ[s, a], mdp.prob[s, a], mdp.expected_reward()[s, a])


def learn_task(planner: IncrementalPlanner, problem: Problem, q: int, s: int) -> None:
    label, table = problem.label[s], problem.table
    prob = table.prob[q, label]
    planner.learn_task(q, s, table.next_state[q, label], prob, prob @ table.reward[q, label])


@given(problems(NON_NEGATIVE), st.sampled_from([0.5, 0.9]), st.randoms(use_true_random=False))
def test_replanning_after_each_change_equals_planning_from_scratch(
    problem: Problem, gamma: float, random: st.DataObject
) -> None:
    planner = planner_for(problem, gamma)
    known_env = np.zeros((problem.n_states, problem.n_actions), dtype=bool)
    known_task = np.zeros((problem.n_task_states, problem.n_states), dtype=bool)
    lessons = [("env", s, a) for s, a in np.ndindex(known_env.shape)]
    lessons += [("task", q, s) for q, s in np.ndindex(known_task.shape)]
    random.shuffle(lessons)
    for lesson, (kind, first, second) in enumerate(lessons):
        if kind == "env":
            learn_env(planner, problem, first, second)
            known_env[first, second] = True
        else:
            learn_task(planner, problem, first, second)
            known_task[first, second] = True
        planner.replan()
        if lesson % 7 == 0 or lesson == len(lessons) - 1:
            expected = reference.solve_optimistic(problem, gamma, known_env, known_task, OPTIMISTIC)
            np.testing.assert_allclose(planner.value, expected, rtol=1e-9, atol=1e-7)


def test_what_is_not_known_stays_optimistic() -> None:
    planner = IncrementalPlanner(2, 1, 2, gamma=0.5, optimistic=2.0)
    planner.learn_env(0, 0, succ=[1], prob=[1.0], reward=0.0)
    planner.replan()
    assert planner.value.tolist() == [[2.0], [2.0]]  # arriving in state 1 is not known yet
    planner.learn_task(0, 1, next_state=[0], prob=[1.0], reward=0.0)
    planner.replan()
    assert planner.q[0, 0].tolist() == [1.0, 2.0]  # action 1 is not


def test_a_machine_that_moves_at_random_is_averaged() -> None:
    planner = IncrementalPlanner(1, 3, 1, gamma=0.5, optimistic=2.0)
    planner.learn_env(0, 0, succ=[0], prob=[1.0], reward=0.0)
    planner.finish(0, 1)
    planner.finish(0, 2)
    planner.learn_task(0, 0, next_state=[1, 0], prob=[0.8, 0.2], reward=0.8)
    planner.replan()
    assert planner.value[0, 0] == pytest.approx(0.8 / (1 - 0.5 * 0.2))


def test_a_small_change_costs_a_small_fraction_of_a_full_solve() -> None:
    """A corridor learned from its goal backwards: each new step concerns one state only."""
    length = 200
    planner = IncrementalPlanner(length, 2, 1, gamma=0.9, optimistic=1.0)
    planner.learn_task(0, length - 1, next_state=[1], prob=[1.0], reward=1.0)
    planner.finish(length - 1, 1)
    backups = 0
    for s in reversed(range(length - 1)):
        if s < length - 2:
            planner.learn_task(0, s + 1, next_state=[0], prob=[1.0], reward=0.0)
        planner.learn_env(s, 0, succ=[s + 1], prob=[1.0], reward=0.0)
        backups += planner.replan()
    np.testing.assert_allclose(planner.value[:-1, 0], 0.9 ** np.arange(length - 2, -1, -1.0))
    assert backups <= 4 * length


def test_what_the_machine_does_can_be_said_anew() -> None:
    planner = IncrementalPlanner(1, 2, 1, gamma=0.5, optimistic=9.0)
    planner.learn_env(0, 0, succ=[0], prob=[1.0], reward=0.0)
    planner.finish(0, 1)
    planner.learn_task(0, 0, next_state=[1, 0], prob=[0.5, 0.5], reward=1.0)
    planner.replan()
    planner.learn_task(0, 0, next_state=[1], prob=[1.0], reward=2.0)
    planner.replan()
    assert planner.value[0, 0] == 2.0


@given(problems(NON_NEGATIVE), st.sampled_from([0.5, 0.9]), st.randoms(use_true_random=False))
@settings(max_examples=amount(30, plain=6))
def test_a_planner_without_a_task_solves_the_product(
    problem: Problem, gamma: float, random: st.DataObject
) -> None:
    product = problem.product()
    planner = IncrementalPlanner.without_task(
        product.n_states, product.n_actions, gamma=gamma, optimistic=OPTIMISTIC, tolerance=1e-14
    )
    lessons = list(np.ndindex(product.succ.shape[:2]))
    random.shuffle(lessons)
    reward = product.expected_reward()
    for x, a in lessons:
        planner.learn_env(x, a, product.succ[x, a], product.prob[x, a], reward[x, a])
        if random.random() < 0.2:
            planner.replan()
    for x in np.flatnonzero(product.terminal):
        planner.finish(x, 0)
    planner.replan()
    expected = reference.solve_product(product, gamma)
    np.testing.assert_allclose(planner.value[:, 0], expected, rtol=1e-9, atol=1e-7)
    assert planner.value.shape == (product.n_states, 1)


def test_a_planner_grows_with_the_outcomes_that_it_is_told() -> None:
    """The chains of predecessors are made anew: changes must spread along old ones and new."""
    planner = IncrementalPlanner.without_task(6, 1, gamma=0.5, optimistic=8.0, tolerance=1e-14)
    planner.learn_env(0, 0, succ=[1], prob=[1.0], reward=0.0)
    planner.learn_env(1, 0, succ=[2, 3], prob=[0.5, 0.5], reward=0.0)
    planner.learn_env(2, 0, succ=[3, 4, 5], prob=[0.2, 0.3, 0.5], reward=0.0)
    planner.replan()
    assert planner.env.succ.shape == (6, 1, 4)
    assert planner.value[:3, 0] == pytest.approx([1.5, 3.0, 4.0])
    for s in (3, 4, 5):
        planner.finish(s, 0)
    planner.replan()
    assert planner.value[:, 0].tolist() == [0.0] * 6


def test_a_planner_grows_with_the_outcomes_of_the_machine() -> None:
    planner = IncrementalPlanner(1, 4, 1, gamma=0.5, optimistic=8.0)
    planner.learn_env(0, 0, succ=[0], prob=[1.0], reward=0.0)
    planner.learn_task(1, 0, next_state=[2], prob=[1.0], reward=3.0)
    planner.finish(0, 2)
    planner.learn_task(0, 0, next_state=[1, 2, 3], prob=[0.5, 0.25, 0.25], reward=0.0)
    planner.replan()
    assert planner.value[0].tolist() == [0.5 * (0.5 * 3.0 + 0.25 * 8.0), 3.0, 0.0, 8.0]


def test_finishing_is_news_once() -> None:
    planner = IncrementalPlanner(2, 1, 1, gamma=0.5, optimistic=1.0)
    assert planner.finish(1, 0)
    assert not planner.finish(1, 0)
    assert planner.value.tolist() == [[1.0], [0.0]]
    assert planner.greedy().tolist() == [[0], [0]]


def test_the_values_at_one_pair_are_those_of_the_table() -> None:
    planner = IncrementalPlanner(2, 2, 2, gamma=0.5, optimistic=4.0)
    planner.learn_env(0, 1, succ=[1], prob=[1.0], reward=-1.0)
    planner.learn_task(1, 1, next_state=[0], prob=[1.0], reward=0.5)
    planner.replan()
    for s, q in np.ndindex(2, 2):
        assert planner.q_at(s, q).tolist() == planner.q[s, q].tolist()
    assert planner.q[0, 1].tolist() == [4.0, 1.5]


def test_derived_results_are_kept_until_something_changes() -> None:
    planner = IncrementalPlanner(3, 2, 2, gamma=0.5, optimistic=4.0)
    before = {name: array.copy() for name, array in planner.snapshot().items()}
    for change in (
        lambda: planner.learn_env(0, 1, succ=[1], prob=[1.0], reward=-1.0),
        lambda: planner.learn_task(1, 1, next_state=[0], prob=[1.0], reward=0.5),
        planner.replan,
        lambda: planner.finish(1, 0),
        planner.replan,
        lambda: planner.set_bonus(0, 1, 0.25),
        lambda: planner.set_unknown(0, 0, 3.0),
        planner.replan,
        lambda: planner.grow(5),
        lambda: planner.restore(planner.snapshot()),
    ):
        planner.derived[0, 1] = "mine"
        planner.q_at(0, 1)
        assert planner.derived == {(0, 1): "mine"}
        change()
        assert planner.derived == {}
    planner = IncrementalPlanner(3, 2, 2, gamma=0.5, optimistic=4.0)
    planner.learn_env(0, 1, succ=[1], prob=[1.0], reward=-1.0)
    planner.learn_task(1, 1, next_state=[0], prob=[1.0], reward=0.5)
    assert planner.q_at(0, 1).tolist() == [4.0, 1.5]
    planner.restore(before)
    assert planner.q_at(0, 1).tolist() == [4.0, 4.0]


@given(problems(NON_NEGATIVE), st.integers(0, 20), st.randoms(use_true_random=False))
@settings(max_examples=amount(30, plain=6))
def test_a_restored_planner_goes_on_where_it_was(
    problem: Problem, before: int, random: st.DataObject
) -> None:
    """Also where something is waiting to be planned with."""
    lessons = [("env", *pair) for pair in np.ndindex(problem.n_states, problem.n_actions)]
    lessons += [("task", *pair) for pair in np.ndindex(problem.n_task_states, problem.n_states)]
    random.shuffle(lessons)
    original, copy = planner_for(problem, 0.9), planner_for(problem, 0.9)

    def learn(planner: IncrementalPlanner, kind: str, first: int, second: int) -> None:
        (learn_env if kind == "env" else learn_task)(planner, problem, first, second)

    for lesson in lessons[:before]:
        learn(original, *lesson)
    copy.restore(original.snapshot())
    for lesson in lessons[before:]:
        for planner in (original, copy):
            learn(planner, *lesson)
            planner.replan()
    for name, array in original.snapshot().items():
        np.testing.assert_array_equal(array, copy.snapshot()[name])


def test_a_snapshot_that_points_nowhere_is_refused() -> None:
    planner = IncrementalPlanner(2, 1, 1, gamma=0.5, optimistic=1.0)
    planner.learn_env(0, 0, succ=[1], prob=[1.0], reward=0.0)
    for name, wrong in [("env.succ", 2), ("env.head", 9), ("env.link", -3), ("work.length", 3)]:
        arrays = {key: array.copy() for key, array in planner.snapshot().items()}
        arrays[name][0] = wrong
        with pytest.raises(ModelError, match=f"{name} points outside"):
            planner.restore(arrays)
    arrays = planner.snapshot()
    with pytest.raises(ModelError, match=r"env.link has another size"):
        planner.restore({**arrays, "env.link": arrays["env.link"][:1]})


@settings(max_examples=amount(25, plain=4))
@given(problems(NON_NEGATIVE), st.booleans(), st.randoms(use_true_random=False))
def test_a_planner_that_grows_plans_what_one_with_all_the_room_plans(
    problem: Problem, has_task: bool, random: st.DataObject
) -> None:
    product = problem.product()
    n_q = problem.n_task_states if has_task else 1
    mdp = problem.mdp if has_task else product

    def planner(n_states: int) -> IncrementalPlanner:
        sizes, told = (n_states, mdp.n_actions), {"optimistic": OPTIMISTIC, "tolerance": 1e-6}
        if not has_task:
            return IncrementalPlanner.without_task(*sizes, gamma=0.9, **told)
        return IncrementalPlanner(n_states, n_q, mdp.n_actions, gamma=0.9, **told)

    growing, roomy = planner(1), planner(mdp.n_states)
    room = 1
    lessons = [*np.ndindex(mdp.n_states, mdp.n_actions)]
    random.shuffle(lessons)
    for s, a in lessons:
        succ, prob = mdp.succ[s, a], mdp.prob[s, a]
        if (needed := int(max(s, *succ)) + 1) > room:
            room = needed
            growing.grow(room)
        for each in (growing, roomy):
            each.learn_env(s, a, succ, prob, mdp.expected_reward()[s, a])
            for q in range(n_q) if has_task else ():
                learn_task(each, problem, q, s)
            each.replan()
    growing.grow(mdp.n_states)
    assert growing.value.tolist() == roomy.value.tolist()
    assert growing.q.tolist() == roomy.q.tolist()
