"""`kill -9`, at any moment, to the sweep or to its workers: the results are the same in the end."""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

import qrmax
from campaigns.kill import campaign
from outside_code import SARSA, write_module
from small_studies import (
    LONGER,
    assert_same_results,
    checkpoints,
    complete,
    is_alive,
    record,
    started,
    sweep,
    wait_until,
    workers_of,
    write_study,
)

OFTEN = ["--checkpoint-every", "0.3", "--workers", "2"]
KILLS = 3
# ends its process as a system does that allows it so many seconds
DEADLY = SARSA.replace(
    "        if self.rng", "        os.kill(os.getpid(), signal.SIGXCPU)\n        if self.rng"
)
DEADLY = "import os\nimport signal\n" + DEADLY
HOPELESS = """
problems = ["office/map1/exp1"]
agents = [{ agent = "deadly_agent:Sarsa", label = "hopeless" }, "qrmax-rm"]
seeds = 1
max_steps = 1_000_000_000
"""


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The long study, never interrupted."""
    folder = tmp_path_factory.mktemp("reference")
    path = folder / write_study(folder, LONGER)
    assert qrmax.sweep(path, workers=2, folder=folder / "results").done == 3
    return folder


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a sweep; its workers end by themselves."""
    workers = workers_of(process.pid)
    assert workers
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(timeout=10) == -signal.SIGKILL
    wait_until(lambda: not any(map(is_alive, workers)), seconds=20)


def test_a_sweep_that_is_killed_again_and_again_ends_with_the_same_results(
    reference: Path, tmp_path: Path
) -> None:
    write_study(tmp_path, LONGER)
    moments = random.Random(4)
    trained: dict[Path, int] = {}  # the steps of the checkpoints that the kills have left
    went_on = 0
    for number in range(KILLS):
        with started(tmp_path, *OFTEN) as process:
            wait_until(lambda process=process: workers_of(process.pid))
            if number:  # any moment of the work itself, else also of what comes before
                known = {path: path.stat().st_mtime_ns for path in checkpoints(tmp_path)}
                wait_until(lambda known=known: _has_gone_on(tmp_path, known))
            time.sleep(moments.uniform(0.0, 0.5))
            kill(process)
        assert len(complete(tmp_path)) < 3, "too fast: nothing was left to kill"
        steps_of = {path: qrmax.load(path).trained for path in checkpoints(tmp_path)}
        for path, before in trained.items():
            now = steps_of.get(path, math.inf)  # without a checkpoint it is complete
            assert now >= before  # it is never begun anew
            went_on += now > before
        trained |= steps_of
    assert went_on
    done = sweep(tmp_path, *OFTEN)
    assert (done.returncode, done.stdout) == (0, "results: 3 runs done\n")
    assert_same_results(tmp_path / "results", reference / "results")


def _has_gone_on(folder: Path, known: dict[Path, int]) -> bool:
    """A run that had a checkpoint has a newer one or is complete; or the first one there is."""
    now = {path: path.stat().st_mtime_ns for path in checkpoints(folder)}
    return any(now.get(path) != moment for path, moment in known.items()) if known else bool(now)


def test_a_run_whose_worker_is_killed_goes_on_with_another(reference: Path, tmp_path: Path) -> None:
    write_study(tmp_path, LONGER)
    moments = random.Random(2)
    with started(tmp_path, *OFTEN) as process:
        for _ in range(2):  # twice at most over one run, whichever it is
            wait_until(lambda: checkpoints(tmp_path) and len(workers_of(process.pid)) == 2)
            time.sleep(moments.uniform(0.0, 0.3))
            os.kill(moments.choice(sorted(workers_of(process.pid))), signal.SIGKILL)
            wait_until(lambda: len(workers_of(process.pid)) == 2, seconds=30)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "results: 3 runs done\n")
    assert err.count("its worker died (signal 9, perhaps out of memory); resumed by another") == 2
    assert_same_results(tmp_path / "results", reference / "results")


def test_signals_of_any_kind_to_anyone_leave_the_same_results(
    reference: Path, tmp_path: Path
) -> None:
    """A few of those of `campaigns/kill.py`."""
    write_study(tmp_path, LONGER)
    sent = campaign(tmp_path, signals=4, seed=7)
    assert {name.split()[0] for name in sent} == {"SIGINT", "SIGKILL", "SIGSTOP", "SIGTERM"}
    assert_same_results(tmp_path / "results", reference / "results")


def test_a_run_that_its_worker_dies_of_three_times_is_recorded_as_failed(tmp_path: Path) -> None:
    write_module(tmp_path, "deadly_agent", DEADLY)
    write_study(tmp_path, HOPELESS)
    done = sweep(tmp_path, "--workers", "1")
    assert (done.returncode, done.stdout) == (1, "results: 1 run done, 1 failed\n")
    died = f"its worker died (signal {signal.SIGXCPU.value})"
    assert done.stderr.count(f"{died}; resumed by another") == 2
    assert "failed: hopeless on office/map1/exp1, seed 0" in done.stderr
    found = {data["label"]: data for data in record(tmp_path).values()}
    assert (found["hopeless"]["status"], found["hopeless"]["error"]) == ("failed", died)
    assert found["qrmax-rm"]["status"] == "done"
    assert checkpoints(tmp_path) == []
