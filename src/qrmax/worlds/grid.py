"""Grid worlds: map files as pictures, and the dynamics of moving on them.

A map file has a header, a blank line and the picture:

    # a comment
    start: 0,1
    tiles: p=printer

    . . c|. *
    -   -
    . p .|. O

Cells stand on even columns and even lines; between two cells `|` or `-` is a wall, a space is open.
`start` is column,row, counted from 0 at the top left. A cell's tile is the proposition true there:

    .  nothing        c  coffee         m  mail      A B C D E  rooms, by their letter
    *  decoration     g  good_coffee    O  office    #          solid, cannot be entered

`tiles` adds letters of your own. `slips` is the direction of a slipping move: `perpendicular`
(default) or `any` other direction.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import MapError, check_choice, check_range
from qrmax.logic.guards import Label
from qrmax.problems.mdp import TabularMDP
from qrmax.source import Source, builtin_names

MAPS = Path(__file__).parent / "maps"
SUFFIX = ".txt"

ACTIONS = ("up", "right", "down", "left")  # clockwise: perpendicular is one further or one back
MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))  # (columns, rows)
SLIPS = ("perpendicular", "any")

FLOOR, SOLID = ".", "#"
DECORATION = "decoration"
TILES = {
    "*": DECORATION,
    "c": "coffee",
    "g": "good_coffee",
    "m": "mail",
    "O": "office",
    **{room: room for room in "ABCDE"},
}

_TILE_ENTRY = re.compile(r"\s*([A-Za-z0-9])\s*=\s*([A-Za-z_][A-Za-z0-9_]*)\s*")
_START = re.compile(r"\s*(-?\d{1,9})\s*,\s*(-?\d{1,9})\s*")


@dataclass(frozen=True, eq=False)
class GridMap:
    """A picture of a world: its cells, its walls and the start of episodes.

    >>> map1 = load_map("map1")
    >>> map1
    GridMap('map1': 12 columns x 9 rows)
    >>> sorted(map1.propositions)[:3]
    ['A', 'B', 'C']
    """

    name: str
    text: str  # the picture alone
    rows: tuple[str, ...]  # one tile per cell
    tiles: dict[str, str]  # tile -> proposition
    wall_right: NDArray[np.bool_]  # [y, x]: between a cell and its right neighbour
    wall_below: NDArray[np.bool_]  # [y, x]: between a cell and the one below
    start: tuple[int, int]  # column, row
    slips: str = "perpendicular"

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.rows[0])

    @property
    def height(self) -> int:
        """The number of rows."""
        return len(self.rows)

    @property
    def n_states(self) -> int:
        """The number of cells; cell (x, y) is state y * width + x."""
        return self.width * self.height

    @property
    def start_state(self) -> int:
        """The state an episode starts in."""
        column, row = self.start
        return row * self.width + column

    @property
    def propositions(self) -> frozenset[str]:
        """The propositions that are true somewhere on the map."""
        return frozenset().union(*self.labels())

    def labels(self) -> list[Label]:
        """The distinct labels of the map; the first is the empty one."""
        present = sorted(
            {self.tiles[tile] for row in self.rows for tile in set(row) & {*self.tiles}}
        )
        return [frozenset(), *(frozenset({name}) for name in present)]

    def label(self) -> NDArray[np.int32]:
        """The number of each state's label in `labels()`, `[s]`."""
        number = {label: i for i, label in enumerate(self.labels())}
        codes = np.zeros(0x110000, dtype=np.int32)  # indexed by the tile's character
        for tile, name in self.tiles.items():
            codes[ord(tile)] = number.get(frozenset({name}), 0)
        return codes[self._characters()]

    def coordinates(self) -> NDArray[np.int32]:
        """The column and row of each state, `[s, 2]`."""
        states = np.arange(self.n_states, dtype=np.int32)
        return np.stack([states % self.width, states // self.width], axis=-1)

    def cells(self, tile: str) -> NDArray[np.bool_]:
        """The states with this tile, as a mask `[s]`."""
        return np.asarray(self._characters() == ord(tile))

    def targets(self) -> NDArray[np.int32]:
        """The successor of each move that does not slip, `[s, a]`; into a wall means staying."""
        height, width = self.height, self.width
        here = np.arange(self.n_states, dtype=np.int32).reshape(height, width)
        solid = self.cells(SOLID).reshape(height, width)
        across = ~(self.wall_right[:, :-1] | solid[:, :-1] | solid[:, 1:])  # [y, x] to [y, x + 1]
        along = ~(self.wall_below[:-1] | solid[:-1] | solid[1:])  # [y, x] to [y + 1, x]
        up, right, down, left = (here.copy() for _ in ACTIONS)
        right[:, :-1][across] = here[:, 1:][across]
        left[:, 1:][across] = here[:, :-1][across]
        down[:-1][along] = here[1:][along]
        up[1:][along] = here[:-1][along]
        return np.stack([up, right, down, left], axis=-1).reshape(-1, len(ACTIONS))

    def __repr__(self) -> str:
        return f"GridMap({self.name!r}: {self.width} columns x {self.height} rows)"

    def _characters(self) -> NDArray[np.uint32]:
        return np.frombuffer("".join(self.rows).encode("utf-32-le"), dtype=np.uint32)


def map_names() -> list[str]:
    """The names of the built-in maps."""
    return builtin_names(MAPS, SUFFIX)


def load_map(map: str | os.PathLike[str]) -> GridMap:  # noqa: A002 (people call it a map)
    """Read a map: a built-in one by its name, or your own file by its path.

    >>> load_map("map4").start
    (2, 7)

    Args:
        map: the name of a built-in map (`qrmax list maps` shows them), or the path of a map file.
    """
    return parse_map(Source.find(map, "map", MAPS, SUFFIX))


def slippery_moves(
    targets: NDArray[np.int32],
    *,
    slip: float | NDArray[np.float64],
    slips: str,
    blocked_moves_slip: bool,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Successor lists `[s, a, k]` and their probabilities on a map with these `targets[s, a]`.

    The intended move happens with probability 1 - `slip`; otherwise one of the other directions
    that `slips` allows, uniformly. `slip` may differ by state, `[s]`. A move into a wall stays in
    its cell; it slips only if `blocked_moves_slip`.
    """
    for extreme in (slip.min(), slip.max()) if isinstance(slip, np.ndarray) else (slip,):
        check_range("slip", extreme, at_least=0.0, at_most=1.0)
    check_choice("slips", slips, SLIPS)
    n_states, n_actions = targets.shape
    turns = (0, 1, 3) if slips == "perpendicular" else (0, 1, 2, 3)  # 0 is the intended move
    succ = np.empty((n_states, n_actions, len(turns)), dtype=np.int32)
    prob = np.empty(succ.shape, dtype=np.float64)
    states = np.arange(n_states, dtype=np.int32)
    for action in range(n_actions):
        for k, turn in enumerate(turns):
            succ[:, action, k] = targets[:, (action + turn) % n_actions]
            prob[:, action, k] = slip / (len(turns) - 1) if turn else 1.0 - slip
        if not blocked_moves_slip:
            blocked = targets[:, action] == states
            prob[blocked, action] = [1.0] + [0.0] * (len(turns) - 1)
    return succ, prob


def grid_mdp(
    grid: GridMap,
    *,
    slip: float | NDArray[np.float64],
    slips: str,
    blocked_moves_slip: bool,
    decoration_penalty: float,
    decorations_terminate: bool,
) -> TabularMDP:
    """Return the MDP of walking on a map."""
    succ, prob = slippery_moves(
        grid.targets(), slip=slip, slips=slips, blocked_moves_slip=blocked_moves_slip
    )
    decorated = grid.label() == _number_of(grid, DECORATION)
    reward = (
        np.where(decorated[succ], -abs(decoration_penalty), 0.0) if decoration_penalty else None
    )
    terminal = decorated if decorations_terminate else None
    if decorations_terminate and decorated[grid.start_state]:
        raise MapError(f"{grid.name}: the start is a decoration, where every episode ends")
    return TabularMDP(
        succ,
        prob,
        reward,
        terminal=terminal,
        start=grid.start_state,
        coordinates=grid.coordinates(),
    )


def _number_of(grid: GridMap, proposition: str) -> int:
    labels = grid.labels()
    wanted = frozenset({proposition})
    return labels.index(wanted) if wanted in labels else -1


def format_map(grid: GridMap) -> str:
    """A map as text, which `parse_map` reads back.

    >>> print(format_map(load_map("map4"))[:31])
    start: 2,7
    slips: perpendicular
    """
    own = [f"{tile}={name}" for tile, name in grid.tiles.items() if TILES.get(tile) != name]
    lines = [f"start: {grid.start[0]},{grid.start[1]}", f"slips: {grid.slips}"]
    if own:
        lines.append(f"tiles: {', '.join(own)}")
    return "\n".join([*lines, "", grid.text, ""])


def parse_map(source: Source) -> GridMap:
    """Read a map from text."""
    lines = [line.rstrip() for line in source.lines()]
    try:
        blank = next(i for i, line in enumerate(lines) if not line)
    except StopIteration:
        raise source.error(
            MapError, "no picture; a blank line separates the header from it", line=1
        ) from None
    header = _parse_header(source, lines[:blank])
    while lines and not lines[-1]:
        lines.pop()
    first = blank + 1
    while first < len(lines) and not lines[first]:
        first += 1
    picture = [_without_border(line) for line in lines[first:]]
    if not picture:
        raise source.error(MapError, "no picture after the blank line", line=blank + 1)
    tiles = {**TILES, **header.tiles}
    rows = _parse_cells(source, picture, first + 1, tiles)
    wall_right, wall_below = _parse_walls(source, picture, first + 1, len(rows[0]), len(rows))
    grid = GridMap(
        name=Path(source.name).stem,
        text="\n".join(picture),
        rows=rows,
        tiles=tiles,
        wall_right=wall_right,
        wall_below=wall_below,
        start=header.start,
        slips=header.slips,
    )
    column, row = grid.start
    if not (0 <= column < grid.width and 0 <= row < grid.height):
        raise source.error(
            MapError,
            f"the start {column},{row} is outside the map",
            line=header.start_line,
            note=f"allowed: columns 0 to {grid.width - 1}, rows 0 to {grid.height - 1}",
        )
    if rows[row][column] == SOLID:
        raise source.error(
            MapError, f"the start {column},{row} is on a wall ({SOLID!r})", line=header.start_line
        )
    return grid


def _without_border(line: str) -> str:
    """The line without a wall drawn along the right border, which is implied."""
    return line[:-1] if len(line) % 2 == 0 and line.endswith("|") else line


@dataclass(frozen=True)
class _Header:
    start: tuple[int, int]
    start_line: int
    tiles: dict[str, str]
    slips: str


def _parse_header(source: Source, lines: list[str]) -> _Header:
    start: tuple[int, int] | None = None
    start_line = 0
    tiles: dict[str, str] = {}
    slips = SLIPS[0]
    seen: set[str] = set()
    for number, line in enumerate(lines, start=1):
        if line.startswith("#"):
            continue
        key, colon, value = line.partition(":")
        if key in seen and key != "tiles":
            raise source.error(MapError, f"a second line {key!r}", line=number)
        seen.add(key)
        if key == "start" and (match := _START.fullmatch(value)):
            start, start_line = (int(match[1]), int(match[2])), number
        elif key == "slips" and value.strip() in SLIPS:
            slips = value.strip()
        elif key == "tiles" and colon:
            _parse_tiles(source, number, value, tiles)
        else:
            raise source.error(
                MapError,
                f"not a header line: {line[:40]!r}",
                line=number,
                note="allowed: 'start: column,row', 'tiles: x=name, ...', "
                "'slips: perpendicular' or 'any', '# comment'; a blank line ends the header",
            )
    if start is None:
        raise source.error(
            MapError, "no start; the header needs a line 'start: column,row'", line=1
        )
    return _Header(start, start_line, tiles, slips)


def _parse_tiles(source: Source, number: int, value: str, tiles: dict[str, str]) -> None:
    for entry in value.split(","):
        match = _TILE_ENTRY.fullmatch(entry)
        if match is None or match[1] in tiles or match[2] in ("true", "false"):
            raise source.error(
                MapError,
                f"not a tile: {entry.strip()[:40]!r}",
                line=number,
                note="allowed: a letter or digit, each once, '=' and a name, such as p=printer",
            )
        tiles[match[1]] = match[2]


def _parse_cells(
    source: Source, picture: list[str], first_line: int, tiles: dict[str, str]
) -> tuple[str, ...]:
    allowed = {FLOOR, SOLID, *tiles}
    rows: list[str] = []
    for i in range(0, len(picture), 2):
        line, number = picture[i], first_line + i
        if len(line) != len(picture[0]):
            raise source.error(
                MapError,
                f"a row of {(len(line) + 1) // 2} cells, but the first row has "
                f"{(len(picture[0]) + 1) // 2}; every row needs as many",
                line=number,
                column=min(len(line), len(picture[0])) + 1,
            )
        rows.append(line[::2])
        if unknown := set(rows[-1]) - allowed:
            column = min(2 * rows[-1].index(tile) + 1 for tile in unknown)
            raise source.error(
                MapError,
                f"unknown tile {line[column - 1]!r}",
                line=number,
                column=column,
                note="allowed: "
                + " ".join(sorted(allowed, key=lambda tile: (tile.isalnum(), tile))),
            )
        _check_between(source, line[1::2], " |", number, offset=2)
    return tuple(rows)


def _parse_walls(
    source: Source, picture: list[str], first_line: int, width: int, height: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    right = np.zeros((height, width), dtype=bool)
    below = np.zeros((height, width), dtype=bool)
    for y in range(height):
        between = picture[2 * y][1::2]
        right[y, : width - 1] = np.array([c == "|" for c in between], dtype=bool)
        if 2 * y + 1 < len(picture):
            line, number = picture[2 * y + 1], first_line + 2 * y + 1
            if len(line) > 2 * width - 1:
                raise source.error(
                    MapError, "a line of walls longer than the rows", line=number, column=2 * width
                )
            _check_between(source, line[::2], " -", number, offset=1)
            _check_between(source, line[1::2], " -|+", number, offset=2)
            walls = line[::2].ljust(width)
            below[y] = np.array([c == "-" for c in walls], dtype=bool)
    return right, below


def _check_between(source: Source, marks: str, allowed: str, number: int, *, offset: int) -> None:
    """Refuse marks other than walls between cells; `marks` are every second character."""
    if unknown := set(marks) - set(allowed):
        column = offset + 2 * min(marks.index(mark) for mark in unknown)
        raise source.error(
            MapError,
            f"{source.lines()[number - 1][column - 1]!r} between cells",
            line=number,
            column=column,
            note="allowed there: " + ", ".join(repr(mark) for mark in allowed),
        )
