"""Agents from outside the library: where a class comes from, and how files name it.

    agent_source(cls)       its module, class and version or hash; None for a built-in agent
    agent_reference(cls)    the text that names it: a registered name, or `module:Class`

The hash covers the source of the modules of the class, of its bases and of its config, as far as
they are from outside. It is taken when the class is made, so that it is that of the code that runs,
even if the file is edited later. An agent whose behaviour depends on more than that declares a
`version`, which then stands in place of the hash.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from qrmax.agents.saving import Arrays, to_arrays, update_from_arrays
from qrmax.errors import AgentError, shown
from qrmax.plugins import imported_object

if TYPE_CHECKING:
    from qrmax.agents.base import Agent

_OWN = "own."  # before the names of arrays that a subclass of a built-in agent adds
_SET_BY_PARENT = ("sizes", "config", "rng", "experience")  # in Agent.__init__
_LIBRARY = __name__.partition(".")[0]
SCRIPT = "__main__"
"""The name of the module that is run as a script, or of a notebook."""

_noted: WeakKeyDictionary[type, str] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class AgentSource:
    """Origin of the class of an agent."""

    module: str
    name: str  # of the class, within its module
    version: str | None  # that it declares
    sha256: str | None  # of its source, if it declares no version

    @property
    def reference(self) -> str:
        """The class as `module:Class`."""
        return f"{self.module}:{self.name}"

    def as_data(self) -> dict[str, str]:
        """Everything as plain data, for run ids and run files."""
        return {"module": self.module, "class": self.name, **self.code}

    @property
    def code(self) -> dict[str, str]:
        """The version or the hash."""
        if self.version is not None:
            return {"version": self.version}
        return {"sha256": str(self.sha256)}


def is_outside(cls: type) -> bool:
    """Whether a class is not one of this library."""
    return cls.__module__.partition(".")[0] != _LIBRARY


def agent_source(cls: type[Agent]) -> AgentSource | None:
    """Return where the class of an agent comes from; None for a built-in agent."""
    if not is_outside(cls):
        return None
    version = None if cls.version is None else str(cls.version)
    digest = _digest(cls) if version is None else None
    return AgentSource(cls.__module__, cls.__qualname__, version, digest)


def imported_alike(source: Mapping[str, Any]) -> type[Agent] | None:
    """Return an imported class whose source is the same, under whatever name of its module.

    A class of a script has the module `__main__` there, and another wherever it is imported. Of a
    script, a class of the same name will do if there is only one: it may have been edited.
    """
    from qrmax.agents.base import Agent

    name = source["class"]
    called = [
        each
        for each in _noted
        if each.__qualname__ == name
        and issubclass(each, Agent)
        and imported_object(f"{each.__module__}:{name}") is each
    ]
    same = [each for each in called if _digest(each) == source.get("sha256")]
    if not same and source["module"] == SCRIPT and len(called) == 1:
        same = called
    return same[-1] if same else None


def agent_reference(cls: type[Agent]) -> str:
    """Return the text that names a class in files: a known name, or `module:Class`."""
    from qrmax.agents.registry import names_class

    if names_class(cls.name, cls) or (source := agent_source(cls)) is None:
        return cls.name
    return source.reference


def instantiate(cls: type[Agent], *given: Any, **named: Any) -> Agent:
    """Make an agent; an `AgentError` if its `__init__` does not call that of its parent."""
    try:
        agent = cls(*given, **named)
    except AttributeError as error:
        if not isinstance(error.obj, cls) or error.name not in _SET_BY_PARENT:
            raise
        raise AgentError(_not_set(cls, [error.name])) from error
    if missing := [name for name in _SET_BY_PARENT if not hasattr(agent, name)]:
        raise AgentError(_not_set(cls, missing))
    return agent


def _not_set(cls: type[Agent], attributes: list[str]) -> str:
    return (
        f"{_called(cls)}: __init__ has not set {', '.join(attributes)}; begin it with "
        "super().__init__(...), given all its arguments"
    )


def checked_act(agent: Agent) -> Callable[[Any, int], int]:
    """Return the `act` of an agent; that of an agent from outside checks its result."""
    if not is_outside(type(agent)):
        return agent.act
    actions = range(agent.sizes.actions)

    def act(s: Any, q: int) -> int:
        a: Any = agent.act(s, q)
        if not isinstance(a, int | np.integer) or int(a) not in actions:
            raise AgentError(
                f"{_called(type(agent))}: act({s}, {q}) returned {shown(a)}; "
                f"allowed: whole numbers from 0 to {actions[-1]}"
            )
        return int(a)

    return act


def checked_policy(agent: Agent) -> Any:
    """Return the recommendation of an agent; that of an agent from outside is checked."""
    policy = agent.recommendation()
    if not is_outside(type(agent)):
        return policy
    where = f"{_called(type(agent))}: the recommended policy"
    if agent.perceives:
        if not callable(getattr(policy, "action", None)):
            raise AgentError(f"{where} is {shown(policy)}; needed: a method action(seen, label, q)")
        return policy
    try:
        table = np.asarray(policy)
    except ValueError as error:  # rows of different lengths
        raise AgentError(f"{where} is not an array: {error}") from error
    fits = table.ndim in (2, 3) and table.shape[-2:] == agent.sizes[:2]
    if not fits or table.dtype.kind not in "iu":
        raise AgentError(
            f"{where} is an array of {table.dtype} of shape {table.shape}; needed: whole numbers "
            f"of shape {agent.sizes[:2]}, or with the stage as first axis"
        )
    if table.size and not 0 <= table.min() <= table.max() < agent.sizes.actions:
        raise AgentError(
            f"{where} has actions from {table.min()} to {table.max()}; allowed: 0 to "
            f"{agent.sizes.actions - 1}"
        )
    return table.astype(np.int32)


def _called(cls: type[Agent]) -> str:
    return f"agent {agent_reference(cls)!r}"


def check_savable(agent: Agent) -> None:
    """Raise an `AgentError` if an agent from outside has an attribute that cannot be saved."""
    if is_outside(type(agent)):
        saved_arrays(agent)


def saved_arrays(agent: Agent) -> Arrays:
    """Return the snapshot of an agent, with the attributes that its class adds to a built-in one.

    The `snapshot` that a subclass of a built-in agent inherits has no attributes of its own.
    """
    arrays = agent.snapshot()
    own = _own_attributes(agent)
    if own:
        added = to_arrays(own, f"agent {agent.name!r}")
        arrays |= {f"{_OWN}{name}": array for name, array in added.items()}
    return arrays


def restore_agent(agent: Agent, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Restore an agent from `saved_arrays`."""
    own = {key.removeprefix(_OWN): x for key, x in arrays.items() if key.startswith(_OWN)}
    agent.restore({key: x for key, x in arrays.items() if not key.startswith(_OWN)})
    if own:
        update_from_arrays(vars(agent), own)


def _own_attributes(agent: Agent) -> dict[str, Any]:
    """The attributes that a subclass adds to a built-in agent, unless it defines `snapshot`."""
    from qrmax.agents.base import GIVEN, Agent

    order = type(agent).__mro__
    definer = next(cls for cls in order if "snapshot" in vars(cls))
    if not is_outside(type(agent)) or is_outside(definer) or definer is Agent:
        return {}
    inherited = _attributes_of(next(cls for cls in order if not is_outside(cls)), agent)
    left_out = {*GIVEN, *agent.not_saved, *inherited}
    for cls in order:  # cached properties of built-in agents are no attributes of the subclass
        left_out |= set() if is_outside(cls) else vars(cls).keys()
    return {name: value for name, value in vars(agent).items() if name not in left_out}


def _attributes_of(built_in: type[Agent], like: Agent) -> Collection[str]:
    """The names of the attributes of a built-in agent, from one of the least size."""
    from qrmax.agents.base import Sizes
    from qrmax.agents.experience import Observed
    from qrmax.seeding import stream

    if inspect.isabstract(built_in):
        raise AgentError(
            f"agent {like.name!r} cannot be saved: it inherits the snapshot of "
            f"{built_in.__name__}, which does not cover it; define snapshot() and restore()"
        )
    shown_to = (like.observations,) if built_in.perceives else ()
    given = (Sizes(1, 1, 1), like.config, stream(0, "attributes"), Observed(), *shown_to)
    named: dict[str, Any] = {}
    if built_in.needs_coordinates:
        named["coordinates"] = like.coordinates[:1]
    return vars(built_in(*given, **named)).keys()


def note_source(cls: type) -> None:
    """Remember the source of a class as it is now, if it is from outside."""
    if is_outside(cls):
        _noted[cls] = _source_of(cls)


def _digest(cls: type[Agent]) -> str:
    """A hash of all source from outside that makes up a class and its config."""
    texts: set[str] = set()
    for each in _ancestry(cls):
        if each not in _noted:
            note_source(each)
        texts.add(_noted[each])
    return hashlib.sha256("\0".join(sorted(texts)).encode(errors="surrogatepass")).hexdigest()


def _ancestry(cls: type[Agent]) -> Iterator[type]:
    for each in (*cls.__mro__, *cls.Config.__mro__):
        top = each.__module__.partition(".")[0]
        if is_outside(each) and top not in sys.stdlib_module_names:
            yield each


def _source_of(cls: type) -> str:
    """The source of the module of a class; if there is none, as in a notebook, its code."""
    module = sys.modules.get(cls.__module__)
    try:
        if module is not None and getattr(module, "__file__", None):
            return inspect.getsource(module)
    except (OSError, TypeError):
        pass
    return repr([_code_of(name, member) for name, member in sorted(vars(cls).items())])


def _code_of(name: str, member: Any) -> tuple[Any, ...]:
    """A member of a class as text that changes if its code does."""
    function = getattr(member, "__func__", getattr(member, "fget", member))
    code = getattr(function, "__code__", None)
    if code is None:
        plain = isinstance(member, str | int | float | tuple | None)
        return name, repr(member) if plain and not name.startswith("__") else ""
    constants = [each for each in code.co_consts if not hasattr(each, "co_code")]
    return name, code.co_code, code.co_names, repr(constants)
