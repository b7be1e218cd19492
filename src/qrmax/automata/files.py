"""Tasks as TOML files: the built-in ones and the user's own load through the same function.

    name = "exp1"
    description = "Bring coffee to the office."
    initial = "start"
    success = ["delivered"]
    edges = [
      { from = "start", when = "coffee", to = "has_coffee" },
      { from = "has_coffee", when = "office", to = "delivered", reward = 1.0 },
    ]

An edge may have a `probability` below 1: other edges from the same state with the same `when` share
what is left to 1, and otherwise the machine stays where it is.

Optional keys: `failure`, `states` (to fix their order), `undefined`, `strict`, `consume_initial`.
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

from qrmax.automata.edges import Edge
from qrmax.automata.guards import Guard
from qrmax.automata.reward_machine import FELL_OFF, RewardMachine
from qrmax.errors import GuardError, QRMaxError, TaskError, UnknownNameError, shown
from qrmax.source import Source, builtin_names, write_whole

TASKS = Path(__file__).parent / "tasks"
SUFFIX = ".toml"

_TEXT, _FLAG, _LIST, _NUMBER = (str,), (bool,), (list,), (int, float)
_MACHINE_KEYS: dict[str, tuple[type, ...]] = {
    "name": _TEXT,
    "description": _TEXT,
    "initial": _TEXT,
    "success": _LIST,
    "failure": _LIST,
    "states": _LIST,
    "undefined": _TEXT,
    "strict": _FLAG,
    "consume_initial": _FLAG,
    "edges": _LIST,
}
_EDGE_KEYS: dict[str, tuple[type, ...]] = {
    "from": _TEXT,
    "when": _TEXT,
    "to": _TEXT,
    "reward": _NUMBER,
    "probability": _NUMBER,
}
_WORDS: dict[type, str] = {str: "text", bool: "true or false", list: "a list", int: "a number"}


def task_names() -> list[str]:
    """The names of the built-in tasks."""
    return builtin_names(TASKS, SUFFIX)


def load_task(task: str | os.PathLike[str]) -> RewardMachine:
    """Read a task: a built-in one by its name, or your own TOML file by its path.

    >>> load_task("exp1")
    RewardMachine('exp1': 3 states, 2 edges, 'start' -> success 'delivered')
    """
    return parse_task(Source.find(task, "task", TASKS, SUFFIX))


def save_task(machine: RewardMachine, path: str | os.PathLike[str]) -> None:
    """Write a task to a TOML file, whole or not at all."""
    try:
        data = format_task(machine).encode()
    except UnicodeEncodeError as error:
        raise TaskError(f"{machine.name!r} holds a character that is no text: {error}") from error
    write_whole(path, data)


def parse_task(source: Source) -> RewardMachine:
    """Read a task from TOML text."""
    try:
        data = tomllib.loads(source.text)
    except (ValueError, RecursionError) as error:  # ValueError: also a number of 5000 digits
        raise TaskError(f"{source.name}: not valid TOML: {error}") from error
    _check_keys(source, "", data, _MACHINE_KEYS, required=("initial", "edges"))
    for key in ("success", "failure", "states"):
        for item in data.get(key, []):
            if not isinstance(item, str):
                raise TaskError(f"{source.name}, {key}: {shown(item)} is not a state's name")
    data.setdefault("name", Path(source.name).stem)
    edges = [_parse_edge(source, number, edge) for number, edge in enumerate(data.pop("edges"))]
    try:
        return RewardMachine(edges, **data)
    except QRMaxError as error:
        raise TaskError(f"{source.name}: {error}") from error


def format_task(machine: RewardMachine) -> str:
    """A task as TOML text that `parse_task` reads back to an equal machine."""
    falls_off = machine.undefined == "fail"
    lines = [f"name = {_quote(machine.name)}"]
    if machine.description:
        lines.append(f"description = {_quote(machine.description)}")
    lines.append(f"initial = {_quote(machine.initial)}")
    implied = {FELL_OFF} if falls_off else set()
    for key, group in (("success", machine.success), ("failure", machine.failure - implied)):
        if group:
            lines.append(f"{key} = [{', '.join(map(_quote, sorted(group)))}]")
    lines.append(f"states = [{', '.join(map(_quote, machine.states))}]")
    if falls_off:
        lines.append('undefined = "fail"')
    if machine.strict:
        lines.append("strict = true")
    if not machine.consume_initial:
        lines.append("consume_initial = false")
    lines += ["edges = [", *(f"  {_format_edge(edge)}," for edge in machine.edges), "]"]
    return "\n".join(lines) + "\n"


def _parse_edge(source: Source, number: int, edge: Any) -> Edge:
    place = f"edges[{number}]"
    if not isinstance(edge, dict):
        shape = "{ from = ..., when = ..., to = ... }"
        raise TaskError(f"{source.name}, {place}: {shown(edge)} is not a table such as {shape}")
    _check_keys(source, place, edge, _EDGE_KEYS, required=("from", "when", "to"))
    try:
        guard = Guard.parse(edge["when"])
    except GuardError as error:
        raise TaskError(f"{source.name}, {place}.when: {error}") from error
    try:
        chance = edge.get("probability", 1.0)
        return Edge(edge["from"], guard, edge["to"], edge.get("reward", 0.0), chance)
    except TaskError as error:
        raise TaskError(f"{source.name}, {place}: {error}") from error


def _check_keys(
    source: Source,
    place: str,
    table: dict[str, Any],
    allowed: dict[str, tuple[type, ...]],
    required: tuple[str, ...],
) -> None:
    prefix = f"{place}." if place else ""
    for key, value in table.items():
        if key not in allowed:
            error = UnknownNameError("key", f"{prefix}{key}", [prefix + name for name in allowed])
            raise TaskError(f"{source.name}: {error}")
        fits = isinstance(value, allowed[key])
        if not fits or (isinstance(value, bool) and bool not in allowed[key]):
            wanted = _WORDS[allowed[key][0]]
            raise TaskError(f"{source.name}, {prefix}{key}: {shown(value)} is not {wanted}")
    for key in required:
        if key not in table:
            raise TaskError(f"{source.name}: the key {prefix}{key} is missing")


def _format_edge(edge: Edge) -> str:
    parts = {"from": edge.source, "when": str(edge.guard), "to": edge.target}
    text = ", ".join(f"{key} = {_quote(value)}" for key, value in parts.items())
    reward = f", reward = {edge.reward!r}" if edge.reward else ""
    chance = f", probability = {edge.probability!r}" if edge.probability < 1.0 else ""
    return f"{{ {text}{reward}{chance} }}"


def _quote(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's, but for DEL, which JSON leaves bare."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
