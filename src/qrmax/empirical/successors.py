"""What has been seen to follow, with one list of successors for all actions of a state.

The actions of a state mostly lead to the same few states, with other probabilities. Where they are
planned with together, as in `planning/finite_horizon.py`, what arriving there is worth is then
looked up once for all of them. (`counts.py` has a list for each pair of state and action.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.empirical.counts import FAR, NOTHING
from qrmax.errors import ModelError

ROOM = 4  # for successors, to begin with


class Seen(NamedTuple):
    """The arrays of `Successors`."""

    n: NDArray[np.int32]  # [x, a], how often it was tried
    rho: NDArray[np.float64]  # [x, a], what it paid, in all
    listed: NDArray[np.int32]  # [x], how many successors were seen
    outcome: NDArray[np.int32]  # [x, k], which; -1 where there are fewer
    tau: NDArray[np.int32]  # [x, a, k], how often it led there


class Successors:
    """Counts samples of pairs (x, a).

    >>> seen = Successors(6, 2)
    >>> seen.record(0, 1, outcome=5, reward=1.0)
    True
    >>> seen.record(0, 0, outcome=5, reward=0.0)  # not new: another action has led there
    False
    >>> seen.arrays.tau[0, :, 0]
    array([1, 1], dtype=int32)
    """

    def __init__(self, states: int, actions: int) -> None:
        self.arrays = Seen(
            n=np.zeros((states, actions), dtype=np.int32),
            rho=np.zeros((states, actions)),
            listed=np.zeros(states, dtype=np.int32),
            outcome=np.full((states, ROOM), NOTHING, dtype=np.int32),
            tau=np.zeros((states, actions, ROOM), dtype=np.int32),
        )

    def record(self, x: int, a: int, outcome: int, reward: float) -> bool:
        """Count a sample; returns whether no action of x had led there before."""
        listed = int(self.arrays.listed[x])
        known = self.arrays.outcome[x, :listed].tolist()
        is_new = outcome not in known
        k = listed if is_new else known.index(outcome)
        if is_new:
            if listed == self.arrays.outcome.shape[1]:
                self._double()
            self.arrays.outcome[x, k] = outcome
            self.arrays.listed[x] += 1
        self.arrays.tau[x, a, k] += 1
        self.arrays.n[x, a] += 1
        self.arrays.rho[x, a] += reward
        return is_new

    def restore(self, seen: Seen) -> None:
        """Go on from these counts. Compiled code does not look: what cannot be is refused."""
        n, rho, listed, outcome, tau = seen
        room = outcome.shape[1] if outcome.ndim == 2 else 0
        states, actions = self.arrays.n.shape
        fits = n.shape == rho.shape == (states, actions) and listed.shape == (states,)
        if not fits or outcome.shape != (states, room) or tau.shape != (states, actions, room):
            raise ModelError(f"counts of {self.arrays.n.shape} pairs do not fit together")
        used = np.arange(room) < listed[:, None]
        if room < 1 or ((outcome != NOTHING) != used).any() or (listed < 0).any():
            raise ModelError("successors are counted that are not listed")
        if not ((outcome >= NOTHING) & (outcome < states)).all():
            raise ModelError(f"an outcome that was counted is not one of 0 to {states - 1}")
        if (tau < 0).any() or (tau.sum(axis=2, dtype=np.int64) != n).any():
            raise ModelError("the successors of a pair are not as many as its samples")
        if not (np.abs(rho) <= FAR).all() or rho[n == 0].any():
            raise ModelError("the rewards of a pair do not add up to a number that they can")
        self.arrays = seen

    def _double(self) -> None:
        n, rho, listed, outcome, tau = self.arrays
        self.arrays = Seen(
            n,
            rho,
            listed,
            np.concatenate([outcome, np.full_like(outcome, NOTHING)], axis=1),
            np.concatenate([tau, np.zeros_like(tau)], axis=2),
        )
