"""Descriptions of worlds, from which all their names are derived.

A world is a family of MDPs with a labelling function; with a task, a reward machine, it becomes a
problem. Names of problems, the options on the command line, `qrmax list` and the Gymnasium ids are
all derived from its `World`.

    name         of a problem                      Gymnasium id
    river-swim   river-swim/patrol                 qrmax/RiverSwim-patrol-v0
    office       office/map1/exp5                  qrmax/Office-map1-exp5-v0
    random-mdp   random-mdp/17                     qrmax/RandomMdp-17-v0

The problems of a world with `seeds`, such as the last, are drawn from a seed, task included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from qrmax.errors import MOST, ParameterError, shown
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import AnyTask, load_task, task_names
from qrmax.outside_errors import refused_call
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.problem import Problem
from qrmax.worlds.grid import GridMap
from qrmax.worlds.map_folder import AnyMap, MapFolder
from qrmax.worlds.options import NoOptions, Option, Options, declared_options
from qrmax.worlds.world_source import source_of

AnyProblem = Problem | ContinuousProblem
"""A problem of any world."""

Made = TypeVar("Made", bound=AnyProblem, covariant=True)

_NAME = re.compile(r"[A-Za-z0-9][\w-]*(/[A-Za-z0-9][\w-]*)*")


@dataclass(frozen=True, kw_only=True, eq=False)
class World(Generic[Made]):
    """The description of a world.

    Args:
        name: the first part of the names of its problems, such as "river-swim".
        make: a function of the task (a `RewardMachine`), the options and the name of the problem,
            and before these, in a world with maps, of the map (a `GridMap`), in one with seeds of
            the seed (the task is then None unless the user gives one); returns a problem.
        options: the dataclass of its options; see `qrmax.Options`.
        tasks: its own tasks by name: a formula, the path of a file, the name of a built-in task, or
            a `RewardMachine`. One named MAP/TASK replaces TASK on that map.
        maps: its maps, if any, as a `MapFolder`.
        seeds: for a generator of problems, the seeds whose problems are listed. Names are
            WORLD/SEED, with any whole number from 0 on as a seed.
        continuous: whether it makes a `ContinuousProblem`.
        meaning_of_none: the effective value of options whose default is None, for the help.
        env_id: the Gymnasium id without task and version; "qrmax/RiverSwim" for "river-swim".
        version: the version in the Gymnasium id (0 if None): raise it when the dynamics change. In
            a study, runs in a world from outside the library are run again when it changes, or,
            without a version, when the source of its module does.
        description: one line about it; if empty, the first line of the docstring of `make`.

    >>> from qrmax.worlds.catalog import find_world
    >>> river = find_world("river-swim")
    >>> river
    World('river-swim': 2 problems)
    >>> river.problem_names()
    ['river-swim/patrol', 'river-swim/noisy-patrol']
    >>> river.problem(task="patrol", size=4)
    Problem('river-swim/patrol': 8 states x 2 task states, 2 actions)
    """

    name: str
    make: Callable[..., Made]
    options: type[Options] = NoOptions
    tasks: Mapping[str, AnyTask] = field(default_factory=dict)
    maps: MapFolder | None = None
    seeds: Sequence[int] = ()
    continuous: bool = False
    meaning_of_none: Mapping[str, object] = field(default_factory=dict)
    env_id: str = ""
    version: int | None = None
    description: str = ""

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and _NAME.fullmatch(self.name)):
            raise ParameterError(
                f"name of a world is {shown(self.name)}; allowed: letters, digits, '-' and '_', "
                "such as 'river-swim'"
            )
        if not callable(self.make):
            raise ParameterError(
                f"world {self.name!r}: make is {shown(self.make)}; needed: a function of the task, "
                "the options and the name that returns a problem"
            )
        if self.maps is not None and self.seeds:
            raise ParameterError(f"world {self.name!r} has maps and seeds; allowed: one of them")
        place = ("map",) if self.maps is not None else ("seed",) if self.seeds else ()
        if refused := refused_call(self.make, *place, "task", "options", "name"):
            raise ParameterError(f"world {self.name!r}: {refused}")
        _ = self.source  # hashed now, as the file may be edited later
        try:
            _ = self.declared
        except (ParameterError, NameError) as error:  # NameError: an undefined type
            raise ParameterError(f"world {self.name!r}: {error}") from error

    @cached_property
    def source(self) -> dict[str, str] | None:
        """The origin of a world from outside the library; None for a built-in world."""
        return source_of(self.make, self.version)

    @cached_property
    def declared(self) -> tuple[Option, ...]:
        """The options, as their dataclass declares them."""
        return declared_options(self.options)

    @property
    def defaults(self) -> dict[str, Any]:
        """The options with their default values in this world."""
        return {
            option.name: self.meaning_of_none.get(option.name)
            if option.default is None
            else option.default
            for option in self.declared
        }

    @property
    def summary(self) -> str:
        """One line about the world."""
        return self.description or (self.make.__doc__ or "").strip().partition("\n")[0]

    @property
    def chooses_map(self) -> bool:
        """Whether names of problems include the map, WORLD/MAP/TASK."""
        return self.maps is not None and self.maps.default is None

    @property
    def names_place(self) -> bool:
        """Whether names of problems include a map or a seed, after that of the world."""
        return self.chooses_map or bool(self.seeds)

    @property
    def pattern(self) -> str:
        """The form of the names of its problems."""
        if self.seeds:
            return f"{self.name}/SEED"
        return f"{self.name}/MAP/TASK" if self.chooses_map else f"{self.name}/TASK"

    def problem_names(self) -> list[str]:
        """Return the names of its problems, each of them an argument of `make`."""
        if self.seeds:
            return [f"{self.name}/{seed}" for seed in self.seeds]
        tasks = [task for task in self.tasks if "/" not in task]
        places = self.maps.names() if self.maps and self.chooses_map else [""]
        parts = [(self.name, place, task) for place in places for task in tasks]
        return ["/".join(filter(None, each)) for each in parts]

    def knows_task(self, task: str) -> bool:
        """Whether a task may be part of the name of a problem; any may after a map or a seed."""
        return self.names_place or task in self.tasks or self._of_family(task) in task_names()

    def check_map(self, given: AnyMap | None) -> None:
        """Raise a `ParameterError` if a map is given to a world without a choice of maps."""
        if given is not None and self.maps is None and not self.seeds:
            raise ParameterError(f"{self.name!r} has a map already; leave out map=...")

    def task(self, task: AnyTask, grid: GridMap | None = None) -> RewardMachine:
        """Return a task: one of the world's own by its name, or any other; see `load_task`."""
        if isinstance(task, RewardMachine):
            return task
        names = [str(task), self._of_family(str(task))]
        if grid is not None:
            names.insert(0, f"{grid.name}/{task}")
        for name in names:
            if name in self.tasks:
                return self._own_task(name)
            if name != str(task) and name in task_names():
                return load_task(name)
        return load_task(task)

    def problem(
        self,
        *,
        map: AnyMap | None = None,  # noqa: A002 (people call it a map)
        task: AnyTask | None = None,
        **options: Any,
    ) -> Made:
        """Return a problem of this world.

        Args:
            map: a map of the world by its name, a file by its path, or a `GridMap`; in a world
                with seeds the seed; in any other None.
            task: a task by its name, a formula, a file by its path, or a `RewardMachine`. In a
                world with seeds it may be left out.
            options: values of the world's options.
        """
        read = self.options.of(options)
        if self.seeds:
            seed = as_seed(map, self.name)
            own = None if task is None else self.task(task)
            made = self.make(seed, own, read, self._drawn_name(seed, own))
        else:
            grid = self._grid(map)
            machine = self._needed_task(task, grid)
            place = () if grid is None else (grid,)
            made = self.make(*place, machine, read, self._name(grid, machine))
        wanted = ContinuousProblem if self.continuous else Problem
        if not isinstance(made, wanted):
            raise ParameterError(
                f"world {self.name!r}: make returned {shown(made)}; needed: a {wanted.__name__}"
            )
        return made

    def gymnasium_id(self, problem: str = "") -> str:
        """Return the Gymnasium id of one of its problems, or that of any map and task.

        >>> from qrmax.worlds.catalog import find_world
        >>> find_world("office").gymnasium_id("office/map1/exp5")
        'qrmax/Office-map1-exp5-v0'
        """
        words = "".join(word.capitalize() for word in re.split("[-/_]", self.name))
        parts = problem.removeprefix(self.name).split("/")
        first, version = self.env_id or f"qrmax/{words}", f"v{self.version or 0}"
        return "-".join(filter(None, (first, *parts, version)))

    def __repr__(self) -> str:
        return f"World({self.name!r}: {len(self.problem_names())} problems)"

    def _of_family(self, task: str) -> str:
        """The name of a built-in task for worlds of this kind, such as continuous/ab."""
        return f"{self.name.partition('/')[0]}/{task}"

    def _own_task(self, name: str) -> RewardMachine:
        given = self.tasks[name]
        if isinstance(given, RewardMachine):
            return given
        machine = load_task(given)
        if not isinstance(given, str) or given not in task_names():
            machine.name = name  # the name in this world replaces that of a formula or file
        return machine

    def _needed_task(self, task: AnyTask | None, grid: GridMap | None) -> RewardMachine:
        if task is None:
            raise ParameterError(f"no task is given; {self.name!r} has: {', '.join(self.tasks)}")
        return self.task(task, grid)

    def _drawn_name(self, seed: int, task: RewardMachine | None) -> str:
        return f"{self.name}/{seed}" + ("" if task is None else f"/{task.name}")

    def _grid(self, given: AnyMap | None) -> GridMap | None:
        self.check_map(given)
        if self.maps is None:
            return None
        wanted = self.maps.default if given is None else given
        if wanted is None:
            known = ", ".join(self.maps.names())
            raise ParameterError(f"no map is given; {self.name!r} has: {known}")
        return self.maps.load(wanted)

    def _name(self, grid: GridMap | None, machine: RewardMachine) -> str:
        task = machine.name.removeprefix(f"{self.name}/")
        if grid is None or self.maps is None or grid.name == self.maps.default:
            return f"{self.name}/{task}"
        return f"{self.name}/{grid.name}/{task.removeprefix(f'{grid.name}/')}"


def as_seed(given: object, world: str) -> int:
    """Return the seed in the name of a problem; a `ParameterError` unless it is a whole number.

    >>> as_seed("17", "random-mdp")
    17
    """
    text = str(given)
    if not (text.isascii() and text.isdecimal() and text == str(int(text))) or int(text) > MOST:
        said = f"{world!r} names no seed" if given is None else f"seed is {shown(given)}"
        raise ParameterError(f"{said}; allowed: whole numbers from 0 to {MOST}, as in '{world}/17'")
    return int(text)
