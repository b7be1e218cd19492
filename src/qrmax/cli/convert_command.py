"""`qrmax convert`: a task in another format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from qrmax.cli.output import OutputFile, examples
from qrmax.cli.problems import TASKS, complete_task


def _read_letters(_: Any, __: Any, value: str | None) -> Mapping[str, str] | None:
    """Parse the meaning of letters, such as f=coffee,g=office."""
    if value is None:
        return None
    pairs = [entry.partition("=") for entry in value.split(",") if entry.strip()]
    if not all(equals for _, equals, _ in pairs):
        raise click.BadParameter(f"{value!r} is not of the form f=coffee,g=office.")
    return {letter.strip(): name.strip() for letter, _, name in pairs}


@click.command(
    epilog=examples(
        "qrmax convert t1.txt t1.toml",
        "qrmax convert exp5 exp5.hoa",
        "qrmax convert 'F(coffee & F office)' bring.toml",
        "qrmax convert t1.txt t1.toml --letters f=fish,g=goat",
        note=TASKS,
    )
)
@click.argument("task", shell_complete=complete_task)
@click.argument("output", metavar="FILE", type=OutputFile())
@click.option(
    "--letters",
    callback=_read_letters,
    metavar="f=NAME,...",
    help="Toro Icarte's files: propositions of the letters.  [default: as in the Office World]",
)
@click.option(
    "--compat",
    is_flag=True,
    help="Toro Icarte's files: reward undefined labels as the original does.",
)
def convert(task: str, output: Path, letters: Mapping[str, str] | None, compat: bool) -> None:
    """Write TASK to FILE, in the format of its suffix.

    Formats: .toml, also without a suffix; .json, .dot or .gv, .mmd or .mermaid, .hoa. Formulas,
    .txt (Toro Icarte) and RMSpec (.json) are read-only.
    """
    from qrmax.machines.task_files import load_task, save_task

    save_task(load_task(task, letters=letters, compat=compat), output)
    click.echo(f"written to {output}", err=True)
