"""The maps of all worlds by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from qrmax.errors import ParameterError
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import TaskSource
from qrmax.worlds.catalog import make, parse_name
from qrmax.worlds.grid import GridMap
from qrmax.worlds.map_folder import MapFolder
from qrmax.worlds.world import AnyProblem, World
from qrmax.worlds.world_registry import DEFAULT, find_world, worlds


def other_map_names() -> list[str]:
    """Return the names of the maps of worlds other than the Office, such as "frozen-lake"."""
    folders = [world.maps for world in worlds() if world.maps is not None]
    names = {name for folder in folders for name in folder.names()}
    return sorted(names - {*_maps(find_world(DEFAULT)).names()})


def any_map(name: str | os.PathLike[str]) -> GridMap:
    """Return the map of any world by its name, such as "map1" or "frozen-lake", or your own file.

    The name of a problem will do, too, and is that of its map.

    >>> any_map("frozen-lake").width, any_map("random-office/3").name
    (10, 'random-office-3')
    """
    if _names_problem(name):
        made: Any = make(str(name))
        if not isinstance(made.world, GridMap):
            raise ParameterError(f"{made.name!r} has no map to show")
        return made.world
    return _maps(_world_of(name)).load(name)


def task_on_map(
    map: str | os.PathLike[str],  # noqa: A002 (people call it a map)
    task: TaskSource | RewardMachine,
) -> tuple[GridMap, RewardMachine]:
    """Return any map, and the task of that name on it.

    >>> task_on_map("map4", "exp6")[1].name, task_on_map("corridor", "abc")[1].name
    ('map4/exp6', 'abc')
    """
    grid = any_map(map)
    return grid, _world_of(map).task(task, grid)


def cell_size(name: str | os.PathLike[str]) -> tuple[float, float]:
    """Return the width and height of a cell on the map of this name, in the units of its world.

    >>> cell_size("corridor"), cell_size("map1")
    ((0.025, 0.1), (1.0, 1.0))
    """
    return _maps(_world_of(name)).cell


def _world_of(name: str | os.PathLike[str]) -> World[AnyProblem]:
    """The world whose map this is; a file belongs to the Office."""
    owners = [world for world in worlds() if world.maps and str(name) in world.maps.names()]
    return owners[0] if owners else find_world(DEFAULT)


def _names_problem(name: str | os.PathLike[str]) -> bool:
    """Whether this is the whole name of a problem, and not that of a map or a file."""
    parsed = None if Path(name).exists() else parse_name(name)
    return parsed is not None and (parsed.task is not None or bool(parsed.world.seeds))


def _maps(world: World[AnyProblem]) -> MapFolder:
    assert world.maps is not None
    return world.maps
