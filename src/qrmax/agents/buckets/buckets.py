"""Buckets: real-valued observations as numbered states, in the order of first visits.

A bucket is all observations with the same key (see `simhash.py`), and, if buckets are
`event_aware`, the same label: a bucket that straddles the border of a labelled region would make
the machine look stochastic. The first key observed is bucket 0, the next new one bucket 1, and so
on; numbers never change. Compiled loops look keys up in a hash table with open addressing; new ones
are entered here only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrmax.agents.buckets.simhash import Projection, words_of, words_of_all
from qrmax.empirical.growth import padded
from qrmax.errors import ModelError, ParameterError
from qrmax.problems.observations import Observations, Scaling

NOTHING = -1
MIXER = 0x45D9F3B  # odd, of 27 bits
FAR = 1e9  # far above any coefficient of a hyperplane; compiled code rounds to integers
AT_ONCE = 2**20  # numbers to encode together
FIRST = 64
"""The initial capacity, in buckets; it doubles when it is used up."""


class Lookup(NamedTuple):
    """Everything that is needed to find a bucket, for compiled code."""

    scaling: Scaling
    projection: Projection
    event_aware: bool
    keys: NDArray[np.int64]  # [bucket, word]
    slots: NDArray[np.int32]  # a bucket or NOTHING, by the hash of its key
    seen: NDArray[np.float64]  # [d]: room for an observation, normalised
    key: NDArray[np.int64]  # [word]: and for its key


class Buckets:
    """The buckets observed so far.

    >>> from qrmax.agents.buckets.simhash import uniform_grid
    >>> buckets = Buckets(Observations([0.0], [1.0]), uniform_grid(1, cells=10))
    >>> [buckets.number([x], label=0) for x in (0.55, 0.12, 0.59)]
    [0, 1, 0]
    """

    def __init__(
        self, observations: Observations, projection: Projection, *, event_aware: bool = False
    ) -> None:
        self.observations = observations
        self.projection = projection
        self.event_aware = event_aware
        self._index: dict[tuple[int, ...], int] = {}
        self._keys = np.zeros((FIRST, projection.words), dtype=np.int64)
        self._slots = np.full(4 * FIRST, NOTHING, dtype=np.int32)

    def __len__(self) -> int:
        return len(self._index)

    def number(self, observation: Any, label: int) -> int:
        """The bucket of an observation; a new one if there is none."""
        key = self._key(observation, label)
        number = self._index.get(key)
        return self._enter(key) if number is None else number

    def find(self, observation: Any, label: int) -> int | None:
        """The bucket of an observation; None if there is none."""
        return self._index.get(self._key(observation, label))

    def find_all(self, observations: ArrayLike, labels: ArrayLike) -> NDArray[np.int64]:
        """The buckets of many observations `[n, d]` with labels `[n]`; NOTHING if there is none.

        >>> from qrmax.agents.buckets.simhash import uniform_grid
        >>> buckets = Buckets(Observations([0.0], [1.0]), uniform_grid(1, cells=10))
        >>> buckets.number([0.55], label=0)
        0
        >>> buckets.find_all([[0.59], [0.12]], labels=[0, 0]).tolist()
        [0, -1]
        """
        keys = self._all_keys(observations, labels)
        return np.array([self._index.get(key, NOTHING) for key in keys], dtype=np.int64)

    def number_all(self, observations: ArrayLike, labels: ArrayLike) -> NDArray[np.int64]:
        """The buckets of many observations `[n, d]` with labels `[n]`: the `number` of each.

        >>> from qrmax.agents.buckets.simhash import uniform_grid
        >>> buckets = Buckets(Observations([0.0], [1.0]), uniform_grid(1, cells=10))
        >>> buckets.number_all([[0.59], [0.12], [0.55]], labels=[0, 0, 0]).tolist()
        [0, 1, 0]
        """
        numbers = []
        for key in self._all_keys(observations, labels):
            number = self._index.get(key)
            numbers.append(self._enter(key) if number is None else number)
        return np.array(numbers, dtype=np.int64)

    def lookup(self) -> Lookup:
        """The buckets, for compiled code."""
        return Lookup(
            self.observations.scaling,
            self.projection,
            self.event_aware,
            self._keys,
            self._slots,
            seen=np.empty(self.observations.dimension),
            key=np.empty(self.projection.words, dtype=np.int64),
        )

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The hyperplanes, and the keys in the order of their numbers."""
        return {"rows": self.projection.rows.copy(), "keys": self._keys[: len(self)].copy()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a snapshot."""
        rows, keys = arrays["rows"], arrays["keys"]
        if rows.shape != self.projection.rows.shape or keys.shape[1:] != self._keys.shape[1:]:
            raise ModelError(f"shapes of hyperplanes {rows.shape} and keys {keys.shape} do not fit")
        if not (np.abs(rows) < FAR).all():
            raise ModelError("a hyperplane has a coefficient that is not finite, or too large")
        if len(np.unique(keys, axis=0)) != len(keys):
            raise ModelError("a bucket is listed twice")
        self.projection = self.projection._replace(rows=rows.copy())
        self._index = {}
        self._slots = np.full(4 * FIRST, NOTHING, dtype=np.int32)
        for key in keys.tolist():
            self._enter(tuple(key))

    def _all_keys(self, observations: ArrayLike, labels: ArrayLike) -> Iterator[tuple[int, ...]]:
        """The keys of many observations, computed in batches."""
        seen = self.observations.normalise_all(observations)
        read = np.asarray(labels, dtype=np.int64) * self.event_aware
        if read.shape != (len(seen),):
            raise ParameterError(
                f"labels have shape {read.shape}; needed: one for each of {len(seen)} observations"
            )
        stretch = max(1, AT_ONCE // len(self.projection.rows))
        for begin in range(0, len(seen), stretch):
            part = slice(begin, begin + stretch)
            yield from map(tuple, words_of_all(self.projection, seen[part], read[part]).tolist())

    def _key(self, observation: Any, label: int) -> tuple[int, ...]:
        x = self.observations.normalise(observation)
        return tuple(words_of(self.projection, x, label if self.event_aware else 0))

    def _enter(self, key: tuple[int, ...]) -> int:
        number = self._index[key] = len(self._index)
        if number == len(self._keys):
            self._keys = padded(self._keys, 2 * number)
        self._keys[number] = key
        if 2 * len(self) > len(self._slots):  # at most half full, or chains get long
            self._slots = np.full(4 * len(self._slots), NOTHING, dtype=np.int32)
            for other, known in enumerate(self._index):
                self._place(known, other)
        else:
            self._place(key, number)
        return number

    def _place(self, key: tuple[int, ...], number: int) -> None:
        slot = hash_of(key) & (len(self._slots) - 1)
        while self._slots[slot] != NOTHING:
            slot = (slot + 1) & (len(self._slots) - 1)
        self._slots[slot] = number


def hash_of(words: tuple[int, ...]) -> int:
    """A 32-bit hash of a key (as in step_loops.py).

    No product has more than 63 bits: compiled code and plain Python compute the same.
    """
    number = 0
    for word in words:
        number = (number ^ word) * MIXER
        number = (number ^ (number >> 31)) & 0xFFFFFFFF
    return number
