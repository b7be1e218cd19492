"""Empirical transition counts with one successor list per state, shared by all actions.

The actions of a state mostly lead to the same few states, with other probabilities. Backups of all
actions together, as in `planning/finite_horizon.py`, then look up the value of each successor once.
(`counts.py` has a list for each state-action pair.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.empirical.counts import MAX_TOTAL_REWARD, NO_OUTCOME
from qrmax.empirical.growth import padded
from qrmax.errors import ModelError

ROOM = 4  # for successors, initially


class Seen(NamedTuple):
    """The arrays of `Successors`."""

    n: NDArray[np.int32]  # [x, a], visit count
    rho: NDArray[np.float64]  # [x, a] or, by successor, [x, a, k]: sum of rewards
    listed: NDArray[np.int32]  # [x], number of observed successors
    outcome: NDArray[np.int32]  # [x, k], the successors; -1 for unused entries
    tau: NDArray[np.int32]  # [x, a, k], transition count


class Successors:
    """Counts of samples of state-action pairs (x, a).

    Args:
        states: the number of states x.
        actions: the number of actions a.
        by_successor: whether rewards are summed for each successor on its own.

    >>> seen = Successors(6, 2)
    >>> seen.record(0, 1, outcome=5, reward=1.0)
    True
    >>> seen.record(0, 0, outcome=5, reward=0.0)  # not new: another action has led there
    False
    >>> seen.arrays.tau[0, :, 0]
    array([1, 1], dtype=int32)
    """

    def __init__(self, states: int, actions: int, *, by_successor: bool = False) -> None:
        self.by_successor = by_successor
        self.arrays = Seen(
            n=np.zeros((states, actions), dtype=np.int32),
            rho=np.zeros((states, actions, ROOM) if by_successor else (states, actions)),
            listed=np.zeros(states, dtype=np.int32),
            outcome=np.full((states, ROOM), NO_OUTCOME, dtype=np.int32),
            tau=np.zeros((states, actions, ROOM), dtype=np.int32),
        )

    def record(self, x: int, a: int, outcome: int, reward: float) -> bool:
        """Count a sample; return whether the outcome is a new successor of x."""
        is_new = self.expect(x, outcome)
        k = self.arrays.outcome[x].tolist().index(outcome)
        self.arrays.tau[x, a, k] += 1
        self.arrays.n[x, a] += 1
        self.arrays.rho[(x, a, k) if self.by_successor else (x, a)] += reward
        return is_new

    def expect(self, x: int, outcome: int) -> bool:
        """List a successor of x that may not have been observed; return whether it is new."""
        listed = int(self.arrays.listed[x])
        if outcome in self.arrays.outcome[x, :listed].tolist():
            return False
        if listed == self.arrays.outcome.shape[1]:
            self.widen(2 * listed)
        self.arrays.outcome[x, listed] = outcome
        self.arrays.listed[x] += 1
        return True

    def restore(self, seen: Seen) -> None:
        """Resume from saved counts, validated because compiled code does not check indices."""
        n, rho, listed, outcome, tau = seen
        room = outcome.shape[1] if outcome.ndim == 2 else 0
        states, actions = self.arrays.n.shape
        fits = n.shape == (states, actions) and listed.shape == (states,)
        fits = fits and rho.shape == (tau if self.by_successor else n).shape
        if not fits or outcome.shape != (states, room) or tau.shape != (states, actions, room):
            raise ModelError(
                f"inconsistent counts: shapes do not match {self.arrays.n.shape} pairs"
            )
        used = np.arange(room) < listed[:, None]
        if room < 1 or ((outcome != NO_OUTCOME) != used).any() or (listed < 0).any():
            raise ModelError("inconsistent counts: a successor that is not listed")
        if not ((outcome >= NO_OUTCOME) & (outcome < states)).all():
            raise ModelError(f"inconsistent counts: an outcome outside 0 to {states - 1}")
        if (tau < 0).any() or (tau.sum(axis=2, dtype=np.int64) != n).any():
            raise ModelError("inconsistent counts: transition counts do not sum to the visit count")
        unvisited = (tau if self.by_successor else n) == 0
        if not (np.abs(rho) <= MAX_TOTAL_REWARD).all() or rho[unvisited].any():
            raise ModelError("inconsistent counts: an impossible sum of rewards")
        self.arrays = seen

    def widen(self, room: int) -> None:
        """Make room for this many successors of each state, if there is less."""
        n, rho, listed, outcome, tau = self.arrays
        states, actions, width = tau.shape
        if room <= width:
            return
        self.arrays = Seen(
            n,
            padded(rho, states, actions, room) if self.by_successor else rho,
            listed,
            padded(outcome, states, room, fill=NO_OUTCOME),
            padded(tau, states, actions, room),
        )
