"""Roll out a policy: what its episodes bring, with 95 % confidence intervals.

The interval of a success rate is Wilson's, that of a mean Student's. One episode tells nothing of
a mean, whose interval is then infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from qrmax.errors import ParameterError, check_count, shown, warn
from qrmax.seeding import check_seed, stream
from qrmax.training.domains.domain import Learner
from qrmax.training.domains.environment_domain import EnvironmentDomain
from qrmax.training.environment import no_environment
from qrmax.training.trainer import Session
from qrmax.training.watch import Moment

Play = Callable[[Any, int | None], Iterator[Moment]]
"""Play an episode in an environment, with a seed if there is one."""

CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """A mean, and the ends of its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"


class Rollouts(NamedTuple):
    """What the episodes of a policy have brought."""

    episodes: int
    success: Estimate  # share of the episodes
    discounted_return: Estimate  # with the agent's gamma: what `start_value` is the mean of
    episode_return: Estimate  # without
    length: Estimate  # steps, of all episodes

    def __str__(self) -> str:
        rows = [f"{name:<18} {getattr(self, name)}" for name in self._fields[1:]]
        return "\n".join([f"{self.episodes:,} episodes; mean [95 % interval]", *rows])


class Outcome(NamedTuple):
    """What one episode has brought."""

    success: bool
    discounted_return: float
    episode_return: float
    length: int
    cut: bool  # by the limit of this evaluation, not by the environment


def roll_out(
    session: Session, play: Play, episodes: int, env: Any, seed: int, max_steps: int
) -> Rollouts:
    """Play so many episodes in an environment, or in one like that of training: `Run.evaluate`."""
    check_count("episodes", episodes)
    check_count("max_steps", max_steps)
    check_seed(seed)
    if env is not None:
        _check_env(session, env)
    played = session.domain.second_instance() if env is None else env
    gamma = session.agent.config.gamma
    try:
        outcomes = [*_outcomes(play, played, gamma, episodes, seed, max_steps)]
    finally:
        if env is None:
            played.close()
    if cut := sum(outcome.cut for outcome in outcomes):
        warn(
            f"{cut} of {episodes} episodes had not ended after {max_steps} steps and were cut "
            "there; max_steps=... allows more"
        )
    _, discounted, plain, length, _ = (list(column) for column in zip(*outcomes, strict=True))
    return Rollouts(
        episodes=episodes,
        success=success_rate(sum(outcome.success for outcome in outcomes), episodes),
        discounted_return=mean_of(discounted),
        episode_return=mean_of(plain),
        length=mean_of(length),
    )


def success_rate(successes: int, episodes: int) -> Estimate:
    """The share of successes, with Wilson's interval.

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
    """The mean, with Student's interval.

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


def _outcomes(
    play: Play, env: Any, gamma: float, episodes: int, seed: int, max_steps: int
) -> Iterator[Outcome]:
    first = int(stream(seed, "rollouts").random() * 2**31)
    for number in range(episodes):
        moments = play(env, first if number == 0 else None)
        last = next(moments)
        discounted, total, length = 0.0, 0.0, 0
        for last in islice(moments, max_steps):
            discounted += gamma**length * last.reward
            total += last.reward
            length += 1
        cut = length == max_steps and next(moments, None) is not None
        yield Outcome(bool(last.info["success"]), discounted, total, length, cut)


def _check_env(session: Session, env: Any) -> None:
    """Refuse an environment that the policy is not for, as far as that can be seen."""
    if not EnvironmentDomain.takes(env):
        raise no_environment(env)
    domain, agent = session.domain, session.agent
    learner = Learner(type(agent), agent.config.gamma)
    other = EnvironmentDomain.pose(env, learner, stream(0, "unused"))
    needed = {
        "actions": (other.sizes.actions, domain.sizes.actions),
        "states of the task": (list(other.machine.states), list(domain.machine.states)),
    }
    if (states := domain.comparable_states()) is not None:
        needed = {"states of the world": (other.sizes.states, states), **needed}
    for what, (found, wanted) in needed.items():
        if found != wanted:
            raise ParameterError(
                f"env has {shown(found)} as {what}, and the run was trained with {shown(wanted)}: "
                "give one like that of training"
            )
