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


@pytest.mark.parametrize("name", ["t.png", "t.pdf", "t.xyz"])
def test_an_output_file_of_no_known_format_is_refused_unless_the_format_is_said(
    name: str, tmp_path: Path
) -> None:
    done = run("show", "task", "exp1", "-o", name, cwd=tmp_path)
    assert done.returncode == 2
    assert f"unknown format '.{name[2:]}'" in done.stderr
    assert ".dot, .gv, .hoa, .json, .mermaid, .mmd, .svg" in done.stderr
    assert [*tmp_path.iterdir()] == []
    for said in (["--format", "toml"], ["--json"]):
        assert run("show", "task", "exp1", "-o", name, *said, cwd=tmp_path).returncode == 0
    assert (tmp_path / name).read_text().startswith("{")


def test_an_output_file_without_a_suffix_is_text(tmp_path: Path) -> None:
    assert run("show", "task", "exp1", "-o", "exp1", cwd=tmp_path).returncode == 0
    assert (tmp_path / "exp1").read_text() == f"{qrmax.load_task('exp1')}\n"


def test_json_is_the_format_that_is_read_again(tmp_path: Path) -> None:
    shown = run("show", "task", "exp3", "--json").stdout
    assert json.loads(shown)["initial"] == "start"
    (tmp_path / "exp3.json").write_text(shown)
    assert qrmax.load_task(tmp_path / "exp3.json") == qrmax.load_task("exp3")


def test_maps_of_other_worlds_are_shown_too() -> None:
    lake = run("show", "map", "frozen-lake")
    assert lake.returncode == 0
    assert "10 columns x 10 rows" in lake.stdout
