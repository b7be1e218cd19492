"""The signs on pictures of maps, distinguishable by shape, also in greyscale.

Every proposition that the built-in maps name in a word has a sign of its own; any other is the
letter of its tile on a white plate.
"""

from __future__ import annotations

from collections.abc import Callable

from qrmax.pictures.composition import Items
from qrmax.pictures.drawing import (
    Font,
    Look,
    Outline,
    Point,
    Segment,
    Shape,
    Text,
    disc,
    ellipse,
    polyline,
    rectangle,
)

INK = "#343a46"
START = "#c0392b"
_WHITE = "#ffffff"
_BROWN, _GOLD, _BLUE, _PURPLE, _GREEN, _DARK = (
    "#865c3c",
    "#c2872f",
    "#3f78b5",
    "#7851a9",
    "#3f8a50",
    "#1d3b53",
)
COLOURS = {
    "coffee": _BROWN,
    "good_coffee": _GOLD,
    "mail": _BLUE,
    "office": _PURPLE,
    "decoration": _GREEN,
    "hole": _DARK,
}
PLATE = "#8794a8"  # the colour of any other


def sign(proposition: str, tile: str, middle: Point, size: float) -> Items:
    """The sign of a proposition around a point, about `size` wide and high."""
    if proposition in _SIGNS:
        return _SIGNS[proposition](_At(middle, size), COLOURS[proposition])
    at = _At(middle, size)
    plate = Shape(at.box(0.0, 0.0, 0.84, 0.84, 0.16), Look(_WHITE, INK, max(0.8, 0.05 * size)))
    letter = Text(at(0.0, 0.215), tile, Font(0.6 * size, INK, bold=True))
    return [plate, letter]


def start_sign(middle: Point, width: float, height: float) -> Items:
    """A frame inside a cell with a filled corner, which leaves its sign visible."""
    line = 1.4 + 0.04 * min(width, height)
    inner = rectangle(middle, width - 2.4 * line, height - 2.4 * line)
    left, top = middle.x - width / 2 + 1.2 * line, middle.y - height / 2 + 1.2 * line
    leg = 0.34 * min(width, height)
    corner = polyline(Point(left, top), Point(left + leg, top), Point(left, top + leg), closed=True)
    return [
        Shape(inner, Look(stroke=START, width=line), "start"),
        Shape(corner, Look(fill=START), "start"),
    ]


def walker_sign(middle: Point, size: float) -> Items:
    """A disc with a white rim, smaller than a cell."""
    return [Shape(disc(middle, 0.2 * size), Look(START, _WHITE, max(0.8, 0.05 * size)), "walker")]


class _At:
    """Outlines in units of a sign, around its middle."""

    def __init__(self, middle: Point, size: float) -> None:
        self.middle, self.size = middle, size

    def __call__(self, x: float, y: float) -> Point:
        return Point(self.middle.x + x * self.size, self.middle.y + y * self.size)

    def box(self, x: float, y: float, width: float, height: float, corner: float = 0.0) -> Outline:
        return rectangle(self(x, y), width * self.size, height * self.size, corner * self.size)

    def line(self, *points: tuple[float, float], closed: bool = False) -> Outline:
        return polyline(*(self(*point) for point in points), closed=closed)

    def curve(self, *points: tuple[float, float]) -> Outline:
        first, *rest = (self(*point) for point in points)
        return (Segment("M", (first,)), Segment("C", tuple(rest)))

    def round(self, x: float, y: float, across: float, down: float) -> Outline:
        return ellipse(self(x, y), across * self.size, down * self.size)

    def stroke(self, colour: str, width: float = 0.07) -> Look:
        return Look(stroke=colour, width=width * self.size)


def _cup(at: _At, colour: str) -> Items:
    """A cup with a handle, and steam above it."""
    bowl = at.line((-0.36, -0.1), (0.2, -0.1), (0.13, 0.34), (-0.29, 0.34), closed=True)
    return [
        Shape(at.curve((0.17, -0.02), (0.46, -0.06), (0.42, 0.26), (0.14, 0.2)), at.stroke(colour)),
        Shape(bowl, Look(colour, colour, 0.06 * at.size)),
        Shape(
            at.curve((-0.2, -0.2), (-0.3, -0.3), (-0.1, -0.34), (-0.2, -0.44)),
            at.stroke(colour, 0.05),
        ),
        Shape(
            at.curve((0.04, -0.2), (-0.06, -0.3), (0.14, -0.34), (0.04, -0.44)),
            at.stroke(colour, 0.05),
        ),
    ]


def _good_cup(at: _At, colour: str) -> Items:
    """The same cup, with a cross on it."""
    cross = at.stroke(_WHITE, 0.08)
    return [
        *_cup(at, colour),
        Shape(at.line((-0.08, 0.0), (-0.08, 0.24)), cross),
        Shape(at.line((-0.2, 0.12), (0.04, 0.12)), cross),
    ]


def _envelope(at: _At, colour: str) -> Items:
    line = at.stroke(colour, 0.06)
    return [
        Shape(at.box(0.0, 0.0, 0.82, 0.56), Look(_WHITE, colour, line.width)),
        Shape(at.line((-0.41, -0.28), (0.0, 0.06), (0.41, -0.28)), line),
    ]


def _briefcase(at: _At, colour: str) -> Items:
    band = at.stroke(_WHITE, 0.05)
    return [
        Shape(at.box(0.0, -0.27, 0.32, 0.2, 0.05), at.stroke(colour)),
        Shape(at.box(0.0, 0.08, 0.82, 0.56, 0.07), Look(fill=colour)),
        Shape(at.line((-0.41, 0.06), (0.41, 0.06)), band),
        Shape(at.box(0.0, 0.08, 0.1, 0.12), Look(fill=_WHITE)),
    ]


def _plant(at: _At, colour: str) -> Items:
    """Three leaves in a pot."""
    pot = at.line((-0.2, 0.14), (0.2, 0.14), (0.14, 0.42), (-0.14, 0.42), closed=True)
    leaves = (
        ((0.0, 0.14), (-0.16, -0.1), (-0.1, -0.34), (0.0, -0.46)),
        ((0.0, 0.14), (0.16, -0.1), (0.1, -0.34), (0.0, -0.46)),
        ((0.0, 0.14), (-0.1, -0.12), (-0.28, -0.2), (-0.42, -0.18)),
        ((0.0, 0.14), (-0.22, 0.16), (-0.36, 0.0), (-0.42, -0.18)),
        ((0.0, 0.14), (0.1, -0.12), (0.28, -0.2), (0.42, -0.18)),
        ((0.0, 0.14), (0.22, 0.16), (0.36, 0.0), (0.42, -0.18)),
    )
    return [
        *(Shape(at.curve(*leaf), Look(fill=colour)) for leaf in leaves),
        Shape(pot, Look(fill=INK)),
    ]


def _hole(at: _At, colour: str) -> Items:
    """A dark pool with a lit rim."""
    return [
        Shape(at.round(0.0, 0.02, 0.42, 0.32), Look(colour, INK, 0.03 * at.size)),
        Shape(
            at.curve((-0.3, 0.02), (-0.24, -0.22), (0.24, -0.22), (0.3, 0.02)),
            at.stroke(_WHITE, 0.04),
        ),
    ]


_SIGNS: dict[str, Callable[[_At, str], Items]] = {
    "coffee": _cup,
    "good_coffee": _good_cup,
    "mail": _envelope,
    "office": _briefcase,
    "decoration": _plant,
    "hole": _hole,
}
