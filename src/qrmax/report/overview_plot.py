"""Overview figures of a study: all problems along the x axis, a mark for each learner.

Steps are on a logarithmic axis, mean and standard deviation; success and gaps have 95 % confidence
intervals. Problems are grouped by the first parts of their names, such as their maps.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from qrmax.errors import check_choice
from qrmax.pictures.drawing import FORMATS
from qrmax.planning.policy_evaluation import evaluate
from qrmax.planning.value_iteration import solve
from qrmax.report.curve_plot import labels_of
from qrmax.report.layout import Layout
from qrmax.report.mark_drawing import (
    LOWER_BOUND,
    bound_handle,
    draw_legend,
    draw_mark,
    tidy_panel,
)
from qrmax.report.marks import MEASURES, Marks, marks_of
from qrmax.studies.problem_specs import Environment
from qrmax.studies.study import Study
from qrmax.training.domains.tabular_domain import TabularDomain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

HEIGHT = 4.0  # inches, without the legend
LEAST_WIDTH, MOST_WIDTH = 5.0, 14.0
MARK_WIDTH = 0.085  # inches along the axis for a mark
SPACE = 0.3  # of the width of a problem, between two of them
LONG_NAME = 9  # characters: longer names are turned
FEW_DECADES = 1e4  # with ticks in between
OPTIMUM, BUDGET = "policy of optimal value", "budget of a run"


def draw_overview(
    study: Study,
    folder: str | os.PathLike[str],
    kind: str = "svg",
    *,
    measure: str = "steps",
    at: int | None = None,
) -> bytes:
    """The overview of a measure, as SVG, PNG or PDF.

    Args:
        study: the study.
        folder: its results folder.
        kind: the format.
        measure: `steps` to the stopping rule, `success` of the greedy policy, or its `gap` to the
            optimum.
        at: for `success`: after this many steps; by default at the end.
    """
    from matplotlib.figure import Figure

    from qrmax.training.curve_picture import picture_of  # loads matplotlib

    check_choice("format", kind, FORMATS)
    check_choice("measure", measure, MEASURES)
    marks = marks_of(study, folder, measure, at)
    labels = [name for name in labels_of(study) if any(name == label for _, label in marks)]
    problems = [name for name in study.problems if any(name == problem for problem, _ in marks)]
    width = 1.2 + len(problems) * max(0.5, (len(labels) + 1) * MARK_WIDTH)
    figure = Figure(
        figsize=(min(max(width, LEAST_WIDTH), MOST_WIDTH), HEIGHT + 0.6), layout="constrained"
    )
    panel = figure.subplots()
    for (problem, label), mark in marks.items():
        x = problems.index(problem) + _shift(labels.index(label), len(labels))
        draw_mark(panel, x, mark, labels.index(label))
    _name_problems(panel, problems)
    tidy_panel(panel)
    extra = _scale(panel, study, measure, at, problems, marks)
    if any(mark.is_bound for mark in marks.values()):
        extra[LOWER_BOUND] = bound_handle()
    draw_legend(figure, labels, extra)
    return picture_of(figure, kind)


def _shift(number: int, labels: int) -> float:
    """The place of a learner's mark, relative to the middle of its problem.

    >>> [round(_shift(number, 3), 2) for number in range(3)]
    [-0.23, 0.0, 0.23]
    """
    return (number - (labels - 1) / 2) * (1.0 - SPACE) / labels


def _name_problems(panel: Axes, problems: Sequence[str]) -> None:
    """Name the problems below the axis, and groups of several below their names."""
    layout = Layout(title="", problems=tuple(problems), labels=("",))
    places = [layout.place(problem) for problem in problems]
    grouped = any(place.group for place in places)
    names = [place.name for place in places]
    turned = max(map(len, names)) > LONG_NAME
    if turned:
        names, grouped = [layout.short_name(problem) for problem in problems], False
    panel.set_xticks(
        range(len(problems)),
        names,
        rotation=30 if turned else 0,
        ha="right" if turned else "center",
        fontsize="small",
    )
    panel.tick_params(axis="x", length=0)
    panel.set_xlim(-0.6, len(problems) - 0.4)
    begin = 0
    for group, members in groupby(places, key=lambda place: place.group):
        end = begin + len([*members])
        if begin:
            panel.axvline(begin - 0.5, color="0.6", linewidth=0.8)
        if grouped:
            panel.annotate(
                group,
                ((begin + end - 1) / 2, 0.0),
                xycoords=("data", "axes fraction"),
                xytext=(0, -20),
                textcoords="offset points",
                ha="center",
                va="top",
            )
        begin = end


def _scale(
    panel: Axes,
    study: Study,
    measure: str,
    at: int | None,
    problems: Sequence[str],
    marks: Marks,
) -> dict[str, Line2D]:
    """Set the y axis; further lines, for the legend."""
    from matplotlib.ticker import PercentFormatter

    if measure == "steps":
        return _scale_steps(panel, study, marks)
    panel.yaxis.set_major_formatter(PercentFormatter(1.0))
    if measure == "gap":
        panel.set_ylabel("gap of the final policy, relative to the optimum")
        panel.set_ylim(bottom=min(0.0, panel.get_ylim()[0]))
        return {}
    when = "" if at is None else f" after {at:,} steps"
    panel.set_ylabel(f"success of the greedy policy{when}")
    panel.set_ylim(-0.03, 1.05)
    return _draw_optima(panel, study, problems)


def _scale_steps(panel: Axes, study: Study, marks: Marks) -> dict[str, Line2D]:
    from matplotlib.ticker import EngFormatter, LogLocator, NullLocator

    unit = "steps" if study.max_episodes is None else "episodes"
    budget = study.max_steps if study.max_episodes is None else study.max_episodes
    panel.set_yscale("log")
    panel.set_ylabel(f"training {unit} to the stopping rule")
    values = [mark.value for mark in marks.values()]
    censored = any(mark.is_bound for mark in marks.values())
    most = max([*(mark.high for mark in marks.values()), *[budget] * censored])
    low, high = max(1.0, min(values)) / 2.0, 2.0 * most
    panel.set_ylim(low, high)
    few = high < low * FEW_DECADES
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter(EngFormatter(sep=""))  # 20k, 1M
    if not censored:
        return {}
    return {BUDGET: panel.axhline(budget, color="0.4", linestyle="--", linewidth=1.0, zorder=1)}


def _draw_optima(panel: Axes, study: Study, problems: Sequence[str]) -> dict[str, Line2D]:
    """The success of the optimal policy of each tabular problem, if all learners share a gamma."""
    gammas = {cell.settings["gamma"] for cell in study.cells}
    specs = {cell.problem.label: cell.problem for cell in study.cells}
    lines = {}
    for x, problem in enumerate(problems):
        spec = specs[problem]
        made = None if isinstance(spec, Environment) or len(gammas) > 1 else spec.make()
        if TabularDomain.takes(made) and made.machine.success:
            [gamma] = gammas
            plain = made.unshaped
            best = evaluate(plain, solve(plain, gamma).policy, gamma).success
            [lines[OPTIMUM]] = panel.plot(
                [x - 0.45, x + 0.45], [best, best], color="0.3", linewidth=1.4, zorder=1
            )
    return lines
