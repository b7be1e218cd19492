"""Modules with agents from outside, as files in a folder of their own."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SARSA = Path(__file__).parents[1] / "examples" / "sarsa.py"


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Let modules in a folder be imported; afterwards they are forgotten."""
    path, modules = [*sys.path], {*sys.modules}
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = path
        for name in {*sys.modules} - modules:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(file).is_relative_to(folder):
                del sys.modules[name]


def write_module(folder: Path, name: str = "mine", text: str | None = None) -> Path:
    """A module in a folder: the example of the guide, or another text."""
    file = folder / f"{name}.py"
    file.write_text(SARSA.read_text() if text is None else text)
    return file


def write_entry_points(folder: Path, **points: str) -> None:
    """A distribution that offers agents, as it would be installed in a folder."""
    info = folder / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    lines = [f"{name.replace('_', '-')} = {value}" for name, value in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[qrmax.agents]", *lines, ""]))


def imported(name: str) -> Any:
    return importlib.import_module(name)
