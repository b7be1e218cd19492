"""Random Office worlds: `random-office/SEED` is a map, its slips and a task, drawn from the seed.

A floor of 6 to 16 columns and rows: rooms with doors, a corridor, an open maze or a hall (see
`floor_plans`), with 2 to 8 labels on one to three cells each, and decorations, which end the
episode as in the Office. The task is a sequence, a choice or a visit in any order (see
`random_tasks`). The probability of a slip is the same everywhere, or differs by room or by cell.

Guaranteed: from the start and from every labelled cell, each labelled cell can be reached along
cells without labels, none of which is next to a decoration: there, an episode ends only by two
slips in a row. So the optimum is positive. At a discount factor of 0.9 the optimal policy may still
take risks to be quick: it succeeds in 3 to 100 % of episodes on the seeds 0 to 1999, in 74 % or
more on 19 of 20 (`python bench/generated.py`).

To compare learners fairly, choose their settings on the seeds 0 to 99, and report the results on
seeds from 1000 on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import check_choice, check_count, check_range
from qrmax.machines.reward_machine import RewardMachine
from qrmax.problems.problem import Problem
from qrmax.source import Source
from qrmax.worlds.draws import Draws
from qrmax.worlds.floor_plans import FloorPlan, open_plan, picture, random_plan
from qrmax.worlds.grid import DECORATION, FLOOR, SLIPS, TILES, GridMap, grid_mdp, parse_map
from qrmax.worlds.options import Options
from qrmax.worlds.random_tasks import random_task
from qrmax.worlds.world import World

SMALLEST, LARGEST = 4, 50  # columns and rows
SIDES = (6, 16)  # those that are drawn
LABELS = (2, 8)
ATTEMPTS = 10  # at a floor plan on which all labels have a place
CELLS_A_LABEL = 6  # at least, so that there is room between labels
DECORATION_TILE = next(tile for tile, name in TILES.items() if name == DECORATION)
LABEL_TILES = [tile for tile in TILES if tile != DECORATION_TILE]
MOST_SLIPS = 30  # per cent


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomOfficeOptions(Options):
    """The options of random Office worlds; None is what the seed says."""

    width: Annotated[int | None, "number of columns"] = None
    height: Annotated[int | None, "number of rows"] = None
    slip: Annotated[float | None, "probability that a move slips"] = None
    slips: Annotated[
        Literal["perpendicular", "any"] | None, "directions that a slipping move may take"
    ] = None
    max_episode_steps: Annotated[int | None, "steps after which episodes are truncated"] = 1000

    def __post_init__(self) -> None:
        for name in ("width", "height"):
            if (value := getattr(self, name)) is not None:
                check_count(name, value, at_least=SMALLEST, at_most=LARGEST)
        if self.slip is not None:
            check_range("slip", self.slip, at_least=0.0, at_most=1.0)
        if self.slips is not None:
            check_choice("slips", self.slips, SLIPS)
        if self.max_episode_steps is not None:
            check_count("max_episode_steps", self.max_episode_steps)


def random_office(
    seed: int, task: RewardMachine | None, options: RandomOfficeOptions, name: str
) -> Problem:
    """Random Office worlds: rooms with doors, decorations, slips and a task, drawn from a seed."""
    drawn = drawn_office(seed, options.width, options.height, options.slips)
    grid, drawn_slip = drawn.grid, drawn.slip
    mdp = grid_mdp(
        grid,
        slip=drawn_slip if options.slip is None else options.slip,
        slips=grid.slips,
        blocked_moves_slip=False,
        decoration_penalty=0.0,
        decorations_terminate=True,
    )
    return Problem(
        mdp,
        task or drawn_task(seed, grid),
        grid.labels(),
        grid.label(),
        max_episode_steps=options.max_episode_steps,
        name=name,
        world=grid,
    )


class DrawnOffice(NamedTuple):
    """The map of a seed, and its probability of a slip in each cell."""

    grid: GridMap
    slip: NDArray[np.float64]


def drawn_office(
    seed: int, width: int | None = None, height: int | None = None, slips: str | None = None
) -> DrawnOffice:
    """The map and the slips of a seed; None is what the seed says."""
    sizes = Draws(seed, "random-office size")
    columns, rows = sizes.integer(*SIDES), sizes.integer(*SIDES)
    floor = _furnished(seed, width or columns, height or rows)
    directions, slip = _slips(seed, floor.plan)
    return DrawnOffice(floor.as_map(f"random-office-{seed}", slips or directions), slip)


def drawn_task(seed: int, grid: GridMap) -> RewardMachine:
    """The task of a seed on its map."""
    names = sorted(grid.propositions - {DECORATION})
    kinds = ("sequence", "any-order", "branching")
    return random_task(Draws(seed, "random-office task"), names, kinds)


def _slips(seed: int, plan: FloorPlan) -> tuple[str, NDArray[np.float64]]:
    """The directions of slips, and the probability of one in each state."""
    draws = Draws(seed, "random-office slips")
    directions = SLIPS[0] if draws.happens(0.75) else SLIPS[1]
    floor, room, cell = (
        np.zeros(plan.rooms.size, dtype=int),
        plan.rooms.reshape(-1),
        np.arange(plan.rooms.size),
    )
    zone = draws.one_of((floor, floor, room, cell))  # the number of the zone of each state
    least = 5 if zone is floor else 0
    shares = [draws.integer(least, MOST_SLIPS) / 100.0 for _ in range(int(zone.max()) + 1)]
    return directions, np.array(shares)[zone]


def _furnished(seed: int, width: int, height: int) -> _Floor:
    """A floor with a start, labels and decorations."""
    for attempt in range(ATTEMPTS + 1):
        draws = Draws(seed, f"random-office floor {attempt}")
        plan = random_plan(draws, width, height)
        floor = _Floor(plan if attempt < ATTEMPTS else open_plan(width, height), draws)
        if len(floor.tiles_of_labels) >= LABELS[0]:
            break
    floor.decorate(draws)
    return floor


class _Floor:
    """A floor plan with tiles, which are put down only if the guarantee still holds."""

    def __init__(self, plan: FloorPlan, draws: Draws) -> None:
        self.plan = plan
        self.size = int(plan.rooms.size)
        self.start = draws.integer(0, self.size - 1)
        self.tiles: dict[int, str] = {}  # by state
        targets = self.as_map("a floor", SLIPS[0]).targets()
        self.near = [{*row} - {state} for state, row in enumerate(targets.tolist())]
        most = min(LABELS[1], self.size // CELLS_A_LABEL)
        for tile in draws.some_of(LABEL_TILES, draws.integer(LABELS[0], most)):
            for _ in range(draws.one_of((1, 1, 1, 2, 3))):
                self._put(tile, draws)

    @property
    def tiles_of_labels(self) -> set[str]:
        """The tiles of all labels that are somewhere on the floor."""
        return {*self.tiles.values()} - {DECORATION_TILE}

    def decorate(self, draws: Draws) -> None:
        """Put decorations down, on up to a fifth of the cells."""
        for _ in range(draws.integer(0, self.size // 5)):
            self._put(DECORATION_TILE, draws)

    def as_map(self, name: str, slips: str) -> GridMap:
        """The floor as a map."""
        width = self.plan.rooms.shape[1]
        tiles = np.full(self.size, FLOOR)
        for state, tile in self.tiles.items():
            tiles[state] = tile
        row, column = divmod(self.start, width)
        header = f"start: {column},{row}\nslips: {slips}"
        text = picture(self.plan, tiles.reshape(self.plan.rooms.shape))
        return parse_map(Source(name, f"{header}\n\n{text}\n"))

    def _put(self, tile: str, draws: Draws) -> None:
        """Put a tile on a random cell, if that is free and the guarantee still holds."""
        state = draws.integer(0, self.size - 1)
        if state != self.start and state not in self.tiles:
            self.tiles[state] = tile
            if not self._holds():
                del self.tiles[state]

    def _holds(self) -> bool:
        """Whether all labels can be reached past the others, never next to a decoration."""
        decorated = {state for state, tile in self.tiles.items() if tile == DECORATION_TILE}
        unsafe = decorated.union(*(self.near[state] for state in decorated))
        labelled = self.tiles.keys() - decorated
        if self.start in unsafe or unsafe & labelled:
            return False
        reached, ahead = {self.start}, [self.start]
        while ahead:
            found = self.near[ahead.pop()] - reached - unsafe
            reached |= found
            ahead += found - labelled
        return labelled <= reached


WORLD = World(
    name="random-office",
    make=random_office,
    options=RandomOfficeOptions,
    seeds=(*range(100), *range(1000, 1100)),
    meaning_of_none=dict.fromkeys(("width", "height", "slip", "slips"), "drawn from the seed"),
)
