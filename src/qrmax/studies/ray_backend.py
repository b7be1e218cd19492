"""Runs on a Ray cluster, or with Ray on this machine.

Failures are of three kinds:

    a worker     its run may be the cause: it is `lost`
    a node       its runs are not the cause: they are `displaced`, and resumed on another node
    the cluster  GCS, the control service, or the raylet that this process is connected to: no run
                 can continue, which raises a `ClusterError`

Ray itself would report every run as dead soon after the raylet's death, and terminates this process
a minute after the death of GCS, and at once if it requests data from a dead raylet. So both are
probed regularly by connecting to them, and the raylet, which is local, before each call; no run
counts as lost before the cluster is known to be alive.
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

REACH = 10.0  # seconds in which a cluster must accept the first connection
PROBE_EVERY = 1.0  # seconds
PROBE_TIMEOUT = 1.0  # seconds
GRACE = 6.0  # seconds without a connection after which a server counts as dead
DOUBT = 2.0  # seconds before a death is attributed to the run: the cluster may be dying
RAYLET = "raylet"
FAREWELL = 3.0  # seconds to wait for the shutdown of Ray


class RayBackend(Backend):
    """A Ray cluster, or Ray on this machine. Workers need only this package."""

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        try:
            import ray
        except ImportError as error:
            raise MissingExtraError(
                "the backend 'ray' needs Ray, which is not installed: pip install 'qrmax[ray]'"
            ) from error
        self._ray: Any = ray  # only some of its functions are typed
        self._ours = not self._ray.is_initialized()
        if self._ours:
            self._connect(workers, address)
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        self.workers = self.capacity = min(workers or cores, cores)
        self._advance = self._ray.remote(num_cpus=1, max_retries=0)(advance)
        self._under_way: dict[Any, str] = {}
        self._unsent: deque[tuple[str, Assignment]] = deque()
        self._doubtful: deque[_Death] = deque()
        self._broken: OSError | None = None  # the error of the last call to the cluster
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
        """Submit an assignment; `wait` raises if the cluster is gone."""
        if not self._pulse.answers(RAYLET):
            self._unsent.append((key, assignment))
            return
        try:
            self._under_way[self._advance.remote(assignment)] = key
        except OSError as error:  # such as "Broken pipe": the raylet has just died
            self._broken = error

    def wait(self, seconds: float) -> Reply | None:
        """Return the next reply, or None after a timeout.

        Raises a `ClusterError` if the cluster is gone.
        """
        self._pulse.check()
        is_due = self._doubtful and time.monotonic() >= self._doubtful[0].due
        if is_due and self._pulse.is_steady:
            return self._doubtful.popleft().reply
        for _ in range(len(self._unsent)):
            self.submit(*self._unsent.popleft())
        nothing_to_ask = not self._under_way and self._broken is None  # only deaths to examine
        if nothing_to_ask or not self._pulse.answers(RAYLET):
            time.sleep(seconds)
            return None
        try:
            if self._broken is not None:
                raise self._broken
            ready, _ = self._ray.wait([*self._under_way], num_returns=1, timeout=seconds)
            has_reply = bool(ready) and self._pulse.answers(RAYLET)
            return self._collect(ready[0]) if has_reply else None
        except OSError as error:  # the raylet has just died, or a client has lost its connection
            self._pulse.gone = True
            raise ClusterError(f"the Ray cluster is gone: {_first_line(error)}") from error

    def _collect(self, reference: Any) -> Reply | None:
        """Collect a result that is ready; a death is examined later."""
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
        """Return no keys, as nothing is queued: running assignments end by their time limit."""
        return []

    def close(self) -> None:
        """Cancel all runs at once."""
        if self._pulse.gone:  # Ray would wait for the dead server, and terminate this process
            _within(FAREWELL, self._ray.shutdown if self._ours else None)
            return
        with contextlib.suppress(OSError):  # the cluster may die just now
            for reference in self._under_way:
                self._ray.cancel(reference, force=True)
            if self._ours:
                self._ray.shutdown()


class _Death(NamedTuple):
    """The reply for a dead worker or node, and the time at which to deliver it."""

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
        """Whether all accepted the last connection."""
        return not self._silent_since

    def check(self) -> None:
        """Probe all, at most every `PROBE_EVERY`; raises a `ClusterError` if one counts as dead."""
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
        """Whether a server accepts a connection now; true for one that is not monitored."""
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
    """The servers without which no run can be executed.

    A client (ray://...) has one connection to the cluster, and is notified when it ends.
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
    """Raise an error if no server listens: Ray itself would retry for more than ten minutes."""
    host, _, port = address.removeprefix("ray://").partition("/")[0].rpartition(":")
    if not host or not port.isdecimal():
        return  # such as "auto", which Ray resolves
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH).close()
    except (OSError, OverflowError) as error:
        raise ParameterError(f"no Ray cluster at address {address!r}: {error}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _within(seconds: float, action: Any) -> None:
    """Run an action with a timeout."""
    if action is None:
        return

    def attempt() -> None:
        with contextlib.suppress(Exception):
            action()

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds)
