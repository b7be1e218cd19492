"""The text of table cells, shared by Markdown and LaTeX.

Each problem has up to three rows, so that numbers to be compared are close together and six
learners still fit side by side: ours, the reference, and the deviation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from qrmax.report.findings import CLOSE, Cell, Final, Findings
from qrmax.studies.statistics import Estimate, Summary
from qrmax.training.rollouts import significant

if TYPE_CHECKING:
    import polars

ABSENT = "—"
FINAL_HEADS = {  # the columns of the last policies
    "problem": "problem",
    "label": "learner",
    "n": "n",
    "gap": "gap [95 %]",
    "success": "success [95 %]",
    "episode_return": "return [95 %]",
    "reached": "threshold reached",
}


OWN_HEADS = ("problem", "learner", "n", "final own gap [95 %]", "own rule met")
"""The columns of the learners by their own objectives."""


class Row(NamedTuple):
    """A row of the main table: its source, and one text for each column."""

    name: str
    cells: tuple[str, ...]


def heads(findings: Findings) -> tuple[str, ...]:
    """The names of the columns."""
    layout = findings.layout
    return (*layout.labels, *(("VI length", "VI success") if layout.has_optimum else ()))


def rows(findings: Findings, problem: str) -> Iterator[Row]:
    """The rows of a problem; the first has our numbers."""
    layout, cells = findings.layout, findings.row(problem)
    width = len(heads(findings))
    yield Row("ours", (*map(mean_text, cells), *_optimum(findings, layout.optimum.get(problem))))
    if layout.has_reference:
        references = [ABSENT if c.reference is None else f"{c.reference:,.0f}" for c in cells]
        optimum = _optimum(findings, layout.optimum_reference.get(problem))
        yield Row(layout.reference_name, (*references, *optimum))
    if layout.shows_distance:
        apart = ["" if cell.off_by is None else f"{100 * cell.off_by:+.1f} %" for cell in cells]
        yield Row("off by", _filled(apart, width))


def how_many_are_close(findings: Findings) -> Row | None:
    """For each learner, the number of problems on which its mean is close to the reference."""
    layout = findings.layout
    if not layout.shows_distance:
        return None
    counts = []
    for label in layout.labels:
        cells = [cell for cell in findings.column(label) if cell.reference is not None]
        counts.append(f"{sum(cell.is_close for cell in cells)} of {len(cells)}" if cells else "")
    return Row(f"within {100 * CLOSE:.0f} %", _filled(counts, len(heads(findings))))


def final_heads(findings: Findings) -> tuple[str, ...]:
    """The names of the columns of the last policies."""
    return tuple(FINAL_HEADS[column] for column in _final_columns(findings))


def final_rows(findings: Findings) -> Iterator[tuple[str, ...]]:
    """The rows of the last policies."""
    columns = _final_columns(findings)
    for final in findings.finals:
        texts = {
            "problem": findings.layout.short_name(final.problem),
            "label": final.label,
            "n": str(final.n),
            "gap": share_text(final.gap),
            "success": share_text(final.success),
            "episode_return": share_text(final.episode_return),
            "reached": _reached_text(final, findings.layout.unit),
        }
        yield tuple(texts[column] or ABSENT for column in columns)


def own_rows(findings: Findings) -> Iterator[tuple[str, ...]]:
    """The rows of the learners by their own objectives."""
    for own in findings.own:
        after = "" if own.steps is None else f", after {estimate_text(own.steps)}"
        met = f"{own.reached} of {own.n}{after}"
        if findings.layout.tests_samples:
            met = ABSENT  # which would be another sample at every check
        name = findings.layout.short_name(own.problem)
        yield (name, own.label, str(own.n), share_text(own.gap), met)


def _final_columns(findings: Findings) -> list[str]:
    """The columns of the last policies, by name: gap and return only if one is known."""
    has = {
        "gap": any(final.gap is not None for final in findings.finals),
        "episode_return": any(final.episode_return is not None for final in findings.finals),
        "reached": bool(findings.layout.thresholds),
    }
    return [column for column in FINAL_HEADS if has.get(column, True)]


def _reached_text(final: Final, unit: str) -> str:
    """The runs that met the stopping rule, and their steps; empty if that is not known."""
    if not final.judged:
        return ""
    after = "" if final.steps is None else f", after {estimate_text(final.steps)} {unit}"
    return f"{final.reached} of {final.judged}{after}"


def mean_text(cell: Cell) -> str:
    """Mean and standard deviation of the uncensored runs, and the number of censored ones.

    With right-censored runs there is no mean over all runs.
    """
    parts = []
    if (summary := cell.summary) is not None:
        got_there = _mean_and_std(summary)
        if not summary.censored:
            parts.append(got_there)
        elif got_there:
            missed = f"{summary.censored} of {summary.n} >= {summary.budget:,}"
            parts.append(f"{got_there}, and {missed}")
        else:
            parts.append(f">= {summary.budget:,} ({summary.censored} of {summary.n})")
    if cell.not_run:
        is_futile = cell.summary is not None and cell.summary.censored == cell.n
        parts.append(f"{cell.not_run} not run" if is_futile else f"n = {cell.n}")
    elif cell.n < cell.expected:
        parts.append(f"n = {cell.n} of {cell.expected}")
    return "; ".join(parts)


def interval_text(cell: Cell) -> str:
    """The 95 % confidence interval of the mean; of the median if runs are right-censored."""
    if (summary := cell.summary) is None:
        return ""
    if summary.mean_interval is None:
        return f"median {estimate_text(summary.median)}"
    low, high = summary.mean_interval
    return f"[{low:,.0f} to {high:,.0f}]"


def resolution_text(findings: Findings) -> str:
    """The resolution of the steps; empty if it is one step, or unknown."""
    if not (apart := findings.resolutions):
        return ""
    checks = " or ".join(f"{steps:,}" for steps in apart)
    one = f"{apart[0]:,}" if len(apart) == 1 else "that"
    if (dense := findings.dense_checks) is not None:
        return (
            f"Steps are interval-censored: policies were evaluated every {checks} steps up to "
            f"{dense * apart[0]:,} steps, then at intervals that double as the steps do, at most "
            f"{200 / dense:.1f} % of them. Lower ends of intervals are those of the evaluations "
            "before."
        )
    return (
        f"Steps are interval-censored: policies were evaluated every {checks} steps, so a "
        f"run recorded at n steps met the stopping rule between n - {one} and n. Lower ends of "
        "intervals are lowered by as much; a standard deviation below half of it is shown as "
        "less than it."
    )


def estimate_text(estimate: Estimate) -> str:
    """A number of steps with its confidence interval.

    >>> estimate_text(Estimate(36500.0, 36000.0, math.inf))
    '36,500 [36,000 to ∞]'
    """
    value, low, high = ("∞" if math.isinf(x) else f"{x:,.0f}" for x in estimate)
    return f"{value} [{low} to {high}]"


def share_text(estimate: Estimate | None) -> str:
    """A mean of any size with its confidence interval.

    >>> share_text(Estimate(0.5, 0.25, 0.75)), share_text(None)
    ('0.5 [0.25 to 0.75]', '')
    >>> share_text(Estimate(-1000.0, -1234.5, -999.0))
    '-1,000 [-1,234 to -999]'
    """
    if estimate is None:
        return ""
    value, low, high = (significant(number, 3) for number in estimate)
    return f"{value} [{low} to {high}]"


def success_text(shares: Sequence[float]) -> str:
    """Success rates: mean, minimum and maximum.

    >>> success_text([0.25, 0.75])
    '50 % (25 to 75)'
    """
    if not shares:
        return ""
    mean, least, most = (100 * x for x in (sum(shares) / len(shares), min(shares), max(shares)))
    return f"{mean:.0f} % ({least:.0f} to {most:.0f})"


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "run"), counted(2, "run")
    ('1 run', '2 runs')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def provenance(runs: polars.DataFrame) -> tuple[list[str], list[str]]:
    """The versions and the commits that made runs."""
    versions, commits = (sorted(runs[name].drop_nulls().unique()) for name in ("version", "commit"))
    return versions, commits


def made_by(command: str, versions: Sequence[str], commits: Sequence[str]) -> str:
    """The command, version and commit that made results, as far as they are known.

    >>> made_by("qrmax sweep smoke", ["0.1.0"], [])
    'Made by `qrmax sweep smoke` with qrmax 0.1.0'
    """
    words = ["Made"]
    if command:
        words.append(f"by `{command}`")
    if versions:
        words.append(f"with qrmax {' and '.join(versions)}")
    if commits:
        words.append(f"at commit{'s' if len(commits) > 1 else ''} {' and '.join(commits)}")
    return " ".join(words)


def _mean_and_std(summary: Summary) -> str:
    """Mean and standard deviation, which evaluations r steps apart change by up to r/2."""
    mean, std, resolution = summary.mean, summary.std, summary.resolution
    if mean is None:
        return ""
    if std is None:
        return f"{mean:,.0f}"
    if resolution is not None and resolution > 1 and std < resolution / 2:
        return f"{mean:,.0f} ± <{resolution:,}"
    return f"{mean:,.0f} ± {std:,.0f}"


def _optimum(findings: Findings, optimum: tuple[float | None, float] | None) -> tuple[str, ...]:
    if not findings.layout.has_optimum:
        return ()
    if optimum is None:
        return (ABSENT, ABSENT)
    length, success = optimum
    return (ABSENT if length is None else f"{length:.2f}", f"{100 * success:.2f} %")


def _filled(texts: list[str], width: int) -> tuple[str, ...]:
    return (*texts, *[""] * (width - len(texts)))
