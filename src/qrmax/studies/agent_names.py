"""Names of the agents of a study: the declared one and, for those from outside, `module:Class`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any

from qrmax.agents.outside import is_outside
from qrmax.agents.registry import agent_class, agent_names, names_class
from qrmax.errors import QRMaxError, UnknownNameError
from qrmax.plugins import is_reference
from qrmax.studies.outside_code import check_agent

Listed = Mapping[str, tuple[str, ...]]
"""The agents that a study lists, each with all its names."""


def names_of(agent: str) -> tuple[str, ...]:
    """All names of an agent, in increasing precedence.

    A declared name that means another agent, such as an inherited one, is none of them.

    >>> names_of("qrmax"), names_of("qrmax.agents.qrmax:QRMax")
    (('qrmax',), ('qrmax', 'qrmax.agents.qrmax:QRMax'))
    """
    kind = agent_class(agent)
    declared = names_class(kind.name, kind) or kind.name not in agent_names()
    names = [kind.name] if declared else []
    if is_outside(kind):
        names.append(f"{kind.__module__}:{kind.__qualname__}")
    return tuple(dict.fromkeys([*names, agent]))


def listed_agents(data: Mapping[str, Any]) -> Listed:
    """The agents in a study file and its protocols; those that cannot be imported are left out."""
    found: dict[str, tuple[str, ...]] = {}
    layers = [data, *_tables_in(data, "protocols")]
    for table in (*layers, *(on for layer in layers for on in _tables_in(layer, "on"))):
        for agent in _agents_in(table):
            with suppress(QRMaxError):  # reported when the entry is read
                check_agent(agent)
                found[agent] = names_of(agent)
    return found


def agents_called(key: str, listed: Listed) -> list[str]:
    """The agents of this name, reference or pattern; an `UnknownNameError` if there are none."""
    known = {name: (name,) for name in agent_names()} | dict(listed)
    found = [agent for agent in known if any(fnmatchcase(name, key) for name in known[agent])]
    if not found and is_reference(key):
        found = [key]
    if not found:
        names = {name for names in known.values() for name in names}
        hint = "or module:Class, for an agent of your own"
        raise UnknownNameError("agent", key, names, hint=hint)
    return found


def _tables_in(table: Any, key: str) -> list[Any]:
    """The values of an inner table, which may be anything."""
    inner = table.get(key) if isinstance(table, Mapping) else None
    return [*inner.values()] if isinstance(inner, Mapping) else []


def _agents_in(table: Any) -> Iterator[str]:
    """The agents that a study or a protocol lists, or that replace others."""
    agents = table.get("agents") if isinstance(table, Mapping) else None
    entries = _tables_in(table, "agents") or agents
    for entry in entries if isinstance(entries, list) else ():
        agent = entry.get("agent") if isinstance(entry, Mapping) else entry
        if isinstance(agent, str):
            yield agent
