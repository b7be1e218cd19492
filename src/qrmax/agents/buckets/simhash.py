"""SimHash (Charikar, 2002): observations that are near one another mostly get the same bits.

    h_l(x)   d_h bits: on which side of each of d_h random hyperplanes x lies       l = 1 ... L
    h(x)     (h_1(x), ..., h_L(x)): the bucket, one of at most 2^(L d_h)

Hyperplanes through the origin would cut a plane into angular sectors only. So x is normalised to
[-1, 1]^d first, and every hyperplane w . x + b = 0 has an offset: w is standard normal, b is normal
with standard deviation `offset`. m = L d_h of them cut a plane into about m^2 / 2 cells, of which
about a third are within reach where `offset` is 1.

What encodes is a `Projection`: each of its rows gives a whole number from 0 to `top`,

    clip(floor(w . x + b), 0, top)

which is a bit for SimHash (b one larger, top 1), and the place along an axis for a uniform grid,
the "manual gridding" to compare with. The cost of a state is O(L d_h d).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import check_count, check_range
from qrmax.planning.arrays import FloatArray

MOST_ROWS = 4096
MOST_CELLS = 2**20
WORD = 32  # bits of a word of a bucket's key
_ONE = np.ones(1)


class Projection(NamedTuple):
    """Map from a normalised observation to the words of a key, for compiled code as well."""

    rows: FloatArray  # [m, 1 + d]: b and w
    top: NDArray[np.int64]  # [m]
    word: NDArray[np.int64]  # [m]: the word that a row's number goes into
    shift: NDArray[np.int64]  # [m]: and where in it
    first: NDArray[np.int64]  # [words - 1]: the first row of each word after the label's

    @property
    def words(self) -> int:
        """The number of words of a key."""
        return len(self.first) + 1


def simhash(
    dimension: int, functions: int, bits: int, offset: float, rng: np.random.Generator
) -> Projection:
    """L functions of d_h bits, drawn at random.

    >>> simhash(2, functions=4, bits=3, offset=1.0, rng=np.random.default_rng(7)).rows.shape
    (12, 3)
    """
    check_count("functions", functions)
    check_count("bits", bits)
    check_range("functions times bits", functions * bits, at_most=MOST_ROWS)
    check_range("offset", offset, at_least=0.0, at_most=1e6)
    rows = rng.standard_normal((functions * bits, 1 + dimension))
    rows[:, 0] = offset * rows[:, 0] + 1.0  # floor(x + 1) is 1 or more if x is on one side
    return _packed(rows, np.ones(len(rows), dtype=np.int64))


def uniform_grid(dimension: int, cells: int) -> Projection:
    """A uniform grid with `cells` cells along each dimension.

    >>> uniform_grid(2, cells=10).rows.tolist()
    [[5.0, 5.0, 0.0], [5.0, 0.0, 5.0]]
    """
    check_count("grid", cells)
    check_range("grid", cells, at_most=MOST_CELLS)
    check_range("dimensions of a grid", dimension, at_most=MOST_ROWS)
    rows = np.hstack([np.ones((dimension, 1)), np.eye(dimension)]) * (cells / 2.0)
    return _packed(rows, np.full(dimension, cells - 1, dtype=np.int64))


def words_of(projection: Projection, x: FloatArray, label: int) -> list[int]:
    """The words of the key of a normalised observation; the first one is the label."""
    terms = projection.rows * np.concatenate([_ONE, x])
    total = np.add.accumulate(terms, axis=1)[:, -1]  # in the order of the compiled loop: to the bit
    return [label, *_pack(projection, total).tolist()]


def words_of_all(
    projection: Projection, x: FloatArray, labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The words of many normalised observations `[n, d]`, as `words_of` each."""
    rows = projection.rows
    total = np.tile(rows[:, 0], (len(x), 1))
    for i in range(x.shape[1]):
        total += rows[:, 1 + i] * x[:, i, None]
    return np.column_stack([labels, _pack(projection, total)])


def _pack(projection: Projection, total: FloatArray) -> NDArray[np.int64]:
    """The numbers of the rows, side by side in words; their axis is the last one."""
    numbers = np.minimum(np.maximum(np.floor(total), 0.0), projection.top).astype(np.int64)
    numbers <<= projection.shift
    words: NDArray[np.int64] = np.bitwise_or.reduceat(numbers, projection.first, axis=-1)
    return words


def _packed(rows: FloatArray, top: NDArray[np.int64]) -> Projection:
    """Place the numbers of the rows side by side in words, after the first one."""
    word, shift = np.zeros_like(top), np.zeros_like(top)
    at, used = 1, 0
    for i, most in enumerate(top.tolist()):
        width = max(most.bit_length(), 1)
        if used + width > WORD:
            at, used = at + 1, 0
        word[i], shift[i] = at, used
        used += width
    first = np.searchsorted(word, np.arange(1, at + 1))
    return Projection(np.ascontiguousarray(rows), top, word, shift, first)
