"""Learning curves as a picture: a panel for each problem, a line for each learner.

A line is the median over the runs, with a band from the first to the third quartile, or the mean,
with a band of a standard deviation on either side. A run that met its stopping rule keeps its last
value; so does one stopped by its budget, and its line ends there if it was the last. Negative
values, of transient policies, are drawn at 0.

The gap is on a logarithmic axis; smaller ones are drawn at its lower end. The regret of a run is
that of the policies that it recommends, not of its behaviour, which is not recorded: the sum over
its steps of their gaps, in units of the optimal start value. Steps between two checks count with
the policy of the first of them, those before the first check with a gap of 1.

The nominal run of a policy is the episode in which the most likely outcome always happens. If it
does not end in success, its steps to the goal count as the step limit of episodes.
"""

from __future__ import annotations

import math
import os
import textwrap
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qrmax.errors import ParameterError, check_choice, warn
from qrmax.pictures.drawing import FORMATS
from qrmax.planning.arrays import FloatArray
from qrmax.studies.learning_curves import curves, with_others
from qrmax.studies.problem_specs import Environment
from qrmax.studies.study import Study

if TYPE_CHECKING:
    import polars
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

MEASURES = {  # with the label of the axis
    "value": "value of the greedy policy / optimum",
    "gap": "gap of the greedy policy to the optimum",
    "regret": "cumulative regret of the greedy policies / optimum",
    "success": "success of the greedy policy",
    "return": "return of an episode",
    "nominal-success": "success of the nominal run",
    "nominal-length": "steps to the goal of the nominal run (limit if not reached)",
}
SHARES = ("value", "success", "nominal-success")  # measures from 0 to 1
SPREADS = ("quartiles", "std")
LIMIT = "max_episode_steps"
LEAST_GAP = 1e-4  # the lower end of the axis
POINTS = 400  # of a line
WHOLE_BUDGET = ("stays", "budget")  # rules by which no run ends before its budget
PANELS_IN_A_ROW = 3
PANEL = (4.2, 3.0)  # inches
LEGEND = 0.8  # inches below the panels
LEGEND_COLUMNS = 4  # at most
LETTER, LEGEND_LINE = 0.09, 0.7  # inches: of a letter, and of a line of the legend beside its name
TICKS = 6  # along a panel
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DASHES = ("-", "--", ":")  # after all colours are used


class Line(NamedTuple):
    """The centre and the spread over the runs of a learner."""

    at: FloatArray  # steps or episodes
    low: FloatArray  # the first quartile, or the mean minus the standard deviation
    middle: FloatArray  # the median, or the mean
    high: FloatArray  # the third quartile, or the mean plus the standard deviation


def default_measure(study: Study) -> str:
    """The evaluation measure of a study's learners.

    >>> import qrmax
    >>> default_measure(qrmax.load_study("paper/table4"))
    'value'
    """
    sampled = any(isinstance(cell.problem, Environment) for cell in study.cells)
    rules = study.stops.values()
    if any(rule["stop"] == "reaches" and rule["success"] is None for rule in rules):
        return "return"
    rates = any(rule["stop"] in ("success", "reaches") for rule in rules)
    return "success" if sampled or rates else "value"


def learning_curves(
    study: Study,
    folder: str | os.PathLike[str],
    measure: str | None = None,
    spread: str = "quartiles",
    *,
    logarithmic: bool = False,
) -> dict[tuple[str, str], Line]:
    """The learning curves of a study by problem and learner, if they have complete runs.

    Args:
        study: the study.
        folder: its results folder.
        measure: one of `MEASURES`; by default that of the stopping rule.
        spread: `quartiles` around the median, or `std` around the mean.
        logarithmic: whether points are at equal ratios of steps, rather than equal distances.
    """
    import polars

    measure = default_measure(study) if measure is None else measure
    check_choice("measure", measure, tuple(MEASURES))
    check_choice("spread", spread, SPREADS)
    unit = "step" if study.max_episodes is None else "episodes"
    if measure == "regret":
        _check_whole_budget(study)
    found = with_others(curves(folder), study.others)
    if measure.startswith("nominal"):
        found = _with_nominal_runs(found, study)
    y = {
        "success": polars.col("success"),
        "return": polars.col("episode_return" if "episode_return" in found.columns else "gap"),
        "value": 1.0 - polars.col("gap"),
        "gap": polars.col("gap"),
        "regret": polars.col("gap"),
        "nominal-success": polars.col("nominal_length").is_not_null().cast(polars.Float64),
        "nominal-length": polars.col("nominal_length").fill_null(polars.col(LIMIT)),
    }[measure]
    points = found.select("problem", "label", "seed", x=unit, y=y).drop_nulls()
    if not len(points):
        raise ParameterError(f"measure is {measure}, which the curves in {folder} do not have")
    if measure == "regret":
        points = _summed_up(points)
    ends = points.group_by("problem", "label").agg(polars.col("x").max())
    length = {(problem, label): x for problem, label, x in ends.iter_rows()}
    order = [(problem, label) for problem in study.problems for label in labels_of(study)]
    return {
        key: line_of(
            points.filter(problem=key[0], label=key[1]),
            length[key],
            spread,
            logarithmic=logarithmic,
        )
        for key in order
        if key in length
    }


def limits_of(study: Study, measure: str) -> tuple[float, float]:
    """The range of a measure; bands of mean and standard deviation may exceed it.

    >>> import qrmax
    >>> limits_of(qrmax.load_study("paper/table4"), "nominal-length")
    (0.0, 1000.0)
    """
    if measure == "nominal-length":
        found = [cell.problem.options.get(LIMIT) for cell in study.cells]
        return 0.0, float(max((limit for limit in found if limit is not None), default=np.inf))
    if measure == "gap":
        return LEAST_GAP, 1.0
    return (0.0, 1.0) if measure in SHARES else (-np.inf, np.inf)


def _check_whole_budget(study: Study) -> None:
    """Refuse runs that end early: what they would have regretted afterwards is unknown."""
    rules = sorted({rule["stop"] for rule in study.stops.values()} - {*WHOLE_BUDGET})
    if rules:
        raise ParameterError(
            f"measure is regret, but runs end by the rule {rules[0]!r}; needed: "
            f"{' or '.join(map(repr, WHOLE_BUDGET))}, by which they take their whole budget"
        )


def _summed_up(points: polars.DataFrame) -> polars.DataFrame:
    """The cumulative regret of each run, from the gaps at its checks.

    >>> import polars
    >>> points = polars.DataFrame({"x": [10, 30, 70], "y": [0.5, 0.0, 0.1]})
    >>> points = points.with_columns(problem=polars.lit(""), label=polars.lit(""), seed=0)
    >>> _summed_up(points)["y"].to_list()
    [10.0, 20.0, 20.0]
    """
    import polars

    x, gap = polars.col("x"), polars.col("y")
    grown = (gap.shift(1).fill_null(1.0) * (x - x.shift(1).fill_null(0))).cum_sum()
    ordered = points.sort("problem", "label", "seed", "x")
    return ordered.with_columns(y=grown.over("problem", "label", "seed"))


def _with_nominal_runs(found: polars.DataFrame, study: Study) -> polars.DataFrame:
    """The rows of problems with nominal runs that succeed, and the step limit of their episodes.

    Only tabular problems have nominal runs.
    """
    import polars

    succeeds = found.drop_nulls("nominal_length")["problem"].unique()
    limits = {
        cell.problem.label: limit
        for cell in study.cells
        if (limit := cell.problem.options.get(LIMIT)) is not None and cell.problem.label in succeeds
    }
    if not limits:
        raise ParameterError(
            f"no nominal run of {study.name!r} reaches its goal; needed: a tabular problem with "
            "max_episode_steps, on which a policy has been learned"
        )
    own = polars.col("problem").is_in([*limits]) & polars.col("tool").is_null()
    limit = polars.col("problem").replace_strict(limits, return_dtype=polars.Int64)
    return found.filter(own).with_columns(limit.alias(LIMIT))


def labels_of(study: Study) -> tuple[str, ...]:
    """The learners of a study, and those of other tools."""
    return tuple(dict.fromkeys([*study.agents, *(other.marked for other in study.others)]))


def line_of(
    points: polars.DataFrame, end: int, spread: str = "quartiles", *, logarithmic: bool = False
) -> Line:
    """The centre and the spread over the runs of a learner; each run keeps its last value.

    >>> import polars
    >>> points = polars.DataFrame({"seed": [0, 0], "x": [1, 4], "y": [0.5, 0.75]})
    >>> line_of(points, end=4).middle[[0, -2, -1]].tolist()
    [0.5, 0.5, 0.75]
    """
    at = np.linspace(0.0, end, POINTS)
    if logarithmic:
        at = np.geomspace(max(1.0, points["x"].drop_nulls().to_numpy().min()), end, POINTS)
        at[-1] = end  # which rounding may miss
    runs = []
    for run in points.partition_by("seed"):
        x, y = run["x"].to_numpy(), run["y"].to_numpy()
        last = np.searchsorted(x, at, side="right") - 1
        runs.append(np.where(last < 0, np.nan, y[np.maximum(last, 0)]))
    table = np.array(runs)
    begun = ~np.isnan(table).any(axis=0)  # from the step on at which every run has a point
    table = table[:, begun]
    if spread == "quartiles":
        return Line(at[begun], *np.quantile(table, (0.25, 0.5, 0.75), axis=0))
    mean = table.mean(axis=0)
    std = table.std(axis=0, ddof=1) if len(table) > 1 else np.zeros_like(mean)
    return Line(at[begun], mean - std, mean, mean + std)


def draw_curves(
    study: Study,
    folder: str | os.PathLike[str],
    kind: str = "svg",
    *,
    measure: str | None = None,
    spread: str = "quartiles",
    logarithmic: bool = False,
) -> bytes:
    """The picture of a study's learning curves, as SVG, PNG or PDF."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, MaxNLocator

    from qrmax.training.curve_picture import picture_of  # loads matplotlib

    check_choice("format", kind, FORMATS)
    measure = default_measure(study) if measure is None else measure
    lines = learning_curves(study, folder, measure, spread, logarithmic=logarithmic)
    _warn_of_others(study, lines, measure)
    problems = [name for name in study.problems if any(name == problem for problem, _ in lines)]
    columns = min(len(problems), PANELS_IN_A_ROW)
    rows = math.ceil(len(problems) / columns)
    height = PANEL[1] * rows + LEGEND
    figure = Figure(figsize=(PANEL[0] * columns, height), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    limits = limits_of(study, measure)
    for panel, problem in zip(panels, problems, strict=False):
        _draw_panel(panel, problem, labels_of(study), lines, limits)
        if measure == "gap":
            panel.set_yscale("log")
            panel.set_ylim(LEAST_GAP, 1.2)
        if logarithmic:
            panel.set_xscale("log")
        else:
            panel.xaxis.set_major_locator(MaxNLocator(TICKS))
            panel.xaxis.set_major_formatter(EngFormatter(sep=""))  # 20k, 1M
        panel.set_xlabel("steps" if study.max_episodes is None else "episodes")
    for panel in panels[len(problems) :]:
        panel.set_axis_off()
    figure.supylabel(wrapped_label(MEASURES[measure], height), fontsize="medium")
    shown = {name: line for panel in panels for line, name in _named(panel)}
    figure.legend(
        list(shown.values()),
        list(shown),
        loc="outside lower center",
        ncols=_legend_columns(list(shown), PANEL[0] * columns),
        frameon=False,
    )
    return picture_of(figure, kind)


def wrapped_label(text: str, height: float) -> str:
    """The label of an upright axis, in lines no longer than its height in inches.

    >>> wrapped_label("success of the greedy policy", height=2.0).splitlines()
    ['success of the greedy', 'policy']
    """
    return textwrap.fill(text, max(1, int(height / LETTER)))


def _warn_of_others(study: Study, lines: dict[tuple[str, str], Line], measure: str) -> None:
    """Warn of the runs of other tools that have no line."""
    absent = [x.marked for x in study.others if (x.problem, x.marked) not in lines]
    if absent:
        names = ", ".join(dict.fromkeys(absent))
        warn(f"{names}: no line in the picture, as the tool logged no {measure}")


def _draw_panel(
    panel: Axes,
    problem: str,
    labels: tuple[str, ...],
    lines: dict[tuple[str, str], Line],
    limits: tuple[float, float],
) -> None:
    for number, label in enumerate(labels):
        if (problem, label) not in lines:
            continue
        line = lines[problem, label]
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
        low, middle, high = (np.clip(y, *limits) for y in (line.low, line.middle, line.high))
        panel.plot(line.at, middle, color=colour, linestyle=dash, label=label)
        panel.fill_between(line.at, low, high, color=colour, alpha=0.15, linewidth=0)
    panel.set_title(problem, fontsize="medium")
    if math.isfinite(limits[1]):
        panel.set_ylim(-0.02 * limits[1], 1.05 * limits[1])
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)


def _legend_columns(names: list[str], width: float) -> int:
    """The columns of the legend that fit into a width, in inches."""
    widest = LETTER * max(map(len, names)) + LEGEND_LINE
    return max(1, min(len(names), LEGEND_COLUMNS, int(width / widest)))


def _named(panel: Axes) -> list[tuple[Artist, str]]:
    return list(zip(*panel.get_legend_handles_labels(), strict=True))
