"""What has been seen: how often, leading where, paying what.

QR-Max counts the world and the machine apart, with the same counter and other indices; R-Max counts
pairs of both with that counter once more. In the paper's names, for the world:

    tau(s, a, s')   how often a in s led to s'         P(s' | s, a)    = tau / n
    rho(s, a)       what it paid, in all               R_E(s, a)       = rho / n
    n(s, a)         how often it was tried             known once n has reached the threshold

Only outcomes that were seen are stored: `outcome[i, j, k]` is the k-th of them, -1 where there are
fewer.

Moves and rewards may have thresholds of their own (t_T and t_R of the paper's Bucket-QR-Max, whose
four counters these are, two for each factor). Both are counted from the first sample on, each until
it has its own number, and a pair is known once both have: so n_T is min(n, t_T), n_R is
min(n, t_R), and one number n serves for both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.empirical.growth import padded
from qrmax.errors import ModelError

NOTHING = -1  # no outcome has been seen in this place yet
FAR = 1e300  # no rewards add up to more


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
    rho: NDArray[np.float64]  # [i, j]


class Counter:
    """Counts samples of pairs (i, j) until each has had `threshold` of them.

    With `for_rewards`, so many of the first samples count for the mean reward.

    >>> counter = Counter(2, 3, threshold=2)
    >>> counter.record(0, 1, outcome=5, reward=1.0)
    False
    >>> counter.record(0, 1, outcome=4, reward=0.0)  # now it is known
    True
    >>> counter.estimate(0, 1)
    Estimate(outcomes=array([5, 4], dtype=int32), prob=array([0.5, 0.5]), reward=0.5)
    """

    def __init__(
        self,
        first: int,
        second: int,
        *,
        threshold: int,
        for_rewards: int | None = None,
        outcomes: int = 4,
    ) -> None:
        self.for_moves = threshold  # t_T
        self.for_rewards = threshold if for_rewards is None else for_rewards  # t_R
        self.threshold = max(self.for_moves, self.for_rewards)  # samples that make a pair known
        self.counts = Counts(
            n=np.zeros((first, second), dtype=np.int32),
            outcome=np.full((first, second, outcomes), NOTHING, dtype=np.int32),
            tau=np.zeros((first, second, outcomes), dtype=np.int32),
            rho=np.zeros((first, second)),
        )

    def count_rewards(self, samples: int) -> None:
        """Let so many of the first samples count for the mean reward."""
        self.for_rewards = samples
        self.threshold = max(self.for_moves, samples)

    def is_known(self, i: int, j: int) -> bool:
        """Whether there are enough samples of (i, j)."""
        return bool(self.counts.n[i, j] >= self.threshold)

    def record(self, i: int, j: int, outcome: int, reward: float) -> bool:
        """Count a sample, unless (i, j) is known; returns whether it has just become known."""
        n = self.counts.n.item(i, j)
        if n >= self.threshold:
            return False
        if n < self.for_moves:
            k = self._place(i, j, outcome)
            tau = self.counts.tau
            tau[i, j, k] = tau.item(i, j, k) + 1
        if n < self.for_rewards:
            rho = self.counts.rho
            rho[i, j] = rho.item(i, j) + reward
        self.counts.n[i, j] = n + 1
        return n + 1 >= self.threshold

    def estimate(self, i: int, j: int) -> Estimate:
        """The outcomes of (i, j), their probabilities, and the mean reward."""
        n, outcome, tau, rho = (array[i, j] for array in self.counts)
        seen = [other != NOTHING for other in outcome.tolist()].count(True)
        moves, rewards = min(int(n), self.for_moves), min(int(n), self.for_rewards)
        return Estimate(outcome[:seen], tau[:seen] / moves, float(rho) / rewards)

    def grow(self, first: int, second: int) -> None:
        """Make room for more pairs; what was counted stays where it is."""
        n, outcome, tau, rho = self.counts
        shape = (first, second)
        self.counts = Counts(
            padded(n, *shape),
            padded(outcome, *shape, fill=NOTHING),
            padded(tau, *shape),
            padded(rho, *shape),
        )

    def restore(self, counts: Counts) -> None:
        """Go on from these counts. Compiled code does not look: outcomes that are none are refused.

        What a pair (i, j) leads to has the same numbers as i.
        """
        n, outcome, tau, rho = counts
        alike = outcome.shape[:2] == n.shape == rho.shape == self.counts.n.shape
        room = outcome.shape[2:] if alike else ()
        if outcome.shape != tau.shape or len(room) != 1 or room[0] < 1:
            raise ModelError(f"counts of {self.counts.n.shape} pairs do not fit together")
        nothing = outcome == NOTHING
        if not ((outcome >= NOTHING) & (outcome < len(n))).all():
            raise ModelError(f"an outcome that was counted is not one of 0 to {len(n) - 1}")
        if (nothing[..., :-1] & ~nothing[..., 1:]).any():
            raise ModelError("an outcome is counted after a free place")
        if not ((n >= 0) & (n <= self.threshold)).all():
            raise ModelError(f"a pair has had a number of samples outside 0 to {self.threshold}")
        sampled = tau.sum(axis=2, dtype=np.int64)  # outcomes make probabilities: they must add up
        if ((tau > 0) == nothing).any() or (sampled != np.minimum(n, self.for_moves)).any():
            raise ModelError("the outcomes of a pair are not as many as its samples")
        if not (np.abs(rho) <= FAR).all() or rho[n == 0].any():
            raise ModelError("the rewards of a pair do not add up to a number that they can")
        self.counts = counts

    def _place(self, i: int, j: int, outcome: int) -> int:
        """Where an outcome of (i, j) is counted, from now on if it is new."""
        seen = self.counts.outcome[i, j].tolist()
        if outcome in seen:
            return seen.index(outcome)
        if NOTHING not in seen:
            self._double()
            seen.append(NOTHING)
        k = seen.index(NOTHING)
        self.counts.outcome[i, j, k] = outcome
        return k

    def _double(self) -> None:
        n, outcome, tau, rho = self.counts
        shape = (*n.shape, 2 * outcome.shape[2])
        self.counts = Counts(n, padded(outcome, *shape, fill=NOTHING), padded(tau, *shape), rho)
