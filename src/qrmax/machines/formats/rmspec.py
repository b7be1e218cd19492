"""RMSpec: tasks as JSON in which each edge is triggered by one event.

    {"name": "deliver", "initial_state": "s0", "terminal_states": ["s2"],
     "transitions": [{"from_state": "s0", "event": "coffee", "to_state": "s1", "reward": 0}]}

An event is a proposition here; if several are true, the first edge in the file is taken. Events
without an edge change nothing. The keys about the environment (`env_id`, `version`) are ignored.
The format is read-only: TOML and JSON are more expressive.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qrmax.errors import TaskError, shown
from qrmax.logic.guards import is_proposition, written
from qrmax.machines.edges import Edge
from qrmax.machines.formats.ends import ends_by_reward
from qrmax.machines.formats.fields import check_keys, check_names, make_machine
from qrmax.machines.reward_machine import RewardMachine
from qrmax.source import Source

_KEYS: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "env_id": (str, type(None)),
    "version": (str, int, float, type(None)),
    "description": (str,),
    "states": (list,),
    "initial_state": (str,),
    "terminal_states": (list,),
    "event_vocabulary": (list,),
    "transitions": (list,),
}
_EDGE_KEYS: dict[str, tuple[type, ...]] = {
    "from_state": (str,),
    "event": (str,),
    "to_state": (str,),
    "reward": (int, float),
}


def is_spec(data: dict[str, Any]) -> bool:
    """Whether the data is an RMSpec, not a task in our own format."""
    return "transitions" in data or "initial_state" in data


def machine_of(source: Source, data: dict[str, Any]) -> RewardMachine:
    """Build the machine that an RMSpec describes."""
    check_keys(source, "", data, _KEYS, required=("initial_state", "transitions"))
    for key in ("states", "terminal_states", "event_vocabulary"):
        check_names(source, key, data.get(key, []))
    vocabulary, states = data.get("event_vocabulary"), data.get("states")
    edges = [
        _edge_of(source, f"transitions[{number}]", entry, vocabulary)
        for number, entry in enumerate(data["transitions"])
    ]
    named = data.get("terminal_states", [])
    ends = ends_by_reward([edge for edge in edges if edge.source not in named], named)
    return make_machine(
        source,
        ends.edges,  # without edges from terminal states, which are never taken
        initial=data["initial_state"],
        success=ends.success,
        failure=ends.failure,
        states=None if states is None else [*states, *sorted(ends.all.difference(named))],
        name=data.get("name", Path(source.name).stem),
        description=data.get("description", ""),
    )


def _edge_of(source: Source, place: str, entry: Any, vocabulary: list[str] | None) -> Edge:
    check_keys(source, place, entry, _EDGE_KEYS, required=("from_state", "event", "to_state"))
    event = entry["event"]
    if vocabulary is not None and event not in vocabulary:
        known = ", ".join(map(shown, vocabulary[:20]))
        raise TaskError(
            f"{source.name}, {place}.event: {shown(event)} is not in event_vocabulary: {known}"
        )
    if not is_proposition(event):
        raise TaskError(
            f"{source.name}, {place}.event: {shown(event)} is not the name of a proposition; "
            "allowed: any text in one line, without quotes"
        )
    ends = entry["from_state"], entry["to_state"]
    try:
        return Edge(ends[0], written(event), ends[1], entry.get("reward", 0.0))
    except TaskError as error:
        raise TaskError(f"{source.name}, {place}: {error}") from error
