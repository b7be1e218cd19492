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
        """The columns; what grows is the last axis, as files of runs need it."""
        n = self.n
        real = [self.x[:n].T, self.y[:n].T, self.r_env[None, :n], self.r_task[None, :n]]
        return {
            "real.transitions": np.concatenate(real),
            "whole.transitions": np.stack([column[:n] for column in self._whole()], dtype=np.int64),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over a snapshot; a `ModelError` if there can be no such transitions."""
        real, whole = arrays["real.transitions"], arrays["whole.transitions"]
        n, d = real.shape[-1], self.x.shape[1]
        if real.shape != (2 * d + 2, n) or whole.shape != (len(self._whole()), n):
            raise ModelError(f"transitions: shapes {real.shape} and {whole.shape} do not fit")
        if not np.isfinite(real).all():
            raise ModelError("transitions: numbers that are not finite")
        states = self.sizes.task_states
        most = np.array([self.sizes.actions, states, states, MOST_LABELS, 2, 2])
        if ((whole < 0) | (whole >= most[:, None])).any() or (whole[4] > whole[5]).any():
            raise ModelError("transitions: numbers out of range")
        room = FIRST
        while room < n:
            room *= 2
        self.x, self.y = padded(real[:d].T, room), padded(real[d : 2 * d].T, room)
        self.r_env, self.r_task = padded(real[-2], room), padded(real[-1], room)
        self.a, self.q, self.q_next, self.label = (
            padded(column.astype(np.int32), room) for column in whole[:4]
        )
        self.ended, self.over = (padded(column.astype(np.bool_), room) for column in whole[4:])
        self.kind = np.zeros(room, dtype=np.int32)
        self.kinds, self.first, self.n = {}, [], n
        for i in range(n):
            self._note_kind(i)

    def _whole(self) -> tuple[NDArray[Any], ...]:
        return (self.a, self.q, self.q_next, self.label, self.ended, self.over)

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
