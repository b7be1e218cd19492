"""Our worlds as Gymnasium environments.

    >>> import gymnasium, qrmax
    >>> env = gymnasium.make("qrmax/Office-map1-exp5-v0", slip=0.1)
    >>> observation, info = env.reset(seed=7)
    >>> int(observation["state"]), int(observation["task"])
    (86, 0)
    >>> observation, reward, terminated, truncated, info = env.step(0)
    >>> sorted(info)
    ['label', 'r_env', 'r_task', 'success', 'world_ended']
    >>> env.close()

The observation holds the numbers of the world state and of the task state. `info` splits the reward
into that of the world and that of the task, and has the label read (the propositions true in the
state reached), whether the task has succeeded, and whether the world itself has ended the episode.

In worlds with real-valued positions the state is the position:

    >>> env = gymnasium.make("qrmax/ContinuousFrozenLake-abc-v0", noise=0.02)
    >>> env.reset(seed=7)[0]["state"].tolist()
    [5.5, 0.5]
    >>> env.close()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from qrmax.errors import ParameterError
from qrmax.machines.task_files import AnyTask
from qrmax.problems.continuous_problem import ContinuousProblem, PlaneSimulator, check_continuous
from qrmax.problems.coordinates import CoordinatesOfObservations
from qrmax.problems.problem import Problem, check_problem
from qrmax.problems.simulator import Simulator
from qrmax.worlds.catalog import make, make_continuous
from qrmax.worlds.grid import ACTIONS, MOVES, GridMap
from qrmax.worlds.map_folder import AnyMap
from qrmax.worlds.picture import Walker, write
from qrmax.worlds.picture import draw as draw_picture
from qrmax.worlds.world import AnyProblem, World
from qrmax.worlds.world_registry import on_world

Observation = dict[str, Any]
Info = dict[str, Any]
RENDER_MODES = ("ansi", "rgb_array")


def register_ids(world: World[AnyProblem]) -> None:
    """Register the problems of a world, and the world itself for any task and map of your own."""
    env = "ContinuousEnv" if world.continuous else "ProblemEnv"
    for name in ("", *world.problem_names()):
        env_id = world.gymnasium_id(name)
        known = gymnasium.registry.get(env_id)
        if known is not None and str(known.entry_point).startswith(__name__):
            del gymnasium.registry[env_id]  # a replaced world: avoids Gymnasium's warning
        gymnasium.register(
            env_id,
            entry_point=f"{__name__}:{env}",
            max_episode_steps=world.defaults.get("max_episode_steps"),
            kwargs={"problem": name or world.name},
        )


class WorldEnv(gymnasium.Env[Observation, np.int64]):
    """Base class of the environments of problems: episodes, observations and `info`."""

    metadata = {"render_modes": [*RENDER_MODES], "render_fps": 8}  # noqa: RUF012 (Gymnasium's)
    problem: Problem | ContinuousProblem
    _simulator: Simulator | PlaneSimulator

    def __init__(
        self, states: spaces.Space[Any], terminal: NDArray[np.bool_], render_mode: str | None
    ) -> None:
        parts: dict[str, spaces.Space[Any]] = {
            "state": states,
            "task": spaces.Discrete(self.problem.n_task_states),
        }
        self.observation_space = spaces.Dict(parts)
        self.action_space = spaces.Discrete(self.problem.n_actions)
        self.grid: Any = self.problem.world
        self.render_mode = self._check_render_mode(render_mode)
        self._terminal = terminal  # [place]
        self._last: int | None = None  # the last action of this episode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Start an episode; the machine reads the label of the start state if it is defined to."""
        super().reset(seed=seed, options=options)
        self._simulator.rng = self.np_random
        self._simulator.reset()
        self._last = None
        return self._observation(), self._info(0.0, 0.0)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, Info]:
        """Take an action; the machine then reads the label of the state reached."""
        if not self.action_space.contains(action):
            raise ParameterError(
                f"action is {action!r}; allowed: 0 to {self.problem.n_actions - 1}"
            )
        self._last = int(action)
        if self._simulator.world.done[self._simulator.place, self._simulator.q]:
            return self._observation(), 0.0, True, False, self._info(0.0, 0.0)
        step = self._simulator.step(self._last)
        truncated = step.truncated and not self._gymnasium_truncates()
        info = self._info(step.r_env, step.r_task)
        return self._observation(), step.r_env + step.r_task, step.terminated, truncated, info

    def _state(self) -> Any:
        """The state of the world, as it is observed."""
        raise NotImplementedError

    def _gymnasium_truncates(self) -> bool:
        """Whether a wrapper of `gymnasium.make` limits the length of episodes."""
        known = None if self.spec is None else gymnasium.registry.get(self.spec.id)
        return known is not None and known.max_episode_steps is not None

    def _check_render_mode(self, mode: str | None) -> str | None:
        if mode is not None and mode not in RENDER_MODES:
            allowed = ", ".join(map(repr, RENDER_MODES))
            raise ParameterError(f"render_mode is {mode!r}; allowed: {allowed}")
        if mode is not None and not isinstance(self.grid, GridMap):
            raise ParameterError(f"{self.problem.name} has no map to show; leave render_mode out")
        return mode

    def _observation(self) -> Observation:
        return {"state": self._state(), "task": np.int64(self._simulator.q)}

    def _info(self, r_env: float, r_task: float) -> Info:
        place = self._simulator.place
        return {
            "r_env": r_env,
            "r_task": r_task,
            "label": tuple(sorted(self.problem.labels[self.problem.label[place]])),
            "success": bool(self.problem.table.success[self._simulator.q]),
            "world_ended": bool(self._terminal[place]),
        }

    def _shown(self, grid: GridMap, walker: Walker, moves: Sequence[str], where: str = "") -> Any:
        """Return the map with the walker on it, as text or as a picture."""
        if self.render_mode == "ansi":
            move = "" if self._last is None else f"  (moved {moves[self._last]})"
            state = self.problem.machine.states[self._simulator.q]
            return f"{write(grid, walker)}\n{where}task state: {state}{move}\n"
        if self.render_mode == "rgb_array":
            return draw_picture(grid, walker)
        gymnasium.logger.warn("render() without a render_mode shows nothing; give one to make()")
        return None


class ProblemEnv(WorldEnv):
    """Any tabular problem as an environment.

    Args:
        problem: a `Problem`, or the name of a problem or world.
        render_mode: "ansi" or "rgb_array", in worlds with a map.
        options: with a name, `map`, `task` and the options of the world, as in `qrmax.make`.

    Episodes end when the world or the task ends them, and are truncated at the problem's
    `max_episode_steps`. (Environments from `gymnasium.make` are truncated by Gymnasium instead, at
    its own `max_episode_steps`: 1000 for the built-in worlds, -1 for never.)
    """

    problem: Problem
    _simulator: Simulator

    def __init__(
        self, problem: Problem | str, render_mode: str | None = None, **options: Any
    ) -> None:
        if not isinstance(problem, str):
            _refuse_options(options)
        self.problem = make(problem, **options) if isinstance(problem, str) else problem
        check_problem(self.problem)
        self._simulator = Simulator(self.problem, self.np_random)
        states = spaces.Discrete(self.problem.n_states)
        super().__init__(states, self.problem.mdp.terminal, render_mode)

    @property
    def coordinates(self) -> CoordinatesOfObservations | None:
        """The function from numbers of states to their coordinates; None if they have none."""
        table = self.problem.coordinates
        return None if table is None else table.__getitem__

    @property
    def state(self) -> int:
        """The number of the world state."""
        return self._simulator.s

    @state.setter
    def state(self, number: int) -> None:
        self._simulator.s = number

    @property
    def task(self) -> int:
        """The number of the task's state."""
        return self._simulator.q

    @task.setter
    def task(self, number: int) -> None:
        self._simulator.q = number

    def render(self) -> Any:
        """Return the map with the walker on it, as text or as a picture."""
        return self._shown(self.grid, self.state, (*ACTIONS, "nowhere"))

    def _state(self) -> np.int64:
        return np.int64(self.state)


class OfficeEnv(ProblemEnv):
    """An Office world with a task.

    Args:
        map: the name of a built-in map, the path of your own file, or a `GridMap`.
        task: the name of a built-in task, the path of your own file, a formula, or a
            `RewardMachine`.
        render_mode: "ansi" or "rgb_array".
        options: values of the options of Office worlds, such as slip=0.1.

    Moves are up (0), right (1), down (2) and left (3).
    """

    def __init__(
        self,
        map: AnyMap,  # noqa: A002 (people call it a map)
        task: AnyTask,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__("office", render_mode, map=map, task=task, **options)


class ContinuousEnv(WorldEnv):
    """A continuous problem as an environment: states are positions.

    >>> import qrmax
    >>> env = ContinuousEnv("continuous/line/ab", noise=0.0)
    >>> observation, info = env.reset(seed=7)
    >>> env.step(0)[0]["state"].tolist()
    [0.05]
    >>> env.observation_space["state"]
    Box(0.0, 1.0, (1,), float64)

    Args:
        problem: a `ContinuousProblem`, or the name of a problem or world.
        render_mode: "ansi" or "rgb_array", in worlds with a map.
        options: with a name, `map`, `task` and the options of the world, as in `qrmax.make`.

    Moves are up (0), right (1), down (2) and left (3); on a line, right (0) and left (1). Episodes
    end as those of `ProblemEnv` do.
    """

    problem: ContinuousProblem
    _simulator: PlaneSimulator

    def __init__(
        self, problem: ContinuousProblem | str, render_mode: str | None = None, **options: Any
    ) -> None:
        if not isinstance(problem, str):
            _refuse_options(options)
        self.problem = make_continuous(problem, **options) if isinstance(problem, str) else problem
        check_continuous(self.problem)
        self._simulator = PlaneSimulator(self.problem, self.np_random, _as_it_is)
        seen = self.problem.observations
        states = spaces.Box(seen.low, seen.high, dtype=np.float64)
        super().__init__(states, self.problem.terminal, render_mode)

    @property
    def position(self) -> tuple[float, float]:
        """The position of the walker in cells of the map: x, y."""
        x, y = self._simulator.position.tolist()
        return x, y

    @property
    def task(self) -> int:
        """The number of the task's state."""
        return self._simulator.q

    def render(self) -> Any:
        """Return the map with the walker at its position, as text or as a picture."""
        names = [
            ACTIONS[int(np.argmax(np.array(MOVES) @ way))] for way in self.problem.plane.direction
        ]
        where = ", ".join(f"{part:.3f}" for part in self._state())
        return self._shown(self.grid, self.position, names, f"position: {where}\n")

    def _state(self) -> NDArray[np.float64]:
        return self._simulator.observation()


def _as_it_is(observation: NDArray[np.float64], label: int) -> NDArray[np.float64]:  # noqa: ARG001
    """Return the observation unchanged; not a lambda, so that it can be pickled."""
    return observation


def _refuse_options(options: dict[str, Any]) -> None:
    if options:
        raise ParameterError(
            f"{', '.join(options)} given beside a problem, which has its rules already; "
            "give its name instead, such as 'continuous/line/ab'"
        )


on_world(register_ids)
