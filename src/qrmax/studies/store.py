"""A results folder: plain files, one folder for each run.

    study.json                     the study that was swept last, with all defaults filled in
    runs/ID/run.json               the configuration, the versions, and the outcome
    runs/ID/curve.parquet          the learning curve
    runs/ID/checkpoint.safetensors while the run is unfinished
    .lock                          the process that is writing

ID is the hash of the run's configuration. Each file is written to a temporary name and renamed;
run.json comes last, so that a run that has one is complete. It has a checksum of itself and of the
curve: a damaged run is detected, reported and run again. Whatever may differ between two sweeps of
the same study is under "timing", which the checksum excludes; the rest is identical, byte for byte.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from qrmax.errors import SourceError, StoreError
from qrmax.source import write_whole
from qrmax.studies.provenance import made_by
from qrmax.studies.study import ID_LENGTH, RunSpec, Study, canonical

SCHEMA = 2
_ID = re.compile(f"[0-9a-f]{{{ID_LENGTH}}}")
STUDY, RUN, CURVE = "study.json", "run.json", "curve.parquet"
CHECKPOINT = "checkpoint.safetensors"
LOOKS, LOOK = 10, 0.05  # attempts to take the lock, and seconds between them

State = Literal["done", "failed", "unfinished", "damaged", "absent"]


class Record(NamedTuple):
    """The record of a run in a folder."""

    id: str
    state: State
    data: Mapping[str, Any]  # run.json, if it is intact
    reason: str = ""  # the cause of damage


class Owner(NamedTuple):
    """The process that is writing into a folder."""

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
        if (study := self.study_if_whole()) is not None:
            return study
        if (path := self.folder / STUDY).exists():
            raise StoreError(f"{path}: is damaged; sweep the study again")
        what = "has no results of qrmax" if self.folder.is_dir() else "there is no such folder"
        raise StoreError(f"{self.folder}: {what}; `qrmax sweep` makes them")

    def study_if_whole(self) -> Study | None:
        """The study that was swept here last; None if it is missing or damaged."""
        path = self.folder / STUDY
        try:
            data = json.loads(path.read_bytes())
            _check_schema(data["schema"], path)
            return Study.of(data["study"])
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None

    def records(self) -> Iterator[Record]:
        """The records of all runs, in the order of their ids."""
        if self.runs.is_dir():
            for name in sorted(os.listdir(self.runs)):  # noqa: PTH208 (much quicker)
                if _ID.fullmatch(name) and (record := self.record(name)).state != "absent":
                    yield record

    def record(self, run_id: str) -> Record:
        """Return the record of a run."""
        folder = self.runs / run_id
        try:
            text = (folder / RUN).read_bytes()
        except FileNotFoundError:
            unfinished = (folder / CHECKPOINT).is_file()
            return Record(run_id, "unfinished" if unfinished else "absent", {})
        except OSError as error:  # such as a file in place of the folder
            return Record(run_id, "damaged", {}, f"{RUN} cannot be read: {error.strerror}")
        try:
            data = _checked(text, folder)
        except _DamagedError as error:
            return Record(run_id, "damaged", {}, str(error))
        return Record(run_id, data["status"], data)

    def checkpoint(self, run_id: str) -> bytes:
        """The checkpoint of an unfinished run; empty if there is none."""
        try:
            return (self.runs / run_id / CHECKPOINT).read_bytes()
        except OSError:
            return b""

    def owner(self) -> Owner | str | None:
        """The process that holds the lock, if any."""
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
        """Hold the exclusive lock for writing; the system releases it when the process ends."""
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            file = (self.folder / ".lock").open("a+b", buffering=0)
        except OSError as error:
            raise SourceError(f"{self.folder}: cannot be written: {error.strerror}") from error
        with file:
            if not _take_lock(file):
                file.seek(0)
                raise StoreError(
                    f"{self.folder}: is being written by {_owner(file.read())}; wait for it, or "
                    "give another folder with -o"
                )
            for left_behind in self.folder.glob(".qrmax-*.unfinished"):  # of a killed process
                left_behind.unlink(missing_ok=True)
            try:
                file.truncate(0)
                file.write(json.dumps([os.getpid(), socket.gethostname(), _now()]).encode())
            except OSError as error:  # a full disk
                raise SourceError(f"{file.name}: cannot be written: {error.strerror}") from error
            yield

    def write_study(self, study: Study) -> None:
        """Write the study of this folder."""
        text = json.dumps({"schema": SCHEMA, "study": study.as_data()}, indent=1)
        write_whole(self.folder / STUDY, text.encode() + b"\n")

    def write_checkpoint(self, run_id: str, data: bytes) -> None:
        """Write the checkpoint of a run."""
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
        """Write the outcome of a run; `origin` is the provenance of the code."""
        folder = self._folder(run.id)
        write_whole(folder / CURVE, curve)
        checksum = hashlib.sha256(curve).hexdigest()
        self._write_run(run, "done", {"outcome": outcome, "curve": checksum}, timing, origin)

    def write_failure(self, run: RunSpec, error: str, *, timing: Mapping[str, Any]) -> None:
        """Record a failed run, with its error."""
        self._folder(run.id)
        self._write_run(run, "failed", {"error": error}, timing, made_by())

    def discard(self, run_id: str) -> None:
        """Delete a run."""
        folder = self.runs / run_id
        if folder.is_dir():
            shutil.rmtree(folder, ignore_errors=True)
        else:
            folder.unlink(missing_ok=True)

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
            "id": run.id,
            "status": status,
            "problem": run.cell.problem.label,
            "label": run.cell.label,
            "config": run.config(),
            "made_by": dict(origin),
            **result,
        }
        folder = self.runs / run.id
        write_whole(folder / RUN, _sealed(data, {**timing, "finished": _now()}))
        for name in os.listdir(folder):  # noqa: PTH208
            if name not in (RUN, CURVE):  # the checkpoint, and temporary files of a killed process
                (folder / name).unlink()


def _check_schema(schema: int, path: Path) -> None:
    if schema != SCHEMA:
        remedy = "update qrmax" if schema > SCHEMA else "sweep the study into another folder"
        raise StoreError(
            f"{path}: is of schema {schema}; this version of qrmax reads {SCHEMA}: {remedy}"
        )


def _take_lock(file: IO[bytes]) -> bool:
    """Try to lock a file, several times, as `owner` of another process locks it briefly."""
    import fcntl

    for _ in range(LOOKS):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(LOOK)
    return False


class _DamagedError(Exception):
    """A damaged run.json."""


def _checked(text: bytes, folder: Path) -> dict[str, Any]:
    """The content of a run.json; raises if it or its curve is damaged."""
    try:
        data = json.loads(text)
        schema, status = int(data["schema"]), data["status"]
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
        raise _DamagedError(f"{RUN} is not the JSON of a run") from None
    _check_schema(schema, folder / RUN)
    if not _is_sealed(text):
        raise _DamagedError(f"{RUN} has been changed")
    if data.get("id") != folder.name or status not in ("done", "failed"):
        raise _DamagedError(f"{RUN} is of another run")
    if not _has_all_parts(data):
        raise _DamagedError(f"{RUN} lacks a part")
    if status == "done":
        try:
            curve = (folder / CURVE).read_bytes()
        except OSError as error:
            raise _DamagedError(f"{CURVE} cannot be read: {error.strerror}") from None
        if hashlib.sha256(curve).hexdigest() != data.get("curve"):
            raise _DamagedError(f"{CURVE} has been changed")
    assert isinstance(data, dict)
    return data


def _has_all_parts(data: Mapping[str, Any]) -> bool:
    """Whether all keys that are read elsewhere are present: the checksum excludes the timing."""
    try:
        texts = [data["problem"], data["label"], data["made_by"]["qrmax"]]
        tables = [data["made_by"], data["timing"]]
        tables += [data["outcome"]] if data["status"] == "done" else []
        return (
            all(isinstance(text, str) for text in texts)
            and all(isinstance(table, dict) for table in tables)
            and "commit" in data["made_by"]
            and isinstance(data["timing"]["total"], int | float)
        )
    except (LookupError, TypeError):
        return False


# A run.json is "{", the checksum, the reproducible part, the timing. The checksum is that of the
# reproducible part as text, so that ten thousand files are verified without serialising them again.
_TIMING = b',\n "timing": '


def _sealed(data: Mapping[str, Any], timing: Mapping[str, Any]) -> bytes:
    lasting = json.dumps(data, indent=1).removeprefix("{").removesuffix("\n}").encode()
    seal = hashlib.sha256(lasting).hexdigest().encode()
    return b'{\n "sha256": "' + seal + b'",' + lasting + _TIMING + canonical(timing) + b"\n}\n"


def _is_sealed(text: bytes) -> bool:
    before, _, rest = text.partition(b'",')
    lasting = rest.rpartition(_TIMING)[0]
    return before[-64:] == hashlib.sha256(lasting).hexdigest().encode()


def _owner(text: bytes) -> Owner | str:
    try:
        return Owner(*json.loads(text))
    except (ValueError, TypeError):
        return "another process"  # which has not written its id yet


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
