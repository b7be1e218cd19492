"""Compiled sampling of the episodes of a policy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qrmax.agents import step_loops
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.problems.simulator import World
from qrmax.seeding import Stream


def sample(
    world: World,
    state: NDArray[np.int64],
    actions: IntArray,
    gamma: float,
    episodes: int,
    chance: Stream,
    ground: step_loops.Ground | None = None,
) -> FloatArray:
    """Episodes of a policy `[h, s, q]`: the return of each, its success, its length."""
    found, under_way = np.empty((episodes, 3)), np.zeros(2)
    episode = 0
    while episode < episodes:
        chance.refill()
        numbers = step_loops.Numbers(chance.block, chance.at)
        episode = step_loops.sample_returns(
            world, state, actions, gamma, numbers, found, episode, under_way, ground
        )
    return found
