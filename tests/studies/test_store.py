"""A results folder: what it says, and that no damage to it goes unnoticed or does any."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qrmax
from command_line import QRMAX, run
from qrmax.errors import QRMaxWarning, SourceError, StoreError
from qrmax.studies.results import status
from qrmax.studies.store import Store
from qrmax.studies.study import RunSpec, Study
from qrmax.studies.sweep import Begun, Event, Finished, Noted, Summary
from qrmax.studies.work import Assignment, advance
from tiny_study import agents, parsed, write_tiny

TWO_AGENTS = agents('"qrmax", { agent = "q-learning", label = "fast q-learning", alpha = 0.5 }')
TEXT = TWO_AGENTS.replace("seeds = 2", "seeds = 8").replace(
    '"qrmax", ', '{ agent = "qrmax", t_env = 3 }, '
)


class Swept(NamedTuple):
    """A study and a folder that holds all its runs."""

    file: Path
    folder: Path

    @property
    def study(self) -> Study:
        return qrmax.load_study(self.file)

    @property
    def ids(self) -> list[str]:
        return [run.id for run in self.study.runs()]

    def path(self, number: int, name: str = "") -> Path:
        return self.folder / "runs" / self.ids[number] / name

    def sweep(self) -> tuple[list[Event], Summary]:
        events: list[Event] = []
        done = qrmax.sweep(self.file, folder=self.folder, workers=1, on_event=events.append)
        return events, done


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """Swept once; no test changes it."""
    place = tmp_path_factory.mktemp("swept")
    swept = Swept(write_tiny(place, TEXT), place / "results")
    assert swept.sweep()[1].done == 16
    return swept


@pytest.fixture
def swept(original: Swept, tmp_path: Path) -> Swept:
    """A copy, to be spoilt."""
    shutil.copytree(original.folder, tmp_path / "results")
    return Swept(original.file, tmp_path / "results")


def contents(folder: Path) -> dict[str, bytes]:
    """All files of results, byte for byte."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def lasting(folder: Path) -> dict[str, Any]:
    """What must be the same however often a study is swept: all but the timing."""
    found: dict[str, Any] = dict(contents(folder))
    for name, data in found.items():
        if name.endswith("run.json"):
            found[name] = {key: x for key, x in json.loads(data).items() if key != "timing"}
    return found


def begun(events: list[Event]) -> Begun:
    [event] = [event for event in events if isinstance(event, Begun)]
    return event


def notes(events: list[Event]) -> str:
    return "\n".join(event.message for event in events if isinstance(event, Noted))


# --- what a folder says


COLUMNS = {
    "problem": pl.String,
    "agent": pl.String,
    "label": pl.String,
    "seed": pl.Int64,
    "status": pl.String,
    "reached": pl.Boolean,
    "steps": pl.Int64,
    "episodes": pl.Int64,
    "trained": pl.Int64,
    "reason": pl.String,
    "gap": pl.Float64,
    "start_value": pl.Float64,
    "success": pl.Float64,
    "mean_length": pl.Float64,
    "nominal_length": pl.Int64,
    "own_gap": pl.Float64,
    "own_steps": pl.Int64,
    "known": pl.Int64,
    "episode_return": pl.Float64,
    "episode_return_low": pl.Float64,
    "episode_return_high": pl.Float64,
    "success_low": pl.Float64,
    "success_high": pl.Float64,
    "max_steps": pl.Int64,
    "max_episodes": pl.Int64,
    "evaluate_every": pl.Int64,
    "dense_checks": pl.Int64,
    "stop": pl.String,
    "settings": pl.String,
    "options": pl.String,
    "learning_seconds": pl.Float64,
    "total_seconds": pl.Float64,
    "cpu_seconds": pl.Float64,
    "version": pl.String,
    "commit": pl.String,
    "error": pl.String,
    "in_study": pl.Boolean,
    "id": pl.String,
}


def test_results_have_these_columns(original: Swept) -> None:
    assert qrmax.results(original.folder).schema == COLUMNS


def test_results_are_in_the_order_of_the_study(original: Swept) -> None:
    found = qrmax.results(original.folder)
    assert found["id"].to_list() == original.ids
    assert found["seed"].to_list() == [seed for seed in range(8) for _ in range(2)]
    assert found["label"].to_list() == ["qrmax", "fast q-learning"] * 8
    assert found["agent"].to_list() == ["qrmax", "q-learning"] * 8


def test_a_row_says_what_training_says(original: Swept) -> None:
    row = qrmax.results(original.folder).row(1, named=True)
    problem = original.study.cells[0].problem.make()
    same = qrmax.train("q-learning", problem, max_steps=600, evaluate_every=100, alpha=0.5)
    assert (row["steps"], row["trained"], row["reason"]) == (same.steps, same.trained, same.reason)
    assert row["gap"] == same.gap
    assert row["reached"] is (same.reason == "exact")
    assert same.evaluation is not None
    assert row["start_value"] == same.evaluation.start_value
    assert row["nominal_length"] == same.evaluation.nominal_length
    assert json.loads(row["settings"])["alpha"] == 0.5
    assert json.loads(row["options"])["slip"] == 0.2
    assert json.loads(row["stop"]) == {"stop": "exact", "in_a_row": 3, "within": 0.05}
    assert (row["status"], row["error"], row["in_study"]) == ("done", None, True)
    assert row["total_seconds"] >= row["learning_seconds"] > 0.0
    assert row["cpu_seconds"] > 0.0
    assert row["version"] == qrmax.__version__


def test_whether_the_rule_was_met_is_told(original: Swept) -> None:
    found = qrmax.results(original.folder)
    met = found.filter(pl.col("reached"))
    assert {*met["label"]} == {"qrmax"}
    assert {*met["reason"]} == {"exact"}
    assert (met["steps"] < met["trained"]).all()  # the first of three checks in a row
    assert (met["gap"] <= 0.05).all()
    rest = found.filter(~pl.col("reached"))
    assert {*rest["reason"]} == {"budget"}
    assert {*rest["steps"]} == {600}


def test_a_curve_is_beside_each_run(original: Swept) -> None:
    for number in range(16):
        curve = pl.read_parquet(original.path(number, "curve.parquet"))
        assert curve["step"].to_list()[0] == 100
        assert curve["gap"].dtype == pl.Float64


def test_a_label_that_was_changed_since_is_shown_as_it_is_now(swept: Swept) -> None:
    text = TEXT.replace("fast q-learning", "quick").replace("{ map", '{ label = "row", map')
    Store(swept.folder).write_study(parsed(swept.file.parent, text))
    found = qrmax.results(swept.folder)
    assert {*found["label"]} == {"qrmax", "quick"}
    assert {*found["problem"]} == {"row"}
    assert found["in_study"].all()
    assert [cell.label for cell in status(swept.folder).cells] == ["qrmax", "quick"]


def test_runs_of_an_earlier_version_of_the_study_are_told_apart(swept: Swept) -> None:
    changed = parsed(swept.file.parent, TEXT.replace("alpha = 0.5", "alpha = 0.4"))
    Store(swept.folder).write_study(changed)
    assert qrmax.results(swept.folder)["label"].to_list() == ["qrmax"] * 8
    found = qrmax.results(swept.folder, earlier=True)
    assert found["in_study"].to_list() == [True] * 8 + [False] * 8  # those of the study come first
    assert found["label"].to_list() == ["qrmax"] * 8 + ["fast q-learning"] * 8
    looked = status(swept.folder)
    assert (looked.done, looked.left, looked.others) == (8, 8, 8)


def test_a_failed_run_is_told_and_tried_again(swept: Swept, original: Swept) -> None:
    runs = [*swept.study.runs()]
    store = Store(swept.folder)
    store.discard(runs[3].id)
    store.write_failure(runs[3], "Traceback ...\nValueError: no", timing={"total": 0.1})
    row = qrmax.results(swept.folder).row(3, named=True)
    assert (row["status"], row["error"]) == ("failed", "Traceback ...\nValueError: no")
    assert (row["steps"], row["reached"]) == (None, None)
    looked = status(swept.folder)
    assert (looked.done, looked.failed, looked.left) == (15, 1, 0)
    events, summary = swept.sweep()
    assert begun(events) == Begun(15, 1)
    assert (summary.done, summary.failed) == (16, 0)
    assert lasting(swept.folder) == lasting(original.folder)


def test_a_folder_of_another_study_is_not_mixed_up(swept: Swept, tmp_path: Path) -> None:
    before = contents(swept.folder)
    other = tmp_path / "other.toml"
    shutil.copy(swept.file.parent / "row.txt", tmp_path)
    shutil.copy(swept.file.parent / "fetch.toml", tmp_path)
    other.write_text(TEXT)
    with pytest.raises(StoreError, match=r"has results of tiny, not of other; give"):
        qrmax.sweep(other, folder=swept.folder)
    assert contents(swept.folder) == before


# --- schemas


@pytest.mark.parametrize("name", ["study.json", "run.json"])
@pytest.mark.parametrize(("schema", "remedy"), [(3, "update qrmax"), (1, "into another folder")])
def test_another_schema_is_refused_and_left_alone(
    swept: Swept, name: str, schema: int, remedy: str
) -> None:
    path = swept.folder / name if name == "study.json" else swept.path(2, name)
    path.write_text(path.read_text().replace('"schema": 2', f'"schema": {schema}'))
    before = contents(swept.folder)
    for read in (qrmax.results, status):
        with pytest.raises(StoreError, match=f"{name}: is of schema {schema}; .*{remedy}"):
            read(swept.folder)
    with pytest.raises(StoreError, match=remedy):
        swept.sweep()
    assert contents(swept.folder) == before


# --- damage


def flip(path: Path, where: float, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[int(where * (len(data) - 1))] ^= 1 << bit
    path.write_bytes(data)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_run_by_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("a run was here")


def lose_timing(path: Path) -> None:
    path.write_text(path.read_text().replace('"total"', '"totem"'))


def of_another_run(swept: Swept) -> None:
    shutil.rmtree(swept.path(12))
    shutil.copytree(swept.path(13), swept.path(12))


DAMAGE: dict[str, Callable[[Swept], object]] = {  # each to the run of its number
    "a flipped bit": lambda swept: flip(swept.path(0, "run.json"), 0.3),
    "a cut file": lambda swept: swept.path(1, "run.json").write_bytes(
        swept.path(1, "run.json").read_bytes()[:200]
    ),
    "an empty file": lambda swept: swept.path(2, "run.json").write_bytes(b""),
    "a missing curve": lambda swept: swept.path(3, "curve.parquet").unlink(),
    "a changed curve": lambda swept: flip(swept.path(4, "curve.parquet"), 0.5),
    "an empty curve": lambda swept: swept.path(5, "curve.parquet").write_bytes(b""),
    "a folder for a file": lambda swept: replace_by_folder(swept.path(6, "run.json")),
    "NUL bytes": lambda swept: swept.path(7, "run.json").write_bytes(bytes(4096)),
    "another JSON": lambda swept: swept.path(8, "run.json").write_text('{"schema": 2}'),
    "a list": lambda swept: swept.path(9, "run.json").write_text("[2]"),
    "no time": lambda swept: lose_timing(swept.path(10, "run.json")),
    "a deep nest": lambda swept: swept.path(11, "run.json").write_text("[" * 100_000),
    "another run": of_another_run,
    "an endless schema": lambda swept: swept.path(13, "run.json").write_text(
        '{"schema": 1e999, "status": "done"}'
    ),
    "a file for a run": lambda swept: replace_run_by_file(swept.path(14)),
}


@pytest.mark.parametrize("number", range(len(DAMAGE)), ids=list(DAMAGE))
def test_damage_is_reported(swept: Swept, number: int) -> None:
    [*DAMAGE.values()][number](swept)
    looked = status(swept.folder)
    assert [record.id for record in looked.damaged] == [swept.ids[number]]
    assert looked.damaged[0].reason
    assert (looked.done, looked.left) == (15, 1)
    with pytest.warns(QRMaxWarning, match=f"{swept.ids[number]}: .*the next sweep runs it again"):
        found = qrmax.results(swept.folder)
    assert found["id"].to_list() == [name for name in swept.ids if name != swept.ids[number]]


def test_what_is_damaged_is_run_again_to_the_same_result(swept: Swept, original: Swept) -> None:
    for damage in DAMAGE.values():
        damage(swept)
    assert len(status(swept.folder).damaged) == len(DAMAGE)
    events, summary = swept.sweep()
    assert begun(events) == Begun(done=1, todo=15)
    assert summary.done == 16
    for name in swept.ids[:15]:
        assert f"{name}: " in notes(events)
    assert lasting(swept.folder) == lasting(original.folder)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2}', "[" * 100_000, "\0\0"])
def test_a_damaged_study_is_reported_and_written_anew(
    swept: Swept, original: Swept, text: str
) -> None:
    (swept.folder / "study.json").write_text(text)
    for read in (qrmax.results, status):
        with pytest.raises(StoreError, match=r"study\.json: is damaged; sweep the study again"):
            read(swept.folder)
    assert swept.sweep()[1].done == 16
    assert contents(swept.folder) == contents(original.folder)


@pytest.fixture(scope="module")
def one_run(original: Swept, tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """A folder with one run, which is spoilt and mended again and again."""
    folder = tmp_path_factory.mktemp("one") / "results"
    shutil.copytree(original.path(0), folder / "runs" / original.ids[0])
    shutil.copy(original.folder / "study.json", folder)
    return Swept(original.file, folder)


def look_at_spoilt(one_run: Swept, name: str, data: bytes) -> str:
    """The state of the run when one of its files has other bytes."""
    path = one_run.folder / "runs" / one_run.ids[0] / name
    whole = path.read_bytes()
    first = json.loads((path.parent / "run.json").read_bytes())
    try:
        path.write_bytes(data)
        record = Store(one_run.folder).record(one_run.ids[0])
        looked = status(one_run.folder)
    except StoreError:
        return "newer"  # the number of the schema itself was spoilt
    finally:
        path.write_bytes(whole)
    assert len(looked.damaged) == (record.state == "damaged")
    if record.state == "done":  # all that counts is as it was
        for part in ("config", "outcome", "made_by", "status", "label", "problem"):
            assert record.data[part] == first[part]
    return record.state


@given(data=st.binary(max_size=300))
def test_random_bytes_are_no_run(one_run: Swept, data: bytes) -> None:
    assert look_at_spoilt(one_run, "run.json", data) == "damaged"
    assert look_at_spoilt(one_run, "curve.parquet", data) == "damaged"


@settings(max_examples=30)
@given(where=st.floats(0.0, 1.0), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed_or_does_not_matter(
    one_run: Swept, where: float, bit: int
) -> None:
    for name in ("run.json", "curve.parquet"):
        data = bytearray((one_run.folder / "runs" / one_run.ids[0] / name).read_bytes())
        data[int(where * (len(data) - 1))] ^= 1 << bit
        state = look_at_spoilt(one_run, name, bytes(data))
        assert state in (["damaged"] if name == "curve.parquet" else ["damaged", "done", "newer"])


@settings(max_examples=30)
@given(where=st.floats(0.0, 1.0))
def test_a_cut_file_is_noticed(one_run: Swept, where: float) -> None:
    for name in ("run.json", "curve.parquet"):
        data = (one_run.folder / "runs" / one_run.ids[0] / name).read_bytes()
        cut = data[: int(where * (len(data) - 2))]  # the last byte is a line's end
        assert look_at_spoilt(one_run, name, cut) == "damaged"


# --- leftovers, and checkpoints


def test_leftovers_of_killed_processes_do_no_harm(swept: Swept, original: Swept) -> None:
    (swept.folder / ".qrmax-123.unfinished").write_bytes(b"half a stu")
    swept.path(0, ".qrmax-123.unfinished").write_bytes(b"half a run")
    swept.path(1, "checkpoint.safetensors").write_bytes(b"of a run that is done")
    (swept.folder / "runs" / "0123456789abcdef").mkdir()  # begun, and nothing written
    (swept.folder / "runs" / "notes.txt").write_text("mine")
    (swept.folder / "runs" / "more").mkdir()
    found = qrmax.results(swept.folder)
    assert found.equals(qrmax.results(original.folder))
    looked = status(swept.folder)
    assert (looked.done, looked.left, looked.others, looked.damaged) == (16, 0, 0, ())
    before = contents(original.folder)
    assert begun(swept.sweep()[0]) == Begun(done=16, todo=0)
    after = contents(swept.folder)
    assert {name: after[name] for name in before} == before


def checkpoint_of(run: RunSpec) -> bytes:
    report = advance(Assignment(run.config(), b"", seconds=0.0))
    assert report.kind == "unfinished"
    return report.blob


def test_checkpoints_are_gone_on_with_unless_they_are_damaged(
    swept: Swept, original: Swept
) -> None:
    runs = [*swept.study.runs()]
    good = checkpoint_of(runs[0])
    spoilt = bytearray(checkpoint_of(runs[2]))
    spoilt[-5] ^= 1
    other_problem = parsed(swept.file.parent, TEXT + "world.slip = 0.3\n")
    checkpoints = {
        0: good,
        1: b"nothing of the kind",
        2: bytes(spoilt),
        3: checkpoint_of(runs[3])[:-100],
        4: checkpoint_of(runs[6]),  # the same agent, another seed
        5: checkpoint_of(runs[4]),  # another agent
        6: checkpoint_of([*other_problem.runs()][6]),  # the same in another world
        7: b"",
    }
    store = Store(swept.folder)
    for number, data in checkpoints.items():
        store.discard(runs[number].id)
        store.write_checkpoint(runs[number].id, data)
    looked = status(swept.folder)
    assert (looked.done, looked.left) == (8, 8)
    assert sum(cell.begun for cell in looked.cells) == 8
    events, summary = swept.sweep()
    assert summary.done == 16
    for number in (1, 2, 3, 4, 5, 6):
        assert f"{runs[number].id}: the checkpoint: " in notes(events)
    assert len([event for event in events if isinstance(event, Noted)]) == 6
    for number in (4, 5, 6):
        assert f"{runs[number].id}: the checkpoint: is of another run" in notes(events)
    assert {event.run.id for event in events if isinstance(event, Finished)} == {*swept.ids[:8]}
    assert lasting(swept.folder) == lasting(original.folder)


# --- places that cannot be written


def test_a_folder_below_a_file_is_an_error(original: Swept, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(SourceError, match="file/results: cannot be written: Not a directory"):
        Swept(original.file, tmp_path / "file" / "results").sweep()
    with pytest.raises(SourceError, match="file: cannot be written"):
        Swept(original.file, tmp_path / "file").sweep()
    assert (tmp_path / "file").read_text() == "x"


def limited(swept: Swept, most: int) -> subprocess.CompletedProcess[str]:
    """A sweep by a process that can write no file larger than this, as if the disk were full."""
    return subprocess.run(
        [QRMAX, "sweep", str(swept.file), "-o", str(swept.folder), "--workers", "1"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("what", [".lock", "study.json", "curve.parquet"])
def test_a_full_disk_is_an_error_and_nothing_is_lost(
    swept: Swept, original: Swept, what: str
) -> None:
    if what == "curve.parquet":  # the first that does not fit
        sizes = {path.stat().st_size for path in original.folder.rglob(what)}
        most = min(sizes) - 1
        assert most > (original.folder / "study.json").stat().st_size
    else:
        most = {".lock": 0, "study.json": 500}[what]
    shutil.rmtree(swept.path(5))
    before = contents(swept.folder)
    done = limited(swept, most)
    assert done.returncode == 2
    assert f"{what}: cannot be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert contents(swept.folder) == before
    events, summary = swept.sweep()
    assert begun(events) == Begun(done=15, todo=1)
    assert summary.done == 16
    assert lasting(swept.folder) == lasting(original.folder)


def test_reading_writes_nothing(swept: Swept) -> None:
    before = contents(swept.folder)
    status(swept.folder)
    qrmax.results(swept.folder)
    assert run("status", str(swept.folder)).returncode == 0
    assert contents(swept.folder) == before
