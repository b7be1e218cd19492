"""Problems of a few states whose optimal policies are known, for the checks of agents."""

from __future__ import annotations

import numpy as np

from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.problem import Problem

SMALL_REWARD = 0.1


def fetch(*, slip: float = 0.2, limit: int = 15) -> Problem:
    """A corridor of four cells: fetch the key at its left end, leave at its right end."""
    cell = np.arange(4)
    moves = np.stack([np.maximum(cell - 1, 0), np.minimum(cell + 1, 3)], axis=1)
    succ = np.stack([moves, np.broadcast_to(cell[:, None], moves.shape)], axis=2)
    prob = np.broadcast_to([1.0 - slip, slip], succ.shape)
    mdp = TabularMDP(succ, prob, start=1, coordinates=cell[:, None])
    return _fetching(mdp, key=0, way_out=3, limit=limit, name="fetch")


def scattered(states: int = 20, spread: int = 7) -> Problem:
    """The same task on a ring, where a move ends in any of several cells: many successors."""
    cell, far = np.arange(states)[:, None], np.arange(1, spread + 1)
    succ = np.stack([cell - far, cell + far], axis=1) % states
    mdp = TabularMDP(succ, np.full(succ.shape, 1.0 / spread), coordinates=cell)
    return _fetching(mdp, key=states // 2, way_out=states - 1, limit=30, name="scattered")


def _fetching(mdp: TabularMDP, *, key: int, way_out: int, limit: int, name: str) -> Problem:
    """Fetch the key in one state, leave in another."""
    label = np.zeros(mdp.n_states, dtype=int)
    label[key], label[way_out] = 1, 2
    return Problem(
        mdp,
        RewardMachine(
            [Edge("go", "key", "has_key"), Edge("has_key", "exit", "out", 1.0)],
            initial="go",
            success=["out"],
        ),
        [(), ["key"], ["exit"]],
        label,
        max_episode_steps=limit,
        name=name,
    )


def cut_short() -> Problem:
    """Episodes of one step, where the better action is rewarded only after the cut.

    In state 0, action 0 is rewarded at once, with little; action 1 leads to state 1, where any
    action is rewarded with 1. Episodes start in both. Both end in state 2.
    """
    return _world([[2, 1], [2, 2], [2, 2]], [[SMALL_REWARD, 0.0], [1.0, 1.0], [0.0, 0.0]], 2, 1)


def dead_end() -> Problem:
    """An action that ends the episode without reward, beside a way to a small reward.

    In state 0, action 0 leads to state 3, which ends the episode; action 1 leads on to state 1, and
    then to state 2, where any action is rewarded and ends the episode.
    """
    reward = [[0.0, 0.0], [0.0, 0.0], [SMALL_REWARD, SMALL_REWARD], [0.0, 0.0]]
    return _world([[3, 1], [2, 2], [3, 3], [3, 3]], reward, 3, 10)


def _world(succ: list[list[int]], reward: list[list[float]], end: int, limit: int) -> Problem:
    """A deterministic world without a task, which starts anywhere and ends in one state."""
    states = len(succ)
    starts = np.full(states, 1.0 / (states - 1))
    starts[end] = 0.0
    return Problem(
        TabularMDP(
            np.array(succ)[:, :, None],
            np.ones((states, 2, 1)),
            np.array(reward)[:, :, None],
            terminal=np.arange(states) == end,
            start=starts,
            coordinates=np.arange(states)[:, None],
        ),
        RewardMachine([], initial="go", states=["go"], name="no task"),
        [()],
        [0] * states,
        max_episode_steps=limit,
        name="cut short" if limit == 1 else "dead end",
    )
