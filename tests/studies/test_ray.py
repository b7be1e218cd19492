"""Sweeps with Ray: on this machine, and on a cluster. The results are those of local workers.

Each test process starts clusters of its own, see `ray_clusters.py`, and ends the processes of
these, no others. No two tests run at the same time.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import qrmax
from command_line import run_apart
from outside_code import CLIFF, CLIFF_STUDY, SARSA, write_module
from qrmax.errors import MissingExtraError
from qrmax.studies import ray_backend
from ray_clusters import SECRET, Cluster, descendants, free_port
from small_studies import (
    ENDLESS,
    LONG,
    QUICK,
    assert_same_results,
    checkpoints,
    processes,
    record,
    started,
    sweep,
    wait_until,
    write_study,
)

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs Ray: pip install 'qrmax[ray]'"
)
# runs that outlast the start of a second node's worker, seconds after the first's, and some kills
LONGER = LONG.replace("1_200_000", "12_000_000")
CLIENT_PORT = 23000  # the first that Ray gives to a client's server; others may share it unnoticed


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as started_here:
        yield started_here


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


@pytest.fixture(scope="module")
def longer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the longer study, swept by local workers."""
    folder = tmp_path_factory.mktemp("longer")
    path = folder / write_study(folder, LONGER)
    qrmax.sweep(path, workers=2, only={"seed": ["0", "1"]}, folder=folder / "results")
    return folder


ONLY = ["--only", "seed=0", "--only", "seed=1"]


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


@needs_ray
def test_a_run_whose_ray_worker_is_killed_goes_on_with_another(
    cluster: Cluster, longer: Path, tmp_path: Path
) -> None:
    write_study(tmp_path, LONGER)
    often = ["--checkpoint-every", "0.4", "--backend", "ray", "--address", cluster.address]
    with started(tmp_path, *often, *ONLY, "--json", **SECRET) as process:
        wait_until(lambda: checkpoints(tmp_path))
        wait_until(lambda: cluster.at_work())
        os.kill(cluster.at_work()[0], signal.SIGKILL)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert json.loads(out)["done"] == 2  # whatever Ray has to say is not on stdout
    assert "its worker died" in err
    assert "resumed by another" in err
    assert_same_results(tmp_path / "results", longer / "results")


@needs_ray
def test_a_sweep_survives_a_node_and_ends_with_one_error_when_the_cluster_is_gone(
    longer: Path, tmp_path: Path
) -> None:
    """Neither counts against a run, and the same command resumes when the cluster is back."""
    write_study(tmp_path, LONGER)
    with Cluster(cpus=1) as cluster:
        cluster.add_node()
        often = ["--checkpoint-every", "0.4", "--backend", "ray", "--address", cluster.address]
        often += ONLY
        with started(tmp_path, *often, **SECRET) as process:
            wait_until(lambda: len(checkpoints(tmp_path)) == 2)  # both nodes have come to work
            cluster.kill_node()
            behind = {path: path.stat().st_mtime_ns for path in checkpoints(tmp_path)}
            wait_until(lambda: any(_is_newer(path, then) for path, then in behind.items()))
            os.kill(cluster.part("raylet"), signal.SIGKILL)
            out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (2, ""), err
        assert err.count("error: ") == err.count("error: the Ray cluster is gone: ") == 1
        assert "when the cluster is back, the same command resumes" in err
        assert "Traceback" not in err
        assert "its worker died" not in err
        assert not any(data["status"] == "failed" for data in record(tmp_path).values())
        assert checkpoints(tmp_path)
        cluster.kill()
        cluster.start()
        done = sweep(tmp_path, *often, **SECRET)
    assert (done.returncode, done.stdout) == (0, "results: 2 runs done\n"), done.stderr
    assert_same_results(tmp_path / "results", longer / "results")


@needs_ray
def test_the_end_of_the_process_connected_to_ray_is_that_of_the_cluster(
    cluster: Cluster, longer: Path, tmp_path: Path
) -> None:
    """Ray itself ends it when it talks to a dead raylet; the sweep outlives it, and says so."""
    write_study(tmp_path, LONGER)
    often = ["--checkpoint-every", "0.4", "--backend", "ray", "--address", cluster.address]
    often += ONLY
    with started(tmp_path, *often, **SECRET) as process:
        wait_until(lambda: checkpoints(tmp_path))
        os.kill(connection_of(process.pid), signal.SIGKILL)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (2, ""), err
    assert err.count("error: ") == err.count("error: the Ray cluster is gone: ") == 1
    assert "the process connected to it died (signal 9" in err
    assert "Traceback" not in err
    assert not record(tmp_path)
    wait_until(lambda: not cluster.at_work(), seconds=20)
    done = sweep(tmp_path, *often, **SECRET)
    assert (done.returncode, done.stdout) == (0, "results: 2 runs done\n"), done.stderr
    assert_same_results(tmp_path / "results", longer / "results")


def connection_of(driver: int) -> int:
    """The process of a sweep that is connected to Ray."""
    [pid] = [
        pid for pid, parent, words in processes() if parent == driver and "ray_connection" in words
    ]
    return pid


@needs_ray
@pytest.mark.parametrize("local", [False, True], ids=["on a cluster", "on a Ray of its own"])
def test_nothing_outlives_a_sweep_that_is_killed(
    local: bool, cluster: Cluster, tmp_path: Path
) -> None:
    write_study(tmp_path, ENDLESS)
    where = ["--workers", "1"] if local else ["--address", cluster.address]
    often = ["--checkpoint-every", "0.4", "--backend", "ray", *where]
    with started(tmp_path, *often, **SECRET) as process:
        wait_until(lambda: checkpoints(tmp_path))
        theirs = descendants(process.pid)
        assert local == any("raylet" in words for words in theirs.values())
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: not theirs.keys() & {pid for pid, _, _ in processes()}, seconds=20)
        wait_until(lambda: not cluster.at_work(), seconds=20)


def _is_newer(path: Path, then: int) -> bool:
    return not path.exists() or path.stat().st_mtime_ns > then


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
    wait_until(lambda: not cluster.at_work(), seconds=10)


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
    done = sweep(tmp_path, "--backend", "ray", "--address", where, **SECRET)
    assert time.monotonic() - began < 20
    assert done.returncode == 2
    assert f"error: no Ray cluster at address '{where}': " in done.stderr
    assert "Traceback" not in done.stderr
