"""Pictures of a map: in characters, and in colours without any plotting library."""

from __future__ import annotations

import os
import struct
import zlib
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qrmax.source import write_whole
from qrmax.worlds.grid import DECORATION, FLOOR, SOLID, GridMap

Image = NDArray[np.uint8]
Colour = tuple[int, int, int]
Walker = int | tuple[float, float]  # a state, or a position in cells: x, y

CELL = 32  # pixels
MOST_PIXELS = 8000  # along a side
WALKER = "@"
ARROWS = "^>v<o"  # in the order of the moves; the last one stays

_PAPER: Colour = (250, 249, 245)
_LINE: Colour = (226, 223, 214)
_WALL: Colour = (52, 58, 70)
_INK: Colour = (255, 255, 255)
_WALKER: Colour = (214, 69, 65)
_START: Colour = (192, 57, 43)
_PLANT: Colour = (74, 150, 88)
_DISCS: dict[str, Colour] = {
    "coffee": (134, 92, 60),
    "good_coffee": (194, 135, 47),
    "mail": (66, 122, 186),
    "office": (120, 81, 169),
    "hole": (38, 84, 124),
}


def write(grid: GridMap, walker: Walker | None = None) -> str:
    """The map as it stands in its file, with the walker in a cell."""
    if walker is None:
        return grid.text
    column, row = (int(part) for part in position(grid, walker))
    lines = grid.text.split("\n")
    line = lines[2 * row]
    lines[2 * row] = line[: 2 * column] + WALKER + line[2 * column + 1 :]
    return "\n".join(lines)


def draw(grid: GridMap, walker: Walker | None = None) -> Image:
    """The map as an image `[y, x, rgb]`, with the walker on it; large maps get small cells."""
    cell = max(1, min(CELL, MOST_PIXELS // max(grid.width, grid.height)))
    image = np.empty((grid.height * cell + 1, grid.width * cell + 1, 3), dtype=np.uint8)
    image[:] = _PAPER
    image[::cell] = _LINE
    image[:, ::cell] = _LINE
    for y, row in enumerate(grid.rows):
        for x, tile in enumerate(row):
            _draw_tile(image[y * cell : (y + 1) * cell, x * cell : (x + 1) * cell], grid, tile)
    x, y = grid.start
    _paint_start(image[y * cell : (y + 1) * cell, x * cell : (x + 1) * cell])
    _draw_walls(image, grid, cell)
    if walker is not None:
        _draw_walker(image, *position(grid, walker), cell)
    return image


def save_png(image: Image, path: str | os.PathLike[str]) -> None:
    """Write an image to a PNG file, whole or not at all."""
    height, width = image.shape[:2]
    rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)  # each row begins with its filter, 0
    rows[:, 1:] = image.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits of red, green, blue
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    data = b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )
    write_whole(path, b"\x89PNG\r\n\x1a\n" + data)


def position(grid: GridMap, walker: Walker) -> tuple[float, float]:
    """Return the position of a walker in cells: x, y."""
    if isinstance(walker, tuple):
        return walker
    row, column = divmod(walker, grid.width)
    return column + 0.5, row + 0.5


def _draw_walker(image: Image, x: float, y: float, cell: int) -> None:
    """Draw a disc around a position, on an area as large as a cell, clipped to the map."""
    top, left = (
        min(max(round((at - 0.5) * cell), 0), side - cell)
        for at, side in zip((y, x), image.shape[:2], strict=True)
    )
    within = [
        0.5 + ((at - 0.5) * cell - first) / max(1, cell - 1) for at, first in ((y, top), (x, left))
    ]
    _paint_disc(image[top : top + cell, left : left + cell], _WALKER, 0.30, *within)


def _draw_tile(area: Image, grid: GridMap, tile: str) -> None:
    if tile == FLOOR:
        return
    if tile == SOLID:
        area[:] = _WALL
        return
    proposition = grid.tiles[tile]
    if proposition == DECORATION:
        _paint_plant(area)
    else:
        if proposition in _DISCS:
            _paint_disc(area, _DISCS[proposition], 0.40)
        else:
            _paint_plate(area)
        _paint_letter(area, tile.upper(), _INK if proposition in _DISCS else _WALL)


def _draw_walls(image: Image, grid: GridMap, cell: int) -> None:
    thick = max(1, cell // 12)
    for y, x in np.argwhere(grid.wall_right):
        at = (x + 1) * cell
        image[y * cell : (y + 1) * cell + 1, at - thick // 2 : at + thick // 2 + 1] = _WALL
    for y, x in np.argwhere(grid.wall_below):
        at = (y + 1) * cell
        image[at - thick // 2 : at + thick // 2 + 1, x * cell : (x + 1) * cell + 1] = _WALL
    image[:thick], image[-thick:], image[:, :thick], image[:, -thick:] = (_WALL,) * 4


def _distances(area: Image, y: float, x: float) -> NDArray[np.float64]:
    """Return the distance of each pixel from a point, in units of the area's size."""
    size = area.shape[0]
    rows, columns = np.mgrid[:size, :size] / max(1, size - 1)
    return np.asarray(np.hypot(rows - y, columns - x))


def _paint_disc(area: Image, colour: Colour, radius: float, y: float = 0.5, x: float = 0.5) -> None:
    """A disc with a soft edge."""
    cover = np.clip((radius - _distances(area, y, x)) * area.shape[0] + 0.5, 0.0, 1.0)[:, :, None]
    area[:] = np.rint(cover * np.array(colour) + (1.0 - cover) * area)


def _paint_plant(area: Image) -> None:
    for y, x in ((0.36, 0.5), (0.56, 0.34), (0.56, 0.66)):
        _paint_disc(area, _PLANT, 0.19, y, x)
    size = area.shape[0]
    area[round(0.6 * size) : round(0.86 * size), round(0.46 * size) : round(0.54 * size)] = _PLANT


def _paint_plate(area: Image) -> None:
    """A white square with a dark border, which no other sign has."""
    size = area.shape[0]
    thick, aside = max(1, size // 16), round(0.14 * size)
    area[aside : size - aside + 1, aside : size - aside + 1] = _WALL
    inner = slice(aside + thick, size - aside + 1 - thick)
    area[inner, inner] = _INK


def _paint_start(area: Image) -> None:
    """A frame within the cell, which neither its sign nor the walker hides."""
    size = area.shape[0]
    thick = max(1, size // 14)
    aside = thick
    frame = np.zeros(area.shape[:2], dtype=bool)
    frame[aside : size - aside + 1, aside : size - aside + 1] = True
    frame[aside + thick : size - aside + 1 - thick, aside + thick : size - aside + 1 - thick] = (
        False
    )
    area[frame] = _START


def _paint_letter(area: Image, letter: str, ink: Colour) -> None:
    glyph = _font().get(letter)
    if glyph is None:
        return
    scale = max(1, area.shape[0] // 16)
    pixels = np.kron(glyph, np.ones((scale, scale), dtype=bool))
    top, left = ((np.array(area.shape[:2]) - pixels.shape + 1) // 2).tolist()
    if top >= 0 and left >= 0:
        area[top : top + pixels.shape[0], left : left + pixels.shape[1]][pixels] = ink


@cache
def _font() -> dict[str, NDArray[np.bool_]]:
    """Letters and digits of 5 x 7 pixels, from their pictures in font.txt."""
    lines = (Path(__file__).parent / "font.txt").read_text(encoding="utf-8").split("\n")
    glyphs = {}
    for at in range(0, len(lines) - 8, 9):  # blocks: names, 7 lines of pictures, a blank line
        for i, name in enumerate(lines[at].split()):
            rows = [line.ljust(80)[6 * i : 6 * i + 5] for line in lines[at + 1 : at + 8]]
            glyphs[name] = np.array([[mark == "#" for mark in row] for row in rows])
    return glyphs
