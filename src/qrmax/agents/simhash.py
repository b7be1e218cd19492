"""SimHash (Charikar, 2002): observations that are near one another mostly get the same bits.

    h_l(x)   d_h bits: on which side of each of d_h random hyperplanes x lies       l = 1 ... L
    h(x)     (h_1(x), ..., h_L(x)): the bucket, one of at most 2^(L d_h)

Hyperplanes through the origin would cut a plane into angular sectors only. So x is normalised to
[-1, 1]^d first, and every hyperplane w . x + b = 0 has an offset: w is standard normal, b is normal
with standard deviation `offset`. m = L d_h of them cut a plane into about m^2 / 2 cells.

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
WORD = 32  # bits of a word of a bucket's key


class Projection(NamedTuple):
    """How a normalised observation becomes the words of a key, for compiled code as well."""

    rows: FloatArray  # [m, d + 1]: w and, last, b
    top: NDArray[np.int64]  # [m]
    word: NDArray[np.int64]  # [m]: the word that a row's number goes into
    shift: NDArray[np.int64]  # [m]: and where in it


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
    rows = rng.standard_normal((functions * bits, dimension + 1))
    rows[:, -1] = offset * rows[:, -1] + 1.0  # floor(x + 1) is 1 or more where x is on one side
    return _packed(rows, np.ones(len(rows), dtype=np.int64))


def uniform_grid(dimension: int, cells: int) -> Projection:
    """A grid of so many cells along each dimension.

    >>> uniform_grid(2, cells=10).rows.tolist()
    [[5.0, 0.0, 5.0], [0.0, 5.0, 5.0]]
    """
    check_count("cells", cells)
    check_range("cells", cells, at_most=2**20)
    rows = np.hstack([np.eye(dimension), np.ones((dimension, 1))]) * (cells / 2.0)
    return _packed(rows, np.full(dimension, cells - 1, dtype=np.int64))


def words_of(projection: Projection, x: FloatArray, label: int) -> list[int]:
    """The words of the key of a normalised observation; the first one is the label."""
    rows, top, word, shift = projection
    total = rows[:, -1].copy()
    for i in range(len(x)):  # in the order of the compiled loop, to the same last bit
        total += rows[:, i] * x[i]
    numbers = np.minimum(np.maximum(np.floor(total), 0.0), top).astype(np.int64)
    words = np.zeros(_n_words(projection), dtype=np.int64)
    words[0] = label
    np.bitwise_or.at(words, word, numbers << shift)
    return words.tolist()


def _n_words(projection: Projection) -> int:
    return int(projection.word.max()) + 1


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
    return Projection(np.ascontiguousarray(rows), top, word, shift)
