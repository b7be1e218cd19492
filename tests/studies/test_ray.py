"""Sweeps with Ray: on this machine, and on a cluster. The results are those of local workers.

Each test process starts a cluster of its own, on free ports, in a folder of its own, with a secret
of its own; and ends the processes of that cluster, no others. No two tests run at the same time.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

import qrmax
from small_studies import (
    LONG,
    LONGER,
    QUICK,
    assert_same_results,
    checkpoints,
    processes,
    started,
    sweep,
    wait_until,
    write_study,
)

pytestmark = pytest.mark.xdist_group("ray")  # one process has them all: two Rays share ports
needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs Ray: pip install 'qrmax[ray]'"
)
RAY = str(Path(sys.executable).with_name("ray"))
CLIENT_PORT = 23000  # the first that Ray gives to a client's server; others may share it unnoticed
SECRET = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


class Cluster(NamedTuple):
    pid: int  # of the process that all others of the cluster descend from
    address: str
    client: str  # the address for drivers that are not in the cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    port, client = free_port(), free_port()
    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # sockets have short names
    command = [RAY, "start", "--head", "--block", "--num-cpus=2", "--include-dashboard=false"]
    command += [f"--port={port}", f"--temp-dir={folder}"]
    command += [f"--ray-client-server-port={client}", "--disable-usage-stats"]
    with (Path(folder) / "log").open("w+") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **SECRET},
            start_new_session=True,
        )
        try:
            said = Path(folder) / "log"
            wait_until(lambda: "This command will now block" in said.read_text())
            # Ray has its own mind about the address of this machine
            [host] = re.findall(rf"--address='(.+):{port}'", said.read_text())
            yield Cluster(process.pid, f"{host}:{port}", f"ray://{host}:{client}")
        finally:
            theirs = descendants(process.pid)
            for pid in (process.pid, *theirs):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
            shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """A port that is free on all addresses, and that no outgoing connection is given by chance."""
    while True:
        port = 24_000 + secrets.randbelow(8_000)
        with suppress(OSError), socket.create_server(("", port)):
            return port


def is_taken(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


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


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quick study, swept by local workers."""
    folder = tmp_path_factory.mktemp("quick")
    qrmax.sweep(folder / write_study(folder, QUICK), workers=2, folder=folder / "results")
    return folder


@needs_ray
@pytest.mark.parametrize("client", [False, True], ids=["in the cluster", "as a client"])
def test_a_cluster_gives_the_same_results(
    client: bool, cluster: Cluster, quick: Path, tmp_path: Path
) -> None:
    if client and is_taken(CLIENT_PORT):
        pytest.skip(f"another Ray has port {CLIENT_PORT}, and Ray offers no choice of it")
    write_study(tmp_path, QUICK)
    address = cluster.client if client else cluster.address
    for _ in range(3 if client else 1):  # now and then Ray's server for a client is not up in time
        done = sweep(tmp_path, "--backend", "ray", "--address", address, **SECRET)
        if done.returncode == 0:
            break
    assert (done.returncode, done.stdout) == (0, "results: 12 runs done\n"), done.stderr
    assert_same_results(tmp_path / "results", quick / "results")
    if not client:
        assert "ray" not in done.stderr.lower()  # it keeps quiet


@needs_ray
def test_ray_on_this_machine_gives_the_same_results(quick: Path, tmp_path: Path) -> None:
    """In a session that has started Ray for itself, and goes on to use it."""
    write_study(tmp_path, QUICK)
    script = """
import ray, qrmax
ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
summary = qrmax.sweep("study.toml", backend="ray", folder="results")
assert summary.done == 12, summary
assert ray.get(ray.put(5)) == 5
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, **SECRET},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert_same_results(tmp_path / "results", quick / "results")


@needs_ray
def test_ray_is_started_and_ended_where_there_is_none(quick: Path, tmp_path: Path) -> None:
    write_study(tmp_path, QUICK)
    with started(tmp_path, "--backend", "ray", "--workers", "2", **SECRET) as process:
        wait_until(lambda: (tmp_path / "results/study.json").exists())
        wait_until(lambda: any("raylet" in words for words in descendants(process.pid).values()))
        theirs = descendants(process.pid)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "results: 12 runs done\n"), err
    assert_same_results(tmp_path / "results", quick / "results")
    wait_until(lambda: not theirs.keys() & {pid for pid, _, _ in processes()}, seconds=15)


@needs_ray
def test_a_run_whose_ray_worker_is_killed_goes_on_with_another(
    cluster: Cluster, tmp_path: Path
) -> None:
    write_study(tmp_path, LONGER)
    only = ["--only", "seed=0", "--only", "seed=1"]
    path, folder = tmp_path / "study.toml", tmp_path / "local"
    qrmax.sweep(path, workers=2, only={"seed": ["0", "1"]}, folder=folder)
    often = ["--checkpoint-every", "0.4", "--backend", "ray", "--address", cluster.address]
    with started(tmp_path, *often, *only, "--json", **SECRET) as process:
        wait_until(lambda: checkpoints(tmp_path))
        wait_until(lambda: at_work(cluster))
        os.kill(at_work(cluster)[0], signal.SIGKILL)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert json.loads(out)["done"] == 2  # whatever Ray has to say is not on stdout
    assert "its worker died" in err
    assert "goes on with another" in err
    assert_same_results(tmp_path / "results", folder)


def at_work(cluster: Cluster) -> list[int]:
    return [pid for pid, words in descendants(cluster.pid).items() if "ray::advance" in words]


@needs_ray
def test_ctrl_c_has_what_ray_works_on_checkpointed(cluster: Cluster, tmp_path: Path) -> None:
    write_study(tmp_path, LONG.replace("1_200_000", "100_000_000"))
    often = ["--checkpoint-every", "1", "--backend", "ray", "--address", cluster.address]
    with started(tmp_path, *often, **SECRET) as process:
        wait_until(lambda: checkpoints(tmp_path))
        before = {path: qrmax.load(path).trained for path in checkpoints(tmp_path)}
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=10)
    assert (process.returncode, out) == (130, "results: 0 runs done, 3 left\n"), err
    assert "Traceback" not in err
    assert len(checkpoints(tmp_path)) == 2
    assert all(qrmax.load(path).trained > steps for path, steps in before.items())
    wait_until(lambda: not at_work(cluster), seconds=10)


@needs_ray
@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "ray://127.0.0.1:{port}", "nonsense"])
def test_an_address_without_a_cluster_is_an_error_soon(address: str, tmp_path: Path) -> None:
    write_study(tmp_path, QUICK)
    where = address.format(port=free_port())
    began = time.monotonic()
    done = sweep(tmp_path, "--backend", "ray", "--address", where, **SECRET)
    assert time.monotonic() - began < 20
    assert done.returncode == 2
    assert f"error: no Ray cluster at address '{where}': " in done.stderr
    assert "Traceback" not in done.stderr
