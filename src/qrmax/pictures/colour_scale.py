"""Colours for numbers, on a logarithmic or a linear scale, and their key.

The colours run from a light yellow to a dark blue, evenly darker, so that they are told apart
without colour vision and in greyscale. Discounted values span many orders of magnitude, so theirs
is a logarithmic scale; numbers of both signs, or within one order of magnitude, get a linear one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrmax.pictures.composition import Items
from qrmax.pictures.drawing import Font, Look, Point, Shape, Text, rectangle

LEVELS = 32
NONE = "#f1f1ee"  # of a cell without a number
DARK = 0.55  # from this level on, ink on it is white
FEWEST_DECADES = 1.0  # of a logarithmic scale
MOST_TICKS = 6

# from light to dark, with even steps in lightness (CIELAB L* from 96 to 26)
_ANCHORS = (
    (252, 246, 209),
    (214, 226, 162),
    (150, 203, 157),
    (88, 175, 165),
    (54, 139, 164),
    (49, 100, 147),
    (41, 60, 110),
)
_LABEL = Font(11.0, "#334e68")


@dataclass(frozen=True)
class ColourScale:
    """A map from numbers to colours.

    >>> scale = ColourScale.of([1e-6, 1e-3, 1.0])
    >>> scale.logarithmic, scale.colour(1.0), scale.colour(float("nan")) == NONE
    (True, '#293c6e', True)
    >>> scale.ticks()
    [1e-06, 1e-05, 0.0001, 0.001, 0.01, 0.1, 1.0]
    """

    low: float
    high: float
    logarithmic: bool

    @staticmethod
    def of(numbers: ArrayLike) -> ColourScale:
        """The scale that suits numbers; those that are not finite, and zeros, do not count."""
        found = np.asarray(numbers, dtype=np.float64)
        found = found[np.isfinite(found) & (found != 0.0)]
        if not found.size:
            return ColourScale(0.0, 1.0, logarithmic=False)
        low, high = float(found.min()), float(found.max())
        if low > 0.0 and math.log10(high / low) >= FEWEST_DECADES:
            return ColourScale(low, high, logarithmic=True)
        return ColourScale(min(low, 0.0), max(high, 0.0), logarithmic=False)

    def levels(self, numbers: ArrayLike) -> NDArray[np.int64]:
        """The level of each number, from 0 to LEVELS - 1; -1 if it has no colour."""
        given = np.asarray(numbers, dtype=np.float64)
        shown = np.isfinite(given) & ((given > 0.0) | (not self.logarithmic))
        within = np.where(shown, given, self.high)
        if self.logarithmic:
            share = np.log(within / self.low) / math.log(self.high / self.low)
        else:
            share = (within - self.low) / ((self.high - self.low) or 1.0)
        level = np.clip(np.rint(share * (LEVELS - 1)), 0, LEVELS - 1).astype(np.int64)
        return np.where(shown, level, -1)

    def colour(self, number: float) -> str:
        """The colour of a number."""
        return level_colour(int(self.levels(number)))

    def ticks(self) -> list[float]:
        """The numbers that the key names."""
        if not self.logarithmic:
            return [self.low, (self.low + self.high) / 2, self.high]
        first, last = (
            math.ceil(math.log10(self.low) - 1e-9),
            math.floor(math.log10(self.high) + 1e-9),
        )
        step = max(1, math.ceil((last - first) / MOST_TICKS))
        decades = [10.0**power for power in range(first, last + 1, step)]
        return decades if len(decades) > 1 else [self.low, self.high]

    def key(self, at: Point, width: float, name: str) -> Items:
        """The key of the scale, `width` wide and 40 high: a bar with ticks, and its name."""
        step = width / LEVELS
        items: Items = [Text(Point(at.x, at.y + 9.0), name, _LABEL, "start", "key")]
        for level in range(LEVELS):
            middle = Point(at.x + (level + 0.5) * step, at.y + 19.0)
            look = Look(fill=level_colour(level))
            items.append(Shape(rectangle(middle, step + 0.3, 10.0), look, "key"))
        for tick in self.ticks():
            x = at.x + width * self._share(tick)
            items.append(Text(Point(x, at.y + 37.0), self._name(tick), _LABEL, "middle", "key"))
        return items

    def _name(self, tick: float) -> str:
        """A tick as text: powers of ten, if numbers are small or large."""
        if self.logarithmic and (self.low < 1e-3 or self.high >= 1e5) and tick != 1.0:
            power = math.log10(tick)
            return f"1e{round(power)}" if abs(power - round(power)) < 1e-9 else f"{tick:.1e}"
        return f"{tick:.3g}" if abs(tick) < 1e3 else f"{tick:,.0f}"

    def _share(self, number: float) -> float:
        if self.logarithmic:
            return math.log(number / self.low) / math.log(self.high / self.low)
        return (number - self.low) / ((self.high - self.low) or 1.0)


def level_colour(level: int) -> str:
    """The colour of a level; -1 is that of no number."""
    if level < 0:
        return NONE
    at = level / (LEVELS - 1) * (len(_ANCHORS) - 1)
    first = min(int(at), len(_ANCHORS) - 2)
    parts = (
        round(a + (at - first) * (b - a))
        for a, b in zip(_ANCHORS[first], _ANCHORS[first + 1], strict=True)
    )
    return "#" + "".join(f"{part:02x}" for part in parts)


def is_dark(level: int) -> bool:
    """Whether ink on the colour of a level is white."""
    return level >= DARK * (LEVELS - 1)
