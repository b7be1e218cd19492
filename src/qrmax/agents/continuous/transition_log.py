"""The transitions observed, in order: everything that is learned is a function of them.

A kind of arrival is a label, and whether the world ended; kinds are numbered as they turn up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.agents.base import Sizes
from qrmax.empirical.growth import padded
from qrmax.errors import ModelError
from qrmax.planning.arrays import BoolArray, FloatArray, IntArray
from qrmax.problems.simulator import Step

FIRST = 256
MOST_LABELS = 2**20


class TransitionLog:
    """Columns of transitions; the first `n` rows are filled."""

    def __init__(self, dimension: int, sizes: Sizes) -> None:
        self.sizes = sizes
        self.n = 0
        self.x: FloatArray = np.zeros((FIRST, dimension))
        self.y: FloatArray = np.zeros((FIRST, dimension))
        self.r_env: FloatArray = np.zeros(FIRST)
        self.r_task: FloatArray = np.zeros(FIRST)
        self.a: IntArray = np.zeros(FIRST, dtype=np.int32)
        self.q: IntArray = np.zeros(FIRST, dtype=np.int32)
        self.q_next: IntArray = np.zeros(FIRST, dtype=np.int32)
        self.label: IntArray = np.zeros(FIRST, dtype=np.int32)
        self.ended: BoolArray = np.zeros(FIRST, dtype=np.bool_)
        self.over: BoolArray = np.zeros(FIRST, dtype=np.bool_)
        self.kind: IntArray = np.zeros(FIRST, dtype=np.int32)
        self.kinds: dict[tuple[int, bool], int] = {}  # label, ended
        self.first: list[int] = []  # [kind]: the transition that it was first seen in

    def append(self, s: FloatArray, q: int, a: int, step: Step) -> int:
        """Append a transition; returns its kind."""
        n = self.n
        if n == len(self.a):
            for name, column in self._columns().items():
                setattr(self, name, padded(column, 2 * n))
            self.kind = padded(self.kind, 2 * n)
        reached = (step.q, step.label, step.world_ended, step.terminated)
        row = (s, step.s, step.r_env, step.r_task, a, q, *reached)
        for column, entry in zip(self._columns().values(), row, strict=True):
            column[n] = entry
        self.n += 1
        return self._note_kind(n)

    def kinds_until(self, n: int) -> int:
        """The number of kinds in the first n transitions."""
        return int(np.searchsorted(self.first, n))

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The columns."""
        return {name: column[: self.n].copy() for name, column in self._columns().items()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over a snapshot; a `ModelError` if there are no such transitions."""
        n = len(arrays["a"])
        below = {
            "a": self.sizes.actions,
            "q": self.sizes.task_states,
            "q_next": self.sizes.task_states,
            "label": MOST_LABELS,
        }
        for name, column in self._columns().items():
            given = arrays[name]
            if given.shape != (n, *column.shape[1:]) or not np.isfinite(given).all():
                raise ModelError(f"{name}: not {n} finite entries")
            if name in below and not ((given >= -1) & (given < below[name])).all():
                raise ModelError(f"{name}: numbers out of range")
            if name in ("a", "q", "q_next") and (given < 0).any():
                raise ModelError(f"{name}: numbers out of range")
        if (arrays["ended"] & ~arrays["over"]).any():
            raise ModelError("ended: an episode that goes on")
        room = FIRST
        while room < n:
            room *= 2
        for name, column in self._columns().items():
            setattr(self, name, padded(arrays[name].astype(column.dtype), room))
        self.kind = np.zeros(room, dtype=np.int32)
        self.kinds, self.first, self.n = {}, [], n
        for i in range(n):
            self._note_kind(i)

    def _note_kind(self, n: int) -> int:
        case = (int(self.label[n]), bool(self.ended[n]))
        if case not in self.kinds:
            self.kinds[case] = len(self.kinds)
            self.first.append(n)
        self.kind[n] = self.kinds[case]
        return self.kinds[case]

    def _columns(self) -> dict[str, NDArray[Any]]:
        names = ("x", "y", "r_env", "r_task", "a", "q", "q_next", "label", "ended", "over")
        return {name: getattr(self, name) for name in names}
