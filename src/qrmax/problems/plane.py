"""Dynamics in a plane of cells: real-valued positions, walls, and noise.

Positions are measured in cells: (x, y) lies in column floor(x) and row floor(y). A move adds the
direction of its action and noise,

    (x', y') = (x, y) + direction[a] + noise * (g_x, g_y)        g normal, independent

first along x, then along y; a wall on the way stops that part of it. The label, the reward and
the end of the episode depend on the cell that a move ends in, not on those it has crossed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import ModelError
from qrmax.problems.mdp import MOST_REWARD

FloatArray = NDArray[np.float64]

UP, RIGHT, DOWN, LEFT = range(4)
NEAR = 1e-9  # how close to a wall, in cells, a move can end: a cell ends before its right border
LONGEST = 2**20  # cells along a side: farther from 0, numbers are too coarse for NEAR


class Plane(NamedTuple):
    """The dynamics of a continuous world, as arrays."""

    direction: FloatArray  # [a, 2], in cells
    noise: FloatArray  # [2], in cells
    wall: NDArray[np.bool_]  # [cell, 4]: whether it cannot be left up, right, down, left
    columns: int
    reward: FloatArray  # [cell]: the reward of the world for arriving there
    scale: FloatArray  # [d]: an observation is the position in other units, d numbers of it


def check_plane(plane: Plane) -> None:
    """Raise a `ModelError` unless these arrays are a plane that no move can leave."""
    n_cells, columns = len(plane.wall), plane.columns
    shapes = {
        "direction": (len(plane.direction), 2),
        "noise": (2,),
        "wall": (n_cells, 4),
        "reward": (n_cells,),
        "scale": (min(len(plane.scale), 2),),
    }
    for name, shape in shapes.items():
        array = getattr(plane, name)
        if array.shape != shape or 0 in shape or not np.isfinite(array).all():
            raise ModelError(f"{name} is not an array of finite numbers of shape {shape}")
    if (np.abs(plane.reward) >= MOST_REWARD).any():
        raise ModelError(f"a reward is beyond {MOST_REWARD:g}: rewards would add up to infinity")
    if not 1 <= columns <= n_cells or n_cells % columns:
        raise ModelError(f"{n_cells} cells in {columns} columns do not form a plane")
    rows = n_cells // columns
    if max(columns, rows) > LONGEST:
        raise ModelError(f"a plane of {columns} x {rows} cells; allowed: {LONGEST} along a side")
    if (plane.noise < 0.0).any() or (plane.scale <= 0.0).any():
        raise ModelError("noise below 0, or a scale that is not above 0")
    across = (*plane.direction[:, 1].tolist(), float(plane.noise[1]), rows - 1)
    if len(plane.scale) == 1 and any(across):
        raise ModelError("a line has one row, and neither moves nor noise across it")
    wall = plane.wall.reshape(rows, columns, 4)
    border = (wall[0, :, UP], wall[:, -1, RIGHT], wall[-1, :, DOWN], wall[:, 0, LEFT])
    if not all(side.all() for side in border):
        raise ModelError("wall is open at the border of the plane; needed: walls all around it")


def gaussian(u: float, v: float) -> tuple[float, float]:
    """Two independent normal variates from two uniform ones in [0, 1) (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - u))
    angle = 2.0 * math.pi * v
    return radius * math.cos(angle), radius * math.sin(angle)


def move(
    plane: Plane, x: float, y: float, a: int, g_x: float, g_y: float
) -> tuple[float, float, int]:
    """Return the end of a move, and its cell."""
    direction, noise = plane.direction[a], plane.noise
    cell = cell_of(plane, x, y)
    x, cell = _along(plane, x, float(direction[0] + noise[0] * g_x), cell, axis=0)
    y, cell = _along(plane, y, float(direction[1] + noise[1] * g_y), cell, axis=1)
    return x, y, cell


def cell_of(plane: Plane, x: float, y: float) -> int:
    """The cell of a position."""
    return math.floor(y) * plane.columns + math.floor(x)


def _along(plane: Plane, here: float, way: float, cell: int, axis: int) -> tuple[float, int]:
    """Go along one axis, up to a wall."""
    forth, back = (RIGHT, LEFT) if axis == 0 else (DOWN, UP)
    stride = 1 if axis == 0 else plane.columns
    place, target = math.floor(here), here + way
    while target >= place + 1.0:
        if plane.wall[cell, forth]:
            return place + 1.0 - NEAR, cell
        place, cell = place + 1, cell + stride
    while target < place:
        if plane.wall[cell, back]:
            return float(place), cell
        place, cell = place - 1, cell - stride
    return target, cell


def moves(
    plane: Plane,
    x: FloatArray,
    y: FloatArray,
    a: NDArray[np.integer],
    g_x: FloatArray,
    g_y: FloatArray,
) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
    """Many moves at once: `move`, vectorised."""
    direction, noise = plane.direction[a], plane.noise
    cell = np.floor(y).astype(np.int64) * plane.columns + np.floor(x).astype(np.int64)
    x, cell = _all_along(plane, x, direction[:, 0] + noise[0] * g_x, cell, axis=0)
    y, cell = _all_along(plane, y, direction[:, 1] + noise[1] * g_y, cell, axis=1)
    return x, y, cell


def _all_along(
    plane: Plane, here: FloatArray, way: FloatArray, cell: NDArray[np.int64], axis: int
) -> tuple[FloatArray, NDArray[np.int64]]:
    forth, back = (RIGHT, LEFT) if axis == 0 else (DOWN, UP)
    stride = 1 if axis == 0 else plane.columns
    place, target, cell = np.floor(here), here + way, cell.copy()
    while True:
        crosses = np.where(target >= place + 1.0, 1, np.where(target < place, -1, 0))
        if not crosses.any():
            return target, cell
        stopped = (crosses != 0) & plane.wall[cell, np.where(crosses > 0, forth, back)]
        target = np.where(stopped, np.where(crosses > 0, place + 1.0 - NEAR, place), target)
        crosses = np.where(stopped, 0, crosses)
        place, cell = place + crosses, cell + crosses * stride
