"""`qrmax table`: results in the paper's layout, beside its reference values."""

from __future__ import annotations

from pathlib import Path

import click

from qrmax.cli.output import OutputFile, examples, write_or_print
from qrmax.cli.studies import find_results, protocol_option, study_argument

FORMATS = {"md": "markdown", "tex": "latex", "csv": "csv"}  # and the method of a table


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
    help="The format.  [default: by the file's suffix, or md]",
)
@click.option("-o", "--output", type=OutputFile(), help="A file.")
def table(study: str, protocol: str | None, kind: str | None, output: Path | None) -> None:
    """Print the table of STUDY, or of the study in a results folder.

    Mean and standard deviation, then medians and interquartile means with 95 % confidence
    intervals, and the probability of improvement of one learner over another. Runs that hit their
    budget are right-censored: counted and shown as such, never averaged.
    """
    from qrmax.report.study_table import study_table

    if kind is None:
        kind = "md" if output is None else output.suffix.removeprefix(".")
    if kind not in FORMATS:
        raise click.UsageError(f"--format is needed for {output}: one of {', '.join(FORMATS)}.")
    made = study_table(*find_results(study, protocol))
    text: str = getattr(made, FORMATS[kind])()
    write_or_print(text.encode(), output)
