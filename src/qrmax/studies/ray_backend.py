"""Runs on a Ray cluster, or with Ray on this machine.

Failures are of three kinds:

    a worker     its run may be the cause: it is `lost`
    a node       its runs are not the cause: they are `displaced`, and resumed on another node
    the cluster  GCS, the control service, or the raylet that we are connected to: no run can
                 continue, which raises a `ClusterError`

Ray would report every run as dead soon after the raylet's death, or end the process that is
connected to it, which is therefore not this one (see `ray_connection.py`). So both servers are
probed regularly by connecting to them, and no run counts as lost before the cluster is known to be
alive.
"""

from __future__ import annotations

import socket
import sys
import time
from collections import deque
from importlib.util import find_spec
from typing import Any, NamedTuple

from qrmax.errors import ClusterError, MissingExtraError, ParameterError
from qrmax.studies.backends import Backend, Reply
from qrmax.studies.ray_connection import Cluster, RayConnection, Server, Task
from qrmax.studies.work import Assignment

REACH = 10.0  # seconds in which a cluster must accept the first connection
PROBE_EVERY = 1.0  # seconds
PROBE_TIMEOUT = 1.0  # seconds
GRACE = 6.0  # seconds without a connection after which a server counts as dead
DOUBT = 2.0  # seconds before a death is attributed to the run: the cluster may be dying


class RayBackend(Backend):
    """A Ray cluster, or Ray on this machine. Workers need only this package."""

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        if find_spec("ray") is None:
            raise MissingExtraError(
                "the backend 'ray' needs Ray, which is not installed: pip install 'qrmax[ray]'"
            )
        self._connection = RayConnection(_init_options(workers, address))
        try:
            cluster: Cluster = self._connection.receive()
        except BaseException:  # Ctrl-C included
            self._connection.kill()
            raise
        self.workers = self.capacity = min(workers or cluster.cores, cluster.cores)
        self._doubtful: deque[_Death] = deque()
        self._pulse = Pulse(cluster.servers)
        self._gone = False

    def submit(self, key: str, assignment: Assignment) -> None:
        """Submit an assignment; `wait` raises if the cluster is gone."""
        self._connection.send(Task(key, assignment))

    def wait(self, seconds: float) -> Reply | None:
        """Return the next reply, or None after a timeout; a death is examined first.

        Raises a `ClusterError` if the cluster is gone.
        """
        try:
            self._pulse.check()
            is_due = self._doubtful and time.monotonic() >= self._doubtful[0].due
            if is_due and self._pulse.is_steady:
                return self._doubtful.popleft().reply
            reply: Reply | None = self._connection.receive(seconds)
        except ClusterError:
            self._gone = True
            raise
        if reply is not None and reply.report.kind in ("lost", "displaced"):
            self._doubtful.append(_Death(time.monotonic() + DOUBT, reply))
            return None
        return reply

    def stop(self) -> list[str]:
        """Return no keys, as nothing is queued: running assignments end by their time limit."""
        return []

    def close(self) -> None:
        """Cancel all runs at once."""
        if self._gone:  # Ray would wait for the dead server
            self._connection.kill()
        else:
            self._connection.close()


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

    def __init__(self, servers: dict[str, Server]) -> None:
        self.servers = servers
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
        for name, (host, port) in self.servers.items():
            began = time.monotonic()
            try:
                socket.create_connection((host, port), timeout=PROBE_TIMEOUT).close()
                self._silent_since.pop(name, None)
            except OSError as error:
                since = self._silent_since.setdefault(name, began)
                if time.monotonic() - since >= GRACE:
                    raise ClusterError(
                        f"the Ray cluster is gone: its {name} at {host}:{port} does not answer "
                        "any more"
                    ) from error


def _init_options(workers: int | None, address: str | None) -> dict[str, Any]:
    """The options of `ray.init`: a given address, the Ray of this process, or one to start."""
    if address is not None:
        _check_there(address)
        return {"address": address}
    ray: Any = sys.modules.get("ray")  # not there: not connected
    if ray is None or not ray.is_initialized():
        return {"address": "local", "num_cpus": workers, "include_dashboard": False}
    context, client = ray.get_runtime_context(), ray.util.client.ray
    where = context.gcs_address
    if client.is_connected():
        where = f"ray://{client.get_context().client_worker._conn_str}"  # has no public name
    return {"address": where, "runtime_env": dict(context.runtime_env)}


def _check_there(address: str) -> None:
    """Raise an error if no server listens: Ray itself would retry for more than ten minutes."""
    host, _, port = address.removeprefix("ray://").partition("/")[0].rpartition(":")
    if not host or not port.isdecimal():
        return  # such as "auto", which Ray resolves
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH).close()
    except (OSError, OverflowError) as error:
        raise ParameterError(f"no Ray cluster at address {address!r}: {error}") from error
