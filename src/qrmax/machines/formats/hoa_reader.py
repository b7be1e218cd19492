"""A parser of HOA: headers, and states with edges. `hoa` interprets them as a task."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

from qrmax.errors import GuardError
from qrmax.logic.guards import MAX_TOKENS, Guard, is_proposition, written
from qrmax.machines.edges import ALWAYS
from qrmax.machines.formats.tokens import END, MARK, QUOTED, Cursor, Token
from qrmax.source import Source

MAX_PROPOSITIONS = 12  # of an automaton with implicit labels: 2^12 edges per state

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


class HOAEdge(NamedTuple):
    """An edge; `number` counts all edges of the file."""

    guard: Guard
    target: int
    number: int


@dataclass
class State:
    """A state in the file."""

    number: int
    name: str
    accepting: bool
    label: str | None  # of all its edges
    implicit: int = 0  # number of edges with implicit labels
    edges: list[HOAEdge] = field(default_factory=list)

    @property
    def is_sink(self) -> bool:
        """Whether the state is a sink: its only edges are unconditional self-loops."""
        return bool(self.edges) and all(
            edge.target == self.number and edge.guard == ALWAYS for edge in self.edges
        )


class HOAReader:
    """A parser of automata with state-based Büchi acceptance."""

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
        """The integer value of a token."""
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
                raise self.cursor.error("expected this header only once", header)
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
            raise self.cursor.error("alternation is not supported; expected one successor")
        if self._acceptance():
            raise self.cursor.error(
                "transition-based acceptance is not supported; expected a plain edge", place
            )
        state.edges.append(HOAEdge(Guard.parse(text), target, self.n_edges))
        self.n_edges += 1

    def _implicit(self, number: int) -> str:
        """The implicit label of an edge: the bits of its number are the propositions."""
        if len(self.propositions) > MAX_PROPOSITIONS or number >= 1 << len(self.propositions):
            raise self.cursor.error("all labels are used up; expected the next state")
        literals = [
            name if number >> bit & 1 else f"!{name}" for bit, name in enumerate(self.propositions)
        ]
        return " & ".join(literals) or "true"

    def _bracketed(self) -> str:
        """A label between brackets, as the text of a guard."""
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
                "a label that is too long after its aliases are expanded; expected less", place
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
        """Read acceptance sets, if any; return whether set 0 is among them."""
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
    """The text of a token; in quotes, a backslash escapes the next character."""
    return _ESCAPED.sub(r"\1", token.text) if token.kind == QUOTED else token.text
