"""`qrmax show task` in all formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import qrmax
from command_line import run


@pytest.mark.parametrize(
    ("format_", "begins"),
    [
        ("text", "exp1: Bring coffee"),
        ("toml", 'name = "exp1"'),
        ("json", "{"),
        ("dot", "digraph {"),
        ("mermaid", "---\ntitle"),
        ("svg", "<svg "),
        ("hoa", "HOA: v1"),
    ],
)
def test_a_task_is_shown_in_every_format(format_: str, begins: str) -> None:
    done = run("show", "task", "exp1", "--format", format_)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(begins)
    assert done.stdout.endswith("\n")


def test_the_output_file_says_the_format(tmp_path: Path) -> None:
    done = run("show", "task", "exp5", "-o", "exp5.svg", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "written to exp5.svg\n")
    assert (tmp_path / "exp5.svg").read_text().startswith("<svg ")
    assert run("show", "task", "exp5", "-o", "exp5.gv", cwd=tmp_path).returncode == 0
    assert qrmax.load_task(tmp_path / "exp5.gv") == qrmax.load_task("exp5")
    table = run("show", "task", "exp5", "-o", "exp5.svg", "--format", "text", cwd=tmp_path)
    assert table.returncode == 0
    assert (tmp_path / "exp5.svg").read_text() == f"{qrmax.load_task('exp5')}\n"


def test_json_is_the_format_that_is_read_again(tmp_path: Path) -> None:
    shown = run("show", "task", "exp3", "--json").stdout
    assert json.loads(shown)["initial"] == "start"
    (tmp_path / "exp3.json").write_text(shown)
    assert qrmax.load_task(tmp_path / "exp3.json") == qrmax.load_task("exp3")


def test_maps_of_other_worlds_are_shown_too() -> None:
    lake = run("show", "map", "frozen-lake")
    assert lake.returncode == 0
    assert "10 columns x 10 rows" in lake.stdout
