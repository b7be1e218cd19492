"""Backends that execute runs: processes of this machine; `ray_backend.py` has Ray clusters.

A backend takes assignments and returns reports, in any order. It knows nothing of studies, and only
the driver writes results.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from itertools import count
from pathlib import Path
from queue import Empty, PriorityQueue, SimpleQueue
from typing import NamedTuple

from qrmax.errors import ParameterError, check_count
from qrmax.studies.work import Assignment, Report
from qrmax.studies.worker import receive_report, send_assignment, send_stop

SOURCE = Path(__file__).parents[2]  # the folder of the package, for the path of workers
ONE_THREAD = dict.fromkeys(  # per worker, as there is one worker per core
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
)


def count_cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def package_path() -> str:
    """The `PYTHONPATH` with which a process finds this package."""
    return os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])


def exit_reason(code: int) -> str:
    """Describe the exit code of a process; a negative one is a signal."""
    if code >= 0:
        return f"exit code {code}"
    return f"signal {-code}" + (", perhaps out of memory" if code == -signal.SIGKILL else "")


class Reply(NamedTuple):
    """A report, and the key of its assignment."""

    key: str
    report: Report


class Backend(ABC):
    """A pool of workers that execute runs."""

    workers: int  # that run in parallel
    capacity: int  # assignments to submit at a time, so that no worker is idle

    @abstractmethod
    def submit(self, key: str, assignment: Assignment) -> None:
        """Submit an assignment."""

    @abstractmethod
    def wait(self, seconds: float) -> Reply | None:
        """Return the next reply, or None after a timeout.

        Raises a `ClusterError` if all workers are gone and no more can be started.
        """

    @abstractmethod
    def stop(self) -> list[str]:
        """Have running assignments checkpointed soon; return the keys of those not started."""

    @abstractmethod
    def close(self) -> None:
        """Kill all workers at once."""


CLOSE, BEGUN, NEW = range(3)  # priorities: the most urgent comes first


class _Ticket(NamedTuple):
    """An assignment in the queue; None closes the queue."""

    urgency: int
    number: int  # unique, so that ties are never broken by the other fields
    key: str = ""
    assignment: Assignment | None = None


class LocalBackend(Backend):
    """Processes of this machine, each served by a thread."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or count_cores()
        self.capacity = 2 * self.workers  # so that a worker never waits for the driver
        self._assignments: PriorityQueue[_Ticket] = PriorityQueue()
        self._numbers = count()
        self._replies: SimpleQueue[Reply] = SimpleQueue()
        self._processes: set[_Process] = set()
        self._lock = threading.Lock()  # guards the set of processes
        self._stopped = self._closed = False
        self._threads = [threading.Thread(target=self._serve) for _ in range(self.workers)]
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def submit(self, key: str, assignment: Assignment) -> None:
        """Submit an assignment; runs with a checkpoint come first."""
        urgency = BEGUN if assignment.checkpoint else NEW
        self._assignments.put(_Ticket(urgency, next(self._numbers), key, assignment))

    def wait(self, seconds: float) -> Reply | None:
        """Return the next reply, or None after a timeout."""
        try:
            return self._replies.get(timeout=seconds)
        except Empty:
            return None

    def stop(self) -> list[str]:
        """Have running assignments checkpointed soon; return the keys of those not started."""
        dropped = []
        with contextlib.suppress(Empty):
            while True:
                dropped.append(self._assignments.get_nowait().key)
        with self._lock:
            self._stopped = True  # workers started from now on stop as well
            for process in self._processes:
                process.stop()
        return dropped

    def close(self) -> None:
        """Kill all workers at once."""
        with self._lock:
            self._closed = True
            for process in self._processes:
                process.kill()
        for _ in self._threads:
            self._assignments.put(_Ticket(CLOSE, next(self._numbers)))
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        """Hand assignments to a worker, one after the other; restart it if it dies."""
        process: _Process | None = None
        while not self._closed and (ticket := self._assignments.get()).assignment is not None:
            try:
                process = process or self._start()
                report = process.advance(ticket.assignment)
            except (EOFError, OSError) as error:
                why = f"no worker could be started: {error}"
                if process is not None:
                    why = f"its worker died ({self._reap(process)})"
                report, process = Report("lost", {"error": why}), None
            self._replies.put(Reply(ticket.key, report))
        if process is not None:
            self._reap(process)

    def _start(self) -> _Process:
        with self._lock:
            if self._closed:
                raise EOFError
            process = _Process()
            self._processes.add(process)
            if self._stopped:
                process.stop()
        return process

    def _reap(self, process: _Process) -> str:
        with self._lock:
            self._processes.discard(process)
        return process.exit_reason()


class _Process:
    """A worker process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # -P: a user's json.py must not shadow the library's
            [sys.executable, "-P", "-m", "qrmax.studies.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": package_path()},
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders, self._reports = self._process.stdin, self._process.stdout
        self._speaking = threading.Lock()  # stops and assignments are sent by different threads

    def advance(self, assignment: Assignment) -> Report:
        """Execute an assignment; raises an EOFError or OSError if the process dies."""
        with self._speaking:
            send_assignment(self._orders, assignment)
        return receive_report(self._reports)

    def stop(self) -> None:
        """Have it checkpoint its run and report."""
        with self._speaking, contextlib.suppress(OSError):
            send_stop(self._orders)

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()

    def exit_reason(self) -> str:
        """Kill the process, and return why it exited."""
        with contextlib.suppress(OSError):
            self._orders.close()
        self._reports.close()
        return exit_reason(self._process.wait())


def make_backend(name: str, workers: int | None = None, address: str | None = None) -> Backend:
    """The backend of that name."""
    if workers is not None:
        check_count("workers", workers)
    if name == "ray":
        from qrmax.studies.ray_backend import RayBackend

        return RayBackend(workers, address)
    if name != "local":
        raise ParameterError(f"backend is {name!r}; allowed: 'local', 'ray'")
    if address is not None:
        raise ParameterError("address is for the backend 'ray'")
    return LocalBackend(workers)
