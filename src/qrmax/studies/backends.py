"""Where runs are worked on: processes of this machine, or a Ray cluster.

A backend takes assignments and gives reports back, in any order. It knows nothing of studies, and
only the driver writes results.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from qrmax.errors import MissingExtraError, ParameterError, check_count
from qrmax.studies.work import Assignment, Report, advance
from qrmax.studies.worker import receive_report, send_assignment

SOURCE = Path(__file__).parents[2]  # where the package is, for workers to find it, too
ONE_THREAD = dict.fromkeys(  # each: there is a worker for each core
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
)


def count_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Reply(NamedTuple):
    """A report, and the name of the assignment that it is about."""

    key: str
    report: Report


class Backend(ABC):
    """Where runs are worked on."""

    workers: int  # that work at the same time
    capacity: int  # assignments that it makes sense to hand out at the same time

    @abstractmethod
    def submit(self, key: str, assignment: Assignment) -> None:
        """Have something worked on."""

    @abstractmethod
    def wait(self, seconds: float) -> Reply | None:
        """The next reply, or None where there is none within that time."""

    @abstractmethod
    def stop(self) -> list[str]:
        """Hand over soon what is under way; returns what has not been begun and will not be."""

    @abstractmethod
    def close(self) -> None:
        """End everything at once."""


class LocalBackend(Backend):
    """Processes of this machine, each served by a thread."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or count_cores()
        self.capacity = 2 * self.workers  # so that a worker never waits for the driver
        self._assignments: SimpleQueue[tuple[str, Assignment]] = SimpleQueue()
        self._replies: SimpleQueue[Reply] = SimpleQueue()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._starting = threading.Lock()
        self._closed = False
        for _ in range(self.workers):
            threading.Thread(target=self._serve, daemon=True).start()

    def submit(self, key: str, assignment: Assignment) -> None:
        """Have something worked on."""
        self._assignments.put((key, assignment))

    def wait(self, seconds: float) -> Reply | None:
        """The next reply, or None where there is none within that time."""
        try:
            return self._replies.get(timeout=seconds)
        except Empty:
            return None

    def stop(self) -> list[str]:
        """Hand over soon what is under way; returns what has not been begun and will not be."""
        dropped = []
        try:
            while True:
                dropped.append(self._assignments.get_nowait()[0])
        except Empty:
            pass
        for process in [*self._processes]:
            process.send_signal(signal.SIGINT)
        return dropped

    def close(self) -> None:
        """End everything at once."""
        with self._starting:
            self._closed = True
        for process in [*self._processes]:
            process.kill()
            process.wait()

    def _serve(self) -> None:
        """Hand assignments to a worker, one after the other; start another where it dies."""
        process: subprocess.Popen[bytes] | None = None
        while True:
            key, assignment = self._assignments.get()
            try:
                process = process or self._start()
                assert process.stdin is not None
                assert process.stdout is not None
                send_assignment(process.stdin, assignment)
                report = receive_report(process.stdout)
            except (EOFError, OSError) as error:
                if self._closed:
                    return
                report = Report("lost", {"error": _last_words(process, error)})
                if process is not None:
                    self._processes.discard(process)
                process = None
            self._replies.put(Reply(key, report))

    def _start(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
        with self._starting:
            if self._closed:
                raise EOFError
            process = subprocess.Popen(
                [sys.executable, "-m", "qrmax.studies.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": path},
            )
            self._processes.add(process)
        return process


def _last_words(process: subprocess.Popen[bytes] | None, error: Exception) -> str:
    if process is None:
        return f"no worker could be started: {error}"
    code = process.wait()
    why = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"its worker died ({why}{', perhaps out of memory' if code == -9 else ''})"


class RayBackend(Backend):
    """A Ray cluster, or Ray on this machine. Its workers need nothing but the package."""

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        try:
            import ray
        except ImportError as error:
            raise MissingExtraError(
                "the backend 'ray' needs Ray, which is not installed: pip install 'qrmax[ray]'"
            ) from error
        self._ray: Any = ray  # which has types for some of its functions only
        self._ours = not self._ray.is_initialized()
        if self._ours:
            try:
                self._ray.init(
                    address=address or "local",
                    num_cpus=workers if address is None else None,
                    include_dashboard=False if address is None else None,
                    log_to_driver=False,
                    logging_level="error",
                )
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise ParameterError(f"no Ray cluster at address {address!r}: {error}") from error
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        self.workers = self.capacity = min(workers or cores, cores)
        self._advance = self._ray.remote(num_cpus=1, max_retries=0)(advance)
        self._under_way: dict[Any, str] = {}

    def submit(self, key: str, assignment: Assignment) -> None:
        """Have something worked on."""
        self._under_way[self._advance.remote(assignment)] = key

    def wait(self, seconds: float) -> Reply | None:
        """The next reply, or None where there is none within that time."""
        ready, _ = self._ray.wait([*self._under_way], num_returns=1, timeout=seconds)
        if not ready:
            return None
        key = self._under_way.pop(ready[0])
        try:
            return Reply(key, self._ray.get(ready[0]))
        except self._ray.exceptions.RayError as error:
            first = str(error).strip().partition("\n")[0]
            return Reply(key, Report("lost", {"error": f"its worker died ({first})"}))

    def stop(self) -> list[str]:
        """Nothing waits here: what is under way is handed over when its time is up."""
        return []

    def close(self) -> None:
        """End everything at once."""
        for reference in self._under_way:
            self._ray.cancel(reference, force=True)
        if self._ours:
            self._ray.shutdown()


def make_backend(name: str, workers: int | None = None, address: str | None = None) -> Backend:
    """The backend of that name."""
    if workers is not None:
        check_count("workers", workers)
    if name == "ray":
        return RayBackend(workers, address)
    if name != "local":
        raise ParameterError(f"backend is {name!r}; allowed: 'local', 'ray'")
    if address is not None:
        raise ParameterError("address is for the backend 'ray'")
    return LocalBackend(workers)
