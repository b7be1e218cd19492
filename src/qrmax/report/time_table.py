"""Wall-clock and CPU time of runs and of steps, as runs have recorded it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qrmax.report.plain_table import Field, PlainTable
from qrmax.report.study_table import own_results, study_layout
from qrmax.report.wording import ABSENT, made_by, provenance
from qrmax.studies.problem_groups import Groups
from qrmax.studies.study import Study, numbers_as_text

NOTE = (
    "Median wall-clock times: seconds of learning in a run, microseconds of learning in a step, "
    "and seconds of a run with its evaluations; then CPU seconds of the latter. Compilation is not "
    "in those of learning. All depend on the machine, wall-clock times also on whatever else it "
    "executed. A run that hit its budget has taken the time of all its steps."
)


TIMES = ("learning_seconds", "total_seconds", "trained")


class Times(NamedTuple):
    """Medians over the complete runs of a learner."""

    n: int
    censored: int  # runs that hit their budget
    learning: float  # seconds of a run
    step: float  # microseconds
    total: float  # seconds of a run, evaluations included
    cpu: float  # CPU seconds of the same; not a number if runs have recorded none


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
    recorded = runs.select("problem", "label", "reached", *TIMES, "cpu_seconds").drop_nulls(TIMES)
    rows = recorded.rows(named=True)
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
            f"{made_by(layout.command, *provenance(runs))}; seeds {numbers_as_text(study.seeds)}.",
            NOTE,
            _together(rows),
        ),
        head=(
            *(by or "problem", "learner", "n", "at budget"),
            *("s per run", "µs per step", "s in all", "CPU s in all"),
        ),
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


def _together(runs: Sequence[dict[str, float]]) -> str:
    """The CPU time of all runs, if they have recorded it."""
    spent = [run["cpu_seconds"] for run in runs]
    if not spent or None in spent:
        return ""
    return f"Together the {len(spent)} runs took {sum(spent) / 60.0:.3g} CPU minutes."


def _times(runs: Sequence[dict[str, float]]) -> Times | None:
    if not runs:
        return None
    learning, total, trained, cpu = (
        np.array([run[name] for run in runs], dtype=np.float64) for name in (*TIMES, "cpu_seconds")
    )
    return Times(
        n=len(runs),
        censored=sum(not run["reached"] for run in runs),
        learning=float(np.median(learning)),
        step=float(np.median(1e6 * learning / trained)),
        total=float(np.median(total)),
        cpu=float(np.median(cpu)),
    )


def _texts(times: Times | None) -> tuple[str, ...]:
    if times is None:
        return ("0", *[ABSENT] * 5)
    given = (times.learning, times.step, times.total, times.cpu)
    seconds = (ABSENT if np.isnan(value) else f"{value:.3g}" for value in given)
    return (str(times.n), str(times.censored), *seconds)


def _numbers(times: Times | None) -> dict[str, Field]:
    return {
        "n": times.n if times else 0,
        "censored": times.censored if times else 0,
        "seconds_per_run": times.learning if times else None,
        "microseconds_per_step": times.step if times else None,
        "total_seconds_per_run": times.total if times else None,
        "cpu_seconds_per_run": times.cpu if times and not np.isnan(times.cpu) else None,
    }
