"""The look of marks in figures: a colour and a shape for each learner, legible without colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from qrmax.report.curve_plot import COLOURS, LEGEND_COLUMNS
from qrmax.report.marks import Mark

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

SHAPES = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h")
SIZE = 5.5  # of a marker, in points
ARROW = 14  # the length of that of a lower bound, in points
CHARACTER, HANDLE = 0.08, 0.55  # inches of a legend for a character, and beside the text
LOWER_BOUND = "lower bound (at budget)"


def look(number: int) -> dict[str, Any]:
    """The colour and the marker of the learner of this number."""
    return {"color": COLOURS[number % len(COLOURS)], "marker": SHAPES[number % len(SHAPES)]}


def draw_mark(panel: Axes, x: float, mark: Mark, number: int) -> None:
    """Draw a mark with its error bar; open, with an arrow, if it is a lower bound."""
    shape = look(number)
    if mark.is_bound:
        panel.annotate(
            "",
            xy=(x, mark.value),
            xytext=(0, ARROW),
            textcoords="offset points",
            arrowprops={"arrowstyle": "<-", "color": shape["color"], "shrinkA": 0, "shrinkB": 2},
        )
    panel.errorbar(
        x,
        mark.value,
        yerr=None if mark.is_bound else [[mark.value - mark.low], [mark.high - mark.value]],
        markersize=SIZE,
        markerfacecolor="white" if mark.is_bound else shape["color"],
        linestyle="none",
        elinewidth=1.1,
        capsize=2.5,
        zorder=3,
        **shape,
    )


def draw_legend(
    figure: Figure,
    names: Sequence[str],
    extra: Mapping[str, Line2D],
    *,
    lines: bool = False,
) -> None:
    """Draw a legend of the learners below the panels, and of further lines."""
    from matplotlib.lines import Line2D

    shown = [*names, *extra]

    handles = [
        Line2D([], [], linestyle="-" if lines else "none", markersize=SIZE, **look(number))
        for number in range(len(names))
    ]
    figure.legend(
        [*handles, *extra.values()],
        shown,
        loc="outside lower center",
        ncols=legend_columns(shown, figure.get_figwidth()),
        frameon=False,
    )


def legend_columns(names: Sequence[str], width: float) -> int:
    """The number of columns of a legend that fit a width in inches.

    >>> legend_columns(["qrmax", "rmax", "lower bound (at budget)"], 6.0)
    3
    >>> legend_columns(["qrmax", "rmax", "lower bound (at budget)"], 3.5)
    2
    """
    for columns in range(min(len(names), LEGEND_COLUMNS), 1, -1):
        rows, more = divmod(len(names), columns)  # the first columns have one more
        heights = [rows + (column < more) for column in range(columns)]
        longest = [
            max(map(len, islice(rest, height))) for rest in [iter(names)] for height in heights
        ]
        if sum(length * CHARACTER + HANDLE for length in longest) <= width:
            return columns
    return 1


def bound_handle() -> Line2D:
    """The sign of lower bounds, for legends."""
    from matplotlib.lines import Line2D

    return Line2D(
        [], [], linestyle="none", marker="o", color="0.3", markerfacecolor="white", markersize=SIZE
    )


def tidy_panel(panel: Axes) -> None:
    """A light horizontal grid, and no frame on top or on the right."""
    panel.grid(axis="y", alpha=0.3)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
