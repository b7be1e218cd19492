"""`qrmax table`: results as the paper prints them, the paper's numbers beside ours."""

from __future__ import annotations

from pathlib import Path

import click

from qrmax.cli.output import OutputFile, examples, write_or_print
from qrmax.cli.studies import find_results, protocol_option, study_argument

FORMATS = {"md": "markdown", "tex": "latex", "csv": "csv"}  # and how a table is asked for it


@click.command(
    epilog=examples(
        "qrmax table paper/table4 --protocol as-published -o table4.md",
        "qrmax table results/smoke-as-described --format tex",
    )
)
@study_argument
@protocol_option
@click.option(
    "--format",
    "kind",
    type=click.Choice([*FORMATS]),
    help="How it is written.  [default: as the file's name says, or md]",
)
@click.option("-o", "--output", type=OutputFile(), help="A file.")
def table(study: str, protocol: str | None, kind: str | None, output: Path | None) -> None:
    """Print the table of STUDY, or of the study in a results folder.

    Mean and standard deviation as papers have them, then medians, interquartile means with their
    95 % intervals, and how likely one learner is to need fewer steps than another. Runs that hit
    their budget are counted and shown as such, never averaged.
    """
    from qrmax.report.study_table import study_table

    if kind is None:
        kind = "md" if output is None else output.suffix.removeprefix(".")
    if kind not in FORMATS:
        raise click.UsageError(f"--format is needed for {output}: one of {', '.join(FORMATS)}.")
    made = study_table(*find_results(study, protocol))
    text: str = getattr(made, FORMATS[kind])()
    write_or_print(text.encode(), output)
