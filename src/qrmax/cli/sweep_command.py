"""`qrmax sweep`: all runs of a study."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from qrmax.cli.output import as_json, examples, print_json
from qrmax.cli.studies import (
    folder_option,
    only_option,
    protocol_option,
    study_argument,
    workers_option,
)

FAILED = 1
INTERRUPTED = 130


@click.command(
    epilog=examples(
        "qrmax sweep smoke",
        "qrmax sweep paper/table4 --protocol as-published --workers 2",
        "qrmax sweep paper/table4 --only agent=qrmax --only 'problem=office/map1/*'",
        "qrmax sweep my.toml -o results/mine --verbose",
        "qrmax sweep my.toml --backend ray --address auto",
    )
)
@study_argument
@protocol_option
@workers_option
@click.option(
    "--backend",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Processes of this machine, or Ray.",
)
@click.option("--address", help="Of a Ray cluster: auto, or ray://HOST:10001.")
@only_option
@folder_option
@click.option(
    "--checkpoint-every",
    type=float,
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How much work of a run can be lost.",
)
@click.option("--fresh", is_flag=True, help="Run again what is complete already.")
@click.option("--verbose", is_flag=True, help="A line for each run that ends.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@as_json
def sweep(
    study: str,
    protocol: str | None,
    folder: Path | None,
    verbose: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run all of STUDY: a built-in one such as paper/table4, or your own TOML file.

    The same command goes on where it was: complete runs are skipped, unfinished ones resumed.
    Ctrl-C has the runs under way checkpointed and ends; pressed again, it ends at once. The results
    are the same whatever the backend and the number of workers.
    """
    from qrmax.studies.expand import load_study  # all this takes a second to import
    from qrmax.studies.sweep import open_sweep
    from qrmax.studies.sweep_line import follow_sweep

    whole = load_study(study, protocol)
    with redirect_stdout(_RayNews()), open_sweep(whole, folder=folder, **options) as running:
        finished = follow_sweep(running, not quiet, each_run=verbose)
    summary = running.summary()
    if as_json:
        print_json({**summary._asdict(), "folder": str(summary.folder)})
    else:
        failed = f", {summary.failed:,} failed" if summary.failed else ""
        left = f", {summary.left:,} left" if summary.left else ""
        runs = "run" if summary.done == 1 else "runs"
        click.echo(f"{summary.folder}: {summary.done:,} {runs} done{failed}{left}")
    if not finished:
        without = " without --fresh" if options["fresh"] else ""
        click.echo(f"interrupted; the same command{without} goes on", err=True)
        sys.exit(INTERRUPTED)
    if summary.failed:
        sys.exit(FAILED)


class _RayNews(io.TextIOBase):
    """What Ray prints of its workers to stdout, which is for results: on stderr, shortened.

    Ray quotes twenty lines of its log where one of its parts has died.
    """

    def write(self, text: str) -> int:
        """Print no more than the first sentence."""
        head, line_end, _ = text.partition("\n")
        sys.stderr.write(head.partition(". ")[0] + line_end)
        return len(text)
