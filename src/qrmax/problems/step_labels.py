"""Labelling functions of transitions, (s, a, s'), instead of states.

In a problem the machine reads the label of the next state, and so agents learn its transitions by
(q, s'). If the label depends on the whole transition, a state is split by the labels of transitions
into it: the new states are the pairs (s', label) that can occur. Nothing else changes, so the
result is an ordinary problem.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrmax.errors import ModelError
from qrmax.problems.mdp import TabularMDP


class SplitStates(NamedTuple):
    """An MDP whose states include the label of the transition into them."""

    mdp: TabularMDP
    label: NDArray[np.int32]  # [n]: the label of the new state n
    origin: NDArray[np.int32]  # [n]: the original state


def split_by_label(mdp: TabularMDP, label: ArrayLike, start: int) -> SplitStates:
    """Split the states by `label[s, a, k]`, the number of the label of the k-th successor.

    Episodes start as if the label `start` had been read.

    >>> line = TabularMDP(succ=[[[1]], [[1]]], prob=[[[1.0]], [[1.0]]])  # 0 -> 1, which stays
    >>> split = split_by_label(line, label=[[[1]], [[0]]], start=0)
    >>> split.origin.tolist(), split.label.tolist()
    ([0, 1, 1], [0, 0, 1])
    >>> split.mdp.succ[:, 0, 0].tolist()
    [2, 1, 1]
    """
    numbers = np.asarray(label)
    if numbers.shape != mdp.succ.shape or numbers.dtype.kind not in "iu" or numbers.min() < 0:
        raise ModelError(
            f"label must hold a whole number from 0 on for each entry of succ, {mdp.succ.shape}"
        )
    width = max(int(numbers.max()), start) + 1
    reached = mdp.succ.astype(np.int64) * width + numbers  # [s, a, k]: a pair as one number
    happens = (mdp.prob > 0.0) & ~mdp.terminal[:, None, None]
    first = np.flatnonzero(mdp.start) * width + start
    pairs = np.unique(np.concatenate([reached[happens], first]))
    origin = (pairs // width).astype(np.int32)
    chance = np.zeros(len(pairs))
    chance[np.searchsorted(pairs, first)] = mdp.start[mdp.start > 0.0]
    succ = np.searchsorted(pairs, reached).clip(max=len(pairs) - 1)  # padding: any state
    return SplitStates(
        mdp=TabularMDP(
            succ[origin],
            mdp.prob[origin],
            mdp.reward[origin],
            terminal=mdp.terminal[origin],
            start=chance,
            coordinates=None if mdp.coordinates is None else mdp.coordinates[origin],
        ),
        label=(pairs % width).astype(np.int32),
        origin=origin,
    )
