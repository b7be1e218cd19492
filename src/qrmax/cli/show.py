"""`qrmax show`: maps and tasks, to look at."""

from __future__ import annotations

from pathlib import Path

import click

from qrmax.cli.output import as_json, examples, print_facts, print_json
from qrmax.cli.problems import complete_map, complete_task


@click.group(epilog=examples("qrmax show map map1"))
def show() -> None:
    """Show a map or a task."""


@show.command(name="map", epilog=examples("qrmax show map map1", "qrmax show map my.txt -o my.png"))
@click.argument("name", metavar="MAP", shell_complete=complete_map)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Draw it to this PNG file.")
@as_json
def show_map(name: str, output: Path | None, as_json: bool) -> None:
    """Show MAP: the name of a built-in one, or your own file."""
    from qrmax.worlds.grid import load_map
    from qrmax.worlds.picture import draw, save_png, write

    grid = load_map(name)
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


@show.command(
    name="task", epilog=examples("qrmax show task exp5", "qrmax show task my.toml --json")
)
@click.argument("name", metavar="TASK", shell_complete=complete_task)
@as_json
def show_task(name: str, as_json: bool) -> None:
    """Show TASK: the name of a built-in one, or your own TOML file."""
    from qrmax.automata.files import load_task

    task = load_task(name)
    if not as_json:
        click.echo(str(task))
        return
    print_json(
        {
            "name": task.name,
            "description": task.description,
            "states": list(task.states),
            "initial": task.initial,
            "success": sorted(task.success),
            "failure": sorted(task.failure),
            "undefined": task.undefined,
            "strict": task.strict,
            "consume_initial": task.consume_initial,
            "edges": [
                {
                    "from": e.source,
                    "when": str(e.guard),
                    "to": e.target,
                    "reward": e.reward,
                    "probability": e.probability,
                }
                for e in task.edges
            ],
        }
    )
