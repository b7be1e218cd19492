"""Maps of a world: pictures in a folder, besides the user's own files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from qrmax.source import Source, builtin_names
from qrmax.worlds.grid import SUFFIX, GridMap, parse_map

AnyMap = str | os.PathLike[str] | GridMap
"""A map wherever one is asked for: a name, the path of a file, or the map itself."""


@dataclass(frozen=True, kw_only=True)
class MapFolder:
    """The maps of a world.

    Args:
        folder: the folder of the map files, `NAME.txt`.
        default: the name of the map of a world with a single one; if None, problems are named
            WORLD/MAP/TASK.
        cell: the width and height of a cell, in the units of the world.
    """

    folder: Path
    default: str | None = None
    cell: tuple[float, float] = (1.0, 1.0)

    def names(self) -> list[str]:
        """Return the names of the built-in maps of the world."""
        return builtin_names(self.folder, SUFFIX) if self.default is None else [self.default]

    def load(self, given: AnyMap) -> GridMap:
        """Read a map: one of the folder by its name, or a file by its path."""
        if isinstance(given, GridMap):
            return given
        return parse_map(Source.find(given, "map", self.folder, SUFFIX))
