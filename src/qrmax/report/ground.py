"""Grounds: the places of a problem's states on a picture, and the directions of its actions.

A state is a cell of the map if the problem has one. States with coordinates are cells of a grid:
the first coordinate goes across, the second one down; states with the same two share a cell.
Others are the nodes of a graph, in layers by their distance from the start. A continuous problem
has no states: its ground is a raster of positions on its map.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import ParameterError
from qrmax.pictures.composition import Items
from qrmax.pictures.drawing import (
    Font,
    Look,
    Outline,
    Point,
    Segment,
    Shape,
    Text,
    arrow_head,
    disc,
    polyline,
    rectangle,
)
from qrmax.report.layers import heights, ordered
from qrmax.report.legend import START, Entry, map_entries
from qrmax.report.map_plan import LEAST_CELL, MapPlan, floor, signs, tiles, walls
from qrmax.report.signs import INK, start_sign
from qrmax.worlds.grid import FLOOR, MOVES, SOLID, GridMap

if TYPE_CHECKING:
    from qrmax.problems.continuous_problem import ContinuousProblem
    from qrmax.problems.problem import Problem

Array = NDArray[np.float64]

MOST_NODES = 200  # of a graph
MOST_STATES = 10_000  # of a grid
MOST_STARTS = 20
LONGEST_LABEL = 8  # characters

POINT_SIZE = 1.4  # a cell with a label in it, beside one of a map

_NODE = 34.0  # the diameter of a node
_ACROSS, _DOWN = 46.0, 16.0  # between two layers, and between two nodes of one
_PLAIN = "#fbfaf6"
_CELL_LINE = Look(fill=_PLAIN, stroke="#d7d3c7", width=1.0)
_LINK = Look(stroke="#b4bfcb", width=1.0)
_HEAD = Look(fill="#b4bfcb")
_NAME = Font(10.0, "#334e68")
_NUMBER = Font(11.0, "#1f2933")
_CAPTION = Font(10.0, "#627d98")


NOWHERE = Point(0.0, 0.0)
BESIDE_SIGN = Point(0.2, 0.2)  # which has the upper left corner
ABOVE_LABEL = Point(0.0, -0.1)


class Place(NamedTuple):
    """The area of a state."""

    middle: Point
    width: float
    height: float
    room: float = 1.0  # of the area, for an arrow
    shift: Point = NOWHERE  # of an arrow, in shares of the area, to leave room for a sign


@dataclass(frozen=True)
class Ground:
    """The places of states, what is drawn below and above their colours, and their actions."""

    width: float
    height: float
    places: Sequence[Place]
    ways: Array  # [s, a, 2]: the unit direction of each action; 0 stays, NaN is unknown
    below: Items
    above: Items
    start: Items
    round: bool = False  # whether places are discs
    legend: Sequence[Entry] = (START,)
    successors: Sequence[Sequence[Sequence[int]]] = ()  # [s][a], of a graph
    at: Array = field(default_factory=lambda: np.empty((0, 2)))  # positions, of a raster
    apart: tuple[int, int] = (1, 1)  # columns and rows from one arrow to the next, of a raster

    def outline(self, s: int) -> Outline:
        """The area of a state."""
        place = self.places[s]
        if self.round:
            return disc(place.middle, place.width / 2)
        return rectangle(place.middle, place.width, place.height)

    def part(self, s: int, a: int, actions: int) -> Outline:
        """The part of a state's area that stands for an action, at the side it leads to."""
        (x, y), width, height, *_ = self.places[s]
        way = self.ways[s, a]
        if not self.round and self._has_four_ways:
            side = Point(x + 0.5 * width * way[0], y + 0.5 * height * way[1])
            across = Point(0.5 * width * abs(way[1]), 0.5 * height * abs(way[0]))
            one = Point(side.x - across.x, side.y - across.y)
            other = Point(side.x + across.x, side.y + across.y)
            return polyline(Point(x, y), one, other, closed=True)
        share, extent = width / actions, 0.7 * height if self.round else height
        middle = Point(x - width / 2 + (a + 0.5) * share, y)
        return rectangle(middle, share, extent)

    def has_arrow(self, s: int) -> bool:
        """Whether a state has an arrow: on a raster, those in the middle of cells."""
        place = self.places[s]
        at = int(place.middle.x / place.width), int(place.middle.y / place.height)
        return not self.is_raster or all(
            number % apart == apart // 2 for number, apart in zip(at, self.apart, strict=True)
        )

    @property
    def is_raster(self) -> bool:
        """Whether places are positions of a raster, and not states."""
        return len(self.at) > 0

    @property
    def _has_four_ways(self) -> bool:
        ways = self.ways[0]
        upright = np.isin(ways, (-1.0, 0.0, 1.0)).all() and (np.abs(ways).sum(axis=1) == 1).all()
        return bool(upright) and len({tuple(way) for way in ways.tolist()}) == len(ways) == 4


def ground_of(problem: Problem, cell: float = 40.0) -> Ground:
    """The ground of a tabular problem; `cell` is the longer side of a cell."""
    if isinstance(problem.world, GridMap):
        return _map_ground(problem, problem.world, cell)
    if problem.coordinates is not None:
        return _point_ground(problem, problem.coordinates, POINT_SIZE * cell)
    return _graph_ground(problem)


def plane_ground(problem: ContinuousProblem, cell: float = 40.0, most: int = 6000) -> Ground:
    """The ground of a continuous problem: up to `most` positions, in equal parts of all cells."""
    grid, plane = problem.world, problem.plane
    if not isinstance(grid, GridMap):
        raise ParameterError(f"{problem.name} has no map to draw")
    columns = plane.columns
    rows = problem.n_cells // columns
    plan = MapPlan.of(grid, cell_scale(problem), cell)
    parts = max(1, min(8, int(math.sqrt(most / problem.n_cells))))
    down_parts = 1 if len(plane.scale) == 1 else parts
    across, down = plan.across / parts, plan.down / down_parts
    x = (np.arange(columns * parts) + 0.5) / parts
    y = (np.arange(rows * down_parts) + 0.5) / down_parts
    at = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    unit = plane.direction / np.maximum(np.linalg.norm(plane.direction, axis=1), 1e-12)[:, None]
    places = []
    for u, v in at.tolist():
        bare = plan.narrow or grid.rows[int(v)][int(u)] in (FLOOR, SOLID)
        room, shift = (0.6, NOWHERE) if bare else (0.44, BESIDE_SIGN)
        middle = Point(u * plan.across, v * plan.down)
        places.append(Place(middle, across, down, room, shift))
    return Ground(
        plan.width,
        plan.height,
        places,
        np.broadcast_to(unit, (len(at), *unit.shape)),
        below=floor(plan),
        above=[*signs(plan, in_corner=True), *walls(plan)],
        start=_start(plan),
        legend=map_entries(grid, coloured=plan.many),
        at=at,
        apart=(parts * _sparse(plan.across), down_parts * _sparse(plan.down)),
    )


def _sparse(side: float) -> int:
    """The number of cells from one arrow to the next."""
    return math.ceil(LEAST_CELL / side)


def cell_scale(problem: Problem | ContinuousProblem) -> tuple[float, float]:
    """The width and height of a cell of the map, in units of the observations."""
    scale = [1.0, 1.0]
    if hasattr(problem, "plane"):
        scale = [*problem.plane.scale.tolist(), 1.0]
    return scale[0], scale[1]


def _map_ground(problem: Problem, grid: GridMap, cell: float) -> Ground:
    plan = MapPlan.of(grid, (1.0, 1.0), cell)
    ways = np.zeros((problem.n_actions, 2))
    ways[: len(MOVES)] = MOVES[: problem.n_actions]
    places = []
    for s in range(grid.n_states):
        row, column = divmod(s, grid.width)
        bare = grid.rows[row][column] in (FLOOR, SOLID) or plan.narrow
        room, shift = (0.66, NOWHERE) if bare else (0.44, BESIDE_SIGN)
        places.append(Place(plan.middle(column, row), plan.across, plan.down, room, shift))
    return Ground(
        plan.width,
        plan.height,
        places,
        np.broadcast_to(ways, (grid.n_states, *ways.shape)),
        below=[*floor(plan)],
        above=[*_solid(plan), *signs(plan, in_corner=True), *walls(plan)],
        start=_start(plan),
        legend=map_entries(grid, coloured=plan.many),
    )


def _solid(plan: MapPlan) -> Items:
    return [item for item in tiles(plan) if item.kind == "solid" or plan.many]


def _start(plan: MapPlan) -> Items:
    sides = (max(14.0, plan.across), max(14.0, plan.down))
    return start_sign(plan.middle(*plan.grid.start), *sides)


def _point_ground(problem: Problem, coordinates: Array, cell: float) -> Ground:
    if problem.n_states > MOST_STATES:
        raise ParameterError(
            f"{problem.name}: {problem.n_states} states; at most {MOST_STATES} can be drawn"
        )
    flat = np.zeros((problem.n_states, 2))
    flat[:, : coordinates.shape[1]] = coordinates[:, :2]
    step = np.array([_spacing(flat[:, 0]), _spacing(flat[:, 1])])
    at = np.rint((flat - flat.min(axis=0)) / step)
    columns, rows = (at.max(axis=0) + 1).tolist()
    shared = Counter(map(tuple, at.tolist()))  # the states in a cell
    seen: Counter[tuple[float, ...]] = Counter()
    places = []
    for s, (x, y) in enumerate(at.tolist()):
        abreast = math.ceil(math.sqrt(shared[x, y]))
        wide, high = cell / abreast, cell / math.ceil(shared[x, y] / abreast)
        down, across = divmod(seen[x, y], abreast)
        seen[x, y] += 1
        middle = Point(x * cell + (across + 0.5) * wide, y * cell + (down + 0.5) * high)
        named = abreast == 1 and _caption(problem, s)
        room, shift = (0.5, ABOVE_LABEL) if named else (0.66, NOWHERE)
        places.append(Place(middle, wide, high, room, shift))
    below: Items = [
        Shape(rectangle(place.middle, place.width, place.height), _CELL_LINE, "state")
        for place in places
    ]
    above = Items()
    for s, place in enumerate(places):
        if place.shift is ABOVE_LABEL:
            above += _label(place, _caption(problem, s))
    start = [
        item
        for s in np.flatnonzero(problem.mdp.start)[:MOST_STARTS].tolist()
        for item in start_sign(places[s].middle, places[s].width, places[s].height)
    ]
    frame = rectangle(Point(columns * cell / 2, rows * cell / 2), columns * cell, rows * cell)
    above.append(Shape(frame, Look(stroke=INK, width=1.5), "border"))
    return Ground(
        columns * cell, rows * cell, places, _ways(problem, flat / step), below, above, start
    )


def _label(place: Place, caption: str) -> Items:
    """The label of a state on a white plate at the lower border of its cell."""
    shown = caption if len(caption) <= LONGEST_LABEL else f"{caption[: LONGEST_LABEL - 1]}…"
    bottom = place.middle.y + place.height / 2 - 2.5
    wide = min(place.width - 5.0, 6.2 * len(shown) + 6.0)
    plate = rectangle(Point(place.middle.x, bottom - 6.0), wide, 12.0, 3.0)
    text = Text(Point(place.middle.x, bottom - 2.8), shown, _NAME, kind="label")
    return [Shape(plate, Look(fill="#ffffff"), "plate"), text]


def _spacing(numbers: Array) -> float:
    """The least distance between two different coordinates."""
    apart = np.diff(np.unique(numbers))
    return float(apart.min()) if apart.size else 1.0


def _ways(problem: Problem, at: Array) -> Array:
    """The direction in which each action most likely leads.

    Where it leads nowhere, as into a wall, it has the direction that it has most often.
    """
    mdp = problem.mdp
    succ = np.take_along_axis(mdp.succ, mdp.prob.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
    ways = at[succ] - at[:, None, :]  # [s, a, 2]
    for a in range(problem.n_actions):
        still = (ways[:, a] == 0.0).all(axis=1)
        found = Counter(map(tuple, ways[~still, a].tolist())).most_common(1)
        if found:
            ways[still, a] = found[0][0]
    length = np.linalg.norm(ways, axis=2, keepdims=True)
    return np.asarray(ways / np.where(length == 0.0, 1.0, length))


def _caption(problem: Problem, s: int) -> str:
    return ", ".join(sorted(problem.labels[problem.label[s]]))


def _graph_ground(problem: Problem) -> Ground:
    n = problem.n_states
    if n > MOST_NODES:
        raise ParameterError(
            f"{problem.name} has neither a map nor coordinates, and {n} states; at most "
            f"{MOST_NODES} can be drawn as a graph: give coordinates, "
            "qrmax.TabularMDP(..., coordinates=[[x, y], ...])"
        )
    links = _links(problem)
    layers = _by_distance(problem, links)
    level = {s: number for number, layer in enumerate(layers) for s in layer}
    ahead = [(s, t) for s, t in links if level[t] == level[s] + 1]
    layers = ordered(layers, ahead)
    sizes = [_NODE + (14.0 if _caption(problem, s) else 0.0) for s in range(n)]
    y = heights(layers, ahead, sizes, [0.0] * n, _DOWN)
    top = min(y[s] - sizes[s] / 2 for s in range(n)) - 26.0
    bow = 26.0 if any(level[s] == level[t] for s, t in links) else 0.0
    middles = [Point(_NODE / 2 + level[s] * (_NODE + _ACROSS + bow), y[s] - top) for s in range(n)]
    width = (len(layers) - 1) * (_NODE + _ACROSS + bow) + _NODE + bow
    height = max(middle.y for middle in middles) + _NODE / 2 + 30.0
    node = Look(fill=_PLAIN, stroke="#486581", width=1.2)
    ring = Look(stroke="#486581", width=1.0)
    below: Items = [Shape(disc(middle, _NODE / 2), node, "state") for middle in middles]
    above: Items = []
    for s, middle in enumerate(middles):
        if problem.mdp.terminal[s]:
            above.append(Shape(disc(middle, _NODE / 2 - 3.0), ring, "terminal"))
        if caption := _caption(problem, s):
            at = Point(middle.x, middle.y + _NODE / 2 + 12.0)
            above.append(Text(at, caption, _CAPTION, kind="label"))
    start = [
        item
        for s in np.flatnonzero(problem.mdp.start)[:MOST_STARTS].tolist()
        for item in start_sign(middles[s], _NODE + 8.0, _NODE + 8.0)
    ]
    places = [Place(middle, _NODE, _NODE, 0.6) for middle in middles]
    ways = np.full((n, problem.n_actions, 2), np.nan)
    return Ground(
        width, height, places, ways, below, above, start, round=True, successors=_ends(problem)
    )


def _ends(problem: Problem) -> list[list[list[int]]]:
    """The successors of each state and action."""
    mdp = problem.mdp
    return [
        [sorted({*mdp.succ[s, a][mdp.prob[s, a] > 0.0].tolist()}) for a in range(mdp.n_actions)]
        if not mdp.terminal[s]
        else [[] for _ in range(mdp.n_actions)]
        for s in range(mdp.n_states)
    ]


def _links(problem: Problem) -> list[tuple[int, int]]:
    """The transitions that can happen, between different states or to the same."""
    ends = _ends(problem)
    return sorted({(s, t) for s, actions in enumerate(ends) for to in actions for t in to})


def _by_distance(problem: Problem, links: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The states in layers: starts first, and last those that no start leads to."""
    ahead: dict[int, list[int]] = {}
    for s, t in links:
        ahead.setdefault(s, []).append(t)
    layer = np.flatnonzero(problem.mdp.start).tolist()
    layers, seen = [], {*layer}
    while layer:
        layers.append(layer)
        layer = [*dict.fromkeys(t for s in layer for t in ahead.get(s, []) if t not in seen)]
        seen |= {*layer}
    rest = [s for s in range(problem.n_states) if s not in seen]
    return [*layers, rest] if rest else layers


def link_items(ground: Ground, moves: NDArray[np.int32]) -> Items:
    """The transitions of a graph: those of the policy's actions, or all if it has none."""
    every = bool((moves < 0).all())
    links = {
        (s, t)
        for s, actions in enumerate(ground.successors)
        for a, to in enumerate(actions)
        for t in to
        if s != t and (every or a == moves[s])
    }
    return [
        item
        for s, t in sorted(links)
        for item in _link(ground.places[s].middle, ground.places[t].middle)
    ]


def _link(one: Point, other: Point) -> Items:
    """An arrow between two nodes: back links below forward ones, bowed within a layer."""
    apart = math.hypot(other.x - one.x, other.y - one.y)
    along = Point((other.x - one.x) / apart, (other.y - one.y) / apart)
    aside = Point(-along.y, along.x)
    bow = min(0.12 * apart + 6.0, 30.0)
    bend = Point((one.x + other.x) / 2 + aside.x * bow, (one.y + other.y) / 2 + aside.y * bow)
    ends = []
    for end, sign in ((one, 1.0), (other, -1.0)):
        lean = math.hypot(bend.x - end.x, bend.y - end.y)
        ends.append(
            Point(
                end.x + (_NODE / 2 + (1.0 if sign > 0 else 1.5)) * (bend.x - end.x) / lean,
                end.y + (_NODE / 2 + (1.0 if sign > 0 else 1.5)) * (bend.y - end.y) / lean,
            )
        )
    first, last = ends
    curve = (Segment("M", (first,)), Segment("C", (bend, bend, last)))
    return [Shape(curve, _LINK, "link"), Shape(arrow_head(last, bend, 6.0), _HEAD, "head")]
