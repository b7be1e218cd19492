"""A reward machine as an SVG picture, drawn without any other program.

States are boxes from left to right; ends have a double border, green for success and red for
failure. The label of an edge interrupts its line: `guard, p=probability / reward`.
"""

from __future__ import annotations

from html import escape
from itertools import pairwise

from qrmax.automata.reward_machine import FELL_OFF, RewardMachine
from qrmax.errors import TaskError
from qrmax.report.machine_layout import LINE, LOOP, Box, Line, MachineLayout, Point, text_width

MOST_STATES = 200

_MARGIN = 20.0
_ENTRY = 28.0  # how long the arrow to the initial state is
_STYLE = """
  text { font-family: ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif }
  .name { font-size: 13px; font-weight: 600; fill: #1f2933; text-anchor: middle }
  .label { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
           font-size: 12px; fill: #334e68; text-anchor: middle }
  .title { font-size: 15px; font-weight: 600; fill: #1f2933 }
  .about { font-size: 12px; fill: #627d98 }
  .edge { fill: none; stroke: #829ab1; stroke-width: 1.5 }
  .head { fill: #829ab1 }
  .state { fill: #f0f4f8; stroke: #486581; stroke-width: 1.5 }
  .success { fill: #dff3e4; stroke: #2a7d46; stroke-width: 1.5 }
  .failure { fill: #fbe3e0; stroke: #b3372c; stroke-width: 1.5 }
  .ring { fill: none; stroke-width: 1 }
"""
_HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" '
    'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
    '<path class="head" d="M0 0.5 L8 4 L0 7.5 z"/></marker></defs>'
)


def draw_machine(machine: RewardMachine) -> str:
    """The machine as the text of an SVG file.

    >>> from qrmax.automata.files import load_task
    >>> draw_machine(load_task("exp1")).partition(" ")[0]
    '<svg'
    """
    if len(machine.states) > MOST_STATES:
        raise TaskError(
            f"{machine.name}: {len(machine.states)} states; at most {MOST_STATES} can be drawn"
        )
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
    title, about = _printable(machine.name), _printable(machine.description)
    otherwise = f"leads to {FELL_OFF}" if machine.undefined == "fail" else "changes nothing"
    foot = f"Any other label {otherwise}."
    right = max(right, x + max(1.15 * text_width(title), *map(text_width, (about, foot))))
    top = min(tops) - _MARGIN - (44.0 if about else 26.0)
    bottom = max(bottoms) + _MARGIN + 20.0
    width, height = right - left, bottom - top
    entry = _entry(boxes[layout.first])
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="{left:.1f} {top:.1f} {width:.1f} {height:.1f}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            _HEAD,
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" '
            'fill="#ffffff"/>',
            _text("title", Point(x, top + 28.0), title),
            _text("about", Point(x, top + 46.0), about) if about else "",
            entry,
            *map(_line, layout.lines),
            *(_loop(box) for box in boxes if box.loop),
            *(_box(machine, box) for box in boxes),
            _text("about", Point(x, bottom - 12.0), foot),
            "</svg>\n",
        ]
    )


def _box(machine: RewardMachine, box: Box) -> str:
    kind = "success" if box.state in machine.success else "failure"
    if box.state not in machine.terminal:
        kind = "state"
    shape = _rectangle(kind, box.at, box.width, box.height, corner=10.0)
    if kind != "state":
        shape += _rectangle(f"{kind} ring", box.at, box.width - 6.0, box.height - 6.0, corner=7.5)
    return shape + _text("name", Point(box.at.x, box.at.y + 4.5), _printable(box.state))


def _entry(box: Box) -> str:
    """The arrow that leads to the initial state."""
    end = Point(box.at.x - box.width / 2, box.at.y)
    start = Point(end.x - _ENTRY, end.y)
    dot = f'<circle class="head" cx="{start.x:.1f}" cy="{start.y:.1f}" r="4"/>'
    return dot + _curve([start, end], ends=True)


def _line(line: Line) -> str:
    curves = [_curve(part, ends=part is line.parts[-1]) for part in line.parts]
    return "".join(curves) + _label(line.label.at, line.label.lines)


def _loop(box: Box) -> str:
    x, top = box.at.x, box.at.y - box.height / 2
    path = f"M{x - 12:.1f} {top:.1f} c-10 {-LOOP - 6:.1f} 34 {-LOOP - 6:.1f} 24 0"
    middle = top - LOOP - LINE * len(box.loop) / 2 + 1.0
    return _path(path, ends=True) + _label(Point(x, middle), box.loop)


def _curve(points: list[Point], *, ends: bool) -> str:
    """A line that leaves and arrives level, so that it never runs along a box."""
    path = f"M{points[0].x:.1f} {points[0].y:.1f}"
    for a, b in pairwise(points):
        bend = (a.x + b.x) / 2
        path += f" C{bend:.1f} {a.y:.1f} {bend:.1f} {b.y:.1f} {b.x:.1f} {b.y:.1f}"
    return _path(path, ends=ends)


def _path(path: str, *, ends: bool) -> str:
    head = ' marker-end="url(#head)"' if ends else ""
    return f'<path class="edge" d="{path}"{head}/>'


def _rectangle(kind: str, at: Point, width: float, height: float, corner: float) -> str:
    return (
        f'<rect class="{kind}" x="{at.x - width / 2:.1f}" y="{at.y - height / 2:.1f}" '
        f'width="{width:.1f}" height="{height:.1f}" rx="{corner}"/>'
    )


def _label(at: Point, lines: tuple[str, ...]) -> str:
    first = at.y - LINE * (len(lines) - 1) / 2 + 4.0
    return "".join(
        _text("label", Point(at.x, first + LINE * i), line) for i, line in enumerate(lines)
    )


def _text(kind: str, at: Point, text: str) -> str:
    return f'<text class="{kind}" x="{at.x:.1f}" y="{at.y:.1f}">{escape(text)}</text>'


def _printable(text: str) -> str:
    """The text on one line, without what XML does not allow."""
    return "".join(c if c.isprintable() else " " for c in text)
