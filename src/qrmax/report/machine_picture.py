"""A reward machine as a picture, drawn without any other program.

States are boxes from left to right; terminal ones have a double border, green for success and red
for failure. The label of an edge interrupts its line: `guard, p=probability / reward`.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from qrmax.errors import ParameterError, TaskError, UnknownNameError
from qrmax.logic.dfa import DFA
from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import FAILED, RewardMachine
from qrmax.pictures.drawing import (
    Font,
    Look,
    Outline,
    Picture,
    Point,
    Segment,
    Shape,
    Text,
    arrow_head,
    disc,
    polyline,
    printable,
    rectangle,
)
from qrmax.report.machine_layout import LINE, LOOP, Box, Line, MachineLayout, text_width

MOST_STATES = 200

_MARGIN = 20.0
_ENTRY = 28.0  # length of the arrow to the initial state
_HEAD = 8.0  # length of an arrow head

_TITLE = Font(15.0, bold=True)
_ABOUT = Font(12.0, "#627d98")
_NAME = Font(13.0, bold=True)
_LABEL = Font(12.0, "#334e68", monospaced=True)
_EDGE = Look(stroke="#829ab1", width=1.5)
_FILLED = Look(fill="#829ab1")
_BOXES = {
    "state": Look("#f0f4f8", "#486581", 1.5),
    "accepting": Look("#f0f4f8", "#486581", 1.5),
    "success": Look("#dff3e4", "#2a7d46", 1.5),
    "failure": Look("#fbe3e0", "#b3372c", 1.5),
}

_CURRENT = Look("#ffd666", "#8a5a00", 3.0)


def draw_machine(machine: RewardMachine, state: str | None = None) -> Picture:
    """Draw a machine; `svg()` is the picture's text, `save` writes SVG, PNG or PDF.

    `state` is the current state, which is highlighted.

    >>> from qrmax.machines.task_files import load_task
    >>> draw_machine(load_task("exp1")).svg().partition(" ")[0]
    '<svg'
    """
    if len(machine.states) > MOST_STATES:
        raise TaskError(
            f"{machine.name}: {len(machine.states)} states; at most {MOST_STATES} can be drawn; "
            "`restricted` leaves those that the labels of a map lead to"
        )
    if state is not None and state not in machine.states:
        raise UnknownNameError("machine state", state, machine.states)
    otherwise = f"leads to {FAILED}" if machine.undefined == "fail" else "changes nothing"
    return _draw(machine, state=state, foot=f"Any other label {otherwise}.")


def draw_dfa(dfa: DFA) -> Picture:
    """Draw an automaton; accepting states have a double border.

    >>> from qrmax.logic.compiler import compile_formula
    >>> draw_dfa(compile_formula("F coffee")).title
    'DFA of 2 states'
    """
    name = f"DFA of {len(dfa.states)} states"
    if len(dfa.states) > MOST_STATES:
        raise ParameterError(f"{name}: at most {MOST_STATES} can be drawn")
    edges = [
        Edge(str(source), guard, str(target))
        for state in dfa.states
        for source, guard, target in dfa.edges(state)
    ]
    machine = RewardMachine(edges, initial="0", states=map(str, dfa.states), name=name)
    return _draw(machine, accepting={*map(str, dfa.accepting)})


def current_box(box: Box) -> list[Shape | Text]:
    """The box of a current state, drawn over the plain one."""
    shape = rectangle(box.at, box.width, box.height, corner=10.0)
    return [Shape(shape, _CURRENT, "current"), _name(box)]


def _draw(
    machine: RewardMachine,
    *,
    state: str | None = None,
    accepting: Collection[str] = (),
    foot: str = "",
) -> Picture:
    layout = MachineLayout(machine)
    boxes = layout.boxes
    left = min(box.at.x - box.room / 2 for box in boxes) - _ENTRY - _MARGIN
    right = max(box.at.x + box.room / 2 for box in boxes) + _MARGIN
    labels = [line.label for line in layout.lines]
    tops = [box.at.y - box.height / 2 - box.above for box in boxes]
    tops += [label.at.y - LINE * len(label.lines) / 2 for label in labels]
    bottoms = [box.at.y + box.height / 2 for box in boxes]
    bottoms += [label.at.y + LINE * len(label.lines) / 2 for label in labels]
    x = left + _MARGIN
    title, about = printable(machine.name), printable(machine.description)
    right = max(right, x + max(1.15 * text_width(title), *map(text_width, (about, foot))))
    top = min(tops) - _MARGIN - (44.0 if about else 26.0)
    bottom = max(bottoms) + _MARGIN + 20.0
    words = [Text(Point(x, top + 28.0), title, _TITLE, "start", "title")]
    if about:
        words.append(Text(Point(x, top + 46.0), about, _ABOUT, "start", "about"))
    if foot:
        words.append(Text(Point(x, bottom - 12.0), foot, _ABOUT, "start", "about"))
    items: list[Shape | Text] = [*words, *_entry(boxes[layout.first])]
    for line in layout.lines:
        items += _line(line)
    for box in boxes:
        items += _loop(box) if box.loop else []
    for box in boxes:
        items += _box(box, _kind(machine, box.state, accepting))
        if box.state == state:
            items += current_box(box)
    return Picture(title, left, top, right - left, bottom - top, tuple(items))


def _kind(machine: RewardMachine, state: str, accepting: Collection[str]) -> str:
    if state in accepting:
        return "accepting"
    if state not in machine.terminal:
        return "state"
    return "success" if state in machine.success else "failure"


def _box(box: Box, kind: str) -> list[Shape | Text]:
    look = _BOXES[kind]
    shape = rectangle(box.at, box.width, box.height, corner=10.0)
    items: list[Shape | Text] = [Shape(shape, look, kind)]
    if kind != "state":
        ring = rectangle(box.at, box.width - 6.0, box.height - 6.0, corner=7.5)
        items.append(Shape(ring, Look(stroke=look.stroke), f"{kind} ring"))
    return [*items, _name(box)]


def _name(box: Box) -> Text:
    return Text(Point(box.at.x, box.at.y + 4.5), printable(box.state), _NAME, kind="name")


def _entry(box: Box) -> list[Shape]:
    """The arrow that leads to the initial state."""
    end = Point(box.at.x - box.width / 2, box.at.y)
    start = Point(end.x - _ENTRY, end.y)
    return [Shape(disc(start, 4.0), _FILLED, "head"), *_curve([start, end], ends=True)]


def _line(line: Line) -> list[Shape | Text]:
    items: list[Shape | Text] = []
    for part in line.parts:
        items += _curve(part, ends=part is line.parts[-1])
    return items + _label(line.label.at, line.label.lines)


def _loop(box: Box) -> list[Shape | Text]:
    x, top = box.at.x, box.at.y - box.height / 2
    rise = LOOP + 6.0
    controls = Point(x - 22.0, top - rise), Point(x + 22.0, top - rise)
    end = Point(x + 12.0, top)
    short = Point(end.x + 10.0 * _HEAD / rise, top - _HEAD + 1.0)
    outline = (Segment("M", (Point(x - 12.0, top),)), Segment("C", (*controls, short)))
    middle = top - LOOP - LINE * len(box.loop) / 2 + 1.0
    head = Shape(arrow_head(end, short, _HEAD), _FILLED, "head")
    return [Shape(outline, _EDGE, "edge"), head, *_label(Point(x, middle), box.loop)]


def _curve(points: list[Point], *, ends: bool) -> list[Shape]:
    """A curve that leaves and arrives horizontally, so that it never runs along a box."""
    tip = points[-1]
    onward = 1.0 if points[-2].x < tip.x else -1.0
    way = [*points[:-1], Point(tip.x - onward * (_HEAD - 1.0), tip.y)] if ends else points
    outline: Outline = polyline(way[0])
    for a, b in pairwise(way):
        bend = (a.x + b.x) / 2
        outline += (Segment("C", (Point(bend, a.y), Point(bend, b.y), b)),)
    shapes = [Shape(outline, _EDGE, "edge")]
    if ends:
        shapes.append(Shape(arrow_head(tip, way[-1], _HEAD), _FILLED, "head"))
    return shapes


def _label(at: Point, lines: tuple[str, ...]) -> list[Shape | Text]:
    first = at.y - LINE * (len(lines) - 1) / 2 + 4.0
    return [
        Text(Point(at.x, first + LINE * i), line, _LABEL, kind="label")
        for i, line in enumerate(lines)
    ]
