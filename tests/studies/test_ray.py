"""Sweeps with Ray: on this machine, and on a cluster. The results are those of local workers.

Each test process starts clusters of its own, see `ray_clusters.py`, and ends the processes of
these, no others.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import qrmax
from command_line import run, run_apart
from outside_code import CLIFF, CLIFF_STUDY, SARSA, write_module
from qrmax.errors import MissingExtraError
from qrmax.studies import ray_backend
from ray_clusters import SECRET, Cluster, descendants, free_port, needs_ray
from small_studies import (
    QUICK,
    assert_same_results,
    processes,
    started,
    sweep,
    wait_until,
    write_study,
)

CLIENT_PORT = 23000  # the first that Ray gives to a client's server; others may share it unnoticed


def is_taken(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


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
def test_a_process_that_is_connected_to_ray_stays_so_and_gets_the_same_results(
    cluster: Cluster, quick: Path, tmp_path: Path
) -> None:
    """The sweep goes to the Ray that the process uses for itself, and goes on to use."""
    write_study(tmp_path, QUICK)
    script = f"""
import ray, qrmax
ray.init(address="{cluster.address}", log_to_driver=False)
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
def test_modules_beside_the_study_are_found_by_the_workers_of_a_cluster(
    cluster: Cluster, tmp_path: Path
) -> None:
    """An agent and an environment of one's own: the same results as with local workers."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    write_module(home, "own_cliff", CLIFF)
    write_module(home, "own_agents", SARSA)
    text = CLIFF_STUDY.format(module="own_cliff").replace("q-learning", "own_agents:Sarsa")
    study = str(home / write_study(home, text))
    with_ray = ["--backend", "ray", "--address", cluster.address]
    for place, options in (("ray", with_ray), ("local", ["--workers", "2"])):
        done = run_apart("sweep", study, "-o", place, *options, cwd=elsewhere, **SECRET)
        assert (done.returncode, done.stdout) == (0, f"{place}: 4 runs done\n"), done.stderr
    assert_same_results(elsewhere / "ray", elsewhere / "local")
    assert {*qrmax.results(elsewhere / "ray")["agent"]} == {"qrm", "own_agents:Sarsa"}


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


def test_without_ray_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_backend, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'qrmax\[ray\]'"):
        ray_backend.RayBackend()


@needs_ray
@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "ray://127.0.0.1:{port}", "nonsense"])
def test_an_address_without_a_cluster_is_an_error_soon(address: str, tmp_path: Path) -> None:
    write_study(tmp_path, QUICK)
    where = address.format(port=free_port())
    began = time.monotonic()
    options = ["--backend", "ray", "--address", where]
    done = run("sweep", "study.toml", *options, cwd=tmp_path, **SECRET)
    assert time.monotonic() - began < 20
    assert done.returncode == 2
    assert f"error: no Ray cluster at address '{where}': " in done.stderr
    assert "Traceback" not in done.stderr
