"""A tokenizer for formats that are not line-based."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from qrmax.errors import TaskError, shown
from qrmax.source import Source

MARK, QUOTED, SPACE, COMMENT, END = "mark", "quoted", "space", "comment", "end"
"""Token kinds; a format may have others."""

_COMMENT_ENDS = re.compile(r"/\*|\*/")


class Token(NamedTuple):
    """A token: its kind, its text (without quotes) and its offset."""

    kind: str
    text: str
    offset: int


class Cursor:
    """A position in the token sequence of a text, with errors that point at it.

    The pattern has a named group for each kind of token; spaces are skipped. After the last token
    all further ones are END.
    """

    def __init__(self, source: Source, pattern: re.Pattern[str]) -> None:
        self.source = source
        self._tokens = _tokens(source, pattern)
        self.token = next(self._tokens)

    def advance(self) -> Token:
        """Move to the next token, and return the current one."""
        here = self.token
        self.token = next(self._tokens)
        return here

    def at(self, mark: str) -> bool:
        """Whether the current token is this mark, unquoted."""
        return self.token.kind == MARK and self.token.text == mark

    def skip(self, mark: str) -> None:
        """Skip a mark, which must be the current token."""
        if not self.at(mark):
            raise self.error(f"expected {mark!r}")
        self.advance()

    def error(self, message: str, token: Token | None = None) -> TaskError:
        """An error at this token, or at the current one."""
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
    """The offset of the end of a comment; comments can be nested."""
    depth = 0
    for mark in _COMMENT_ENDS.finditer(source.text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise _error(source, "a comment that is not closed", start)


def _error(source: Source, message: str, offset: int) -> TaskError:
    line, column = source.place(offset)
    return source.error(TaskError, message, line=line, column=column)
