"""Named random streams: one for each source of randomness in a run.

A stream is determined by the seed and its name alone: not by other streams, the order of their
creation, or the computer. A stream is the sequence of uniform numbers in [0, 1) of NumPy's PCG64,
and a position in it:

    >>> stream(7, "world").random() == stream(7, "world").random()
    True
    >>> stream(7, "world").random() == stream(7, "agent").random()
    False

Numbers are generated in blocks, so that compiled loops can read them from an array.
"""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import ParameterError, shown

BLOCK = 32_768
PER_STEP = 8
"""An upper bound on the numbers that one environment step takes from a stream."""


class Chance(Protocol):
    """A source of uniform random numbers: a `Stream`, or a NumPy generator."""

    def random(self) -> float:
        """The next number in [0, 1)."""
        ...


class Stream:
    """A sequence of uniform random numbers in [0, 1), and a position in it."""

    def __init__(self, origin: np.random.PCG64) -> None:
        self._origin = origin.state
        self._bits = origin
        self._drawn = 0  # numbers generated so far
        self.block: NDArray[np.float64] = np.empty(0)
        self.at: NDArray[np.int64] = np.zeros(1, dtype=np.int64)  # also advanced by compiled loops

    def random(self) -> float:
        """The next number in [0, 1)."""
        at = self.at.item()
        if at == len(self.block):
            self.refill(1)
            at = self.at.item()
        self.at[0] = at + 1
        return self.block.item(at)

    def take(self, count: int) -> NDArray[np.float64]:
        """The next numbers, as many as that."""
        taken = np.empty(count)
        filled = 0
        while filled < count:
            self.refill(1)
            at = self.at.item()
            part = self.block[at : at + count - filled]
            taken[filled : filled + len(part)] = part
            self.at[0] = at + len(part)
            filled += len(part)
        return taken

    def apart(self, name: str) -> np.random.Generator:
        """A generator derived from the name and this stream's position, which stays the same."""
        digest = hashlib.sha256(f"{name} {self.position()}".encode()).digest()
        return np.random.default_rng(np.frombuffer(digest[:16], dtype="<u4").tolist())

    def refill(self, needed: int = PER_STEP) -> None:
        """Make at least `needed` numbers available in the block."""
        left = self.block[self.at[0] :]
        if len(left) < needed:
            fresh = np.random.Generator(self._bits).random(BLOCK)
            self.block = np.concatenate([left, fresh])
            self.at[0] = 0
            self._drawn += BLOCK

    def position(self) -> dict[str, Any]:
        """The position of the stream, as JSON-serialisable data."""
        bits = np.random.PCG64(0)
        bits.state = self._origin
        bits.advance(self._drawn - (len(self.block) - int(self.at[0])))
        return dict(bits.state)


def check_seed(seed: int) -> None:
    """Raise a `ParameterError` unless this is a valid seed."""
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ParameterError(f"seed is {shown(seed)}; allowed: whole numbers from 0 on")


def stream(seed: int, name: str) -> Stream:
    """The random stream of this seed and name, at its beginning."""
    check_seed(seed)
    digest = hashlib.sha256(name.encode()).digest()
    words = np.frombuffer(digest[:16], dtype="<u4").tolist()
    return Stream(np.random.PCG64(np.random.SeedSequence([int(seed), *words])))


def stream_at(position: dict[str, Any]) -> Stream:
    """The stream at a saved position.

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
        raise ParameterError(
            f"not a position of a random stream: {str(position)[:80]}"
        ) from problem
    if bits.state != position:  # such as a fraction, which NumPy rounds
        raise ParameterError(f"not a position of a random stream: {str(position)[:80]}")
    return Stream(bits)
