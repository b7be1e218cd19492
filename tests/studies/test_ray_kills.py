"""Kills and Ctrl-C with Ray: no run is lost, and nothing outlives its sweep."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

import qrmax
from ray_clusters import SECRET, Cluster, descendants, needs_ray
from small_studies import (
    ENDLESS,
    LONG,
    assert_same_results,
    checkpoints,
    processes,
    record,
    started,
    sweep,
    wait_until,
    write_study,
)

pytestmark = needs_ray

# runs that outlast the start of a second node's worker, seconds after the first's, and some kills
LONGER = LONG.replace("1_200_000", "12_000_000")


@pytest.fixture(scope="module")
def longer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the longer study, swept by local workers."""
    folder = tmp_path_factory.mktemp("longer")
    path = folder / write_study(folder, LONGER)
    qrmax.sweep(path, workers=2, only={"seed": ["0", "1"]}, folder=folder / "results")
    return folder


ONLY = ["--only", "seed=0", "--only", "seed=1"]


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


def _is_newer(path: Path, then: int) -> bool:
    return not path.exists() or path.stat().st_mtime_ns > then


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
