"""Legends of maps and panels: signs and colours with their names, in lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from qrmax.pictures.composition import Items
from qrmax.pictures.drawing import Font, Look, Point, Shape, Text, rectangle
from qrmax.report.machine_layout import text_width
from qrmax.report.signs import COLOURS, INK, PLATE, sign, start_sign
from qrmax.worlds.grid import SOLID, GridMap

ENTRY = 24.0  # the height of a line

_FONT = Font(12.0, "#1f2933")
_OVERHANG = 20.0  # of a line, into the margin


class Entry(NamedTuple):
    """A sign around a point, and its name."""

    sign: Callable[[Point], Items]
    name: str


def colour_entry(colour: str, name: str, line: str = "none") -> Entry:
    """A square of a colour."""
    look = Look(fill=colour, stroke=line, width=0.8)
    return Entry(lambda at: [Shape(rectangle(at, 16.0, 16.0), look)], name)


START = Entry(lambda at: start_sign(at, 20.0, 20.0), "start")


def map_entries(grid: GridMap, *, coloured: bool = False) -> list[Entry]:
    """The start and the tiles of a map; as colours, if cells are too small for signs."""
    there = [tile for tile in grid.tiles if any(tile in row for row in grid.rows)]
    named = [tile for tile in there if grid.tiles[tile] == tile]  # a sign that is its own name
    entries = [START]
    shown = [(tile, grid.tiles[tile]) for tile in there if tile not in named]
    if named:
        shown.append((named[0], f"places {', '.join(named)}"))
    for tile, name in shown:
        proposition = grid.tiles[tile]
        if coloured:
            entries.append(colour_entry(COLOURS.get(proposition, PLATE), name))
        else:
            entries.append(Entry(_sign_of(proposition, tile), name))
    if any(SOLID in row for row in grid.rows):
        entries.append(colour_entry(INK, "solid"))
    return entries


def legend(entries: Iterable[Entry], width: float, top: float) -> tuple[Items, int]:
    """The entries in lines no wider than `width`, and the number of lines."""
    items, x, line = Items(), 0.0, 1
    for entry in entries:
        room = 28.0 + text_width(entry.name) + 14.0
        if x and x + room > width + _OVERHANG:
            x, line = 0.0, line + 1
        y = top + line * ENTRY
        items += entry.sign(Point(x + 10.0, y))
        items.append(Text(Point(x + 26.0, y + 4.5), entry.name, _FONT, "start", "legend"))
        x += room
    return items, line


def _sign_of(proposition: str, tile: str) -> Callable[[Point], Items]:
    return lambda at: sign(proposition, tile, at, 20.0)
