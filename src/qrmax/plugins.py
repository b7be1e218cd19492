"""Objects from outside the library: `module:attribute` references and entry points.

    import_object("mine:Sarsa")          import the module, for text that the user has written
    imported_object("mine:Sarsa")        never import: only what the caller has imported already
    EntryPoints("qrmax.agents")          what installed distributions offer, loaded on first use

Text that comes out of a data file is resolved by `imported_object`: reading a file runs no code.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from qrmax.errors import PluginError, did_you_mean, shown
from qrmax.outside_errors import described, note_module

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SEPARATOR = ":"


def is_reference(text: str) -> bool:
    """Whether this text has the form `module:attribute`.

    >>> is_reference("mine:Sarsa"), is_reference("qrmax-rm"), is_reference("C:/a.toml")
    (True, False, False)
    """
    module, separator, attribute = text.partition(SEPARATOR)
    parts = [*module.split("."), *attribute.split(".")]
    return bool(separator) and all(part.isidentifier() for part in parts)


def import_object(reference: str, folder: str | os.PathLike[str] | None = None) -> Any:
    """Import a module and return one of its attributes.

    Args:
        reference: `module:attribute`; both may have dots.
        folder: where the module may lie, besides the places that Python searches. It is added to
            `sys.path` for good, since the module may import its neighbours later.

    Raises a `PluginError` if there is no such module or attribute, or if the import fails.
    """
    name, attribute = _split(reference)
    note_module(name)
    if folder is not None:
        make_importable(folder)
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise PluginError(_failed(reference, name, error)) from error  # one that it imports
        raise PluginError(
            f"{reference!r}: there is no module {error.name!r}; searched: "
            f"{_shown_path(folder)}; modules are found in the current folder, beside a study, or "
            "installed"
        ) from error
    except (Exception, SystemExit) as error:  # whatever a module of the user's raises
        raise PluginError(_failed(reference, name, error)) from error
    _check_place(module, reference, folder)
    return _attribute(module, reference, attribute)


def imported_object(reference: str) -> Any | None:
    """Return an attribute of a module that has been imported already; None if there is none."""
    name, attribute = _split(reference)
    found: Any = sys.modules.get(name)
    for part in attribute.split("."):
        found = getattr(found, part, None)
    return found


def make_importable(folder: str | os.PathLike[str]) -> None:
    """Let modules in this folder be imported, before those of the same name elsewhere."""
    path = str(Path(folder).resolve())
    if path not in sys.path:
        sys.path.insert(0, path)
        importlib.invalidate_caches()


class EntryPoints:
    """The objects that installed distributions offer in one group, by name."""

    def __init__(self, group: str) -> None:
        self.group = group

    @cached_property
    def found(self) -> dict[str, list[EntryPoint]]:
        """The entry points by name, none of them loaded."""
        from importlib.metadata import entry_points  # takes a while, and few need it

        found: dict[str, list[EntryPoint]] = {}
        for point in entry_points(group=self.group):
            found.setdefault(point.name, []).append(point)
        return found

    def offers(self, name: str) -> list[str]:
        """The objects that distributions offer under a name, as `module:attribute`."""
        points = self.found.get(name, [])
        return [*dict.fromkeys("".join(point.value.split()) for point in points)]

    def __contains__(self, name: str) -> bool:
        return name in self.found

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def load(self, name: str) -> Any:
        """Import what an entry point names; a `PluginError` if it is broken."""
        point, offers = self.found[name][0], self.offers(name)
        where = f"entry point {name!r} of group {self.group!r} ({self.origin(name)}) is broken:"
        if len(offers) > 1:
            raise PluginError(
                f"{where} the name is offered {len(offers)} times, for {' and '.join(offers)}; "
                "uninstall all but one of the distributions, or give module:attribute"
            )
        if point.pattern.match(point.value) is None:
            raise PluginError(f"{where} {shown(point.value)} is not of the form module:attribute")
        note_module(point.module)
        try:
            return point.load()
        except (Exception, SystemExit) as error:  # whatever somebody else's module raises
            raise PluginError(
                f"{where} {point.value!r} cannot be loaded: {described(error)}"
            ) from error

    def origin(self, name: str) -> str:
        """The distributions that an entry point comes with."""
        names = dict.fromkeys(point.dist.name for point in self.found[name] if point.dist)
        return f"from {' and '.join(names)}" if names else "unknown origin"


def _split(reference: str) -> tuple[str, str]:
    if not is_reference(reference):
        raise PluginError(
            f"{shown(reference)} is not a reference; needed: module:attribute, such as mine:Sarsa"
        )
    module, _, attribute = reference.partition(SEPARATOR)
    return module, attribute


def _attribute(module: ModuleType, reference: str, attribute: str) -> Any:
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            public = [name for name in vars(found) if not name.startswith("_")]
            hint = did_you_mean(part, public)
            raise PluginError(
                f"{reference!r}: {module.__name__} ({module.__file__ or 'no file'}) has no "
                f"attribute {part!r}" + (f"\n  {hint}" if hint else "")
            )
        found = getattr(found, part)
    return found


def _check_place(module: ModuleType, reference: str, folder: str | os.PathLike[str] | None) -> None:
    """Refuse a module of the same name that was imported from somewhere else before."""
    if folder is None:
        return
    first = Path(folder).resolve() / module.__name__.partition(".")[0]
    ours = [path for path in (first.with_suffix(".py"), first) if path.exists()]
    file = Path(module.__file__ or "").resolve()
    if ours and not any(file == path or path in file.parents for path in ours):
        raise PluginError(
            f"{reference!r}: means {ours[0]}, but a module of that name was imported before, from "
            f"{module.__file__}; rename one of them, or use another process"
        )


def _failed(reference: str, module: str, error: BaseException) -> str:
    return f"{reference!r}: importing module {module!r} fails: {described(error)}"


def _shown_path(folder: str | os.PathLike[str] | None) -> str:
    return "sys.path" if folder is None else f"{folder} and sys.path"
