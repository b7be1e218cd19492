"""`qrmax show`: maps and tasks, to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from qrmax.cli.output import OutputFile, as_json, examples, print_facts, print_json, write_or_print
from qrmax.cli.problems import TASKS, complete_map, complete_task
from qrmax.errors import UnknownNameError

if TYPE_CHECKING:
    from qrmax.automata.reward_machine import RewardMachine


@click.group(epilog=examples("qrmax show map map1"))
def show() -> None:
    """Show a map or a task."""


@show.command(name="map", epilog=examples("qrmax show map map1", "qrmax show map my.txt -o my.png"))
@click.argument("name", metavar="MAP", shell_complete=complete_map)
@click.option("-o", "--output", type=OutputFile(), help="Draw it to this PNG file.")
@as_json
def show_map(name: str, output: Path | None, as_json: bool) -> None:
    """Show MAP: the name of a built-in one, or your own file."""
    from qrmax.worlds.continuous import any_map
    from qrmax.worlds.picture import draw, save_png, write

    grid = any_map(name)
    facts = {
        "name": grid.name,
        "columns": grid.width,
        "rows": grid.height,
        "start": list(grid.start),
        "slips": grid.slips,
        "propositions": sorted(grid.propositions),
    }
    if output is not None:
        save_png(draw(grid, grid.start_state), output)
        click.echo(f"drawn to {output}", err=True)
    if as_json:
        print_json({**facts, "picture": grid.text})
    elif output is None:
        click.echo(write(grid, grid.start_state))
        click.echo()
        print_facts(
            {
                "size": f"{grid.width} columns x {grid.height} rows",
                "start": f"{grid.start[0]},{grid.start[1]} (shown as @)",
                "slips": grid.slips,
                "tiles": ", ".join(
                    f"{tile} {name}"
                    for tile, name in grid.tiles.items()
                    if any(tile in row for row in grid.rows)
                )
                or "none",
            }
        )


FORMATS = ("text", "toml", "json", "dot", "mermaid", "svg", "hoa")
BY_SUFFIX = {
    **{f".{format_}": format_ for format_ in FORMATS},
    ".txt": "text",
    ".gv": "dot",
    ".mmd": "mermaid",
    "": "text",
}


@show.command(
    name="task",
    epilog=examples(
        "qrmax show task exp5",
        "qrmax show task my.toml --format mermaid",
        "qrmax show task 'F(coffee & F office) & G !decoration'",
        "qrmax show task my.toml -o my.svg",
        note=TASKS,
    ),
)
@click.argument("name", metavar="TASK", shell_complete=complete_task)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="What to show it as.  [default: as the output file says, or text]",
)
@click.option("-o", "--output", type=OutputFile(), help="Write it to this file instead.")
@as_json
def show_task(name: str, format_: str | None, output: Path | None, as_json: bool) -> None:
    """Show TASK: as a table, in another format, or as a picture."""
    from qrmax.automata.files import load_task

    wanted = "json" if as_json else format_ or _format_of(output)
    write_or_print(_shown(load_task(name), wanted).encode(), output)
    if output is not None:
        click.echo(f"written to {output}", err=True)


def _format_of(output: Path | None) -> str:
    """What the output is to be, by the suffix of its name."""
    suffix = "" if output is None else output.suffix.lower()
    if suffix not in BY_SUFFIX:
        known = filter(None, BY_SUFFIX)
        raise UnknownNameError("format", suffix, known, hint="any other name needs --format")
    return BY_SUFFIX[suffix]


def _shown(task: RewardMachine, format_: str) -> str:
    if format_ == "text":
        return f"{task}\n"
    if format_ == "svg":
        from qrmax.report.machine_svg import draw_machine

        return draw_machine(task)
    from qrmax.automata.files import write_task

    return write_task(task, f".{format_}")
