"""Empirical transition counts and mean rewards.

QR-Max keeps a counter for the environment and one for the machine, the same class with other
indices; R-Max keeps one for their product. In the paper's notation, for the environment:

    tau(s, a, s')   transition count                   P(s' | s, a)    = tau / n
    rho(s, a)       sum of rewards                     R_E(s, a)       = rho / n
    n(s, a)         visit count                        known once n reaches the threshold

Only observed outcomes are stored: `outcome[i, j, k]` is the k-th of them, -1 for unused entries.

Transitions and rewards may have separate thresholds (t_T and t_R of the paper's Bucket-QR-Max,
whose four counters these are, two for each factor). Both are counted from the first sample, each up
to its own threshold, and a pair is known once both are: so n_T is min(n, t_T), n_R is min(n, t_R),
and one visit count n serves for both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.empirical.growth import padded
from qrmax.errors import ModelError

NO_OUTCOME = -1  # an unused entry
FOR_EVER = 2**31 - 1  # as a threshold: counts that go on
MAX_TOTAL_REWARD = 1e300  # bound on a sum of rewards


class Estimate(NamedTuple):
    """The maximum-likelihood estimate of a pair: outcome distribution and mean reward."""

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
    """Counts of samples of pairs (i, j), such as state-action pairs, up to a threshold.

    Args:
        first: the number of values of i.
        second: the number of values of j.
        threshold: the samples of a pair after which its transitions are known; by default counts
            go on for ever.
        for_rewards: the samples used for the mean reward; by default as many.
        outcomes: initial room for distinct outcomes of a pair; grows on demand.

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
        threshold: int = FOR_EVER,
        for_rewards: int | None = None,
        outcomes: int = 4,
    ) -> None:
        self.for_transitions = threshold  # t_T
        self.for_rewards = threshold if for_rewards is None else for_rewards  # t_R
        self.threshold = max(self.for_transitions, self.for_rewards)  # to know a pair
        self.counts = Counts(
            n=np.zeros((first, second), dtype=np.int32),
            outcome=np.full((first, second, outcomes), NO_OUTCOME, dtype=np.int32),
            tau=np.zeros((first, second, outcomes), dtype=np.int32),
            rho=np.zeros((first, second)),
        )

    def count_rewards(self, samples: int) -> None:
        """Let so many of the first samples count for the mean reward."""
        self.for_rewards = samples
        self.threshold = max(self.for_transitions, samples)

    def is_known(self, i: int, j: int) -> bool:
        """Whether (i, j) has enough samples."""
        return bool(self.counts.n[i, j] >= self.threshold)

    def record(self, i: int, j: int, outcome: int, reward: float, times: int = 1) -> bool:
        """Count a sample unless (i, j) is known; return whether it has just become known."""
        if times > 1:
            return any(self.record(i, j, outcome, reward) for _ in range(times))
        n, threshold = self.counts.n.item(i, j), self.threshold
        if n >= threshold:
            return False
        if n < self.for_transitions:
            k = self._place(i, j, outcome)
            tau = self.counts.tau
            tau[i, j, k] = tau.item(i, j, k) + 1
        if reward and n < self.for_rewards:
            rho = self.counts.rho
            rho[i, j] = rho.item(i, j) + reward
        self.counts.n[i, j] = n + 1
        return bool(n + 1 >= threshold)

    def estimate(self, i: int, j: int) -> Estimate:
        """The outcomes of (i, j), their probabilities, and the mean reward."""
        n, outcome, tau, rho = [array[i, j] for array in self.counts]
        seen = len(outcome) - outcome.tolist().count(NO_OUTCOME)
        moves, rewards = min(int(n), self.for_transitions), min(int(n), self.for_rewards)
        return Estimate(outcome[:seen], tau[:seen] / moves, float(rho) / rewards)

    def grow(self, first: int, second: int) -> None:
        """Enlarge the arrays for more pairs, keeping the counts."""
        n, outcome, tau, rho = self.counts
        shape = (first, second)
        self.counts = Counts(
            padded(n, *shape),
            padded(outcome, *shape, fill=NO_OUTCOME),
            padded(tau, *shape),
            padded(rho, *shape),
        )

    def restore(self, counts: Counts) -> None:
        """Resume from saved counts, validated here because compiled code does not check indices.

        Outcomes of (i, j) have the same range as i.
        """
        n, outcome, tau, rho = counts
        alike = outcome.shape[:2] == n.shape == rho.shape == self.counts.n.shape
        room = outcome.shape[2:] if alike else ()
        if outcome.shape != tau.shape or len(room) != 1 or room[0] < 1:
            raise ModelError(
                f"inconsistent counts: shapes do not match {self.counts.n.shape} pairs"
            )
        unused = outcome == NO_OUTCOME
        if not ((outcome >= NO_OUTCOME) & (outcome < len(n))).all():
            raise ModelError(f"inconsistent counts: an outcome outside 0 to {len(n) - 1}")
        if (unused[..., :-1] & ~unused[..., 1:]).any():
            raise ModelError("inconsistent counts: an outcome after an unused entry")
        if not ((n >= 0) & (n <= self.threshold)).all():
            raise ModelError(f"inconsistent counts: a visit count outside 0 to {self.threshold}")
        sampled = tau.sum(axis=2, dtype=np.int64)  # normalised to probabilities later
        if ((tau > 0) == unused).any() or (sampled != np.minimum(n, self.for_transitions)).any():
            raise ModelError("inconsistent counts: transition counts do not sum to the visit count")
        if not (np.abs(rho) <= MAX_TOTAL_REWARD).all() or rho[n == 0].any():
            raise ModelError("inconsistent counts: an impossible sum of rewards")
        self.counts = counts

    def _place(self, i: int, j: int, outcome: int) -> int:
        """The entry of an outcome of (i, j), made for it if it is new."""
        if self.counts.outcome.item(i, j, 0) == outcome:  # the usual one
            return 0
        seen: list[int] = self.counts.outcome[i, j].tolist()
        if outcome in seen:
            return seen.index(outcome)
        if NO_OUTCOME not in seen:
            self._double()
            seen.append(NO_OUTCOME)
        k = seen.index(NO_OUTCOME)
        self.counts.outcome[i, j, k] = outcome
        return k

    def _double(self) -> None:
        n, outcome, tau, rho = self.counts
        shape = (*n.shape, 2 * outcome.shape[2])
        self.counts = Counts(n, padded(outcome, *shape, fill=NO_OUTCOME), padded(tau, *shape), rho)
