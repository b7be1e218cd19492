"""A results folder: plain files, one folder for each run.

    study.json                     the study that was swept last, with nothing left open
    runs/ID/run.json               what was run, by which version, and what came of it
    runs/ID/curve.parquet          the learning curve
    runs/ID/checkpoint.safetensors while the run is unfinished
    .lock                          who is writing

ID is the hash of the run's configuration. Each file is written to a temporary name and renamed;
run.json comes last, so that a run that has one is complete. It has a checksum of itself and of the
curve: a damaged run is noticed, reported and run again. Everything that may differ between two
sweeps of the same study is under "timing", and the checksum is not of that; all else is the same,
byte for byte.

Schema 1 had no checksum of run.json; it is still read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from qrmax.errors import SourceError, StoreError, StudyError
from qrmax.source import write_whole
from qrmax.studies.provenance import made_by
from qrmax.studies.study import RunSpec, Study, canonical, config_id

SCHEMA = 2
RUN, CURVE, CHECKPOINT = "run.json", "curve.parquet", "checkpoint.safetensors"

State = Literal["done", "failed", "unfinished", "damaged", "absent"]


class Record(NamedTuple):
    """What a folder says of a run."""

    id: str
    state: State
    data: Mapping[str, Any]  # run.json, where it is whole
    reason: str = ""  # why it is damaged


class Owner(NamedTuple):
    """Who is writing into a folder."""

    pid: int
    host: str
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


class Store:
    """A results folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.runs = self.folder / "runs"

    # --- reading

    def study(self) -> Study:
        """The study that was swept here last."""
        path = self.folder / "study.json"
        try:
            return Study.of(json.loads(path.read_bytes())["study"])
        except FileNotFoundError:
            what = "has no results of qrmax" if self.folder.is_dir() else "there is no such folder"
            raise StoreError(f"{self.folder}: {what}; `qrmax sweep` makes them") from None
        except (OSError, ValueError, LookupError, TypeError, StudyError) as error:
            raise StoreError(f"{path}: is damaged ({error}); sweep the study again") from error

    def records(self) -> Iterator[Record]:
        """All runs that are here, in the order of their ids."""
        if self.runs.is_dir():
            for name in sorted(os.listdir(self.runs)):  # noqa: PTH208 (much quicker)
                record = self.record(name)
                if record.state != "absent":
                    yield record

    def record(self, run_id: str) -> Record:
        """What there is of a run."""
        folder = self.runs / run_id
        try:
            text = (folder / RUN).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            unfinished = (folder / CHECKPOINT).is_file()
            return Record(run_id, "unfinished" if unfinished else "absent", {})
        except OSError as error:
            return Record(run_id, "damaged", {}, f"{RUN} cannot be read: {error.strerror}")
        try:
            data = _checked(text, folder)
        except _DamagedError as error:
            return Record(run_id, "damaged", {}, str(error))
        return Record(run_id, data["status"], data)

    def checkpoint(self, run_id: str) -> bytes:
        """The checkpoint of an unfinished run; empty where there is none."""
        try:
            return (self.runs / run_id / CHECKPOINT).read_bytes()
        except OSError:
            return b""

    def owner(self) -> Owner | str | None:
        """Who is writing here now."""
        import fcntl

        try:
            with (self.folder / ".lock").open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return _owner(file.read())
        except OSError:
            pass
        return None

    # --- writing

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only one who writes here; the system lets go of it when the process ends."""
        import fcntl

        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            file = (self.folder / ".lock").open("a+b")
        except OSError as error:
            raise SourceError(f"{self.folder}: cannot be written: {error.strerror}") from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise StoreError(
                    f"{self.folder}: is being written by {_owner(file.read())}; wait for it, or "
                    "give another folder with -o"
                ) from None
            file.truncate(0)
            file.write(json.dumps([os.getpid(), socket.gethostname(), _now()]).encode())
            file.flush()
            yield

    def write_study(self, study: Study) -> None:
        """Note which study this is."""
        for left in self.folder.glob(".qrmax-*.unfinished"):  # by a process that was killed
            left.unlink(missing_ok=True)
        _write(self.folder / "study.json", {"schema": SCHEMA, "study": study.as_data()})

    def write_checkpoint(self, run_id: str, data: bytes) -> None:
        """Keep how far a run has come."""
        self._folder(run_id)
        write_whole(self.runs / run_id / CHECKPOINT, data)

    def write_outcome(
        self,
        run: RunSpec,
        outcome: Mapping[str, Any],
        curve: bytes,
        *,
        timing: Mapping[str, Any],
        origin: Mapping[str, Any],
    ) -> None:
        """Keep what a run has come to; `origin` is which code has made it."""
        folder = self._folder(run.id)
        write_whole(folder / CURVE, curve)
        checksum = hashlib.sha256(curve).hexdigest()
        self._write_run(run, "done", {"outcome": outcome, "curve": checksum}, timing, origin)

    def write_failure(self, run: RunSpec, error: str, *, timing: Mapping[str, Any]) -> None:
        """Keep why a run has failed."""
        self._folder(run.id)
        self._write_run(run, "failed", {"error": error}, timing, made_by())

    def discard(self, run_id: str) -> None:
        """Forget a run."""
        shutil.rmtree(self.runs / run_id, ignore_errors=True)

    def _folder(self, run_id: str) -> Path:
        folder = self.runs / run_id
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise SourceError(f"{folder}: cannot be written: {error.strerror}") from error
        return folder

    def _write_run(
        self,
        run: RunSpec,
        status: str,
        result: Mapping[str, Any],
        timing: Mapping[str, Any],
        origin: Mapping[str, Any],
    ) -> None:
        data = {
            "schema": SCHEMA,
            "status": status,
            "problem": run.cell.problem.label,
            "label": run.cell.label,
            "config": run.config(),
            "made_by": dict(origin),
            "timing": {**timing, "finished": _now()},
            **result,
        }
        folder = self.runs / run.id
        _write(folder / RUN, {"sha256": _checksum(data), **data})
        for name in os.listdir(folder):  # noqa: PTH208
            if name not in (RUN, CURVE):  # the checkpoint, and what a killed process left
                (folder / name).unlink()


class _DamagedError(Exception):
    """A run.json that is not whole."""


def _checked(text: bytes, folder: Path) -> dict[str, Any]:
    """A run.json, as far as it and the curve beside it are whole."""
    try:
        data = json.loads(text)
        schema, status = data["schema"], data["status"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise _DamagedError(f"{RUN} is no JSON of a run") from None
    if not isinstance(schema, int) or schema > SCHEMA:
        raise StoreError(
            f"{folder / RUN}: is of schema {schema}; this version of qrmax reads up to {SCHEMA}: "
            "update qrmax"
        )
    if schema >= 2 and data.pop("sha256", None) != _checksum(data):
        raise _DamagedError(f"{RUN} has been changed")
    if config_id(data.get("config", {})) != folder.name or status not in ("done", "failed"):
        raise _DamagedError(f"{RUN} is of another run")
    if status == "done":
        try:
            curve = (folder / CURVE).read_bytes()
        except OSError as error:
            raise _DamagedError(f"{CURVE} cannot be read: {error.strerror}") from None
        if hashlib.sha256(curve).hexdigest() != data.get("curve"):
            raise _DamagedError(f"{CURVE} has been changed")
    assert isinstance(data, dict)
    return data


def _checksum(data: Mapping[str, Any]) -> str:
    lasting = {key: value for key, value in data.items() if key != "timing"}
    return hashlib.sha256(canonical(lasting)).hexdigest()


def _write(path: Path, data: Mapping[str, Any]) -> None:
    write_whole(path, (json.dumps(data, indent=1) + "\n").encode())


def _owner(text: bytes) -> Owner | str:
    try:
        return Owner(*json.loads(text))
    except (ValueError, TypeError):
        return "another process"  # which has not written its name yet


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
