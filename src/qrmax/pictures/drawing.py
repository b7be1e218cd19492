"""Drawings of shapes and texts, independent of the file format.

A `Picture` is a list of `Shape`s (lines and Bezier curves, filled or stroked) and `Text`s, painted
in order. The y axis points down and a unit is a CSS pixel. `Picture.svg` is written here, PNG and
PDF by `rendering`; all three show the same.

>>> box = Shape(rectangle(Point(20.0, 10.0), 30.0, 12.0), Look(fill="#ffffff", stroke="#000000"))
>>> picture = Picture("a box", 0.0, 0.0, 40.0, 20.0, (box, Text(Point(20.0, 14.0), "hello")))
>>> picture.svg().partition(" ")[0]
'<svg'
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import NamedTuple, TypeAlias

from qrmax.errors import UnknownNameError
from qrmax.source import write_whole

FORMATS = ("svg", "png", "pdf")
"""The formats of pictures, which are also the suffixes of their files."""

SANS = 'ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif'
MONOSPACED = 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace'

_ROUND = 0.5522847498  # distance of a quarter circle's control points from its ends


class Point(NamedTuple):
    """A point in a picture."""

    x: float
    y: float


class Segment(NamedTuple):
    """A part of an outline, in SVG's letters: M(ove), L(ine), C(urve) or Z (close)."""

    command: str
    points: tuple[Point, ...] = ()


Outline: TypeAlias = tuple[Segment, ...]


class Look(NamedTuple):
    """Fill and stroke of a shape."""

    fill: str = "none"
    stroke: str = "none"
    width: float = 1.0
    dashes: tuple[float, ...] = ()


class Shape(NamedTuple):
    """An outline with its look; `kind` becomes the class of the SVG element."""

    outline: Outline
    look: Look
    kind: str = ""


class Font(NamedTuple):
    """Size, colour and style of a text."""

    size: float = 12.0
    colour: str = "#1f2933"
    bold: bool = False
    monospaced: bool = False


class Text(NamedTuple):
    """One line of text; `at` is on its baseline, at its `anchor`: start, middle or end."""

    at: Point
    text: str
    font: Font = Font()
    anchor: str = "middle"
    kind: str = ""


@dataclass(frozen=True)
class Picture:
    """Shapes and texts on a white page, with the upper left corner at (left, top)."""

    title: str
    left: float
    top: float
    width: float
    height: float
    items: tuple[Shape | Text, ...]

    def svg(self) -> str:
        """The picture as the text of an SVG file."""
        box = f"{self.left:.1f} {self.top:.1f} {self.width:.1f} {self.height:.1f}"
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:.0f}" '
                f'height="{self.height:.0f}" viewBox="{box}" role="img">',
                f"<title>{escape(printable(self.title))}</title>",
                f'<rect x="{self.left:.1f}" y="{self.top:.1f}" width="{self.width:.1f}" '
                f'height="{self.height:.1f}" fill="#ffffff"/>',
                *(_shape(item) if isinstance(item, Shape) else _text(item) for item in self.items),
                "</svg>\n",
            ]
        )

    def data(self, kind: str) -> bytes:
        """The picture as the bytes of a file in one of the `FORMATS`."""
        if kind not in FORMATS:
            raise UnknownNameError("picture format", kind, FORMATS)
        if kind == "svg":
            return self.svg().encode()
        from qrmax.pictures.rendering import rendered  # matplotlib takes a second to import

        return rendered(self, kind)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file, atomically, in the format of its suffix."""
        write_whole(path, self.data(Path(path).suffix.lower().removeprefix(".")))

    def _repr_svg_(self) -> str:
        """The picture in a notebook."""
        return self.svg()


def polyline(*points: Point, closed: bool = False) -> Outline:
    """Straight lines from point to point."""
    lines = [Segment("M", points[:1]), *(Segment("L", (point,)) for point in points[1:])]
    return (*lines, Segment("Z")) if closed else tuple(lines)


def rectangle(middle: Point, width: float, height: float, corner: float = 0.0) -> Outline:
    """A rectangle around a point, with rounded corners if `corner` is their radius."""
    left, right = middle.x - width / 2, middle.x + width / 2
    top, bottom = middle.y - height / 2, middle.y + height / 2
    if not corner:
        corners = Point(left, top), Point(right, top), Point(right, bottom), Point(left, bottom)
        return polyline(*corners, closed=True)
    outline: list[Segment] = []
    turns = (
        (right, top, -1, 1),
        (right, bottom, -1, -1),
        (left, bottom, 1, -1),
        (left, top, 1, 1),
    )
    for x, y, across, down in turns:  # clockwise; which way leads into the box
        along_x = [Point(x + across * corner * part, y) for part in (1.0, 1.0 - _ROUND)]
        along_y = [Point(x, y + down * corner * part) for part in (1.0, 1.0 - _ROUND)]
        first, last = (along_x, along_y) if across * down < 0 else (along_y, along_x)
        outline.append(Segment("L" if outline else "M", (first[0],)))
        outline.append(Segment("C", (first[1], last[1], last[0])))
    return (*outline, Segment("Z"))


def ellipse(middle: Point, across: float, down: float) -> Outline:
    """An ellipse around a point with these half-axes."""
    x, y = middle
    a, b = across * _ROUND, down * _ROUND
    return (
        Segment("M", (Point(x + across, y),)),
        Segment("C", (Point(x + across, y + b), Point(x + a, y + down), Point(x, y + down))),
        Segment("C", (Point(x - a, y + down), Point(x - across, y + b), Point(x - across, y))),
        Segment("C", (Point(x - across, y - b), Point(x - a, y - down), Point(x, y - down))),
        Segment("C", (Point(x + a, y - down), Point(x + across, y - b), Point(x + across, y))),
        Segment("Z"),
    )


def disc(middle: Point, radius: float) -> Outline:
    """A circle around a point."""
    return ellipse(middle, radius, radius)


def arrow_head(tip: Point, behind: Point, size: float = 8.0) -> Outline:
    """A triangle with this tip, pointing away from `behind`."""
    length = math.hypot(tip.x - behind.x, tip.y - behind.y) or 1.0
    along = Point((tip.x - behind.x) / length, (tip.y - behind.y) / length)
    base = Point(tip.x - size * along.x, tip.y - size * along.y)
    half = 0.44 * size
    one = Point(base.x - half * along.y, base.y + half * along.x)
    other = Point(base.x + half * along.y, base.y - half * along.x)
    return polyline(tip, one, other, closed=True)


def printable(text: str) -> str:
    """The text on one line, without the characters that XML does not allow."""
    return "".join(c if c.isprintable() else " " for c in text)


def _shape(shape: Shape) -> str:
    look = shape.look
    stroke = f' stroke="{look.stroke}" stroke-width="{look.width:g}"' * (look.stroke != "none")
    if look.stroke != "none":
        stroke += ' stroke-linecap="round" stroke-linejoin="round"'
    if look.dashes:
        stroke += f' stroke-dasharray="{" ".join(f"{part:g}" for part in look.dashes)}"'
    path = " ".join(
        part.command + " ".join(f"{_short(p.x)} {_short(p.y)}" for p in part.points)
        for part in shape.outline
    )
    return f'<path{_class(shape.kind)} d="{path}" fill="{look.fill}"{stroke}/>'


def _text(text: Text) -> str:
    font = text.font
    family = escape(MONOSPACED if font.monospaced else SANS)
    weight = ' font-weight="600"' if font.bold else ""
    anchor = f' text-anchor="{text.anchor}"' if text.anchor != "start" else ""
    return (
        f'<text{_class(text.kind)} x="{_short(text.at.x)}" y="{_short(text.at.y)}" '
        f'font-family="{family}" font-size="{font.size:g}"{weight}{anchor} '
        f'fill="{font.colour}">{escape(printable(text.text))}</text>'
    )


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _short(number: float) -> str:
    """A coordinate to a tenth of a pixel."""
    return f"{number:.1f}".removesuffix(".0")
