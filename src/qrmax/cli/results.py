"""`qrmax results`: the runs of a results folder as a table."""

from __future__ import annotations

import io
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qrmax.cli.output import OutputFile, examples, write_or_print
from qrmax.cli.studies import folder_argument
from qrmax.errors import QRMaxWarning

if TYPE_CHECKING:
    import polars

DAMAGED = 1
FORMATS = ("csv", "parquet", "json", "md")
COLUMNS_FOR_PEOPLE = (
    "problem", "label", "seed", "status", "reached", "steps", "gap", "success", "nominal_length",
    "total_seconds",
)  # fmt: skip


@click.command(
    epilog=examples(
        "qrmax results results/smoke-as-described --format md",
        "qrmax results results/table4-as-published -o table4.parquet",
    )
)
@folder_argument
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    help="How it is written.  [default: as the file's name says, or csv]",
)
@click.option("--earlier", is_flag=True, help="Also runs of earlier versions of the study.")
@click.option("-o", "--output", type=OutputFile(), help="A file.")
def results(folder: Path, kind: str | None, earlier: bool, output: Path | None) -> None:
    """Print the runs in DIR, one row for each; see `qrmax.results` for the columns.

    Markdown has the columns that people look at, the other formats have all. Damaged runs are
    reported on stderr, and the exit code is then 1.
    """
    from qrmax.studies.results import results as read

    kind = kind or _format_of(output)
    if kind == "parquet" and output is None and sys.stdout.isatty():
        raise click.UsageError("Parquet is not for terminals: give a file with -o.")
    with warnings.catch_warnings(record=True) as damaged:
        warnings.simplefilter("always", QRMaxWarning)
        frame = read(folder, earlier=earlier)
    write_or_print(_formatted(frame, kind), output)
    for warning in damaged:
        click.echo(f"damaged: {warning.message}", err=True)
    if damaged:
        sys.exit(DAMAGED)


def _format_of(path: Path | None) -> str:
    suffix = "csv" if path is None else path.suffix.removeprefix(".")
    if suffix not in FORMATS:
        raise click.UsageError(f"--format is needed for {path}: one of {', '.join(FORMATS)}.")
    return suffix


def _formatted(frame: polars.DataFrame, kind: str) -> bytes:
    file = io.BytesIO()
    if kind == "csv":
        frame.write_csv(file)
    elif kind == "parquet":
        frame.write_parquet(file)
    elif kind == "json":
        frame.write_json(file)
    else:
        return _markdown(frame).encode()
    return file.getvalue()


def _markdown(frame: polars.DataFrame) -> str:
    rows = [COLUMNS_FOR_PEOPLE, *frame.select(COLUMNS_FOR_PEOPLE).iter_rows()]
    lines = ["| " + " | ".join(map(_text, row)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(COLUMNS_FOR_PEOPLE), *lines[1:]]) + "\n"


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value).replace("|", "\\|")
