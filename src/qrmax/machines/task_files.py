"""Task files: the suffix determines the format. Built-in tasks load through the same function.

    .toml            to write by hand                    read and written, equal
    .json            the same keys; also RMSpec          read and written, equal (RMSpec: read)
    .dot .gv         Graphviz                            read and written, equal
    .mmd .mermaid    Mermaid state diagrams              read and written, equal
    .hoa             automata tools                      read and written, equivalent
    .txt             Toro Icarte's reward machines       read
    .ltlf .ldlf .ppltl    formulas                       read

Each format has a module in `formats`, with an example.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from qrmax.errors import ParameterError, TaskError, UnknownNameError, shown
from qrmax.logic.formula import LOGICS, Formula
from qrmax.machines.formats import dot, formula_task, hoa, json, mermaid, toml, toro_icarte
from qrmax.machines.reward_machine import RewardMachine
from qrmax.source import HERE, Source, builtin_names, write_whole

TASKS = Path(__file__).parent / "tasks"
SUFFIX = ".toml"
MAX_CHARACTERS = 8 * 2**20  # of a task: about 80,000 edges

parse_task = toml.parse  # the default text format is TOML
format_task = toml.format

_FORMATS = {
    ".toml": toml,
    ".json": json,
    ".dot": dot,
    ".gv": dot,
    ".mmd": mermaid,
    ".mermaid": mermaid,
    ".hoa": hoa,
}
_READERS: Mapping[str, Callable[[Source], RewardMachine]] = {
    **{suffix: module.parse for suffix, module in _FORMATS.items()},
    ".txt": toro_icarte.parse,
    **{f".{logic}": formula_task.parse for logic in LOGICS},
}
_WRITERS: Mapping[str, Callable[[RewardMachine], str]] = {
    suffix: module.format for suffix, module in _FORMATS.items()
}

SUFFIXES = tuple(_READERS)
"""The suffixes of files that can be read."""

TaskSource = str | os.PathLike[str] | Formula
"""A source of a task: the name of a built-in one, the path of a file, or a formula."""

AnyTask = TaskSource | RewardMachine
"""Anything that is accepted as a task."""


def task_names() -> list[str]:
    """The names of the built-in tasks."""
    return builtin_names(TASKS, *SUFFIXES)


def load_task(
    task: TaskSource,
    *,
    letters: Mapping[str, str] | None = None,
    compat: bool = False,
) -> RewardMachine:
    """Read a task: a built-in one by its name, your own file by its path, or a formula.

    >>> load_task("exp1")
    RewardMachine('exp1': 3 states, 2 edges, 'start' -> success 'delivered')
    >>> load_task("F(coffee & F office)").run([{"coffee"}, {"office"}]).reward
    1.0

    Args:
        task: a name, a path, or a formula: text, as here, or one of `qrmax.patterns`.
        letters: for files of Toro Icarte's reward machines (`.txt`), the propositions that letters
            stand for, such as `{"f": "coffee"}`; by default those of the Office World.
        compat: for such files, reproduce the original's reward on undefined labels.
    """
    return read_task(find_task(task), letters=letters, compat=compat)


def find_task(task: TaskSource, folder: Path = TASKS, *, beside: Path = HERE) -> Source:
    """The source text of a task: a built-in one, a file, or the formula itself."""
    if isinstance(task, Formula):
        return formula_task.as_source(f"{task.logic}:{task}")
    try:
        return Source.find(task, "task", folder, *SUFFIXES, beside=beside)
    except UnknownNameError:
        if not isinstance(task, str) or not formula_task.is_formula(task):
            raise
        return formula_task.as_source(task)


def save_task(machine: RewardMachine, path: str | os.PathLike[str]) -> None:
    """Write a task to a file, atomically.

    Args:
        machine: the task.
        path: the file, whose suffix determines the format.
    """
    if not isinstance(machine, RewardMachine):
        raise ParameterError(
            f"{shown(machine)} is not a RewardMachine; RewardMachine.from_dfa makes one of a DFA"
        )
    try:
        data = write_task(machine, _suffix(path)).encode()
    except UnicodeEncodeError as error:
        raise TaskError(
            f"{machine.name!r} holds a character that cannot be encoded: {error}"
        ) from error
    write_whole(path, data)


def read_task(
    source: Source, *, letters: Mapping[str, str] | None = None, compat: bool = False
) -> RewardMachine:
    """Parse a task, in the format given by the suffix of the source's name."""
    suffix = _suffix(source.name)
    if len(source.text) > MAX_CHARACTERS:
        raise TaskError(
            f"{source.name}: {len(source.text)} characters; allowed: at most {MAX_CHARACTERS}"
        )
    if suffix == ".txt":
        return toro_icarte.parse(source, letters=letters, compat=compat)
    if letters is not None or compat:
        raise ParameterError(f"letters and compat are for .txt files; {source.name} is not one")
    if suffix not in _READERS:
        raise UnknownNameError("format", suffix, _READERS)
    return _READERS[suffix](source)


def write_task(machine: RewardMachine, suffix: str) -> str:
    """Format a task as text, in the format of this suffix."""
    if suffix not in _WRITERS:
        hint = f"{suffix} files can only be read" if suffix in _READERS else ""
        if suffix == ".drn":
            hint = "a .drn file holds an MDP, not a task: qrmax export PROBLEM -o FILE.drn"
        raise UnknownNameError("format", suffix, _WRITERS, hint=hint)
    if machine.shaping is not None and _FORMATS[suffix] not in (toml, json):
        raise TaskError(
            f"{machine.name}: {suffix} cannot represent reward shaping; write it as TOML or JSON, "
            "or write the unshaped task, which is its shaping.unshaped"
        )
    return _WRITERS[suffix](machine)


def _suffix(path: str | os.PathLike[str]) -> str:
    """The suffix of a path; without one, that of TOML."""
    return Path(path).suffix.lower() or SUFFIX
