"""`qrmax status`: the progress of a study."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qrmax.cli.output import as_json, examples, print_json, print_table
from qrmax.cli.studies import early_ends, folder_argument

if TYPE_CHECKING:
    from qrmax.studies.results import CellStatus, Status

DAMAGED = 1
NOT_RUN = "*"  # after the counts of a cell whose other seeds are not run


@click.command(epilog=examples("qrmax status results/table4-as-published"))
@folder_argument
@as_json
def status(folder: Path, as_json: bool) -> None:
    """Show the progress of the study in DIR: runs done, failed and left by problem and agent."""
    from qrmax.studies.results import status as look_at

    found = look_at(folder)
    if as_json:
        _print_as_json(found)
    else:
        _print_for_people(found)
    for record in found.damaged:
        path = folder / "runs" / record.id
        click.echo(f"damaged: {path}: {record.reason}; the next sweep runs it again", err=True)
    if found.damaged:
        sys.exit(DAMAGED)


def _print_as_json(found: Status) -> None:
    print_json(
        {
            "study": found.study.name,
            "protocol": found.study.protocol,
            "runs": len(found.study),
            "done": found.done,
            "failed": found.failed,
            "left": found.left,
            "given_up": found.given_up,
            "damaged": [record.id for record in found.damaged],
            "others": found.others,
            "running": None if found.owner is None else str(found.owner),
            "cells": [cell._asdict() for cell in found.cells],
        }
    )


def _print_for_people(found: Status) -> None:
    study = found.study
    cells = {(cell.problem, cell.label): cell for cell in found.cells}
    print_table(
        ("done / failed / left", *study.agents),
        [
            (problem, *(_cell(cells.get((problem, label))) for label in study.agents))
            for problem in study.problems
        ],
    )
    protocol = f", {study.protocol}" if study.protocol else ""
    click.echo(
        f"\n{study.name}{protocol}: {found.done:,} of {len(study):,} runs done, {found.failed:,} "
        f"failed, {found.left:,} left"
    )
    if found.given_up:
        click.echo(
            f"{found.given_up:,} are not run: the first {study.give_up_after} seeds there hit "
            f"their budget{', or agree' * bool(study.agree_within)} ({early_ends(study)}); "
            f"{NOT_RUN} stands for them"
        )
    if begun := sum(cell.begun for cell in found.cells):
        click.echo(f"{begun:,} of those left have started, and resume from their checkpoints")
    if found.others:
        click.echo(f"{found.others:,} more runs are of an earlier version of the study")
    if found.owner is not None:
        click.echo(f"being swept by {found.owner}")


def _cell(cell: CellStatus | None) -> str:
    """One number if all runs are done, otherwise three."""
    if cell is None:
        return "-"
    mark = NOT_RUN if cell.given_up else ""
    if cell.failed == cell.left == 0:
        return f"{cell.done}{mark}"
    return f"{cell.done} / {cell.failed} / {cell.left}{mark}"
