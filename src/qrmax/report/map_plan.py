"""Maps on a picture: the sizes of their cells, the floor, signs and walls.

A cell that is wide enough has its own sign. If cells are narrow, as on a corridor with continuous
positions, neighbours with the same tile are one region with one sign. On maps of many cells signs
would be too small: there, cells have the colours of their propositions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from qrmax.pictures.composition import Items
from qrmax.pictures.drawing import Look, Outline, Point, Segment, Shape, polyline, rectangle
from qrmax.report.signs import COLOURS, INK, PLATE, sign
from qrmax.worlds.grid import FLOOR, SOLID, GridMap

CELL = 40.0  # the longer side of a cell
LEAST_CELL = 24.0  # a narrower one has no room for a sign
MOST_SIGNS = 10_000  # cells of a map that has signs
LONGEST = 4000.0  # side of a map with many cells

_PAPER = "#fbfaf6"
_REGION = "#dfe4ec"
_LINES = Look(stroke="#e2dfd6", width=1.0)
_IN_CORNER = 0.46  # of a cell: a sign that leaves room for an arrow


@dataclass(frozen=True)
class MapPlan:
    """A map with the sizes of its cells in the picture."""

    grid: GridMap
    across: float  # width of a cell
    down: float  # its height

    @staticmethod
    def of(grid: GridMap, cell: tuple[float, float], longer: float = CELL) -> MapPlan:
        """The plan of a map whose cells have these proportions."""
        if grid.n_states > MOST_SIGNS:
            longer = min(longer, max(1.0, LONGEST / max(grid.width, grid.height)))
        if grid.height == 1:  # a line, which has no height of its own
            return MapPlan(grid, longer, longer)
        return MapPlan(grid, *(longer * side / max(cell) for side in cell))

    @property
    def width(self) -> float:
        """The width of the map."""
        return self.grid.width * self.across

    @property
    def height(self) -> float:
        """The height of the map."""
        return self.grid.height * self.down

    @property
    def sign(self) -> float:
        """The size of a sign."""
        return 0.8 * max(self.across, self.down)

    @property
    def many(self) -> bool:
        """Whether there are too many cells for signs."""
        return self.grid.n_states > MOST_SIGNS

    @property
    def narrow(self) -> bool:
        """Whether a cell is too narrow for a sign."""
        return min(self.across, self.down) < LEAST_CELL

    def middle(self, column: float, row: float) -> Point:
        """The middle of a cell."""
        return Point((column + 0.5) * self.across, (row + 0.5) * self.down)

    def stretch(self, row: int, first: int, last: int) -> Outline:
        """Neighbours in a row, as one rectangle."""
        n = last - first
        return rectangle(self.middle(first + (n - 1) / 2, row), n * self.across, self.down)


def floor(plan: MapPlan) -> Items:
    """The floor, with lines between cells."""
    whole = rectangle(Point(plan.width / 2, plan.height / 2), plan.width, plan.height)
    items: Items = [Shape(whole, Look(fill=_PAPER), "floor")]
    if not plan.many:
        lines: Outline = ()
        for column in range(1, plan.grid.width):
            x = column * plan.across
            lines += polyline(Point(x, 0.0), Point(x, plan.height))
        for row in range(1, plan.grid.height):
            lines += polyline(Point(0.0, row * plan.down), Point(plan.width, row * plan.down))
        items += [Shape(lines, _LINES, "lines")] if lines else []
    return items


def tiles(plan: MapPlan) -> Items:
    """The fills of cells: solid ones, and those whose tile has no sign of its own."""
    items = Items()
    for number, row in enumerate(plan.grid.rows):
        for tile, outline in _fills(plan, number, row).items():
            proposition = "solid" if tile == SOLID else plan.grid.tiles[tile]
            fill = COLOURS.get(proposition, PLATE) if plan.many else _REGION
            look = Look(fill=INK if tile == SOLID else fill)
            items.append(Shape(tuple(outline), look, proposition))
    return items


def signs(plan: MapPlan, *, in_corner: bool = False) -> Items:
    """The signs of cells or regions: in the middle, or in the upper left corner of each cell."""
    items = Items()
    for tile, middle in [] if plan.many else _places(plan):
        at, size = middle, plan.sign
        if in_corner and not plan.narrow:
            aside = (1.0 - _IN_CORNER) / 2 - 0.02
            at = Point(middle.x - aside * plan.across, middle.y - aside * plan.down)
            size = _IN_CORNER * min(plan.across, plan.down)
            plate = rectangle(at, 1.04 * size, 1.04 * size, 0.16 * size)
            items.append(Shape(plate, Look(fill="#ffffff"), "plate"))
        items += sign(plan.grid.tiles[tile], tile, at, size)
    return items


def _fills(plan: MapPlan, number: int, row: str) -> dict[str, list[Segment]]:
    """The cells of a row that are filled, by tile; neighbours are one rectangle."""
    fills: dict[str, list[Segment]] = {}
    at = 0
    for tile, group in groupby(row):
        first, at = at, at + sum(1 for _ in group)
        if tile == SOLID or (tile != FLOOR and (plan.many or plan.narrow)):
            fills.setdefault(tile, []).extend(plan.stretch(number, first, at))
    return fills


def _places(plan: MapPlan) -> Iterator[tuple[str, Point]]:
    """Tiles with the positions of their signs: every cell, or the middle of every region."""
    grid = plan.grid
    seen: set[tuple[int, int]] = set()
    for y, row in enumerate(grid.rows):
        for x, tile in enumerate(row):
            if tile in (FLOOR, SOLID) or (x, y) in seen:
                continue
            region = _region(grid, x, y) if plan.narrow else {(x, y)}
            seen |= region
            columns, rows = zip(*region, strict=True)
            middle = (min(columns) + max(columns)) / 2, (min(rows) + max(rows)) / 2
            yield tile, plan.middle(*middle)


def _region(grid: GridMap, x: int, y: int) -> set[tuple[int, int]]:
    """The connected region of cells with the same tile."""
    tile, found, ahead = grid.rows[y][x], {(x, y)}, [(x, y)]
    while ahead:
        column, row = ahead.pop()
        for across, down in ((0, -1), (1, 0), (0, 1), (-1, 0)):
            near = column + across, row + down
            inside = 0 <= near[0] < grid.width and 0 <= near[1] < grid.height
            if inside and near not in found and grid.rows[near[1]][near[0]] == tile:
                found.add(near)
                ahead.append(near)
    return found


def walls(plan: MapPlan) -> Items:
    """The walls between cells and the border."""
    thick = max(0.5, min(3.5, 0.09 * max(plan.across, plan.down)))
    lines: list[Segment] = []
    for y, x in np.argwhere(plan.grid.wall_right[:, :-1]).tolist():
        at = (x + 1) * plan.across
        lines += polyline(Point(at, y * plan.down), Point(at, (y + 1) * plan.down))
    for y, x in np.argwhere(plan.grid.wall_below[:-1]).tolist():
        at = (y + 1) * plan.down
        lines += polyline(Point(x * plan.across, at), Point((x + 1) * plan.across, at))
    border = rectangle(Point(plan.width / 2, plan.height / 2), plan.width, plan.height)
    return [Shape((*lines, *border), Look(stroke=INK, width=thick), "wall")]
