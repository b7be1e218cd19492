"""Arrangements of pictures: beside each other, or in a grid with a title.

>>> from qrmax.pictures.drawing import Picture, Point, Text
>>> one = Picture("one", 0.0, 0.0, 30.0, 20.0, (Text(Point(5.0, 10.0), "one"),))
>>> both = beside(one, one, title="both", gap=10.0)
>>> both.width, both.height, [item.at.x for item in both.items]
(70.0, 20.0, [5.0, 45.0])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qrmax.pictures.drawing import Outline, Picture, Point, Segment, Shape, Text

Items = list[Shape | Text]

GAP = 24.0


def moved(items: Iterable[Shape | Text], across: float, down: float) -> Items:
    """The same shapes and texts elsewhere."""
    return [
        item._replace(outline=_moved(item.outline, across, down))
        if isinstance(item, Shape)
        else item._replace(at=Point(item.at.x + across, item.at.y + down))
        for item in items
    ]


def beside(*pictures: Picture, title: str, gap: float = GAP) -> Picture:
    """Pictures side by side, the first from the top, the others in the middle of its height."""
    height = max(picture.height for picture in pictures)
    items, x = Items(), 0.0
    for number, picture in enumerate(pictures):
        y = (height - picture.height) / 2 if number else 0.0
        items += moved(picture.items, x - picture.left, y - picture.top)
        x += picture.width + gap
    return Picture(title, 0.0, 0.0, x - gap, height, tuple(items))


def below(*pictures: Picture, title: str, gap: float = 0.0) -> Picture:
    """Pictures below each other, from the left."""
    items, y = Items(), 0.0
    for picture in pictures:
        items += moved(picture.items, -picture.left, y - picture.top)
        y += picture.height + gap
    width = max(picture.width for picture in pictures)
    return Picture(title, 0.0, 0.0, width, y - gap, tuple(items))


def in_grid(pictures: Sequence[Picture], columns: int, *, title: str, gap: float = GAP) -> Picture:
    """Pictures in rows of `columns`, each column as wide as its widest picture."""
    rows = [pictures[first : first + columns] for first in range(0, len(pictures), columns)]
    widths = [
        max(row[column].width for row in rows if column < len(row))
        for column in range(min(columns, len(pictures)))
    ]
    items, y = Items(), 0.0
    for row in rows:
        x = 0.0
        for picture, width in zip(row, widths, strict=False):
            items += moved(picture.items, x - picture.left, y - picture.top)
            x += width + gap
        y += max(picture.height for picture in row) + gap
    width = sum(widths) + gap * (len(widths) - 1)
    return Picture(title, 0.0, 0.0, width, y - gap, tuple(items))


def _moved(outline: Outline, across: float, down: float) -> Outline:
    return tuple(
        Segment(command, tuple(Point(x + across, y + down) for x, y in points))
        for command, points in outline
    )
