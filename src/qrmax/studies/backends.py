"""Backends that execute runs: processes of this machine; `ray_backend.py` has Ray clusters.

A backend takes assignments and gives reports back, in any order. It knows nothing of studies, and
only the driver writes results.
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

SOURCE = Path(__file__).parents[2]  # where the package is, for workers to find it, too
ONE_THREAD = dict.fromkeys(  # each: there is a worker for each core
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
)


def count_cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Reply(NamedTuple):
    """A report, and the name of the assignment that it is about."""

    key: str
    report: Report


class Backend(ABC):
    """A pool of workers that execute runs."""

    workers: int  # that work at the same time
    capacity: int  # assignments that it makes sense to hand out at the same time

    @abstractmethod
    def submit(self, key: str, assignment: Assignment) -> None:
        """Have something worked on."""

    @abstractmethod
    def wait(self, seconds: float) -> Reply | None:
        """The next reply, or None where there is none within that time.

        A `ClusterError` where all workers have gone, and none can be started any more.
        """

    @abstractmethod
    def stop(self) -> list[str]:
        """Hand over soon what is under way; returns what has not been begun and will not be."""

    @abstractmethod
    def close(self) -> None:
        """End everything at once."""


CLOSE, BEGUN, NEW = range(3)  # what is more urgent comes first


class _Ticket(NamedTuple):
    """An assignment in the queue; none says that there are no more."""

    urgency: int
    number: int  # no two tickets have the same, so nothing else is ever compared
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
        self._lock = threading.Lock()  # of the processes
        self._stopped = self._closed = False
        self._threads = [threading.Thread(target=self._serve) for _ in range(self.workers)]
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def submit(self, key: str, assignment: Assignment) -> None:
        """Have something worked on; what has been begun comes first."""
        urgency = BEGUN if assignment.checkpoint else NEW
        self._assignments.put(_Ticket(urgency, next(self._numbers), key, assignment))

    def wait(self, seconds: float) -> Reply | None:
        """The next reply, or None where there is none within that time."""
        try:
            return self._replies.get(timeout=seconds)
        except Empty:
            return None

    def stop(self) -> list[str]:
        """Hand over soon what is under way; returns what has not been begun and will not be."""
        dropped = []
        with contextlib.suppress(Empty):
            while True:
                dropped.append(self._assignments.get_nowait().key)
        with self._lock:
            self._stopped = True  # a worker that starts from now on is told, too
            for process in self._processes:
                process.stop()
        return dropped

    def close(self) -> None:
        """End everything at once."""
        with self._lock:
            self._closed = True
            for process in self._processes:
                process.kill()
        for _ in self._threads:
            self._assignments.put(_Ticket(CLOSE, next(self._numbers)))
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        """Hand assignments to a worker, one after the other; start another where it dies."""
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
        path = os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(  # -P: a json.py in the user's folder is not what we mean
            [sys.executable, "-P", "-m", "qrmax.studies.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": path},
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders, self._reports = self._process.stdin, self._process.stdout
        self._speaking = threading.Lock()  # a stop comes from another thread than assignments

    def advance(self, assignment: Assignment) -> Report:
        """Have it work on something; an EOFError or OSError where it dies over it."""
        with self._speaking:
            send_assignment(self._orders, assignment)
        return receive_report(self._reports)

    def stop(self) -> None:
        """Have it hand over what it is working on."""
        with self._speaking, contextlib.suppress(OSError):
            send_stop(self._orders)

    def kill(self) -> None:
        """End it."""
        self._process.kill()

    def exit_reason(self) -> str:
        """End it, and say what it died of."""
        with contextlib.suppress(OSError):
            self._orders.close()
        self._reports.close()
        code = self._process.wait()
        if code >= 0:
            return f"exit code {code}"
        return f"signal {-code}" + (", perhaps out of memory" if code == -signal.SIGKILL else "")


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
