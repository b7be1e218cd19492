"""`qrmax list`: what there is by name."""

from __future__ import annotations

import click

from qrmax.cli.output import as_json, examples, print_json, print_table

KINDS = ("worlds", "maps", "tasks")


@click.command(name="list", epilog=examples("qrmax list tasks"))
@click.argument("kind", required=False, type=click.Choice(KINDS))
@as_json
def list_names(kind: str | None, as_json: bool) -> None:
    """List the built-in worlds, maps and tasks, or one kind of them."""
    from qrmax.automata.files import load_task, task_names
    from qrmax.worlds.catalog import problem_names
    from qrmax.worlds.grid import load_map, map_names

    kinds = KINDS if kind is None else (kind,)
    if as_json:
        names = {"worlds": problem_names(), "maps": map_names(), "tasks": task_names()}
        print_json({each: names[each] for each in kinds})
        return
    for each in kinds:
        if each != kinds[0]:
            click.echo()
        if each == "worlds":
            click.echo("worlds: office/MAP/TASK, such as office/map1/exp5")
        elif each == "maps":
            maps = [load_map(name) for name in map_names()]
            rows = [
                (grid.name, f"{grid.width} x {grid.height}", f"{grid.start[0]},{grid.start[1]}")
                for grid in maps
            ]
            print_table(("map", "size", "start"), rows)
        else:
            tasks = [load_task(name) for name in task_names()]
            width = max(len(task.name) for task in tasks)
            for task in tasks:
                click.echo(
                    f"{task.name.ljust(width)}  {len(task.states):2d} states  {task.description}"
                )
