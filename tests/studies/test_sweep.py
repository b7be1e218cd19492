"""`qrmax.sweep`: every run once, the same results however they are made."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import qrmax
from command_line import GOOD_MAP
from qrmax.errors import ParameterError, StoreError, UnknownNameError
from qrmax.studies.sweep import Advanced, Begun, Failed, Finished, Noted, Waited, select
from qrmax.studies.work import Assignment, advance
from small_studies import (
    ENDLESS,
    LONG,
    QUICK,
    assert_same_results,
    contents,
    record,
    sweep,
    wait_until,
    workers_of,
    write_study,
)

QUICK_RUNS = 12


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quick study, swept with one worker."""
    folder = tmp_path_factory.mktemp("reference")
    path = folder / write_study(folder, QUICK)
    summary = qrmax.sweep(path, workers=1, folder=folder / "results")
    assert summary == (folder / "results", QUICK_RUNS, 0, 0, 0)
    return folder


def quick(folder: Path) -> Path:
    return folder / write_study(folder, QUICK)


@pytest.mark.parametrize("workers", [2, 4])
def test_results_do_not_depend_on_the_number_of_workers(
    workers: int, reference: Path, tmp_path: Path
) -> None:
    qrmax.sweep(quick(tmp_path), workers=workers, folder=tmp_path / "results")
    assert_same_results(tmp_path / "results", reference / "results")


def test_a_run_of_a_sweep_is_what_train_gives(reference: Path) -> None:
    problem = qrmax.make("office/map1/exp1")
    same = qrmax.train("qrmax-rm", problem, seed=1, t_env=5, max_steps=4000)
    [run] = [
        run
        for run in qrmax.load_study(reference / "study.toml").runs()
        if (run.cell.problem.label, run.cell.label, run.seed) == ("office/map1/exp1", "qrmax-rm", 1)
    ]
    outcome: Any = record(reference)[run.id]["outcome"]
    assert (outcome["steps"], outcome["gap"]) == (same.steps, same.gap)
    assert (outcome["reason"], outcome["trained"]) == (same.reason, same.trained)


def test_what_is_complete_is_not_run_again_unless_it_is_to_be_fresh(
    reference: Path, tmp_path: Path
) -> None:
    events: list[Any] = []
    options: dict[str, Any] = {"workers": 1, "folder": tmp_path / "results"}
    qrmax.sweep(quick(tmp_path), only={"seed": "0"}, **options)
    before = record(tmp_path)
    assert len(before) == QUICK_RUNS // 2
    qrmax.sweep(quick(tmp_path), on_event=events.append, **options)
    assert events[0] == Begun(done=QUICK_RUNS // 2, todo=QUICK_RUNS // 2)
    assert {event.run.seed for event in events if isinstance(event, Finished)} == {1}
    after = record(tmp_path)
    assert {key: after[key] for key in before} == before  # timings, too
    events.clear()
    qrmax.sweep(quick(tmp_path), fresh=True, on_event=events.append, **options)
    assert events[0] == Begun(done=0, todo=QUICK_RUNS)
    assert record(tmp_path)[next(iter(before))] != before[next(iter(before))]
    assert_same_results(tmp_path / "results", reference / "results")


def test_a_sweep_goes_through_the_part_that_is_asked_for(tmp_path: Path) -> None:
    seen: list[Any] = []
    summary = qrmax.sweep(
        quick(tmp_path),
        workers=1,
        only={"problem": "office/map1/*", "agent": ["qrm", "q-learning"], "seed": ["1"]},
        folder=tmp_path / "results",
        on_event=seen.append,
    )
    assert summary[1:] == (2, 0, 0, 0)
    ran = {(e.run.cell.problem.label, e.run.cell.label, e.run.seed) for e in seen if _ended(e)}
    # an agent with a label of its own is found by its name, too
    assert ran == {("office/map1/exp1", "other", 1), ("office/map1/exp1", "q-learning", 1)}


def _ended(event: object) -> bool:
    return isinstance(event, Finished)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"only": {"agnet": "qrm"}}, UnknownNameError, "did you mean 'agent'"),
        ({"only": {"agent": "rmax"}}, ParameterError, "no run of 'study' matches"),
        ({"workers": 0}, ParameterError, "workers is 0"),
        ({"backend": "dask"}, ParameterError, "allowed: 'local', 'ray'"),
        ({"address": "auto"}, ParameterError, "for the backend 'ray'"),
        ({"checkpoint_every": 0.0}, ParameterError, "checkpoint_every is 0.0"),
    ],
    ids=str,
)
def test_bad_arguments_are_errors(
    options: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        qrmax.sweep(quick(tmp_path), folder=tmp_path / "results", **options)
    assert not [*tmp_path.rglob("run.json")]


def test_a_folder_of_another_study_is_left_alone(reference: Path, tmp_path: Path) -> None:
    before = contents(reference / "results")
    write_study(tmp_path, QUICK, "another.toml")
    with pytest.raises(StoreError, match="has results of study"):
        qrmax.sweep(tmp_path / "another.toml", folder=reference / "results")
    assert contents(reference / "results") == before


# --- runs that fail


def test_a_run_that_raises_is_recorded_and_does_not_stop_the_others(tmp_path: Path) -> None:
    """A study that was put together in Python is not checked before its runs are."""
    study = qrmax.load_study(quick(tmp_path))
    broken = tuple(
        replace(cell, settings={**cell.settings, "alpha": -1.0}) if cell.label == "other" else cell
        for cell in study.cells
    )
    options: dict[str, Any] = {"workers": 2, "folder": tmp_path / "results"}
    events: list[Any] = []
    summary = qrmax.sweep(study.changed(cells=broken), on_event=events.append, **options)
    assert summary[1:] == (8, 4, 0, 0)
    failed = [event for event in events if isinstance(event, Failed)]
    assert {event.run.cell.label for event in failed} == {"other"}
    records = [data for data in record(tmp_path).values() if data["status"] == "failed"]
    assert len(records) == 4
    for data in records:
        assert str(data["error"]).startswith("Traceback (most recent call last)")
        assert "ParameterError: alpha is -1.0" in str(data["error"])
        assert "outcome" not in data
    events.clear()
    again = qrmax.sweep(study.changed(cells=broken), on_event=events.append, **options)
    assert again == summary
    assert events[0] == Begun(done=8, todo=4)
    assert sum(isinstance(event, Failed) for event in events) == 4


def test_a_run_that_has_failed_and_then_succeeds_leaves_no_trace_of_that(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Someone has removed the interpreter, and put it back."""
    options: dict[str, Any] = {"workers": 1, "folder": tmp_path / "results"}
    events: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(tmp_path / "no-such-python"))
        summary = qrmax.sweep(
            quick(tmp_path), only={"seed": "0"}, on_event=events.append, **options
        )
    assert summary[1:] == (0, 6, 0, 0)
    for data in record(tmp_path).values():
        assert "no worker could be started" in str(data["error"])
    assert sum(isinstance(event, Noted) for event in events) == 6 * 2  # each is tried three times
    assert qrmax.sweep(quick(tmp_path), **options)[1:] == (QUICK_RUNS, 0, 0, 0)
    assert_same_results(tmp_path / "results", reference / "results")


@pytest.mark.parametrize("seed", [0, "0", [0], ["0"], (0,), range(1)])
def test_patterns_may_be_numbers(seed: Any) -> None:
    assert select(qrmax.load_study("smoke"), {"seed": seed, "agent": "qrmax"}).seeds == (0,)


@pytest.mark.parametrize("only", ["qrmax", {"seed": []}, {"agent": None}, {"label": "qrmax"}, 3])
def test_patterns_that_say_nothing_are_refused(only: Any) -> None:
    with pytest.raises(qrmax.QRMaxError, match=r"only|filter"):
        select(qrmax.load_study("smoke"), only)


# --- breaks


class EnoughError(Exception):
    """What a listener raises to break off a sweep."""


def break_off_at_the_first_checkpoint(path: Path, events: list[Any], **options: Any) -> None:
    def listen(event: Any) -> None:
        events.append(event)
        if isinstance(event, Advanced):
            raise EnoughError

    with pytest.raises(EnoughError):
        qrmax.sweep(path, workers=1, only={"seed": "0"}, on_event=listen, **options)


def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    """Where the time is up at once, a stretch is as short as can be: up to the next check."""
    path = tmp_path / write_study(tmp_path, LONG)
    options: dict[str, Any] = {"folder": tmp_path / "results", "checkpoint_every": 1e-9}
    for times in (1, 2):
        events: list[Any] = []
        break_off_at_the_first_checkpoint(path, events, **options)
        assert [e.trained for e in events if isinstance(e, Advanced)] == [300 * times]
    [checkpoint] = tmp_path.glob("results/runs/*/checkpoint.safetensors")
    assert qrmax.load(checkpoint).trained == 600


def test_a_damaged_checkpoint_is_reported_and_the_run_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / write_study(tmp_path, LONG)
    options: dict[str, Any] = {"folder": tmp_path / "results", "checkpoint_every": 1e-9}
    break_off_at_the_first_checkpoint(path, [], **options)
    [checkpoint] = tmp_path.glob("results/runs/*/checkpoint.safetensors")
    checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    events: list[Any] = []
    break_off_at_the_first_checkpoint(path, events, **options)
    [note] = [event.message for event in events if isinstance(event, Noted)]
    assert "restarted (q-learning on office/map1/exp5, seed 0)" in note
    assert events[-1].trained == 300


def test_a_kill_while_a_file_is_being_written_leaves_nothing_behind(
    reference: Path, tmp_path: Path
) -> None:
    """What a process that dies in the middle of writing leaves: half a file of another name."""
    [run, *_] = qrmax.load_study(quick(tmp_path)).runs()
    folder = tmp_path / "results/runs" / run.id
    folder.mkdir(parents=True)
    (folder / ".qrmax-123.unfinished").write_text('{"schema": 2, "sta')
    (folder / "curve.parquet").write_text("PAR1")  # run.json comes after it
    (tmp_path / "results/.qrmax-123.unfinished").write_text('{"schema": 2, "stu')
    qrmax.sweep(quick(tmp_path), workers=2, folder=tmp_path / "results")
    assert_same_results(tmp_path / "results", reference / "results")


def test_a_sweep_that_is_broken_off_ends_its_workers_and_threads_at_once(tmp_path: Path) -> None:
    path = tmp_path / write_study(tmp_path, ENDLESS)
    threads = {*threading.enumerate()}
    kept: list[Any] = []  # an interactive session keeps the last traceback, and all it refers to

    def listen(event: Any) -> None:
        if isinstance(event, Advanced):
            kept.extend(workers_of(os.getpid()))
            raise EnoughError

    try:
        qrmax.sweep(path, workers=1, folder=tmp_path / "r", checkpoint_every=0.1, on_event=listen)
    except EnoughError as error:
        kept.append(error)
    assert isinstance(kept.pop(), EnoughError)
    assert len(kept) == 1
    assert workers_of(os.getpid()) == []
    wait_until(lambda: {*threading.enumerate()} <= threads, seconds=20)


# --- wherever it is called from


def python(folder: Path, *arguments: str, text: str | None = None) -> None:
    """Run Python as people do; whatever it writes to stderr is a failure."""
    done = subprocess.run(
        [sys.executable, *arguments],
        input=text,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


CALL = """
import qrmax
print("once")
summary = qrmax.sweep("study.toml", workers=1, folder="results")
assert summary.done == 12, summary
"""


def test_a_script_needs_no_guard(reference: Path, tmp_path: Path) -> None:
    quick(tmp_path)
    (tmp_path / "script.py").write_text(CALL)
    python(tmp_path, "script.py")
    assert_same_results(tmp_path / "results", reference / "results")


def test_a_sweep_can_be_called_on_the_command_line_of_python(
    reference: Path, tmp_path: Path
) -> None:
    quick(tmp_path)
    python(tmp_path, "-c", CALL)
    assert_same_results(tmp_path / "results", reference / "results")


def test_a_sweep_can_be_called_from_a_session(reference: Path, tmp_path: Path) -> None:
    """Python reads the lines from stdin, which is not for the workers to read."""
    quick(tmp_path)
    python(tmp_path, "-", text=CALL + "(here) = summary.folder\nassert str(here) == 'results'\n")
    assert_same_results(tmp_path / "results", reference / "results")


def test_a_sweep_can_be_called_from_a_thread(reference: Path, tmp_path: Path) -> None:
    path, found = quick(tmp_path), []

    def work() -> None:
        found.append(qrmax.sweep(path, workers=1, folder=tmp_path / "results"))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0].done == QUICK_RUNS
    assert_same_results(tmp_path / "results", reference / "results")


def test_a_module_of_the_users_own_does_not_get_into_the_workers(tmp_path: Path) -> None:
    """The command does not look for modules in the current folder, nor do its workers."""
    quick(tmp_path)
    for name in ("json", "queue", "numpy", "qrmax"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('this is mine')\n")
    done = sweep(tmp_path, "--only", "seed=0", "--workers", "1")
    assert (done.returncode, done.stdout) == (0, "results: 6 runs done\n")
    assert "mine" not in done.stderr


def test_the_users_own_files_are_where_the_study_is(tmp_path: Path) -> None:
    """A problem is sent to a worker as text: it need not see the files."""
    (tmp_path / "my").mkdir()
    (tmp_path / "my/map.txt").write_text(GOOD_MAP)
    (tmp_path / "my/task.toml").write_text(
        'initial = "s"\nsuccess = ["t"]\n'
        'edges = [{ from = "s", when = "office", to = "t", reward = 2.0 }]\n'
    )
    text = 'problems = [{ map = "map.txt", task = "task.toml" }]\nagents = ["qrmax"]\nseeds = 1\n'
    write_study(tmp_path / "my", text)
    study = qrmax.load_study(tmp_path / "my/study.toml")
    (tmp_path / "my/map.txt").unlink()
    assert qrmax.sweep(study, workers=1, folder=tmp_path / "results").done == 1


def test_runs_on_a_shaped_task_change_hands_and_are_judged_by_the_plain_one(tmp_path: Path) -> None:
    shaped = qrmax.load_task("exp1").shaped(0.9, world_ends="decoration")
    qrmax.save_task(shaped, tmp_path / "task.toml")
    text = (
        'problems = [{ map = "map1", task = "task.toml" }]\nagents = ["qrmax-rm"]\nseeds = 1\n'
        'stop = "budget"\nmax_steps = 3000\n'
    )
    [run] = qrmax.load_study(tmp_path / write_study(tmp_path, text)).runs()
    report, hands = advance(Assignment(run.config(), b"", seconds=0.0)), 1
    while report.kind == "unfinished":
        report, hands = advance(Assignment(run.config(), report.blob, seconds=0.0)), hands + 1
    assert (report.kind, hands) == ("done", 3)
    problem = qrmax.make("office/map1", task=shaped)
    same = qrmax.train("qrmax-rm", problem, seed=run.seed, stop="budget", max_steps=3000)
    assert same.evaluation is not None
    assert report.data["start_value"] == same.evaluation.start_value >= 0.0
    assert report.data["gap"] == same.gap


def test_a_study_that_warns_does_so_once_and_not_for_each_run(tmp_path: Path) -> None:
    text = QUICK.replace("t_env = 5", "r_max = 0.5")
    path = tmp_path / write_study(tmp_path, text.replace(', "office/map0/exp0"', ""))
    with pytest.warns(qrmax.QRMaxWarning) as caught:
        qrmax.sweep(path, workers=1, folder=tmp_path / "results", only={"agent": "qrmax-rm"})
    assert len(caught) == 1
    done = sweep(tmp_path, "--fresh", "--workers", "1")
    assert done.returncode == 0
    assert done.stderr.count("r_max is 0.5") == 1


def test_ctrl_c_in_python_has_runs_checkpointed(tmp_path: Path) -> None:
    """Long before its first checkpoint is due, whether its worker has come to work yet or not."""
    path = tmp_path / write_study(tmp_path, ENDLESS)
    events: list[Any] = []

    def press(event: Any) -> None:
        events.append(event)
        if event == Waited() and events.count(event) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        qrmax.sweep(path, workers=1, folder=tmp_path / "results", on_event=press)
    [checkpoint] = tmp_path.glob("results/runs/*/checkpoint.safetensors")
    assert qrmax.load(checkpoint).trained > 0


def test_ctrl_c_while_the_last_run_finishes_is_no_interruption(tmp_path: Path) -> None:
    def press(event: Any) -> None:
        if isinstance(event, Finished):
            os.kill(os.getpid(), signal.SIGINT)

    only = {"agent": "q-learning", "problem": "office/map1/*", "seed": 0}
    found = qrmax.sweep(
        quick(tmp_path), workers=1, folder=tmp_path / "results", only=only, on_event=press
    )
    assert (found.done, found.left) == (1, 0)
