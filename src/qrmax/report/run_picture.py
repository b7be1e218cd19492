"""Pictures of what an agent has learned: policy and values, visits, known pairs, buckets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qrmax.agents.base import Tabular, VisitCounts
from qrmax.errors import ParameterError, check_choice
from qrmax.pictures.colour_scale import ColourScale
from qrmax.pictures.drawing import Look, Outline, Picture, Point, Segment, Shape, polyline
from qrmax.report.ground import Ground
from qrmax.report.legend import colour_entry
from qrmax.report.problem_picture import SHOWN, value_panels
from qrmax.report.scene import Scene, scene_of
from qrmax.report.state_panels import Panel, draw_panels, machine_panels

if TYPE_CHECKING:
    from qrmax.problems.continuous_problem import ContinuousProblem
    from qrmax.problems.problem import Problem
    from qrmax.training.run import Run

ALL_SHOWN = (*SHOWN, "visits", "known", "buckets")
KNOWN, TRIED, UNTRIED = "#3c87ab", "#bddbe3", "#f4ead2"
HUE = 0.618033988749895  # from one bucket to the next: neighbours differ
_PAIR_LINE = "#ffffff"
_BORDER = Look(stroke="#343a46", width=0.8)


def draw_learned(run: Run, show: str = "both", states: Sequence[str] | None = None) -> Picture:
    """Draw what a run's agent has learned, on the map of its problem."""
    check_choice("show", show, ALL_SHOWN)
    problem = run.problem
    if problem is None:
        raise ParameterError(
            f"{run!r} is on an environment, whose states have no places to draw; "
            "an episode of it can be recorded: run.record('episode.gif')"
        )
    scene = scene_of(problem)
    title = f"{run.agent.name} on {run.task_name}"
    about = f"seed {run.seed}, after {run.trained:,} steps"
    if show in SHOWN:
        return _policy(run, scene, title, about, show, states)
    if show == "buckets":
        return _buckets(run, scene, title, about)
    counts = run.agent.visits()
    if counts is None:
        raise ParameterError(f"{run.agent.name!r} counts no visits; allowed: 'both', 'policy'")
    counts = counts._replace(n=scene.at_places(run.agent, counts.n))
    if show == "visits":
        return _visits(scene, counts, title, about, states)
    return _known(run, scene, counts, title, about, states)


def _policy(
    run: Run, scene: Scene, title: str, about: str, show: str, states: Sequence[str] | None
) -> Picture:
    """The policy as arrows, and the agent's own values as colours."""
    q = run.agent.q if isinstance(run.agent, Tabular) else None
    if q is None and show == "values":
        raise ParameterError(f"{run.agent.name!r} has no table of values; allowed: 'policy'")
    moves = scene.actions(run, q)
    fill = np.full(moves.shape, np.nan) if q is None else scene.values(q, run.agent)
    shown = "policy" if q is None else show
    about += scene.about_values
    return value_panels(scene.problem, scene.ground, fill, moves, title, about, shown, states)


def _visits(
    scene: Scene,
    counts: VisitCounts,
    title: str,
    about: str,
    states: Sequence[str] | None,
) -> Picture:
    none = np.full(len(counts.n), -1, dtype=np.int32)
    panels = [
        Panel(heading, then, np.where(visits == 0, np.nan, visits), none)
        for heading, then, n in _by_machine_state(scene.problem, counts.n, states)
        for visits in [n.sum(axis=1).astype(np.float64)]
    ]
    scale = ColourScale.of(np.stack([panel.fill for panel in panels]))
    counted = (
        f", each action up to {counts.threshold}" if counts.n.max() == counts.threshold else ""
    )
    return draw_panels(
        scene.ground, panels, title=f"{title}: visits", about=about, scale=scale,
        scale_name=f"visits counted{counted}" + ", log scale" * scale.logarithmic,
    )  # fmt: skip


def _by_machine_state(
    problem: Problem | ContinuousProblem, n: NDArray[Any], states: Sequence[str] | None
) -> list[tuple[str, str, NDArray[Any]]]:
    """Visit counts `[s, q, a]` by machine state; those by `[s, a]` hold in all of them."""
    if n.ndim == 2:
        return [("in all machine states", "the world's factor", n)]
    shown = machine_panels(problem.machine, problem.labels, states)
    return [(state, then, n[:, q]) for q, state, then in shown]


def _known(
    run: Run,
    scene: Scene,
    counts: VisitCounts,
    title: str,
    about: str,
    states: Sequence[str] | None,
) -> Picture:
    n, actions = counts.n, counts.n.shape[-1]
    ground, ends = scene.ground, scene.ends
    tables = _by_machine_state(scene.problem, n, states)
    nothing = np.full(len(n), np.nan)
    none = np.full(len(n), -1, dtype=np.int32)
    panels = []
    for heading, then, table in tables:
        kinds = np.where(table >= counts.threshold, 2, np.where(table > 0, 1, 0))
        kinds[ends] = -1
        parts: dict[int, list[Segment]] = {}
        for s, row in enumerate(kinds.tolist()):
            for a, kind in enumerate(row):
                if kind >= 0:
                    parts.setdefault(kind, []).extend(ground.part(s, a, actions))
        marks = [
            Shape(tuple(outline), Look(colour, _PAIR_LINE, 0.4), name)
            for kind, colour, name in (
                (0, UNTRIED, "untried"),
                (1, TRIED, "tried"),
                (2, KNOWN, "known"),
            )
            if (outline := parts.get(kind))
        ]
        panels.append(Panel(heading, then, nothing, none, tuple(marks)))
    coverage = run.agent.known()
    if coverage is not None:
        about = f"{about}; known: {coverage.pairs:,} of {coverage.of:,} entries of its model"
    key = [
        colour_entry(KNOWN, f"known: {counts.threshold} visits or more"),
        colour_entry(TRIED, "tried"),
        colour_entry(UNTRIED, "never tried", "#8794a8"),
    ]
    return draw_panels(
        ground, panels, title=f"{title}: known state-action pairs", about=about, scale=None,
        scale_name="", key=key,
    )  # fmt: skip


def _buckets(run: Run, scene: Scene, title: str, about: str) -> Picture:
    """The buckets of an agent: an area for each that it has visited."""
    ground, found = scene.buckets(run.agent)
    columns = round(ground.width / ground.places[0].width)
    table = found.reshape(-1, columns)
    areas: dict[int, list[Segment]] = {}
    for s, bucket in enumerate(found.tolist()):
        if bucket >= 0:
            areas.setdefault(bucket, []).extend(ground.outline(s))
    marks = [
        Shape(tuple(outline), Look(_pastel(bucket), _pastel(bucket), 0.5), "bucket")
        for bucket, outline in sorted(areas.items())
    ]
    marks.append(Shape(_borders(ground, table), _BORDER, "borders"))
    nothing, none = np.full(len(found), np.nan), np.full(len(found), -1, dtype=np.int32)
    panel = Panel("buckets", "white: never visited", nothing, none, tuple(marks))
    about = f"{about}; {len(areas):,} of its {len(run.agent.buckets):,} buckets are seen here"  # type: ignore[attr-defined]
    return draw_panels(
        ground, [panel], title=f"{title}: buckets", about=about, scale=None, scale_name=""
    )


def _borders(ground: Ground, table: NDArray[np.int64]) -> Outline:
    """The borders between areas of different buckets."""
    wide, high = ground.places[0].width, ground.places[0].height
    lines = list[Segment]()
    for y, x in np.argwhere(table[:, 1:] != table[:, :-1]).tolist():
        at = (x + 1) * wide
        lines += polyline(Point(at, y * high), Point(at, (y + 1) * high))
    for y, x in np.argwhere(table[1:] != table[:-1]).tolist():
        at = (y + 1) * high
        lines += polyline(Point(x * wide, at), Point((x + 1) * wide, at))
    return tuple(lines)


def _pastel(number: int) -> str:
    from colorsys import hls_to_rgb

    hue, light = (number * HUE) % 1.0, 0.78 + 0.1 * (number % 2)
    return "#" + "".join(f"{round(255 * part):02x}" for part in hls_to_rgb(hue, light, 0.5))
