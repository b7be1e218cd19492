"""Files that cannot be written: an error before any work begins, exit code 2, nothing changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from command_line import GOOD_TASK, run
from qrmax.cli.main import cli
from qrmax.cli.output import OutputFile
from qrmax.errors import SourceError

OUTPUTS = ("output", "save")  # the names of parameters that are files to be written


def parameters(command: click.Command, name: str) -> Iterator[tuple[str, click.Parameter]]:
    """The parameters of a command and of all below it."""
    for parameter in command.params:
        yield name, parameter
    for verb, below in getattr(command, "commands", {}).items():
        yield from parameters(below, f"{name} {verb}")


def test_every_file_to_be_written_is_checked_before_the_command_begins() -> None:
    found = [(name, p) for name, p in parameters(cli, "qrmax") if p.name in OUTPUTS]
    assert len(found) >= 7
    for name, parameter in found:
        assert isinstance(parameter.type, OutputFile), name


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    (tmp_path / "astray").symlink_to("nowhere/file")
    (tmp_path / "ahead").symlink_to("there.toml")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "ok.toml").write_text(GOOD_TASK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("loop.toml", "it is a symbolic link that leads back to itself"),
        ("loop.toml/below", "it is a symbolic link that leads back to itself"),
        ("astray", "there is no folder {here}/nowhere"),
        ("missing/deeper/run", "there is no folder {here}/missing"),
        ("file/run", "{here}/file is not a folder"),
        ("file/deeper/run", "{here}/file is not a folder"),
        (".", "is a folder; needed: the name of a file"),
        ("", "is a folder; needed: the name of a file"),
        ("x" * 300, "File name too long"),
        ("a\0b", "embedded null byte"),
    ],
    ids=lambda value: value[:20].replace("\0", "NUL"),
)
def test_an_output_that_cannot_be_written_is_refused_with_the_reason(
    path: str, reason: str, here: Path
) -> None:
    with pytest.raises(SourceError) as caught:
        OutputFile().convert(path, None, None)
    shown = path or "the empty path"
    assert str(caught.value) == f"{shown}: cannot be written: {reason.format(here=here.resolve())}"


@pytest.mark.parametrize("path", ["new", "file", "ahead", "/dev/null"])
def test_an_output_that_can_be_written_is_taken_and_left_alone(path: str, here: Path) -> None:
    before = sorted(here.iterdir())
    assert OutputFile().convert(path, None, None) == Path(path)
    assert sorted(here.iterdir()) == before
    assert (here / "file").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only_is_refused(here: Path) -> None:
    (here / "sealed").mkdir(mode=0o500)
    with pytest.raises(SourceError, match="sealed is read-only"):
        OutputFile().convert("sealed/run", None, None)


@pytest.mark.parametrize(
    "command",
    [
        ["convert", "ok.toml", "loop.toml"],
        ["run", "office/map0/exp0", "--save", "loop.toml"],
    ],
    ids=" ".join,
)
def test_a_link_to_itself_is_one_message_before_any_work(command: list[str], here: Path) -> None:
    before = sorted(here.iterdir())
    done = run(*command, cwd=here)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: loop.toml: cannot be written: it is a symbolic link that leads back to itself\n"
    )
    assert sorted(here.iterdir()) == before


def test_a_link_to_a_file_that_is_not_there_yet_is_written_through(here: Path) -> None:
    assert run("convert", "ok.toml", "ahead", cwd=here).returncode == 0
    assert (here / "ahead").is_symlink()
    assert (here / "there.toml").read_text().startswith("name = ")


def test_a_run_that_cannot_be_saved_in_the_end_still_says_what_was_learned() -> None:
    """A full disk cannot be seen beforehand."""
    short = ("--agent", "qrmax-rm", "--max-steps", "2000", "--quiet")
    done = run("run", "office/map0/exp0", *short, "--save", "/dev/full")
    assert done.returncode == 2
    assert done.stdout.startswith("agent")
    assert "saved" not in done.stdout
    assert done.stderr.endswith("error: /dev/full: cannot be written: No space left on device\n")
