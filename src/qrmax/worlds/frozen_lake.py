"""Frozen Lake on cells: visit places in order, past the holes, which end the episode.

    frozen-lake/ab     visit A, then B
    frozen-lake/abc    visit A, B and C in this order

The lake is that of `continuous/frozen-lake`, 10 x 10. A move slips to either side with probability
`slip`; Gymnasium's FrozenLake-v1 has 2/3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from qrmax.errors import check_count, check_range
from qrmax.machines.reward_machine import RewardMachine
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.problem import Problem
from qrmax.worlds.continuous import HOLE, PLANES
from qrmax.worlds.grid import GridMap, slippery_moves
from qrmax.worlds.map_folder import MapFolder
from qrmax.worlds.options import Options
from qrmax.worlds.world import World


@dataclass(frozen=True, kw_only=True, slots=True)
class FrozenLakeOptions(Options):
    """The options of Frozen Lake."""

    slip: Annotated[float, "probability that a move slips"] = 0.2
    max_episode_steps: Annotated[int | None, "steps after which episodes are truncated"] = 1000

    def __post_init__(self) -> None:
        check_range("slip", self.slip, at_least=0.0, at_most=1.0)
        if self.max_episode_steps is not None:
            check_count("max_episode_steps", self.max_episode_steps)


def frozen_lake(
    grid: GridMap, task: RewardMachine, options: FrozenLakeOptions, name: str
) -> Problem:
    """Frozen Lake, 10 x 10, on cells; holes end the episode."""
    succ, prob = slippery_moves(
        grid.targets(), slip=options.slip, slips=grid.slips, blocked_moves_slip=True
    )
    labels, label = grid.labels(), grid.label()
    holes = np.array([HOLE in each for each in labels])[label]
    return Problem(
        TabularMDP(
            succ, prob, terminal=holes, start=grid.start_state, coordinates=grid.coordinates()
        ),
        task,
        labels,
        label,
        max_episode_steps=options.max_episode_steps,
        name=name,
        world=grid,
    )


WORLD = World(
    name="frozen-lake",
    make=frozen_lake,
    options=FrozenLakeOptions,
    tasks={"ab": "continuous/ab", "abc": "continuous/abc"},
    maps=MapFolder(folder=PLANES, default="frozen-lake"),
)
