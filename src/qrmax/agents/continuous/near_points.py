"""Points found by their place: a hash table of cells, each a chain of points (compiled).

A cell is a cube of the first three dimensions at most. A search visits the cells around a place,
27 at most, and all within one cell's width are among the points found; distances are checked by the
caller. Keys are 32-bit hashes: two cells that share one also share a chain, which costs time alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.planning.compilation import inlined, inner

NOTHING = -1
MIXER = 0x45D9F3B  # odd, of 27 bits: no product has more than 63 bits
FARTHEST = 2**30  # cells from the origin; beyond, all are one
HASHED = 3  # dimensions at most


class Cells(NamedTuple):
    """Points by cell."""

    width: float
    key: NDArray[np.int64]  # [slot], or NOTHING
    head: IntArray  # [slot]: the last point of the cell
    link: IntArray  # [point]: the one before it in its cell, or NOTHING


def make_cells(width: float, points: int) -> Cells:
    """Empty cells with room for that many points."""
    slots = 16
    while slots < 2 * points:
        slots *= 2
    return Cells(
        width,
        np.full(slots, NOTHING, dtype=np.int64),
        np.full(slots, NOTHING, dtype=np.int32),
        np.full(max(points, 1), NOTHING, dtype=np.int32),
    )


@inlined
def mixed(number: int, word: int) -> int:
    """A 32-bit hash of a number and one more word."""
    number = (number ^ word) * MIXER
    return (number ^ (number >> 31)) & 0xFFFFFFFF


@inlined
def cell_at(x: float, width: float) -> int:
    """The cell of a coordinate."""
    return int(min(max(math.floor(x / width), -FARTHEST), FARTHEST))


@inlined
def slot_of(key: NDArray[np.int64], number: int) -> int:
    """The slot of a key, or the free one where it belongs."""
    slot = number & (key.size - 1)
    while key[slot] not in (NOTHING, number):
        slot = (slot + 1) & (key.size - 1)
    return slot


@inner
def enter(cells: Cells, x: FloatArray, point: int) -> None:
    """Enter a point."""
    number = 0
    for i in range(min(x.size, HASHED)):
        number = mixed(number, cell_at(x[i], cells.width))
    slot = slot_of(cells.key, number)
    cells.key[slot] = number
    cells.link[point] = cells.head[slot]
    cells.head[slot] = point


@inner
def collect(cells: Cells, x: FloatArray, found: IntArray) -> int:
    """Write all points of the cells around x to `found`; returns their number."""
    dimensions = min(x.size, HASHED)
    count = 0
    for offset in range(3**dimensions):
        number, rest = 0, offset
        for i in range(dimensions):
            number = mixed(number, cell_at(x[i], cells.width) + rest % 3 - 1)
            rest //= 3
        slot = slot_of(cells.key, number)
        point = cells.head[slot]
        while point != NOTHING:
            found[count] = point
            count += 1
            point = cells.link[point]
    return count
