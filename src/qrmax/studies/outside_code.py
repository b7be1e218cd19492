"""User modules that a study needs: in its folder, or installed.

A study names them as `module:attribute`. Results depend on their source, so that its hash, or the
version that an object declares, is part of the run's id; a worker refuses to run other code.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from qrmax.agents.outside import agent_source
from qrmax.agents.registry import agent_class
from qrmax.errors import ParameterError, PluginError
from qrmax.plugins import import_object, is_reference, make_importable
from qrmax.worlds.catalog import parse_name
from qrmax.worlds.world_registry import is_offered

Origin = Mapping[str, str]
"""The origin of an object: its module, its name there, and a version or a hash."""


def mentions_code(data: Any) -> bool:
    """Whether there is a reference `module:attribute` anywhere in plain data.

    >>> mentions_code({"agents": ["qrmax", {"agent": "mine:Sarsa"}]})
    True
    """
    if isinstance(data, Mapping):
        return any(map(mentions_code, [*data.keys(), *data.values()]))
    if isinstance(data, list):
        return any(map(mentions_code, data))
    return isinstance(data, str) and is_reference(data.partition("/")[0])  # mine:RING/round


def check_agent(agent: str) -> None:
    """Raise an error unless the agent exists and worker processes can import it."""
    check_importable(*agent.split(":", maxsplit=1)[::-1])
    agent_class(agent)


def agent_origin(agent: str) -> Origin | None:
    """The origin of the class of an agent; None for a built-in agent.

    A class that workers could not import is refused.
    """
    source = agent_source(agent_class(agent))
    if source is None:
        return None
    check_importable(source.name, source.module)
    return source.as_data()


def origin_of(reference: str) -> Origin:
    """The origin of the object that `module:attribute` refers to."""
    module, _, name = reference.partition(":")
    check_importable(name, module)
    found = import_object(reference)
    version = getattr(found, "version", None)
    if isinstance(version, str | int):
        return {"module": module, "name": name, "version": str(version)}
    return {"module": module, "name": name, "sha256": _source_hash(module, found)}


def world_origin(name: str) -> tuple[str, Origin | None]:
    """Return the name by which any process finds a problem, and the origin of its world.

    A world from outside the library is named as `module:attribute`, unless an entry point names it;
    the origin of a built-in world is None. A world that workers could not import is refused.
    """
    parsed = parse_name(name)
    if parsed is None or parsed.world.source is None:
        return name, None
    world, source = parsed.world, parsed.world.source
    if is_reference(name.partition("/")[0]) or is_offered(world.name):
        return name, source
    check_importable(f"the world {world.name!r}", source["module"])
    names = vars(sys.modules[source["module"]]).items()
    for attribute, value in names:
        if value is world:
            return f"{source['module']}:{attribute}{name.removeprefix(world.name)}", source
    raise ParameterError(
        f"the world {world.name!r} is not an attribute of module {source['module']!r}, so worker "
        "processes cannot import it; define it at the top of the module"
    )


def check_origin(now: Origin | None, then: Origin | None) -> None:
    """Raise a `PluginError` if code has changed since the run was configured."""
    if (now and dict(now)) != (then and dict(then)):
        raise PluginError(
            f"module {(then or now or {}).get('module')!r} has changed since the study was read: "
            "sweep it again"
        )


def module_folders(modules: Iterable[str]) -> tuple[str, ...]:
    """The folders of these modules, for the path of other processes."""
    return tuple(dict.fromkeys(map(_folder, modules)))


def use_folders(folders: Iterable[str]) -> None:
    """Add the folders of the driver's modules to the path."""
    for folder in folders:
        make_importable(folder)


def _folder(name: str) -> str:
    import_object(f"{name}:__name__")  # raises a clear error if there is no such module
    module = sys.modules[name]
    file = Path(module.__file__ or "").resolve()
    depth = name.count(".") + (file.name == "__init__.py")
    return str(file.parents[depth])


def check_importable(name: str, module: str = "") -> None:
    """Raise a `ParameterError` if worker processes could not import an object."""
    if module == "__main__" or "<" in name:
        where = "the script itself" if module == "__main__" else "a function"
        if name.endswith("<lambda>"):
            raise ParameterError(
                "a lambda has no name by which worker processes could import it; define a function "
                "at the top of a module of its own"
            )
        raise ParameterError(
            f"{name} is defined in {where}, where worker processes cannot import it; define it at "
            "the top of a module of its own"
        )


def _source_hash(module: str, found: Any) -> str:
    """A hash of the source of the module that has been imported."""
    try:
        text = inspect.getsource(sys.modules[module])
    except (OSError, TypeError):  # a compiled module: identified by name and version
        text = repr(found)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
