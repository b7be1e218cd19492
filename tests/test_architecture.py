"""The plan of the house and the house itself: docs/architecture.md beside the tree."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import qrmax

PACKAGE = Path(qrmax.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
INDENT = 2  # characters for each folder


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "__init__.py"]


def drawn() -> set[str]:
    """The modules that the page draws, as paths below the package."""
    block = PAGE.read_text(encoding="utf-8").split("## The rooms")[1].split("## ")[0]
    found, rooms = set(), [""]
    for line in block.splitlines():
        if match := re.match(r"^( {6,})([a-z_]+/|\S+\.py)", line):
            depth = (len(match[1]) - 6) // INDENT
            rooms = rooms[: depth + 1]
            if match[2].endswith("/"):
                rooms.append(rooms[-1] + match[2])
            else:
                found.add(rooms[-1] + match[2])
    return found


def test_the_page_draws_every_module_and_nothing_else() -> None:
    there = {path.relative_to(PACKAGE).as_posix() for path in modules()}
    assert drawn() == there


def test_no_two_modules_have_the_same_name() -> None:
    names = Counter(path.name for path in modules())
    assert {name: count for name, count in names.items() if count > 1} == {}
