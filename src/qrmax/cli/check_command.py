"""`qrmax check`: what is odd about a task, and whether two tasks are the same."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from qrmax.cli.output import as_json, examples, print_json, wrapped
from qrmax.cli.problems import TASKS, complete_map, complete_task

if TYPE_CHECKING:
    from qrmax.logic.guards import Label
    from qrmax.machines.checks import Finding
    from qrmax.machines.equivalence import Counterexample
    from qrmax.machines.reward_machine import RewardMachine

FAILED = 1
OF_YOUR_OWN = (
    "judged by what is true in built-in worlds; on your own map: --map FILE, in an environment "
    "of your own: --propositions NAME,..."
)
MOST_NOTES = 3  # of a kind, for people; programs get all


@click.command(
    epilog=examples(
        "qrmax check my.toml",
        "qrmax check my.toml --map map1",
        "qrmax check 'F(red & F goal)' --propositions red,green,goal",
        "qrmax check t1.txt exp1",
        note=TASKS,
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
    help="Where the task is to be done, with the labels that its cells have; may be repeated.  "
    "[default: any built-in world, with any labels]",
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
    are no mistake: the first one wins. Nor are edges that cannot happen on the maps given.
    """
    from qrmax.machines.checks import check_task
    from qrmax.machines.task_files import load_task

    machine = load_task(task)
    there = _what_there_is(maps, propositions)
    found = check_task(machine, there.propositions, there.labels)
    pair = None if other is None else _compare(machine, load_task(other), (task, other))
    name = machine.name if pair is None else pair.names[0]
    if as_json:
        findings = [{**finding._asdict(), "mistake": finding.is_mistake} for finding in found]
        comparison = {} if pair is None else _comparison(pair)
        print_json({"task": name, "findings": findings, **comparison})
    else:
        _print_findings(name, found)
        if there.is_any_world and any(finding.kind == "missing" for finding in found):
            click.echo(wrapped(OF_YOUR_OWN), err=True)
        if pair is not None:
            _print_comparison(pair)
    differ = pair is not None and pair.difference is not None
    if differ or any(finding.is_mistake for finding in found):
        sys.exit(FAILED)


class _There(NamedTuple):
    """What can be true, and the labels that there are; None: any."""

    propositions: set[str] | None
    labels: list[Label] | None
    is_any_world: bool = False  # nothing was said of where the task is to be done


def _what_there_is(maps: tuple[str, ...], named: str | None) -> _There:
    """The labels on these maps; or what is named, and what these maps have; or what any world has.

    How what is named goes together is not known, so that any label is possible.
    """
    from qrmax.worlds.catalog import all_propositions
    from qrmax.worlds.map_catalog import any_map

    labels = [label for given in maps for label in any_map(given).labels()]
    if named is not None:
        names = {name.strip() for name in named.split(",") if name.strip()}
        return _There(names.union(*labels), None)
    return _There(None, labels) if maps else _There(all_propositions(), None, is_any_world=True)


class _Pair(NamedTuple):
    """Two tasks side by side."""

    names: tuple[str, str]
    read_the_start: tuple[bool, bool]
    difference: Counterexample | None


def _compare(one: RewardMachine, other: RewardMachine, given: tuple[str, str]) -> _Pair:
    """Two tasks; by what was given for them where their names do not tell them apart."""
    names = given if one.name == other.name else (one.name, other.name)
    difference = one.counterexample(other)
    if difference is not None:
        difference = difference._replace(machines=names)
    return _Pair(names, (one.consume_initial, other.consume_initial), difference)


def _comparison(pair: _Pair) -> dict[str, Any]:
    """How two tasks compare, for programs."""
    facts: dict[str, Any] = {
        "other": pair.names[1],
        "consume_initial": pair.read_the_start,
        "equivalent": pair.difference is None,
        "counterexample": None,
        "difference": None,
    }
    if pair.difference is not None:
        facts["counterexample"] = [sorted(label) for label in pair.difference.trace]
        facts["difference"] = [
            {"task": name, "state": state, "outcomes": [outcome._asdict() for outcome in outcomes]}
            for name, state, outcomes in zip(
                pair.names, pair.difference.states, pair.difference.outcomes, strict=True
            )
        ]
    return facts


def _print_findings(name: str, found: list[Finding]) -> None:
    for kind, group in groupby(found, key=lambda finding: finding.kind):
        told = [*group]
        most = len(told) if told[0].is_mistake else MOST_NOTES
        for finding in told[:most]:
            click.echo(wrapped(f"{kind}: {finding.message}", indent=2))
        if len(told) > most:
            click.echo(f"{kind}: and {len(told) - most} more; --json shows all")
    mistakes = sum(finding.is_mistake for finding in found)
    click.echo(f"{name}: {mistakes or 'no'} mistake{'s' * (mistakes > 1)} found")


def _print_comparison(pair: _Pair) -> None:
    if pair.difference is None:
        click.echo("the two do the same, whatever labels they read")
    else:
        click.echo(f"the two differ {pair.difference}")
    if any(pair.read_the_start) and not all(pair.read_the_start):
        reader = pair.names[pair.read_the_start.index(True)]
        click.echo(f"only {reader} reads the label of the start state")
