"""Wall-clock time of runs and of steps, as runs have recorded it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qrmax.report.plain_table import Field, PlainTable
from qrmax.report.study_table import own_results, study_layout
from qrmax.report.wording import ABSENT, made_by
from qrmax.studies.problem_groups import Groups
from qrmax.studies.study import Study, numbers_as_text

if TYPE_CHECKING:
    import polars

NOTE = (
    "Median wall-clock times: seconds of learning in a run, microseconds of learning in a step, "
    "and seconds of a run with its evaluations. Compilation is not in them. They depend on the "
    "machine, and on how many runs it executed in parallel. A run that hit its budget has taken "
    "the time of all its steps."
)


class Times(NamedTuple):
    """Medians over the complete runs of a learner."""

    n: int
    censored: int  # runs that hit their budget
    learning: float  # seconds of a run
    step: float  # microseconds
    total: float  # seconds of a run, evaluations included


def time_table(
    study: Study,
    folder: str | os.PathLike[str],
    *,
    groups: Groups | None = None,
    by: str | None = None,
) -> PlainTable:
    """The table of wall-clock times by problem or group, and learner."""
    layout, runs = study_layout(study), own_results(study, folder).filter(status="done")
    named = groups or {problem: (problem,) for problem in study.problems}
    columns = ("problem", "label", "reached", "learning_seconds", "total_seconds", "trained")
    rows = runs.select(columns).drop_nulls().rows(named=True)
    cells = {
        (name, label): _times(
            [row for row in rows if row["label"] == label and row["problem"] in problems]
        )
        for name, problems in named.items()
        for label in study.agents
    }
    return PlainTable(
        title=f"{layout.title}: wall-clock time" + (f", by {by}" if by else ""),
        notes=(
            f"{made_by(layout.command, *_versions(runs))}; seeds {numbers_as_text(study.seeds)}.",
            NOTE,
        ),
        head=(by or "problem", "learner", "n", "at budget", "s per run", "µs per step", "s in all"),
        rows=tuple(
            (name if groups else layout.short_name(name), label, *_texts(times))
            for (name, label), times in cells.items()
        ),
        records=tuple(
            {by or "problem": name, "label": label, **_numbers(times)}
            for (name, label), times in cells.items()
        ),
        left=2,
    )


def _times(runs: Sequence[dict[str, float]]) -> Times | None:
    if not runs:
        return None
    learning, total, trained = (
        np.array([run[name] for run in runs], dtype=np.float64)
        for name in ("learning_seconds", "total_seconds", "trained")
    )
    return Times(
        n=len(runs),
        censored=sum(not run["reached"] for run in runs),
        learning=float(np.median(learning)),
        step=float(np.median(1e6 * learning / trained)),
        total=float(np.median(total)),
    )


def _versions(runs: polars.DataFrame) -> tuple[list[str], list[str]]:
    versions, commits = (sorted(runs[name].drop_nulls().unique()) for name in ("version", "commit"))
    return versions, commits


def _texts(times: Times | None) -> tuple[str, ...]:
    if times is None:
        return ("0", *[ABSENT] * 4)
    seconds = (f"{value:.3g}" for value in (times.learning, times.step, times.total))
    return (str(times.n), str(times.censored), *seconds)


def _numbers(times: Times | None) -> dict[str, Field]:
    return {
        "n": times.n if times else 0,
        "censored": times.censored if times else 0,
        "seconds_per_run": times.learning if times else None,
        "microseconds_per_step": times.step if times else None,
        "total_seconds_per_run": times.total if times else None,
    }
