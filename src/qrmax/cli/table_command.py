"""`qrmax table`: results in the paper's layout, beside its reference values."""

from __future__ import annotations

from pathlib import Path

import click

from qrmax.cli.output import OutputFile, examples, write_or_print
from qrmax.cli.studies import find_results, protocol_option, results_option, study_argument

FORMATS = {"md": "markdown", "tex": "latex", "csv": "csv"}  # and the method of a table
# those of `report.study_tables` and `studies.problem_groups`, which take long to import
MEASURES = ("steps", "median", "improvement", "success", "gap", "time", "bound")
PARTS = ("world", "map", "task", "group")


@click.command(
    epilog=examples(
        "qrmax table paper/table4 --protocol as-published -o table4.md",
        "qrmax table paper/table4 --by map",
        "qrmax table paper/table1 --results results/table6-as-described",
        "qrmax table paper/table4 --at 50000",
        "qrmax table paper/table4 --measure time",
        "qrmax table samples/office --relative-to qrmax-rm",
        "qrmax table samples/random --measure improvement --by world",
        "qrmax table paper/table4 --measure bound --epsilon 0.1",
        "qrmax table results/smoke-exact --format tex",
    )
)
@study_argument
@protocol_option
@results_option
@click.option(
    "--measure",
    type=click.Choice(MEASURES),
    help="The numbers: steps to the stopping rule; their median and quartiles; the probability of "
    "improvement over a learner (--relative-to, or the first); the success rate or the gap of the "
    "greedy policy; wall-clock time of a run and of a step; or steps beside the PAC bound of the "
    "paper.  "
    "[default: steps; of the rule stays: median; with --at: success]",
)
@click.option(
    "--by",
    type=click.Choice(PARTS),
    help="Means over problems with the same world, map or task, or over each group in the table "
    "[groups] of the study file.",
)
@click.option(
    "--at",
    type=int,
    metavar="STEPS",
    help="Success or gap after this many steps of training.  [default: at the end]",
)
@click.option(
    "--epsilon", type=float, default=0.1, show_default=True, help="The accuracy of the bound."
)
@click.option(
    "--delta", type=float, default=0.05, show_default=True, help="Its failure probability."
)
@click.option(
    "--relative-to",
    metavar="LEARNER",
    help="Instead of medians: the geometric mean over problems of the ratio of its median steps to "
    "each learner's, and the probability that a run takes fewer steps. With --measure improvement: "
    "the learner to compare with.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice([*FORMATS]),
    help="The format.  [default: by the file's suffix, or md]",
)
@click.option("-o", "--output", type=OutputFile(), help="A file.")
def table(
    study: str,
    protocol: str | None,
    folder: Path | None,
    measure: str | None,
    by: str | None,
    at: int | None,
    epsilon: float,
    delta: float,
    relative_to: str | None,
    kind: str | None,
    output: Path | None,
) -> None:
    """Print the table of STUDY, or of the study in a results folder.

    Mean and standard deviation, then medians and interquartile means with 95 % confidence
    intervals, and the probability of improvement of one learner over another. Runs that hit their
    budget are right-censored: counted and shown as such, never averaged. With --by, the mean and
    standard deviation over the problems of each group, or a lower bound on the mean if runs are
    right-censored. Figures: `qrmax plot`.
    """
    from qrmax.report.study_tables import make_study_table

    if kind is None:
        kind = "md" if output is None else output.suffix.removeprefix(".")
    if kind not in FORMATS:
        raise click.UsageError(f"--format is needed for {output}: one of {', '.join(FORMATS)}.")
    measure = measure or (None if at is None else "success")
    _refuse_unused(measure, by=by, at=at, relative_to=relative_to)
    made = make_study_table(
        *find_results(study, protocol, folder),
        measure,
        by=by,
        at=at,
        epsilon=epsilon,
        delta=delta,
        relative_to=relative_to,
    )
    text: str = getattr(made, FORMATS[kind])()
    write_or_print(text.encode(), output)


def _refuse_unused(
    measure: str | None, *, by: str | None, at: int | None, relative_to: str | None
) -> None:
    """Reject options that the measure does not use."""
    instead = f", not for {measure}" if measure else ""
    if relative_to is not None and measure not in (None, "median", "improvement"):
        raise click.UsageError(f"--relative-to is for --measure median or improvement{instead}.")
    if at is not None and measure not in ("success", "gap"):
        raise click.UsageError(f"--at is for --measure success or gap{instead}.")
    if by is not None and measure == "bound":
        raise click.UsageError("--by is not for --measure bound: each problem has its own bound.")
    context = click.get_current_context()
    for name in ("epsilon", "delta"):
        source = context.get_parameter_source(name)
        if measure != "bound" and source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} is for --measure bound{instead}.")
