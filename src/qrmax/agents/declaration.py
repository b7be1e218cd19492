"""Static checks of a class of agents, before one is instantiated.

`qrmax.testing.check_agent` checks how it behaves and learns.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

from qrmax.agents.base import Agent, AgentConfig
from qrmax.errors import AgentError, shown
from qrmax.outside_errors import refused_call

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
FACTS = (
    *("knows_machine", "factored", "perceives", "needs_coordinates"),
    *("on_policy", "epsilon_greedy", "has_horizon"),
)
"""The class attributes that are True or False."""

CALLS = {
    "__init__": ("sizes", "config", "rng", "experience"),
    "perceive": ("observation", "label"),
    "begin_episode": ("s", "q"),
    "act": ("s", "q"),
    "update": ("s", "q", "a", "step"),
    "policy": (),
    "recommendation": (),
}
"""The methods of agents, and the arguments that they are called with."""

_NEEDED = "needed: a subclass of qrmax.Agent"


def check_declared(cls: Any, reference: str = "agent") -> None:
    """Raise an `AgentError` that says what is missing or wrong unless this is a class of agents."""
    if not isinstance(cls, type):
        raise AgentError(f"{reference}: is {shown(cls)}, not a class; {_NEEDED}")
    where = f"{cls.__module__}:{cls.__qualname__}"
    if not issubclass(cls, Agent):
        raise AgentError(f"{where}: is not an agent; {_NEEDED}")
    if missing := _missing(cls):
        raise AgentError(f"{where}: does not define {', '.join(missing)}")
    if not isinstance(cls.name, str) or not NAME.fullmatch(cls.name):
        raise AgentError(
            f"{where}: name is {shown(cls.name)}; allowed: lower-case letters and digits with "
            "single hyphens between them, such as 'sarsa-lambda'"
        )
    if cls.version is not None and not isinstance(cls.version, str):
        raise AgentError(f"{where}: version is {shown(cls.version)}; allowed: text, or None")
    _check_facts(cls, where)
    _check_arguments(cls, where)
    _check_config(cls.Config, where)
    if cls.has_horizon and "horizon" not in {
        field.name for field in dataclasses.fields(cls.Config)
    }:
        raise AgentError(f"{where}: declares has_horizon = True, and its Config has no `horizon`")


def _missing(cls: type[Agent]) -> list[str]:
    """The methods that a class has to define and does not."""
    missing = [f"{name}()" for name in sorted(getattr(cls, "__abstractmethods__", ()))]
    if cls.policy is Agent.policy and cls.recommendation is Agent.recommendation:
        missing.append("policy() or recommendation()")
    if cls.perceives is True and cls.perceive is Agent.perceive:
        missing.append("perceive(), which it needs as it declares perceives = True")
    return missing


def _check_facts(cls: type[Agent], where: str) -> None:
    for fact in FACTS:
        value = getattr(cls, fact)
        if not isinstance(value, bool):
            raise AgentError(f"{where}: {fact} is {shown(value)}; allowed: True, False")


def _check_arguments(cls: type[Agent], where: str) -> None:
    for name, arguments in CALLS.items():
        method = inspect.getattr_static(cls, name)
        made = name == "__init__"
        seen = ("observations",) if made and cls.perceives else ()
        named = ("coordinates",) if made and cls.needs_coordinates else ()
        refused = inspect.isfunction(method) and refused_call(
            method, "self", *arguments, *seen, named=named
        )
        if refused:
            raise AgentError(f"{where}: {refused}")


def _check_config(config: Any, where: str) -> None:
    if not (isinstance(config, type) and issubclass(config, AgentConfig)):
        raise AgentError(
            f"{where}: Config is {shown(config)}; allowed: a subclass of qrmax.AgentConfig, or "
            "none, which leaves gamma as the one setting"
        )
    fields = {field.name: field for field in dataclasses.fields(config)}
    for base in config.__mro__:
        for name, kind in inspect.get_annotations(base).items():
            if name not in fields and "ClassVar" not in str(kind):
                raise AgentError(
                    f"{where}: {base.__name__}.{name} is not a setting: the class is not a "
                    "dataclass; decorate it with @dataclass(frozen=True, kw_only=True)"
                )
    for field in fields.values():
        if field.default is dataclasses.MISSING:
            raise AgentError(f"{where}: setting {field.name!r} has no default value; give it one")
