"""`qrmax check`: lint a task, and decide the equivalence of two."""

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
    "checked with the propositions of built-in worlds; for your own map: --map FILE, for your own "
    "environment: --propositions NAME,..."
)
MOST_NOTES = 3  # of a kind, in text output; JSON has all


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
    help="Check the task with the labels of this map; may be repeated.  "
    "[default: any built-in world, with any labels]",
)
@click.option(
    "--propositions",
    metavar="NAME,...",
    help="The propositions of your own environment, in place of maps.",
)
@as_json
def check(
    task: str, other: str | None, maps: tuple[str, ...], propositions: str | None, as_json: bool
) -> None:
    """Check TASK for probable mistakes; with OTHER, also whether the two are equivalent.

    The exit code is 1 if there is a mistake or a difference. Overlapping edges are reported, but
    are not mistakes: the first one is taken. Nor are edges that no label of the given maps takes.
    """
    from qrmax.machines.checks import check_task
    from qrmax.machines.task_files import load_task

    machine = load_task(task)
    there = _vocabulary(maps, propositions)
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


class _Vocabulary(NamedTuple):
    """The propositions and labels that can occur; None: any."""

    propositions: set[str] | None
    labels: list[Label] | None
    is_any_world: bool = False  # neither maps nor propositions were given


def _vocabulary(maps: tuple[str, ...], named: str | None) -> _Vocabulary:
    """The labels on these maps; or the named propositions and those of these maps; or all built-in.

    Any label over named propositions is possible, since their combinations are not known.
    """
    from qrmax.worlds.catalog import all_propositions
    from qrmax.worlds.map_catalog import any_map

    labels = [label for given in maps for label in any_map(given).labels()]
    if named is not None:
        names = {name.strip() for name in named.split(",") if name.strip()}
        return _Vocabulary(names.union(*labels), None)
    return (
        _Vocabulary(None, labels)
        if maps
        else _Vocabulary(all_propositions(), None, is_any_world=True)
    )


class _Pair(NamedTuple):
    """A comparison of two tasks."""

    names: tuple[str, str]
    read_the_start: tuple[bool, bool]
    difference: Counterexample | None


def _compare(one: RewardMachine, other: RewardMachine, given: tuple[str, str]) -> _Pair:
    """Compare two tasks, called by what was given for them if they have the same name."""
    names = given if one.name == other.name else (one.name, other.name)
    difference = one.counterexample(other)
    if difference is not None:
        difference = difference._replace(machines=names)
    return _Pair(names, (one.consume_initial, other.consume_initial), difference)


def _comparison(pair: _Pair) -> dict[str, Any]:
    """The comparison as JSON data."""
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
        click.echo("the two are equivalent")
    else:
        click.echo(f"the two differ {pair.difference}")
    if any(pair.read_the_start) and not all(pair.read_the_start):
        reader = pair.names[pair.read_the_start.index(True)]
        click.echo(f"only {reader} reads the label of the start state")
