"""Rollouts of a policy in an environment, summed up with 95 % confidence intervals.

The confidence interval of a success rate is Wilson's, that of a mean Student's. With one episode
the interval of a mean is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np

from qrmax.errors import check_count, warn
from qrmax.seeding import check_seed, stream
from qrmax.training.watch import RolloutStep

Play = Callable[[Any, int | None], Iterator[RolloutStep]]
"""Play an episode in an environment, with a seed if there is one."""

CONFIDENCE = 0.95


def significant(number: float, digits: int) -> str:
    """A number to some significant digits; from 1,000 on whole, with thousands separators.

    >>> significant(-1000.0, 3), significant(12345.6, 4), significant(0.98765, 3)
    ('-1,000', '12,346', '0.988')
    """
    return f"{number:,.0f}" if abs(number) >= 999.5 else f"{number:.{digits}g}"


class Estimate(NamedTuple):
    """A mean, and the ends of its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        mean, low, high = (significant(number, 4) for number in self)
        return f"{mean} [{low}, {high}]"


class Rollouts(NamedTuple):
    """Means over the episodes of a policy, with 95 % confidence intervals."""

    episodes: int
    success: Estimate  # success rate
    discounted_return: Estimate  # with the agent's gamma; `start_value` is its expectation
    episode_return: Estimate  # undiscounted
    length: Estimate  # steps, of all episodes

    def __str__(self) -> str:
        rows = [f"{name:<18} {getattr(self, name)}" for name in self._fields[1:]]
        return "\n".join([f"{self.episodes:,} episodes; mean [95 % interval]", *rows])


class Outcome(NamedTuple):
    """The outcome of one episode."""

    success: bool
    discounted_return: float
    episode_return: float
    length: int
    cut: bool  # by the limit of this evaluation, not by the environment


def roll_out(
    play: Play, env: Any, gamma: float, episodes: int, seed: int, max_steps: int
) -> Rollouts:
    """Roll out a policy for `episodes` episodes; those longer than `max_steps` are truncated."""
    check_count("episodes", episodes)
    check_count("max_steps", max_steps)
    check_seed(seed)
    first = int(stream(seed, "rollouts").random() * 2**31)
    found = [*islice(outcomes(play, env, gamma, first, max_steps), episodes)]
    if cut := sum(outcome.cut for outcome in found):
        warn(
            f"{cut} of {episodes} episodes had not ended after {max_steps} steps and were "
            "truncated; allow longer ones to see how they end"
        )
    return summary(found)


def summary(found: Sequence[Outcome]) -> Rollouts:
    """Means and confidence intervals over one episode or more."""
    _, discounted, plain, length, _ = (list(column) for column in zip(*found, strict=True))
    return Rollouts(
        episodes=len(found),
        success=success_rate(sum(outcome.success for outcome in found), len(found)),
        discounted_return=mean_of(discounted),
        episode_return=mean_of(plain),
        length=mean_of(length),
    )


def success_rate(successes: int, episodes: int) -> Estimate:
    """The success rate, with Wilson's confidence interval.

    >>> print(success_rate(10, 10))
    1 [0.7225, 1]
    """
    from scipy.special import ndtri

    z = float(ndtri(0.5 + CONFIDENCE / 2.0))
    share = successes / episodes
    middle = (share + z * z / (2 * episodes)) / (1.0 + z * z / episodes)
    spread = math.sqrt(share * (1.0 - share) / episodes + (z / (2 * episodes)) ** 2)
    half = z * spread / (1.0 + z * z / episodes)
    return Estimate(share, max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share)))


def mean_of(values: list[float]) -> Estimate:
    """The mean, with Student's confidence interval.

    >>> print(mean_of([1.0, 2.0, 3.0, 4.0]))
    2.5 [0.4457, 4.554]
    """
    from scipy.special import stdtrit

    sample = np.array(values, dtype=np.float64)
    mean = math.fsum(values) / len(values)
    if len(sample) == 1:
        return Estimate(mean, -math.inf, math.inf)
    if np.ptp(sample) == 0.0:  # a computed variance may be rounded up
        return Estimate(float(sample[0]), float(sample[0]), float(sample[0]))
    t = float(stdtrit(len(sample) - 1, 0.5 + CONFIDENCE / 2.0))
    half = t * float(sample.std(ddof=1)) / math.sqrt(len(sample))
    return Estimate(mean, mean - half, mean + half)


def outcomes(play: Play, env: Any, gamma: float, seed: int, max_steps: int) -> Iterator[Outcome]:
    """An infinite sequence of episodes; the environment is seeded at the first reset."""
    for number in count():
        steps = play(env, seed if number == 0 else None)
        last = next(steps)
        discounted, total, length = 0.0, 0.0, 0
        for last in islice(steps, max_steps):
            discounted += gamma**length * last.reward
            total += last.reward
            length += 1
        cut = length == max_steps and next(steps, None) is not None
        yield Outcome(bool(last.info["success"]), discounted, total, length, cut)
