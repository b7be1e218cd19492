"""Learning curves of other tools: SB3's monitor files, TensorBoard's event files, tidy CSV.

Such a curve has the values that its tool logged: mostly mean returns of training episodes, not
evaluations of the greedy policy. Tables and figures mark it as such.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from qrmax.errors import StudyError
from qrmax.studies.event_file import read_scalars

RETURN_TAGS = ("eval/mean_reward", "rollout/ep_rew_mean", "return", "episode_return")
SUCCESS_TAGS = ("eval/success_rate", "rollout/success_rate", "success")
STEP_COLUMNS = ("step", "steps", "timesteps", "total_timesteps", "global_step")
SUCCESS_COLUMNS = ("success", "is_success")
RETURN_COLUMNS = ("return", "episode_return", "reward", "r")


class ForeignPoint(NamedTuple):
    """A point of a learning curve; None for values that the tool did not log."""

    step: int
    success: float | None
    episode_return: float | None


class ForeignRun(NamedTuple):
    """One run of another tool."""

    path: str
    seed: int
    curve: tuple[ForeignPoint, ...]


def read_runs(paths: Iterable[str | os.PathLike[str]], every: int) -> list[ForeignRun]:
    """Read runs, one for each file or for each `seed` of a tidy CSV.

    `every` is the number of steps over which episodes of a monitor file are averaged.
    """
    runs: list[ForeignRun] = []
    for path in paths:
        curves = _curves(Path(path), every)
        if not all(curves) or not curves:
            raise StudyError(f"{path}: has no points of a learning curve")
        for curve in curves:
            runs.append(ForeignRun(str(path), len(runs), tuple(curve)))
    return runs


def _curves(path: Path, every: int) -> list[list[ForeignPoint]]:
    if not path.is_file():
        raise StudyError(f"{path}: there is no such file")
    if "tfevents" in path.name:
        return [_of_scalars(path)]
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    if lines and lines[0].startswith("#"):
        return [_of_episodes(path, list(csv.DictReader(lines[1:])), every)]
    return _of_rows(path, list(csv.DictReader(lines)))


def _of_scalars(path: Path) -> list[ForeignPoint]:
    scalars = read_scalars(path)
    tags = {scalar.tag for scalar in scalars}
    success = next((tag for tag in SUCCESS_TAGS if tag in tags), None)
    episode_return = next((tag for tag in RETURN_TAGS if tag in tags), None)
    if success is None and episode_return is None:
        raise StudyError(
            f"{path}: has none of the scalars {', '.join(SUCCESS_TAGS + RETURN_TAGS)}; it has "
            f"{', '.join(sorted(tags)) or 'none at all'}"
        )
    found = {(scalar.tag, scalar.step): scalar.value for scalar in scalars}
    steps = sorted({step for tag, step in found if tag in (success, episode_return)})
    return [
        ForeignPoint(
            step, found.get((success or "", step)), found.get((episode_return or "", step))
        )
        for step in steps
    ]


def _of_episodes(path: Path, rows: Sequence[dict[str, str]], every: int) -> list[ForeignPoint]:
    """Means over episodes of a monitor file, each at the first multiple of `every` from its end.

    So no point precedes an episode that it summarises, and the last episodes have a point, too.
    """
    windows: dict[int, list[ForeignPoint]] = {}
    step = 0
    for line, row in enumerate(rows, 3):
        step += int(_number(path, line, row, ("l",), needed=True) or 0)
        success = _number(path, line, row, SUCCESS_COLUMNS)
        episode = ForeignPoint(step, success, _number(path, line, row, RETURN_COLUMNS))
        windows.setdefault(-(-step // every) * every, []).append(episode)
    return [
        ForeignPoint(mark, _mean(e.success for e in ended), _mean(e.episode_return for e in ended))
        for mark, ended in windows.items()
    ]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _of_rows(path: Path, rows: Sequence[dict[str, str]]) -> list[list[ForeignPoint]]:
    """The curves of a tidy CSV, one for each seed."""
    curves: dict[str, list[ForeignPoint]] = {}
    for line, row in enumerate(rows, 2):
        step = _number(path, line, row, STEP_COLUMNS, needed=True)
        point = ForeignPoint(
            int(step or 0),
            _number(path, line, row, SUCCESS_COLUMNS),
            _number(path, line, row, RETURN_COLUMNS),
        )
        if point.success is None and point.episode_return is None:
            raise StudyError(
                f"{path}, line {line}: has neither a success nor a return; needed: a column "
                f"{' or '.join(SUCCESS_COLUMNS[:1] + RETURN_COLUMNS[:1])}"
            )
        curves.setdefault(row.get("seed") or "", []).append(point)
    return [sorted(points) for points in curves.values()]


def _number(
    path: Path, line: int, row: dict[str, str], columns: tuple[str, ...], *, needed: bool = False
) -> float | None:
    """The number in the first of these columns that the row has."""
    for column in columns:
        text = (row.get(column) or "").strip()
        if not text:
            continue
        text = {"True": "1", "False": "0"}.get(text, text)
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise StudyError(f"{path}, line {line}: {column} is {text!r}; allowed: finite numbers")
        return number
    if needed:
        raise StudyError(f"{path}, line {line}: has no column {' or '.join(columns)}")
    return None
