"""Tables of a study file, read key by key; mistakes are collected.

A wrong value is noted under the path of its key and then left out, so that no mistake hides
another: the caller gets None, or the remaining values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from qrmax.errors import QRMaxError, StudyError, UnknownNameError, shown


class Mistake(NamedTuple):
    """A message, and the path of its key."""

    path: str  # such as agents[1].t_env
    message: str


class Mistakes:
    """The mistakes of one study, in the order in which they are found."""

    def __init__(self, name: str) -> None:
        self.name = name  # of the study file
        self.found: list[Mistake] = []

    def __bool__(self) -> bool:
        return bool(self.found)

    def add(self, path: str, message: str) -> None:
        """Note a mistake."""
        self.found.append(Mistake(path, message))

    @contextmanager
    def at(self, path: str, about: str = "") -> Iterator[None]:
        """Catch errors of the library's own checks, and note them under this key."""
        try:
            yield
        except QRMaxError as error:
            self.add(path, f"{about}{error}")

    def pass_at(self, path: str, check: Callable[[], object]) -> bool:
        """Whether a check passes; if not, its error is noted under this key."""
        before = len(self.found)
        with self.at(path):
            check()
        return len(self.found) == before

    def concern(self, *keys: str) -> bool:
        """Whether one of these keys has a mistake, in the study or in a protocol."""
        return any({*keys} & {*mistake.path.split(".")} for mistake in self.found)

    def refuse(self) -> None:
        """Raise an error that lists the mistakes, if there are any."""
        lines = dict.fromkeys(f"{self.name}, {path}: {message}" for path, message in self.found)
        if lines:
            raise StudyError("\n".join(lines))


class Table:
    """A table of a study file. Each key is read once; `rest` is what has not been read."""

    def __init__(self, data: Mapping[str, Any], path: str, mistakes: Mistakes) -> None:
        self.path = path
        self.mistakes = mistakes
        self._data = dict(data)
        self._unread = dict(data)

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def place(self, key: str) -> str:
        """The path of a key.

        >>> Table({}, "protocols.quick", Mistakes("my.toml")).place("gamma")
        'protocols.quick.gamma'
        """
        return f"{self.path}.{key}".removeprefix(".")

    def text(self, key: str) -> str | None:
        """A string; None if there is none."""
        found: str | None = self._read(key, "text", lambda x: isinstance(x, str))
        return found

    def flag(self, key: str) -> bool | None:
        """A Boolean; None if there is none."""
        found: bool | None = self._read(key, "true or false", lambda x: isinstance(x, bool))
        return found

    def number(self, key: str) -> float | None:
        """A number; None if there is none."""
        found: float | None = self._read(key, "a number", lambda x: type(x) in (int, float))
        return found

    def whole(self, key: str) -> int | None:
        """An integer; None if there is none."""
        found: int | None = self._read(key, "a whole number", lambda x: type(x) is int)
        return found

    def table(self, key: str) -> Table:
        """A table; empty if there is none."""
        found = self._read(key, "a table", lambda value: isinstance(value, dict))
        return Table(found or {}, self.place(key), self.mistakes)

    def tables(self, key: str | None = None) -> list[tuple[str, Table]]:
        """All tables in this one, or in the one of this key, by their keys."""
        outer = self if key is None else self.table(key)
        inner = [(name, outer.table(name)) for name in outer.rest()]
        return [(name, table) for name, table in inner if isinstance(outer._data[name], dict)]

    def items(self, key: str) -> list[tuple[str, Any]] | None:
        """The values in a list, each with its path; None if there is no list."""
        found = self._read(key, "a list", lambda value: isinstance(value, list))
        place = self.place(key)
        return None if found is None else [(f"{place}[{n}]", x) for n, x in enumerate(found)]

    def raw_data(self) -> dict[str, Any]:
        """The whole table as it is."""
        return self._data

    def raw(self, key: str) -> Any:
        """A value of any kind."""
        self._unread.pop(key, None)
        return self._data.get(key)

    def rest(self) -> dict[str, Any]:
        """The values that have not been read; they count as read from now on."""
        rest, self._unread = self._unread, {}
        return rest

    def checked_rest(self, check: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The values that have not been read and that pass a check, each by itself."""
        return {
            key: value
            for key, value in self.rest().items()
            if self.mistakes.pass_at(self.place(key), partial(check, {key: value}))
        }

    def refuse_rest(self, known: Iterable[str]) -> None:
        """Note the keys that have not been read as unknown."""
        names = [*known]
        for key in self.rest():
            self.mistakes.add(self.place(key), str(UnknownNameError("key", key, names)))

    def _read(self, key: str, kind: str, fits: Callable[[Any], bool]) -> Any:
        self._unread.pop(key, None)
        value = self._data.get(key)
        if key in self._data and not fits(value):
            self.mistakes.add(self.place(key), f"is {shown(value)}; needed: {kind}")
            return None
        return value


def as_entry(value: Any, key: str, path: str, mistakes: Mistakes) -> Table | None:
    """An entry of a list: a table, or a name, short for a table with that name alone."""
    if isinstance(value, str):
        return Table({key: value}, path, mistakes)
    if isinstance(value, dict):
        return Table(value, path, mistakes)
    mistakes.add(path, f"is {shown(value)}; needed: a name or a table")
    return None
