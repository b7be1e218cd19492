"""Warehouse: fetch an item and deliver it, again and again; both may fail.

    warehouse/deliver    picking up succeeds with probability 0.8, delivering with 0.9, for reward 1

A floor of `size` x `size` cells: the start and charger at the top left, the item at the top right,
the delivery at the bottom right. After a delivery the task is to return to the charger. Moves are
up, right, down, left and stay; a move slips to either side with probability `slip`, staying never
does. The label is that of the cell that a transition ends in; staying there tries again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from qrmax.errors import ParameterError, check_count, check_range
from qrmax.machines.reward_machine import RewardMachine
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.problem import Problem
from qrmax.source import Source
from qrmax.worlds.grid import GridMap, parse_map, slippery_moves
from qrmax.worlds.options import Options
from qrmax.worlds.world import World

LARGEST = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class WarehouseOptions(Options):
    """The options of the warehouse."""

    size: Annotated[int, "number of columns, and of rows"] = 5
    slip: Annotated[float, "probability that a move slips"] = 0.1
    max_episode_steps: Annotated[int | None, "steps after which episodes are truncated"] = 1000

    def __post_init__(self) -> None:
        check_count("size", self.size)
        if not 2 <= self.size <= LARGEST:
            raise ParameterError(f"size is {self.size}; allowed: 2 to {LARGEST}")
        check_range("slip", self.slip, at_least=0.0, at_most=1.0)
        if self.max_episode_steps is not None:
            check_count("max_episode_steps", self.max_episode_steps)


def warehouse(task: RewardMachine, options: WarehouseOptions, name: str) -> Problem:
    """Warehouse: fetch an item and deliver it, again and again; both may fail."""
    grid = _floor(options.size)
    succ, prob = slippery_moves(
        grid.targets(), slip=options.slip, slips=grid.slips, blocked_moves_slip=True
    )
    here = np.arange(grid.n_states)[:, None, None]
    stay = np.broadcast_to(here, (grid.n_states, 1, succ.shape[2]))
    surely = np.broadcast_to([[[1.0, *[0.0] * (succ.shape[2] - 1)]]], stay.shape)
    mdp = TabularMDP(
        np.concatenate([succ, stay], axis=1),
        np.concatenate([prob, surely], axis=1),
        start=grid.start_state,
        coordinates=grid.coordinates(),
    )
    return Problem(
        mdp,
        task,
        grid.labels(),
        grid.label(),
        max_episode_steps=options.max_episode_steps,
        name=name,
        world=grid,
    )


def _floor(size: int) -> GridMap:
    rows = [["."] * size for _ in range(size)]
    rows[0][0], rows[0][-1], rows[-1][-1] = "h", "i", "d"
    picture = "\n\n".join(" ".join(row) for row in rows)
    header = "start: 0,0\ntiles: h=charger, i=item, d=delivery"
    return parse_map(Source("warehouse", f"{header}\n\n{picture}\n"))


WORLD = World(
    name="warehouse",
    make=warehouse,
    options=WarehouseOptions,
    tasks={"deliver": "warehouse/deliver"},
)
