"""Runs on a Ray cluster, or with Ray on this machine.

Three things can die, and each means something else:

    a worker     the run that it was on may be to blame: it is `lost`
    a node       its runs are not to blame: they are `displaced`, and another node takes them
    the cluster  GCS, which knows all nodes, or the raylet that this process speaks through: nothing
                 can be worked on any more, which is a `ClusterError`

Ray itself would report every run as dead within moments of the raylet's death, and ends this
process a minute after that of GCS, and at once where it asks a dead raylet for data. So both are
asked for a connection every now and then, the raylet, which is on this machine, before each call;
and no run is given up before it is clear that the cluster is still there.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import deque
from typing import Any, NamedTuple

from qrmax.errors import ClusterError, MissingExtraError, ParameterError
from qrmax.studies.backends import Backend, Reply
from qrmax.studies.work import Assignment, Report, advance

REACH = 10.0  # seconds in which a cluster must answer at first
PROBE_EVERY = 1.0  # seconds
PROBE_TIMEOUT = 1.0  # seconds
GRACE = 6.0  # seconds without an answer after which a part of the cluster counts as dead
DOUBT = 2.0  # seconds before a death is put down to the run: the cluster may be dying as well
RAYLET = "raylet"
FAREWELL = 3.0  # seconds that a cluster has to end this session


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
            self._connect(workers, address)
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        self.workers = self.capacity = min(workers or cores, cores)
        self._advance = self._ray.remote(num_cpus=1, max_retries=0)(advance)
        self._under_way: dict[Any, str] = {}
        self._unsent: deque[tuple[str, Assignment]] = deque()
        self._doubtful: deque[_Death] = deque()
        self._broken: OSError | None = None  # what came of speaking to the cluster
        self._pulse = Pulse(_vital_parts(self._ray))

    def _connect(self, workers: int | None, address: str | None) -> None:
        if address is not None:
            _check_there(address)
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

    def submit(self, key: str, assignment: Assignment) -> None:
        """Have something worked on; whether there is still a cluster for it, `wait` says."""
        if not self._pulse.answers(RAYLET):
            self._unsent.append((key, assignment))
            return
        try:
            self._under_way[self._advance.remote(assignment)] = key
        except OSError as error:  # "Broken pipe", say: the raylet has just died
            self._broken = error

    def wait(self, seconds: float) -> Reply | None:
        """The next reply, or None where there is none within that time.

        A `ClusterError` where the cluster has gone.
        """
        self._pulse.check()
        is_due = self._doubtful and time.monotonic() >= self._doubtful[0].due
        if is_due and self._pulse.is_steady:
            return self._doubtful.popleft().reply
        for _ in range(len(self._unsent)):
            self.submit(*self._unsent.popleft())
        nothing_to_ask = not self._under_way and self._broken is None  # deaths are left to look at
        if nothing_to_ask or not self._pulse.answers(RAYLET):
            time.sleep(seconds)
            return None
        try:
            if self._broken is not None:
                raise self._broken
            ready, _ = self._ray.wait([*self._under_way], num_returns=1, timeout=seconds)
            has_reply = bool(ready) and self._pulse.answers(RAYLET)
            return self._collect(ready[0]) if has_reply else None
        except OSError as error:  # the raylet has just died, or a client has lost its server
            self._pulse.gone = True
            raise ClusterError(f"the Ray cluster is gone: {_first_line(error)}") from error

    def _collect(self, reference: Any) -> Reply | None:
        """Collect the results that are ready; a death is looked at later."""
        key = self._under_way.pop(reference)
        try:
            return Reply(key, self._ray.get(reference))
        except self._ray.exceptions.LocalRayletDiedError as error:
            raise ConnectionError(_first_line(error)) from error
        except self._ray.exceptions.RayError as error:
            report = Report("lost", {"error": f"its worker died ({_first_line(error)})"})
            if isinstance(error, self._ray.exceptions.NodeDiedError):
                report = Report("displaced", {"error": "its node died"})
            self._doubtful.append(_Death(time.monotonic() + DOUBT, Reply(key, report)))
            return None

    def stop(self) -> list[str]:
        """Nothing waits here: what is under way is handed over when its time is up."""
        return []

    def close(self) -> None:
        """End everything at once."""
        if self._pulse.gone:  # Ray would wait for what has gone, and end this process
            _within(FAREWELL, self._ray.shutdown if self._ours else None)
            return
        with contextlib.suppress(OSError):  # it may die just now
            for reference in self._under_way:
                self._ray.cancel(reference, force=True)
            if self._ours:
                self._ray.shutdown()


class _Death(NamedTuple):
    """The reply of something that died, and when to believe that the cluster has survived it."""

    due: float
    reply: Reply


class Pulse:
    """Health check of servers by connecting to them.

    >>> with socket.create_server(("127.0.0.1", 0)) as server:
    ...     pulse = Pulse({"server": server.getsockname()})
    ...     pulse.check()
    >>> pulse.is_steady
    True
    """

    def __init__(self, parts: dict[str, tuple[str, int]]) -> None:
        self.parts = parts
        self.gone = False
        self._silent_since: dict[str, float] = {}
        self._next = 0.0

    @property
    def is_steady(self) -> bool:
        """Whether all have answered when last asked."""
        return not self._silent_since

    def check(self) -> None:
        """Ask them, unless that was just done; a `ClusterError` where one is silent for long."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + PROBE_EVERY
        for name, (host, port) in self.parts.items():
            if not self.answers(name) and time.monotonic() - self._silent_since[name] >= GRACE:
                self.gone = True
                raise ClusterError(
                    f"the Ray cluster is gone: its {name} at {host}:{port} does not answer any more"
                )

    def answers(self, name: str) -> bool:
        """Whether one of them accepts a connection now; one that there is none of is no matter."""
        if name not in self.parts:
            return True
        began = time.monotonic()
        try:
            socket.create_connection(self.parts[name], timeout=PROBE_TIMEOUT).close()
        except OSError:
            self._silent_since.setdefault(name, began)
            return False
        self._silent_since.pop(name, None)
        return True


def _vital_parts(ray: Any) -> dict[str, tuple[str, int]]:
    """The servers without which this process cannot have anything worked on.

    A client (ray://...) speaks to the cluster through one connection, and notices when it ends.
    """
    if ray.util.client.ray.is_connected():
        return {}
    context = ray.get_runtime_context()
    here = context.get_node_id()
    host, _, port = context.gcs_address.rpartition(":")
    parts = {"head (GCS)": (host.strip("[]"), int(port))}
    for node in ray.nodes():
        if node["NodeID"] == here:
            parts[RAYLET] = (node["NodeManagerAddress"], int(node["NodeManagerPort"]))
    return parts


def _check_there(address: str) -> None:
    """An error where no one listens: Ray itself would try for more than ten minutes."""
    host, _, port = address.removeprefix("ray://").partition("/")[0].rpartition(":")
    if not host or not port.isdecimal():
        return  # "auto", say; Ray knows what to do with it
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH).close()
    except (OSError, OverflowError) as error:
        raise ParameterError(f"no Ray cluster at address {address!r}: {error}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _within(seconds: float, action: Any) -> None:
    """Try something for so long at most."""
    if action is None:
        return

    def attempt() -> None:
        with contextlib.suppress(Exception):
            action()

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds)
