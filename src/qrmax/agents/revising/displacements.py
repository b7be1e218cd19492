"""Displacements between states with coordinates, and the states that they lead to.

    u(s)       the coordinates of s, each in units of a millionth of its range
    d(s, x)    u(x) - u(s);  displacements are equal if they are so up to rounding errors
    to[s, j]   the state at u(s) + d_j, or NOWHERE; d_0 = 0 leads from s to s

A displacement is shared, and gets a number j, once it was observed from two states and from one in
twenty of those that were left; it keeps its number. So there are at most 20 times as many as a
state has successors. States with the same coordinates are told apart by one more coordinate: their
rank among these, by number. (Where all states have copies, such as one for each label of the last
step, the same law holds only for moves between copies of the same rank.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qrmax.empirical.successors import Seen
from qrmax.errors import ModelError
from qrmax.planning.arrays import FloatArray, IntArray

NOWHERE = -1
NO_ONE = -1
RESOLUTION = 1e6  # units in the range of a coordinate
LEAST_STATES, LEAST_SHARE = 2, 0.05  # from which a displacement was observed
_OFF_CENTRE = 0.318  # so that rounding errors do not matter at whole numbers of units


class Displacements:
    """The shared displacements, in the order of discovery.

    >>> line = Displacements(np.array([[0.0], [0.5], [1.0]]))
    >>> line.share(0, 1)
    >>> line.to.tolist()
    [[0, 1], [1, 2], [2, -1]]

    Args:
        coordinates: the coordinates of the states, `[s, d]`.
    """

    def __init__(self, coordinates: FloatArray) -> None:
        self._units = _in_units(coordinates)
        self._state_at = {key.tobytes(): s for s, key in enumerate(_keys(self._units))}
        states = np.arange(len(coordinates), dtype=np.int32)
        self.to: IntArray = states[:, None].copy()  # [s, j]
        self.back: IntArray = np.zeros(1, dtype=np.int32)  # [j]: the number of -d_j, or NO_ONE
        self.examples: IntArray = np.zeros((1, 2), dtype=np.int32)  # [j]: a transition (s, x)

    def __len__(self) -> int:
        return len(self.examples)

    def share(self, s: int, x: int) -> None:
        """Give the displacement from s to x a number."""
        step = self._units[x] - self._units[s]
        found = [self._state_at.get(key.tobytes(), NOWHERE) for key in _keys(self._units + step)]
        self.to = np.column_stack([self.to, np.array(found, dtype=np.int32)])
        self.examples = np.vstack([self.examples, np.array([[s, x]], dtype=np.int32)])
        froms, tos = self.examples.T
        keys = _keys(self._units[tos] - self._units[froms])
        reverse = np.flatnonzero((keys == _keys(-step[None])).all(axis=1))
        self.back = np.append(self.back, np.int32(reverse[0] if reverse.size else NO_ONE))
        if reverse.size:
            self.back[reverse[0]] = len(self) - 1

    def share_common(self, seen: Seen) -> bool:
        """Give numbers to those that are common by now; returns whether there are any."""
        times = seen.tau.sum(axis=1)  # [s, k]
        s, k = np.nonzero(times)
        x = seen.outcome[s, k]
        unknown = ~(self.to[s] == x[:, None]).any(axis=1)
        s, x = s[unknown], x[unknown]
        if not s.size:
            return False
        keys = _keys(self._units[x] - self._units[s])
        _, first, states = np.unique(keys, axis=0, return_index=True, return_counts=True)
        left = int((seen.n.sum(axis=1) > 0).sum())
        common = np.sort(first[states >= max(LEAST_STATES, LEAST_SHARE * left)])
        for i in common.tolist():
            self.share(int(s[i]), int(x[i]))
        return bool(common.size)

    def restore(self, examples: NDArray[np.int32]) -> None:
        """Resume with the displacements of these transitions."""
        fits = examples.ndim == 2 and examples.shape[1:] == (2,) and len(examples) > 0
        if not fits or not ((examples >= 0) & (examples < len(self.to))).all():
            raise ModelError("displacements: not transitions between states")
        froms, tos = examples.T
        keys = _keys(self._units[tos] - self._units[froms])
        if examples[0].any() or len(np.unique(keys, axis=0)) < len(keys):
            raise ModelError("displacements: the first is not 0, or two are the same")
        for s, x in examples[1:].tolist():
            self.share(s, x)


def _in_units(coordinates: FloatArray) -> FloatArray:
    """Coordinates in units, with a rank if several states share theirs."""
    size = np.abs(coordinates).max(axis=0)
    scaled = coordinates / np.where(size > 0.0, size, 1.0)
    lowest = scaled.min(axis=0)
    span = scaled.max(axis=0) - lowest
    units = (scaled - lowest) / np.where(span > 0.0, span, 1.0) * RESOLUTION
    times: dict[bytes, int] = {}
    rank = np.empty(len(units))
    for s, key in enumerate(_keys(units)):
        rank[s] = times.get(key.tobytes(), 0)
        times[key.tobytes()] = int(rank[s]) + 1
    return np.column_stack([units, rank]) if rank.any() else units


def _keys(units: FloatArray) -> NDArray[np.int64]:
    """Integers that are equal for equal units, up to rounding errors."""
    return np.floor(units + _OFF_CENTRE).astype(np.int64)
