"""Finite observations as numbers, for learners that keep tables.

Spaces are recognised by the names of their classes (Discrete, MultiDiscrete, MultiBinary, and Tuple
or Dict of such), so that Gymnasium is not imported here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qrmax.errors import ParameterError

MOST_STATES = 2**31 - 1


class Numbering:
    """A one-to-one map between the elements of a finite space and 0, 1, ..., size - 1.

    >>> from gymnasium.spaces import Discrete, Tuple
    >>> numbering = Numbering(Tuple([Discrete(3), Discrete(4, start=1)]))
    >>> numbering.size
    12
    >>> numbering.number((2, 1)), numbering.element(8)
    (8, (2, 1))
    """

    def __init__(self, space: Any) -> None:
        self.space = space
        self.digits = _digits(space)  # the sizes of the parts, most significant first
        self._start = int(space.start) if _kind(space) == "Discrete" else None  # the common case
        self.size = 1
        for size in self.digits:
            self.size *= size
        if self.size > MOST_STATES:
            raise ParameterError(
                f"observations {str(space)[:80]} have {self.size} values; tables hold at most "
                f"{MOST_STATES}: leave out what the task does not need"
            )

    def number(self, element: Any) -> int:
        """The number of an element of the space."""
        if self._start is not None:
            number = int(element) - self._start
            if not 0 <= number < self.size:
                raise ParameterError(f"observation {element!r} is not in {self.space}")
            return number
        total = 0
        for digit, size in zip(_values(self.space, element), self.digits, strict=True):
            if not 0 <= digit < size:
                raise ParameterError(f"observation {element!r} is not in {self.space}")
            total = total * size + digit
        return total

    def element(self, number: int) -> Any:
        """The element of the space with this number."""
        digits = []
        for size in reversed(self.digits):
            number, digit = divmod(number, size)
            digits.append(digit)
        return _assemble(self.space, digits)  # least significant first: taken from the end


def _kind(space: Any) -> str:
    return type(space).__name__


def _parts(space: Any) -> list[Any]:
    """The subspaces of a Tuple or a Dict, in order."""
    return list(space.spaces.values()) if _kind(space) == "Dict" else list(space.spaces)


def _digits(space: Any) -> list[int]:
    match _kind(space):
        case "Discrete":
            return [int(space.n)]
        case "MultiDiscrete":
            return [int(size) for size in space.nvec.ravel()]
        case "MultiBinary":
            return [2] * int(np.prod(space.shape))
        case "Tuple" | "Dict":
            return [size for part in _parts(space) for size in _digits(part)]
        case _:
            raise ParameterError(
                f"observations are a {_kind(space)} space, which no table can hold; use an agent "
                "that puts them into buckets, such as 'bucket-qrmax', or make them Discrete with "
                "gymnasium.wrappers.TransformObservation, for instance by rounding to a grid"
            )


def _values(space: Any, element: Any) -> list[int]:
    """The digits of an element, each from 0 on."""
    match _kind(space):
        case "Discrete":
            return [int(element) - int(space.start)]
        case "MultiDiscrete":
            return [int(x) for x in (np.asarray(element) - space.start).ravel()]
        case "MultiBinary":
            return [int(x) for x in np.asarray(element).ravel()]
        case "Dict":
            pairs = [(space.spaces[key], element[key]) for key in space.spaces]
        case _:
            pairs = list(zip(space.spaces, element, strict=True))
    return [digit for part, value in pairs for digit in _values(part, value)]


def _assemble(space: Any, digits: list[int]) -> Any:
    """The element made of the digits at the end of the list, which are taken from it."""
    match _kind(space):
        case "Discrete":
            return digits.pop() + int(space.start)
        case "MultiDiscrete" | "MultiBinary":
            taken = [digits.pop() for _ in range(int(np.prod(space.shape)))]
            values = np.array(taken, dtype=space.dtype).reshape(space.shape)
            return values + space.start if _kind(space) == "MultiDiscrete" else values
        case "Dict":
            return {key: _assemble(part, digits) for key, part in space.spaces.items()}
        case _:
            return tuple(_assemble(part, digits) for part in space.spaces)
