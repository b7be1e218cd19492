"""Planes and small continuous problems for the tests of what moves in them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from gym_worlds import in_order
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.plane import DOWN, LEFT, RIGHT, UP, Plane
from qrmax.source import Source
from qrmax.worlds.continuous_office import WORLD as OFFICE
from qrmax.worlds.grid import parse_map


@st.composite
def planes(draw: st.DrawFn, steps: tuple[float, ...] = (0.3, 0.65, 1.0, 2.5)) -> Plane:
    """A plane with walls anywhere, and noise up to several cells."""
    columns, rows = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    walls = rng.random((rows, columns, 2)) < draw(st.sampled_from([0.0, 0.3, 0.7]))
    noise = draw(st.sampled_from([0.0, 0.05, 0.4, 3.0]))
    return plane_of(walls, step=draw(st.sampled_from(steps)), noise=noise)


def plane_of(walls: np.ndarray, *, step: float = 0.65, noise: float = 0.0) -> Plane:
    """A plane with walls to the right of and below these cells, `[y, x, (right, below)]`."""
    rows, columns, _ = walls.shape
    wall = np.ones((rows, columns, 4), dtype=bool)
    wall[:, :-1, RIGHT] = wall[:, 1:, LEFT] = walls[:, :-1, 0]
    wall[:-1, :, DOWN] = wall[1:, :, UP] = walls[:-1, :, 1]
    return Plane(
        direction=np.array([[0.0, -step], [step, 0.0], [0.0, step], [-step, 0.0]]),
        noise=np.array([noise, noise]),
        wall=wall.reshape(-1, 4),
        columns=columns,
        reward=np.zeros(rows * columns),
        scale=np.ones(2),
    )


def walk(picture: str, task: Any = None, start: str = "0,0", **options: Any) -> ContinuousProblem:
    """A small office, drawn in place; the task is to go to A, if no other is given."""
    header = f"start: {start}\ntiles: H=hole\n\n"
    grid = parse_map(Source("small.txt", header + picture))
    machine = in_order("A") if task is None else task
    return OFFICE.problem(map=grid, task=machine, **options)
