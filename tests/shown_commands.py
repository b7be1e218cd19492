"""Commands that documents show: extracted, and checked without running them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click

from qrmax.cli.main import cli
from qrmax.studies.library import protocol_names, study_names

SPAN = re.compile(r"`(qrmax [^`]+)`")
OF_STUDIES = ("sweep", "table", "plot", "curves")


def commands_in(text: str) -> Iterator[str]:
    """The `qrmax` commands between backticks."""
    yield from SPAN.findall(text)


def mistakes_in(command: str) -> list[str]:
    """Unknown verbs, options, choices, studies and protocols of a command."""
    _, verb, *arguments = shlex.split(command)
    known = cli.commands.get(verb)
    if known is None:
        return [f"no verb {verb}"]
    context = click.Context(known)
    try:
        given, _, _ = known.make_parser(context).parse_args(arguments)
    except click.UsageError as error:
        return [error.format_message()]
    found = []
    for parameter in known.params:
        values = given.get(parameter.name or "")
        for value in values if isinstance(values, list) else [values]:
            if isinstance(parameter.type, click.Choice) and isinstance(value, str):
                found += [] if value in parameter.type.choices else [f"no choice {value}"]
    study = given.get("study")
    if verb in OF_STUDIES and study not in study_names() and not str(study).startswith("results/"):
        found.append(f"no study {study}")
    if isinstance(given.get("protocol"), str) and given["protocol"] not in protocol_names():
        found.append(f"no protocol {given['protocol']}")
    return found
