"""Agents from outside on the command line: listed, completed, and refused with one clear error."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from command_line import QRMAX, Done
from outside_agents import importable, write_entry_points, write_module
from qrmax.agents import registry
from qrmax.cli.output import print_facts
from qrmax.cli.problems import _complete_agent
from qrmax.plugins import EntryPoints

Quickly = Callable[..., Done]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    write_module(tmp_path)
    write_module(tmp_path, "raises", "1 / 0\n")
    with importable(tmp_path):
        yield tmp_path


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("missing:Sarsa", "there is no module 'missing'"),
        ("raises:Sarsa", "importing module 'raises' fails: ZeroDivisionError"),
        ("mine:Sarse", "did you mean 'Sarsa'?"),
        ("mine:SarsaConfig", "is not an agent; needed: a subclass of qrmax.Agent"),
        ("mine:", "unknown agent 'mine:'"),
    ],
)
@pytest.mark.parametrize("verb", ["run", "plan"])
def test_a_bad_reference_is_bad_input_and_nothing_is_written(
    verb: str, reference: str, message: str, folder: Path, quickly: Quickly
) -> None:
    before = sorted(folder.iterdir())
    saving = ["--save", "x.run"] if verb == "run" else []
    done = quickly(verb, "office/map1/exp1", "--agent", reference, *saving, cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert done.stdout == ""
    assert [path for path in sorted(folder.iterdir()) if path.name != "__pycache__"] == before


def test_installed_agents_are_listed_and_completed_and_broken_ones_are_said_to_be(
    folder: Path, quickly: Quickly, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_entry_points(folder, sarsa="mine:Sarsa", failing="raises:Agent")
    monkeypatch.setattr(registry, "_installed", EntryPoints(registry.GROUP))
    assert _complete_agent(None, None, "sar") == ["sarsa"]
    shown = quickly("list", "agents").stdout
    assert "Sarsa that knows the machine" in shown
    assert "gamma=0.9, alpha=0.1, epsilon=0.1" in shown
    assert "cannot be loaded" in shown
    assert "qrmax doctor" in shown


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("qrmax run --agent mi", "mine:Sarsa"),
        ("qrmax run --agent mine :", "Sarsa"),  # bash splits words at colons
        ("qrmax run --agent mine : Sa", "Sarsa"),
        ("qrmax run --agent raises : Ag", ""),  # not imported, and no agent in its source
        ("qrmax run --agent qrmax-r", "qrmax-rm qrmax-rm-published"),
    ],
)
def test_bash_completes_agents_of_modules_in_this_folder(
    words: str, completed: str, folder: Path
) -> None:
    script = f"""
        PATH={Path(QRMAX).parent}:$PATH
        eval "$(qrmax completion bash)"
        COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _qrmax_completion qrmax && echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == (completed, "")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("raises:Agent", "ZeroDivisionError: division by zero (raises.py, line 1)\n  1 | 1 / 0"),
        ("unfinished:Agent", "SyntaxError: expected ':' (unfinished.py, line 1)\n  1 | def f()\n"),
        ("no reference!", "'no reference!' is not of the form module:attribute"),
        ("missing:Agent", "No module named 'missing'"),
        ("mine:SarsaConfig", "is not an agent; needed: a subclass of qrmax.Agent"),
    ],
)
def test_a_broken_entry_point_is_told_and_the_others_work(
    value: str, told: str, folder: Path, quickly: Quickly, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_module(folder, "unfinished", "def f()\n")
    write_entry_points(folder, sarsa="mine:Sarsa", broken=value)
    monkeypatch.setattr(registry, "_installed", EntryPoints(registry.GROUP))
    short = ["--max-steps", "10", "--stop", "budget", "--quiet"]
    done = quickly("run", "river-swim/patrol", "--agent", "broken", *short, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "error: entry point 'broken' of group 'qrmax.agents' (from mine) "
    )
    assert told in done.stderr
    assert list(registry.broken_agents()) == ["broken"]
    assert quickly("run", "river-swim/patrol", "--agent", "sarsa", *short, cwd=folder).stdout


def test_a_name_that_two_distributions_offer_is_refused(
    folder: Path, quickly: Quickly, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_entry_points(folder, sarsa="mine:Sarsa")
    other = folder / "other"
    other.mkdir()
    write_entry_points(other, sarsa="theirs:Sarsa")
    (other / "mine-1.0.dist-info" / "METADATA").write_text("Name: theirs\nVersion: 1.0\n")
    (other / "mine-1.0.dist-info").rename(other / "theirs-1.0.dist-info")
    with importable(other):
        monkeypatch.setattr(registry, "_installed", EntryPoints(registry.GROUP))
        done = quickly("run", "river-swim/patrol", "--agent", "sarsa", cwd=folder)
        assert done.returncode == 2
        assert "is offered 2 times, for theirs:Sarsa and mine:Sarsa" in done.stderr
        assert "(from theirs and mine)" in done.stderr
        words = ["--max-steps", "10", "--stop", "budget", "--quiet"]
        assert quickly(
            "run", "river-swim/patrol", "--agent", "mine:Sarsa", *words, cwd=folder
        ).stdout


def test_a_broken_installation_is_reported_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_facts({"agents": "failed: a\n  5 | b", "x": 1})
    assert capsys.readouterr().out == "agents  failed: a\n          5 | b\nx       1\n"
