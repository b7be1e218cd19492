"""Scenes: what pictures need of a problem, whether its states are numbered or positions.

A place of the ground is a state of a tabular problem, and a position on the map of a continuous
one, where the tables of an agent are by bucket.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import ParameterError
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.problem import Problem
from qrmax.report.ground import Ground, ground_of, plane_ground
from qrmax.worlds.grid import GridMap

if TYPE_CHECKING:
    from qrmax.agents.base import Agent
    from qrmax.training.run import Run

PANEL_CELL = 30.0  # the side of a cell in a panel
FEW_CELLS = 14  # columns up to which cells of a panel are larger
LARGE_CELL = 40.0
MOST_POSITIONS = 20_000  # of a picture of buckets


class Scene(ABC):
    """A problem's ground, and what is known at its places."""

    problem: Problem | ContinuousProblem
    about_values = ""  # what is said of an agent's values

    @property
    @abstractmethod
    def whole_ground(self) -> Ground:
        """The ground of a picture of the problem alone."""

    @property
    @abstractmethod
    def ground(self) -> Ground:
        """The ground of a panel."""

    @property
    @abstractmethod
    def ends(self) -> NDArray[np.bool_]:
        """The places where the world ends an episode."""

    @abstractmethod
    def at_places(self, agent: Agent, table: NDArray[Any]) -> NDArray[Any]:
        """A table by the agent's states as one by place; 0 where it has never been."""

    @abstractmethod
    def values(self, q: NDArray[np.float64], agent: Agent) -> NDArray[np.float64]:
        """The values `[place, q]` of action values by the agent's states; NaN if there are none."""

    @abstractmethod
    def actions(self, run: Run, q: NDArray[np.float64] | None) -> NDArray[np.int32]:
        """The actions of a run's policy, `[place, q]`; -1 for none to be shown."""

    @abstractmethod
    def buckets(self, agent: Agent) -> tuple[Ground, NDArray[np.int64]]:
        """A fine ground, and the bucket at each place of it; -1 for one never visited."""


class TabularScene(Scene):
    """A tabular problem, whose places are its states."""

    about_values = "; the agent's own values"

    problem: Problem

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @property
    def whole_ground(self) -> Ground:
        """The ground of a picture of the problem alone."""
        return ground_of(self.problem)

    @cached_property
    def ground(self) -> Ground:
        """The ground of a panel, with larger cells if the map is small."""
        grid = self.problem.world
        few = isinstance(grid, GridMap) and grid.width <= FEW_CELLS
        return ground_of(self.problem, LARGE_CELL if few else PANEL_CELL)

    @property
    def ends(self) -> NDArray[np.bool_]:
        """The terminal states of the MDP."""
        return self.problem.mdp.terminal

    def at_places(self, agent: Agent, table: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        """The same table."""
        return table

    def values(self, q: NDArray[np.float64], agent: Agent) -> NDArray[np.float64]:  # noqa: ARG002
        """The largest action values; NaN where no reward can be reached."""
        return self.worth_showing(q.max(axis=2))

    def worth_showing(self, value: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values `[s, q]`, with NaN where no reward can be reached."""
        nothing = self.problem.done() | ((value == 0.0) & (value.min() >= 0.0))
        return np.where(nothing, np.nan, value)

    def actions(self, run: Run, q: NDArray[np.float64] | None) -> NDArray[np.int32]:
        """The greedy actions where not all values are alike, as they are where nothing is known."""
        if q is None:
            return np.where(self.problem.done(), -1, run.policy).astype(np.int32)
        alike = q.max(axis=2) == q.min(axis=2)
        nothing = np.isnan(self.worth_showing(q.max(axis=2)))
        return np.where(alike | nothing, -1, run.policy).astype(np.int32)

    def buckets(self, agent: Agent) -> tuple[Ground, NDArray[np.int64]]:  # noqa: ARG002
        """Refused: states are not in buckets."""
        raise ParameterError(f"{self.problem.name} has discrete states, and no buckets to draw")


class PlaneScene(Scene):
    """A continuous problem, whose places are positions in equal parts of its cells."""

    problem: ContinuousProblem

    def __init__(self, problem: ContinuousProblem) -> None:
        self.problem = problem

    @property
    def whole_ground(self) -> Ground:
        """The ground of a picture of the problem alone."""
        return self.ground

    @cached_property
    def ground(self) -> Ground:
        """The ground of a panel."""
        return plane_ground(self.problem)

    def cells(self, ground: Ground) -> NDArray[np.int64]:
        """The cell of each position."""
        x, y = np.floor(ground.at.T).astype(np.int64)
        return np.asarray(y * self.problem.plane.columns + x)

    @property
    def ends(self) -> NDArray[np.bool_]:
        """The positions in terminal cells."""
        return self.problem.terminal[self.cells(self.ground)]

    @property
    def done(self) -> NDArray[np.bool_]:
        """The positions and machine states in which an episode is over, `[n, q]`."""
        return self.problem.done()[self.cells(self.ground)]

    def at_places(self, agent: Agent, table: NDArray[Any]) -> NDArray[Any]:
        """The rows of the buckets at the positions; 0 in buckets never visited."""
        found = self._found(agent, self.ground)
        return np.concatenate([table, np.zeros_like(table[:1])])[found]

    def values(self, q: NDArray[np.float64], agent: Agent) -> NDArray[np.float64]:
        """The largest action values of buckets; NaN in those never visited."""
        found = self._found(agent, self.ground)
        return np.where((found < 0)[:, None] | self.done, np.nan, q.max(axis=2)[found])

    def actions(self, run: Run, q: NDArray[np.float64] | None) -> NDArray[np.int32]:  # noqa: ARG002
        """The actions of the recommended policy at the positions that have arrows."""
        ground, done, policy = self.ground, self.done, run.recommendation
        seen = self._observed(ground)
        labels = self.problem.label[self.cells(ground)]
        moves = np.full(done.shape, -1, dtype=np.int32)
        for s in np.flatnonzero([ground.has_arrow(s) for s in range(len(seen))]).tolist():
            for q_now in np.flatnonzero(~done[s]).tolist():
                moves[s, q_now] = policy.action(seen[s], int(labels[s]), q_now)
        return moves

    def buckets(self, agent: Agent) -> tuple[Ground, NDArray[np.int64]]:
        """A fine ground, and the bucket at each position of it; -1 for one never visited."""
        ground = plane_ground(self.problem, most=MOST_POSITIONS)
        return ground, self._found(agent, ground)

    def _observed(self, ground: Ground) -> NDArray[np.float64]:
        """The observations of the positions, free of noise."""
        return self.problem.observe(ground.at)

    def _found(self, agent: Agent, ground: Ground) -> NDArray[np.int64]:
        buckets = getattr(agent, "buckets", None)
        if buckets is None:
            raise ParameterError(
                f"{agent.name!r} has no buckets to draw; needed: an agent such as 'bucket-qrmax'"
            )
        labels = self.problem.label[self.cells(ground)]
        found: NDArray[np.int64] = buckets.find_all(self._observed(ground), labels)
        return found


@singledispatch
def scene_of(problem: Any) -> Scene:
    """The scene of a problem of either kind."""
    raise TypeError(f"{type(problem).__name__} is not a problem to draw")


scene_of.register(Problem, TabularScene)
scene_of.register(ContinuousProblem, PlaneScene)
