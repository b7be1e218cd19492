"""Code of a user's own that raises: one error with the line in their file, and nothing written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from command_line import Done, run_at_a_terminal
from outside_agents import importable, write_module

Quickly = Callable[..., Done]

GOOD = """
import numpy as np
import qrmax


class Good(qrmax.Agent):
    def __init__(self, *given):
        super().__init__(*given)
        self.qt = np.zeros(self.sizes)

    def act(self, s, q):
        return int(self.rng.random() * self.sizes.actions)

    def update(self, s, q, a, step):
        self.qt[s, q, a] += step.r_task

    def policy(self):
        return self.qt.argmax(axis=2)

"""
RAISING = {
    "act": ("def act(self, s, q):\n        return self.table[s]", "AttributeError: 'Mine' object"),
    "update": (
        "def update(self, s, q, a, step):\n        raise OSError('gone')",
        "OSError: gone",
    ),
    "policy": ("def policy(self):\n        return self.qt.argmax(axis=9)", "AxisError: axis 9 is"),
    "begin_episode": (
        "def begin_episode(self, s, q):\n        1 / 0",
        "ZeroDivisionError: division",
    ),
    "__init__": ("def __init__(self, *given):\n        {}['x']", "KeyError: 'x'"),
}
BROKEN = {
    "no super": ("def __init__(self, *given):\n        self.n = 0", "super().__init__(...)"),
    "too early": ("def __init__(self, *given):\n        self.n = self.sizes", "has not set sizes;"),
    "arguments": ("def update(self, s, q, a):\n        pass", "update(self, s, q, a) is called as"),
    "act 7": (
        "def act(self, s, q):\n        return 7",
        "returned 7; allowed: whole numbers from 0 to 3",
    ),
    "act 1.0": ("def act(self, s, q):\n        return 1.0", "returned 1.0; allowed: whole numbers"),
    "shape": ("def policy(self):\n        return [[0]]", "of shape (1, 1); needed"),
    "name": ("name = None", "name is None; allowed: lower-case letters"),
    "Config": ("class Config:\n        alpha = 0.1", "allowed: a subclass of qrmax.AgentConfig"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with importable(tmp_path):
        yield tmp_path


def trained(quickly: Quickly, folder: Path, body: str, name: str) -> str:
    """The error of a run of an agent, which leaves no file."""
    write_module(folder, name, f"{GOOD}\nclass Mine(Good):\n    {body}\n")
    words = ["--max-steps", "2000", "--quiet", "--save", "x.run"]
    done = quickly("run", "office/map1/exp1", "--agent", f"{name}:Mine", *words, cwd=folder)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert {path.name for path in folder.iterdir()} <= {f"{name}.py", "__pycache__"}
    assert done.stderr.startswith("error: ")
    return done.stderr


@pytest.mark.parametrize("method", RAISING)
def test_a_method_that_raises_is_told_with_the_line(
    method: str, folder: Path, quickly: Quickly
) -> None:
    body, told = RAISING[method]
    error = trained(quickly, folder, body, "raising")
    assert error.startswith(f"error: agent 'raising:Mine', method {method}: {told}")
    line = body.partition("\n")[2].strip()
    assert error.endswith(f"(raising.py, line 23)\n  23 | {line}\n")


@pytest.mark.parametrize("code", [0, 3])
def test_a_method_that_exits_does_not_end_the_command_silently(
    code: int, folder: Path, quickly: Quickly
) -> None:
    body = f"def update(self, s, q, a, step):\n        raise SystemExit({code})"
    error = trained(quickly, folder, body, f"exiting{code}")
    told = f"error: agent 'exiting{code}:Mine', method update: SystemExit: {code} (exiting{code}.py"
    assert error.startswith(told)


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_contract_is_told_of_the_problem_that_was_named(
    how: str, folder: Path, quickly: Quickly
) -> None:
    body, told = BROKEN[how]
    error = trained(quickly, folder, body, "breaking")
    assert "breaking:Mine" in error
    assert told in error


def test_an_attribute_that_cannot_be_saved_is_told_before_training(
    folder: Path, quickly: Quickly
) -> None:
    body = "rule = lambda self: 0\n    def begin_episode(self, s, q):\n        print('trained')\n"
    body += "    def __init__(self, *given):\n        super().__init__(*given)\n"
    error = trained(quickly, folder, f"{body}        self.rule = lambda: 0", "unsaved")
    assert "agent 'mine' cannot be saved: rule is of type" in error


def test_the_caret_of_a_syntax_error_stands_below_its_place_at_80_columns(folder: Path) -> None:
    write_module(folder, "unfinished", "class Sarsa:\n    def act(self, s, q)\n        return 0\n")
    shown = run_at_a_terminal("run", "office/map1/exp1", "--agent", "unfinished:Sarsa", cwd=folder)
    *first, line, caret = shown.splitlines()
    assert " ".join(map(str.strip, first)).endswith("expected ':' (unfinished.py, line 2)")
    assert line == "  2 | def act(self, s, q)"
    assert caret == " " * len(line) + "^"


WORLDS = """
from dataclasses import dataclass
import gymnasium
import qrmax
import qrmax.errors


@dataclass(frozen=True, kw_only=True)
class Options(qrmax.Options):
    size: int = 3

    def __post_init__(self):
        if self.size > 9:
            raise qrmax.errors.ParameterError(f"size is {self.size}; allowed: up to 9")


def ring(task, options, name):
    return qrmax.TabularMDP([[[options.size]]], [[[1.0]]])


RING = qrmax.World(name="ring", make=ring, options=Options, tasks={"round": "F home"})


def labels(observation, info):
    return info["home"]


def one(observation):
    return ()


def none(observation, info):
    return ()


class Falls(gymnasium.Wrapper):
    steps = 0

    def step(self, action):
        Falls.steps += 1
        if Falls.steps > 300:
            raise RuntimeError("the cliff is gone")
        return self.env.step(action)
"""
LAKE = ["--env", "FrozenLake-v1", "--task", "F home"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["my_worlds:RING/round"], "function 'my_worlds:ring': ModelError: succ is 3 at state 0"),
        (["my_worlds:RING/round", "--size", "10"], "--size is 10; allowed: up to 9\n"),
        (
            [*LAKE, "--labelling", "my_worlds:labels"],
            "function 'my_worlds:labels': KeyError: 'home'",
        ),
        (
            [*LAKE, "--labelling", "my_worlds:one"],
            "one(observation) is called as one(observation, ",
        ),
        (
            [*LAKE, "--labelling", "my_worlds:none", "--wrapper", "my_worlds:Falls"],
            "wrapper 'my_worlds:Falls', method step: RuntimeError: the cliff is gone (",
        ),
    ],
)
def test_worlds_labels_and_wrappers_that_raise_are_told(
    words: list[str], told: str, folder: Path, quickly: Quickly
) -> None:
    write_module(folder, "my_worlds", WORLDS)
    done = quickly("run", *words, "--agent", "qrm", "--quiet", "--save", "x.run", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert told in done.stderr
    assert ("my_worlds.py, line" in done.stderr) == ("Error" in told)
    assert not (folder / "x.run").exists()


def test_a_bug_of_the_library_keeps_its_traceback(
    quickly: Quickly, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("qrmax.training.trainer.Session._take")
    with pytest.raises(AttributeError, match="_take"):
        quickly("run", "office/map1/exp1", "--quiet")
