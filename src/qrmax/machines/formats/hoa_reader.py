"""HOA text as data: headers, and states with edges. What they mean for a task is said in `hoa`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

from qrmax.errors import GuardError
from qrmax.logic.guards import MAX_TOKENS, Guard, is_proposition, written
from qrmax.machines.edges import EVERYWHERE
from qrmax.machines.formats.tokens import END, MARK, QUOTED, Cursor, Token
from qrmax.source import Source

MOST_PROPOSITIONS = 12  # of an automaton whose edges have no labels: it has 2^12 edges a state

_HEADER = "header"
_TOKEN = re.compile(
    r"""
    (?P<space> \s+ )
    | (?P<comment> /\* )
    | (?P<quoted> "(?:[^"\\]|\\.)*" )
    | (?P<mark> --BODY-- | --END-- | --ABORT-- | [\[\]{}()&|!] )
    | (?P<header> [A-Za-z_][\w-]*: )
    | (?P<word> @?[\w-]+ )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_WHOLE = re.compile(r"\d{1,9}", re.ASCII)
_BUCHI = ["1", "Inf", "(", "0", ")"]


class Leap(NamedTuple):
    """An edge; `number` counts all edges of the file."""

    guard: Guard
    target: int
    number: int


@dataclass
class State:
    """A state as the file has it."""

    number: int
    name: str
    accepting: bool
    label: str | None  # of all its edges
    implicit: int = 0  # how many edges have no label: each number stands for one
    edges: list[Leap] = field(default_factory=list)

    @property
    def is_sink(self) -> bool:
        """Whether it can surely not be left."""
        return bool(self.edges) and all(
            edge.target == self.number and edge.guard == EVERYWHERE for edge in self.edges
        )


class HOAReader:
    """Reads an automaton with state-based Büchi acceptance."""

    def __init__(self, source: Source) -> None:
        self.cursor = Cursor(source, _TOKEN)
        self.headers: dict[str, list[Token]] = {}
        self.propositions: list[str] = []
        self.states: dict[int, State] = {}
        self.n_edges = 0
        self._aliases: dict[str, str] = {}
        self._read_headers()
        self.cursor.skip("--BODY--")
        while self._at_header("State:"):
            self._read_state()
        self.cursor.skip("--END--")

    def text(self, header: str, otherwise: str) -> str:
        """The first value of a header."""
        values = self.headers.get(header, [])
        return text_of(values[0]) if values else otherwise

    def number(self, token: Token) -> int:
        """The whole number that a token is."""
        if not _WHOLE.fullmatch(token.text) or token.kind == QUOTED:
            raise self.cursor.error("expected a number", token)
        return int(token.text)

    def _read_headers(self) -> None:
        if not self._at_header("HOA:"):
            raise self.cursor.error("expected 'HOA: v1'")
        while self.cursor.token.kind == _HEADER:
            header = self.cursor.advance()
            name, values = header.text[:-1], list[Token]()
            while self.cursor.token.kind not in (_HEADER, END) and not self.cursor.at("--BODY--"):
                values.append(self.cursor.advance())
            if name == "Alias":
                self._take_alias(header, values)
            elif name not in self.headers:
                self.headers[name] = values
            elif name in ("Start", "AP", "Acceptance", "States"):
                raise self.cursor.error("one header of a kind is enough", header)
            if name == "AP":
                self._take_propositions(values[1:])
        given = self.headers.get("Acceptance", [])
        for wanted, token in zip_longest(_BUCHI, given):
            if token is None or token.text != wanted:
                raise self.cursor.error("expected 'Acceptance: 1 Inf(0)', on states", token)

    def _take_propositions(self, values: list[Token]) -> None:
        self.propositions = [text_of(token) for token in values]
        for name, token in zip(self.propositions, values, strict=True):
            if not is_proposition(name):
                raise self.cursor.error("expected a proposition, a line without quotes", token)

    def _take_alias(self, header: Token, values: list[Token]) -> None:
        if not values or not values[0].text.startswith("@"):
            raise self.cursor.error("expected 'Alias: @name label'", header)
        self._aliases[values[0].text] = f"({self._label(values[1:], header)})"

    def _read_state(self) -> None:
        place = self.cursor.advance()
        label = self._bracketed() if self.cursor.at("[") else None
        number = self.number(self.cursor.advance())
        if number in self.states:
            raise self.cursor.error(f"a second state {number}; expected another number", place)
        named = self.cursor.token.kind == QUOTED
        name = text_of(self.cursor.advance()) if named else str(number)
        state = self.states[number] = State(number, name, self._acceptance(), label)
        while not self._at_header("State:") and not self.cursor.at("--END--"):
            self._read_edge(state)

    def _read_edge(self, state: State) -> None:
        place = self.cursor.token
        text = self._bracketed() if self.cursor.at("[") else state.label
        if text is None:
            text = self._implicit(state.implicit)
            state.implicit += 1
        target = self.number(self.cursor.advance())
        if self.cursor.at("&"):
            raise self.cursor.error("several successors at once are not read; expected one")
        if self._acceptance():
            raise self.cursor.error("accepting edges are not read; expected a plain one", place)
        state.edges.append(Leap(Guard.parse(text), target, self.n_edges))
        self.n_edges += 1

    def _implicit(self, number: int) -> str:
        """The label of the edge of this number, where edges have none: its bits say it."""
        if len(self.propositions) > MOST_PROPOSITIONS or number >= 1 << len(self.propositions):
            raise self.cursor.error("all labels are used up; expected the next state")
        literals = [
            name if number >> bit & 1 else f"!{name}" for bit, name in enumerate(self.propositions)
        ]
        return " & ".join(literals) or "true"

    def _bracketed(self) -> str:
        """A label between brackets, as a guard of ours."""
        place = self.cursor.advance()
        found: list[Token] = []
        while not self.cursor.at("]"):
            if self.cursor.token.kind in (END, _HEADER):
                raise self.cursor.error("expected ']'")
            found.append(self.cursor.advance())
        self.cursor.advance()
        return self._label(found, place)

    def _label(self, tokens: list[Token], place: Token) -> str:
        text = " ".join(map(self._item, tokens))
        if len(text) > 20 * MAX_TOKENS:
            raise self.cursor.error(
                "a label that is too long once its aliases are written out; expected less", place
            )
        try:
            Guard.parse(text)
        except GuardError as error:
            raise self.cursor.error(f"expected a label ({error})", place) from error
        return text

    def _item(self, token: Token) -> str:
        if token.text in ("t", "f"):
            return "true" if token.text == "t" else "false"
        if token.text in self._aliases:
            return self._aliases[token.text]
        if token.kind == MARK:
            return token.text
        if _WHOLE.fullmatch(token.text) and int(token.text) < len(self.propositions):
            return written(self.propositions[int(token.text)])
        raise self.cursor.error("expected the number of a proposition, or an alias", token)

    def _acceptance(self) -> bool:
        """Whether `{0}` follows, and past it."""
        if not self.cursor.at("{"):
            return False
        self.cursor.advance()
        sets: list[int] = []
        while not self.cursor.at("}"):
            sets.append(self.number(self.cursor.advance()))
        self.cursor.advance()
        return 0 in sets

    def _at_header(self, text: str) -> bool:
        return self.cursor.token.kind == _HEADER and self.cursor.token.text == text


def text_of(token: Token) -> str:
    """What a token says; in quotes, a backslash keeps the next character as it is."""
    return _ESCAPED.sub(r"\1", token.text) if token.kind == QUOTED else token.text
