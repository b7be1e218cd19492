"""Policies on a map, in characters: a panel for each state of the reward machine.

    task state start             task state has_coffee
    next: coffee -> has_coffee   next: office -> delivered
    +--------+                   +--------+
    |@> cv O<|                   |@> c> O^|
    +--------+                   +--------+

A cell has two characters: its tile, and the action. Walls are between cells.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import ParameterError
from qrmax.worlds.grid import FLOOR, SOLID, GridMap
from qrmax.worlds.picture import ARROWS, WALKER

if TYPE_CHECKING:
    from qrmax.machines.reward_machine import RewardMachine
    from qrmax.problems.continuous_problem import ContinuousProblem
    from qrmax.problems.problem import Problem

WIDTH = 80  # if the output is not a terminal
GAP = "   "  # between two panels
LEAST_PANEL = 30  # characters, so that there is room for the heading of a small map
NO_MOVE = "."

_CODES = {"wall": "2", "place": "1;33", "start": "1;32", "move": "36", "head": "1", "next": "2"}


class _Line(NamedTuple):
    """A line of a panel, and its displayed width."""

    text: str
    width: int


class _Pen:
    """Terminal colours, if enabled."""

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def __call__(self, text: str, role: str) -> str:
        return f"\x1b[{_CODES[role]}m{text}\x1b[0m" if self.colour and text.strip() else text


def moves_on_map(
    problem: Problem | ContinuousProblem,
    policy: NDArray[np.int32],
    *,
    hopeless: NDArray[np.bool_] | None = None,
    width: int | None = None,
    colour: bool | None = None,
) -> str:
    """The actions of `policy[s, q]` on the problem's map, as text.

    Machine states that are terminal, or unreachable with the labels of the map, are left out.
    `hopeless[s, q]` marks states without an action worth showing. `width` is by default that of the
    terminal, or 80; there are colours if the output is a terminal and NO_COLOR is not set.

    >>> from qrmax.worlds.catalog import make
    >>> problem = make("continuous/line/ab")
    >>> right = np.ones((20, 3), dtype=np.int32)
    >>> print(moves_on_map(problem, right, width=80).splitlines()[3])
    |@>  >  >  >  >  >  > A> A>  >  > B> B>  >  >  >  >  >  >  >|
    """
    grid = problem.world
    if not isinstance(grid, GridMap):
        raise ParameterError(f"{problem.name} has no map to show a policy on")
    pen = _Pen(_is_colourful() if colour is None else colour)
    room = shutil.get_terminal_size((WIDTH, 24)).columns if width is None else width
    machine = problem.machine
    there = machine.restricted(problem.labels)
    nothing = problem.done() if hopeless is None else problem.done() | hopeless
    panels = [
        [
            *_heading(there, state, max(LEAST_PANEL, min(_map_width(grid, room), room)), pen),
            *map_lines(grid, np.where(nothing[:, q], -1, policy[:, q]), room, pen),
        ]
        for q, state in enumerate(machine.states)
        if state in there.states and state not in machine.terminal
    ]
    widest = max((line.width for panel in panels for line in panel), default=0)
    abreast = max(1, (room + len(GAP)) // (widest + len(GAP)))
    rows = [
        "\n".join(_side_by_side(panels[first : first + abreast], widest))
        for first in range(0, len(panels), abreast)
    ]
    left_out = len(machine.states) - len(there.states)
    if left_out:
        states = "task state" if left_out == 1 else "task states"
        rows.append(f"left out: {left_out} {states} unreachable on this map")
    return "\n\n".join([*rows, _legend(grid, policy, room)])


def map_lines(
    grid: GridMap, moves: NDArray[np.int32], room: int = WIDTH, pen: _Pen | None = None
) -> list[_Line]:
    """The map with the action of each state beside its tile; -1 is none.

    Walls have columns of their own, within a frame, unless there are no walls and that is wider
    than the `room`. A map that is still too wide is cut into bands.
    """
    pen = _Pen(colour=False) if pen is None else pen
    if _map_width(grid, room) > room and grid.width > 1:
        return _bands(grid, moves, max(1, (room - 1) // 3), room, pen)
    width, spacious = _map_width(grid, room), _is_spacious(grid, room)
    edge = [_Line(pen(f"+{'-' * (width - 2)}+", "wall"), width)] if spacious else []
    side = pen("|", "wall") if spacious else ""
    lines = [*edge]
    for y in range(grid.height):
        cells = [_cell(grid, x, y, int(moves[y * grid.width + x]), pen) for x in range(grid.width)]
        between = [pen("|", "wall") if wall else " " * spacious for wall in grid.wall_right[y, :-1]]
        row = "".join(a + b for a, b in zip(cells, [*between, ""], strict=True))
        lines.append(_Line(side + row + side, width))
        if y + 1 < grid.height and grid.wall_below[y].any():
            lines.append(_Line(side + pen(_wall_line(grid, y, spacious), "wall") + side, width))
    return [*lines, *edge]


def _bands(
    grid: GridMap, moves: NDArray[np.int32], columns: int, room: int, pen: _Pen
) -> list[_Line]:
    """Bands of columns of a map, one below the other, each with a heading."""
    lines: list[_Line] = []
    for first in range(0, grid.width, columns):
        band = slice(first, min(first + columns, grid.width))
        part = replace(
            grid,
            rows=tuple(row[band] for row in grid.rows),
            wall_right=grid.wall_right[:, band],
            wall_below=grid.wall_below[:, band],
            start=(grid.start[0] - first, grid.start[1]),
        )
        head = f"columns {band.start} to {band.stop - 1}"
        lines.append(_Line(pen(head, "next"), len(head)))
        shown = moves.reshape(grid.height, grid.width)[:, band].ravel()
        lines += map_lines(part, shown, room, pen)
    return lines


def _cell(grid: GridMap, x: int, y: int, move: int, pen: _Pen) -> str:
    tile = grid.rows[y][x]
    if tile == SOLID:
        return pen(SOLID * 2, "wall")
    is_start = (x, y) == grid.start
    mark = tile if tile != FLOOR else WALKER if is_start else " "
    arrow = ARROWS[move] if move >= 0 else NO_MOVE if mark == " " else " "
    return pen(mark, "start" if is_start else "place") + pen(arrow, "move" if move >= 0 else "wall")


def _wall_line(grid: GridMap, y: int, spacious: bool) -> str:
    """The walls between two rows of cells."""
    below, right = grid.wall_below[y], grid.wall_right
    parts = []
    for x in range(grid.width):
        parts.append("--" if below[x] else "  ")
        if spacious and x + 1 < grid.width:
            along, across = below[x] or below[x + 1], right[y, x] or right[y + 1, x]
            parts.append("+" if along and across else "-" if along else "|" if across else " ")
    return "".join(parts)


def _is_spacious(grid: GridMap, room: int) -> bool:
    return 3 * grid.width + 1 <= room or bool(grid.wall_right[:, :-1].any())


def _map_width(grid: GridMap, room: int) -> int:
    return 3 * grid.width + 1 if _is_spacious(grid, room) else 2 * grid.width


def _heading(machine: RewardMachine, state: str, width: int, pen: _Pen) -> list[_Line]:
    """The name of a machine state, and its outgoing edges."""
    ways: dict[str, list[str]] = {}
    for edge in machine.edges_of(state):
        if edge.target != state:
            ways.setdefault(edge.target, []).append(str(edge.guard))
    onward = sorted(ways, key=machine.failure.__contains__)
    awaited = [f"{' | '.join(dict.fromkeys(ways[target]))} -> {target}" for target in onward]
    name = _cut(f"task state {state}", width)
    then = _cut(f"next: {', '.join(awaited) or 'nothing'}", width)
    return [_Line(pen(name, "head"), len(name)), _Line(pen(then, "next"), len(then))]


def _cut(text: str, width: int) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return shown if len(shown) <= width else f"{shown[: width - 3]}..."


def _side_by_side(panels: list[list[_Line]], width: int) -> list[str]:
    lines = []
    for row in zip(*panels, strict=True):  # all have the same map, so as many lines
        cells = [line.text + " " * (width - line.width) for line in row]
        lines.append(GAP.join(cells).rstrip())
    return lines


def _legend(grid: GridMap, policy: NDArray[np.int32], room: int) -> str:
    there = {tile for row in grid.rows for tile in row}
    column, row = grid.start
    entries = ["@ start"] if grid.rows[row][column] == FLOOR else []
    entries += [
        f"{tile} {name}" for tile, name in grid.tiles.items() if tile in there and tile != name
    ]
    entries += ["^ > v < move", "o wait"] if policy.max() >= 4 else ["^ > v < move"]
    entries.append(f"{NO_MOVE} no move")
    joined = ",  ".join(entry.replace(" ", "\xa0") for entry in entries)  # an entry stays whole
    lines = textwrap.wrap(joined, room, break_on_hyphens=False)
    return "\n".join(lines).replace("\xa0", " ")


def _is_colourful() -> bool:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain
