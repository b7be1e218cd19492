"""Runs of other tools, shown beside a study's own in its tables and curves.

[[others]]
label = "PPO"
problem = "cliff"                    # the label of a problem of the study
files = "ppo/seed-*/monitor.csv"     # or a list; relative to the study
tool = "Stable-Baselines3"           # by default, inferred from the kind of the files
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qrmax.errors import ParameterError, StudyError, UnknownNameError, shown
from qrmax.studies.foreign_runs import ForeignPoint, ForeignRun, read_runs
from qrmax.studies.reading import Table, as_entry

OTHER_KEYS = ("label", "problem", "files", "tool")
MOST_POINTS = 1000  # of a run; a longer curve is thinned out


@dataclass(frozen=True, slots=True)
class OtherRuns:
    """The runs of another tool on a problem, one for each seed."""

    label: str
    problem: str
    tool: str
    runs: tuple[ForeignRun, ...]

    @property
    def marked(self) -> str:
        """The label with the name of the tool, which distinguishes these runs from ours."""
        return f"{self.label} ({self.tool})"

    def as_data(self) -> dict[str, Any]:
        """Everything as plain data."""
        runs = [[run.path, run.seed, [[*point] for point in run.curve]] for run in self.runs]
        return {"label": self.label, "problem": self.problem, "tool": self.tool, "runs": runs}

    @staticmethod
    def of(data: Mapping[str, Any]) -> OtherRuns:
        """The runs that `as_data` described."""
        runs = (
            ForeignRun(path, seed, tuple(ForeignPoint(*point) for point in curve))
            for path, seed, curve in data["runs"]
        )
        return OtherRuns(data["label"], data["problem"], data["tool"], tuple(runs))


def read_others(
    table: Table, problems: Sequence[str], agents: Sequence[str], beside: Path, every: int
) -> list[OtherRuns]:
    """Read the entries of `others`; labels are unique on each problem."""
    found: list[OtherRuns] = []
    for path, value in table.items("others") or []:
        if not isinstance(value, dict):
            table.mistakes.add(path, f"is {shown(value)}; needed: a table")
            continue
        entry = as_entry(value, "label", path, table.mistakes)
        assert entry is not None  # `others` is a list of tables
        with table.mistakes.at(path):
            others = _read(entry, problems, beside, every)
            if others is None:
                continue
            taken = [(other.marked, other.problem) for other in found]
            if (others.marked, others.problem) in taken or others.marked in agents:
                raise ParameterError(f"there are two {others.marked!r}; give one another label")
            found.append(others)
    return found


def is_judged(run: ForeignRun, rule: Mapping[str, Any]) -> bool:
    """Whether the tool logged all that a stopping rule, as plain data, has thresholds for."""
    return (
        rule["stop"] == "reaches"
        and rule["discounted_return"] is None
        and all(
            any(getattr(point, name) is not None for point in run.curve) for name in goals(rule)
        )
    )


def first_reached(run: ForeignRun, rule: Mapping[str, Any]) -> int | None:
    """The steps to the threshold of the rule `reaches`; None if the run never meets it."""
    wanted = goals(rule)
    streak: list[int] = []
    for point in run.curve:
        values = [getattr(point, name) for name in wanted]
        pairs = zip(values, wanted.values(), strict=True)
        passes = bool(wanted) and all(x is not None and x >= goal for x, goal in pairs)
        streak = [*streak, point.step] if passes else []
        if len(streak) >= rule["in_a_row"]:
            return streak[0]
    return None


def goals(rule: Mapping[str, Any]) -> dict[str, float]:
    """The thresholds of the rule `reaches` on what other tools log."""
    names = ("success", "episode_return")
    return {name: rule[name] for name in names if rule.get(name) is not None}


def _read(entry: Table, problems: Sequence[str], beside: Path, every: int) -> OtherRuns | None:
    label, problem, tool = entry.text("label"), entry.text("problem"), entry.text("tool")
    patterns = entry.raw("files")
    entry.refuse_rest(OTHER_KEYS)
    for key in ("label", "problem", "files"):
        if key not in entry:
            entry.mistakes.add(entry.place(key), "is missing")
    if label is None or problem is None or patterns is None:
        return None
    known = problem in problems or not problems
    if not known:
        unknown = UnknownNameError("problem", problem, problems)
        entry.mistakes.add(entry.place("problem"), str(unknown))
    paths = [*_paths(patterns, beside)]
    runs = tuple(
        run._replace(path=str(Path(run.path).relative_to(beside)), curve=_thinned(run.curve))
        for run in read_runs(paths, every)
    )
    return OtherRuns(label, problem, tool or _kind(paths[0]), runs) if known else None


def _paths(patterns: Any, beside: Path) -> Iterator[Path]:
    """The files that match the patterns, in order."""
    listed = [patterns] if isinstance(patterns, str) else patterns
    if not isinstance(listed, list) or not listed or not all(isinstance(x, str) for x in listed):
        raise ParameterError(f"files is {shown(patterns)}; needed: a path, a pattern, or a list")
    for pattern in listed:
        try:
            found = sorted(beside.glob(pattern))
        except (ValueError, NotImplementedError) as error:  # empty, absolute, or with a NUL
            raise StudyError(f"files: {shown(pattern)}: {error}") from error
        if not found:
            raise StudyError(f"{beside / pattern}: there is no such file")
        yield from found


def _kind(path: Path) -> str:
    if "tfevents" in path.name:
        return "TensorBoard"
    return "monitor" if path.name.endswith("monitor.csv") else "CSV"


def _thinned(curve: Sequence[ForeignPoint]) -> tuple[ForeignPoint, ...]:
    spacing = -(-len(curve) // MOST_POINTS)
    last = curve[-1:] if (len(curve) - 1) % spacing else ()
    return (*itertools.islice(curve, 0, None, spacing), *last)
