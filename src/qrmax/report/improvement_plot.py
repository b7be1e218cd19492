"""Probability of improvement as a picture: each learner beside one of them.

A mark is the probability that a run of the learner takes fewer steps than one of the other on the
same problem, with its 95 % bootstrap interval (`studies/ratio_statistics.py`); right of the middle,
the learner needs fewer. A grey band is as wide as the share of pairs of runs that both hit their
budget: longer budgets could move the mark to anywhere in it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from qrmax.errors import ParameterError, check_choice
from qrmax.pictures.drawing import FORMATS
from qrmax.report.mark_drawing import SIZE, look
from qrmax.report.median_table import comparisons
from qrmax.report.study_table import study_table
from qrmax.studies.problem_groups import groups_of
from qrmax.studies.ratio_statistics import Comparison
from qrmax.studies.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW, MARGIN, PANEL = 0.28, 1.2, 3.6  # inches: of a learner, above and below; the width of a panel
LETTER = 0.075  # inches


def draw_improvement(
    study: Study,
    folder: str | os.PathLike[str],
    relative_to: str,
    kind: str = "svg",
    *,
    by: str | None = None,
) -> bytes:
    """The probabilities of improvement over a learner, as SVG, PNG or PDF.

    Args:
        study: the study.
        folder: its results folder.
        relative_to: the label of the learner to compare with.
        kind: the format.
        by: `world`, `map`, `task` or `group`: a panel for each group of problems.
    """
    from matplotlib.figure import Figure

    from qrmax.training.curve_picture import picture_of  # loads matplotlib

    check_choice("format", kind, FORMATS)
    findings = study_table(study, folder).findings
    groups = None if by is None else groups_of(study, by)
    found = comparisons(findings, relative_to, groups)
    shown = {key: comparison for key, comparison in found.items() if comparison is not None}
    if not shown:
        raise ParameterError(f"no learner has runs on the same problems as {relative_to!r}")
    named = [*dict.fromkeys(group for group, _ in shown)]
    labels = [name for name in study.agents if any(name == label for _, label in shown)]
    names = LETTER * max(map(len, labels))
    figure = Figure(
        figsize=(names + PANEL * len(named), MARGIN + ROW * len(labels)), layout="constrained"
    )
    panels = figure.subplots(1, len(named), squeeze=False, sharey=True)[0]
    for panel, group in zip(panels, named, strict=True):
        for row, label in enumerate(labels):
            if (comparison := shown.get((group, label))) is not None:
                _draw_row(panel, row, comparison, study.agents.index(label))
        _tidy(panel, labels, group if groups else None)
    unit = "steps" if study.max_episodes is None else "episodes"
    figure.supxlabel(f"P(fewer {unit} than {relative_to})", fontsize="medium")
    return picture_of(figure, kind)


def _draw_row(panel: Axes, row: int, found: Comparison, number: int) -> None:
    value, low, high = found.improvement
    if found.undecided:
        panel.barh(row, found.undecided, left=value - found.undecided / 2, height=0.7, color="0.88")
    panel.errorbar(
        value,
        row,
        xerr=[[max(0.0, value - low)], [max(0.0, high - value)]],
        markersize=SIZE,
        linestyle="none",
        elinewidth=1.1,
        capsize=2.5,
        **look(number),
    )


def _tidy(panel: Axes, labels: list[str], title: str | None) -> None:
    """Learners from top to bottom, and a line where neither needs fewer steps."""
    panel.axvline(0.5, color="0.4", linestyle="--", linewidth=1.0, zorder=0)
    panel.set_xlim(-0.03, 1.03)
    panel.set_ylim(len(labels) - 0.4, -0.6)
    panel.set_yticks(range(len(labels)), labels, fontsize="small")
    panel.grid(axis="x", alpha=0.3)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    if title is not None:
        panel.set_title(title, fontsize="medium")
