"""The worlds by name: built in, registered, or offered by an installed distribution.

Worlds are imported on first use. Another distribution registers its worlds by

    [project.entry-points."qrmax.worlds"]
    pond = "my_package.pond:WORLD"

The name of the entry point is that of the world. A broken one does not affect the others; `qrmax
doctor` reports it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from qrmax.errors import ParameterError, PluginError, UnknownNameError, shown
from qrmax.plugins import EntryPoints, import_object, is_reference
from qrmax.worlds.world import AnyProblem, World

DEFAULT = "office"
"""The world of a map and a task that are given without a name."""

_HOME = {  # module by name; its attribute WORLD is the world
    "office": "office",
    "river-swim": "river_swim",
    "warehouse": "warehouse",
    "frozen-lake": "frozen_lake",
    "random-office": "random_office",
    "random-mdp": "random_mdp",
    "continuous/frozen-lake": "continuous_lake",
    "continuous/line": "line",
    "continuous/corridor": "corridor",
    "continuous/bottleneck": "bottleneck",
    "continuous/office": "continuous_office",
    "continuous/random-office": "continuous_random_office",
}
_registered: dict[str, World[AnyProblem]] = {}
_listeners: list[Callable[[World[AnyProblem]], None]] = []
_offered = EntryPoints("qrmax.worlds")

AnyWorld = TypeVar("AnyWorld", bound=World[AnyProblem])


def register_world(world: AnyWorld, *, replace: bool = False) -> AnyWorld:
    """Register a world by its name, for `qrmax.make`, studies, the command line and Gymnasium.

    Args:
        world: the description of the world.
        replace: whether a world of that name that was registered before is replaced, as when a
            cell of a notebook is run again; built-in worlds cannot be replaced.

    Returns the world. Registering the same world twice is harmless; another one of the same name
    raises a `ParameterError`.
    """
    if not isinstance(world, World):
        raise ParameterError(f"world is {shown(world)}; needed: a qrmax.World")
    if _registered.get(world.name) is world:
        return world
    if not (replace and world.name in _registered):
        _check_name(world)
    _registered[world.name] = world
    for listener in _listeners:
        listener(world)
    return world


def is_offered(name: str) -> bool:
    """Whether an entry point of an installed distribution has this name."""
    return name in _offered


def world_names() -> list[str]:
    """Return the names of all worlds, without importing them."""
    return [*dict.fromkeys((*_HOME, *_registered, *_offered))]


def worlds() -> list[World[AnyProblem]]:
    """Return all worlds but those whose entry point is broken."""
    found = []
    for name in world_names():
        with suppress(PluginError):
            found.append(find_world(name))
    return found


def broken_worlds() -> Iterator[str]:
    """Yield an error message for each broken entry point of the group `qrmax.worlds`."""
    for name in _offered:
        try:
            offered = _load_offered(name)
            if (known := _known(name)) is not None and known is not offered:
                yield f"entry point {name!r} ({_offered.origin(name)}): {_taken(known)}"
        except PluginError as error:
            yield str(error)


def find_world(name: str) -> World[AnyProblem]:
    """Return the world of that name, or the one that `module:attribute` refers to.

    >>> find_world("warehouse").pattern
    'warehouse/TASK'
    """
    if is_reference(name):
        return _checked(import_object(name), repr(name))
    if (known := _known(name)) is not None:
        return known
    if name not in _offered:
        raise UnknownNameError("world", name, world_names())
    return _load_offered(name)


def by_family(names: Iterable[str]) -> list[str]:
    """Return the names of worlds, with complete families replaced by the family's name.

    >>> by_family(["office", *(name for name in world_names() if name.startswith("continuous/"))])
    ['office', 'continuous']
    """
    given = [*names]
    families: dict[str, list[str]] = {}
    for name in world_names():
        family, separator, _ = name.partition("/")
        if separator:
            families.setdefault(family, []).append(name)
    whole = [family for family, members in families.items() if {*members} <= {*given}]
    short = {name: family for family in whole for name in families[family]}
    return [*dict.fromkeys(short.get(name, name) for name in given)]


def on_world(listener: Callable[[World[AnyProblem]], None]) -> None:
    """Call a function with each world, and with each that is registered later."""
    for world in worlds():
        listener(world)
    _listeners.append(listener)


def _known(name: str) -> World[AnyProblem] | None:
    """The built-in or registered world of that name."""
    if name in _HOME:
        world: World[AnyProblem] = importlib.import_module(f"qrmax.worlds.{_HOME[name]}").WORLD
        return world
    return _registered.get(name)


def _load_offered(name: str) -> World[AnyProblem]:
    where = f"entry point {name!r} of group {_offered.group!r} ({_offered.origin(name)})"
    world = _checked(_offered.load(name), where)
    if world.name != name:
        raise PluginError(f"{where}: is the world {world.name!r}; both need the same name")
    return world


def _offered_as(name: str) -> World[AnyProblem] | None:
    """The installed world of that name; None if there is none, or if its entry point is broken."""
    with suppress(PluginError):
        return _load_offered(name) if name in _offered else None
    return None


def _checked(found: object, where: str) -> World[AnyProblem]:
    if not isinstance(found, World):
        raise PluginError(f"{where}: is {shown(found)}; needed: a qrmax.World")
    return found


def _check_name(world: World[AnyProblem]) -> None:
    """Raise a `ParameterError` if names of problems would be ambiguous."""
    known = _known(world.name) or _offered_as(world.name)
    if known is not None and known is not world:
        raise ParameterError(f"world {world.name!r}: {_taken(known)}")
    for name in world_names():
        outer, inner = sorted((name, world.name), key=len)
        if inner.startswith(f"{outer}/"):
            raise ParameterError(
                f"world {world.name!r}: there is a world {name!r}, and problems of {inner!r} would "
                f"look like tasks of {outer!r}; give it another name"
            )


def _taken(known: World[AnyProblem]) -> str:
    built_in = known.name in _HOME
    made = getattr(known.make, "__module__", None)
    whose = "a built-in world" if built_in else f"another world, made in module {made!r}"
    remedy = ", or replace=True" if known.name in _registered else ""
    return f"this is the name of {whose}; give yours another name{remedy}"
