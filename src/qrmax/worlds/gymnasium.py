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

The observation holds the number of the world state and of the task state. `info` splits the reward
into what the world and what the task paid, and tells the label read (the propositions true in the
state reached), whether the task has succeeded, and whether the world itself has ended the episode.

Worlds with real positions show the position instead of a state's number:

    >>> env = gymnasium.make("qrmax/ContinuousFrozenLake-abc-v0", noise=0.02)
    >>> env.reset(seed=7)[0]["state"].tolist()
    [5.5, 0.5]
    >>> env.close()
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from qrmax.errors import ParameterError
from qrmax.machines.task_files import AnyTask
from qrmax.problems.continuous_problem import ContinuousProblem, PlaneSimulator, check_continuous
from qrmax.problems.problem import Problem, check_problem
from qrmax.problems.simulator import Simulator
from qrmax.worlds.catalog import benchmark_names, make, problem_names
from qrmax.worlds.continuous import ContinuousOptions, continuous_names
from qrmax.worlds.grid import ACTIONS, MOVES, GridMap, load_map
from qrmax.worlds.office import OfficeOptions, office_problem, office_task
from qrmax.worlds.picture import Walker, write
from qrmax.worlds.picture import draw as draw_picture

Observation = dict[str, Any]
Info = dict[str, Any]
RENDER_MODES = ("ansi", "rgb_array")


def register_worlds() -> None:
    """Register all built-in worlds, and `Office-v0`, `ContinuousOffice-v0` for one's own maps.

    Doing it twice does no harm.
    """
    offices: dict[str, dict[str, Any]] = {"qrmax/Office-v0": {}}
    for name in problem_names():
        _, map_name, task = name.split("/")
        offices[f"qrmax/Office-{map_name}-{task}-v0"] = {"map": map_name, "task": task}
    planes = {"qrmax/ContinuousOffice-v0": {"problem": "continuous/office"}}
    for name in continuous_names():
        _, world, *rest = name.split("/")
        planes[f"qrmax/Continuous{_words(world)}-{'-'.join(rest)}-v0"] = {"problem": name}
    others = {
        f"qrmax/{_words(name.split('/')[0])}-{name.split('/')[1]}-v0": {"problem": name}
        for name in benchmark_names()
    }
    _register("BenchmarkEnv", others, OfficeOptions().max_episode_steps)
    _register("OfficeEnv", offices, OfficeOptions().max_episode_steps)
    _register("ContinuousEnv", planes, ContinuousOptions().max_episode_steps)


def _words(world: str) -> str:
    """The name of a world as ids have it: river-swim is RiverSwim."""
    return "".join(word.capitalize() for word in world.split("-"))


def _register(env: str, worlds: dict[str, dict[str, Any]], limit: int | None) -> None:
    for env_id, arguments in worlds.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id,
                entry_point=f"qrmax.worlds.gymnasium:{env}",
                max_episode_steps=limit,
                kwargs=arguments,
            )


class WorldEnv(gymnasium.Env[Observation, np.int64]):
    """What the environments of all problems have in common: episodes, and what is told of them."""

    problem: Problem | ContinuousProblem
    _simulator: Simulator | PlaneSimulator

    def __init__(self, states: spaces.Space[Any], terminal: NDArray[np.bool_]) -> None:
        parts: dict[str, spaces.Space[Any]] = {
            "state": states,
            "task": spaces.Discrete(self.problem.n_task_states),
        }
        self.observation_space = spaces.Dict(parts)
        self.action_space = spaces.Discrete(self.problem.n_actions)
        self._terminal = terminal  # [place]
        self._last: int | None = None  # what was done last in this episode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Start an episode; the machine reads the start state where the task says so."""
        super().reset(seed=seed, options=options)
        self._simulator.rng = self.np_random
        self._simulator.reset()
        self._last = None
        return self._observation(), self._info(0.0, 0.0)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, Info]:
        """Act, then let the task read the label of the state reached."""
        if not self.action_space.contains(action):
            raise ParameterError(
                f"action is {action!r}; allowed: 0 to {self.problem.n_actions - 1}"
            )
        self._last = int(action)
        if self._simulator.world.done[self._simulator.place, self._simulator.q]:
            return self._observation(), 0.0, True, False, self._info(0.0, 0.0)
        step = self._simulator.step(self._last)
        truncated = step.truncated and self.spec is None
        info = self._info(step.r_env, step.r_task)
        return self._observation(), step.r_env + step.r_task, step.terminated, truncated, info

    def _state(self) -> Any:
        """The state of the world, as it is observed."""
        raise NotImplementedError

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
        """The map with the walker on it, as text or as a picture."""
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

    Episodes end where the world or the task ends them, and are truncated at the problem's
    `max_episode_steps`. (Environments from `gymnasium.make` are truncated by Gymnasium instead,
    where its own `max_episode_steps` says: 1000 for the registered worlds, -1 for never.)
    """

    problem: Problem
    _simulator: Simulator

    def __init__(self, problem: Problem) -> None:
        check_problem(problem)
        self.problem = problem
        self._simulator = Simulator(problem, self.np_random)
        super().__init__(spaces.Discrete(problem.n_states), problem.mdp.terminal)

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

    def _state(self) -> np.int64:
        return np.int64(self.state)


class OfficeEnv(ProblemEnv):
    """An Office world with a task: `map`, `task` and the rules of `OfficeOptions`.

    `map` and `task` are names of built-in ones, paths of your own files, or the objects themselves.
    Moves are up (0), right (1), down (2) and left (3).
    """

    metadata = {"render_modes": [*RENDER_MODES], "render_fps": 8}  # noqa: RUF012 (Gymnasium's)

    def __init__(
        self,
        map: str | os.PathLike[str] | GridMap,  # noqa: A002 (people call it a map)
        task: AnyTask,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        _check_render_mode(render_mode)
        self.grid = map if isinstance(map, GridMap) else load_map(map)
        super().__init__(
            office_problem(self.grid, office_task(self.grid, task), OfficeOptions.of(options))
        )
        self.render_mode = render_mode

    def render(self) -> Any:
        """The map with the walker on it, as text or as a picture."""
        return self._shown(self.grid, self.state, ACTIONS)


class BenchmarkEnv(ProblemEnv):
    """A problem that has a name, such as `river-swim/patrol`, with the options of `qrmax.make`."""

    metadata = {"render_modes": [*RENDER_MODES], "render_fps": 8}  # noqa: RUF012 (Gymnasium's)

    def __init__(self, problem: str, render_mode: str | None = None, **options: Any) -> None:
        _check_render_mode(render_mode)
        super().__init__(make(problem, **options))
        self.grid: Any = self.problem.world
        if render_mode is not None and not isinstance(self.grid, GridMap):
            raise ParameterError(f"{self.problem.name} has no map to show; leave render_mode out")
        self.render_mode = render_mode

    def render(self) -> Any:
        """The map with the walker on it, as text or as a picture."""
        return self._shown(self.grid, self.state, (*ACTIONS, "nowhere"))


class ContinuousEnv(WorldEnv):
    """A continuous problem as an environment: states are positions.

    >>> import qrmax
    >>> env = ContinuousEnv("continuous/line/ab", noise=0.0)
    >>> observation, info = env.reset(seed=7)
    >>> env.step(0)[0]["state"].tolist()
    [0.05]
    >>> env.observation_space["state"]
    Box(0.0, 1.0, (1,), float64)

    `problem` is a `ContinuousProblem`, or the name of one; with a name, `map`, `task` and the rules
    of `ContinuousOptions` can be given as in `qrmax.make`. Moves are up (0), right (1), down (2)
    and left (3); on a line, right (0) and left (1). Episodes end as those of `ProblemEnv` do.
    """

    metadata = {"render_modes": [*RENDER_MODES], "render_fps": 8}  # noqa: RUF012 (Gymnasium's)
    problem: ContinuousProblem
    _simulator: PlaneSimulator

    def __init__(
        self, problem: ContinuousProblem | str, render_mode: str | None = None, **options: Any
    ) -> None:
        _check_render_mode(render_mode)
        if options and isinstance(problem, ContinuousProblem):
            raise ParameterError(
                f"{', '.join(options)} given beside a problem, which has its rules already; "
                "give its name instead, such as 'continuous/line/ab'"
            )
        self.problem = make(problem, **options) if isinstance(problem, str) else problem
        check_continuous(self.problem)
        self.grid: Any = self.problem.world
        if render_mode is not None and not isinstance(self.grid, GridMap):
            raise ParameterError(f"{self.problem.name} has no map to show; leave render_mode out")
        self.render_mode = render_mode
        self._simulator = PlaneSimulator(self.problem, self.np_random, _as_it_is)
        seen = self.problem.observations
        super().__init__(spaces.Box(seen.low, seen.high, dtype=np.float64), self.problem.terminal)

    @property
    def position(self) -> tuple[float, float]:
        """Where the walker is, measured in cells of the map: x, y."""
        x, y = self._simulator.position.tolist()
        return x, y

    @property
    def task(self) -> int:
        """The number of the task's state."""
        return self._simulator.q

    def render(self) -> Any:
        """The map with the walker at its position, as text or as a picture."""
        names = [
            ACTIONS[int(np.argmax(np.array(MOVES) @ way))] for way in self.problem.plane.direction
        ]
        where = ", ".join(f"{part:.3f}" for part in self._state())
        return self._shown(self.grid, self.position, names, f"position: {where}\n")

    def _state(self) -> NDArray[np.float64]:
        return self._simulator.observation()


def _as_it_is(observation: NDArray[np.float64], label: int) -> NDArray[np.float64]:  # noqa: ARG001
    """What an environment perceives; not a lambda, so that it can be pickled."""
    return observation


def _check_render_mode(mode: str | None) -> None:
    if mode is not None and mode not in RENDER_MODES:
        allowed = ", ".join(map(repr, RENDER_MODES))
        raise ParameterError(f"render_mode is {mode!r}; allowed: {allowed}")


register_worlds()
