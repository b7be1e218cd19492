"""Continuous problems on a fine grid: true to their moves, and near their optimum."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qrmax
from gym_worlds import in_order
from planes import planes, walk
from qrmax.errors import ObservationError, ParameterError, QRMaxWarning
from qrmax.planning.fine_grid import FineSolution, solve_continuous
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.discretisation import FineGrid, discretise
from qrmax.problems.plane import NEAR, Plane, moves
from qrmax.problems.sampling import sample_episodes

NODES = np.array([NormalDist().inv_cdf((i + 0.5) / 150) for i in range(150)])
ROOM = ". . .\n\n. A .\n-\n. * ."


def empty(plane: Plane) -> ContinuousProblem:
    """A problem in a plane where nothing is ever true."""
    n_cells = len(plane.wall)
    machine = qrmax.RewardMachine([], initial="go")
    nowhere = np.zeros(n_cells, dtype=bool)
    return ContinuousProblem(plane, machine, [()], np.zeros(n_cells), terminal=nowhere, start=0)


def position_of(grid: FineGrid, state: int) -> tuple[float, float]:
    cell, point = divmod(state, grid.size)
    j, i = divmod(point, len(grid.x))
    row, column = divmod(cell, grid.plane.columns)
    return column + float(grid.x[i]), row + float(grid.y[j])


@given(planes(), st.integers(1, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_a_point_leads_to_cells_as_often_as_the_true_move(
    plane: Plane, per_cell: int, seed: int
) -> None:
    """And to where it leads on average, walls and all: compared with many moves from there."""
    problem = discretise(empty(plane), per_cell)
    grid, mdp = problem.world, problem.mdp
    rng = np.random.default_rng(seed)
    g_x, g_y = (part.reshape(-1) for part in np.meshgrid(NODES, NODES))
    positions = np.array([position_of(grid, s) for s in range(problem.n_states)])
    corner = np.stack([grid.cell % plane.columns, grid.cell // plane.columns], axis=1)
    for s, a in rng.integers(0, (problem.n_states, 4), (4, 2)).tolist():
        x, y = np.minimum(positions[s], corner[s] + 1.0 - NEAR)  # its own side of a border
        here = np.full(len(g_x), x), np.full(len(g_x), y)
        x_true, y_true, cell = moves(plane, *here, np.full(len(g_x), a), g_x, g_y)
        true = np.bincount(cell, minlength=len(plane.wall)) / len(cell)
        chances, ends = mdp.prob[s, a], mdp.succ[s, a]
        found = np.bincount(ends // grid.size, weights=chances, minlength=len(plane.wall))
        np.testing.assert_allclose(found, true, atol=0.02 if plane.noise[0] else 1e-9)
        np.testing.assert_allclose(
            chances @ positions[ends], [x_true.mean(), y_true.mean()], atol=0.02
        )


@given(planes(), st.integers(1, 5))
@settings(max_examples=30)
def test_probabilities_are_such_and_no_successor_is_listed_twice(
    plane: Plane, per_cell: int
) -> None:
    mdp = discretise(empty(plane), per_cell).mdp
    np.testing.assert_allclose(mdp.prob.sum(axis=2), 1.0, rtol=1e-12)
    assert (mdp.prob >= 0.0).all()
    for s in range(0, mdp.n_states, 7):
        for a in range(4):
            listed = mdp.succ[s, a][mdp.prob[s, a] > 0.0]
            assert len({*listed.tolist()}) == len(listed)


def landing(per_cell: int, noise: float, offset: int) -> tuple[float, float]:
    """The mean and the variance of a move to the right from a point in the middle of a line."""
    problem = discretise(walk(". . . . . . . A", noise=noise), per_cell)
    s = 3 * (per_cell + 1) + offset
    ends = np.array([position_of(problem.world, t)[0] for t in range(problem.n_states)])
    chances, at = problem.mdp.prob[s, 0], ends[problem.mdp.succ[s, 0]]
    mean = float(chances @ at)
    return mean, float(chances @ (at - mean) ** 2)


@pytest.mark.parametrize("offset", range(17))
def test_interpolation_hardly_adds_to_the_noise(offset: int) -> None:
    """Straight lines would add 1/6 of the squared distance, 26 % of the variance here."""
    noise, per_cell = 0.05, 16
    mean, variance = landing(per_cell, noise, offset)
    assert mean == pytest.approx(3 + offset / per_cell + 0.65, abs=1e-4)
    linear = 1.0 / (6 * per_cell**2)
    assert abs(variance - noise**2) < 0.25 * linear


def test_the_cell_of_a_move_near_a_border_is_as_likely_as_it_should_be() -> None:
    """With hardly any points to a cell, and far less noise than their distance."""
    noise = 0.05
    problem = discretise(walk(". . . . A", noise=noise, step=0.45), 2)
    for s, column in ((1, 0), (4, 1)):  # in the middle of a cell: 0.05 before the border
        succ, prob = problem.mdp.succ[s, 0], problem.mdp.prob[s, 0]
        beyond = prob[succ // 3 == column + 1].sum()
        assert beyond == pytest.approx(1.0 - NormalDist().cdf(0.05 / noise), abs=1e-4)


def test_labels_rewards_and_ends_are_those_of_the_cells() -> None:
    problem = walk(ROOM, decoration_penalty=3.0, step=1.0)
    fine = discretise(problem, 3)
    grid = fine.world
    assert fine.n_states == 9 * 16 == grid.n_states
    np.testing.assert_array_equal(fine.label, problem.label[grid.cell])
    np.testing.assert_array_equal(fine.mdp.terminal, problem.terminal[grid.cell])
    reward = np.where(problem.terminal[grid.cell], -3.0, 0.0)
    np.testing.assert_array_equal(fine.mdp.reward, reward[fine.mdp.succ])
    assert fine.max_episode_steps == problem.max_episode_steps
    assert fine.labels == problem.labels


def test_what_can_never_be_is_warned_of_once() -> None:
    with pytest.warns(QRMaxWarning, match="names 'B'"):
        problem = walk(". A", in_order("A", "B"))
    assert solve_continuous(problem, 0.9, 2).success == 0.0  # here a warning is an error


@pytest.mark.parametrize("per_cell", [1, 2, 3, 4, 7])
def test_the_start_is_in_the_middle_of_its_cell(per_cell: int) -> None:
    fine = discretise(walk(ROOM, start="1,0"), per_cell)
    points = np.array([position_of(fine.world, s) for s in range(fine.n_states)])
    np.testing.assert_allclose(fine.mdp.start @ points, [1.5, 0.5])
    assert fine.world.cell[np.flatnonzero(fine.mdp.start)].tolist() == [1] * (
        1 if per_cell % 2 == 0 else 4
    )


@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.floats(0.0, 2.999), st.floats(0.0, 2.999)), min_size=1, max_size=9),
)
def test_points_around_a_position_are_in_its_cell_and_average_to_it(
    per_cell: int, at: list[tuple[float, float]]
) -> None:
    grid = FineGrid(walk(ROOM).plane, (per_cell, per_cell + 1))
    x, y = np.array(at).T
    points, weights = grid.around(x, y)
    assert (weights >= 0.0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    places = np.array([[position_of(grid, int(s)) for s in row] for row in points])
    np.testing.assert_allclose((weights[:, :, None] * places).sum(axis=1), at, atol=1e-9)
    cells = np.floor(y).astype(int) * 3 + np.floor(x).astype(int)
    np.testing.assert_array_equal(points // grid.size, cells[:, None].repeat(4, axis=1))


@pytest.mark.parametrize(("step", "per_cell", "length"), [(0.025, 2, 21), (0.02, 10, 27)])
def test_without_noise_a_line_takes_as_many_steps_as_counting_says(
    step: float, per_cell: int, length: int
) -> None:
    """From 0.025 to A at 0.35 and on to B at 0.55, in steps that fall on points of the grid."""
    line = qrmax.make("continuous/line/ab", step=step, noise=0.0)
    solution = solve_continuous(line, 0.9, per_cell)
    assert solution.start_value == pytest.approx(0.9 ** (length - 1), rel=1e-9)
    assert solution.success == pytest.approx(1.0)
    assert solution.mean_length == pytest.approx(length)
    played = sample_episodes(line, solution, 2, np.random.default_rng(1), 0.9)
    assert played.lengths.tolist() == [length, length]


def test_what_the_world_costs_counts() -> None:
    """Over a decoration that does not end the episode, to A: the cost, then the reward."""
    problem = walk(
        ". * A", noise=0.0, step=1.0, decoration_penalty=0.25, decorations_terminate=False
    )
    assert solve_continuous(problem, 0.9, 2).start_value == pytest.approx(-0.25 + 0.9)
    dear = walk(". * A", noise=0.0, step=1.0, decoration_penalty=2.0, decorations_terminate=False)
    solution = solve_continuous(dear, 0.9, 4)  # better to stay
    assert (solution.start_value, solution.success, solution.mean_length) == (0.0, 0.0, None)
    assert solution.error == (0.0, 0.0)


def test_a_finer_grid_is_nearer_to_the_truth() -> None:
    line = qrmax.make("continuous/line/ab")
    truth = solve_continuous(line, 0.95, 64).start_value
    errors = [abs(solve_continuous(line, 0.95, n).start_value / truth - 1.0) for n in (2, 4, 8, 16)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] < 1e-3
    assert errors[-1] < 1e-5


def played(problem: ContinuousProblem, solution: FineSolution, episodes: int = 20_000) -> Any:
    return sample_episodes(problem, solution, episodes, np.random.default_rng(3), solution.gamma)


@pytest.mark.parametrize(
    "problem",
    [
        qrmax.make("continuous/line/ab"),
        walk(". . . *\n\n. A . .\n-   -\n. * . B", in_order("B", "A"), noise=0.1),
        walk(". * A\n\n. . .", noise=0.2, decoration_penalty=0.5),
    ],
    ids=["line", "rooms", "past a decoration"],
)
def test_in_the_true_world_the_policy_brings_what_the_grid_says(
    problem: ContinuousProblem,
) -> None:
    solution = solve_continuous(problem, 0.95)
    returns, successes, lengths = played(problem, solution)
    error = 5 * returns.std() / np.sqrt(len(returns))
    assert returns.mean() == pytest.approx(solution.start_value, abs=error + 0.003)
    assert successes.mean() == pytest.approx(solution.success, abs=0.01)
    assert lengths[successes].mean() == pytest.approx(solution.mean_length, rel=0.02)
    assert 0.0 < solution.error.value < 0.02
    assert solution.error.success < 0.02


def test_a_random_machine_is_solved_as_well() -> None:
    edges = [qrmax.Edge("go", "A", "there", 1.0, probability=0.3)]
    task = qrmax.RewardMachine(edges, initial="go", success=["there"])
    problem = walk(". A A", task, noise=0.0, step=1.0)
    solution = solve_continuous(problem, 0.9, 2)
    again = 0.3 / (1.0 - 0.9 * 0.7)  # one try after the other
    assert solution.start_value == pytest.approx(again)
    assert played(problem, solution).returns.mean() == pytest.approx(again, abs=0.01)


def test_actions_are_the_best_at_the_points_and_between_them() -> None:
    line = qrmax.make("continuous/line/ab")
    solution = solve_continuous(line, 0.95, 8)
    x = np.linspace(0.0, 0.999, 200)
    for q, target in ((0, 0.40), (1, 0.60)):
        actions = solution.actions(x[:, None], np.full(200, q))
        far = np.abs(x - target) > 0.06
        np.testing.assert_array_equal(actions[far], (x > target)[far])


@pytest.mark.parametrize(
    ("observations", "q", "error", "message"),
    [
        ([[np.nan]], [0], ObservationError, "nan in dimension 0"),
        ([[0.1, 0.2]], [0], ObservationError, "has 2 numbers; needed: 1"),
        ("here", [0], ObservationError, "are not vectors of 1 numbers"),
        (0.1, [0], ObservationError, "needed: many of them"),
        ([[0.1]], [3], ParameterError, r"q is \[3\]; needed: a whole number from 0 to 2"),
        ([[0.1]], [-1], ParameterError, "from 0 to 2"),
        ([[0.1]], [0.5], ParameterError, "from 0 to 2"),
        ([[0.1]], 0, ParameterError, "for each of 1 observations"),
        ([[0.1], [0.2]], [0], ParameterError, "for each of 2 observations"),
    ],
)
def test_what_is_no_observation_or_task_state_has_no_best_action(
    observations: Any, q: Any, error: type[Exception], message: str
) -> None:
    solution = solve_continuous(qrmax.make("continuous/line/ab"), 0.95, 2)
    with pytest.raises(error, match=message):
        solution.actions(observations, q)


def test_at_a_wall_the_action_is_that_of_its_own_side() -> None:
    """A move that was stopped stands exactly there, on the side it came from."""
    problem = walk("A .|. .\n\n. . . .", start="3,0", noise=0.01)
    solution = solve_continuous(problem, 0.95, 4)
    right, down, left = 1, 2, 3
    seen = np.array([[2.0, 0.3], [2.0 - NEAR, 0.3]])
    first, second = solution.actions(seen, np.zeros(2, dtype=int)).tolist()
    assert (first, second) == (down, left)
    assert right not in (first, second)


def test_a_solution_says_what_it_is() -> None:
    solution = solve_continuous(qrmax.make("continuous/line/ab"), 0.95, 4)
    assert repr(solution) == (
        "FineSolution('continuous/line/ab': start value 0.3495, gamma 0.95, 100 points)"
    )


@pytest.mark.parametrize(
    ("noise", "parts"),
    [(0.05, 16), (0.1, 8), (0.2, 4), (0.01, 16), (0.0, 16), (5.0, 2)],
)
def test_where_nothing_is_said_the_grid_is_about_as_fine_as_the_noise(
    noise: float, parts: int
) -> None:
    assert solve_continuous(walk(". . A", noise=noise), 0.9).grid.per_cell[0] == parts


def test_where_the_error_is_large_the_grid_is_cut_finer(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = walk(". * A\n\n. . .", noise=0.3)
    truth = solve_continuous(problem, 0.95, 9).start_value
    first = solve_continuous(problem, 0.95)
    assert (first.grid.per_cell, first.error.relative(truth, 1.0) < 0.05) == ((3, 3), True)
    monkeypatch.setattr("qrmax.planning.fine_grid.GOOD", 0.02)
    finer = solve_continuous(problem, 0.95)
    assert finer.grid.per_cell == (6, 6)
    assert finer.error.value == pytest.approx(abs(finer.start_value - first.start_value))
    assert abs(finer.start_value - truth) < 0.5 * abs(first.start_value - truth)


def test_an_optimum_that_is_not_known_well_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qrmax.planning.fine_grid.AFFORDABLE", 1000)
    problem = qrmax.make("continuous/frozen-lake/abc", noise=0.3)
    with pytest.warns(QRMaxWarning, match=r"is inaccurate: .* larger per_cell than 3"):
        solve_continuous(problem, 0.95)


def test_no_grid_is_cut_finer_than_one_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qrmax.planning.fine_grid.GOOD", -1.0)  # nothing is good enough
    with pytest.warns(QRMaxWarning, match="larger per_cell than 256"):
        assert solve_continuous(walk(". . A", noise=0.0), 0.9).grid.per_cell[0] == 256


def test_a_success_is_never_more_than_certain() -> None:
    for noise in (0.005, 0.01, 0.02):
        for parts in (2, 3, 4, 8):
            line = qrmax.make("continuous/line/ab", noise=noise)
            assert solve_continuous(line, 0.95, parts).success <= 1.0


@pytest.mark.parametrize("per_cell", [0, -1, 1.5, 10**9, "fine", True])
def test_a_grid_that_cannot_be_is_refused(per_cell: Any) -> None:
    with pytest.raises(ParameterError, match="per_cell is"):
        discretise(walk(". A"), per_cell)
    with pytest.raises(ParameterError, match="per_cell is"):
        solve_continuous(walk(". A"), 0.9, per_cell)


def test_a_grid_that_would_take_too_much_memory_is_refused() -> None:
    with pytest.raises(ParameterError, match="Give fewer parts, or less noise"):
        discretise(qrmax.make("continuous/office/map3/exp5", noise=3.0), 64)


@pytest.mark.parametrize("problem", ["continuous/line/ab", qrmax.make("office/map1/exp1")])
def test_what_is_no_continuous_problem_is_refused(problem: Any) -> None:
    with pytest.raises(ParameterError, match="needed: a ContinuousProblem"):
        discretise(problem, 4)
    with pytest.raises(ParameterError, match="needed: a ContinuousProblem"):
        solve_continuous(problem, 0.9)


def test_those_who_solve_it_as_a_plain_problem_are_told_how() -> None:
    with pytest.raises(ParameterError, match=r"is for qrmax\.solve_continuous"):
        qrmax.solve(qrmax.make("continuous/line/ab"))


@pytest.mark.parametrize("gamma", [0.0, 1.0, 2.0])
def test_a_discount_that_cannot_be_is_refused(gamma: float) -> None:
    with pytest.raises(ParameterError, match="gamma is"):
        solve_continuous(walk(". A"), gamma)
