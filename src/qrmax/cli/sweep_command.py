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
    early_ends,
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
    help="Processes on this computer, or Ray.",
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
    help="The interval between checkpoints of a run.",
)
@click.option("--fresh", is_flag=True, help="Rerun complete runs, too.")
@click.option("--verbose", is_flag=True, help="Print a line for each run that ends.")
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

    The same command resumes a sweep: complete runs are skipped, unfinished ones resumed. Ctrl-C
    checkpoints the current runs and ends; pressed again, it ends at once. The results do not depend
    on the backend or the number of workers.
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
        not_run = ""
        if summary.given_up:
            not_run = f", {summary.given_up:,} not run ({early_ends(whole)})"
        runs = "run" if summary.done == 1 else "runs"
        click.echo(f"{summary.folder}: {summary.done:,} {runs} done{failed}{left}{not_run}")
    if not finished:
        without = " without --fresh" if options["fresh"] else ""
        click.echo(f"interrupted; the same command{without} resumes it", err=True)
        sys.exit(INTERRUPTED)
    if summary.failed:
        sys.exit(FAILED)


class _RayNews(io.TextIOBase):
    """Ray's output about its workers, shortened and redirected from stdout to stderr.

    Ray quotes twenty lines of its log when one of its processes has died.
    """

    def write(self, text: str) -> int:
        """Print no more than the first sentence."""
        head, line_end, _ = text.partition("\n")
        sys.stderr.write(head.partition(". ")[0] + line_end)
        return len(text)
