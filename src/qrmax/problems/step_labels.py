"""Labels that belong to steps, (s, a, s'), and not to the state reached.

A problem reads the label of the state reached, and so do the learners: what the machine does is a
matter of (q, s'). Where what is true depends on the whole step, a state is split up by the labels
that are read on the way to it: the new states are pairs (s', label). There are as many as can
happen, and nothing else changes, so that everything that takes a problem takes this one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrmax.errors import ModelError
from qrmax.problems.mdp import TabularMDP


class SplitStates(NamedTuple):
    """A process whose states know the label that was read on the way to them."""

    mdp: TabularMDP
    label: NDArray[np.int32]  # [n]: the label of the new state n
    origin: NDArray[np.int32]  # [n]: the state that it was


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
    succ = np.searchsorted(pairs, reached).clip(max=len(pairs) - 1)  # what never happens: anywhere
    return SplitStates(
        mdp=TabularMDP(
            succ[origin],
            mdp.prob[origin],
            mdp.reward[origin],
            terminal=mdp.terminal[origin],
            start=chance,
        ),
        label=(pairs % width).astype(np.int32),
        origin=origin,
    )
