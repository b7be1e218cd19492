"""The tables of a study: steps, success, wall-clock time or bounds, by problem or by group."""

from __future__ import annotations

import os

from qrmax.errors import ParameterError, check_choice
from qrmax.report.bound_table import bound_table
from qrmax.report.fixed_budget_table import fixed_budget_table
from qrmax.report.group_table import group_table
from qrmax.report.median_table import improvement_table, median_table, relative_table
from qrmax.report.plain_table import PlainTable
from qrmax.report.study_table import study_table
from qrmax.report.tables import Table
from qrmax.report.time_table import time_table
from qrmax.studies.problem_groups import groups_of
from qrmax.studies.study import Study

MEASURES = ("steps", "median", "improvement", "success", "gap", "time", "bound")


def make_study_table(
    study: Study,
    folder: str | os.PathLike[str],
    measure: str | None = None,
    *,
    by: str | None = None,
    at: int | None = None,
    epsilon: float = 0.1,
    delta: float = 0.05,
    relative_to: str | None = None,
) -> Table | PlainTable:
    """The table of a measure.

    Args:
        study: the study.
        folder: its results folder.
        measure: `steps` to the stopping rule, their `median` and quartiles, the probability of
            `improvement` over a learner, `success` or `gap` of the greedy policy, wall-clock
            `time`, or steps beside the PAC `bound`. By default medians if steps are those for good
            (the rule `stays`), else steps.
        by: `world`, `map`, `task` or `group`: aggregate over problems that have it in common.
        at: for `success` and `gap`: after this many steps; by default at the end.
        epsilon: for `bound`: the accuracy.
        delta: for `bound`: the failure probability.
        relative_to: for `median`: the label of a learner, by whose medians to divide; for
            `improvement`: that of the one to compare with, by default the first.
    """
    if measure is None:
        for_good = {rule["stop"] for rule in study.stops.values()} == {"stays"}
        plain = by is not None and relative_to is None
        measure = "median" if relative_to is not None or (for_good and not plain) else "steps"
    check_choice("measure", measure, MEASURES)
    groups = None if by is None else groups_of(study, by)
    if measure in ("success", "gap"):
        return fixed_budget_table(study, folder, measure, at=at, groups=groups, by=by)
    if measure == "time":
        return time_table(study, folder, groups=groups, by=by)
    if measure == "bound":
        if by is not None:
            raise ParameterError(f"by is {by!r}; allowed for the measure 'bound': None")
        return bound_table(study, folder, epsilon=epsilon, delta=delta)
    if relative_to is not None and measure not in ("median", "improvement"):
        raise ParameterError(
            f"relative_to is for the measures 'median' and 'improvement', not for {measure!r}"
        )
    table = study_table(study, folder)
    if measure == "improvement":
        return improvement_table(table.findings, relative_to or study.agents[0], groups, by)
    if measure == "median" and relative_to is not None:
        return relative_table(table.findings, relative_to, groups, by)
    if measure == "median":
        if by is not None:
            raise ParameterError(
                f"by is {by!r}; allowed for medians: None, or together with relative_to"
            )
        return median_table(table.findings)
    return table if groups is None else group_table(table.findings, groups, str(by))
