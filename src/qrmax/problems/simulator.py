"""The simulator of tabular problems, one transition at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.draw import draw
from qrmax.errors import ModelError
from qrmax.problems.problem import Problem
from qrmax.seeding import Chance

S, Q, AGE, OVER, EPISODES = range(5)
"""The entries of `Simulator.state`: the world state, the machine state, the steps of the episode so
far, whether it is over, and the number of episodes begun."""


class Step(NamedTuple):
    """A transition: the outcome of one action."""

    s: Any  # the next world state: a number, or what the agent perceives of it
    q: int  # the next machine state
    label: int  # the label that the machine read
    r_env: float  # reward of the world
    r_task: float  # reward of the machine
    terminated: bool  # the episode has ended: the value of the next state is 0
    truncated: bool  # the episode was cut off: the value of the next state need not be 0
    world_ended: bool  # the world has ended the episode, whatever the machine did


class World(NamedTuple):
    """The dynamics of a problem, as arrays."""

    succ: NDArray[np.int32]  # [s, a, k]
    prob: NDArray[np.float64]  # [s, a, k]
    reward: NDArray[np.float64]  # [s, a, k]
    label: NDArray[np.int32]  # [s]
    next_state: NDArray[np.int32]  # [q, label, j]
    task_prob: NDArray[np.float64]  # [q, label, j]
    task_reward: NDArray[np.float64]  # [q, label, j]
    done: NDArray[np.bool_]  # [s, q]
    terminal: NDArray[np.bool_]  # [q]
    success: NDArray[np.bool_]  # [q]
    start_pair: NDArray[np.int32]  # [i, (s, q)]: possible starts of episodes
    start_prob: NDArray[np.float64]  # [i]
    limit: int  # steps after which episodes are truncated, 0 for never


class Simulator:
    """Simulates a tabular problem with a random stream of its own.

    >>> import qrmax
    >>> from qrmax.seeding import stream
    >>> simulator = Simulator(qrmax.make("office/map1/exp1"), stream(7, "world"))
    >>> simulator.reset()
    >>> simulator.s, simulator.q
    (86, 0)
    >>> simulator.step(0).s
    74
    """

    def __init__(self, problem: Problem, rng: Chance) -> None:
        self.problem = problem
        self.rng = rng
        self.world = _world(problem)
        self.state = np.array([0, 0, 0, 1, 0], dtype=np.int64)  # compiled loops write here, too

    @property
    def s(self) -> int:
        """The world state."""
        return int(self.state[S])

    @s.setter
    def s(self, number: int) -> None:
        self.state[S] = number

    @property
    def q(self) -> int:
        """The machine state."""
        return int(self.state[Q])

    @q.setter
    def q(self, number: int) -> None:
        self.state[Q] = number

    @property
    def over(self) -> bool:
        """Whether the episode is over, so that a reset is needed before the next step."""
        return bool(self.state[OVER])

    @property
    def episodes(self) -> int:
        """The number of episodes that have begun."""
        return int(self.state[EPISODES])

    def reset(self) -> None:
        """Start an episode."""
        i = draw(self.world.start_prob, self.rng.random())
        self.state[:] = (*self.world.start_pair[i], 0, 0, self.state[EPISODES] + 1)

    @property
    def place(self) -> int:
        """The state, on which the end of an episode depends."""
        return self.s

    def look(self) -> int:
        """Return the observation: the state."""
        return self.s

    def cut(self) -> None:
        """End the episode here."""
        self.state[OVER] = 1

    def step(self, a: int) -> Step:
        """Act, then let the machine read the label of the state reached."""
        world, s, q = self.world, self.s, self.q
        k = draw(world.prob[s, a], self.rng.random())
        s_next = int(world.succ[s, a, k])
        label = int(world.label[s_next])
        certain = world.task_prob[q, label, 0] == 1.0
        j = 0 if certain else draw(world.task_prob[q, label], self.rng.random())
        q_next = int(world.next_state[q, label, j])
        age = int(self.state[AGE]) + 1
        terminated = bool(world.done[s_next, q_next])
        truncated = age == world.limit
        self.state[:EPISODES] = (s_next, q_next, age, terminated or truncated)
        return Step(
            s=s_next,
            q=q_next,
            label=label,
            r_env=float(world.reward[s, a, k]),
            r_task=float(world.task_reward[q, label, j]),
            terminated=terminated,
            truncated=truncated,
            world_ended=bool(world.done[s_next, q]),  # q, acted in, is not terminal
        )


def _world(problem: Problem) -> World:
    mdp, table, done = problem.mdp, problem.table, problem.done()
    pairs, prob = starts(problem.name, np.where(done, 0.0, problem.start()))
    return World(
        succ=mdp.succ,
        prob=mdp.prob,
        reward=np.array(mdp.reward),  # never a broadcast view: one compilation serves all
        label=problem.label,
        next_state=table.next_state,
        task_prob=table.prob,
        task_reward=table.reward,
        done=done,
        terminal=table.terminal,
        success=table.success,
        start_pair=pairs,
        start_prob=prob,
        limit=problem.max_episode_steps or 0,
    )


def starts(name: str, start: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The pairs (s, q) in which episodes can start, and their probabilities.

    Terminal pairs are excluded, as `start[s, q]` is 0 there: no episode has length 0.
    """
    if not start.any():
        raise ModelError(f"{name}: every episode is over before it begins")
    pairs = np.argwhere(start > 0.0)
    return np.ascontiguousarray(pairs, dtype=np.int32), start[tuple(pairs.T)] / start.sum()
