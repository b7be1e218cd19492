"""An exception of code from outside is told with whose code it was, and the line in their file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from outside_agents import importable, imported, write_module
from qrmax import outside_errors
from qrmax.errors import PluginError
from qrmax.outside_errors import described, note_module, raised_outside, refused_call
from qrmax.plugins import import_object

MINE = """
import json
import gymnasium
import qrmax

def labels(seen, info):
    return json.loads("{")  # raises in the standard library

class Sarsa(qrmax.Agent):
    def act(self, s, q):
        return labels(s, {})

    update = policy = act

class Falls(gymnasium.Wrapper):
    def step(self, action):
        raise KeyError

def runs_out():
    next(iter([]))

def generate():
    yield runs_out()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module `mine`, which is the current one."""
    monkeypatch.setattr(outside_errors, "_named", set())
    monkeypatch.chdir(tmp_path)
    write_module(tmp_path, text=MINE)
    with importable(tmp_path):
        yield tmp_path


def caught(function: Callable[..., Any], *arguments: Any) -> Exception:
    """The exception of a function, with a traceback that begins in the function itself."""
    with pytest.raises(Exception) as info:  # noqa: PT011 (any)
        function(*arguments)
    trace = info.value.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return info.value.with_traceback(trace)


@pytest.mark.usefixtures("folder")
def test_the_method_is_the_one_that_was_called_and_the_line_the_last_in_their_file() -> None:
    mine = imported("mine")
    found = str(raised_outside(caught(mine.Sarsa.act, object.__new__(mine.Sarsa), 3, 0)))
    assert found.startswith("agent 'mine:Sarsa', method act: JSONDecodeError: Expecting property")
    assert found.endswith(
        ' (mine.py, line 7)\n  7 | return json.loads("{")  # raises in the standard library'
    )


@pytest.mark.usefixtures("folder")
def test_functions_wrappers_and_exceptions_without_a_message_are_told() -> None:
    mine = imported("mine")
    assert str(raised_outside(caught(mine.labels, 0, {}))).startswith(
        "function 'mine:labels': JSON"
    )
    wrapper = object.__new__(mine.Falls)
    assert str(raised_outside(caught(mine.Falls.step, wrapper, 0))) == (
        "wrapper 'mine:Falls', method step: KeyError (mine.py, line 17)\n  17 | raise KeyError"
    )


@pytest.mark.usefixtures("folder")
def test_an_iterator_that_runs_out_within_a_generator_is_told_by_its_own_line() -> None:
    found = str(raised_outside(caught(next, imported("mine").generate())))
    assert found.startswith("function 'mine:generate': StopIteration (mine.py, line 20)")


@pytest.mark.usefixtures("folder")
def test_a_mistake_of_the_library_is_nobody_elses() -> None:
    error = caught(import_object, "no reference")
    assert raised_outside(error) is None
    assert "line" not in described(error)


def test_code_that_is_installed_is_theirs_if_they_have_named_it(folder: Path) -> None:
    packages = folder / "site-packages"
    packages.mkdir()
    write_module(packages, "theirs", MINE)
    with importable(packages):
        error = caught(imported("theirs").labels, 0, {})
        assert raised_outside(error) is None
        note_module("theirs.agents")
        assert str(raised_outside(error)).startswith("function 'theirs:labels': JSON")
        import_object("mine:Sarsa")
        assert "theirs.py, line 7" in described(error)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "def f(x)\n    pass\n",
            "SyntaxError: expected ':' (bad.py, line 1)\n  1 | def f(x)\n              ^",
        ),
        ("if 1:\n    x = (1,\n", "(bad.py, line 2)\n  2 | x = (1,\n          ^"),
        ("if 1:\nx = 1\n", "IndentationError: expected an indented block"),
        ("x = 'a\0b'\n", "null bytes"),
    ],
)
def test_a_syntax_error_is_shown_in_their_file_whoever_imports_it(
    text: str, told: str, folder: Path
) -> None:
    write_module(folder, "bad", text)
    write_module(folder, "importer", "import bad\n")
    for module in ("bad", "importer"):
        with pytest.raises(PluginError) as found:
            import_object(f"{module}:Sarsa")
        assert str(found.value).startswith(f"'{module}:Sarsa': importing module '{module}' fails: ")
        assert told in str(found.value)
        assert "plugins.py" not in str(found.value)


def test_a_long_line_is_cut_and_a_file_elsewhere_has_its_whole_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_module(folder, "long", f"x = {{}}[{'1' * 100}]\n")
    monkeypatch.chdir(folder.parent.parent)
    monkeypatch.chdir("/")
    found = described(caught(import_object, "long:x").__cause__ or Exception())
    assert f"({str(file).removeprefix('/')}, line 1)" in found
    assert len(found.splitlines()[-1]) < 80


def test_arguments_that_a_function_does_not_take_are_told() -> None:
    assert (
        refused_call(shorten, "text", "width") == refused_call(shorten, "text", "width", "a") == ""
    )
    assert refused_call(print, "a", "b", "c") == ""
    assert "missing a required argument: 'width'" in refused_call(shorten, "text")
    assert "too many positional arguments" in refused_call(shorten, *"abcd")


def shorten(text: str, width: int, end: str = "...") -> str:
    return text[:width] + end
