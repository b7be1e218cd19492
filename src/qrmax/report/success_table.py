"""Success of the greedy policy after a fixed number of steps, with 95 % confidence intervals."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from qrmax.report.curve_plot import labels_of
from qrmax.report.layout import Layout
from qrmax.report.plain_table import Field, PlainTable
from qrmax.report.study_table import study_layout
from qrmax.report.wording import ABSENT, made_by
from qrmax.studies.fixed_budget import SuccessRates, success_at
from qrmax.studies.group_statistics import group_mean
from qrmax.studies.problem_groups import Groups
from qrmax.studies.statistics import Estimate
from qrmax.studies.study import Study, numbers_as_text


class SuccessCell(NamedTuple):
    """The success of a learner on one problem or several."""

    n: int  # runs that count
    left_out: int  # runs that ended before
    success: Estimate | None  # mean over problems, each with the mean over its runs

    def text(self) -> str:
        """The mean and its confidence interval, in percent."""
        if self.success is None:
            return ABSENT
        value, low, high = (100.0 * share for share in self.success)
        text = f"{value:.1f} % [{low:.1f} to {high:.1f}]"
        return f"{text}; {self.left_out} left out" if self.left_out else text


def success_table(
    study: Study,
    folder: str | os.PathLike[str],
    *,
    at: int | None = None,
    groups: Groups | None = None,
    by: str | None = None,
) -> PlainTable:
    """The table of success after `at` steps: problems by learners, or learners by groups."""
    found, labels = success_at(study, folder, at), labels_of(study)
    layout = study_layout(study)
    named = groups or {problem: (problem,) for problem in study.problems}
    cells = {
        (name, label): success_cell([found.get((problem, label)) for problem in problems])
        for name, problems in named.items()
        for label in labels
    }
    when = "at the end of training" if at is None else f"after {at:,} steps"
    return PlainTable(
        title=f"{layout.title}: success {when}" + (f", by {by}" if by else ""),
        notes=(layout.about, _note(study, layout, when, cells, named if groups else {})),
        head=("problem", *labels) if groups is None else ("learner", *named),
        rows=tuple(_rows(layout, cells, named, labels, by_group=groups is not None)),
        records=tuple(
            {by or "problem": name, "label": label, "at": at or study.max_steps, **_numbers(cell)}
            for (name, label), cell in cells.items()
        ),
    )


def success_cell(rates: Sequence[SuccessRates | None]) -> SuccessCell:
    """The mean over problems; None for a problem without complete runs."""
    known = [each for each in rates if each is not None]
    strata = [each.values for each in known if len(each.values)]
    return SuccessCell(
        n=sum(map(len, strata)),
        left_out=sum(each.left_out for each in known),
        success=group_mean(strata) if strata and len(strata) == len(rates) else None,
    )


def _rows(
    layout: Layout,
    cells: Mapping[tuple[str, str], SuccessCell],
    named: Groups,
    labels: Sequence[str],
    *,
    by_group: bool,
) -> list[tuple[str, ...]]:
    if by_group:
        return [(label, *(cells[name, label].text() for name in named)) for label in labels]
    return [
        (layout.short_name(name), *(cells[name, label].text() for label in labels))
        for name in named
    ]


def _note(
    study: Study,
    layout: Layout,
    when: str,
    cells: Mapping[tuple[str, str], SuccessCell],
    groups: Groups,
) -> str:
    every = study.training["evaluate_every"]
    text = (
        f"{made_by(layout.command, (), ())}; seeds {numbers_as_text(study.seeds)}. Success rate of "
        f"the greedy policy {when}: mean over the runs, with its 95 % bootstrap interval. Policies "
        f"were evaluated every {every:,} steps; a run that met its stopping rule before keeps the "
        "success of its final policy."
    )
    if any(cell.left_out for cell in cells.values()):
        text += " Runs that ended before that, without meeting the rule, are left out and counted."
    if groups:
        text += " Means over the problems of each group: " + "; ".join(
            f"{group}: {', '.join(map(layout.short_name, problems))}"
            for group, problems in groups.items()
        )
        text += "."
    return text


def _numbers(cell: SuccessCell) -> dict[str, Field]:
    value, low, high = cell.success or (None, None, None)
    return {
        "n": cell.n,
        "left_out": cell.left_out,
        "success": value,
        "success_low": low,
        "success_high": high,
    }
