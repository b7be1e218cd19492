"""`qrmax list`: the names of worlds, maps, tasks, agents and studies.

On a terminal `qrmax list` is an overview that fits a screen; into a pipe it is everything, a line
for each name, as `qrmax list KIND` is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from qrmax.cli.output import (
    as_json,
    examples,
    print_facts,
    print_json,
    print_table,
    terminal_width,
    with_bold,
    wrapped,
)
from qrmax.errors import QRMaxError

if TYPE_CHECKING:
    from qrmax.worlds.world import AnyProblem, World

UNLOADABLE, SEE_DOCTOR = "cannot be loaded", "see `qrmax doctor`"  # of broken entry points
KINDS = ("worlds", "maps", "tasks", "agents", "studies")


@click.command(
    name="list",
    epilog=examples("qrmax list", "qrmax list agents", "qrmax list tasks --json"),
)
@click.argument("kind", required=False, type=click.Choice(KINDS))
@as_json
def list_names(kind: str | None, as_json: bool) -> None:
    """List the worlds, maps, tasks, agents and studies, or one kind of them in full.

    On a terminal, `qrmax list` alone shows names only; into a pipe or a file, all kinds in full.
    """
    if as_json:
        _list_as_json(KINDS if kind is None else (kind,))
    elif kind is None and terminal_width() is not None:
        _overview()
    else:
        _list_in_full(KINDS if kind is None else (kind,))


def _list_as_json(kinds: tuple[str, ...]) -> None:
    from qrmax.agents.registry import agent_names
    from qrmax.machines.task_files import task_names
    from qrmax.studies.library import study_names
    from qrmax.worlds.catalog import all_names
    from qrmax.worlds.grid import map_names
    from qrmax.worlds.map_catalog import other_map_names

    names = {
        "worlds": {"worlds": all_names()},
        "maps": {"maps": map_names(), "other_maps": other_map_names()},
        "tasks": {"tasks": task_names()},
        "agents": {"agents": agent_names()},
        "studies": {"studies": study_names()},
    }
    print_json({key: value for each in kinds for key, value in names[each].items()})


def _by_folder(names: Sequence[str]) -> Iterator[str]:
    """Names with those in a folder together.

    >>> list(_by_folder(["paper/table1", "paper/table4", "smoke", "river/ab"]))
    ['smoke', 'paper/{table1, table4}', 'river/ab']
    """
    folders: dict[str, list[str]] = {}
    for name in names:
        folder, slash, own = name.partition("/")
        folders.setdefault(folder + slash if own else "", []).append(own or name)
    yield from folders.pop("", [])
    for folder, found in folders.items():
        yield folder + (found[0] if len(found) == 1 else f"{{{', '.join(found)}}}")


def _overview() -> None:
    """All names on a screen, and what to type next."""
    from qrmax.agents.registry import agent_names
    from qrmax.machines.task_files import task_names
    from qrmax.studies.library import study_names
    from qrmax.worlds.catalog import all_names
    from qrmax.worlds.grid import map_names
    from qrmax.worlds.map_catalog import other_map_names
    from qrmax.worlds.world_registry import worlds

    maps, tasks = [*map_names(), *other_map_names()], task_names()
    patterns = [
        name
        for world in worlds()
        for name in ([world.pattern] if world.names_place else world.problem_names())
    ]
    own = [name for name in tasks if "/" not in name]
    others = len(tasks) - len(own)
    short = [name for name in agent_names() if not name.endswith(("-exact", "-published"))]
    exact, published = (
        sum(name.endswith(form) for name in agent_names()) for form in ("-exact", "-published")
    )
    print_facts(
        {
            f"{len(all_names())} problems": ", ".join(_by_folder(patterns)),
            f"{len(maps)} maps": ", ".join(_by_number(maps)),
            f"{len(tasks)} tasks": f"{', '.join(_by_number(own))}, and {others} of single maps",
            f"{len(agent_names())} agents": (
                f"{', '.join(_with_variants(short))}, {exact} *-exact, {published} *-published"
            ),
            f"{len(study_names())} studies": ", ".join(_by_folder(study_names())),
        }
    )
    click.echo()
    print_facts(
        {
            "qrmax list agents": "in full; or worlds, maps, tasks, studies",
            "qrmax show task exp5": "a task; qrmax show map map1: a map",
            "qrmax solve office/map1/exp5": "the exact optimum of a problem",
            "qrmax run office/map1/exp5": "train an agent on it",
            "qrmax sweep smoke": "run a study",
        }
    )


def _by_number(names: Sequence[str]) -> list[str]:
    """Names that differ by a digit alone as one, as patterns of problems are written.

    >>> _by_number(["map0", "map1", "map2", "line"])
    ['map[0-2]', 'line']
    """
    digits: dict[str, list[str]] = {}
    for name in names:
        stem = name.rstrip("0123456789")
        digits.setdefault(stem, []).append(name.removeprefix(stem))
    return [
        f"{stem}[{found[0]}-{found[-1]}]" if len(found) > 1 else f"{stem}{found[0]}"
        for stem, found in digits.items()
    ]


def _with_variants(names: Sequence[str]) -> list[str]:
    """Names, those with and without the ending -rm as one.

    >>> _with_variants(["qrm", "rmax", "rmax-rm"])
    ['qrm', 'rmax[-rm]']
    """
    return [
        f"{name}[-rm]" if f"{name}-rm" in names else name
        for name in names
        if name.removesuffix("-rm") == name or name.removesuffix("-rm") not in names
    ]


def _list_in_full(kinds: tuple[str, ...]) -> None:
    lists = {
        "worlds": _list_worlds,
        "maps": _list_maps,
        "tasks": _list_tasks,
        "agents": _list_agents,
        "studies": _list_studies,
    }
    for each in kinds:
        if each != kinds[0]:
            click.echo()
        lists[each]()


def _list_worlds() -> None:
    from qrmax.worlds.world_registry import world_names, worlds

    found = {world.name: world for world in worlds()}
    width = max(map(len, world_names()))
    for name in world_names():
        if name not in found:  # its entry point is broken
            click.echo(with_bold(name, f"{name.ljust(width)}  {UNLOADABLE}"))
            click.echo(f"{' ' * width}  {SEE_DOCTOR}")
            continue
        world = found[name]
        text = f"{world.name.ljust(width)}  {world.summary}"
        click.echo(with_bold(world.name, wrapped(text, indent=width + 2)))
        options = ", ".join(f"{name}={value}" for name, value in world.defaults.items())
        for line in filter(None, (_problems(world), options)):
            click.echo(wrapped(f"{' ' * width}  {line}", indent=width + 2))
    click.echo()
    click.echo(
        wrapped("Any task works in any world, also your own: qrmax solve river-swim --task TASK.")
    )
    click.echo(
        wrapped("Options are given by their name, as in qrmax solve river-swim/patrol --size 4.")
    )


def _problems(world: World[AnyProblem]) -> str:
    """The problems of a world, in a line."""
    if world.seeds:
        return f"{world.pattern}; any whole number is a seed, such as {world.problem_names()[-1]}"
    if world.maps is None or not world.chooses_map:
        return ", ".join(world.problem_names())
    tasks = [task for task in world.tasks if "/" not in task]
    return f"{world.pattern}; maps {', '.join(world.maps.names())}; tasks {', '.join(tasks)}"


def _list_maps() -> None:
    from qrmax.worlds.grid import map_names
    from qrmax.worlds.map_catalog import any_map, other_map_names

    for title, names in (("map", map_names()), ("map of the world", other_map_names())):
        if title != "map":
            click.echo()
        rows = [
            (grid.name, f"{grid.width} x {grid.height}", f"{grid.start[0]},{grid.start[1]}")
            for grid in map(any_map, names)
        ]
        print_table((title, "size", "start"), rows)


def _list_tasks() -> None:
    from qrmax.machines.task_files import load_task, task_names

    width = max(map(len, task_names()))
    for name in task_names():
        task = load_task(name)
        head = f"{name.ljust(width)}  {len(task.states):2d} states  "
        click.echo(with_bold(name, wrapped(f"{head}{task.description}", indent=len(head))))


def _list_studies() -> None:
    from qrmax.studies.library import protocol_names, study_names, study_title

    width = max(map(len, study_names()))
    for name in study_names():
        text = f"{name.ljust(width)}  {study_title(name)}"
        click.echo(with_bold(name, wrapped(text, indent=width + 2)))
    click.echo(f"\nEach with --protocol {_either(protocol_names())}.")


def _list_agents() -> None:
    from qrmax.agents.registry import agent_class, agent_names, default_settings

    width = max(map(len, agent_names()))
    for name in agent_names():
        try:
            kind = agent_class(name)
            summary = (kind.__doc__ or "").partition("\n")[0]
            summary += f" [{kind.Config().information}]"
            settings = ", ".join(f"{key}={value}" for key, value in default_settings(name).items())
        except QRMaxError:  # of an entry point that is broken
            summary, settings = UNLOADABLE, SEE_DOCTOR
        text = f"{name.ljust(width)}  {summary}"
        click.echo(with_bold(name, wrapped(text, indent=width + 2)))
        click.echo(wrapped(f"{' ' * width}  {settings}", indent=width + 2))
    click.echo()
    click.echo(
        wrapped(
            "In brackets: what it is told of the task. With task_by=label, q and labels observed."
        )
    )
    click.echo(wrapped("r_max is by default the largest reward of a step of the problem."))
    click.echo(wrapped("Settings are given by --set, as in --agent qrmax --set t_env=20."))


def _either(names: Sequence[str]) -> str:
    """Names to choose from.

    >>> _either(["this", "that", "another"])
    'this, that or another'
    """
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last
