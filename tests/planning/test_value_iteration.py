import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qrmax
from qrmax.errors import ConvergenceError, ParameterError
from qrmax.planning import reference
from qrmax.planning.models import model_of
from qrmax.planning.value_iteration import solve_model
from random_problems import NON_NEGATIVE, problems, size_of

pytestmark = pytest.mark.small_enough_without_jit

GAMMAS = st.sampled_from([0.3, 0.9, 0.97])


def corridor(*edges: qrmax.Edge, success: tuple[str, ...] = (), length: int = 5) -> qrmax.Problem:
    """Cells in a row, steps left and right that never fail, `left` and `right` true at the ends."""
    cells = np.arange(length)
    succ = np.stack([np.maximum(cells - 1, 0), np.minimum(cells + 1, length - 1)], axis=1)
    label = np.zeros(length, dtype=int)
    label[[0, -1]] = 1, 2
    machine = qrmax.RewardMachine(edges, initial=edges[0].source, success=success)
    labels = [set(), {"left"}, {"right"}]
    mdp = qrmax.TabularMDP(succ[:, :, None], np.ones((length, 2, 1)), start=0)
    return qrmax.Problem(mdp, machine, labels, label)


def test_a_reward_four_steps_away_is_discounted_three_times() -> None:
    problem = corridor(qrmax.Edge("go", "right", "there", 1.0), success=("there",))
    solution = qrmax.solve(problem, gamma=0.5)
    assert solution.start_value == pytest.approx(0.5**3)
    assert solution.policy[:-1, 0].tolist() == [1, 1, 1, 1]
    assert solution.q[3, 0].tolist() == pytest.approx([0.5**2, 1.0])


@pytest.mark.parametrize("gamma", [0.9, 0.99, 0.9999])
def test_going_back_and_forth_for_ever_is_a_geometric_series(gamma: float) -> None:
    problem = corridor(
        qrmax.Edge("to_right", "right", "to_left"), qrmax.Edge("to_left", "left", "to_right", 1.0)
    )
    value = qrmax.solve(problem, gamma=gamma).start_value
    assert value == pytest.approx(gamma**7 / (1 - gamma**8), rel=1e-9)


@pytest.mark.parametrize("gamma", [0.9, 0.9999])
def test_being_paid_for_staying_is_a_geometric_series(gamma: float) -> None:
    problem = corridor(qrmax.Edge("here", "right", "here", 1.0))
    value = qrmax.solve(problem, gamma=gamma).start_value
    assert value == pytest.approx(gamma**3 / (1 - gamma), rel=1e-9)


def test_a_cost_is_avoided_where_it_outweighs_the_reward() -> None:
    edges = [qrmax.Edge("go", "right", "there", 1.0), qrmax.Edge("go", "left", "go", -1.0)]
    problem = corridor(*edges, success=("there",))
    assert qrmax.solve(problem, gamma=0.9).policy[1, 0] == 1
    assert qrmax.solve(problem, gamma=0.9).start_value == pytest.approx(0.9**3)


@given(problems(), GAMMAS)
def test_factored_equals_plain_value_iteration_on_the_product(
    problem: qrmax.Problem, gamma: float
) -> None:
    value = qrmax.solve(problem, gamma).value
    product = reference.solve_product(problem.product(), gamma)
    difference = np.abs(value.reshape(-1) - product).max()
    assert difference <= 1e-9 * size_of(problem, product)


@given(problems(NON_NEGATIVE), GAMMAS)
def test_without_costs_every_single_value_is_exact_to_nine_digits(
    problem: qrmax.Problem, gamma: float
) -> None:
    value = qrmax.solve(problem, gamma).value
    exact = reference.solve(problem, gamma)
    np.testing.assert_allclose(value, exact, rtol=1e-9, atol=1e-280)


@given(problems(), GAMMAS)
def test_kernels_equal_the_reference(problem: qrmax.Problem, gamma: float) -> None:
    solution = qrmax.solve(problem, gamma)
    expected = reference.action_values(problem, solution.value, gamma)
    size = size_of(problem, solution.value)
    np.testing.assert_allclose(solution.q, expected, rtol=1e-12, atol=1e-12 * size)
    chosen = np.take_along_axis(solution.q, solution.policy[:, :, None], axis=2)[:, :, 0]
    np.testing.assert_array_equal(chosen, solution.q.max(axis=2))


@given(problems())
def test_a_discount_of_09999_is_solved_with_cycles_costs_and_several_ends(
    problem: qrmax.Problem,
) -> None:
    """The value is that of the policy (a linear system), and no action improves on it: optimal."""
    solution = qrmax.solve(problem, gamma=0.9999)
    scale = size_of(problem, solution.value)
    own = reference.evaluate(problem, solution.policy, 0.9999, None).start_value
    assert solution.start_value == pytest.approx(own, rel=1e-9, abs=1e-9 * scale)
    gap = reference.action_values(problem, solution.value, 0.9999).max(axis=2) - solution.value
    assert np.abs(np.where(problem.done(), 0.0, gap)).max() <= 1e-12 * scale


def test_tiny_values_far_from_the_reward_are_relatively_exact() -> None:
    problem = corridor(qrmax.Edge("go", "right", "there", 1.0), success=("there",), length=2001)
    value = qrmax.solve(problem, gamma=0.9).value[:-1, 0]
    np.testing.assert_allclose(value, 0.9 ** np.arange(1999, -1, -1.0), rtol=1e-9)


@pytest.mark.parametrize("gamma", [0.0, 1.0, -0.5, 1.5, float("nan"), "high"])
def test_a_discount_outside_0_to_1_is_refused(gamma: float) -> None:
    with pytest.raises(
        ParameterError, match=r"gamma is .*; allowed: numbers above 0\.0, below 1\.0"
    ):
        qrmax.solve(qrmax.make("office/map1/exp1"), gamma)


def test_an_iteration_that_is_cut_short_says_so() -> None:
    problem = corridor(
        qrmax.Edge("to_right", "right", "to_left"), qrmax.Edge("to_left", "left", "to_right", 1.0)
    )
    with pytest.raises(ConvergenceError, match="did not settle"):
        solve_model(model_of(problem), 0.9999, max_rounds=2)


def test_the_model_of_a_problem_is_built_once_and_goes_with_it() -> None:
    problem = qrmax.make("office/map1/exp1")
    assert model_of(problem) is model_of(problem)
    rewards = weakref.ref(model_of(problem).env.reward)
    del problem
    gc.collect()
    assert rewards() is None
