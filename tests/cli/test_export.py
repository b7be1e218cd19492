"""`qrmax export`, and what `qrmax run` writes beside: policies and logs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import qrmax
from gym_worlds import lake
from qrmax import policy_reader
from qrmax.cli.main import main

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The command line, in this process, which has loaded all it needs."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)

    def called(*arguments: str, cwd: Path) -> tuple[int, str, str]:
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["qrmax", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return called


OPTIONS = ["office/map0/exp0", "--stop", "budget", "--set", "t_env=2", "--quiet"]
FILES = ["--save", "a.run", "--export", "a.json", "--log", "runs/a"]


@pytest.fixture
def folder(call: Call, tmp_path: Path) -> Path:
    """A run that was saved, logged and exported."""
    code, out, error = call("run", *OPTIONS, "--max-steps", "4000", *FILES, cwd=tmp_path)
    assert (code, error) == (0, "")
    assert out.splitlines()[-3:] == [
        "saved           a.run",
        "exported        a.json",
        "log             runs/a",
    ]
    return tmp_path


def test_a_saved_run_is_exported_with_its_reader(call: Call, folder: Path) -> None:
    files = ["-o", "b.json", "--reader", "reader.py"]
    told = "written to b.json\nwritten to reader.py\n"
    assert call("export", "a.run", *files, cwd=folder) == (0, "", told)
    assert (folder / "b.json").read_bytes() == (folder / "a.json").read_bytes()
    assert (folder / "reader.py").read_text() == Path(policy_reader.__file__).read_text()
    policy = policy_reader.Policy(folder / "b.json")
    saved = qrmax.load(folder / "a.run")
    start = int(qrmax.make("office/map0/exp0").mdp.start.argmax())
    assert policy.reset(start) == saved.policy[start, policy.q]


def test_a_run_on_an_environment_is_exported_without_it(call: Call, tmp_path: Path) -> None:
    made = qrmax.train("qrmax", lake(), t_env=1, max_steps=500)
    made.save(tmp_path / "lake.run")
    made.export(tmp_path / "lake.json")
    assert call("export", "lake.run", "-o", "again.json", cwd=tmp_path)[0] == 0
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "lake.json").read_bytes()
    code, _, error = call("run", "--resume", "lake.run", "--max-steps", "1000", cwd=tmp_path)
    assert code == 2
    assert "qrmax.load('lake.run', env=...)" in error


def test_a_log_is_appended_to_by_resume_only(call: Call, folder: Path) -> None:
    curve = folder / "runs" / "a" / "curve.csv"
    steps = [row.split(",")[0] for row in curve.read_text().splitlines()]
    assert steps == ["step", "1000", "2000", "3000", "4000"]
    code, _, error = call("run", *OPTIONS, "--log", "runs/a", cwd=folder)
    assert code == 2
    assert "there is the log of a run already" in error
    more = ["--max-steps", "6000", "--log", "runs/a", "--quiet"]
    assert call("run", "--resume", "a.run", *more, cwd=folder)[0] == 0
    assert curve.read_text().splitlines()[-1].startswith("6000,")


def test_what_cannot_be_exported_or_logged_is_one_message(call: Call, folder: Path) -> None:
    for arguments, message in [
        (["export", "none.run", "-o", "b.json"], "there is no such file"),
        (["export", "a.json", "-o", "b.json"], "is damaged, or was not written by run.save"),
        (["export", "-o", "b.json"], "Which run?"),
        (["export", "office/map0/exp0", "-o", "b.json"], "exp0 -o b.drn"),
        (["export", "a.run", "-o", "b.drn"], "export a.run -o b.json"),
        (["export", "a.run", "--slip", "0.1", "-o", "b.json"], "leave --slip out"),
        (["export", "office/map0/exp0", "-o", "b.drn", "--reader", "r.py"], "--reader is for"),
        (["export", "a.run", "-o", "none/b.json"], "cannot be written"),
        (["run", *OPTIONS, "--export", "none/b.json"], "there is no folder"),
        (["run", *OPTIONS, "--log", "a.run"], "a.run"),
    ]:
        code, out, error = call(*arguments, cwd=folder)
        assert (code, out) == (2, "")
        assert message in error
