"""Vectorised rollouts of a continuous problem: many episodes at once.

They have the same distribution as those of a `PlaneSimulator`, but draw their random numbers in
another order: for one step of all unfinished episodes at a time.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import ParameterError, check_count, check_range
from qrmax.problems.continuous_problem import ContinuousProblem, check_continuous
from qrmax.problems.plane import FloatArray, moves


class Actor(Protocol):
    """A policy: an action for each observation and machine state."""

    def actions(self, observations: FloatArray, q: NDArray[np.int64]) -> NDArray[Any]:
        """The number of an action for each row of `observations [n, d]` and entry of `q [n]`."""
        ...


class Episodes(NamedTuple):
    """The outcome of each rollout."""

    returns: FloatArray  # [episode], discounted
    successes: NDArray[np.bool_]  # [episode]
    lengths: NDArray[np.int64]  # [episode], in steps


def sample_episodes(
    problem: ContinuousProblem,
    policy: Actor,
    episodes: int,
    rng: np.random.Generator,
    gamma: float,
    max_episode_steps: int | Literal["problem"] | None = "problem",
) -> Episodes:
    """Roll out a policy for `episodes` episodes at once.

    `max_episode_steps` is the step at which they are truncated, by default that of the problem. A
    truncated episode is no success and has no further reward.

    >>> import qrmax
    >>> class Right:
    ...     def actions(self, observations, q):
    ...         return np.zeros(len(q), dtype=int)
    >>> line = qrmax.make("continuous/line/ab")
    >>> played = sample_episodes(line, Right(), 1000, np.random.default_rng(7), gamma=0.95)
    >>> float(played.successes.mean()), round(float(played.returns.mean()), 2)
    (1.0, 0.35)
    """
    check_continuous(problem)
    check_count("episodes", episodes)
    check_range("gamma", gamma, above=0.0, at_most=1.0)
    limit = problem.max_episode_steps if max_episode_steps == "problem" else max_episode_steps
    if limit is None:
        raise ParameterError(
            f"{problem.name}: episodes have no limit, and some policies never end one; needed: "
            "max_episode_steps=..."
        )
    check_count("max_episode_steps", limit)
    played = Episodes(np.zeros(episodes), np.zeros(episodes, dtype=bool), np.full(episodes, limit))
    crowd = _Crowd(problem, episodes)
    discount = 1.0
    for age in range(1, limit + 1):
        acting = crowd.episode
        paid = crowd.step(policy, rng)
        played.returns[acting] += discount * paid
        discount *= gamma
        over = crowd.over()
        played.lengths[crowd.episode[over]] = age
        played.successes[crowd.episode[over]] = problem.table.success[crowd.q[over]]
        crowd.keep(~over)
        if not len(crowd.q):
            break
    return played


class _Crowd:
    """The unfinished episodes, in lockstep."""

    def __init__(self, problem: ContinuousProblem, episodes: int) -> None:
        self.problem = problem
        x, y = problem.start_position
        self.episode = np.arange(episodes)  # the numbers of the unfinished ones
        self.x, self.y = np.full(episodes, x), np.full(episodes, y)
        self.cell = np.full(episodes, problem.start)
        self.q = np.full(episodes, problem.start_task_state)
        self.done = problem.done()

    def step(self, policy: Actor, rng: np.random.Generator) -> FloatArray:
        """Take a step in every episode; return the rewards."""
        plane, table = self.problem.plane, self.problem.table
        a = np.asarray(policy.actions(self._observations(rng), self.q))
        g_x, g_y = rng.standard_normal((2, len(a)))
        self.x, self.y, self.cell = moves(plane, self.x, self.y, a, g_x, g_y)
        label, q = self.problem.label[self.cell], self.q
        j = self._outcomes(label, rng)
        self.q = table.next_state[q, label, j].astype(np.int64)
        return np.asarray(plane.reward[self.cell] + table.reward[q, label, j])

    def over(self) -> NDArray[np.bool_]:
        """The episodes that have ended, as a mask."""
        return np.asarray(self.done[self.cell, self.q])

    def keep(self, these: NDArray[np.bool_]) -> None:
        """Continue with these only."""
        for name in ("episode", "x", "y", "cell", "q"):
            setattr(self, name, getattr(self, name)[these])

    def _observations(self, rng: np.random.Generator) -> FloatArray:
        return self.problem.observe(np.stack([self.x, self.y], axis=1), rng)

    def _outcomes(self, label: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw the outcome of the machine in each episode."""
        prob = self.problem.table.prob  # [q, label, j]
        if prob.shape[2] == 1:
            return np.zeros(len(label), dtype=np.int64)
        chance = np.cumsum(prob[self.q, label], axis=1)
        beyond = rng.random(len(label))[:, None] >= chance
        last = (prob[self.q, label] > 0.0).cumsum(axis=1).argmax(axis=1)  # where rounding falls
        return np.asarray(np.minimum(beyond.sum(axis=1), last))
