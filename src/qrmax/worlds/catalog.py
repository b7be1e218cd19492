"""Problems by name: WORLD/TASK, WORLD/MAP/TASK if a world has several maps, or WORLD/SEED."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar, overload

from qrmax.errors import ParameterError, UnknownNameError
from qrmax.machines.task_files import AnyTask
from qrmax.plugins import is_reference
from qrmax.problems.continuous_problem import ContinuousProblem, check_continuous
from qrmax.problems.problem import Problem
from qrmax.worlds.continuous_names import ContinuousName
from qrmax.worlds.map_folder import AnyMap
from qrmax.worlds.options import Options
from qrmax.worlds.world import AnyProblem, World
from qrmax.worlds.world_registry import DEFAULT, find_world, world_names, worlds

Made = TypeVar("Made", bound=AnyProblem)


@overload
def make(
    name: World[Made], *, map: AnyMap | None = None, task: AnyTask | None = None, **options: Any
) -> Made: ...
@overload
def make(
    name: ContinuousName,
    *,
    map: AnyMap | None = None,
    task: AnyTask | None = None,
    **options: Any,
) -> ContinuousProblem: ...
@overload
def make(
    name: str | None = None,
    *,
    map: AnyMap | None = None,
    task: AnyTask | None = None,
    **options: Any,
) -> Problem: ...
def make(
    name: str | World[AnyProblem] | None = None,
    *,
    map: AnyMap | None = None,  # noqa: A002 (people call it a map)
    task: AnyTask | None = None,
    **options: Any,
) -> AnyProblem:
    """Make a problem by its name, or from a map and a task of your own.

    >>> make("office/map1/exp5", slip=0.1)
    Problem('office/map1/exp5': 108 states x 9 task states, 4 actions)
    >>> make(map="map2", task="exp1")
    Problem('office/map2/exp1': 144 states x 3 task states, 4 actions)
    >>> make("continuous/line/ab", noise=0.01)
    ContinuousProblem('continuous/line/ab': 20 x 1 cells x 3 task states, 2 actions)
    >>> make("warehouse/deliver", size=4)
    Problem('warehouse/deliver': 16 states x 3 task states, 5 actions)
    >>> make("random-office/17").name  # drawn from the seed 17, task included
    'random-office/17'

    Args:
        name: the name of a problem (`qrmax list worlds` shows them), or a `World`. A world that is
            not registered is named by its module, as in "my_module:POND/fetch". If None, an Office
            world is made from a map and a task.
        map: if the name has none, a map by its name, the path of your own file, or a `GridMap`; for
            a generator of problems, the seed.
        task: if the name has none, a task by its name, the path of your own file, a formula, or a
            `RewardMachine`.
        options: options of the world, such as slip=0.1; `qrmax list worlds` shows the defaults.

    To a type checker, a name that is written out is a `ContinuousProblem` if it is one of a
    built-in continuous world, and any other is a `Problem`. `make_continuous` is for continuous
    problems whose name is computed.
    """
    if isinstance(name, World):
        parts = _complete(ParsedName(name, None, None), name.name, map, task)
    else:
        parts = problem_parts(name, map, task)
    return parts.world.problem(map=parts.map, task=parts.task, **options)


def make_continuous(
    name: str,
    *,
    map: AnyMap | None = None,  # noqa: A002 (people call it a map)
    task: AnyTask | None = None,
    **options: Any,
) -> ContinuousProblem:
    """Make a problem with real-valued positions, as `make` does; any other raises an error.

    >>> make_continuous("continuous/line/ab")
    ContinuousProblem('continuous/line/ab': 20 x 1 cells x 3 task states, 2 actions)

    Args:
        name: the name of a continuous problem or world.
        map: if the name has none, a map by its name, the path of your own file, or a `GridMap`.
        task: if the name has none, a task by its name, the path of your own file, a formula, or a
            `RewardMachine`.
        options: options of the world, such as noise=0.01.
    """
    problem: AnyProblem = make(name, map=map, task=task, **options)
    check_continuous(problem)
    assert isinstance(problem, ContinuousProblem)  # any other problem has raised an error
    return problem


def all_names() -> list[str]:
    """Return the names of all problems."""
    return [name for world in worlds() for name in world.problem_names()]


def unknown_problem(
    name: str, kind: str = "problem", others: Iterable[str] = ()
) -> UnknownNameError:
    """Return the error of an unknown name; `others` are further names to suggest."""
    return UnknownNameError(kind, name, [*others, *all_names()], hint="all names: qrmax list")


def all_propositions() -> set[str]:
    """Return the propositions of all worlds but generators, which have others for each seed."""
    return {name for world in worlds() if not world.seeds for name in _propositions(world)}


def kinds_of_options() -> list[type[Options]]:
    """Return the dataclasses of the options of all worlds, each once."""
    return [*dict.fromkeys(world.options for world in worlds())]


def worlds_with(option: str) -> list[str]:
    """Return the names of the worlds that have this option.

    >>> worlds_with("slip")
    ['office', 'warehouse', 'frozen-lake', 'random-office']
    """
    return [world.name for world in worlds() if option in world.options.names()]


def options_of(name: str | None) -> type[Options]:
    """Return the options of the world of this problem, or of one made of a map and a task."""
    parsed = parse_name(name)
    return (find_world(DEFAULT) if parsed is None else parsed.world).options


def option_names(name: str | None) -> tuple[str, ...]:
    """Return the names of the options of the world of this problem."""
    return options_of(name).names()


def is_continuous(name: object) -> bool:
    """Whether a problem of this name has real-valued positions."""
    parsed = parse_name(name)
    return parsed is not None and parsed.world.continuous


def is_world(name: object) -> bool:
    """Whether the name of a problem begins with that of a world."""
    return parse_name(name) is not None


def is_default_world(name: object) -> bool:
    """Whether this is a problem of the world that a map and a task without a name belong to."""
    parsed = parse_name(name)
    return name is None or (parsed is not None and parsed.world.name == DEFAULT)


def without_task(name: str) -> str:
    """Return the name of a problem without its task, for use with a task of your own.

    >>> without_task("frozen-lake/ab"), without_task("continuous/office/map1/exp5")
    ('frozen-lake', 'continuous/office/map1')
    """
    parsed = parse_name(name)
    if parsed is None or parsed.task is None:
        return name
    return name.removesuffix(f"/{parsed.task}")


class ParsedName(NamedTuple):
    """The parts of the name of a problem."""

    world: World[AnyProblem]
    map: str | None  # or a seed
    task: str | None


class ProblemParts(NamedTuple):
    """The parts of a problem, without the options."""

    world: World[AnyProblem]
    map: AnyMap | None  # or a seed
    task: AnyTask | None  # None: that of the seed


def parse_name(name: object) -> ParsedName | None:
    """Split the name of a problem into its parts; None if it begins with no world.

    >>> parse_name("office/map1/toro-icarte/t1")
    ParsedName(world=World('office': 35 problems), map='map1', task='toro-icarte/t1')
    """
    if not isinstance(name, str):
        return None
    first = name.partition("/")[0]
    known = [first] if is_reference(first) else world_names()
    fitting = [each for each in known if f"{name}/".startswith(f"{each}/")]
    if not fitting:
        return None
    world_name = max(fitting, key=len)
    world, rest = find_world(world_name), name.removeprefix(world_name).removeprefix("/")
    place, _, task = rest.partition("/") if world.names_place else ("", "", rest)
    return ParsedName(world, place or None, task or None)


def problem_parts(
    name: str | None,
    map: AnyMap | None,  # noqa: A002 (people call it a map)
    task: AnyTask | None,
) -> ProblemParts:
    """Return the world, the map and the task given by a name and the other arguments."""
    if name is None:
        return _complete(ParsedName(find_world(DEFAULT), None, None), None, map, task)
    parsed = parse_name(name)
    if parsed is None:
        known = str(name).partition("/")[0] in {each.partition("/")[0] for each in world_names()}
        raise unknown_problem(str(name), "problem" if known else "world")
    if "" in name.split("/"):
        raise unknown_problem(name)
    if parsed.task is not None and not parsed.world.knows_task(parsed.task):
        given, own = without_task(name), parsed.world
        raise unknown_problem(
            name, others=[f"{given}{each.removeprefix(own.name)}" for each in own.problem_names()]
        )
    return _complete(parsed, name, map, task)


def _complete(
    parsed: ParsedName, name: str | None, given_map: AnyMap | None, given_task: AnyTask | None
) -> ProblemParts:
    """Combine the parts of a name with the map and task given, which must not conflict."""
    for named, given, what in ((parsed.map, given_map, "map"), (parsed.task, given_task, "task")):
        if named is not None and given is not None:
            rest = parsed.world.name if what == "map" else without_task(str(name))
            raise ParameterError(
                f"the name {name!r} and {what}=... contradict; "
                f"with a {what} of your own the name is {rest!r}"
            )
    grid = parsed.map if given_map is None else given_map
    task = parsed.task if given_task is None else given_task
    parsed.world.check_map(given_map)
    if grid is None and parsed.world.names_place:
        raise _missing("seed" if parsed.world.seeds else "map", parsed, name)
    if task is None and not parsed.world.seeds:
        raise _missing("task", parsed, name)
    return ProblemParts(parsed.world, grid, task)


def _missing(what: str, parsed: ParsedName, name: str | None) -> ParameterError:
    """The error of a problem without a map, a seed or a task."""
    said = f"no {what} is given" if name is None else f"{name!r} names no {what}"
    names = parsed.world.problem_names()
    fitting = [each for each in names if each.startswith(f"{name}/")] or names
    whole = f"such as {fitting[0]!r}" if parsed.world.names_place and names else ""
    whole = whole or " or ".join(map(repr, names))
    give = f"give the whole name, {whole}, or" if whole else "give"
    return ParameterError(f"{said}: {give} {'map' if what == 'seed' else what}=...")


def _propositions(world: World[AnyProblem]) -> Iterable[str]:
    """The propositions of a world, from its maps or its first problem."""
    if world.maps is not None:
        return {name for each in world.maps.names() for name in world.maps.load(each).propositions}
    made = [make(name) for name in world.problem_names()[:1]]
    return {name for problem in made for label in problem.labels for name in label}
