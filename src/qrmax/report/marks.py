"""Marks of figures: a number for each problem and learner, with an error bar.

steps     mean and standard deviation of the steps to the stopping rule; if runs hit their
          budget, a lower bound on the mean, without an error bar
success   mean success of the greedy policies, with its 95 % confidence interval
gap       mean gap of the greedy policies to the optimum, with its 95 % confidence interval
"""

from __future__ import annotations

import os
from typing import NamedTuple

from qrmax.report.findings import Cell
from qrmax.report.study_table import study_table
from qrmax.studies.fixed_budget import measured_at
from qrmax.studies.statistics import mean_estimate
from qrmax.studies.study import Study

MEASURES = ("steps", "success", "gap")


class Mark(NamedTuple):
    """A number with the ends of its error bar."""

    value: float
    low: float
    high: float
    is_bound: bool = False  # a lower bound, as runs are right-censored
    runs: tuple[float, ...] = ()  # the steps of each uncensored run


Marks = dict[tuple[str, str], Mark]
"""By problem and learner."""


def marks_of(
    study: Study, folder: str | os.PathLike[str], measure: str, at: int | None = None
) -> Marks:
    """The marks of a measure; `at` is for success and gap, as in `fixed_budget.py`."""
    if measure == "steps":
        cells = study_table(study, folder).findings.cells
        found = {key: _steps_mark(cell) for key, cell in cells.items()}
        return {key: mark for key, mark in found.items() if mark is not None}
    found_at = measured_at(study, folder, measure, at)
    return {
        key: Mark(*mean_estimate(each.values)) for key, each in found_at.items() if each.values.size
    }


def _steps_mark(cell: Cell) -> Mark | None:
    found = cell.summary
    if found is None or cell.steps is None:
        return None
    if found.censored or found.mean is None:
        least = found.mean_at_least
        return Mark(least, least, least, is_bound=True, runs=cell.steps.reached)
    std = found.std or 0.0
    return Mark(found.mean, found.mean - std, found.mean + std, runs=cell.steps.reached)
