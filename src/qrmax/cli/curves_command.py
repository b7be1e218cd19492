"""`qrmax curves`: the learning curves of a study, as a picture."""

from __future__ import annotations

from pathlib import Path

import click

from qrmax.cli.output import examples, picture_format, picture_option, write_or_print
from qrmax.cli.studies import find_results, protocol_option, results_option, study_argument

# those of `report.curves`, which takes long to import
MEASURES = ("value", "gap", "regret", "success", "return", "nominal-success", "nominal-length")
SPREADS = ("quartiles", "std")


@click.command(
    epilog=examples(
        "qrmax curves paper/bucket -o bucket.svg",
        "qrmax curves results/table6-as-published --log -o table6.png",
        "qrmax curves samples/long --measure gap --log -o gap.svg",
        "qrmax curves paper/table1 --measure nominal-length --spread std -o table1.pdf",
    )
)
@study_argument
@protocol_option
@results_option
@click.option(
    "--measure",
    type=click.Choice(MEASURES),
    help="The y axis: the value relative to the optimum; the gap to it, on a logarithmic axis; the "
    "cumulative regret of the recommended policies; the success rate, the undiscounted "
    "return of an episode; or, of the nominal run, in which the most likely outcome always "
    "happens, the success and the steps to the goal.  [default: that of the stopping rule]",
)
@click.option(
    "--spread",
    type=click.Choice(SPREADS),
    default="quartiles",
    show_default=True,
    help="Lines and bands: the median in a band from the first to the third quartile, or the mean "
    "in a band of a standard deviation on either side.",
)
@click.option("--log", "logarithmic", is_flag=True, help="Steps or episodes on a logarithmic axis.")
@picture_option
def curves(
    study: str,
    protocol: str | None,
    folder: Path | None,
    measure: str | None,
    spread: str,
    logarithmic: bool,
    output: Path,
) -> None:
    """Draw the learning curves of STUDY, or of the study in a results folder.

    A panel for each problem, a line for each learner: the median over the seeds, in a band from the
    first to the third quartile, or mean and standard deviation. A run that has stopped keeps its
    last value. Overviews of all problems: `qrmax plot`.
    """
    kind = picture_format(output)
    from qrmax.report.curve_plot import draw_curves

    picture = draw_curves(
        *find_results(study, protocol, folder),
        kind,
        measure=measure,
        spread=spread,
        logarithmic=logarithmic,
    )
    write_or_print(picture, output)
