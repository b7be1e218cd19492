"""Values of a study that is made in Python, converted to those of a study file."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from qrmax.agents.base import Agent, AgentConfig
from qrmax.agents.outside import agent_source
from qrmax.training.stopping import StoppingRule, rule_as_data


def as_file_value(value: Any) -> Any:
    """A value as plain data: classes and functions become `module:name`.

    >>> from qrmax.training.stopping import Exact
    >>> as_file_value({"stop": Exact(within=0.1), "seeds": (1, 2)})
    {'stop': {'rule': 'exact', 'in_a_row': 3, 'within': 0.1}, 'seeds': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): as_file_value(inner) for key, inner in value.items()}
    if isinstance(value, AgentConfig):
        return {"agent": _reference(value.agent), **_fields(value)}
    if isinstance(value, StoppingRule):
        data = rule_as_data(value)
        return {"rule": data.pop("stop"), **data}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:  # a NumPy scalar
        return value.item()
    if isinstance(value, type) or (isinstance(value, Callable) and hasattr(value, "__qualname__")):  # type: ignore[arg-type]
        return _reference(value)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [as_file_value(inner) for inner in value]
    return value


def _fields(config: Any) -> dict[str, Any]:
    return {
        field.name: as_file_value(getattr(config, field.name))
        for field in dataclasses.fields(config)
    }


def _reference(found: Any) -> str:
    """A class or a function as `module:name`, a built-in agent by its name."""
    if isinstance(found, type) and issubclass(found, Agent) and agent_source(found) is None:
        return found.name
    return f"{found.__module__}:{found.__qualname__}"
