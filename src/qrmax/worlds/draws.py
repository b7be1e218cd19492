"""Random choices of the generators of problems, made of uniform numbers alone.

NumPy keeps the uniform numbers of a bit generator the same from version to version, and promises no
such thing of permutations and integers. So the problem of a seed stays the same for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from qrmax.seeding import stream

Item = TypeVar("Item")


class Draws:
    """The random choices of one purpose, determined by a seed and the name of the purpose.

    >>> draws = Draws(17, "an example")
    >>> draws.shuffled("abc") == Draws(17, "an example").shuffled("abc")
    True
    """

    def __init__(self, seed: int, name: str) -> None:
        self._stream = stream(seed, name)

    def number(self) -> float:
        """A number in [0, 1)."""
        return self._stream.random()

    def happens(self, probability: float) -> bool:
        """Whether an event of this probability happens."""
        return self.number() < probability

    def integer(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self.number() * (high - low + 1))

    def one_of(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return items[self.integer(0, len(items) - 1)]

    def some_of(self, items: Sequence[Item], count: int) -> list[Item]:
        """Different items, in random order; all of them if there are no more than `count`."""
        moved: dict[int, int] = {}  # the items that are no longer in their own place
        chosen = []
        for place in range(min(count, len(items))):
            other = self.integer(place, len(items) - 1)
            chosen.append(items[moved.get(other, other)])
            moved[other] = moved.get(place, place)
        return chosen

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """All items in random order."""
        return self.some_of(items, len(items))
