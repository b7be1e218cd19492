"""NMRDPs whose states are positions in a plane, and their simulator.

The counterpart of `Problem` for real-valued positions: a world, a labelling function, and a
task. The world is a plane of cells (see `plane.py`); the cell that a move ends in determines the
label, and whether the episode ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrmax.draw import draw
from qrmax.errors import ModelError, ParameterError, check_count
from qrmax.logic.guards import Label, as_label
from qrmax.machines.reward_machine import RewardMachine
from qrmax.pictures.drawing import Picture
from qrmax.pictures.on_demand import drawn
from qrmax.problems.observations import Observations
from qrmax.problems.plane import NEAR, FloatArray, Plane, cell_of, check_plane, gaussian, move
from qrmax.problems.problem import warn_of_what_can_never_be
from qrmax.problems.sensor import FARTHEST, Sensor
from qrmax.problems.shaped import unshaped, warn_of_world_ends
from qrmax.problems.simulator import AGE, EPISODES, OVER, Q, S, Step, World, starts
from qrmax.seeding import Chance


class ContinuousProblem:
    """An NMRDP in a plane: its dynamics, a label for each cell, and a reward machine.

    Args:
        plane: the dynamics: directions, noise, walls and rewards of the cells.
        machine: the task.
        labels: the distinct labels, each a set of propositions.
        label: `label[cell]` numbers the label of a cell in `labels`.
        terminal: `terminal[cell]` is whether episodes end in that cell.
        start: the cell in whose middle episodes start.
        max_episode_steps: the step after which episodes are truncated; None for never.
        name: its name, for messages and files.
        world: the map, for drawing.
        rotation: the angle between the axes of observations and those of the plane, in degrees.
        sensor_noise: the standard deviation of noise on observations; the state stays hidden then.

    >>> import qrmax
    >>> qrmax.make("continuous/frozen-lake/abc")
    ContinuousProblem('continuous/frozen-lake/abc': 10 x 10 cells x 4 task states, 4 actions)
    """

    def __init__(
        self,
        plane: Plane,
        machine: RewardMachine,
        labels: Iterable[Iterable[str]],
        label: ArrayLike,
        *,
        terminal: ArrayLike,
        start: int,
        max_episode_steps: int | None = None,
        name: str = "problem",
        world: object | None = None,
        rotation: float = 0.0,
        sensor_noise: float = 0.0,
    ) -> None:
        self.plane = plane
        self.machine = machine
        self.labels: tuple[Label, ...] = tuple(
            as_label(names, f"labels[{number}]") for number, names in enumerate(labels)
        )
        self.label = np.array(label, dtype=np.int32)  # [cell]
        self.terminal = np.asarray(terminal, dtype=bool)
        self.start = start
        self.max_episode_steps = max_episode_steps
        self.name = name
        self.world = world
        self.rotation = rotation
        self.sensor_noise = sensor_noise
        self._check()
        self.sensor = Sensor.of(len(plane.scale), rotation, sensor_noise)
        self.table = machine.table(self.labels)
        machine.reset(self.labels[self.label[start]])  # a TaskError if that is random
        if max_episode_steps is not None:
            check_count("max_episode_steps", max_episode_steps)
        if self.done()[start, self.start_task_state]:
            raise ModelError(f"{name}: every episode is over before it begins")
        warn_of_what_can_never_be(self)
        ends, others = (np.unique(self.label[cells]) for cells in (self.terminal, ~self.terminal))
        warn_of_world_ends(self, ends.tolist(), others.tolist())

    @property
    def n_cells(self) -> int:
        """The number of cells of the plane."""
        return len(self.label)

    @property
    def n_task_states(self) -> int:
        """The number of machine states."""
        return len(self.machine.states)

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return len(self.plane.direction)

    @cached_property
    def observations(self) -> Observations:
        """The space of observations: positions, as the sensor has them."""
        size = np.array([self.plane.columns, self.n_cells // self.plane.columns], dtype=float)
        scale = self.plane.scale
        return Observations(*self.sensor.bounds(size[: len(scale)] * scale))

    def observe(self, positions: FloatArray, rng: np.random.Generator | None = None) -> FloatArray:
        """Positions in cells `[n, 2]` as observations `[n, d]`; without `rng` free of noise."""
        scale = self.plane.scale
        return self.sensor.observe(positions[:, : len(scale)] * scale, rng)

    def positions(self, observations: FloatArray) -> FloatArray:
        """Observations `[n, d]` as positions in cells, `[n, 2]`; a line runs at y = 0.5.

        One that rounding has moved off a border of cells, where walls may be, is moved back; one
        outside the plane is moved to its border.
        """
        at = np.full((len(observations), 2), 0.5)
        at[:, : observations.shape[1]] = self.sensor.places(observations) / self.plane.scale
        border = np.rint(at)
        at = np.where(np.abs(at - border) < 0.5 * NEAR, border, at)
        columns = self.plane.columns
        size = np.array([columns, self.n_cells // columns])
        return np.asarray(np.clip(at, 0.0, size - NEAR))

    @property
    def start_position(self) -> tuple[float, float]:
        """The start of episodes, in cells: the middle of the start cell."""
        row, column = divmod(self.start, self.plane.columns)
        return column + 0.5, row + 0.5

    @property
    def start_task_state(self) -> int:
        """The machine state that episodes start in."""
        return int(self.table.initial[self.label[self.start]])

    @property
    def unshaped(self) -> ContinuousProblem:
        """The problem by which policies are evaluated: itself, or without reward shaping."""
        return unshaped(self)

    def label_of(self, observation: Any, info: Any = None) -> int:  # noqa: ARG002
        """The number of the label of the position that is observed."""
        [[x, y]] = self.positions(self.observations.check(observation)[None]).tolist()
        return int(self.label[cell_of(self.plane, x, y)])

    def done(self) -> NDArray[np.bool_]:
        """The pairs of cell and machine state that end the episode, `[cell, q]`."""
        return self.terminal[:, None] | self.table.terminal[None, :]

    def reward_range(self) -> tuple[float, float]:
        """The least and the greatest reward of a transition, of world and task together."""
        env, task = self.plane.reward, self.table.reward
        return float(env.min() + task.min()), float(env.max() + task.max())

    def draw(self, walker: tuple[float, float] | None = None, *, machine: bool = True) -> Picture:
        """Draw the map, and the machine beside it.

        `save` of the picture writes SVG, PNG or PDF; a notebook shows it. `walker` is the position
        of a walker, in cells; `machine=False` leaves the machine out.

        >>> import qrmax
        >>> qrmax.make("continuous/line/ab").draw().title
        'continuous/line/ab'
        """
        picture: Picture = drawn("problem_picture:draw_problem", self, walker, machine=machine)
        return picture

    def _repr_svg_(self) -> str:
        return self.draw().svg()

    def _check(self) -> None:
        """Refuse arrays that do not fit: moves could leave the plane, or read wrong labels."""
        check_plane(self.plane)
        n_cells = len(self.plane.wall)
        if self.label.shape != (n_cells,) or self.terminal.shape != (n_cells,):
            raise ModelError(
                f"{self.name}: label has shape {self.label.shape}, terminal has shape "
                f"{self.terminal.shape}; needed: one entry for each of {n_cells} cells"
            )
        outside = (self.label < 0) | (self.label >= len(self.labels))
        if outside.any():
            cell = int(outside.argmax())
            raise ModelError(
                f"{self.name}: label is {self.label[cell]} at cell {cell}; "
                f"allowed: 0 to {len(self.labels) - 1}"
            )
        if self.rotation and len(self.plane.scale) == 1:
            raise ModelError(f"{self.name}: rotation is {self.rotation:g}; a line has only 0")
        if not 0 <= self.start < n_cells:
            raise ModelError(
                f"{self.name}: start is cell {self.start}; allowed: 0 to {n_cells - 1}"
            )

    def __repr__(self) -> str:
        columns = self.plane.columns
        return (
            f"ContinuousProblem({self.name!r}: {columns} x {self.n_cells // columns} cells x "
            f"{self.n_task_states} task states, {self.n_actions} actions)"
        )


class PlaneSimulator:
    """Simulates a continuous problem with a random stream of its own.

    `perceive` maps an observation and its label to the state `s` of the agent.
    """

    def __init__(
        self, problem: ContinuousProblem, rng: Chance, perceive: Callable[[FloatArray, int], Any]
    ) -> None:
        self.problem = problem
        self.rng = rng
        self.world = _world(problem)
        self.perceive = perceive
        self.position = np.zeros(2)  # compiled loops write here, too
        self.observed = np.zeros(len(problem.plane.scale))  # likewise
        self.state = np.array([0, 0, 0, 1, 0], dtype=np.int64)
        self._seen: Any = None  # the state perceived last, if it is not a number

    @property
    def s(self) -> Any:
        """The state perceived last."""
        return int(self.state[S]) if self._seen is None else self._seen

    @property
    def q(self) -> int:
        """The machine state."""
        return int(self.state[Q])

    @property
    def over(self) -> bool:
        """Whether the episode is over, so that a reset is needed before the next step."""
        return bool(self.state[OVER])

    @property
    def episodes(self) -> int:
        """The number of episodes that have begun."""
        return int(self.state[EPISODES])

    def observation(self) -> FloatArray:
        """Return the current observation."""
        return self.observed.copy()

    @property
    def place(self) -> int:
        """The cell, on which the end of an episode depends."""
        x, y = self.position.tolist()
        return cell_of(self.problem.plane, x, y)

    def stand(self, position: ArrayLike, observed: ArrayLike | None = None) -> None:
        """Continue from a position; a `ModelError` if it is not in the plane.

        `observed` is the current observation: by default that of the position without noise. It is
        a `ModelError` if it cannot be one of that position.
        """
        columns = self.problem.plane.columns
        rows = self.problem.n_cells // columns
        x, y = np.asarray(position, dtype=np.float64).tolist()
        if not (0.0 <= x < columns and 0.0 <= y < rows):
            raise ModelError(f"({x:g}, {y:g}) is not in a plane of {columns} x {rows} cells")
        self.position[:] = (x, y)
        exact = self.problem.observe(self.position[None])[0]
        self.observed[:] = exact if observed is None else self.problem.observations.check(observed)
        if (np.abs(self.observed - exact) > self.problem.sensor.reach).any():
            raise ModelError(f"{self.observed.tolist()} is observed, where {exact.tolist()} is")

    def look(self) -> Any:
        """Perceive the current observation."""
        label = int(self.world.label[self.place])
        seen = self.perceive(self.observation(), label)
        if isinstance(seen, int):
            self.state[S] = seen  # compiled loops continue from there
        else:
            self._seen = seen
        return seen

    def reset(self) -> None:
        """Start an episode."""
        i = draw(self.world.start_prob, self.rng.random())
        cell, q = self.world.start_pair[i].tolist()
        columns = self.problem.plane.columns
        self.position[:] = (cell % columns + 0.5, cell // columns + 0.5)
        self._sense()
        self.state[:] = (0, q, 0, 0, self.state[EPISODES] + 1)
        self.look()

    def cut(self) -> None:
        """End the episode here."""
        self.state[OVER] = 1

    def step(self, a: int) -> Step:
        """Act, then let the machine read the label of the cell reached."""
        world, plane, q = self.world, self.problem.plane, self.q
        g_x, g_y = gaussian(self.rng.random(), self.rng.random())
        x, y, cell = move(plane, float(self.position[0]), float(self.position[1]), a, g_x, g_y)
        self.position[:] = (x, y)
        self._sense()
        label = int(world.label[cell])
        certain = world.task_prob[q, label, 0] == 1.0
        j = 0 if certain else draw(world.task_prob[q, label], self.rng.random())
        q_next = int(world.next_state[q, label, j])
        age = int(self.state[AGE]) + 1
        terminated = bool(world.done[cell, q_next])
        truncated = age == world.limit
        self.state[Q], self.state[AGE], self.state[OVER] = q_next, age, terminated or truncated
        return Step(
            s=self.look(),
            q=q_next,
            label=label,
            r_env=float(plane.reward[cell]),
            r_task=float(world.task_reward[q, label, j]),
            terminated=terminated,
            truncated=truncated,
            world_ended=bool(world.done[cell, q]),
        )

    def _sense(self) -> None:
        """Observe the current position (as `_sense` in agents/step_loops.py)."""
        axes, noise = self.problem.sensor
        scale = self.problem.plane.scale.tolist()
        place = [at * unit for at, unit in zip(self.position.tolist(), scale, strict=False)]
        blur = gaussian(self.rng.random(), self.rng.random()) if noise else (0.0, 0.0)
        for i, shares in enumerate(axes.tolist()):
            exact = sum(share * at for share, at in zip(shares, place, strict=True))
            self.observed[i] = exact + noise * min(max(blur[i], -FARTHEST), FARTHEST)


def _world(problem: ContinuousProblem) -> World:
    """The arrays of a simulator besides the plane; states are cells, without successor lists."""
    table, done = problem.table, problem.done()
    start = np.zeros(done.shape)
    start[problem.start, table.initial[problem.label[problem.start]]] = 1.0
    pairs, prob = starts(problem.name, np.where(done, 0.0, start))
    none = (0, problem.n_actions, 1)
    return World(
        succ=np.zeros(none, dtype=np.int32),
        prob=np.zeros(none),
        reward=np.zeros(none),
        label=problem.label,
        next_state=table.next_state,
        task_prob=table.prob,
        task_reward=table.reward,
        done=done,
        terminal=table.terminal,
        success=table.success,
        start_pair=pairs,
        start_prob=prob,
        limit=problem.max_episode_steps or 0,
    )


def check_continuous(problem: object) -> None:
    """Raise a `ParameterError` unless this is a continuous problem."""
    if not isinstance(problem, ContinuousProblem):
        raise ParameterError(
            f"problem is {str(problem)[:60]!r}; needed: a ContinuousProblem, such as "
            "qrmax.make('continuous/frozen-lake/abc')"
        )
