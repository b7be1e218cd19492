"""Problems by name: WORLD/TASK, or WORLD/MAP/TASK where a world has several maps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from qrmax.errors import ParameterError, UnknownNameError
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import AnyTask, load_task, task_names
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.problem import Problem
from qrmax.worlds.continuous import (
    OFFICE,
    WORLD,
    ContinuousOptions,
    any_map,
    continuous,
    continuous_names,
    plane_names,
    tasks_of,
    worlds,
)
from qrmax.worlds.frozen_lake import LAKE, FrozenLakeOptions, frozen_lake
from qrmax.worlds.grid import GridMap, map_names
from qrmax.worlds.office import OfficeOptions, office
from qrmax.worlds.options import Options
from qrmax.worlds.river_swim import RiverSwimOptions, river_swim
from qrmax.worlds.warehouse import WarehouseOptions, warehouse


class _World(NamedTuple):
    """A world with one map, and with tasks of its own."""

    options: type[Options]
    tasks: dict[str, str]  # their names here, and among all tasks
    make: Callable[[RewardMachine, Any], Problem]


_WORLDS = {
    "river-swim": _World(
        RiverSwimOptions,
        {name: f"river-swim/{name}" for name in ("patrol", "noisy-patrol")},
        river_swim,
    ),
    "warehouse": _World(WarehouseOptions, {"deliver": "warehouse/deliver"}, warehouse),
    LAKE: _World(
        FrozenLakeOptions, {name: f"continuous/{name}" for name in ("ab", "abc")}, frozen_lake
    ),
}
_OPTIONS: dict[str, type[Options]] = {
    OFFICE: OfficeOptions,
    WORLD: ContinuousOptions,
    **{name: world.options for name, world in _WORLDS.items()},
}


def problem_names() -> list[str]:
    """The names of the paper's problems, each of them an argument of `make`."""
    common = [name for name in task_names() if "/" not in name]
    return [f"office/{name}/{task}" for name in map_names() for task in common]


def benchmark_names() -> list[str]:
    """The names of the problems that others compare learners on."""
    return [f"{world}/{task}" for world, facts in _WORLDS.items() for task in facts.tasks]


def all_names() -> list[str]:
    """The names of all built-in problems, those with real positions included."""
    return problem_names() + benchmark_names() + continuous_names()


def unknown_problem(
    name: str, kind: str = "problem", others: Iterable[str] = ()
) -> UnknownNameError:
    """The error of a name that no problem has, nor any of the `others` that were possible."""
    return UnknownNameError(kind, name, [*others, *all_names()], hint="all names: qrmax list")


def all_propositions() -> set[str]:
    """All that is true somewhere in a built-in world."""
    on_maps = {
        name for grid in (*map_names(), *plane_names()) for name in any_map(grid).propositions
    }
    return on_maps.union(*(label for name in benchmark_names() for label in make(name).labels))


def make(
    name: str | None = None,
    *,
    map: str | os.PathLike[str] | GridMap | None = None,  # noqa: A002 (people call it a map)
    task: AnyTask | None = None,
    **options: Any,
) -> Any:  # a Problem or a ContinuousProblem: the name says which
    """A problem by its name, or from a map and a task of your own.

    >>> make("office/map1/exp5", slip=0.1)
    Problem('office/map1/exp5': 108 states x 9 task states, 4 actions)
    >>> make(map="map2", task="exp1")
    Problem('office/map2/exp1': 144 states x 3 task states, 4 actions)
    >>> make("continuous/line/ab", noise=0.01)
    ContinuousProblem('continuous/line/ab': 20 x 1 cells x 3 task states, 2 actions)
    >>> make("warehouse/deliver", size=4)
    Problem('warehouse/deliver': 16 states x 3 task states, 5 actions)

    `map` and `task` are names of built-in ones, paths of your own files, or the objects themselves.
    The other options are those of `OfficeOptions`: slip=0.2, slips=None, decoration_penalty=0.0,
    decorations_terminate=True, blocked_moves_slip=False, max_episode_steps=1000. Worlds with real
    positions have those of `ContinuousOptions`: step, noise, decoration_penalty,
    decorations_terminate, max_episode_steps; see `river_swim`, `warehouse` and `frozen_lake` for
    those of the other worlds.
    """
    if name is not None and is_continuous(name):
        return _make_continuous(name, map, task, options)
    if _world(name) in _WORLDS:
        return _make_benchmark(str(name), map, task, options)
    return office(*map_and_task(name, map, task), OfficeOptions.of(options))


def kinds_of_options() -> list[type[Options]]:
    """The options of all worlds there are."""
    return [*_OPTIONS.values()]


def worlds_with(option: str) -> list[str]:
    """The worlds that have this option, by what the names of their problems begin with.

    >>> worlds_with("slip")
    ['office', 'warehouse', 'frozen-lake']
    """
    return [world for world, kind in _OPTIONS.items() if option in kind.__slots__]


def options_of(name: str | None) -> type[Options]:
    """The options of the world of this name, or of one made of a map and a task."""
    return _OPTIONS.get(_world(name), OfficeOptions)


def option_names(name: str | None) -> tuple[str, ...]:
    """What the world of this name can be told."""
    return tuple(options_of(name).__slots__)


def is_continuous(name: object) -> bool:
    """Whether a problem of this name has real positions."""
    return _world(name) == WORLD


def is_world(name: object) -> bool:
    """Whether the name of a problem begins with a world there is."""
    return _world(name) in _OPTIONS


def is_office(name: object) -> bool:
    """Whether a problem of this name is an Office world, or has no name but a map and a task."""
    return name is None or _world(name) == OFFICE


def without_task(name: str) -> str:
    """The name of a problem up to the task, to which one of your own can be given.

    >>> without_task("frozen-lake/ab"), without_task("continuous/office/map1/exp5")
    ('frozen-lake', 'continuous/office/map1')
    """
    outer = f"{WORLD}/" if is_continuous(name) else ""
    parts = name.removeprefix(outer).split("/")
    return outer + "/".join(parts[: 2 if parts[0] == OFFICE else 1])


def _check_one_task(name: str, task: object) -> None:
    """Raise a `ParameterError` where a task is both named and given."""
    if task is not None and without_task(name) != name:
        raise ParameterError(
            f"the name {name!r} and task=... contradict; "
            f"with a task of your own the name is {without_task(name)!r}"
        )


def _no_task(name: str, tasks: Iterable[str]) -> ParameterError:
    """The error of a world without a task."""
    names = " or ".join(repr(f"{name.rstrip('/')}/{task}") for task in tasks)
    return ParameterError(f"{name!r} names no task: give the whole name, {names}, or task=...")


def _world(name: object) -> str:
    return name.split("/", maxsplit=1)[0] if isinstance(name, str) else ""


def _make_benchmark(name: str, grid: Any, task: Any, options: dict[str, Any]) -> Problem:
    """The problem `WORLD/TASK`, or `WORLD` with a task of one's own."""
    world, _, named = name.partition("/")
    facts = _WORLDS[world]
    if grid is not None:
        raise ParameterError(f"{world!r} has a map already; leave out map=...")
    _check_one_task(name, task)
    wanted = named or task
    if named and named not in facts.tasks:
        raise unknown_problem(name)
    if not wanted:
        raise _no_task(name, facts.tasks)
    if not isinstance(wanted, RewardMachine):
        wanted = load_task(facts.tasks.get(str(wanted), wanted))
    return facts.make(wanted, facts.options.of(options))


def _make_continuous(name: str, grid: Any, task: Any, options: dict[str, Any]) -> ContinuousProblem:
    """The problem `continuous/office/MAP/TASK` or `continuous/WORLD/TASK`."""
    _, world, named = (*name.split("/", maxsplit=2), "", "")[:3]
    if world not in worlds() or "" in name.split("/"):
        raise unknown_problem(name)
    _check_one_task(name, task)
    if world == OFFICE:
        place, wanted = map_and_task(name, grid, task)
    elif named or task is not None:
        place, wanted = world if grid is None else grid, named or task
    else:
        raise _no_task(name, tasks_of(world))
    return continuous(world, place, wanted, ContinuousOptions.of(options))


def map_and_task(name: str | None, grid: Any, task: Any) -> tuple[Any, Any]:
    """The map and the task that a name and what is given beside it say together."""
    if name is not None:
        named_map, named_task = _parts(name)
        if grid is not None and named_map:
            world = without_task(name).removesuffix(f"/{named_map}")
            raise ParameterError(
                f"the name {name!r} and map=... contradict; "
                f"with a map of your own the name is {world!r}"
            )
        _check_one_task(name, task)
        grid = named_map if grid is None else grid
        task = named_task if task is None else task
    if grid is None or task is None:
        missing = "map" if grid is None else "task"
        what = f"no {missing} is given" if name is None else f"{name!r} names no {missing}"
        whole = "continuous/office/map1/exp5" if is_continuous(name) else "office/map1/exp5"
        raise ParameterError(f"{what}: give the whole name, such as {whole!r}, or {missing}=...")
    return grid, task


def _parts(name: str) -> tuple[str | None, str | None]:
    """The map and the task in `office/MAP/TASK`, `office/MAP` or `office`, continuous or not."""
    plain = name.removeprefix(f"{WORLD}/") if isinstance(name, str) else ""
    world, *parts = plain.split("/", maxsplit=2)
    if world != "office" or "" in parts:
        raise unknown_problem(str(name), "world")
    return (*parts, None, None)[0], (*parts, None, None)[1]
