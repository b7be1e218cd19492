"""Measures as functions of a setting that the agents of a study differ in, such as `t_env`.

A line for each agent, through its variants: entries of the study that have the same agent and, but
for that one, the same settings. A column of panels for each problem, a row for each measure. Steps
of single runs that met the stopping rule are dots. Lower bounds on means, of runs that hit their
budget, would often dwarf all else: they are drawn no higher than a little above the other marks,
where they are lower bounds still, and no line leads to them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from qrmax.errors import ParameterError, check_choice
from qrmax.pictures.drawing import FORMATS
from qrmax.report.curve_plot import PANELS_IN_A_ROW, TICKS
from qrmax.report.mark_drawing import (
    LOWER_BOUND,
    bound_handle,
    draw_legend,
    draw_mark,
    look,
    tidy_panel,
)
from qrmax.report.marks import MEASURES, Mark, Marks, marks_of
from qrmax.studies.study import Cell, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

PANEL = (4.2, 2.7)  # inches
ASIDE = 0.012  # of the x axis, between the marks of two lines
TOP = 1.15  # of the largest known number
HEADROOM = 1.08  # for arrows
DEFAULT = ("steps", "gap")
THRESHOLD = "threshold of the stopping rule"
SINGLE_RUN = "a run that met the rule"


class Variant(NamedTuple):
    """An entry of a study, as a point of a line."""

    line: str  # the name of the line
    value: float  # of the setting
    label: str  # of the entry


def draw_setting(
    study: Study,
    folder: str | os.PathLike[str],
    setting: str,
    kind: str = "svg",
    *,
    measures: Sequence[str] = DEFAULT,
    logarithmic: bool = False,
) -> bytes:
    """The measures against a numeric setting, as SVG, PNG or PDF.

    Args:
        study: the study.
        folder: its results folder.
        setting: the setting, such as `t_env`.
        kind: the format.
        measures: rows of panels: `steps`, `success`, `gap`.
        logarithmic: whether the setting is on a logarithmic axis.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from qrmax.training.curve_picture import picture_of  # loads matplotlib

    check_choice("format", kind, FORMATS)
    for measure in measures:
        check_choice("measure", measure, MEASURES)
    variants = {
        problem: variants_of([c for c in study.cells if c.problem.label == problem], setting)
        for problem in study.problems
    }
    lines = [*dict.fromkeys(each.line for found in variants.values() for each in found)]
    if not lines:
        raise ParameterError(_no_variants(study, setting))
    problems = [problem for problem, found in variants.items() if found]
    columns = min(len(problems), PANELS_IN_A_ROW)
    blocks = math.ceil(len(problems) / columns)
    rows = blocks * len(measures)
    figure = Figure(figsize=(PANEL[0] * columns, PANEL[1] * rows + 0.6), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    extra: dict[str, Line2D] = {}
    for row, measure in enumerate(measures):
        marks = marks_of(study, folder, measure)
        for number, problem in enumerate(problems):
            block, column = divmod(number, columns)
            panel = panels[block * len(measures) + row, column]
            _draw_panel(panel, marks, problem, variants[problem], lines)
            extra |= _scale(panel, study, measure)
            panel.set_xlabel(setting)
            if logarithmic:
                panel.set_xscale("log")
                values = sorted({variant.value for variant in variants[problem]})
                panel.set_xticks(values, [f"{value:g}" for value in values])
                panel.set_xticks([], minor=True)
            panel.set_title(problem if row == 0 else "", fontsize="medium")
        if any(mark.is_bound for mark in marks.values()):
            extra[SINGLE_RUN] = Line2D([], [], linestyle="none", marker=".", color="0.5")
            extra[LOWER_BOUND] = bound_handle()
    for panel in panels[-len(measures) :, len(problems) - (blocks - 1) * columns :].ravel():
        panel.set_axis_off()
    draw_legend(figure, lines, extra, lines=True)
    return picture_of(figure, kind)


def variants_of(cells: Sequence[Cell], setting: str) -> list[Variant]:
    """The entries on a problem that differ in a numeric setting, in its order.

    >>> import qrmax
    >>> agents = [{"agent": "qrmax", "label": f"t_env {n}", "t_env": n} for n in (20, 5)]
    >>> study = qrmax.Study(["office/map1/exp1"], [*agents, "rmax"])
    >>> for variant in variants_of(study.cells, "t_env"):
    ...     print(variant)
    Variant(line='qrmax', value=5.0, label='t_env 5')
    Variant(line='qrmax', value=20.0, label='t_env 20')
    """
    families: dict[str, list[Cell]] = {}
    for cell in cells:
        if type(cell.settings.get(setting)) in (int, float):
            families.setdefault(repr(_others(cell, setting)), []).append(cell)
    several = [family for family in families.values() if len(family) > 1]
    firsts = [family[0] for family in several]
    names = [_line_name(firsts, first, setting) for first in firsts]
    found = [
        Variant(name, float(cell.settings[setting]), cell.label)
        for name, family in zip(names, several, strict=True)
        for cell in family
    ]
    return sorted(found, key=lambda variant: (names.index(variant.line), variant.value))


def _others(cell: Cell, setting: str) -> list[Any]:
    """The agent and its other settings."""
    rest = {name: value for name, value in cell.settings.items() if name != setting}
    return [cell.agent, sorted(rest.items(), key=lambda item: item[0])]


def _line_name(firsts: Sequence[Cell], cell: Cell, setting: str) -> str:
    """The agent, with the settings by which its lines differ."""
    alike = [other.settings for other in firsts if other.agent == cell.agent]
    differing = [
        f"{name} {value}"
        for name, value in cell.settings.items()
        if name != setting and any(settings.get(name) != value for settings in alike)
    ]
    return ", ".join([cell.agent, *differing])


def _no_variants(study: Study, setting: str) -> str:
    values: dict[tuple[str, str], set[Any]] = {}
    for cell in study.cells:
        for name, value in cell.settings.items():
            if type(value) in (int, float):
                values.setdefault((cell.agent, name), set()).add(value)
    differing = sorted({name for (_, name), found in values.items() if len(found) > 1})
    allowed = f"allowed: {', '.join(differing)}" if differing else "no agent has any variants"
    return (
        f"against is {setting!r}, but no two entries of {study.name!r} differ in this setting "
        f"alone; {allowed}"
    )


def _draw_panel(
    panel: Axes, marks: Marks, problem: str, variants: Sequence[Variant], lines: Sequence[str]
) -> None:
    """Draw the lines of a problem, side by side."""
    values = [each.value for each in variants]
    top = height_of_bounds(
        [marks[problem, each.label] for each in variants if (problem, each.label) in marks]
    )
    apart = ASIDE * (max(values) - min(values))
    for number, line in enumerate(lines):
        aside = (number - (len(lines) - 1) / 2) * apart
        points: list[tuple[float, Mark]] = [
            (each.value + aside, lowered(marks[problem, each.label], top))
            for each in variants
            if each.line == line and (problem, each.label) in marks
        ]
        for x, mark in points:
            panel.plot([x] * len(mark.runs), mark.runs, ".", color=look(number)["color"], alpha=0.4)
            draw_mark(panel, x, mark, number)
        for (left, one), (right, other) in pairwise(points):
            if not (one.is_bound or other.is_bound):
                ends = ([left, right], [one.value, other.value])
                panel.plot(*ends, color=look(number)["color"], linewidth=1.0, zorder=2)


def height_of_bounds(marks: Sequence[Mark]) -> float:
    """The height at which lower bounds are drawn, if they are above it."""
    known = [mark.high for mark in marks if not mark.is_bound]
    known += [steps for mark in marks for steps in mark.runs]
    return TOP * max(known, default=math.inf)


def lowered(mark: Mark, top: float) -> Mark:
    """The same mark, or a weaker lower bound."""
    return mark._replace(value=min(mark.value, top)) if mark.is_bound else mark


def _scale(panel: Axes, study: Study, measure: str) -> Mapping[str, Line2D]:
    """Set the y axis; further lines, for the legend."""
    from matplotlib.ticker import EngFormatter, MaxNLocator, PercentFormatter

    tidy_panel(panel)
    if measure == "steps":
        unit = "steps" if study.max_episodes is None else "episodes"
        panel.set_ylabel(f"training {unit}")
        panel.set_ylim(0.0, HEADROOM * panel.get_ylim()[1])
        panel.yaxis.set_major_locator(MaxNLocator(TICKS))
        panel.yaxis.set_major_formatter(EngFormatter(sep=""))
        return {}
    panel.set_ylabel("final gap to the optimum" if measure == "gap" else "final success")
    panel.yaxis.set_major_formatter(PercentFormatter(1.0))
    panel.set_ylim(bottom=0.0)
    within = study.training.get("within")
    if measure == "success" or within is None:
        return {}
    line = panel.axhline(within, color="0.4", linestyle="--", linewidth=1.0, zorder=1)
    return {THRESHOLD: line}
