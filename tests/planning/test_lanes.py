"""Four numbers side by side: as NumPy has them, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from qrmax.planning.arrays import FloatArray
from qrmax.planning.compilation import compiled
from qrmax.planning.lanes import LANES, add, fill, largest, least, load, mul, part, root, sub

pytestmark = pytest.mark.small_enough_without_jit


@compiled
def all_operations(a: FloatArray, b: FloatArray, found: FloatArray) -> None:
    """Each operation, in a row of its own."""
    one, other = load(a, np.uint64(1)), load(b, np.uint64(0))
    rows = (add(one, other), sub(one, other), mul(one, other), least(one, other), root(other))
    for i in range(LANES):
        for row in range(5):
            found[row, i] = part(rows[row], i)
        found[5, i] = part(fill(a[0]), i)
    found[6, 0], found[6, 1] = largest(one), largest(other)


def test_every_operation_is_numpys() -> None:
    rng = np.random.default_rng(0)
    a, b, found = rng.normal(size=LANES + 1), rng.random(LANES), np.zeros((7, LANES))
    a[2] = -np.inf
    all_operations(a, b, found)
    one = a[1:]
    expected = [one + b, one - b, one * b, np.minimum(one, b), np.sqrt(b), np.full(LANES, a[0])]
    np.testing.assert_array_equal(found[:6], expected)
    assert found[6].tolist() == [one.max(), b.max(), 0.0, 0.0]
