"""Problems that can be solved by hand, for the tests of planners and learners."""

from __future__ import annotations

import numpy as np

from qrmax import Edge, Problem, RewardMachine, TabularMDP

LEFT, RIGHT = 0, 1


def errand(
    *,
    cells: int = 4,
    start: int = 1,
    limit: int | None = None,
    slip: float = 0.0,
    exit_ends_world: bool = False,
    machine: RewardMachine | None = None,
) -> Problem:
    """A corridor: fetch the key at its left end, then leave at the right end, which pays 1.

    A move that slips leaves the walker where he is. Where the exit ends the world, too, whoever
    comes there without the key has nothing more to hope for.
    """
    cell = np.arange(cells)
    moves = np.stack([np.maximum(cell - 1, 0), np.minimum(cell + 1, cells - 1)], axis=1)
    succ = np.stack([moves, np.broadcast_to(cell[:, None], moves.shape)], axis=2)
    prob = np.broadcast_to([1.0 - slip, slip], succ.shape)
    at_exit = cell == cells - 1
    terminal = at_exit & exit_ends_world
    mdp = TabularMDP(succ, prob, terminal=terminal, start=start, coordinates=cell[:, None])
    label = np.where(cell == 0, 1, np.where(at_exit, 2, 0))
    return Problem(
        mdp,
        fetch_and_leave() if machine is None else machine,
        [(), ["key"], ["exit"]],
        label,
        max_episode_steps=limit,
        name="errand",
    )


def fetch_and_leave(*more: Edge) -> RewardMachine:
    """Key, then exit, which pays 1. Other edges come after these."""
    return RewardMachine(
        [Edge("go", "key", "has_key"), Edge("has_key", "exit", "out", 1.0), *more],
        initial="go",
        success=["out"],
    )


def no_task() -> RewardMachine:
    """A machine that never moves, pays or ends: all there is to win is what the world pays."""
    return RewardMachine([], initial="go", states=["go"])


def payday() -> Problem:
    """Work (0) pays 1, leaving (1) pays 2 and ends it."""
    mdp = TabularMDP(
        [[[0], [1]], [[1], [1]]],
        np.ones((2, 2, 1)),
        [[[1.0], [2.0]], [[0.0], [0.0]]],
        terminal=[False, True],
    )
    return Problem(mdp, no_task(), [()], [0, 0], name="payday")


def riverswim(limit: int | None = None) -> Problem:
    """Six places along a river (Strehl and Littman): down is certain, up is against the current.

    The lower end pays 0.005 for staying there, the upper end 1; to get there takes many tries.
    """
    places, last = 6, 5
    dense, reward = np.zeros((places, 2, places)), np.zeros((places, 2, places))
    for place in range(places):
        dense[place, LEFT, max(place - 1, 0)] = 1.0
        up, down = min(place + 1, last), max(place - 1, 0)
        for target, chance in ((up, 0.35), (place, 0.6), (down, 0.05)):
            dense[place, RIGHT, target] += chance
    reward[0, LEFT, 0] = 0.005
    reward[last, RIGHT, last] = 1.0
    mdp = TabularMDP.from_dense(dense, reward)
    label = [0] * places
    return Problem(mdp, no_task(), [()], label, max_episode_steps=limit, name="riverswim")
