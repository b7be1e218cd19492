"""Worlds with real positions: maps of cells, walked in steps of any length, with noise.

    continuous/office/MAP/TASK      the Office maps and tasks
    continuous/frozen-lake/abc      10 x 10, holes end the episode
    continuous/line/ab              from 0 to 1; moves are right and left
    continuous/corridor/abc         the same in two dimensions
    continuous/bottleneck/abc       the corridor, narrow between A and B

A move goes `step` far in its direction, with Gaussian noise of standard deviation `noise` in both;
walls stop it. The regions of the propositions are cells of the map, which has its own scale: on the
line a cell is 0.05 wide. Observations are positions. Episodes start in the middle of the start
cell, and end on a decoration or in a hole.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import check_count, check_flag, check_range
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import TASKS, AnyTask, find_task, load_task, read_task, task_names
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.plane import LEFT, RIGHT, Plane
from qrmax.source import Source, builtin_names
from qrmax.worlds.grid import DECORATION, MOVES, GridMap, load_map, map_names, parse_map
from qrmax.worlds.office import office_task
from qrmax.worlds.options import Options

PLANES = Path(__file__).parent / "planes"
WORLD = "continuous"
OFFICE = "office"
HOLE = "hole"


class _Scale(NamedTuple):
    """What a world is measured in, and how one moves in it."""

    cell: tuple[float, float]  # width and height of a cell
    step: float
    noise: float


_SCALES = {
    OFFICE: _Scale((1.0, 1.0), step=0.65, noise=0.05),
    "frozen-lake": _Scale((1.0, 1.0), step=0.65, noise=0.05),
    "line": _Scale((0.05, 1.0), step=0.025, noise=0.005),
    "corridor": _Scale((0.025, 0.1), step=0.025, noise=0.005),
    "bottleneck": _Scale((0.025, 0.1), step=0.025, noise=0.005),
}
_TASKS = {"frozen-lake": ["abc"], "line": ["ab"], "corridor": ["abc"], "bottleneck": ["abc"]}


@dataclass(frozen=True, kw_only=True, slots=True)
class ContinuousOptions(Options):
    """The rules of a world with real positions."""

    step: float | None = None  # how far a move goes; None: 0.65, or 0.025 where the world is 1 wide
    noise: float | None = None  # its standard deviation; None: 0.05, or 0.005 likewise
    decoration_penalty: float = 0.0  # what ending on a decoration costs; its sign is ignored
    decorations_terminate: bool = True  # whether it, or a hole, also ends the episode
    max_episode_steps: int | None = 1000  # episodes are truncated here; None: never

    def __post_init__(self) -> None:
        if self.step is not None:
            check_range("step", self.step, above=0.0, at_most=1e6)
        if self.noise is not None:
            check_range("noise", self.noise, at_least=0.0, at_most=1e6)
        check_range("decoration_penalty", self.decoration_penalty, at_least=-1e100, at_most=1e100)
        check_flag("decorations_terminate", self.decorations_terminate)
        if self.max_episode_steps is not None:
            check_count("max_episode_steps", self.max_episode_steps)


def worlds() -> list[str]:
    """What there is under `continuous/`."""
    return list(_SCALES)


def tasks_of(world: str) -> list[str]:
    """The tasks of one of these worlds; the Office worlds have all those of the Office."""
    return _TASKS.get(world, [])


def continuous_names() -> list[str]:
    """The names of the built-in problems with real positions."""
    common = [name for name in task_names() if "/" not in name]
    offices = [f"{WORLD}/{OFFICE}/{name}/{task}" for name in map_names() for task in common]
    others = [f"{WORLD}/{world}/{task}" for world, tasks in _TASKS.items() for task in tasks]
    return others + offices


def plane_names() -> list[str]:
    """The names of the maps that are a world of their own, such as "frozen-lake"."""
    return builtin_names(PLANES, ".txt")


def any_map(name: str | os.PathLike[str]) -> GridMap:
    """The map of any built-in world that has one, such as "map1" or "frozen-lake", or your own.

    >>> any_map("frozen-lake").width
    10
    """
    return _map(_world_of(name), name)


def task_on_map(
    map: str | os.PathLike[str],  # noqa: A002 (people call it a map)
    task: str | os.PathLike[str] | RewardMachine,
) -> tuple[GridMap, RewardMachine]:
    """Any map, and the task of that name on it.

    >>> task_on_map("map4", "exp6")[1].name, task_on_map("corridor", "abc")[1].name
    ('map4/exp6', 'abc')
    """
    world, grid = _world_of(map), any_map(map)
    return grid, task_on(world, grid, task)


def cell_size(name: str | os.PathLike[str]) -> tuple[float, float]:
    """The width and height of a cell on the map of this name, in the units of its world.

    >>> cell_size("corridor"), cell_size("map1")
    ((0.025, 0.1), (1.0, 1.0))
    """
    return _SCALES[_world_of(name)].cell


def _world_of(name: str | os.PathLike[str]) -> str:
    """The world whose map this is."""
    return str(name) if str(name) in plane_names() else OFFICE


def continuous(
    world: str,
    map: str | os.PathLike[str] | GridMap,  # noqa: A002 (people call it a map)
    task: AnyTask,
    options: ContinuousOptions,
) -> ContinuousProblem:
    """The problem of doing a task on a map, walked with real positions."""
    grid = _map(world, map)
    machine = task_on(world, grid, task)
    scale = _SCALES[world]
    step = scale.step if options.step is None else options.step
    noise = scale.noise if options.noise is None else options.noise
    label, labels = grid.label(), grid.labels()
    ends = _cells_of(labels, label, {DECORATION, HOLE})
    cost = np.where(ends, -abs(options.decoration_penalty), 0.0)
    own = world == OFFICE or grid.name != world  # a world has one map, but for the offices
    parts = [
        WORLD,
        world,
        *([grid.name] if own else []),
        machine.name.removeprefix(grid.name + "/"),
    ]
    return ContinuousProblem(
        _plane(grid, scale.cell, step, noise, cost),
        machine,
        labels,
        label,
        terminal=ends if options.decorations_terminate else np.zeros(len(label), dtype=bool),
        start=grid.start_state,
        max_episode_steps=options.max_episode_steps,
        name="/".join(parts),
        world=grid,
    )


def _plane(
    grid: GridMap,
    cell: tuple[float, float],
    step: float,
    noise: float,
    reward: NDArray[np.float64],
) -> Plane:
    """A map as a plane; a map of one row is a line, on which moves are right and left."""
    size = np.array(cell)
    targets = grid.targets()  # a move that is blocked stays
    moves, dimensions = np.array(MOVES, dtype=float), 2
    spread = np.array([noise, noise]) / size
    if grid.height == 1:
        moves, dimensions, spread[1] = moves[[RIGHT, LEFT]], 1, 0.0
    return Plane(
        direction=moves * step / size,
        noise=spread,
        wall=targets == np.arange(grid.n_states)[:, None],
        columns=grid.width,
        reward=reward,
        scale=size[:dimensions],
    )


def _map(world: str, given: str | os.PathLike[str] | GridMap) -> GridMap:
    if isinstance(given, GridMap):
        return given
    if world == OFFICE:
        return load_map(given)
    return parse_map(Source.find(given, "map", PLANES, ".txt"))


def task_on(world: str, grid: GridMap, task: AnyTask) -> RewardMachine:
    """The task of that name on a map of a world: `abc` on a corridor, `map4/exp6` on map4."""
    if world == OFFICE or isinstance(task, RewardMachine):
        return office_task(grid, task)
    if str(task) in task_names():
        return load_task(task)
    return read_task(find_task(task, TASKS / WORLD))


def _cells_of(
    labels: list[frozenset[str]], label: NDArray[np.int32], names: set[str]
) -> NDArray[np.bool_]:
    """Where any of these propositions is true, `[cell]`."""
    true = np.array([bool(names & each) for each in labels])
    return np.asarray(true[label])
