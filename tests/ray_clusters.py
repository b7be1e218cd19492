"""Ray clusters of our own: on the loopback address alone, on free ports, with a secret.

A cluster ends with all its processes, and no others. One that was killed can be started again at
the same address.
"""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import pytest

from small_studies import processes, wait_until

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs Ray: pip install 'qrmax[ray]'"
)

RAY = str(Path(sys.executable).with_name("ray"))
SECRET = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # then 127.0.0.1 is not taken for another address
}
# `ray start` starts no second node where clusters are off; it is a node like any other
SECOND_NODE = """
import signal, sys
from ray._private.node import Node
from ray._private.parameter import RayParams
params = RayParams(
    gcs_address=sys.argv[1], node_ip_address="127.0.0.1", num_cpus=int(sys.argv[2]),
    temp_dir=sys.argv[3], include_log_monitor=False, node_manager_port=0,
    object_store_memory=200_000_000, dashboard_agent_listen_port=None,
)
node = Node(params, head=False, shutdown_at_exit=True, spawn_reaper=True)
print("This node is up", flush=True)
signal.pause()
"""


class Cluster:
    """A head, and perhaps a second node, each with its workers."""

    def __init__(self, cpus: int = 2) -> None:
        self.cpus = cpus
        self.port, self.client_port = free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.client = f"ray://127.0.0.1:{self.client_port}"
        self._folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # sockets have short names
        self._started = 0
        self.head: subprocess.Popen[bytes] | None = None
        self.node: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Cluster:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start the head; also again, after `kill`."""
        command = [RAY, "start", "--head", "--block", f"--num-cpus={self.cpus}"]
        command += ["--include-dashboard=false", "--node-ip-address=127.0.0.1"]
        command += [f"--port={self.port}", f"--temp-dir={self._folder}"]
        command += [f"--ray-client-server-port={self.client_port}", "--disable-usage-stats"]
        command += ["--object-store-memory=200000000"]
        self.head = self._run(command, "This command will now block")

    def add_node(self, cpus: int = 1) -> None:
        """Start the second node."""
        command = [sys.executable, "-c", SECOND_NODE, self.address, str(cpus), str(self._folder)]
        self.node = self._run(command, "This node is up")

    def kill(self) -> None:
        """End everything at once."""
        self.kill_node()
        self.head = _ended(self.head)

    def kill_node(self) -> None:
        """End the second node at once, with its workers."""
        self.node = _ended(self.node)

    def at_work(self) -> list[int]:
        """The workers that work on a run."""
        return [pid for pid, words in self.processes().items() if "ray::advance" in words]

    def part(self, name: str, of: subprocess.Popen[bytes] | None = None) -> int:
        """The process of the head, or of a node, that is the `raylet` or the `gcs_server`."""
        owner = of or self.head
        assert owner is not None
        [pid] = [
            pid for pid, words in descendants(owner.pid).items() if re.match(rf"\S*/{name} ", words)
        ]
        return pid

    def processes(self) -> dict[int, str]:
        """All processes of the cluster, and their words."""
        owners = [process for process in (self.head, self.node) if process is not None]
        return {pid: w for owner in owners for pid, w in descendants(owner.pid).items()}

    def _run(self, command: list[str], until: str) -> subprocess.Popen[bytes]:
        self._started += 1
        said = self._folder / f"log{self._started}"
        with said.open("w") as log:
            process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **SECRET},
                start_new_session=True,
            )
        try:
            wait_until(lambda: until in said.read_text())
        except AssertionError:
            _ended(process)
            raise AssertionError(said.read_text()) from None
        return process


def _ended(process: subprocess.Popen[bytes] | None) -> None:
    """End a process and all that descend from it, those that come meanwhile included."""
    if process is None:
        return
    theirs = descendants(process.pid)
    for pid in (process.pid, *theirs):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
    wait_until(lambda: not theirs.keys() & {pid for pid, _, _ in processes()}, seconds=20)


def descendants(pid: int) -> dict[int, str]:
    """All processes that a process has started, directly or not, and their words."""
    found: dict[int, str] = {}
    everything = [*processes()]
    while True:
        more = {
            child: words
            for child, parent, words in everything
            if child not in found and (parent == pid or parent in found)
        }
        if not more:
            return found
        found |= more


def free_port() -> int:
    """A port that is free, and that no outgoing connection is given by chance."""
    while True:
        port = 24_000 + secrets.randbelow(8_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
