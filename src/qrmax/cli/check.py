"""`qrmax check`: what is odd about a task, and whether two tasks are the same."""

from __future__ import annotations

import sys
from typing import Any

import click

from qrmax.cli.output import as_json, examples, print_json
from qrmax.cli.problems import complete_map, complete_task

FAILED = 1


@click.command(
    epilog=examples(
        "qrmax check my.toml",
        "qrmax check my.toml --map map1",
        "qrmax check my.toml --propositions red,green,goal",
        "qrmax check t1.txt exp1",
    )
)
@click.argument("task", shell_complete=complete_task)
@click.argument("other", required=False, shell_complete=complete_task)
@click.option(
    "--map",
    "maps",
    metavar="MAP",
    multiple=True,
    shell_complete=complete_map,
    help="Where the task is to be done; may be repeated.  [default: any built-in world]",
)
@click.option(
    "--propositions",
    metavar="NAME,...",
    help="What can be true in your own environment, in place of maps.",
)
@as_json
def check(
    task: str, other: str | None, maps: tuple[str, ...], propositions: str | None, as_json: bool
) -> None:
    """Say what is odd about TASK; with OTHER, also whether the two do the same.

    The exit code is 1 where there is a mistake or a difference. Edges that overlap are told, but
    are no mistake: the first one wins.
    """
    from qrmax.automata.checks import findings
    from qrmax.automata.files import load_task

    machine = load_task(task)
    found = findings(machine, _propositions(maps, propositions))
    mistaken = any(finding.is_mistake for finding in found)
    twin = None if other is None else load_task(other)
    difference = None if twin is None else machine.counterexample(twin)
    if as_json:
        result: dict[str, Any] = {
            "task": machine.name,
            "findings": [finding._asdict() for finding in found],
        }
        if twin is not None:
            trace = None if difference is None else [sorted(label) for label in difference.trace]
            result |= {"equivalent": difference is None, "counterexample": trace}
        print_json(result)
    else:
        for finding in found:
            click.echo(f"{finding.kind}: {finding.message}")
        if not mistaken:
            click.echo(f"{machine.name}: no mistake found")
        if twin is not None:
            same = "the two do the same, whatever labels they read"
            click.echo(same if difference is None else f"the two differ {difference}")
            if twin.consume_initial != machine.consume_initial:
                reader = machine if machine.consume_initial else twin
                click.echo(f"only {reader.name} reads the label of the start state")
    if difference is not None or mistaken:
        sys.exit(FAILED)


def _propositions(maps: tuple[str, ...], named: str | None) -> set[str]:
    """What can be true: on these maps and as named, or else in any built-in world."""
    from qrmax.worlds.catalog import all_propositions
    from qrmax.worlds.continuous import any_map

    if not maps and named is None:
        return all_propositions()
    names = {name.strip() for name in (named or "").split(",") if name.strip()}
    return names.union(*(any_map(given).propositions for given in maps))
