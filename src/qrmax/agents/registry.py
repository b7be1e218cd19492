"""The agents by name."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np

from qrmax.agents.base import Agent, AgentConfig, Sizes
from qrmax.agents.experience import Counterfactual, Observed, Task
from qrmax.errors import UnknownNameError
from qrmax.seeding import Stream

_HOME = {  # in the paper's order
    "q-learning": "q_learning.QLearning",
    "qrm": "qrm.QRM",
    "rmax": "rmax.RMax",
    "rmax-rm": "rmax_rm.RMaxRM",
    "qrmax": "qrmax.QRMax",
    "qrmax-rm": "qrmax_rm.QRMaxRM",
}
_PUBLISHED = {
    "rmax": "published.PublishedRMax",
    "rmax-rm": "published.PublishedRMaxRM",
    "qrmax": "published.PublishedQRMax",
    "qrmax-rm": "published.PublishedQRMaxRM",
}


def agent_names() -> list[str]:
    """The names of all agents."""
    return list(_HOME)


def agent_class(name: str, *, published: bool = False) -> type[Agent]:
    """The agent of that name; where it has rules of the published code, those if so wished."""
    if name not in _HOME:
        raise UnknownNameError("agent", str(name), _HOME)
    module, _, attribute = (_PUBLISHED if published and name in _PUBLISHED else _HOME)[
        name
    ].partition(".")
    found: type[Agent] = getattr(importlib.import_module(f"qrmax.agents.{module}"), attribute)
    return found


def setting_names(name: str) -> list[str]:
    """What an agent can be told."""
    return [field.name for field in dataclasses.fields(agent_class(name).Config)]


def make_config(name: str, settings: dict[str, Any]) -> AgentConfig:
    """The settings of an agent; an unknown one suggests the nearest.

    >>> make_config("qrmax", {"t_env": 20}).t_env
    20
    """
    known = setting_names(name)
    for setting in settings:
        if setting not in known:
            raise UnknownNameError(f"setting of {name}", str(setting), known)
    # numbers of NumPy's become Python's: single precision in a setting would spread
    plain = {key: x.item() if isinstance(x, np.generic) else x for key, x in settings.items()}
    return agent_class(name).Config(**plain)


def make_agent(name: str, sizes: Sizes, config: AgentConfig, rng: Stream, task: Task) -> Agent:
    """An agent that has learned nothing yet. Only agents that know the machine get to see it."""
    kind = agent_class(name, published=getattr(config, "published", False))
    experience = Counterfactual(task) if kind.knows_machine else Observed()
    return kind(sizes, config, rng, experience)
