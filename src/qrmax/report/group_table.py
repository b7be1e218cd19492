"""Steps aggregated over groups of problems: learners by groups, as the paper's table of maps.

A cell is the mean over the problems of a group, and their standard deviation: each problem counts
with the mean over its runs. See `studies/group_statistics.py`.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from qrmax.report.findings import Cell, Findings
from qrmax.report.plain_table import Field, PlainTable
from qrmax.report.wording import ABSENT, counted, made_by, resolution_text
from qrmax.studies.group_statistics import GroupSummary, summarize_group
from qrmax.studies.problem_groups import Groups
from qrmax.studies.study import numbers_as_text


class Published(NamedTuple):
    """Mean and standard deviation over the published values of a group."""

    mean: float
    std: float | None  # None for a single problem


class GroupCell(NamedTuple):
    """A learner on the problems of a group."""

    problems: int
    expected: int  # runs
    summary: GroupSummary | None  # None if no run is complete
    reference: Published | None  # None unless each problem has one

    @property
    def off_by(self) -> float | None:
        """The relative deviation of the mean from the reference; None if either is unknown."""
        if self.reference is None or self.summary is None or self.summary.mean is None:
            return None
        return (self.summary.mean - self.reference.mean) / self.reference.mean

    def text(self) -> str:
        """Mean and standard deviation; a lower bound if runs are right-censored."""
        if (found := self.summary) is None:
            return ABSENT
        if found.mean is not None:
            parts = [_mean_and_std(found.mean, found.std)]
        else:
            parts = [f">= {found.at_least:,.0f} ({found.censored} of {found.n} at budget)"]
        if found.n < self.expected:
            parts.append(f"n = {found.n} of {self.expected}")
        if found.problems < self.problems:
            parts.append(f"{found.problems} of {counted(self.problems, 'problem')}")
        return "; ".join(parts)

    def interval_text(self) -> str:
        """The 95 % confidence interval of the mean, if it is known."""
        if self.summary is None or self.summary.interval is None:
            return ""
        low, high = self.summary.interval
        return f"[{low:,.0f} to {high:,.0f}]"


def group_table(findings: Findings, groups: Groups, by: str) -> PlainTable:
    """The table of steps by group."""
    layout = findings.layout
    cells = {
        (group, label): _group_cell([findings.cells[problem, label] for problem in problems])
        for group, problems in groups.items()
        for label in layout.labels
    }
    return PlainTable(
        title=f"{layout.title}, by {by}",
        notes=tuple(_notes(findings, groups, [*cells.values()])),
        head=("learner", "", *groups),
        rows=tuple(
            row
            for label in layout.labels
            for row in _rows(findings, label, [cells[group, label] for group in groups])
        ),
        records=tuple(
            {by: group, "label": label, **_numbers(cell)} for (group, label), cell in cells.items()
        ),
        left=2,
    )


def _group_cell(cells: Sequence[Cell]) -> GroupCell:
    steps = [cell.steps for cell in cells if cell.steps is not None]
    published = [cell.reference for cell in cells if cell.reference is not None]
    return GroupCell(
        problems=len(cells),
        expected=sum(cell.expected for cell in cells),
        summary=summarize_group(steps) if steps else None,
        reference=_published(published) if len(published) == len(cells) else None,
    )


def _published(values: Sequence[float]) -> Published:
    std = statistics.stdev(values) if len(values) > 1 else None
    return Published(statistics.fmean(values), std)


def _rows(findings: Findings, label: str, cells: Sequence[GroupCell]) -> Iterator[tuple[str, ...]]:
    layout = findings.layout
    yield (label, "ours", *(cell.text() for cell in cells))
    yield ("", "95 %", *(cell.interval_text() for cell in cells))
    if layout.reference:
        references = [cell.reference for cell in cells]
        yield ("", layout.reference_name, *(_mean_and_std(*r) if r else ABSENT for r in references))
    if layout.shows_distance:
        apart = [cell.off_by for cell in cells]
        yield ("", "off by", *("" if off is None else f"{100 * off:+.1f} %" for off in apart))


def _notes(findings: Findings, groups: Groups, cells: Sequence[GroupCell]) -> Iterator[str]:
    layout = findings.layout
    yield layout.about
    parts = [made_by(layout.command, findings.versions, findings.commits)]
    parts += [f"seeds {numbers_as_text(layout.seeds)}"] if layout.seeds else []
    parts.append(
        f"{layout.unit}: mean ± standard deviation over the problems of a group, each with the "
        "mean over its runs; below it the 95 % bootstrap interval of the mean, runs resampled "
        "within each problem"
    )
    text = "; ".join(parts) + "."
    if any(cell.summary and cell.summary.censored for cell in cells):
        text += (
            " With runs that hit their budget the mean is unknown: `>=` precedes a lower bound, in "
            "which these runs count with the budget."
        )
    yield " ".join(filter(None, [text, resolution_text(findings)]))
    names = (
        f"{group}: {', '.join(layout.short_name(problem) for problem in problems)}"
        for group, problems in groups.items()
    )
    yield "; ".join(names) + "."


def _mean_and_std(mean: float, std: float | None) -> str:
    return f"{mean:,.0f}" if std is None else f"{mean:,.0f} ± {std:,.0f}"


def _numbers(cell: GroupCell) -> dict[str, Field]:
    found = cell.summary
    low, high = (found and found.interval) or (None, None)
    return {
        "problems": found.problems if found else 0,
        "n": found.n if found else 0,
        "missing": cell.expected - (found.n if found else 0),
        "censored": found.censored if found else 0,
        "mean": found.mean if found else None,
        "at_least": found.at_least if found else None,
        "std": found.std if found else None,
        "mean_low": low,
        "mean_high": high,
        "reference": cell.reference.mean if cell.reference else None,
        "reference_std": cell.reference.std if cell.reference else None,
        "off_by": cell.off_by,
    }
