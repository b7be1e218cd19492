"""`qrmax list`: what there is by name."""

from __future__ import annotations

import click

from qrmax.cli.output import as_json, examples, print_json, print_table

KINDS = ("worlds", "maps", "tasks", "agents", "studies")


@click.command(name="list", epilog=examples("qrmax list tasks"))
@click.argument("kind", required=False, type=click.Choice(KINDS))
@as_json
def list_names(kind: str | None, as_json: bool) -> None:
    """List the built-in worlds, maps, tasks, agents and studies, or one kind of them."""
    from qrmax.agents.registry import agent_names
    from qrmax.automata.files import load_task, task_names
    from qrmax.studies.library import study_names
    from qrmax.worlds.catalog import all_names, benchmark_names
    from qrmax.worlds.continuous import continuous_names, plane_names
    from qrmax.worlds.grid import map_names

    kinds = KINDS if kind is None else (kind,)
    if as_json:
        names = {
            "worlds": {"worlds": all_names()},
            "maps": {"maps": map_names(), "other_maps": plane_names()},
            "tasks": {"tasks": task_names()},
            "agents": {"agents": agent_names()},
            "studies": {"studies": study_names()},
        }
        print_json({key: value for each in kinds for key, value in names[each].items()})
        return
    for each in kinds:
        if each != kinds[0]:
            click.echo()
        if each == "worlds":
            click.echo("worlds: office/MAP/TASK, such as office/map1/exp5")
            click.echo("benchmarks of others: office/map1/toro-icarte/t1 to t4 and")
            for name in benchmark_names():
                click.echo(f"  {name}")
            click.echo("with real positions: continuous/office/MAP/TASK and")
            for name in continuous_names():
                if "/office/" not in name:
                    click.echo(f"  {name}")
        elif each == "maps":
            _list_maps("map", map_names())
            click.echo()
            _list_maps("map of the world", plane_names())
        elif each == "agents":
            _list_agents()
        elif each == "studies":
            _list_studies()
        else:
            width = max(map(len, task_names()))
            for name in task_names():
                task = load_task(name)
                click.echo(f"{name.ljust(width)}  {len(task.states):2d} states  {task.description}")


def _list_maps(title: str, names: list[str]) -> None:
    from qrmax.worlds.continuous import any_map

    maps = [any_map(name) for name in names]
    rows = [
        (grid.name, f"{grid.width} x {grid.height}", f"{grid.start[0]},{grid.start[1]}")
        for grid in maps
    ]
    print_table((title, "size", "start"), rows)


def _list_studies() -> None:
    from qrmax.studies.library import protocol_names, study_names, study_title

    width = max(map(len, study_names()))
    for name in study_names():
        click.echo(f"{name.ljust(width)}  {study_title(name)}")
    click.echo(f"\nEach with --protocol {' or '.join(protocol_names())}.")


def _list_agents() -> None:
    from qrmax.agents.registry import agent_class, agent_names, default_settings

    width = max(map(len, agent_names()))
    for name in agent_names():
        summary = (agent_class(name).__doc__ or "").partition("\n")[0]
        settings = ", ".join(f"{key}={value}" for key, value in default_settings(name).items())
        click.echo(f"{name.ljust(width)}  {summary}\n{' ' * width}  {settings}")
    click.echo("\nr_max is by default the most that a step of the problem can pay.")
