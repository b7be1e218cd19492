"""Worlds with real-valued positions: maps of cells, crossed in steps of any length, with noise.

    continuous/office/MAP/TASK      the Office maps and tasks
    continuous/frozen-lake/abc      10 x 10, holes end the episode
    continuous/line/ab              from 0 to 1; moves are right and left
    continuous/corridor/abc         the same in two dimensions
    continuous/bottleneck/abc       the corridor, narrow between A and B
    continuous/random-office/SEED   maps and tasks drawn from a seed

A move goes `step` far in its direction, plus Gaussian noise of standard deviation `noise` in both
coordinates; walls stop it. The labelling function is constant on each cell of the map, which has
its own scale: on the line a cell is 0.05 wide. Observations are positions, in coordinates that may
be rotated, and with `sensor_noise` inexact. Episodes start in the middle of the start cell, and end
on a decoration or in a hole.

Each world is described in a module of its own; this one has the shared code.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import check_count, check_flag, check_range
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import AnyTask
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.plane import LEFT, RIGHT, Plane
from qrmax.worlds.grid import DECORATION, MOVES, GridMap
from qrmax.worlds.map_folder import MapFolder
from qrmax.worlds.options import Options
from qrmax.worlds.world import World

PLANES = Path(__file__).parent / "planes"
HOLE = "hole"


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """The units of a world, and the length and noise of its moves if no options are given."""

    cell: tuple[float, float] = (1.0, 1.0)  # width and height of a cell
    step: float = 0.65
    noise: float = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class ContinuousOptions(Options):
    """The options of a world with real-valued positions."""

    newer: ClassVar[tuple[str, ...]] = ("rotation", "sensor_noise")

    step: Annotated[float | None, "length of a move"] = None  # None: that of the world's scale
    noise: Annotated[float | None, "standard deviation of the noise of a move"] = None  # likewise
    decoration_penalty: Annotated[
        float, "cost of stepping on a decoration or into a hole; its sign is ignored"
    ] = 0.0
    decorations_terminate: Annotated[bool, "whether that also ends the episode"] = True
    max_episode_steps: Annotated[int | None, "steps after which episodes are truncated"] = 1000
    rotation: Annotated[float, "angle of the axes observed to those of the map, degrees"] = 0.0
    sensor_noise: Annotated[float, "standard deviation of noise on observations"] = 0.0

    def __post_init__(self) -> None:
        if self.step is not None:
            check_range("step", self.step, above=0.0, at_most=1e6)
        if self.noise is not None:
            check_range("noise", self.noise, at_least=0.0, at_most=1e6)
        check_range("decoration_penalty", self.decoration_penalty, at_least=-1e100, at_most=1e100)
        check_flag("decorations_terminate", self.decorations_terminate)
        check_range("rotation", self.rotation, at_least=-360.0, at_most=360.0)
        check_range("sensor_noise", self.sensor_noise, at_least=0.0, at_most=1e6)
        if self.max_episode_steps is not None:
            check_count("max_episode_steps", self.max_episode_steps)


def continuous_world(
    name: str,
    *,
    tasks: dict[str, AnyTask],
    scale: Scale,
    maps: Path = PLANES,
    default_map: str | None = None,
    description: str,
) -> World[ContinuousProblem]:
    """Describe a world with real-valued positions on the maps of a folder."""
    return World(
        name=name,
        make=partial(continuous, scale),
        options=ContinuousOptions,
        tasks=tasks,
        maps=MapFolder(folder=maps, default=default_map, cell=scale.cell),
        continuous=True,
        meaning_of_none={"step": scale.step, "noise": scale.noise},
        description=description,
    )


def continuous(
    scale: Scale, grid: GridMap, task: RewardMachine, options: ContinuousOptions, name: str
) -> ContinuousProblem:
    """Return the problem of a task on a map that is crossed with real-valued positions."""
    step = scale.step if options.step is None else options.step
    noise = scale.noise if options.noise is None else options.noise
    label, labels = grid.label(), grid.labels()
    ends = _cells_of(labels, label, {DECORATION, HOLE})
    cost = np.where(ends, -abs(options.decoration_penalty), 0.0)
    return ContinuousProblem(
        _plane(grid, scale.cell, step, noise, cost),
        task,
        labels,
        label,
        terminal=ends if options.decorations_terminate else np.zeros(len(label), dtype=bool),
        start=grid.start_state,
        max_episode_steps=options.max_episode_steps,
        name=name,
        world=grid,
        rotation=options.rotation,
        sensor_noise=options.sensor_noise,
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
    targets = grid.targets()  # a blocked move stays in its cell
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


def _cells_of(
    labels: list[frozenset[str]], label: NDArray[np.int32], names: set[str]
) -> NDArray[np.bool_]:
    """The cells in which any of these propositions is true, `[cell]`."""
    true = np.array([bool(names & each) for each in labels])
    return np.asarray(true[label])
