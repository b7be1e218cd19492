r"""Tasks as DOT, the language of Graphviz.

    digraph {
      rankdir="LR";
      name="exp1";
      "start" [shape="circle"];
      "done" [shape="doublecircle", end="success"];
      "entry" [shape="point"];
      "entry" -> "start";
      "start" -> "done" [label="office / 1.0"];
    }

Edge labels are described in `drawn`; Graphviz ignores unknown attributes, which hold the settings
that a drawing does not show. In files from elsewhere, the arrow to the initial state starts at a
node with the shape `point` or `none`, and a `doublecircle` is a success.

Nodes, edges and attributes are supported; subgraphs, ports and HTML are errors.
"""

from __future__ import annotations

import re
from itertools import pairwise

from qrmax.errors import TaskError, shown
from qrmax.machines.formats.drawn import (
    FAILURE,
    SUCCESS,
    Drawing,
    edge_text,
    identifiers,
    settings_of,
)
from qrmax.machines.formats.names import unused
from qrmax.machines.formats.tokens import END, MARK, Cursor, Token
from qrmax.machines.reward_machine import RewardMachine
from qrmax.source import Source

_TOKEN = re.compile(
    r"""
    (?P<space> \s+ | //[^\n]* | /\*.*?\*/ | ^\#[^\n]* )
    | (?P<mark> -> | -- | [{}\[\];,=:] )
    | (?P<quoted> "(?:[^"\\]|\\.)*" )
    | (?P<word> [^\W\d]\w* | -?(?:\.\d+|\d+(?:\.\d*)?) )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_PLAIN = re.compile(r"\w(?:[\w .-]*\w)?")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_CODE = re.compile(r"&(?:(amp|lt|gt|quot)|#(\d{1,7}));")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"'}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_LINE_ENDS = {"n": "\n", "l": "\n", "r": "\n", "\n": ""}
_ENTRY_SHAPES = ("point", "none", "plaintext", "plain")
_DEFAULTS = ("graph", "node", "edge")


def format(machine: RewardMachine) -> str:  # noqa: A001 (each format has one)
    """Format a task as DOT text that `parse` reads back to an equal machine."""
    ids = identifiers(machine.states, lambda name: _PLAIN.fullmatch(name) is not None)
    entry = unused("entry", {*ids.values()})
    lines = ['rankdir="LR";', f"name={_quote(machine.name)};"]
    lines += [f'"{key}"={_quote(value)};' for key, value in settings_of(machine).items()]
    for state, name in ids.items():
        shape = "doublecircle" if state in machine.terminal else "circle"
        attributes = {"shape": shape}
        if state in machine.terminal:
            attributes["end"] = SUCCESS if state in machine.success else FAILURE
        if state != name:
            attributes["label"] = state
        lines.append(f'"{name}" {_attributes(attributes)};')
    lines += [f'"{entry}" [shape="point"];', f'"{entry}" -> "{ids[machine.initial]}";']
    lines += [
        f'"{ids[e.source]}" -> "{ids[e.target]}" {_attributes({"label": edge_text(e)})};'
        for e in machine.edges
    ]
    return "\n".join(["digraph {", *(f"  {line}" for line in lines), "}"]) + "\n"


def parse(source: Source) -> RewardMachine:
    """Parse a task from DOT text."""
    return _Reader(source).machine()


class _Reader:
    """A parser of DOT; statements are not nested, so there is no recursion."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.drawing = Drawing(source)
        self.cursor = Cursor(source, _TOKEN)
        self.entries: set[str] = set()  # sources of the arrow to the initial state
        self.led: dict[str, list[str]] = {}  # [source]: targets of edges without a label

    def machine(self) -> RewardMachine:
        self._head()
        while not self.cursor.at("}"):
            self._statement()
            while self.cursor.at(";"):
                self.cursor.advance()
        self.cursor.advance()
        if self.cursor.token.kind != END:
            raise self.cursor.error("expected the end of the file after one graph")
        self._resolve_entries()
        return self.drawing.machine()

    def _head(self) -> None:
        if self._word() == "strict":
            self.cursor.advance()
        if self._word() != "digraph":
            raise self.cursor.error("expected 'digraph'")
        self.cursor.advance()
        if not self.cursor.at("{"):
            self.drawing.set("name", _value(self._name()))
        self.cursor.skip("{")

    def _statement(self) -> None:
        if self._word() == "subgraph" or self.cursor.at("{"):
            raise self.cursor.error(
                "subgraphs are not supported; expected a node, an edge or an attribute"
            )
        first = self._name()
        if self.cursor.at("="):
            self.cursor.advance()
            self.drawing.set(first.text, _value(self._name()))
            return
        if first.text.lower() in _DEFAULTS and self.cursor.at("["):
            attributes = self._attributes()
            if first.text.lower() == "graph":
                for key, value in attributes.items():
                    self.drawing.set(key, _value(value))
            return
        path = [first]
        while self.cursor.at("->"):
            self.cursor.advance()
            path.append(self._name())
        attributes = self._attributes()
        for node in path:
            self.drawing.mention(node.text)
        if len(path) == 1:
            self._node(first.text, attributes)
        for start, end in pairwise(path):
            self._edge(start, end, attributes)

    def _node(self, node: str, attributes: dict[str, Token]) -> None:
        shape = attributes["shape"].text if "shape" in attributes else ""
        if shape in _ENTRY_SHAPES:
            self.entries.add(node)
        if "label" in attributes:
            name = attributes["label"]
            self.drawing.names[node] = node if name.text == "\\N" else _value(name)
        end = attributes["end"].text if "end" in attributes else ""
        if end in (SUCCESS, FAILURE) or shape == "doublecircle":
            self.drawing.ends[node] = end or SUCCESS

    def _edge(self, start: Token, end: Token, attributes: dict[str, Token]) -> None:
        if "label" in attributes:
            arrow = (start.offset, start.text, _value(attributes["label"]), end.text)
            self.drawing.arrows.append(arrow)
        else:
            self.led.setdefault(start.text, []).append(end.text)

    def _resolve_entries(self) -> None:
        """Take edges without a label as the arrow to the initial state."""
        for node, targets in self.led.items():
            if node not in self.entries:
                raise TaskError(
                    f"{self.source.name}: an edge of {shown(node)} has no label; only the arrow "
                    "to the initial state has none, and its node has shape=point"
                )
            self.drawing.names.pop(node)
            self.drawing.ends.pop(node, None)
            if self.drawing.initial is not None or len(targets) > 1:
                raise TaskError(f"{self.source.name}: several arrows mark an initial state")
            self.drawing.initial = targets[0]
        if self.drawing.initial is not None and self.drawing.initial not in self.drawing.names:
            raise TaskError(f"{self.source.name}: the arrow to the initial state has no target")
        for offset, start, _, end in self.drawing.arrows:
            if missing := [node for node in (start, end) if node not in self.drawing.names]:
                line, column = self.source.place(offset)
                raise self.source.error(
                    TaskError,
                    f"{shown(missing[0])} is both a state and the origin of the first arrow",
                    line=line,
                    column=column,
                )

    def _attributes(self) -> dict[str, Token]:
        found: dict[str, Token] = {}
        while self.cursor.at("["):
            self.cursor.advance()
            while not self.cursor.at("]"):
                key = self._name().text
                self.cursor.skip("=")
                found[key] = self._name()
                while self.cursor.at(",") or self.cursor.at(";"):
                    self.cursor.advance()
            self.cursor.advance()
        return found

    def _name(self) -> Token:
        if self.cursor.token.kind in (MARK, END):
            raise self.cursor.error("expected a name")
        return self.cursor.advance()

    def _word(self) -> str:
        token = self.cursor.token
        return token.text.lower() if token.kind == "word" else ""


def _value(token: Token) -> str:
    r"""The value of a quoted string: `\n` is a new line, `&amp;` an ampersand."""
    plain = _ESCAPED.sub(lambda found: _LINE_ENDS.get(found[1], found[1]), token.text)
    return _CODE.sub(_character, plain)


def _character(found: re.Match[str]) -> str:
    if found[1]:
        return _ENTITIES[found[1]]
    code = int(found[2])
    return chr(code) if code < 0x110000 else found[0]


def _attributes(attributes: dict[str, str]) -> str:
    return f"[{', '.join(f'{key}={_quote(value)}' for key, value in attributes.items())}]"


def _quote(text: str) -> str:
    """A quoted string that Graphviz shows verbatim, and that `_value` reads back."""
    plain = _ENTITY.sub("&amp;", text)
    return '"' + "".join(map(_escape, plain)) + '"'


def _escape(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character == "\n":
        return "\\n"
    return character if character.isprintable() else f"&#{ord(character)};"
