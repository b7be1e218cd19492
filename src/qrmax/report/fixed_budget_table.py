"""Success or gap of the greedy policy after a fixed number of steps, with confidence intervals."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from qrmax.report.curve_plot import labels_of
from qrmax.report.layout import Layout
from qrmax.report.plain_table import Field, PlainTable
from qrmax.report.study_table import own_results, study_layout
from qrmax.report.wording import ABSENT, made_by, provenance
from qrmax.studies.fixed_budget import AtBudget, measured_at
from qrmax.studies.group_statistics import group_mean
from qrmax.studies.problem_groups import Groups
from qrmax.studies.statistics import Estimate
from qrmax.studies.study import Study, numbers_as_text

MEANING = {
    "success": "success rate of the greedy policy",
    "gap": "gap of the greedy policy to the optimum, relative to it,",
}


class ShareCell(NamedTuple):
    """The success or gap of a learner on one problem or several."""

    n: int  # runs that count
    expected: int  # by the number of seeds
    left_out: int  # runs that ended before
    share: Estimate | None  # mean over problems, each with the mean over its runs

    def text(self) -> str:
        """The mean and its confidence interval, in percent."""
        if self.share is None:
            return ABSENT
        value, low, high = (100.0 * share for share in self.share)
        text = f"{value:.1f} % [{low:.1f} to {high:.1f}]"
        if self.n + self.left_out < self.expected:
            text += f"; n = {self.n} of {self.expected}"
        return f"{text}; {self.left_out} left out" if self.left_out else text


def fixed_budget_table(
    study: Study,
    folder: str | os.PathLike[str],
    measure: str,
    *,
    at: int | None = None,
    groups: Groups | None = None,
    by: str | None = None,
) -> PlainTable:
    """The table of success or gap after `at` steps: problems by learners, or learners by groups."""
    found, labels = measured_at(study, folder, measure, at), labels_of(study)
    layout = study_layout(study)
    named = groups or {problem: (problem,) for problem in study.problems}
    cells = {
        (name, label): share_cell(
            [found.get((problem, label)) for problem in problems], len(study.seeds)
        )
        for name, problems in named.items()
        for label in labels
    }
    when = "at the end of training" if at is None else f"after {at:,} steps"
    return PlainTable(
        title=f"{layout.title}: {measure} {when}" + (f", by {by}" if by else ""),
        notes=(
            layout.about,
            f"{made_by(layout.command, *provenance(own_results(study, folder)))}; "
            f"seeds {numbers_as_text(study.seeds)}.",
            _note(study, layout, measure, when, cells, named if groups else {}),
        ),
        head=("problem", *labels) if groups is None else ("learner", *named),
        rows=tuple(_rows(layout, cells, named, labels, by_group=groups is not None)),
        records=tuple(
            {
                by or "problem": name,
                "label": label,
                "at": at or study.max_steps,
                **_numbers(measure, cell),
            }
            for (name, label), cell in cells.items()
        ),
    )


def share_cell(rates: Sequence[AtBudget | None], seeds: int) -> ShareCell:
    """The mean over problems; None for a problem without complete runs."""
    known = [each for each in rates if each is not None]
    strata = [each.values for each in known if len(each.values)]
    return ShareCell(
        n=sum(map(len, strata)),
        expected=len(rates) * seeds,
        left_out=sum(each.left_out for each in known),
        share=group_mean(strata) if strata and len(strata) == len(rates) else None,
    )


def _rows(
    layout: Layout,
    cells: Mapping[tuple[str, str], ShareCell],
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
    measure: str,
    when: str,
    cells: Mapping[tuple[str, str], ShareCell],
    groups: Groups,
) -> str:
    every = study.training["evaluate_every"]
    text = (
        f"The {MEANING[measure]} {when}: mean over the runs, with its 95 % bootstrap interval. "
        f"Policies were evaluated every {every:,} steps; a run that met its stopping rule before "
        f"keeps the {measure} of its final policy. A number n is given if some runs are missing, "
        "or were not run by a rule of the study."
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


def _numbers(measure: str, cell: ShareCell) -> dict[str, Field]:
    value, low, high = cell.share or (None, None, None)
    return {
        "n": cell.n,
        "left_out": cell.left_out,
        measure: value,
        f"{measure}_low": low,
        f"{measure}_high": high,
    }
