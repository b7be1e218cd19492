"""`qrmax convert` and what the other verbs make of tasks in other formats."""

from __future__ import annotations

from pathlib import Path

import pytest

import qrmax
from command_line import run

T1 = (
    "0\n[2]\n(0,0,'!f',ConstantRewardFunction(0))\n(0,1,'f',ConstantRewardFunction(0))\n"
    "(1,1,'!g',ConstantRewardFunction(0))\n(1,2,'g',ConstantRewardFunction(1))\n"
)


def test_a_task_is_converted_to_the_format_of_the_suffix(tmp_path: Path) -> None:
    (tmp_path / "t1.txt").write_text(T1)
    done = run("convert", "t1.txt", "t1.toml", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "written to t1.toml\n")
    assert qrmax.load_task(tmp_path / "t1.toml") == qrmax.load_task(tmp_path / "t1.txt")
    for suffix in (".json", ".dot", ".mmd"):
        assert run("convert", "t1.toml", f"t1{suffix}", cwd=tmp_path).returncode == 0
        assert qrmax.load_task(tmp_path / f"t1{suffix}").name == "t1"


def test_a_file_without_a_suffix_is_toml_as_the_help_says(tmp_path: Path) -> None:
    assert run("convert", "exp1", "mine", cwd=tmp_path).returncode == 0
    assert (tmp_path / "mine").read_text().startswith('name = "exp1"')
    assert ".toml, also without a suffix" in run("convert", "--help").stdout


def test_letters_and_compat_are_passed_on(tmp_path: Path) -> None:
    (tmp_path / "t1.txt").write_text(T1.replace("'!g'", "'!g&!n'"))
    options = ("--letters", "f=fish, g=goat", "--compat")
    assert run("convert", "t1.txt", "t1.toml", *options, cwd=tmp_path).returncode == 0
    task = qrmax.load_task(tmp_path / "t1.toml")
    assert task.propositions == {"fish", "goat", "n"}
    assert task.run([{"fish"}, {"n"}]).reward == 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("exp1", "exp1.yaml"), "unknown format '.yaml'"),
        (("exp1", "exp1.txt"), ".txt files can only be read"),
        (("expp1", "exp1.toml"), "did you mean 'exp1'?"),
        (("exp1", "exp1.toml", "--letters", "f"), "not of the form f=coffee,g=office"),
        (("exp1", "there/"), "'there/' is a folder and cannot be written: give a file."),
        (("exp1", "."), ".: cannot be written: is a folder; needed: the name of a file"),
        (("exp1", "exp1.toml", "--compat"), "letters and compat are for .txt files"),
    ],
)
def test_what_cannot_be_converted_is_explained(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = run("convert", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert [*tmp_path.iterdir()] == []
