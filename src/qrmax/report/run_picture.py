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
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.problem import Problem
from qrmax.report.ground import Ground, plane_ground
from qrmax.report.legend import colour_entry
from qrmax.report.problem_picture import SHOWN, cells_of, draw_values, ground_for, value_panels
from qrmax.report.state_panels import Panel, draw_panels, machine_panels

if TYPE_CHECKING:
    from qrmax.training.run import Run

ALL_SHOWN = (*SHOWN, "visits", "known", "buckets")
KNOWN, TRIED, UNTRIED = "#3c87ab", "#bddbe3", "#f4ead2"
MOST_POSITIONS = 20_000  # of a picture of buckets
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
    title = f"{run.agent.name} on {run.task_name}"
    about = f"seed {run.seed}, after {run.trained:,} steps"
    if show in SHOWN:
        if isinstance(problem, ContinuousProblem):
            return _field(run, problem, title, about, show, states)
        value = run.agent.q.max(axis=2) if isinstance(run.agent, Tabular) else None
        if value is None and show == "values":
            raise ParameterError(f"{run.agent.name!r} has no values to draw; allowed: 'policy'")
        shown = "policy" if value is None else show
        filled = np.ones(problem.done().shape) if value is None else value
        return draw_values(
            problem, filled, _chosen(run), title=title, about=f"{about}; the agent's own values",
            show=shown, states=states,
        )  # fmt: skip
    if show == "buckets":
        return _buckets(run, problem, title, about)
    counts = run.agent.visits()
    if counts is None:
        raise ParameterError(f"{run.agent.name!r} counts no visits; allowed: 'both', 'policy'")
    ground = _ground(problem)
    counts = counts._replace(n=_at_places(run, problem, ground, counts.n))
    if show == "visits":
        return _visits(problem, ground, counts, title, about, states)
    return _known(run, problem, ground, counts, title, about, states)


def _chosen(run: Run) -> NDArray[np.int32]:
    """The greedy actions, `[s, q]`; -1 where all values are alike, as nothing is known there."""
    if not isinstance(run.agent, Tabular):
        return run.policy
    values = run.agent.q
    alike = values.max(axis=2) == values.min(axis=2)
    return np.where(alike, -1, run.policy).astype(np.int32)


def _ground(problem: Problem | ContinuousProblem) -> Ground:
    return plane_ground(problem) if isinstance(problem, ContinuousProblem) else ground_for(problem)


def _at_places(
    run: Run, problem: Problem | ContinuousProblem, ground: Ground, table: NDArray[Any]
) -> NDArray[Any]:
    """A table by state, or by bucket, as one by place; 0 in buckets never visited."""
    if not isinstance(problem, ContinuousProblem):
        return table
    found = _found(run, problem, ground)
    return np.concatenate([table, np.zeros_like(table[:1])])[found]


def _found(run: Run, problem: ContinuousProblem, ground: Ground) -> NDArray[np.int64]:
    """The bucket of each position; -1 in one never visited."""
    buckets = getattr(run.agent, "buckets", None)
    if buckets is None:
        raise ParameterError(
            f"{run.agent.name!r} has no buckets to draw; needed: an agent such as 'bucket-qrmax'"
        )
    found: NDArray[np.int64] = buckets.find_all(
        ground.at[:, : len(problem.plane.scale)] * problem.plane.scale,
        problem.label[cells_of(problem, ground)],
    )
    return found


def _field(
    run: Run,
    problem: ContinuousProblem,
    title: str,
    about: str,
    show: str,
    states: Sequence[str] | None,
) -> Picture:
    """The policy as a field of arrows, and the values of buckets as colours."""
    ground = plane_ground(problem)
    done = problem.done()[cells_of(problem, ground)]
    fill = np.full(done.shape, np.nan)
    if isinstance(run.agent, Tabular):
        found = _found(run, problem, ground)
        fill = np.where((found < 0)[:, None] | done, np.nan, run.agent.q.max(axis=2)[found])
    elif show == "values":
        raise ParameterError(f"{run.agent.name!r} has no table of values; allowed: 'policy'")
    seen = ground.at[:, : len(problem.plane.scale)] * problem.plane.scale
    labels = problem.label[cells_of(problem, ground)]
    policy = run.recommendation
    moves = np.full(done.shape, -1, dtype=np.int32)
    for s in np.flatnonzero([ground.has_arrow(s) for s in range(len(seen))]).tolist():
        for q in np.flatnonzero(~done[s]).tolist():
            moves[s, q] = policy.action(seen[s], int(labels[s]), q)
    return value_panels(problem, ground, fill, moves, title, about, show, states)


def _visits(
    problem: Problem | ContinuousProblem,
    ground: Ground,
    counts: VisitCounts,
    title: str,
    about: str,
    states: Sequence[str] | None,
) -> Picture:
    visits = counts.n.sum(axis=-1).astype(np.float64)  # [s] or [s, q]
    none = np.full(len(visits), -1, dtype=np.int32)
    panels = [
        Panel(heading, then, np.where(shown == 0, np.nan, shown), none)
        for heading, then, shown in _by_machine_state(problem, visits, states)
    ]
    scale = ColourScale.of(np.stack([panel.fill for panel in panels]))
    counted = (
        f", each action up to {counts.threshold}" if counts.n.max() == counts.threshold else ""
    )
    return draw_panels(
        ground, panels, title=f"{title}: visits", about=about, scale=scale,
        scale_name=f"visits counted{counted}" + ", log scale" * scale.logarithmic,
    )  # fmt: skip


def _by_machine_state(
    problem: Problem | ContinuousProblem, table: NDArray[Any], states: Sequence[str] | None
) -> list[tuple[str, str, NDArray[Any]]]:
    """A table `[s, q, ...]` by machine state; one of `[s, ...]` holds in all of them."""
    n_q = problem.n_task_states
    if table.ndim == 1 or (table.ndim == 2 and table.shape[1] != n_q):
        return [("in all machine states", "the world's factor", table)]
    shown = machine_panels(problem.machine, problem.labels, states)
    return [(state, then, table[:, q]) for q, state, then in shown]


def _known(
    run: Run,
    problem: Problem | ContinuousProblem,
    ground: Ground,
    counts: VisitCounts,
    title: str,
    about: str,
    states: Sequence[str] | None,
) -> Picture:
    n, actions = counts.n, counts.n.shape[-1]
    ends = problem.mdp.terminal if isinstance(problem, Problem) else _ends(problem, ground)
    if n.ndim == 2:
        tables = [("in all machine states", "the world's factor", n)]
    else:
        shown = machine_panels(problem.machine, problem.labels, states)
        tables = [(state, then, n[:, q]) for q, state, then in shown]
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


def _ends(problem: ContinuousProblem, ground: Ground) -> NDArray[np.bool_]:
    return problem.terminal[cells_of(problem, ground)]


def _buckets(run: Run, problem: Problem | ContinuousProblem, title: str, about: str) -> Picture:
    """The buckets of an agent: an area for each that it has visited."""
    if not isinstance(problem, ContinuousProblem):
        raise ParameterError(f"{problem.name} has discrete states, and no buckets to draw")
    ground = plane_ground(problem, most=MOST_POSITIONS)
    found = _found(run, problem, ground)
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
