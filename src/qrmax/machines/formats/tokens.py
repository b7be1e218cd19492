"""Reading a text token by token, for formats that are more than lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from qrmax.errors import TaskError, shown
from qrmax.source import Source

MARK, QUOTED, SPACE, COMMENT, END = "mark", "quoted", "space", "comment", "end"
"""Kinds of tokens; a format may have others."""

_COMMENT_ENDS = re.compile(r"/\*|\*/")


class Token(NamedTuple):
    """A piece of a text: of what kind, what it says (without quotes), and where it begins."""

    kind: str
    text: str
    offset: int


class Cursor:
    """Goes through the tokens of a text, and says where it is when something is wrong.

    The pattern has a named group for each kind of token; spaces are left out. After the last token
    the kind is END, however often one goes on.
    """

    def __init__(self, source: Source, pattern: re.Pattern[str]) -> None:
        self.source = source
        self._tokens = _tokens(source, pattern)
        self.token = next(self._tokens)

    def advance(self) -> Token:
        """Go on, and return what was here."""
        here = self.token
        self.token = next(self._tokens)
        return here

    def at(self, mark: str) -> bool:
        """Whether this mark is here; the same between quotes is none."""
        return self.token.kind == MARK and self.token.text == mark

    def skip(self, mark: str) -> None:
        """Go past a mark, which has to be here."""
        if not self.at(mark):
            raise self.error(f"expected {mark!r}")
        self.advance()

    def error(self, message: str, token: Token | None = None) -> TaskError:
        """An error that shows where this token is, or the one that is here."""
        place = token or self.token
        found = "the end" if place.kind == END else shown(place.text)
        line, column = self.source.place(place.offset)
        return self.source.error(TaskError, f"{message}, not {found}", line=line, column=column)


def _tokens(source: Source, pattern: re.Pattern[str]) -> Iterator[Token]:
    at, text = 0, source.text
    while at < len(text):
        found = pattern.match(text, at)
        if found is None:
            raise _error(source, f"unexpected {text[at]!r}", at)
        kind = found.lastgroup or ""
        if kind == COMMENT:
            at = _after_comment(source, at)
            continue
        if kind == QUOTED:
            yield Token(kind, found[0][1:-1], at)
        elif kind != SPACE:
            yield Token(kind, found[0], at)
        at = found.end()
    while True:
        yield Token(END, "", len(text))


def _after_comment(source: Source, start: int) -> int:
    """Where a comment ends; there may be others in it."""
    depth = 0
    for mark in _COMMENT_ENDS.finditer(source.text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise _error(source, "a comment that does not end", start)


def _error(source: Source, message: str, offset: int) -> TaskError:
    line, column = source.place(offset)
    return source.error(TaskError, message, line=line, column=column)
