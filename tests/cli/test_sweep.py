"""`qrmax sweep`, as people run it: in a process of its own, and on a terminal."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest

import qrmax
from command_line import QRMAX, run
from small_studies import (
    ENDLESS,
    LONG,
    QUICK,
    assert_same_results,
    checkpoints,
    complete,
    cpu_seconds,
    is_alive,
    record,
    started,
    sweep,
    wait_until,
    with_main,
    workers_of,
    write_study,
)
from terminal import Seen, Window, on_a_terminal

OFTEN = ["--checkpoint-every", "0.3"]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the long study, never interrupted."""
    folder = tmp_path_factory.mktemp("reference")
    path = folder / write_study(folder, LONG)
    only = {"seed": ["0", "1"]}
    assert qrmax.sweep(path, workers=2, only=only, folder=folder / "results").done == 2
    return folder


TWO = ["--only", "seed=0", "--only", "seed=1", *OFTEN]

# --- Ctrl-C


@pytest.mark.parametrize("to_all", [True, False], ids=["as a terminal does", "to the sweep alone"])
def test_ctrl_c_has_runs_checkpointed_and_the_same_command_goes_on(
    to_all: bool, reference: Path, tmp_path: Path
) -> None:
    write_study(tmp_path, LONG)
    with started(tmp_path, *TWO, "--workers", "1") as process:
        wait_until(lambda: checkpoints(tmp_path))
        workers = workers_of(process.pid)
        pressed = time.monotonic()
        (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert time.monotonic() - pressed < 8
    assert process.returncode == 130
    assert re.fullmatch("results: 0 runs done, 2 left\n|results: 1 run done, 1 left\n", out)
    assert err.endswith("interrupted; the same command resumes it\n")
    assert "stopping: the runs under way are checkpointed (Ctrl-C: at once)" in err
    assert "Traceback" not in err
    assert "died" not in err
    assert not any(map(is_alive, workers))
    for checkpoint in checkpoints(tmp_path):
        assert 0 < qrmax.load(checkpoint).trained < 1_200_000
    if to_all:
        done = sweep(tmp_path, *TWO)
        assert (done.returncode, done.stdout) == (0, "results: 2 runs done\n")
        assert_same_results(tmp_path / "results", reference / "results")


def test_ctrl_c_keeps_what_is_far_from_its_next_checkpoint_and_begins_nothing_else(
    tmp_path: Path,
) -> None:
    """The next one would be in ten minutes."""
    write_study(tmp_path, ENDLESS.replace("seeds = 1", "seeds = 5"))
    with started(tmp_path, "--workers", "1", "--checkpoint-every", "600") as process:
        wait_until(lambda: workers_of(process.pid))
        [worker] = workers_of(process.pid)
        wait_until(lambda: cpu_seconds(worker) > 3.0)  # it imports for a second, then trains
        assert checkpoints(tmp_path) == []
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "results: 0 runs done, 5 left\n")
    [checkpoint] = checkpoints(tmp_path)
    assert [*tmp_path.glob("results/runs/*")] == [checkpoint.parent]
    assert qrmax.load(checkpoint).trained > 0


def test_ctrl_c_while_workers_are_starting_is_quiet(tmp_path: Path) -> None:
    write_study(tmp_path, ENDLESS)
    with started(tmp_path, "--workers", "1", "--fresh") as process:
        wait_until(lambda: workers_of(process.pid))  # which now import for a second
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=8)
    assert process.returncode == 130
    assert err.endswith("interrupted; the same command without --fresh resumes it\n")
    assert "Traceback" not in err
    assert "died" not in err


def test_ctrl_c_pressed_again_ends_at_once(tmp_path: Path) -> None:
    write_study(tmp_path, ENDLESS)
    with started(tmp_path, "--workers", "1", *OFTEN) as process:
        wait_until(lambda: checkpoints(tmp_path))
        [worker] = workers_of(process.pid)
        os.kill(worker, signal.SIGSTOP)  # it will not hand over anything
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(1)
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "interrupted"
    wait_until(lambda: not is_alive(worker), seconds=20)
    assert checkpoints(tmp_path)


# --- two at once


def test_a_second_sweep_of_a_folder_refuses_and_says_who_has_it(tmp_path: Path) -> None:
    write_study(tmp_path, ENDLESS)
    with started(tmp_path, "--workers", "1", *OFTEN) as process:
        wait_until(lambda: checkpoints(tmp_path))
        second = sweep(tmp_path, "--fresh")
        assert second.returncode == 2
        owner = f"process {process.pid} on {socket.gethostname()}, since "
        assert f"results: is being written by {owner}" in second.stderr
        assert process.poll() is None
        [checkpoint] = checkpoints(tmp_path)
        trained = qrmax.load(checkpoint).trained
        wait_until(lambda: qrmax.load(checkpoint).trained > trained)  # the first one is unharmed
        process.kill()
        process.wait(timeout=10)
        with started(tmp_path, "--workers", "1", *OFTEN) as third:  # at once
            wait_until(lambda: qrmax.load(checkpoint).trained > trained + 1_000_000)
            assert third.poll() is None


# --- what it says


def test_patterns_combine(tmp_path: Path) -> None:
    write_study(tmp_path, QUICK)
    only = ["--only", "agent=q*", "--only", "problem=office/map0/*", "--only", "seed=1"]
    done = sweep(tmp_path, *only, "--verbose", "--workers", "1")
    assert (done.returncode, done.stdout) == (0, "results: 3 runs done\n")
    named = re.findall(r"^(\S+) on office/map0/exp0, seed 1: ", done.stderr, re.MULTILINE)
    assert sorted(named) == ["other", "q-learning", "qrmax-rm"]  # the other one is a qrm
    done = sweep(tmp_path, *only, "--only", "agent=rmax", "--only", "seed=7", "--json")
    found = json.loads(done.stdout)
    assert found == {"folder": "results", "done": 3, "failed": 0, "left": 0, "given_up": 0}
    assert "3 of 3 runs are complete already" in done.stderr
    none = sweep(tmp_path, "--only", "agent=rmax")
    assert none.returncode == 2
    assert "the agents q-learning, qrmax-rm, other" in none.stderr


def test_verbose_is_a_line_for_each_run_and_quiet_is_silence(tmp_path: Path) -> None:
    write_study(tmp_path, QUICK)
    verbose = sweep(tmp_path, "--verbose", "--workers", "1")
    line = r"^.+ on office/map\d/exp\d, seed \d: [\d,]+ steps, (exact|at the budget), \d+\.\d\d s$"
    assert len(re.findall(line, verbose.stderr, re.MULTILINE)) == 12
    assert "\r" not in verbose.stderr
    assert "\x1b" not in verbose.stderr
    before = record(tmp_path)
    quiet = sweep(tmp_path, "--quiet", "--fresh", "--workers", "1")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "results: 12 runs done\n", "")
    assert record(tmp_path) != before  # timings: it was run again


def test_a_run_that_fails_makes_the_exit_code_1_and_is_tried_again(tmp_path: Path) -> None:
    """There is no memory for so many episodes; it is only asked for in the middle of the run."""
    write_study(tmp_path, QUICK + 'stop = { rule = "welch", episodes = 1_000_000_000 }\n')
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))"
    command = ["sweep", "study.toml", "-o", "results", "--only", "problem=office/map1/*"]
    command += ["--only", "seed=0", "--workers", "1"]
    done = with_main(limit, tmp_path, *command)
    assert (done.returncode, done.stdout) == (1, "results: 0 runs done, 3 failed\n")
    assert len(re.findall(r"^failed: .+, seed 0 \([0-9a-f]{16}\): .+", done.stderr, re.M)) == 3
    before = record(tmp_path)
    for data in before.values():
        assert str(data["error"]).startswith("Traceback (most recent call last)")
        assert "MemoryError" in str(data["error"])
    status = run("status", "results", "--json", cwd=tmp_path)
    assert '"failed": 3' in status.stdout
    again = with_main(limit, tmp_path, *command, "--json")
    assert again.returncode == 1
    counts = {"done": 0, "failed": 3, "left": 0, "given_up": 0}
    assert json.loads(again.stdout) == {"folder": "results", **counts}
    assert record(tmp_path) != before


def test_progress_on_a_terminal_is_one_line_that_is_gone_in_the_end(tmp_path: Path) -> None:
    shown = swept_on_a_terminal(tmp_path, LONG)
    line = r"^[━╸╺]{24}  (\d) of 3 runs  ([\d,]+) steps/s  \d:\d\d"
    looks = [match for text in shown.rewrites if (match := re.match(line, text))]
    assert len(looks) > 5
    counts = [int(look[1]) for look in looks]
    assert counts[0] == 0
    assert counts == sorted(counts)
    assert counts[-1] > 0
    assert int(looks[-1][2].replace(",", "")) > 1000
    assert any(re.search(line + r"  \d+:\d\d left$", text) for text in shown.rewrites)
    assert shown.lines == ["results: 3 runs done"]


def test_in_a_narrow_window_a_sweep_says_how_many_runs_and_how_long(tmp_path: Path) -> None:
    shown = swept_on_a_terminal(tmp_path, LONG, "--verbose", columns=40)
    drawn = [text for text in shown.rewrites if re.match(r"\d of 3 runs", text)]
    assert max(map(len, drawn)) < 40
    assert any(re.fullmatch(r"\d of 3 runs  \d:\d\d  \d+:\d\d left", text) for text in drawn)
    assert not [line for line in shown.lines if "of 3 runs" in line]
    assert sum(line.startswith("q-learning on ") for line in shown.lines) == 3  # what stays


def test_progress_on_a_terminal_counts_failed_runs(tmp_path: Path) -> None:
    study = LONG + 'stop = { rule = "welch", episodes = 1_000_000_000 }\n'
    study = study.replace('stop = "budget"\n', "").replace("seeds = 3", "seeds = 30")
    size = 6 * 2**30
    shown = swept_on_a_terminal(
        tmp_path,
        study,
        columns=200,
        before=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
        code=1,
    )
    assert re.search(r"━  \d+ of 30 runs  \d+ failed  0 steps/s", "\n".join(shown.rewrites))
    assert sum(line.startswith("failed: q-learning on ") for line in shown.lines) == 30
    assert len(shown.lines) == 31  # nothing in between
    assert shown.lines[-1] == "results: 0 runs done, 30 failed"


def test_ctrl_c_on_a_terminal_leaves_nothing_of_the_bar_behind(tmp_path: Path) -> None:
    def press(window: Window) -> None:
        os.killpg(window.process.pid, signal.SIGINT)

    shown = swept_on_a_terminal(tmp_path, ENDLESS, when_shown=press, code=130)
    assert shown.lines == [
        "stopping: the runs under way are checkpointed (Ctrl-C: at once)",
        "results: 0 runs done, 1 left",
        "interrupted; the same command resumes it",
    ]


def swept_on_a_terminal(folder: Path, study: str, *arguments: str, **terminal: Any) -> Seen:
    """A sweep with one worker: two could end at the same moment."""
    write_study(folder, study)
    command = [QRMAX, "sweep", "study.toml", "-o", "results", "--workers", "1", *OFTEN]
    return on_a_terminal([*command, *arguments], cwd=folder, sign="steps/s", **terminal)


# --- without Ray


def test_without_ray_the_error_says_how_to_get_it(tmp_path: Path) -> None:
    write_study(tmp_path, QUICK)
    done = with_main(
        'sys.modules["ray"] = None', tmp_path, "sweep", "study.toml", "-o", "r", "--backend", "ray"
    )
    assert done.returncode == 2
    assert "pip install 'qrmax[ray]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert complete(tmp_path) == []
