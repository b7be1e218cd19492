"""`qrmax show`: print or draw maps, tasks, problems and what runs have learned."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qrmax.cli.output import (
    PICTURES,
    OutputFile,
    as_json,
    examples,
    picture_format,
    picture_option,
    print_facts,
    print_json,
    write_or_print,
)
from qrmax.cli.problems import TASKS, complete_map, complete_task, make_problem, problem_options
from qrmax.cli.world_options import ProblemCommand

if TYPE_CHECKING:
    from qrmax.logic.guards import Label
    from qrmax.machines.reward_machine import RewardMachine


# those of `report.run_picture`, which takes long to import
LEARNED = ("both", "values", "policy", "visits", "known", "buckets")


@click.group(epilog=examples("qrmax show map map1", "qrmax show task exp5 --map map1"))
def show() -> None:
    """Show a map, a task, a problem, or what a run has learned."""


@show.command(
    name="map",
    epilog=examples(
        "qrmax show map map1",
        "qrmax show map my.txt -o my.svg",
        "qrmax show map corridor -o c.pdf",
        "qrmax show map random-office/3",
    ),
)
@click.argument("name", metavar="MAP", shell_complete=complete_map)
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    help=f"Draw it to this file, whose name ends in .{', .'.join(PICTURES)}.",
)
@as_json
def show_map(name: str, output: Path | None, as_json: bool) -> None:
    """Show MAP: the name of a built-in one, your own file, or the name of a problem on a map."""
    kind = None if output is None else picture_format(output)
    from qrmax.worlds.map_catalog import any_map, cell_size
    from qrmax.worlds.picture import write

    grid = any_map(name)
    facts = {
        "name": grid.name,
        "columns": grid.width,
        "rows": grid.height,
        "start": list(grid.start),
        "slips": grid.slips,
        "propositions": sorted(grid.propositions),
    }
    if output is not None and kind is not None:
        from qrmax.report.map_picture import draw_map

        write_or_print(draw_map(grid, cell=cell_size(name)).data(kind), output)
        click.echo(f"drawn to {output}", err=True)
    if as_json:
        print_json({**facts, "picture": grid.text})
    elif output is None:
        click.echo(write(grid, grid.start_state))
        click.echo()
        column, row = grid.start
        below = grid.tiles.get(grid.rows[row][column])
        print_facts(
            {
                "size": f"{grid.width} columns x {grid.height} rows",
                "start": f"{column},{row} (shown as @{f', on {below}' if below else ''})",
                "slips": grid.slips,
                "tiles": ", ".join(
                    f"{tile} {name}"
                    for tile, name in grid.tiles.items()
                    if any(tile in row for row in grid.rows)
                )
                or "none",
            }
        )


@show.command(
    name="problem",
    cls=ProblemCommand,
    epilog=examples(
        "qrmax show problem office/map1/exp5 -o exp5.svg",
        "qrmax show problem random-mdp/3 -o graph.pdf",
        "qrmax show problem --map my.txt --task my.toml -o mine.png",
    ),
)
@problem_options
@picture_option
def show_problem(output: Path, **options: Any) -> None:
    """Draw PROBLEM: its map, or its states as a grid or graph, and the machine beside it."""
    kind = picture_format(output)
    write_or_print(make_problem(**options).draw().data(kind), output)
    click.echo(f"drawn to {output}", err=True)


@show.command(
    name="run",
    epilog=examples(
        "qrmax show run my.run -o policy.svg",
        "qrmax show run my.run --as known -o known.pdf",
        "qrmax show run my.run --as visits --state start -o visits.png",
    ),
)
@click.argument("path", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--as",
    "shown",
    type=click.Choice(LEARNED),
    default="both",
    show_default=True,
    help="The agent's values as colours, its policy as arrows, or both; visits of states; known "
    "state-action pairs; or the buckets of observations.",
)
@click.option("--state", "states", metavar="STATE", multiple=True, help="This task state only.")
@picture_option
def show_run(path: Path, shown: str, states: tuple[str, ...], output: Path) -> None:
    """Draw what the agent of the saved run RUN has learned, a panel for each task state."""
    kind = picture_format(output)
    from qrmax.training.checkpoint import load

    write_or_print(load(path).draw(shown, states or None).data(kind), output)
    click.echo(f"drawn to {output}", err=True)


FORMATS = ("text", "toml", "json", "dot", "mermaid", "hoa", *PICTURES)
BY_SUFFIX = {
    **{format_: format_ for format_ in FORMATS if format_ != "text"},
    "txt": "text",
    "gv": "dot",
    "mmd": "mermaid",
}
BINARY = ("png", "pdf")


@show.command(
    name="task",
    epilog=examples(
        "qrmax show task exp5",
        "qrmax show task my.toml --format mermaid",
        "qrmax show task my.toml -o my.pdf",
        "qrmax show task 'F A & F B & F C' --map map1",
        "qrmax show task office/map1/exp5 -o exp5.svg",
        note=TASKS,
    ),
)
@click.argument("name", metavar="TASK", shell_complete=complete_task)
@click.option(
    "--map",
    "map_",
    metavar="MAP",
    shell_complete=complete_map,
    help="Restrict the task to the labels of this map: a built-in one or your own file.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="The format.  [default: by the output file's suffix, or text]",
)
@click.option("-o", "--output", type=OutputFile(), help="Write it to this file instead.")
@as_json
def show_task(
    name: str, map_: str | None, format_: str | None, output: Path | None, as_json: bool
) -> None:
    """Show TASK: as a table, in another format, or as a picture.

    With --map, or the name of a problem such as office/map1/exp5 in place of TASK, the task is
    restricted to the labels of the map: only states and edges that can occur, with short guards.
    """
    wanted = "json" if as_json else format_
    if wanted is None:
        wanted = (
            "text" if output is None else BY_SUFFIX[picture_format(output, BY_SUFFIX, "--format")]
        )
    if wanted in BINARY and output is None and sys.stdout.isatty():
        raise click.UsageError(f"{wanted} is not text: give -o FILE.{wanted}, or redirect it.")
    write_or_print(_shown(_task(name, map_), wanted), output)
    if output is not None:
        click.echo(f"written to {output}", err=True)


def _task(name: str, map_: str | None) -> RewardMachine:
    """The task, restricted to a map if one is given or named."""
    from qrmax.machines.task_files import load_task, task_names
    from qrmax.worlds.catalog import is_world, make
    from qrmax.worlds.grid import GridMap
    from qrmax.worlds.map_catalog import task_on_map

    is_problem = "/" in name and is_world(name) and name not in task_names()
    if map_ is not None:
        if is_problem:
            raise click.UsageError(f"{name!r} names a map already: leave out --map.")
        grid, task = task_on_map(map_, name)
        return _restricted(task, grid.labels(), grid.name)
    if not is_problem:
        return load_task(name)
    problem = make(name)
    place = problem.world.name if isinstance(problem.world, GridMap) else problem.name
    return _restricted(problem.machine, problem.labels, place)


def _restricted(task: RewardMachine, labels: Iterable[Label], place: str) -> RewardMachine:
    there = task.restricted(labels, name=f"{task.name} on {place}")
    if task.success and not there.success:
        click.echo(f"warning: no success state of {task.name} is reachable on {place}", err=True)
    return there


def _shown(task: RewardMachine, format_: str) -> bytes:
    if format_ == "text":
        return f"{task}\n".encode()
    if format_ in PICTURES:
        from qrmax.report.machine_picture import draw_machine

        return draw_machine(task).data(format_)
    from qrmax.machines.task_files import write_task

    return write_task(task, f".{format_}").encode()
