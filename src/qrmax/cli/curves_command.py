"""`qrmax curves`: the learning curves of a study, as a picture."""

from __future__ import annotations

from pathlib import Path

import click

from qrmax.cli.output import PICTURES, OutputFile, examples, picture_format, write_or_print
from qrmax.cli.studies import find_results, protocol_option, study_argument

# those of `report.curves`, which takes long to import
MEASURES = ("value", "success", "return")


@click.command(
    epilog=examples(
        "qrmax curves paper/bucket -o bucket.svg",
        "qrmax curves results/table6-as-published --log -o table6.png",
    )
)
@study_argument
@protocol_option
@click.option(
    "--measure",
    type=click.Choice(MEASURES),
    help="The y axis: the value relative to the optimum, the success rate, or the undiscounted "
    "return of an episode.  "
    "[default: that of the stopping rule]",
)
@click.option("--log", "logarithmic", is_flag=True, help="Steps or episodes on a logarithmic axis.")
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    required=True,
    help=f"The picture: a file whose name ends in .{', .'.join(PICTURES)}.",
)
def curves(
    study: str, protocol: str | None, measure: str | None, logarithmic: bool, output: Path
) -> None:
    """Draw the learning curves of STUDY, or of the study in a results folder.

    A panel for each problem, a line for each learner: the median over the seeds, in a band from the
    first to the third quartile. A run that has stopped keeps its last value.
    """
    kind = picture_format(output)
    from qrmax.report.curve_plot import draw_curves

    picture = draw_curves(
        *find_results(study, protocol), kind, measure=measure, logarithmic=logarithmic
    )
    write_or_print(picture, output)
