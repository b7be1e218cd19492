"""Tasks as Mermaid state diagrams, which code hosts and editors draw.

    ---
    title: "exp1"
    ---
    stateDiagram-v2
        direction LR
        start
        done
        [*] --> start
        start --> done : office / 1.0
        done --> [*]
        class done success

Edge labels are described in `drawn`. Settings that a drawing does not show are stored in comments:
`%% undefined: "fail"`. States that lead to `[*]` are terminal, successes unless their class is
`failure`. Composite states, notes and forks are errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from qrmax.errors import TaskError, shown
from qrmax.machines.formats.drawn import (
    FAILURE,
    SUCCESS,
    Drawing,
    edge_text,
    identifiers,
    settings_of,
)
from qrmax.machines.reward_machine import RewardMachine
from qrmax.source import Source

_OUTSIDE = "[*]"
_ID = r"[A-Za-z_]\w*"
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_KEYWORDS = (  # Mermaid may misread an identifier that begins with one of these
    *("accdescr", "acctitle", "as", "choice", "class", "click", "default", "direction", "end"),
    *("fork", "hide", "href", "join", "note", "right", "left", "scale", "state", "style"),
)
_ARROW = re.compile(rf"({_ID}|\[\*\])\s*-->\s*({_ID}|\[\*\])\s*(?::(.*))?")
_NAMED = re.compile(rf'state\s+"([^"]*)"\s+as\s+({_ID})')
_STATE = re.compile(rf"(?:state\s+)?({_ID})\s*(?::(?!:)(.*))?")
_CLASS = re.compile(rf"class\s+({_ID}(?:\s*,\s*{_ID})*)\s+({_ID})")
_SETTING = re.compile(r'%%\s*(\w+):\s*(".*")\s*')
_TITLE = re.compile(r"title:\s*(.*)")
_IGNORED = re.compile(r"%%.*|direction\s+\w+|classDef\s.*|hide empty description")
_MARKS = "#;:%{}\"\\'<>[]&*/|!?="  # in a name
_LABEL_MARKS = "#;:%{}"  # in the label of an edge
_CODE = re.compile(r"#(\d{1,7});|#quot;")
_COLOURS = {SUCCESS: "fill:#d6f0dc,stroke:#2a7d46", FAILURE: "fill:#f9dcd9,stroke:#b3372c"}
_ALLOWED = (
    "allowed: 'a --> b : guard, p=probability / reward', '[*] --> a', 'b --> [*]', "
    "'state \"a name\" as a', 'class b failure', '%% comment'"
)


def format(machine: RewardMachine) -> str:  # noqa: A001 (each format has one)
    """Format a task as Mermaid text that `parse` reads back to an equal machine."""
    ids = identifiers(machine.states, _is_plain)
    lines = ["direction LR"]
    lines += [f"%% {key}: {_quote(value)}" for key, value in settings_of(machine).items()]
    lines += [
        name if name == state else f'state "{_encode(state, _MARKS)}" as {name}'
        for state, name in ids.items()
    ]
    lines.append(f"{_OUTSIDE} --> {ids[machine.initial]}")
    lines += [
        f"{ids[e.source]} --> {ids[e.target]} : {_encode(edge_text(e), _LABEL_MARKS)}"
        for e in machine.edges
    ]
    for kind, group in ((SUCCESS, machine.success), (FAILURE, machine.failure)):
        ends = [name for state, name in ids.items() if state in group]
        lines += [f"{name} --> {_OUTSIDE}" for name in ends]
        if ends:
            lines += [f"classDef {kind} {_COLOURS[kind]}", f"class {','.join(ends)} {kind}"]
    head = ["---", f"title: {_quote(machine.name)}", "---", "stateDiagram-v2"]
    return "\n".join([*head, *(f"    {line}" for line in lines)]) + "\n"


def parse(source: Source) -> RewardMachine:
    """Parse a task from Mermaid text."""
    drawing = Drawing(source)
    classes: dict[str, str] = {}
    for number, offset, line in _statements(source, drawing):
        if setting := _SETTING.fullmatch(line):
            drawing.set(setting[1], _unquote(source, number, setting[2]))
        elif _IGNORED.fullmatch(line):
            continue
        elif named := _NAMED.fullmatch(line):
            drawing.names[named[2]] = _decode(named[1])
        elif classed := _CLASS.fullmatch(line):
            classes |= dict.fromkeys(re.split(r"\s*,\s*", classed[1]), classed[2])
        elif arrow := _ARROW.fullmatch(line):
            _take_arrow(drawing, number, offset, *arrow.groups())
        elif state := _STATE.fullmatch(line):
            drawing.mention(state[1])
            if state[2]:
                drawing.names[state[1]] = _decode(state[2].strip())
        else:
            raise source.error(
                TaskError, f"unknown statement {shown(line)}", line=number, note=_ALLOWED
            )
    for name in drawing.ends:
        drawing.ends[name] = FAILURE if classes.get(name) == FAILURE else SUCCESS
    return drawing.machine()


def _statements(source: Source, drawing: Drawing) -> Iterator[tuple[int, int, str]]:
    """The statements of the diagram: line number, offset, text."""
    lines = [line.strip() for line in source.lines()]
    offsets = [0]
    for line in source.lines():
        offsets.append(offsets[-1] + len(line) + 1)
    first = _after_title(source, drawing, lines)
    while first < len(lines) and (not lines[first] or lines[first].startswith("%%")):
        first += 1
    if first == len(lines) or lines[first] not in ("stateDiagram-v2", "stateDiagram"):
        raise source.error(
            TaskError, "expected 'stateDiagram-v2'", line=min(first, len(lines) - 1) + 1
        )
    for number in range(first + 1, len(lines)):
        if lines[number]:
            yield number + 1, offsets[number], lines[number]


def _after_title(source: Source, drawing: Drawing, lines: list[str]) -> int:
    """The first line after the title, if there is one."""
    if lines[0] != "---":
        return 0
    for number, line in enumerate(lines[1:], start=1):
        if line == "---":
            return number + 1
        if title := _TITLE.fullmatch(line):
            quoted = title[1].startswith('"')
            name = _unquote(source, number + 1, title[1]) if quoted else title[1]
            drawing.set("name", name)
    raise source.error(TaskError, "the title block '---' is not closed", line=1)


def _take_arrow(
    drawing: Drawing, number: int, offset: int, start: str, end: str, label: str | None
) -> None:
    for name in (start, end):
        if name != _OUTSIDE:
            drawing.mention(name)
    if start == _OUTSIDE:
        if end == _OUTSIDE or drawing.initial is not None:
            raise drawing.source.error(
                TaskError, "needed: exactly one arrow '[*] --> state'", line=number
            )
        drawing.initial = end
    elif end == _OUTSIDE:
        drawing.ends[start] = SUCCESS
    else:
        drawing.arrows.append((offset, start, _decode(label or "true").strip(), end))


def _is_plain(name: str) -> bool:
    return _PLAIN.fullmatch(name) is not None and not name.lower().startswith(_KEYWORDS)


def _encode(text: str, marks: str) -> str:
    """Escape Mermaid's special characters as numeric entities."""
    plain = set(text) - {*marks} - {c for c in text if not c.isprintable()}
    return "".join(c if c in plain else f"#{ord(c)};" for c in text)


def _decode(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        code = int(found[1] or ord('"'))
        return chr(code) if code < 0x110000 else found[0]

    return _CODE.sub(character, text)


def _quote(text: str) -> str:
    """A quoted string on one line, without braces, which would be a directive in a comment."""
    return json.dumps(text).replace("{", "\\u007b").replace("}", "\\u007d")


def _unquote(source: Source, number: int, text: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, str):
        raise source.error(TaskError, f"{shown(text)} is not text between quotes", line=number)
    return value
