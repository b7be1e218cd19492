"""A study so small that a sweep takes a moment: four cells in a row, a few hundred steps."""

from __future__ import annotations

from pathlib import Path

from qrmax.source import Source
from qrmax.studies.expand import parse_study
from qrmax.studies.study import Study

ROW = "start: 1,0\n\nc . . O\n"
FETCH = """initial = "start"
success = ["done"]
edges = [
  { from = "start", when = "coffee", to = "has_coffee" },
  { from = "has_coffee", when = "office", to = "done", reward = 1.0 },
]
"""
GOOD = """
problems = [{ map = "row.txt", task = "fetch.toml" }]
agents = ["qrmax"]
seeds = 2
max_steps = 600
evaluate_every = 100
"""


def problems(entries: str) -> str:
    """The study with other problems."""
    return GOOD.replace('{ map = "row.txt", task = "fetch.toml" }', entries)


def agents(entries: str) -> str:
    """The study with other agents."""
    return GOOD.replace('"qrmax"', entries)


def seeds(given: str) -> str:
    """The study with other seeds."""
    return GOOD.replace("seeds = 2", f"seeds = {given}")


def write_tiny(folder: Path, text: str = GOOD) -> Path:
    """Write the study and its files; returns its path."""
    (folder / "row.txt").write_text(ROW)
    (folder / "fetch.toml").write_text(FETCH)
    (folder / "tiny.toml").write_text(text)
    return folder / "tiny.toml"


def parsed(folder: Path, text: str, protocol: str | None = None) -> Study:
    """The study that a file of this text would be there."""
    return parse_study(Source(str(folder / "tiny.toml"), text), "tiny", protocol)
