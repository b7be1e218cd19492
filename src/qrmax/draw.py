"""How chance chooses, everywhere: environments, machines, and compiled code that must agree."""

from __future__ import annotations

from collections.abc import Iterable


def draw(weights: Iterable[float], u: float) -> int:
    """The index that `u`, a number in [0, 1), draws from probabilities.

    They are taken off `u` in order, and the first possible one to bring it below 0 is drawn. Where
    rounding leaves something of `u`, it is the last possible one: never one of probability 0.

    >>> [draw([0.5, 0.0, 0.5], u) for u in (0.0, 0.49, 0.5, 0.99)]
    [0, 0, 2, 2]
    """
    last = 0
    for index, weight in enumerate(weights):
        if weight > 0.0:
            u -= weight
            last = index
            if u < 0.0:
                break
    return last
