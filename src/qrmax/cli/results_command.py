"""`qrmax results`: the runs of a results folder as a table."""

from __future__ import annotations

import io
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qrmax.cli.output import OutputFile, examples, terminal_width, write_or_print
from qrmax.cli.studies import folder_argument
from qrmax.cli.summary import print_summary
from qrmax.errors import QRMaxWarning

if TYPE_CHECKING:
    import polars

DAMAGED = 1
FORMATS = ("summary", "csv", "parquet", "json", "md")
FILES = FORMATS[1:]
COLUMNS_FOR_PEOPLE = (
    "problem", "label", "seed", "status", "reached", "steps", "gap", "success", "nominal_length",
    "total_seconds",
)  # fmt: skip


@click.command(
    epilog=examples(
        "qrmax results results/smoke-exact",
        "qrmax results results/smoke-exact --format csv",
        "qrmax results results/table4-as-published -o table4.parquet",
    )
)
@folder_argument
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    help="The format.  [default: by the file's suffix; on a terminal a summary, else csv]",
)
@click.option("--earlier", is_flag=True, help="Also runs of earlier versions of the study.")
@click.option("-o", "--output", type=OutputFile(), help="A file.")
def results(folder: Path, kind: str | None, earlier: bool, output: Path | None) -> None:
    """Print the runs in DIR: on a terminal a summary, in a pipe or a file one row for each.

    The summary has a row for each agent and problem. Markdown has the most important columns,
    CSV, JSON and Parquet have all. Damaged runs are reported on stderr; the exit code is then 1.
    """
    from qrmax.studies.results import results as read

    kind = kind or _format_of(output)
    if kind == "summary" and output is not None:
        raise click.UsageError(f"The summary is for terminals; for {output}: {', '.join(FILES)}.")
    if kind == "parquet" and output is None and sys.stdout.isatty():
        raise click.UsageError("Parquet is not for terminals: give a file with -o.")
    with warnings.catch_warnings(record=True) as damaged:
        warnings.simplefilter("always", QRMaxWarning)
        frame = read(folder, earlier=earlier)
    if kind == "summary":
        print_summary(frame, folder)
    else:
        write_or_print(_formatted(frame, kind), output)
    for warning in damaged:
        click.echo(f"damaged: {warning.message}", err=True)
    if damaged:
        sys.exit(DAMAGED)


def _format_of(path: Path | None) -> str:
    if path is None:
        return "csv" if terminal_width() is None else "summary"
    suffix = path.suffix.removeprefix(".")
    if suffix not in FILES:
        raise click.UsageError(f"--format is needed for {path}: one of {', '.join(FILES)}.")
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
