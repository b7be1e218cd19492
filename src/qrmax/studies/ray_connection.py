"""The connection to Ray, in a process of its own: Ray may end the process that it is in.

It does so a minute after the death of GCS, and at once when it talks to a dead raylet. So the sweep
starts this process, and speaks with it through a pipe: options of `ray.init` and assignments come
in, a `Cluster` and replies go out. It has a process session of its own, so that Ctrl-C reaches only
the sweep. At the end of the pipe it cancels its runs, ends a Ray that it has started, and exits; so
it never outlives the sweep.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection, Pipe
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from qrmax.errors import ClusterError, ParameterError
from qrmax.studies.backends import Reply, exit_reason, package_path
from qrmax.studies.work import Assignment, Report, advance

TICK = 0.05  # seconds to wait for Ray before the next look at the pipe
FAREWELL = 10.0  # seconds in which runs must be cancelled and Ray shut down
MAIN = "from qrmax.studies.ray_connection import main; main()"

Server = tuple[str, int]  # host and port


class Cluster(NamedTuple):
    """A cluster that was connected to."""

    cores: int
    servers: dict[str, Server]  # without which no run can be executed


class Task(NamedTuple):
    """An assignment to submit, and its key."""

    key: str
    assignment: Assignment


class RayConnection:
    """The process that is connected to Ray, as the sweep sees it."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._pipe, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(  # -P: a user's json.py must not shadow the library's
                [sys.executable, "-P", "-c", MAIN, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=2,  # the sweep's stdout is for results
                env={**os.environ, "PYTHONPATH": package_path()},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self.send(options)

    def send(self, message: dict[str, Any] | Task) -> None:
        """Send a message; if the process is dead, the next `receive` raises."""
        with contextlib.suppress(OSError):
            self._pipe.send(message)

    def receive(self, seconds: float | None = None) -> Any:
        """Return the next message, or None after a timeout; one that is an error is raised.

        Raises a `ClusterError` if the process is dead.
        """
        try:
            message = self._pipe.recv() if self._pipe.poll(seconds) else None
        except (EOFError, OSError) as error:
            why = exit_reason(self._process.wait())
            raise ClusterError(
                f"the Ray cluster is gone: the process connected to it died ({why})"
            ) from error
        if isinstance(message, Exception):
            raise message
        return message

    def close(self) -> None:
        """Cancel all runs, and end a Ray that was started for them."""
        self._pipe.close()
        self._process.wait()

    def kill(self) -> None:
        """End the process at once, and with it a Ray that it has started."""
        self._process.kill()
        self.close()


def main() -> None:
    """Connect to Ray, and execute assignments until the pipe ends."""
    pipe: Connection[Any, Any] = Connection(int(sys.argv[1]))
    os.set_inheritable(pipe.fileno(), False)  # it ends with this process, not with Ray's others
    messages: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, messages), daemon=True).start()
    import ray

    with contextlib.suppress(BrokenPipeError):  # the sweep is gone, and Ray cancels what is left
        _execute(ray, pipe, messages)


def _listen(pipe: Connection[Any, Any], messages: SimpleQueue[Any]) -> None:
    """Receive messages; at the end of the pipe, None is the last, and this process must end."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            messages.put(pipe.recv())
    messages.put(None)
    time.sleep(FAREWELL)
    os._exit(1)  # Ray waits for a dead server


def _execute(ray: Any, pipe: Connection[Any, Any], messages: SimpleQueue[Any]) -> None:
    """Connect and serve; errors are sent to the sweep."""
    if (options := messages.get()) is None:
        return
    try:
        ray.init(**options, log_to_driver=False, logging_level="error")
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = options["address"]
        pipe.send(ParameterError(f"no Ray cluster at address {where!r}: {error}"))
        return
    _silence()
    try:
        pipe.send(Cluster(int(ray.cluster_resources().get("CPU", 1)), _servers(ray)))
        _serve(ray, pipe, messages)
    except Exception as error:  # whatever Ray raises, no run can continue
        pipe.send(ClusterError(f"the Ray cluster is gone: {_first_line(error)}"))


def _silence() -> None:
    """Discard what Ray prints from now on: the log of a dead raylet, errors in it included."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)


def _serve(ray: Any, pipe: Connection[Any, Any], messages: SimpleQueue[Any]) -> None:
    """Submit assignments and send replies until the pipe ends; then cancel the rest."""
    submit = ray.remote(num_cpus=1, max_retries=0)(advance).remote
    under_way: dict[Any, str] = {}
    while True:
        try:
            task: Task | None = messages.get(block=not under_way)
        except Empty:
            ready, _ = ray.wait([*under_way], timeout=TICK)
            for reference in ready:
                pipe.send(Reply(under_way.pop(reference), _result(ray, reference)))
            continue
        if task is None:
            break
        under_way[submit(task.assignment)] = task.key
    for reference in under_way:
        ray.cancel(reference, force=True)
    ray.shutdown()


def _result(ray: Any, reference: Any) -> Report:
    """The report of an assignment that has ended, or whose worker or node has died."""
    try:
        report: Report = ray.get(reference)
    except ray.exceptions.LocalRayletDiedError:
        raise
    except ray.exceptions.NodeDiedError:
        return Report("displaced", {"error": "its node died"})
    except ray.exceptions.RayError as error:
        return Report("lost", {"error": f"its worker died ({_first_line(error)})"})
    return report


def _servers(ray: Any) -> dict[str, Server]:
    """The servers without which no run can be executed.

    A client (ray://...) has one connection to the cluster, and is notified when it ends.
    """
    if ray.util.client.ray.is_connected():
        return {}
    context = ray.get_runtime_context()
    here = context.get_node_id()
    host, _, port = context.gcs_address.rpartition(":")
    servers = {"head (GCS)": (host.strip("[]"), int(port))}
    for node in ray.nodes():
        if node["NodeID"] == here:
            servers["raylet"] = (node["NodeManagerAddress"], int(node["NodeManagerPort"]))
    return servers


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
