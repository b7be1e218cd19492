"""What has been seen: how often, leading where, paying what.

QR-Max counts the world and the machine apart, with the same counter and other indices; R-Max counts
pairs of both with that counter once more. In the paper's names, for the world:

    tau(s, a, s')   how often a in s led to s'         P(s' | s, a)    = tau / n
    rho(s, a, s')   what it paid then, in all          R_E(s, a, s')   = rho / n   (reward mass)
    n(s, a)         how often it was tried             known once n has reached the threshold

Only outcomes that were seen are stored: `outcome[i, j, k]` is the k-th of them, -1 where there are
fewer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import ModelError

NOTHING = -1  # no outcome has been seen in this place yet


class Estimate(NamedTuple):
    """What the samples of a pair say."""

    outcomes: NDArray[np.int32]  # [k]
    prob: NDArray[np.float64]  # [k]
    reward: float  # the mean


class Counts(NamedTuple):
    """The arrays of a counter."""

    n: NDArray[np.int32]  # [i, j]
    outcome: NDArray[np.int32]  # [i, j, k]
    tau: NDArray[np.int32]  # [i, j, k]
    rho: NDArray[np.float64]  # [i, j, k]


class Counter:
    """Counts samples of pairs (i, j) until each has had `threshold` of them.

    >>> counter = Counter(2, 3, threshold=2)
    >>> counter.record(0, 1, outcome=5, reward=1.0)
    False
    >>> counter.record(0, 1, outcome=4, reward=0.0)  # now it is known
    True
    >>> counter.estimate(0, 1)
    Estimate(outcomes=array([5, 4], dtype=int32), prob=array([0.5, 0.5]), reward=0.5)
    """

    def __init__(self, first: int, second: int, *, threshold: int, outcomes: int = 4) -> None:
        self.threshold = threshold
        self.counts = Counts(
            n=np.zeros((first, second), dtype=np.int32),
            outcome=np.full((first, second, outcomes), NOTHING, dtype=np.int32),
            tau=np.zeros((first, second, outcomes), dtype=np.int32),
            rho=np.zeros((first, second, outcomes)),
        )

    def is_known(self, i: int, j: int) -> bool:
        """Whether there are enough samples of (i, j)."""
        return bool(self.counts.n[i, j] >= self.threshold)

    def record(self, i: int, j: int, outcome: int, reward: float) -> bool:
        """Count a sample, unless (i, j) is known; returns whether it has just become known."""
        if self.is_known(i, j):
            return False
        k = self._place(i, j, outcome)
        self.counts.outcome[i, j, k] = outcome
        self.counts.tau[i, j, k] += 1
        self.counts.rho[i, j, k] += reward
        self.counts.n[i, j] += 1
        return self.is_known(i, j)

    def estimate(self, i: int, j: int) -> Estimate:
        """The outcomes of (i, j), their probabilities, and the mean reward."""
        n, outcome, tau, rho = (array[i, j] for array in self.counts)
        seen = [other != NOTHING for other in outcome.tolist()].count(True)
        return Estimate(outcome[:seen], tau[:seen] / n, sum(rho.tolist()) / float(n))

    def restore(self, counts: Counts) -> None:
        """Go on from these counts. Compiled code does not look: outcomes that are none are refused.

        What a pair (i, j) leads to has the same numbers as i.
        """
        n, outcome, tau, rho = counts
        room = outcome.shape[2:] if outcome.shape[:2] == n.shape == self.counts.n.shape else ()
        if not (outcome.shape == tau.shape == rho.shape) or len(room) != 1 or room[0] < 1:
            raise ModelError(f"counts of {self.counts.n.shape} pairs do not fit together")
        nothing = outcome == NOTHING
        if not ((outcome >= NOTHING) & (outcome < len(n))).all():
            raise ModelError(f"an outcome that was counted is not one of 0 to {len(n) - 1}")
        if (nothing[..., :-1] & ~nothing[..., 1:]).any():
            raise ModelError("an outcome is counted after a free place")
        self.counts = counts

    def _place(self, i: int, j: int, outcome: int) -> int:
        """Where an outcome of (i, j) is counted; there is room for one more if it is new."""
        seen = self.counts.outcome[i, j].tolist()
        for k, other in enumerate(seen):
            if other in (outcome, NOTHING):
                return k
        self._double()
        return len(seen)

    def _double(self) -> None:
        n, outcome, tau, rho = self.counts
        self.counts = Counts(
            n,
            np.concatenate([outcome, np.full_like(outcome, NOTHING)], axis=2),
            np.concatenate([tau, np.zeros_like(tau)], axis=2),
            np.concatenate([rho, np.zeros_like(rho)], axis=2),
        )
