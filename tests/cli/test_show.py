"""`qrmax show task` in all formats."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

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


@pytest.mark.parametrize(("name", "got"), [("t.xyz", "ends in '.xyz'"), ("t", "has no suffix")])
def test_an_output_file_of_no_known_format_is_refused_unless_the_format_is_said(
    name: str, got: str, tmp_path: Path
) -> None:
    done = run("show", "task", "no-such-task", "-o", name, cwd=tmp_path)  # before any work
    assert done.returncode == 2
    assert f"{name}: the name {got}" in done.stderr
    assert ".svg, .png, .pdf, .txt, .gv, .mmd, or any name with --format." in done.stderr
    assert [*tmp_path.iterdir()] == []
    for said in (["--format", "toml"], ["--json"]):
        assert run("show", "task", "exp1", "-o", name, *said, cwd=tmp_path).returncode == 0
    assert (tmp_path / name).read_text().startswith("{")


def test_a_map_is_drawn_in_the_format_that_its_file_name_says(tmp_path: Path) -> None:
    for name in ("m.svg", "m.pdf", "m.PNG"):
        done = run("show", "map", "map1", "-o", name, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", f"drawn to {name}\n")
    assert ElementTree.parse(tmp_path / "m.svg").getroot().tag.endswith("}svg")
    assert (tmp_path / "m.pdf").read_bytes().startswith(b"%PDF-")
    assert (tmp_path / "m.PNG").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize("name", ["m.gif", "m", "m.txt"])
def test_a_map_is_drawn_to_no_file_that_is_not_called_a_picture(name: str, tmp_path: Path) -> None:
    done = run("show", "map", "no-such-map", "-o", name, cwd=tmp_path)  # before any work
    assert done.returncode == 2
    assert "allowed: .svg, .png, .pdf." in done.stderr
    assert [*tmp_path.iterdir()] == []


def test_a_task_is_drawn_as_png_and_pdf(tmp_path: Path) -> None:
    for name, magic in {"t.png": b"\x89PNG\r\n\x1a\n", "t.pdf": b"%PDF-"}.items():
        assert run("show", "task", "exp1", "-o", name, cwd=tmp_path).returncode == 0
        assert (tmp_path / name).read_bytes().startswith(magic)


def test_only_what_can_happen_on_a_map_is_shown() -> None:
    everywhere = run("show", "task", "F A & F B & F C & F D").stdout
    on_map1 = run("show", "task", "F A & F B & F C & F D", "--map", "map1").stdout
    edge = re.compile(r"^q\d+ +(.*?) +(?:q\d+|satisfied) +[01]$", re.MULTILINE)
    assert len(edge.findall(everywhere)) == 65
    guards = edge.findall(on_map1)
    assert len(guards) == 32
    assert {*guards} == {*"ABCD"}


def test_a_map_of_ones_own_and_the_tasks_of_a_map_are_found(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text("start: 0,0\ntiles: p=printer\n\n. p O\n")
    task = "F(printer & !office & F(office & !printer))"
    shown = run("show", "task", task, "--map", "my.txt", cwd=tmp_path).stdout
    assert re.search(r"^q0 +printer +q1 +0$", shown, re.MULTILINE)
    assert re.search(r"^q1 +office +satisfied +1$", shown, re.MULTILINE)
    own = run("show", "task", "exp6", "--map", "map4").stdout  # is another one there
    assert own.startswith("map4/exp6 on map4: Bring good coffee")


def test_a_problem_is_shown_as_its_task_on_its_map() -> None:
    named = run("show", "task", "office/map1/exp5", "--format", "toml")
    given = run("show", "task", "exp5", "--map", "map1", "--format", "toml")
    assert named.returncode == 0
    assert named.stdout == given.stdout
    both = run("show", "task", "office/map1/exp5", "--map", "map1")
    assert both.returncode == 2
    assert "leave out --map" in both.stderr


def test_a_task_that_cannot_be_done_on_a_map_is_said_to_be_so() -> None:
    done = run("show", "task", "F(A & B)", "--map", "map1")
    assert done.returncode == 0
    assert done.stderr == "warning: no success state of F(A & B) is reachable on map1\n"
    assert "satisfied" not in done.stdout


def test_json_is_the_format_that_is_read_again(tmp_path: Path) -> None:
    shown = run("show", "task", "exp3", "--json").stdout
    assert json.loads(shown)["initial"] == "start"
    (tmp_path / "exp3.json").write_text(shown)
    assert qrmax.load_task(tmp_path / "exp3.json") == qrmax.load_task("exp3")


def test_maps_of_other_worlds_are_shown_too() -> None:
    lake = run("show", "map", "frozen-lake")
    assert lake.returncode == 0
    assert "10 columns x 10 rows" in lake.stdout
