"""Logs of learning curves during training: CSV, and event files for TensorBoard.

A folder holds

    run.json     the agent, its settings, the problem and the seed
    curve.csv    a row for each row of `run.curve`, and the training time in seconds
    events...    the same for TensorBoard (extra `log`)

Rows are written and flushed at once (for TensorBoard within a second or so), so that a run that is
killed leaves its log. A run that is resumed appends to its own log, after dropping rows of steps
later than the one it resumes from; the log of any other run is refused.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from qrmax.errors import ParameterError, SourceError, warn
from qrmax.source import write_whole
from qrmax.training.point import Point
from qrmax.training.stopping import rule_as_data
from qrmax.training.trainer import Evaluated, Event, Session

CURVE, ABOUT = "curve.csv", "run.json"
COLUMNS = (*Point._fields, "seconds")
FLUSH_SECONDS = 1
SCALARS = ("success", "start_value", "gap", "episodes", "episode_return", "length", "seconds")


def logged(session: Session, log: str | os.PathLike[str] | None) -> Iterator[Event]:
    """The events of a session, written into a log if there is one.

    Errors about the log are raised before the first step.
    """
    if log is None:
        return session.events()
    return _recorded(session, RunLog(session, log))


def _recorded(session: Session, log: RunLog) -> Iterator[Event]:
    try:
        for event in session.events():
            if isinstance(event, Evaluated) and event.point is not None:
                log.write(event.point)
            yield event
    finally:
        log.close()


class RunLog:
    """The log of a session: a folder, or only a CSV file if the path ends in ".csv"."""

    def __init__(self, session: Session, path: str | os.PathLike[str]) -> None:
        self._session = session
        given = Path(path)
        alone = given.suffix.lower() == ".csv"
        self.curve = given if alone else given / CURVE
        self._about = given.with_suffix(".json") if alone else given / ABOUT
        rows = self._rows_so_far()
        try:
            self.curve.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SourceError(f"{path}: cannot be a log: {error.strerror}") from error
        write_whole(self._about, json.dumps(_identity(session), indent=2).encode() + b"\n")
        write_whole(self.curve, _as_csv([COLUMNS, *rows]).encode())
        self._file: IO[str] = self.curve.open("a", encoding="utf-8", newline="")
        self._board = None if alone else _board(given, session.progress.step)

    def write(self, point: Point) -> None:
        """Add a row."""
        row = [*point, round(self._session.progress.seconds, 6)]
        self._file.write(_as_csv([row]))
        self._file.flush()
        if self._board is not None:
            for name, value in zip(COLUMNS, row, strict=True):
                if name in SCALARS and value is not None:
                    self._board.add_scalar(name, value, point.step)

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._board is not None:
            self._board.close()

    def _rows_so_far(self) -> list[list[str]]:
        """The rows of an earlier part of this very run; an error if they are another run's."""
        step, rows = self._session.progress.step, _rows(self.curve)
        about = self._about
        ours = not about.exists() or _read_json(about) == _identity(self._session)
        if not ours or (rows and (step == 0 or not about.exists())):
            why = "it starts from step 0" if ours and step == 0 else "it is another one"
            raise ParameterError(
                f"{self.curve}: there is the log of a run already, and this run does not append "
                f"to it, since {why}; give another log, or delete that one"
            )
        return [row for row in rows if int(row[0]) <= step]


def _rows(path: Path) -> list[list[str]]:
    """The rows of a log that were written completely."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            head, *rows = [*csv.reader(file)] or [[*COLUMNS]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, csv.Error) as error:
        raise ParameterError(f"{path}: cannot be read as a log: {error}; give another") from error
    if head != [*COLUMNS]:
        raise ParameterError(f"{path}: exists, and is not the log of a run; give another")
    return [row for row in rows if len(row) == len(COLUMNS) and row[0].isdecimal()]


def _identity(session: Session) -> dict[str, Any]:
    """The description of a run without its budget."""
    training = session.training
    described = {
        "agent": session.agent.name,
        "settings": asdict(session.agent.config),
        "problem": session.domain.name,
        "seed": training.seed,
        "evaluate_every": training.evaluate_every,
        **rule_as_data(training.stop),
    }
    plain: dict[str, Any] = json.loads(json.dumps(described, default=float))
    return plain


def _as_csv(rows: Any) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _board(folder: Path, step: int) -> Any:
    """A writer for TensorBoard; None, with a warning, if the extra is not installed."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        warn(
            f"{folder}: only {CURVE} is written, nothing for TensorBoard: that needs "
            "pip install 'qrmax[log]'; a log that ends in .csv asks for no more"
        )
        return None
    earlier = sum(1 for _ in folder.glob("events.out.tfevents.*"))  # names go by the second
    return SummaryWriter(
        str(folder),
        purge_step=step + 1 if step else None,
        filename_suffix=f".{earlier:04d}",
        flush_secs=FLUSH_SECONDS,
    )
