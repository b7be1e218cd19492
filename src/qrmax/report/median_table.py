"""Medians of the steps of a study, and learners relative to one of them.

A cell is the median over the runs with its quartiles and, if some runs hit their budget, how many.
Quartiles are steps that occurred; one that hit the budget is shown as `>=` the budget. Relative to
a learner: `studies/ratio_statistics.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from qrmax.errors import check_choice
from qrmax.report.findings import Cell, Findings
from qrmax.report.layout import Layout
from qrmax.report.plain_table import Field, PlainTable
from qrmax.report.wording import ABSENT, counted, made_by, resolution_text
from qrmax.studies.problem_groups import Groups
from qrmax.studies.ratio_statistics import Comparison, compare
from qrmax.studies.statistics import Steps, comparable, median
from qrmax.studies.study import numbers_as_text

ALL = "all problems"


def median_table(findings: Findings) -> PlainTable:
    """The table of medians: problems by learners."""
    layout = findings.layout
    rows = [
        (layout.short_name(problem), *(_median_text(cell) for cell in findings.row(problem)))
        for problem in layout.problems
    ]
    failures = [_failures(findings.column(label)) for label in layout.labels]
    note = (
        f"{_origin(findings)} {layout.unit.capitalize()}: median over the runs [lower to upper "
        "quartile], and the runs that hit their budget, which count as slower than all that did "
        "not. Below: those on all problems."
    )
    return PlainTable(
        title=f"{layout.title}: medians",
        notes=(layout.about, layout.levels, f"{note} {resolution_text(findings)}".rstrip()),
        head=("problem", *layout.labels),
        rows=(*rows, ("at budget", *failures)),
        records=tuple(
            {"problem": problem, "label": label, **_level(layout, label), **_numbers(cell)}
            for (problem, label), cell in findings.cells.items()
        ),
    )


def relative_table(
    findings: Findings, other: str, groups: Groups | None = None, by: str | None = None
) -> PlainTable:
    """The table of learners relative to one of them: a column for each group of problems."""
    layout = findings.layout
    found = comparisons(findings, other, groups)
    named = [*dict.fromkeys(group for group, _ in found)]
    heads = [
        f"{group}: {what}" for group in named for what in ("speedup", f"P(fewer {layout.unit})")
    ]
    rows = [
        (label, *(text for group in named for text in _texts(found[group, label])))
        for label in layout.labels
        if label != other
    ]
    return PlainTable(
        title=f"{layout.title}, relative to {other}",
        notes=(layout.about, layout.levels, _explained(findings, other, [*found.values()])),
        head=("learner", *heads),
        rows=tuple(rows),
        records=tuple(
            {by or "group": group, "label": label, **_level(layout, label), **_fields(comparison)}
            for (group, label), comparison in found.items()
        ),
    )


def improvement_table(
    findings: Findings, other: str, groups: Groups | None = None, by: str | None = None
) -> PlainTable:
    """The table of probabilities of improvement over a learner, the likeliest first.

    The order is that of the first group of problems.
    """
    layout = findings.layout
    found = comparisons(findings, other, groups)
    named = [*dict.fromkeys(group for group, _ in found)]
    labels = sorted(
        (label for label in layout.labels if label != other),
        key=lambda label: -_probability(found[named[0], label]),
    )
    heads = [f"{group}: {what}" for group in named for what in ("P", "problems")]
    rows = [
        (label, *(text for group in named for text in _chance_texts(found[group, label])))
        for label in labels
    ]
    return PlainTable(
        title=f"{layout.title}: probability of improvement over {other}",
        notes=(
            layout.about,
            layout.levels,
            f"{_origin(findings)} {_chance_explained(findings, other, [*found.values()])}",
        ),
        head=("learner", *heads),
        rows=tuple(rows),
        records=tuple(
            {by or "group": group, "label": label, **_level(layout, label), **_fields(comparison)}
            for (group, label), comparison in found.items()
        ),
    )


def comparisons(
    findings: Findings, other: str, groups: Groups | None = None
) -> dict[tuple[str, str], Comparison | None]:
    """Each learner compared with one of them, by group of problems and label; None without any."""
    layout = findings.layout
    check_choice("relative_to", other, layout.labels)
    named: Mapping[str, Sequence[str]] = groups or {ALL: layout.problems}
    return {
        (group, label): _compared(findings, problems, label, other)
        for group, problems in named.items()
        for label in layout.labels
        if label != other
    }


def _compared(
    findings: Findings, problems: Sequence[str], label: str, other: str
) -> Comparison | None:
    """The comparison on the problems on which both have runs with the same budget."""
    pairs = [
        (ours.steps, theirs.steps)
        for problem in problems
        if (ours := findings.cells[problem, label]).steps
        and (theirs := findings.cells[problem, other]).steps
        and comparable(ours.steps, theirs.steps)
    ]
    return compare([one for one, _ in pairs], [two for _, two in pairs]) if pairs else None


def _origin(findings: Findings) -> str:
    layout = findings.layout
    seeds = f"; seeds {numbers_as_text(layout.seeds)}" if layout.seeds else ""
    return f"{made_by(layout.command, findings.versions, findings.commits)}{seeds}."


def _explained(findings: Findings, other: str, found: Sequence[Comparison | None]) -> str:
    unit = findings.layout.unit
    text = (
        f"{_origin(findings)} Speedup: the geometric mean over problems of the ratio of medians, "
        f"{unit} of {other} over those of the learner. {_chance_explained(findings, other, found)}"
    )
    if any(each and (each.ours_at_budget or each.theirs_at_budget) for each in found):
        text += (
            " Medians at the budget count with the budget: a speedup is a lower bound (>=) if that "
            f"is so of {other} on some problems, an upper bound (<=) if of the learner, and "
            "neither (~) if of both; the numbers of such problems follow."
        )
    return text


def _chance_explained(findings: Findings, other: str, found: Sequence[Comparison | None]) -> str:
    unit = findings.layout.unit
    known = [comparison for comparison in found if comparison is not None]
    resampled = (
        "problems resampled"
        if any(each.over_problems for each in known)
        else "runs resampled within each problem"
    )
    text = (
        f"P: the probability that a run takes fewer {unit} than one of {other} on the same "
        f"problem, ties count half; the mean over problems. In brackets 95 % bootstrap intervals, "
        f"{resampled}."
    )
    if any(each.undecided for each in known):
        text += (
            " Two runs at the budget are undecided: they count half, and the share of such pairs "
            "follows if it is not 0; longer budgets could change P by half of that."
        )
    return text


def _texts(found: Comparison | None) -> tuple[str, str]:
    if found is None:
        return ABSENT, ABSENT
    bounds = (found.theirs_at_budget > 0, found.ours_at_budget > 0)
    sign = {(True, False): ">= ", (False, True): "<= ", (True, True): "~ "}.get(bounds, "")
    value, low, high = found.speedup
    text = f"{sign}{value:.2f} [{low:.2f} to {high:.2f}]"
    if any(bounds):
        text += f", at budget {found.theirs_at_budget} and {found.ours_at_budget}"
        text += f" of {counted(found.problems, 'problem')}"
    return text, _chance_text(found)


def _chance_texts(found: Comparison | None) -> tuple[str, str]:
    return (ABSENT, "0") if found is None else (_chance_text(found), str(found.problems))


def _chance_text(found: Comparison) -> str:
    chance = "{:.2f} [{:.2f} to {:.2f}]".format(*found.improvement)
    return chance + (f", undecided {100 * found.undecided:.0f} %" if found.undecided else "")


def _probability(found: Comparison | None) -> float:
    return -1.0 if found is None else found.improvement.value


def _median_text(cell: Cell) -> str:
    if (steps := cell.steps) is None:
        return ABSENT
    middle, low, high = (_steps_text(x, steps) for x in _quartiles(steps))
    text = f"{middle} [{low} to {high}]" if steps.n > 1 else middle
    if steps.censored:
        text += f"; {steps.censored} of {steps.n} at budget"
    return text if cell.n == cell.expected else f"{text}; n = {cell.n} of {cell.expected}"


def _steps_text(value: float, steps: Steps) -> str:
    return f"{value:,.0f}" if np.isfinite(value) else f">= {steps.budget:,}"


def _quartiles(steps: Steps) -> tuple[float, float, float]:
    """The median and the quartiles, infinite if they depend on censored runs."""
    values = np.sort(steps.values())
    low, high = (float(values[int(np.ceil(share * len(values))) - 1]) for share in (0.25, 0.75))
    return float(median(values)), low, high


def _failures(cells: Sequence[Cell]) -> str:
    known = [cell.steps for cell in cells if cell.steps is not None]
    return f"{sum(steps.censored for steps in known)} of {sum(steps.n for steps in known)}"


def _level(layout: Layout, label: str) -> dict[str, Field]:
    return {"information": layout.information.get(label)} if layout.information else {}


def _numbers(cell: Cell) -> dict[str, Field]:
    steps = cell.steps
    quartiles = (None, None, None) if steps is None else _quartiles(steps)
    values = () if steps is None else steps.values()
    return {
        "n": cell.n,
        "missing": cell.expected - cell.n,
        "censored": steps.censored if steps else None,
        "budget": steps.budget if steps else None,
        **dict(zip(("median", "lower_quartile", "upper_quartile"), quartiles, strict=True)),
        "least": float(min(values)) if len(values) else None,
        "most": float(max(values)) if len(values) else None,
    }


def _fields(found: Comparison | None) -> dict[str, Field]:
    nothing = (None, None, None)
    speedup, chance = (found.speedup, found.improvement) if found else (nothing, nothing)
    return {
        "problems": found.problems if found else 0,
        **dict(zip(("speedup", "speedup_low", "speedup_high"), speedup, strict=True)),
        **dict(zip(("improvement", "improvement_low", "improvement_high"), chance, strict=True)),
        "ours_at_budget": found.ours_at_budget if found else None,
        "theirs_at_budget": found.theirs_at_budget if found else None,
        "undecided": found.undecided if found else None,
    }
