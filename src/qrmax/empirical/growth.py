"""Growing arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def padded(array: NDArray[Any], *shape: int, fill: float = 0) -> NDArray[Any]:
    """A copy of the array with its first axes enlarged to `shape`, padded at the end.

    >>> padded(np.ones((1, 2)), 2, fill=7).tolist()
    [[1.0, 1.0], [7.0, 7.0]]
    """
    wider = np.full((*shape, *array.shape[len(shape) :]), fill, dtype=array.dtype)
    wider[tuple(slice(length) for length in array.shape)] = array
    return wider
