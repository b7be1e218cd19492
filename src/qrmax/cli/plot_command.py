"""`qrmax plot`: overview figures of a study, and measures as functions of a setting."""

from __future__ import annotations

from pathlib import Path

import click

from qrmax.cli.output import examples, picture_format, picture_option, write_or_print
from qrmax.cli.studies import find_results, protocol_option, results_option, study_argument

# those of `report.marks`, which takes long to import
MEASURES = ("steps", "success", "gap")


@click.command(
    epilog=examples(
        "qrmax plot paper/table4 -o steps.svg",
        "qrmax plot paper/table4 --measure success --at 50000 -o success.pdf",
        "qrmax plot paper/sensitivity --against t_env -o t_env.png",
    )
)
@study_argument
@protocol_option
@results_option
@click.option(
    "--measure",
    "measures",
    type=click.Choice(MEASURES),
    multiple=True,
    help="The y axis: steps to the stopping rule, the success rate of the greedy policy, or the "
    "gap of the final policy to the optimum; with --against it may be repeated, for rows of "
    "panels.  [default: steps; with --against: steps and gap]",
)
@click.option(
    "--at", type=int, metavar="STEPS", help="Success after this many steps.  [default: at the end]"
)
@click.option(
    "--against",
    metavar="SETTING",
    help="The x axis: a setting in which agents of the study differ, such as t_env.  "
    "[default: the problems]",
)
@click.option("--log", "logarithmic", is_flag=True, help="The setting on a logarithmic axis.")
@picture_option
def plot(
    study: str,
    protocol: str | None,
    folder: Path | None,
    measures: tuple[str, ...],
    at: int | None,
    against: str | None,
    logarithmic: bool,
    output: Path,
) -> None:
    """Draw the results of STUDY, or of the study in a results folder, over its problems.

    A mark for each learner on each problem: steps on a logarithmic axis, mean and standard
    deviation over the seeds; success and gap with 95 % confidence intervals. Open marks with an
    arrow are lower bounds on the mean: some runs hit their budget. With --against, a panel for each
    problem, and a line for each agent. Learning curves: `qrmax curves`.
    """
    kind = picture_format(output)
    _refuse_unused(measures, at=at, against=against, logarithmic=logarithmic)
    from qrmax.report.overview_plot import draw_overview
    from qrmax.report.setting_plot import DEFAULT, draw_setting

    found = find_results(study, protocol, folder)
    if against is None:
        [measure] = measures or ("steps" if at is None else "success",)
        picture = draw_overview(*found, kind, measure=measure, at=at)
    else:
        picture = draw_setting(
            *found, against, kind, measures=measures or DEFAULT, logarithmic=logarithmic
        )
    write_or_print(picture, output)


def _refuse_unused(
    measures: tuple[str, ...], *, at: int | None, against: str | None, logarithmic: bool
) -> None:
    """Reject options that do not go together."""
    if against is None and len(measures) > 1:
        raise click.UsageError("--measure can be repeated with --against only.")
    if against is None and logarithmic:
        raise click.UsageError("--log is for --against; steps are on a logarithmic axis anyway.")
    if at is not None and (against is not None or measures not in ((), ("success",))):
        raise click.UsageError("--at is for --measure success, and not for --against.")
