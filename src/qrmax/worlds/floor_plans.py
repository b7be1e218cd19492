"""Random floor plans: rooms, and the walls and doors between them.

A plan assigns a room to each cell. There are walls between cells of different rooms, and doors in
some of them: enough for every room to be reached (a random spanning tree), and some more.

    halls       rooms side by side, in rows and columns
    rooms       the floor divided again and again, into rooms of different sizes
    corridor    rooms on both sides of a corridor
    maze        every cell a room, with many doors
    open        one room
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.worlds.draws import Draws

Rooms = NDArray[np.int32]  # [y, x]: the number of the room of a cell
Walls = NDArray[np.bool_]


class FloorPlan(NamedTuple):
    """The walls of a floor, as a map has them, and its rooms."""

    rooms: Rooms
    wall_right: Walls  # [y, x]: between a cell and its right neighbour
    wall_below: Walls  # [y, x]: between a cell and the one below


def random_plan(draws: Draws, width: int, height: int) -> FloorPlan:
    """Draw a floor plan of this size; every cell can be reached from every other."""
    kind = draws.one_of([*_KINDS])
    extra = 0.3 + 0.4 * draws.number() if kind == "maze" else 0.5 * draws.number()
    return _with_doors(draws, _KINDS[kind](draws, width, height), extra)


def open_plan(width: int, height: int) -> FloorPlan:
    """A floor without walls."""
    return FloorPlan(*(np.zeros((height, width), dtype=kind) for kind in (np.int32, bool, bool)))


def picture(plan: FloorPlan, tiles: NDArray[np.str_]) -> str:
    """The picture of a floor plan with these tiles `[y, x]`, as a map file has it.

    >>> print(picture(open_plan(3, 2), np.array([list("..c"), list(".O.")])))
    . . c
    <BLANKLINE>
    . O .
    """
    lines = []
    for y, row in enumerate(tiles):
        between = ["|" if wall else " " for wall in plan.wall_right[y, :-1]]
        lines.append("".join(tile + mark for tile, mark in zip(row, [*between, ""], strict=True)))
        lines.append(" ".join("-" if wall else " " for wall in plan.wall_below[y]).rstrip())
    return "\n".join(lines[:-1])


def _halls(draws: Draws, width: int, height: int) -> Rooms:
    columns, rows = _cuts(draws, width), _cuts(draws, height)
    return np.asarray(rows[:, None] * (columns[-1] + 1) + columns[None, :], dtype=np.int32)


def _cuts(draws: Draws, length: int) -> NDArray[np.int32]:
    """The number of the part that each place of a line belongs to; parts are 2 to 5 long."""
    parts = np.zeros(length, dtype=np.int32)
    start = 0
    while length - start >= 4:
        start += draws.integer(2, min(5, length - start - 2))
        parts[start:] += 1
    return parts


def _divided(draws: Draws, width: int, height: int) -> Rooms:
    rooms = np.zeros((height, width), dtype=np.int32)
    least = draws.integer(2, 3)
    pending = [(0, 0, width, height)]
    while pending:
        x, y, w, h = pending.pop()
        across = w > h or (w == h and draws.happens(0.5))
        longer = w if across else h
        if longer < 2 * least or (longer <= 5 and draws.happens(0.3)):
            continue
        cut = draws.integer(least, longer - least)
        far = (x + cut, y, w - cut, h) if across else (x, y + cut, w, h - cut)
        near = (x, y, cut, h) if across else (x, y, w, cut)
        rooms[far[1] : far[1] + far[3], far[0] : far[0] + far[2]] = rooms.max() + 1
        pending += [near, far]
    return rooms


def _corridor(draws: Draws, width: int, height: int) -> Rooms:
    if draws.happens(0.5):
        return _along(draws, width, height)
    return np.ascontiguousarray(_along(draws, height, width).T)


def _along(draws: Draws, length: int, depth: int) -> Rooms:
    """A corridor along the first axis, with rooms above and below."""
    rooms = np.zeros((depth, length), dtype=np.int32)
    wide = draws.integer(1, 2) if depth > 5 else 1
    top = draws.integer(1, depth - wide - 1)
    above, below = 1 + _cuts(draws, length), _cuts(draws, length)
    rooms[:top] = above
    rooms[top + wide :] = 1 + above[-1] + below
    return rooms


def _maze(draws: Draws, width: int, height: int) -> Rooms:  # noqa: ARG001 (as all kinds are drawn)
    return np.arange(width * height, dtype=np.int32).reshape(height, width)


def _open(draws: Draws, width: int, height: int) -> Rooms:  # noqa: ARG001
    return np.zeros((height, width), dtype=np.int32)


_KINDS: dict[str, Callable[[Draws, int, int], Rooms]] = {
    "halls": _halls,
    "rooms": _divided,
    "corridor": _corridor,
    "maze": _maze,
    "open": _open,
}


def _with_doors(draws: Draws, rooms: Rooms, extra: float) -> FloorPlan:
    """Put walls between rooms, with doors; `extra` is the probability of one more than needed."""
    right = np.zeros(rooms.shape, dtype=bool)
    below = np.zeros(rooms.shape, dtype=bool)
    right[:, :-1] = rooms[:, :-1] != rooms[:, 1:]
    below[:-1] = rooms[:-1] != rooms[1:]
    shared: dict[tuple[int, int], list[tuple[Walls, int, int]]] = {}  # walls between two rooms
    for walls, (dy, dx) in ((right, (0, 1)), (below, (1, 0))):
        for y, x in np.argwhere(walls).tolist():
            one, other = sorted((int(rooms[y, x]), int(rooms[y + dy, x + dx])))
            shared.setdefault((one, other), []).append((walls, y, x))
    reached = [*range(int(rooms.max()) + 1)]  # the representative of each room (union-find)
    for pair in draws.shuffled([*shared]):
        one, other = (_root(reached, room) for room in pair)
        if one == other and not draws.happens(extra):
            continue
        reached[one] = other
        walls, y, x = draws.one_of(shared[pair])
        walls[y, x] = False
    return FloorPlan(rooms, right, below)


def _root(reached: list[int], room: int) -> int:
    while reached[room] != room:
        room = reached[room]
    return room
