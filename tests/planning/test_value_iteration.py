import gc
import weakref
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qrmax
from qrmax.errors import ConvergenceError, ParameterError
from qrmax.planning import policy_systems, reference
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


def test_what_does_not_settle_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recurrent, gamma near 1, and any linear system is too large: sweeps alone would go on."""
    monkeypatch.setattr(policy_systems, "LARGE", 0)
    monkeypatch.setattr(policy_systems, "TOO_LARGE", 0)
    monkeypatch.setattr(policy_systems, "KRYLOV_STEPS", 0)
    with pytest.raises(ConvergenceError, match="did not converge"):
        solve_model(model_of(ring([1.0, -3.0, 0.5, 2.0])), 0.99999, max_turns=2)


def ring(rewards: list[float]) -> qrmax.Problem:
    """States in a circle; each step goes to the next and pays the reward of where it began."""
    n = len(rewards)
    succ = ((np.arange(n) + 1) % n)[:, None, None]
    reward = np.array(rewards)[:, None, None]
    machine = qrmax.RewardMachine([], initial="go", states=["go"])
    mdp = qrmax.TabularMDP(succ, np.ones((n, 1, 1)), reward, start=0)
    return qrmax.Problem(mdp, machine, [()], [0] * n)


@pytest.mark.parametrize("gamma", [0.9, 0.999, 0.99999])
@pytest.mark.parametrize(
    "rewards",
    [[-1.0] * 8, [1.0] * 8, [1.0, -1.0] * 4, [1.0, 0.0, 0.0, -2.0, 1e-8], [5.0, 1.0, 2.0]],
    ids=str,
)
def test_a_ring_is_a_geometric_series_up_to_a_discount_of_099999(
    rewards: list[float], gamma: float
) -> None:
    problem = ring(rewards)
    exact = sum(Fraction(r) * Fraction(gamma) ** i for i, r in enumerate(rewards))
    exact /= 1 - Fraction(gamma) ** len(rewards)
    solution = qrmax.solve(problem, gamma)
    assert abs(Fraction(solution.start_value) - exact) <= solution.start_error_bound
    assert solution.start_error_bound <= 1e-12 * max(np.abs(rewards)) / (1 - gamma) ** 2
    followed = qrmax.evaluate(problem, solution.policy, gamma, None)
    assert followed.error_bound is not None
    assert abs(Fraction(followed.start_value) - exact) <= followed.error_bound.start_value


def one_way(length: int, cost: float) -> qrmax.Problem:
    """A corridor whose right end pays 1 and ends the episode; every step costs something."""
    cells = np.arange(length)
    succ = np.stack([np.maximum(cells - 1, 0), np.minimum(cells + 1, length - 1)], axis=1)
    label = (cells == length - 1).astype(int)
    task = qrmax.RewardMachine(
        [qrmax.Edge("go", "end", "there", 1.0)], initial="go", success=["there"]
    )
    reward = np.full((length, 2, 1), -cost)
    mdp = qrmax.TabularMDP(succ[:, :, None], np.ones((length, 2, 1)), reward, start=0)
    return qrmax.Problem(mdp, task, [(), ("end",)], label)


@pytest.mark.parametrize("cost", [0.0, 0.001, 10.0])
def test_step_costs_keep_the_moving_front_on_corridors(cost: float) -> None:
    for length in (200, 2000):
        solution = qrmax.solve(one_way(length, cost), gamma=0.99)
        assert solution.backups <= 5 * length
        steps = np.arange(length - 1, 0, -1.0)
        exact = 0.99 ** (steps - 1) - cost * (1 - 0.99**steps) / 0.01
        np.testing.assert_allclose(solution.value[:-1, 0], exact, rtol=0, atol=1e-12 * (1 + cost))
        assert (np.abs(solution.value[:-1, 0] - exact) <= solution.error_bound[:-1, 0]).all()


def test_with_step_costs_the_way_is_found_where_values_no_longer_differ() -> None:
    """0.9^500 is far below the rounding of V = -0.01, but not of V - Phi."""
    problem = one_way(500, 0.001)
    policy = qrmax.solve(problem, gamma=0.9).policy
    assert (policy[:-1, 0] == 1).all()
    assert qrmax.evaluate(problem, policy).success == 1.0


def test_different_step_costs_in_each_machine_state_keep_the_front() -> None:
    edges = [
        qrmax.Edge("out", "right", "back", -1.0),
        qrmax.Edge("out", "!right", "out", -1.0),
        qrmax.Edge("back", "left", "home", 5000.0),
        qrmax.Edge("back", "!left", "back", -2.0),
    ]
    problem = corridor(*edges, success=("home",), length=1000)
    solution = qrmax.solve(problem, gamma=0.999)
    assert solution.backups <= 6 * 2000
    out, back = (1 - 0.999**999) / 0.001, (1 - 0.999**998) / 0.001
    there = -2.0 * back + 0.999**998 * 5000.0
    assert solution.start_value == pytest.approx(-out + 0.999**999 * there, rel=1e-12)


def test_step_costs_of_all_kinds_are_bounded_on_a_grid() -> None:
    """The same cost everywhere or one for each cell: not many backups more than without."""
    backups = {
        cost: qrmax.solve(slippery_grid(24, cost), gamma=0.99).backups / 576
        for cost in ("none", "same", "terrain")
    }
    assert backups["same"] <= 1.1 * backups["none"]
    assert backups["terrain"] <= 1.3 * backups["none"]


def slippery_grid(size: int, cost: str) -> qrmax.Problem:
    """An open grid with moves that slip; the last cell pays 1 and ends the episode."""
    x, y = np.divmod(np.arange(size * size), size)
    moved = [
        np.clip(x + dx, 0, size - 1) * size + np.clip(y + dy, 0, size - 1)
        for dx, dy in ((0, 1), (1, 0), (0, -1), (-1, 0))
    ]
    succ = np.stack([np.stack([moved[(a + k) % 4] for k in (0, 1, 3)], 1) for a in range(4)], 1)
    prob = np.broadcast_to([0.8, 0.1, 0.1], succ.shape)
    terrain = np.random.default_rng(0).uniform(0.5, 1.5, (size * size, 1, 1))
    reward = {"none": 0.0, "same": -0.001, "terrain": -0.001 * terrain}[cost]
    task = qrmax.RewardMachine(
        [qrmax.Edge("go", "end", "there", 1.0)], initial="go", success=["there"]
    )
    label = np.zeros(size * size, dtype=int)
    label[-1] = 1
    mdp = qrmax.TabularMDP(succ, prob, np.broadcast_to(reward, succ.shape), start=0)
    return qrmax.Problem(mdp, task, [(), ("end",)], label)


def test_a_solution_is_the_same_each_time() -> None:
    problem = ring([1.0, -3.0, 0.5, 2.0])
    first, second = (qrmax.solve(problem, 0.9999) for _ in range(2))
    assert first.value.tobytes() == second.value.tobytes()
    assert first.policy.tobytes() == second.policy.tobytes()


def test_the_model_of_a_problem_is_built_once_and_goes_with_it() -> None:
    problem = qrmax.make("office/map1/exp1")
    assert model_of(problem) is model_of(problem)
    rewards = weakref.ref(model_of(problem).env.reward)
    del problem
    gc.collect()
    assert rewards() is None
