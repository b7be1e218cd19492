"""The tables of a study: steps, success, wall-clock time or bounds, by problem or by group."""

from __future__ import annotations

import os

from qrmax.errors import ParameterError, check_choice
from qrmax.report.bound_table import bound_table
from qrmax.report.group_table import group_table
from qrmax.report.plain_table import PlainTable
from qrmax.report.study_table import study_table
from qrmax.report.success_table import success_table
from qrmax.report.tables import Table
from qrmax.report.time_table import time_table
from qrmax.studies.problem_groups import groups_of
from qrmax.studies.study import Study

MEASURES = ("steps", "success", "time", "bound")


def make_study_table(
    study: Study,
    folder: str | os.PathLike[str],
    measure: str = "steps",
    *,
    by: str | None = None,
    at: int | None = None,
    epsilon: float = 0.1,
    delta: float = 0.05,
) -> Table | PlainTable:
    """The table of a measure.

    Args:
        study: the study.
        folder: its results folder.
        measure: `steps` to the stopping rule, `success` of the greedy policy, wall-clock `time`, or
            steps beside the PAC `bound`.
        by: `world`, `map`, `task` or `group`: aggregate over problems that have it in common.
        at: for `success`: after this many steps; by default at the end.
        epsilon: for `bound`: the accuracy.
        delta: for `bound`: the failure probability.
    """
    check_choice("measure", measure, MEASURES)
    groups = None if by is None else groups_of(study, by)
    if measure == "success":
        return success_table(study, folder, at=at, groups=groups, by=by)
    if measure == "time":
        return time_table(study, folder, groups=groups, by=by)
    if measure == "bound":
        if by is not None:
            raise ParameterError(f"by is {by!r}; allowed for the measure 'bound': None")
        return bound_table(study, folder, epsilon=epsilon, delta=delta)
    table = study_table(study, folder)
    return table if groups is None else group_table(table.findings, groups, str(by))
