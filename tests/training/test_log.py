"""Logs of runs: CSV, and event files that TensorBoard itself reads back."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars
import pytest

import qrmax
from gym_worlds import lake
from qrmax.errors import ParameterError, SourceError
from qrmax.training.exact_evaluator import Point
from small_runs import corridor

SETTINGS: dict[str, Any] = {"t_env": 3, "stop": "budget", "evaluate_every": 100, "compiled": False}


def train(log: Any, max_steps: int = 500, **changes: Any) -> qrmax.Run:
    return qrmax.train("qrmax", corridor(), log=log, max_steps=max_steps, **{**SETTINGS, **changes})


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return [*csv.DictReader(file)]


def as_points(path: Path) -> list[Point]:
    kinds = {"step": int, "nominal_length": int, "episodes": int}
    return [
        Point(**{n: kinds.get(n, float)(row[n]) if row[n] else None for n in Point._fields})
        for row in rows(path)
    ]


def events(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard reads."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(folder))
    read.Reload()
    return {tag: [(e.step, e.value) for e in read.Scalars(tag)] for tag in read.Tags()["scalars"]}


def test_a_folder_holds_the_curve_as_csv_and_for_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    log = tmp_path / "runs" / "x"
    run = train(log)
    assert as_points(log / "curve.csv") == list(run.curve)
    assert len(run.curve) == 5
    seconds = [float(row["seconds"]) for row in rows(log / "curve.csv")]
    assert seconds == sorted(seconds)
    told = events(log)
    assert set(told) == {"success", "start_value", "gap", "episodes", "seconds"}
    for tag in ("success", "start_value", "gap", "episodes"):
        wanted = [(point.step, getattr(point, tag)) for point in run.curve]
        assert told[tag] == [(step, pytest.approx(value, rel=1e-6)) for step, value in wanted]
    about = json.loads((log / "run.json").read_text())
    assert (about["agent"], about["problem"], about["settings"]["t_env"]) == (
        "qrmax",
        "corridor",
        3,
    )


def test_a_run_that_is_resumed_appends(tmp_path: Path) -> None:
    log = tmp_path / "x"
    train(log, 300).save(tmp_path / "early.run")
    train(None, 200).save(tmp_path / "earlier.run")
    qrmax.load(tmp_path / "early.run").resume(600, log=log)
    whole = train(tmp_path / "whole", 600)
    assert as_points(log / "curve.csv") == list(whole.curve)
    qrmax.load(tmp_path / "earlier.run").resume(
        400, log=log
    )  # rows beyond step 200 are its own now
    assert as_points(log / "curve.csv") == list(whole.curve[:4])
    if pytest.importorskip("tensorboard"):
        assert [step for step, _ in events(log)["success"]] == [100, 200, 300, 400]


def test_the_log_of_another_run_is_refused_before_the_first_step(tmp_path: Path) -> None:
    log = tmp_path / "x"
    run = train(log, 300)
    before = {path.name: path.read_bytes() for path in log.iterdir()}
    with pytest.raises(
        ParameterError, match=r"curve.csv: there is the log of .* it starts from step 0"
    ):
        train(log, 300)
    with pytest.raises(ParameterError, match="another one; give another log, or delete that one"):
        train(log, 300, seed=1)
    other = train(None, 300, seed=2)
    with pytest.raises(ParameterError, match="it is another one"):
        other.resume(600, log=log)
    assert other.trained == 300
    assert {path.name: path.read_bytes() for path in log.iterdir()} == before
    assert run.resume(400, log=log).trained == 400


def test_files_of_the_user_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "curve.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ParameterError, match="exists, and is not the log of a run"):
        train(tmp_path)
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ParameterError, match="there is the log of a run already"):
        train(tmp_path / "x.csv")
    assert (tmp_path / "x.json").read_text() == "{}"
    (tmp_path / "file").write_text("")
    with pytest.raises((SourceError, ParameterError), match="file"):
        train(tmp_path / "file" / "below")


def test_a_name_that_ends_in_csv_is_the_file_alone(tmp_path: Path) -> None:
    run = train(tmp_path / "curve.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curve.csv", "curve.json"]
    assert polars.read_csv(tmp_path / "curve.csv")["success"].to_list() == [
        point.success for point in run.curve
    ]


def test_without_the_extra_the_csv_is_written_and_a_warning_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.warns(qrmax.QRMaxWarning, match=r"pip install 'qrmax\[log\]'"):
        run = train(tmp_path / "x")
    assert as_points(tmp_path / "x" / "curve.csv") == list(run.curve)
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == ["curve.csv", "run.json"]


def test_a_log_does_not_change_a_run_and_serves_environments_too(tmp_path: Path) -> None:
    plain = qrmax.train("qrmax", lake(), t_env=1, max_steps=600, evaluate_every=100)
    logged = qrmax.train(
        "qrmax", lake(), t_env=1, max_steps=600, evaluate_every=100, log=tmp_path / "x"
    )
    assert logged.curve == plain.curve
    assert as_points(tmp_path / "x" / "curve.csv") == list(plain.curve)


def test_an_error_on_the_way_leaves_what_there_was(tmp_path: Path) -> None:
    def fail(event: Any) -> None:
        if event.step == 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "x", on_event=fail)
    assert [point.step for point in as_points(tmp_path / "x" / "curve.csv")] == [100, 200, 300]


KILLED = """
import sys
sys.path.insert(0, sys.argv[2])
from gym_worlds import lake
import qrmax
qrmax.train("qrmax", lake(), t_env=1, max_steps=10**8, evaluate_every=50, log=sys.argv[1])
"""


def test_a_run_that_is_killed_leaves_files_that_can_be_read(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    log = tmp_path / "x"
    tests = str(Path(__file__).parents[1])
    child = subprocess.Popen([sys.executable, "-c", KILLED, log, tests], env=os.environ)
    try:
        while not (log / "curve.csv").exists() or len(rows(log / "curve.csv")) < 5:
            assert child.poll() is None
            time.sleep(0.05)
        while "success" not in events(log):  # within a second or so
            assert child.poll() is None
            time.sleep(0.1)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    with (log / "curve.csv").open("a") as file:
        file.write("9999,0.")  # half a row, as a full disk would leave it
    steps = [int(row["step"]) for row in rows(log / "curve.csv")[:-1]]
    assert steps == list(range(50, 50 * len(steps) + 1, 50))
    read = [step for step, _ in events(log)["success"]]  # but perhaps not the last second
    assert read == list(range(50, 50 * len(read) + 1, 50))
