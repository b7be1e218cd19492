"""The learning curve of a run as a picture: returns on the left, success on the right."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator, PercentFormatter

from qrmax.errors import ParameterError
from qrmax.source import write_whole

if TYPE_CHECKING:
    from qrmax.training.run import Run

FORMATS = ("png", "svg", "pdf")
SIZE = (8.4, 3.2)  # inches
TICKS = 6
FEW = 40  # points; up to this many have markers
OURS, BEST, STOP = "#0072b2", "#000000", "#d55e00"


class CurveFigure(Figure):
    """A figure that notebooks show, whether or not pyplot is in use."""

    def _repr_png_(self) -> bytes:
        return picture_of(self, "png")


def draw_run(run: Run, path: str | os.PathLike[str] | None = None) -> CurveFigure:
    """Plot the learning curve of a run; with a path, write it there as well."""
    kind = "" if path is None else Path(path).suffix.lower().removeprefix(".")
    if path is not None and kind not in FORMATS:
        raise ParameterError(
            f"{path}: a picture's name ends in {', '.join(f'.{kind}' for kind in FORMATS)}"
        )
    curve = run.curve
    if not curve:
        raise ParameterError(
            f"{run!r} has no learning curve: no policy was evaluated, or no episode ended, in "
            f"{run.trained} steps; train for longer, or give evaluate_every=..."
        )
    steps = [point.step for point in curve]
    best = run.best
    figure = CurveFigure(figsize=SIZE, layout="constrained")
    left, right = figure.subplots(1, 2)
    unevaluated = run.problem is None and curve[-1].length is None
    of = "training episodes" if unevaluated else "the greedy policy"
    _draw(left, run, steps, [point.start_value for point in curve], f"return of {of}, discounted")
    _draw(right, run, steps, [point.success for point in curve], f"success of {of}")
    _shade(left, steps, [(point.start_value_low, point.start_value_high) for point in curve])
    _shade(right, steps, [(point.success_low, point.success_high) for point in curve])
    if best is not None:
        for panel, value in ((left, best.start_value), (right, best.success)):
            panel.axhline(value, color=BEST, linestyle=":", linewidth=1.0, label="optimum")
    right.set_ylim(-0.03, 1.05)
    right.yaxis.set_major_formatter(PercentFormatter(1.0))
    if left.get_legend_handles_labels()[1]:
        left.legend(frameon=False, fontsize="small")
    figure.suptitle(_title(run), fontsize="medium")
    if path is not None:
        write_whole(path, picture_of(figure, kind))
    return figure


def picture_of(figure: Figure, kind: str) -> bytes:
    """A figure as the bytes of a picture; the same one gives the same bytes.

    Text stays text in SVG, and fonts are embedded as TrueType in PDF.
    """
    file = io.BytesIO()
    with matplotlib.rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "qrmax", "pdf.fonttype": 42}
    ):
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
        figure.savefig(file, format=kind, dpi=110, metadata=undated)
    return file.getvalue()


def _draw(
    panel: Axes, run: Run, steps: Sequence[int], values: Sequence[float | None], name: str
) -> None:
    numbers = [float("nan") if value is None else value for value in values]
    mark = "." if len(steps) <= FEW else None
    panel.plot(steps, numbers, color=OURS, marker=mark, linewidth=1.4)
    if run.reason != "budget":
        panel.axvline(
            run.steps, color=STOP, linestyle="--", linewidth=1.0, label="stopping rule met"
        )
    panel.set_xlim(0, max(steps) * 1.02)
    panel.set_xlabel("steps")
    panel.set_ylabel(name, fontsize="small")
    panel.xaxis.set_major_locator(MaxNLocator(TICKS))
    panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)


def _shade(
    panel: Axes, steps: Sequence[int], ends: Sequence[tuple[float | None, float | None]]
) -> None:
    """Shade the confidence intervals, if there are any."""
    known = [(step, low, high) for step, (low, high) in zip(steps, ends, strict=True)]
    found = [row for row in known if row[1] is not None]
    if found:
        at, low, high = zip(*found, strict=True)
        panel.fill_between(at, low, high, color=OURS, alpha=0.2, linewidth=0.0)


def _title(run: Run) -> str:
    return f"{run.agent.name} on {run.task_name}, seed {run.seed}"
