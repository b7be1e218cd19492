"""The classes for which the compiled loop is used: no subclass trains its parent's algorithm.

A compiled loop implements certain Python methods. A subclass that overrides one of them has another
algorithm, which the loop does not implement, so it runs in Python. A class has the loop if

- it declares `loop`, or defines `act`, `update` and `fast_forward` together; or
- the next class in its method resolution order has it, and whatever this class overrides is either
  `in_loop`, as the inherited loop implements it as well, or nothing that a loop depends on.

So a class that overrides nothing but `__init__` or `snapshot` keeps the loop.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from qrmax.agents.base import Agent, Tabular
from qrmax.agents.experience import Counterfactual, Observed

_WHOLE = {"act", "update", "fast_forward"}
_BESIDE = {  # methods of any agent on which no loop depends
    *(
        "check_installed",
        "perceives_labels",
        "policy",
        "recommendation",
        "q",
        "known",
        "visits",
        "samples",
        "nbytes",
    ),
    *("snapshot", "restore", "make_room_for"),
}


@cache
def has_compiled_loop(cls: type[Agent]) -> bool:
    """Whether the compiled loop implements the methods of this class."""
    if not issubclass(cls, Tabular):
        return False
    fits = False
    for each in reversed(cls.__mro__):
        own = vars(each)
        if "loop" in own or own.keys() >= _WHOLE:
            fits = True
        elif _unknown_to_loop(each, cls):
            fits = False
    return fits


def runs_compiled(agent: Agent) -> bool:
    """Whether this very agent can run compiled: loops implement two kinds of experience."""
    usual = isinstance(agent.experience, Observed | Counterfactual)
    if not usual and not (isinstance(agent, Tabular) and "experience" in agent.in_loop):
        return False
    return has_compiled_loop(type(agent))


def _unknown_to_loop(each: type, cls: type[Tabular]) -> set[str]:
    """The inherited methods that a class overrides and that the loop does not implement for it."""
    order = cls.__mro__
    behind = order[order.index(each) + 1 :]
    beside = {*_BESIDE, *vars(each).get("in_loop", ())}
    for other in (each, *behind):
        beside |= {*vars(other).get("beside_loop", ())}
    return {
        name
        for name, member in vars(each).items()
        if not name.startswith("__")
        and name not in beside
        and _is_method(member)
        and any(name in vars(other) for other in behind)
    }


def _is_method(member: Any) -> bool:
    return not isinstance(member, type) and (callable(member) or hasattr(type(member), "__get__"))
