"""Pictures of maps: walls, signs for the propositions of a cell, the start, title and legend.

A cell that is wide enough has its own sign. If cells are narrow, as on a corridor with continuous
positions, neighbours with the same tile are one region with one sign. On maps of many cells signs
would be too small: there, cells have the colours of their propositions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from qrmax.errors import MapError
from qrmax.report.drawing import (
    Font,
    Look,
    Outline,
    Picture,
    Point,
    Segment,
    Shape,
    Text,
    polyline,
    rectangle,
)
from qrmax.report.machine_layout import text_width
from qrmax.report.signs import COLOURS, INK, PLATE, Items, sign, start_sign, walker_sign
from qrmax.worlds.grid import FLOOR, SOLID, GridMap
from qrmax.worlds.picture import Walker, position

CELL = 40.0  # the longer side of a cell
LEAST_CELL = 24.0  # a narrower one has no room for a sign
MOST_SIGNS = 10_000  # cells of a map that has signs
MOST_CELLS = 1_000_000
LONGEST = 4000.0  # side of a map with many cells

_LEAST_START = 14.0  # the start is seen on any map
_MARGIN = 20.0
_HEADER = 56.0
_ENTRY = 24.0  # the height of a line of the legend
_LEAST_WIDTH = 300.0
_PAPER = "#fbfaf6"
_REGION = "#dfe4ec"
_LINES = Look(stroke="#e2dfd6", width=1.0)
_TITLE = Font(15.0, bold=True)
_ABOUT = Font(12.0, "#627d98")
_LEGEND = Font(12.0, "#1f2933")


def draw_map(
    grid: GridMap,
    *,
    cell: tuple[float, float] = (1.0, 1.0),
    walker: Walker | None = None,
    title: str | None = None,
) -> Picture:
    """Draw a map; `svg()` is the picture's text, `save` writes SVG, PNG or PDF.

    `cell` is the width and height of a cell in the environment's units, which sets the proportions;
    `walker` is the agent's state, or its position in cells.

    >>> from qrmax.worlds.grid import load_map
    >>> draw_map(load_map("map1")).svg().partition(" ")[0]
    '<svg'
    """
    if grid.n_states > MOST_CELLS:
        raise MapError(
            f"{grid.name}: {grid.n_states} cells; at most {MOST_CELLS} can be drawn; "
            "`qrmax show map` without -o shows it as text"
        )
    plan = _Plan.of(grid, cell)
    items: Items = [*_ground(plan), *_marks(plan), *_walls(plan)]
    sides = (max(_LEAST_START, side) for side in (plan.across, plan.down))
    items += start_sign(plan.middle(*grid.start), *sides)
    if walker is not None:
        x, y = position(grid, walker)
        items += walker_sign(Point(x * plan.across, y * plan.down), max(CELL / 2, plan.sign))
    width = max(_LEAST_WIDTH, plan.width)
    legend, rows = _legend(plan, width)
    sizes = " x ".join(f"{side:g}" for side in (cell if grid.height > 1 else cell[:1]))
    size = "" if cell == (1.0, 1.0) else f" of {sizes}"
    about = f"{grid.width} x {grid.height} cells{size}, start {grid.start[0]},{grid.start[1]}"
    name = grid.name if title is None else title
    head = [
        Text(Point(0.0, 28.0 - _HEADER), name, _TITLE, "start", "title"),
        Text(Point(0.0, 46.0 - _HEADER), about, _ABOUT, "start", "about"),
    ]
    words = max(1.15 * text_width(name), text_width(about))
    return Picture(
        name,
        -_MARGIN,
        -_HEADER,
        max(width, words) + 2.0 * _MARGIN,
        _HEADER + plan.height + rows * _ENTRY + 2.0 * _MARGIN,
        (*head, *items, *legend),
    )


@dataclass(frozen=True)
class _Plan:
    """A map with the sizes of its cells in the picture."""

    grid: GridMap
    across: float  # width of a cell
    down: float  # its height

    @staticmethod
    def of(grid: GridMap, cell: tuple[float, float]) -> _Plan:
        longer = CELL
        if grid.n_states > MOST_SIGNS:
            longer = min(CELL, max(1.0, LONGEST / max(grid.width, grid.height)))
        if grid.height == 1:  # a line, which has no height of its own
            return _Plan(grid, longer, longer)
        return _Plan(grid, *(longer * side / max(cell) for side in cell))

    @property
    def width(self) -> float:
        return self.grid.width * self.across

    @property
    def height(self) -> float:
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
        return Point((column + 0.5) * self.across, (row + 0.5) * self.down)

    def stretch(self, row: int, first: int, last: int) -> Outline:
        """Neighbours in a row, as one rectangle."""
        n = last - first
        return rectangle(self.middle(first + (n - 1) / 2, row), n * self.across, self.down)


def _ground(plan: _Plan) -> Items:
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


def _marks(plan: _Plan) -> Items:
    """The marks of the cells: fills by tile, then signs."""
    grid, items = plan.grid, Items()
    for number, row in enumerate(grid.rows):
        for tile, outline in _fills(plan, number, row).items():
            proposition = "solid" if tile == SOLID else grid.tiles[tile]
            fill = COLOURS.get(proposition, PLATE) if plan.many else _REGION
            look = Look(fill=INK if tile == SOLID else fill)
            items.append(Shape(tuple(outline), look, proposition))
    if not plan.many:
        for tile, middle in _places(plan):
            items += sign(grid.tiles[tile], tile, middle, plan.sign)
    return items


def _fills(plan: _Plan, number: int, row: str) -> dict[str, list[Segment]]:
    """The cells of a row that are filled, by tile; neighbours are one rectangle."""
    fills: dict[str, list[Segment]] = {}
    at = 0
    for tile, group in groupby(row):
        first, at = at, at + sum(1 for _ in group)
        if tile == SOLID or (tile != FLOOR and (plan.many or plan.narrow)):
            fills.setdefault(tile, []).extend(plan.stretch(number, first, at))
    return fills


def _places(plan: _Plan) -> Iterator[tuple[str, Point]]:
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


def _walls(plan: _Plan) -> Items:
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


def _legend(plan: _Plan, width: float) -> tuple[Items, int]:
    """The legend below the map, and the number of its lines."""
    grid = plan.grid
    there = [tile for tile in grid.tiles if any(tile in row for row in grid.rows)]
    named = [tile for tile in there if grid.tiles[tile] == tile]  # a sign that is its own name
    entries = [("", "start")]
    entries += [(tile, grid.tiles[tile]) for tile in there if tile not in named]
    if named:
        entries.append((named[0], f"places {', '.join(named)}"))
    if any(SOLID in row for row in grid.rows):
        entries.append((SOLID, "solid"))
    items, x, line = Items(), 0.0, 1
    for tile, name in entries:
        room = 28.0 + text_width(name) + 14.0
        if x and x + room > width + _MARGIN:
            x, line = 0.0, line + 1
        y = plan.height + line * _ENTRY
        items += _key(plan, tile, Point(x + 10.0, y))
        items.append(Text(Point(x + 26.0, y + 4.5), name, _LEGEND, "start", "legend"))
        x += room
    return items, line


def _key(plan: _Plan, tile: str, at: Point) -> Items:
    """The entry of the legend for a tile."""
    if not tile:
        return start_sign(at, 20.0, 20.0)
    if tile == SOLID:
        return [Shape(rectangle(at, 16.0, 16.0), Look(fill=INK))]
    proposition = plan.grid.tiles[tile]
    if plan.many:
        return [Shape(rectangle(at, 16.0, 16.0), Look(fill=COLOURS.get(proposition, PLATE)))]
    return sign(proposition, tile, at, 20.0)
