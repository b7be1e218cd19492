"""Tasks as plain data, the content of TOML and JSON files.

    {"name": ..., "initial": ..., "success": [...], "edges": [{"from": ..., "when": ...}]}

An edge may have a list in place of its reward: `[[1.0, 0.5], [3.0, 0.4]]` gives reward 1 with
probability 0.5 and 3 with probability 0.4; with the remaining probability the edge is not taken.
That is short for two edges with these rewards and probabilities.

A shaped task is the unshaped one with `"shaped": {"gamma": ..., "world_ends": ...}`: the shaped
rewards are recomputed when it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qrmax.errors import GuardError, QRMaxError, TaskError, UnknownNameError, shown
from qrmax.logic.guards import Guard
from qrmax.machines.edges import ROUNDING, Edge
from qrmax.machines.reward_machine import RewardMachine
from qrmax.source import Source

_TEXT, _FLAG, _LIST, _NUMBER, _TABLE = (str,), (bool,), (list,), (int, float), (dict,)
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
    "shaped": _TABLE,
}
_EDGE_KEYS: dict[str, tuple[type, ...]] = {
    "from": _TEXT,
    "when": _TEXT,
    "to": _TEXT,
    "reward": (*_NUMBER, list),
    "probability": _NUMBER,
}
_SHAPED_KEYS: dict[str, tuple[type, ...]] = {"gamma": _NUMBER, "world_ends": _TEXT}
_WORDS: dict[type, str] = {
    str: "text",
    bool: "true or false",
    list: "a list",
    int: "a number",
    dict: "a table",
}


def machine_of(source: Source, data: dict[str, Any]) -> RewardMachine:
    """Build the machine that the data describes; errors name the key."""
    check_keys(source, "", data, _MACHINE_KEYS, required=("initial", "edges"))
    for key in ("success", "failure", "states"):
        check_names(source, key, data.get(key, []))
    edges = [
        edge
        for number, entry in enumerate(data["edges"])
        for edge in _edges_of(source, f"edges[{number}]", entry)
    ]
    given = {key: value for key, value in data.items() if key not in ("edges", "shaped")}
    machine = make_machine(source, edges, **{"name": Path(source.name).stem, **given})
    return _shaped(source, machine, data["shaped"]) if "shaped" in data else machine


def make_machine(source: Source, edges: list[Edge], **settings: Any) -> RewardMachine:
    """Build a machine from edges; errors name the file."""
    try:
        return RewardMachine(edges, **settings)
    except QRMaxError as error:
        raise TaskError(f"{source.name}: {error}") from error


def data_of(machine: RewardMachine) -> dict[str, Any]:
    """A machine as plain data."""
    if (how := machine.shaping) is not None:
        shaped = {"gamma": how.gamma, "world_ends": str(how.world_ends)}
        return {**data_of(how.unshaped), "shaped": shaped}
    return {
        "name": machine.name,
        "description": machine.description,
        "states": list(machine.states),
        "initial": machine.initial,
        "success": sorted(machine.success),
        "failure": sorted(machine.failure),
        "undefined": machine.undefined,
        "strict": machine.strict,
        "consume_initial": machine.consume_initial,
        "edges": [
            {
                "from": edge.source,
                "when": str(edge.guard),
                "to": edge.target,
                "reward": edge.reward,
                "probability": edge.probability,
            }
            for edge in machine.edges
        ],
    }


def check_keys(
    source: Source,
    place: str,
    table: object,
    allowed: dict[str, tuple[type, ...]],
    required: tuple[str, ...],
) -> None:
    """Raise a `TaskError` unless the table has these keys, with values of these types."""
    if not isinstance(table, dict):
        where = f", {place}" if place else ""
        keys = ", ".join(required)
        raise TaskError(f"{source.name}{where}: {shown(table)} is not a table with the keys {keys}")
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


def check_names(source: Source, key: str, names: list[Any]) -> None:
    """Raise a `TaskError` unless all of these are names."""
    for item in names:
        if not isinstance(item, str):
            raise TaskError(f"{source.name}, {key}: {shown(item)} is not a state's name")


def _shaped(source: Source, machine: RewardMachine, how: dict[str, Any]) -> RewardMachine:
    check_keys(source, "shaped", how, _SHAPED_KEYS, required=("gamma",))
    try:
        return machine.shaped(**how)
    except QRMaxError as error:
        raise TaskError(f"{source.name}, shaped: {error}") from error


def _edges_of(source: Source, place: str, entry: Any) -> Iterator[Edge]:
    """The edge that an entry describes, or several if its reward is a list."""
    check_keys(source, place, entry, _EDGE_KEYS, required=("from", "when", "to"))
    try:
        guard = Guard.parse(entry["when"])
    except GuardError as error:
        raise TaskError(f"{source.name}, {place}.when: {error}") from error
    try:
        for reward, chance in _rewards(place, entry):
            yield Edge(entry["from"], guard, entry["to"], reward, chance)
    except TaskError as error:
        raise TaskError(f"{source.name}, {place}: {error}") from error


def _rewards(place: str, entry: dict[str, Any]) -> list[tuple[float, float]]:
    """The rewards of an edge, each with its probability."""
    reward = entry.get("reward", 0.0)
    if not isinstance(reward, list):
        return [(reward, entry.get("probability", 1.0))]
    if "probability" in entry:
        raise TaskError(
            f"the rewards {shown(reward)} have probabilities already; leave out {place}.probability"
        )
    for pair in reward:
        if not (isinstance(pair, list) and len(pair) == 2 and all(map(_is_number, pair))):
            raise TaskError(f"{shown(pair)} is not a pair [reward, probability]")
    total = sum(chance for _, chance in reward)
    if not 0.0 < total <= 1.0 + ROUNDING:
        raise TaskError(
            f"the probabilities of the rewards sum to {shown(total)}; allowed: above 0, at most 1"
        )
    return [(value, chance) for value, chance in reward]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
