"""Random Office maps with real-valued positions: `continuous/random-office/SEED`, task included.

The map and the task are those of `random-office/SEED`; moves are those of the other continuous
worlds, so that what slips there is noise here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from qrmax.errors import check_count
from qrmax.machines.reward_machine import RewardMachine
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.worlds.continuous import ContinuousOptions, Scale, continuous
from qrmax.worlds.random_office import LARGEST, SMALLEST, drawn_office, drawn_task
from qrmax.worlds.random_office import WORLD as RANDOM_OFFICE
from qrmax.worlds.world import World

SCALE = Scale()


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomPlaneOptions(ContinuousOptions):
    """The options of random maps with real-valued positions; None is what the seed says."""

    width: Annotated[int | None, "number of columns"] = None
    height: Annotated[int | None, "number of rows"] = None

    def __post_init__(self) -> None:
        ContinuousOptions.__post_init__(self)
        for name in ("width", "height"):
            if (value := getattr(self, name)) is not None:
                check_count(name, value, at_least=SMALLEST, at_most=LARGEST)


def continuous_random_office(
    seed: int, task: RewardMachine | None, options: RandomPlaneOptions, name: str
) -> ContinuousProblem:
    """The map and the task of `random-office/SEED`, with real-valued positions."""
    grid = drawn_office(seed, options.width, options.height).grid
    return continuous(SCALE, grid, task or drawn_task(seed, grid), options, name)


WORLD = World(
    name="continuous/random-office",
    make=continuous_random_office,
    options=RandomPlaneOptions,
    seeds=RANDOM_OFFICE.seeds,
    continuous=True,
    meaning_of_none={
        "step": SCALE.step,
        "noise": SCALE.noise,
        **dict.fromkeys(("width", "height"), "drawn from the seed"),
    },
)
