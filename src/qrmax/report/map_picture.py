"""Pictures of maps: walls, signs for the propositions of a cell, the start, title and legend."""

from __future__ import annotations

from qrmax.errors import MapError
from qrmax.pictures.composition import Items
from qrmax.pictures.drawing import Font, Picture, Point, Text
from qrmax.report.legend import ENTRY, legend, map_entries
from qrmax.report.machine_layout import text_width
from qrmax.report.map_plan import CELL, MapPlan, floor, signs, tiles, walls
from qrmax.report.signs import start_sign, walker_sign
from qrmax.worlds.grid import GridMap
from qrmax.worlds.picture import Walker, position

MOST_CELLS = 1_000_000

_LEAST_START = 14.0  # the start is seen on any map
_MARGIN = 20.0
_HEADER = 56.0
_LEAST_WIDTH = 300.0
_TITLE = Font(15.0, bold=True)
_ABOUT = Font(12.0, "#627d98")


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
    plan = MapPlan.of(grid, cell)
    items: Items = [*floor(plan), *tiles(plan), *signs(plan), *walls(plan)]
    sides = (max(_LEAST_START, side) for side in (plan.across, plan.down))
    items += start_sign(plan.middle(*grid.start), *sides)
    if walker is not None:
        x, y = position(grid, walker)
        items += walker_sign(Point(x * plan.across, y * plan.down), max(CELL / 2, plan.sign))
    width = max(_LEAST_WIDTH, plan.width)
    key, rows = legend(map_entries(grid, coloured=plan.many), width, plan.height)
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
        _HEADER + plan.height + rows * ENTRY + 2.0 * _MARGIN,
        (*head, *items, *key),
    )
