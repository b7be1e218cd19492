"""The Office worlds of the paper: a grid map, a task, and the rules of decorations and slips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from qrmax.errors import check_choice, check_count, check_flag, check_range
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import AnyTask, task_names
from qrmax.problems.problem import Problem
from qrmax.worlds.grid import MAPS, SLIPS, GridMap, grid_mdp
from qrmax.worlds.map_folder import MapFolder
from qrmax.worlds.options import Options
from qrmax.worlds.world import World


@dataclass(frozen=True, kw_only=True, slots=True)
class OfficeOptions(Options):
    """The options of an Office world.

    The defaults reproduce the paper's value-iteration columns; the paper's text has a
    `decoration_penalty` of 100, under which it is optimal never to move on most maps.
    """

    slip: Annotated[float, "probability that a move slips"] = 0.2
    slips: Annotated[
        Literal["perpendicular", "any"] | None, "directions that a slipping move may take"
    ] = None
    decoration_penalty: Annotated[
        float, "cost of stepping on a decoration or into a hole; its sign is ignored"
    ] = 0.0
    decorations_terminate: Annotated[bool, "whether that also ends the episode"] = True
    blocked_moves_slip: Annotated[bool, "whether a move into a wall can slip, or just stays"] = (
        False
    )
    max_episode_steps: Annotated[int | None, "steps after which episodes are truncated"] = 1000

    def __post_init__(self) -> None:
        check_range("slip", self.slip, at_least=0.0, at_most=1.0)
        if self.slips is not None:
            check_choice("slips", self.slips, SLIPS)
        check_range("decoration_penalty", self.decoration_penalty, at_least=-1e100, at_most=1e100)
        check_flag("decorations_terminate", self.decorations_terminate)
        check_flag("blocked_moves_slip", self.blocked_moves_slip)
        if self.max_episode_steps is not None:
            check_count("max_episode_steps", self.max_episode_steps)


def office(grid: GridMap, task: RewardMachine, options: OfficeOptions, name: str) -> Problem:
    """The Office worlds of the paper: grids with walls, decorations and slipping moves."""
    mdp = grid_mdp(
        grid,
        slip=options.slip,
        slips=options.slips or grid.slips,
        blocked_moves_slip=options.blocked_moves_slip,
        decoration_penalty=options.decoration_penalty,
        decorations_terminate=options.decorations_terminate,
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


def office_tasks() -> dict[str, AnyTask]:
    """Return the tasks of the paper, which are the built-in ones that belong to no other world."""
    return {name: name for name in task_names() if "/" not in name}


WORLD = World(
    name="office",
    make=office,
    options=OfficeOptions,
    tasks=office_tasks(),
    maps=MapFolder(folder=MAPS),
    meaning_of_none={"slips": "as the map says"},
)
