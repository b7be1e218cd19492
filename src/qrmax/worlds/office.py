"""The Office worlds of the paper: a grid map, a task, and the rules of decorations and slips."""

from __future__ import annotations

import os
from dataclasses import dataclass

from qrmax.errors import check_choice, check_count, check_flag, check_range
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import AnyTask, load_task, task_names
from qrmax.problems.problem import Problem
from qrmax.worlds.grid import SLIPS, GridMap, grid_mdp, load_map
from qrmax.worlds.options import Options


@dataclass(frozen=True, kw_only=True, slots=True)
class OfficeOptions(Options):
    """The rules of an Office world.

    The defaults are those under which the paper's value-iteration columns come out; the paper's
    text has a `decoration_penalty` of 100, under which it is best never to move on most maps.
    """

    slip: float = 0.2  # probability that a move goes elsewhere
    slips: str | None = None  # where to: "perpendicular" or "any"; None: as the map file says
    decoration_penalty: float = 0.0  # what stepping on a decoration costs; its sign is ignored
    decorations_terminate: bool = True  # whether it also ends the episode
    blocked_moves_slip: bool = False  # whether a move into a wall can slip, or just waits
    max_episode_steps: int | None = 1000  # episodes are truncated here; None: never

    def __post_init__(self) -> None:
        check_range("slip", self.slip, at_least=0.0, at_most=1.0)
        if self.slips is not None:
            check_choice("slips", self.slips, SLIPS)
        check_range("decoration_penalty", self.decoration_penalty, at_least=-1e100, at_most=1e100)
        check_flag("decorations_terminate", self.decorations_terminate)
        check_flag("blocked_moves_slip", self.blocked_moves_slip)
        if self.max_episode_steps is not None:
            check_count("max_episode_steps", self.max_episode_steps)


def office_task(grid: GridMap, task: AnyTask) -> RewardMachine:
    """The task of that name on that map: `map4/exp6` is another one than `exp6`."""
    if isinstance(task, RewardMachine):
        return task
    own = f"{grid.name}/{task}"
    return load_task(own if own in task_names() else task)


def office_problem(grid: GridMap, task: RewardMachine, options: OfficeOptions) -> Problem:
    """The problem of doing a task on a map."""
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
        name=f"office/{grid.name}/{task.name.removeprefix(grid.name + '/')}",
        world=grid,
    )


def office(
    map: str | os.PathLike[str] | GridMap,  # noqa: A002 (people call it a map)
    task: AnyTask,
    options: OfficeOptions,
) -> Problem:
    """The problem of doing a task on a map, each given by a name, a path or itself."""
    grid = map if isinstance(map, GridMap) else load_map(map)
    return office_problem(grid, office_task(grid, task), options)
