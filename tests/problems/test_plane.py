"""Moving in a plane: one move, many moves, walls, and noise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planes import plane_of, planes
from qrmax.errors import ModelError
from qrmax.problems.plane import (
    DOWN,
    LEFT,
    LONGEST,
    NEAR,
    RIGHT,
    UP,
    Plane,
    cell_of,
    check_plane,
    gaussian,
    move,
    moves,
)

unit = st.floats(0.0, 1.0, exclude_max=True)
normal = st.floats(-6.0, 6.0)


def somewhere(plane: Plane, u: float, v: float) -> tuple[float, float]:
    rows = len(plane.wall) // plane.columns
    return u * plane.columns, v * rows


@given(planes(), st.lists(st.tuples(unit, unit, st.integers(0, 3), normal, normal), min_size=1))
def test_many_moves_are_as_many_single_ones(plane: Plane, walks: list[tuple]) -> None:
    x, y = np.array([somewhere(plane, u, v) for u, v, *_ in walks]).T
    a, g_x, g_y = (np.array(part) for part in list(zip(*walks, strict=True))[2:])
    together = np.stack(moves(plane, x, y, a, g_x, g_y), axis=1)
    apart = [move(plane, *args) for args in zip(x, y, a, g_x, g_y, strict=True)]
    np.testing.assert_array_equal(together, apart)


@given(planes(), st.lists(st.tuples(st.integers(0, 3), normal, normal), max_size=20), unit, unit)
def test_a_walk_stays_in_the_plane_and_knows_its_cell(
    plane: Plane, steps: list[tuple[int, float, float]], u: float, v: float
) -> None:
    x, y = somewhere(plane, u, v)
    for step in steps:
        x, y, cell = move(plane, x, y, *step)
        assert 0.0 <= x < plane.columns
        assert 0.0 <= y < len(plane.wall) // plane.columns
        assert cell == math.floor(y) * plane.columns + math.floor(x) == cell_of(plane, x, y)


def crossed(plane: Plane, here: float, there: float, cell_at: list[int], forth: int) -> bool:
    """Whether a way along a row of cells leads through a wall, looked at from the cells left."""
    first, last = math.floor(here), math.floor(there)
    back = {RIGHT: LEFT, DOWN: UP}[forth]
    if last >= first:
        return any(plane.wall[cell_at[k], forth] for k in range(first, last))
    return any(plane.wall[cell_at[k], back] for k in range(last + 1, first + 1))


@given(planes(), unit, unit, st.integers(0, 3), normal, normal)
def test_no_move_crosses_a_wall_and_only_a_wall_stops_it(
    plane: Plane, u: float, v: float, a: int, g_x: float, g_y: float
) -> None:
    """Checked along the whole way: first the row that the move began in, then the column."""
    x, y = somewhere(plane, u, v)
    x_next, y_next, _ = move(plane, x, y, a, g_x, g_y)
    columns, rows = plane.columns, len(plane.wall) // plane.columns
    row = [math.floor(y) * columns + k for k in range(columns)]
    column = [k * columns + math.floor(x_next) for k in range(rows)]
    way = plane.direction[a] + plane.noise * [g_x, g_y]
    for here, there, far, cells, forth in (
        (x, x_next, x + way[0], row, RIGHT),
        (y, y_next, y + way[1], column, DOWN),
    ):
        assert not crossed(plane, here, there, cells, forth)
        if there != far:  # it was stopped: at the wall, on the side it came from
            cell = cells[math.floor(there)]
            if far > there:
                assert plane.wall[cell, forth]
                assert there == pytest.approx(math.floor(there) + 1.0 - NEAR, abs=1e-12)
            else:
                assert plane.wall[cell, {RIGHT: LEFT, DOWN: UP}[forth]]
                assert there == math.floor(there)


OPEN = np.zeros((3, 4, 2), dtype=bool)
FENCE = np.zeros((3, 4, 2), dtype=bool)
FENCE[1, 1, 0] = True  # to the right of the cell in column 1, row 1


@pytest.mark.parametrize(
    ("walls", "x", "y", "a", "end"),
    [
        (OPEN, 1.5, 1.5, UP, (1.5, 0.85, 1)),
        (OPEN, 1.5, 1.5, RIGHT, (2.15, 1.5, 6)),
        (OPEN, 1.5, 1.5, DOWN, (1.5, 2.15, 9)),
        (OPEN, 1.5, 1.5, LEFT, (0.85, 1.5, 4)),
        (OPEN, 3.5, 1.5, RIGHT, (4.0 - NEAR, 1.5, 7)),
        (OPEN, 0.5, 0.5, UP, (0.5, 0.0, 0)),
        (FENCE, 1.5, 1.5, RIGHT, (2.0 - NEAR, 1.5, 5)),
        (FENCE, 2.5, 1.5, LEFT, (2.0, 1.5, 6)),
        (FENCE, 2.0, 1.5, LEFT, (2.0, 1.5, 6)),  # it stands there already
        (FENCE, 1.5, 0.5, RIGHT, (2.15, 0.5, 2)),  # past the end of the fence
    ],
)
def test_without_noise_a_move_ends_where_it_should(
    walls: np.ndarray, x: float, y: float, a: int, end: tuple[float, float, int]
) -> None:
    assert move(plane_of(walls), x, y, a, 0.0, 0.0) == pytest.approx(end)


def test_a_long_move_crosses_cells_until_a_wall() -> None:
    plane = plane_of(FENCE, step=1e6)
    assert move(plane, 0.2, 1.5, RIGHT, 0.0, 0.0) == (2.0 - NEAR, 1.5, 5)
    assert move(plane, 0.2, 0.5, RIGHT, 0.0, 0.0) == (4.0 - NEAR, 0.5, 3)


def test_noise_goes_along_x_first_and_then_along_y() -> None:
    """So whether the fence is met depends on the row that a move begins in."""
    plane = plane_of(FENCE, step=1.0, noise=1.0)
    assert move(plane, 1.5, 0.5, DOWN, 1.0, 0.0) == (2.5, 1.5, 6)  # over it, then down behind it
    assert move(plane, 1.5, 1.5, UP, 1.0, 0.0) == (2.0 - NEAR, 0.5, 1)  # stopped by it, then up


def test_uniform_numbers_become_independent_normal_ones() -> None:
    u = (np.arange(400) + 0.5) / 400
    g = np.array([gaussian(a, b) for a in u for b in u])
    np.testing.assert_allclose(g.mean(axis=0), 0.0, atol=1e-3)
    np.testing.assert_allclose(g.T @ g / len(g), np.eye(2), atol=5e-3)
    np.testing.assert_allclose((g**3).mean(axis=0), 0.0, atol=1e-3)
    np.testing.assert_allclose((g**4).mean(axis=0), 3.0, atol=0.05)
    np.testing.assert_allclose((g[:, 0] ** 2 * g[:, 1] ** 2).mean(), 1.0, atol=0.02)
    share = (np.abs(g) < 1.0).mean(axis=0)
    np.testing.assert_allclose(share, math.erf(math.sqrt(0.5)), atol=2e-3)


@pytest.mark.parametrize("u", [0.0, 1.0 - 2.0**-53])
@pytest.mark.parametrize("v", [0.0, 1.0 - 2.0**-53])
def test_every_uniform_number_becomes_a_finite_one(u: float, v: float) -> None:
    assert all(abs(g) < 9.0 for g in gaussian(u, v))


@given(planes())
def test_planes_with_walls_all_around_are_planes(plane: Plane) -> None:
    check_plane(plane)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": 5}, "12 cells in 5 columns"),
        ({"columns": 0}, "12 cells in 0 columns"),
        ({"noise": np.array([0.1])}, r"noise is not an array of finite numbers of shape \(2,\)"),
        ({"noise": np.array([0.1, -0.1])}, "noise below 0"),
        ({"direction": np.array([[np.nan, 0.0]])}, "direction is not an array of finite numbers"),
        ({"direction": np.zeros((0, 2))}, "direction is not"),
        ({"reward": np.zeros(3)}, r"reward is not .* shape \(12,\)"),
        ({"scale": np.ones(3)}, "scale is not"),
        ({"scale": np.zeros(2)}, "a scale that is not above 0"),
        ({"scale": np.ones(1)}, "a line has one row"),
        ({"wall": np.zeros((12, 4), dtype=bool)}, "open at the border"),
        ({"wall": np.ones((12, 3), dtype=bool)}, r"wall is not .* shape \(12, 4\)"),
    ],
)
def test_what_is_no_plane_is_refused(change: dict, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        check_plane(plane_of(OPEN)._replace(**change))


def test_a_plane_in_which_numbers_would_be_too_coarse_is_refused() -> None:
    assert LONGEST + 1.0 - NEAR < LONGEST + 1.0
    with pytest.raises(ModelError, match="allowed: 1048576 along a side"):
        check_plane(plane_of(np.zeros((1, LONGEST + 1, 2), dtype=bool)))
