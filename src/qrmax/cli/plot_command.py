"""`qrmax plot`: overview figures of a study, and measures as functions of a setting."""

from __future__ import annotations

from pathlib import Path

import click

from qrmax.cli.output import examples, picture_format, picture_option, write_or_print
from qrmax.cli.studies import find_results, protocol_option, results_option, study_argument

# those of `report.marks` and `report.improvement_plot`, which take long to import
IMPROVEMENT = "improvement"
MEASURES = ("steps", "success", "gap", IMPROVEMENT)
PARTS = ("world", "map", "task", "group")


@click.command(
    epilog=examples(
        "qrmax plot paper/table4 -o steps.svg",
        "qrmax plot paper/table4 --measure success --at 50000 -o success.pdf",
        "qrmax plot paper/sensitivity --against t_env -o t_env.png",
        "qrmax plot samples/random --measure improvement --by world -o improvement.svg",
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
    "gap of the final policy to the optimum; with --against these may be repeated, for rows of "
    "panels; or the probability of improvement over a learner (--relative-to).  [default: steps; "
    "with --against: steps and gap]",
)
@click.option(
    "--at",
    type=int,
    metavar="STEPS",
    help="Success or gap after this many steps.  [default: at the end]",
)
@click.option(
    "--against",
    metavar="SETTING",
    help="The x axis: a setting in which agents of the study differ, such as t_env.  "
    "[default: the problems]",
)
@click.option(
    "--relative-to",
    metavar="LEARNER",
    help="For improvement: the learner to compare with.  [default: the first of the study]",
)
@click.option(
    "--by",
    type=click.Choice(PARTS),
    help="For improvement: a panel for the problems of each world, map or task, or of each group "
    "in the table [groups] of the study file.",
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
    relative_to: str | None,
    by: str | None,
    logarithmic: bool,
    output: Path,
) -> None:
    """Draw the results of STUDY, or of the study in a results folder, over its problems.

    A mark for each learner on each problem: steps on a logarithmic axis, mean and standard
    deviation over the seeds; success and gap with 95 % confidence intervals. Open marks with an
    arrow are lower bounds on the mean: some runs hit their budget. With --against, a panel for each
    problem, and a line for each agent. With --measure improvement, a row for each learner: the
    probability that it takes fewer steps than another one. Learning curves: `qrmax curves`.
    """
    kind = picture_format(output)
    _refuse_unused(measures, at=at, against=against, logarithmic=logarithmic)
    _refuse_unless_improvement(measures, against, {"relative-to": relative_to, "by": by})
    from qrmax.report.improvement_plot import draw_improvement
    from qrmax.report.overview_plot import draw_overview
    from qrmax.report.setting_plot import DEFAULT, draw_setting

    found = find_results(study, protocol, folder)
    if IMPROVEMENT in measures:
        other = relative_to or found[0].agents[0]
        picture = draw_improvement(*found, other, kind, by=by)
    elif against is None:
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
    if at is not None and (against is not None or measures not in ((), ("success",), ("gap",))):
        raise click.UsageError("--at is for --measure success or gap, and not for --against.")


def _refuse_unless_improvement(
    measures: tuple[str, ...], against: str | None, only: dict[str, str | None]
) -> None:
    """Reject options of this measure with another one, and those that it does not have."""
    for name, value in only.items():
        if value is not None and IMPROVEMENT not in measures:
            raise click.UsageError(f"--{name} is for --measure {IMPROVEMENT}.")
    if IMPROVEMENT in measures and against is not None:
        raise click.UsageError(f"--against is not for --measure {IMPROVEMENT}.")
