"""Named random streams: every use of chance in a run has its own, and a name.

The stream of a name depends on the seed and the name alone: not on which other streams there are,
in which order they are made, or on which machine. A stream is a sequence of numbers in [0, 1),
those of NumPy's PCG64, and a place in it:

    >>> stream(7, "world").random() == stream(7, "world").random()
    True
    >>> stream(7, "world").random() == stream(7, "agent").random()
    False

Numbers are drawn ahead in blocks, so that compiled loops can take them from an array.
"""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import ParameterError, shown

BLOCK = 32_768
PER_STEP = 4
"""More than any step of an episode takes from one stream."""


class Chance(Protocol):
    """Where random numbers come from: a `Stream`, or a generator of NumPy's."""

    def random(self) -> float:
        """The next number in [0, 1)."""
        ...


class Stream:
    """A sequence of random numbers in [0, 1), and a place in it."""

    def __init__(self, origin: np.random.PCG64) -> None:
        self._origin = origin.state
        self._bits = origin
        self._drawn = 0  # how many numbers have gone through the block
        self.block: NDArray[np.float64] = np.empty(0)
        self.at: NDArray[np.int64] = np.zeros(1, dtype=np.int64)  # compiled loops write here, too

    def random(self) -> float:
        """The next number in [0, 1)."""
        at = self.at.item()
        if at == len(self.block):
            self.refill(1)
            at = self.at.item()
        self.at[0] = at + 1
        return self.block.item(at)

    def apart(self, name: str) -> np.random.Generator:
        """A generator for something else, settled by where this stream stands; it stays there."""
        digest = hashlib.sha256(f"{name} {self.position()}".encode()).digest()
        return np.random.default_rng(np.frombuffer(digest[:16], dtype="<u4").tolist())

    def refill(self, needed: int = PER_STEP) -> None:
        """See to it that the block has so many numbers ahead."""
        left = self.block[self.at[0] :]
        if len(left) < needed:
            fresh = np.random.Generator(self._bits).random(BLOCK)
            self.block = np.concatenate([left, fresh])
            self.at[0] = 0
            self._drawn += BLOCK

    def position(self) -> dict[str, Any]:
        """Where the stream stands, as plain data that JSON can hold."""
        bits = np.random.PCG64(0)
        bits.state = self._origin
        bits.advance(self._drawn - (len(self.block) - int(self.at[0])))
        return dict(bits.state)


def check_seed(seed: int) -> None:
    """Raise a `ParameterError` unless this is a seed."""
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ParameterError(f"seed is {shown(seed)}; allowed: whole numbers from 0 on")


def stream(seed: int, name: str) -> Stream:
    """The random stream of this name, from its beginning."""
    check_seed(seed)
    digest = hashlib.sha256(name.encode()).digest()
    words = np.frombuffer(digest[:16], dtype="<u4").tolist()
    return Stream(np.random.PCG64(np.random.SeedSequence([int(seed), *words])))


def stream_at(position: dict[str, Any]) -> Stream:
    """The stream that stands there.

    >>> first = stream(7, "world")
    >>> numbers = [first.random() for _ in range(10)]
    >>> second = stream_at(first.position())
    >>> first.random() == second.random()
    True
    """
    bits = np.random.PCG64(0)
    try:
        bits.state = position  # type: ignore[assignment]  # NumPy checks most of it
    except (KeyError, TypeError, ValueError, OverflowError) as problem:
        raise ParameterError(f"no position of a random stream: {str(position)[:80]}") from problem
    if bits.state != position:  # a fraction, say, which NumPy rounds
        raise ParameterError(f"no position of a random stream: {str(position)[:80]}")
    return Stream(bits)
