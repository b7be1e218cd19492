"""Exceptions of code from outside the library: whose code, which exception, and the line.

    agent 'mine:Sarsa', method update: KeyError: 86 (mine.py, line 12)
      12 | return self.table[s]

In Python such an exception propagates as it is. The command line, the records of failed runs and
`qrmax.testing` say this instead of, or after, the traceback. The line is the last of the traceback
in the user's own files or, if there is none, in an installed module that the user has named.
"""

from __future__ import annotations

import inspect
import linecache
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Any, NamedTuple

EXCERPT_WIDTH = 72
INSTALLED = {"site-packages", "dist-packages"}

_LIBRARY = f"{Path(__file__).parent}{os.sep}"
_STANDARD = f"{Path(os.__file__).parent}{os.sep}"
_KINDS = {
    "qrmax.agents.base:Agent": "agent",
    "qrmax.agents.base:AgentConfig": "settings",
    "qrmax.worlds.options:Options": "options",
    "gymnasium.core:Wrapper": "wrapper",
    "gymnasium.core:Env": "environment",
}
_named: set[str] = set()


class Place(NamedTuple):
    """A line of a file."""

    file: str
    line: int
    text: str = ""  # of the line; read from the file if empty
    column: int = 0  # counted from 1; 0 if unknown


class Raised(NamedTuple):
    """An exception that code from outside the library has raised, or has let pass."""

    kind: str  # agent, settings, options, wrapper, environment, function or module
    whose: str  # the kind and name, and the method that the library called
    error: BaseException

    def __str__(self) -> str:
        return f"{self.whose}: {described(self.error)}"


def note_module(name: str) -> None:
    """Note a module that the user has named, which may be installed."""
    _named.add(_package(name))


def raised_outside(error: BaseException) -> Raised | None:
    """Return whose code raised an exception; None if it was no code from outside the library."""
    if error.__cause__ is not None and isinstance(error.__cause__, StopIteration):
        error = error.__cause__  # within one of our generators
    called = next((frame for frame, _ in _their_frames(error)), None)
    return None if called is None else Raised(*_whose(called), error)


def described(error: BaseException) -> str:
    """An exception with its type and message, and the line of the user's that raised it."""
    name, place = type(error).__name__, _place(error)
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    indented = message.strip().replace("\n", "\n  ")
    what = f"{name}: {indented}" if indented else name
    return what if place is None else f"{what} {_excerpt(place)}"


def refused_call(function: Callable[..., Any], *arguments: str, named: Sequence[str] = ()) -> str:
    """The reason why a function cannot be called with these arguments; empty if it can.

    Arguments that are `named` are given by name.

    >>> refused_call(lambda seen: (), "observation", "info")
    '<lambda>(seen) is called as <lambda>(observation, info): too many positional arguments'
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # unknown, as of some compiled code
        return ""
    try:
        signature.bind(*arguments, **dict.fromkeys(named))
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        takes = ", ".join(signature.parameters)
        given = ", ".join([*arguments, *(f"{each}=..." for each in named)])
        return f"{name}({takes}) is called as {name}({given}): {error}"
    return ""


def _place(error: BaseException) -> Place | None:
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Place(error.filename, error.lineno, error.text or "", error.offset or 0)
    *_, last = None, *_their_frames(error)
    return None if last is None else Place(last[0].f_code.co_filename, last[1])


def _excerpt(place: Place) -> str:
    """The file and line in brackets and, below, the text of the line."""
    linecache.checkcache(place.file)
    text = (place.text or linecache.getline(place.file, place.line)).rstrip()
    where = f"({_from_here(place.file)}, line {place.line})"
    if not text:
        return where
    shown, margin = text.lstrip(), f"  {place.line} | "
    column = place.column - (len(text) - len(shown))
    caret = f"\n{' ' * (len(margin) + column - 1)}^" if 0 < column <= EXCERPT_WIDTH else ""
    return f"{where}\n{margin}{shown[:EXCERPT_WIDTH]}{caret}"


def _from_here(file: str) -> str:
    """A path without that of the current folder."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):  # it is elsewhere, or there is no current folder any more
        return file


def _their_frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """The frames of the user's own files; without any, those of installed modules named."""
    frames = [*_outside_frames(error)]
    own = [each for each in frames if not _is_installed(each[0].f_code.co_filename)]
    return own or [each for each in frames if _package(_module(each[0])) in _named]


def _outside_frames(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    for frame, line in walk_tb(error.__traceback__):
        if not frame.f_code.co_filename.startswith((_LIBRARY, "<")):  # <frozen importlib>
            yield frame, line


def _is_installed(file: str) -> bool:
    return file.startswith(_STANDARD) or not INSTALLED.isdisjoint(Path(file).parts)


def _whose(frame: FrameType) -> tuple[str, str]:
    """The kind of a piece of code, and its name."""
    code, module = frame.f_code, _module(frame)
    if code.co_name == "<module>":
        return "module", f"module {module!r}"
    first: Any = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    cls = first if isinstance(first, type) else type(first)
    bases = [f"{base.__module__}:{base.__qualname__}" for base in cls.__mro__]
    kind = next((_KINDS[base] for base in bases if base in _KINDS), None)
    if kind is None or not hasattr(cls, code.co_name):
        return "function", f"function '{module}:{code.co_qualname}'"
    return kind, f"{kind} {bases[0]!r}, method {code.co_name}"


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _package(module: str) -> str:
    return module.partition(".")[0]
