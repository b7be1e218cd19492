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
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from qrmax.automata.guards import Label, as_label
from qrmax.automata.reward_machine import RewardMachine
from qrmax.errors import ParameterError, check_flag, shown
from qrmax.model.problem import Problem, check_problem
from qrmax.model.simulator import Simulator
from qrmax.worlds.catalog import problem_names
from qrmax.worlds.grid import ACTIONS, GridMap, load_map
from qrmax.worlds.numbering import Numbering
from qrmax.worlds.office import OfficeOptions, office_problem, office_task
from qrmax.worlds.picture import draw as draw_picture
from qrmax.worlds.picture import write

Observation = dict[str, np.int64]
Info = dict[str, Any]


def register_worlds() -> None:
    """Register the paper's worlds, and `qrmax/Office-v0` for maps and tasks of one's own.

    Doing it twice does no harm.
    """
    worlds: dict[str, dict[str, Any]] = {"qrmax/Office-v0": {}}
    for name in problem_names():
        _, map_name, task = name.split("/")
        worlds[f"qrmax/Office-{map_name}-{task}-v0"] = {"map": map_name, "task": task}
    for env_id, arguments in worlds.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id,
                entry_point="qrmax.worlds.gymnasium:OfficeEnv",
                max_episode_steps=OfficeOptions().max_episode_steps,
                kwargs=arguments,
            )


class ProblemEnv(gymnasium.Env[Observation, np.int64]):
    """Any tabular problem as an environment.

    Episodes end where the world or the task ends them, and are truncated at the problem's
    `max_episode_steps`. (Environments from `gymnasium.make` are truncated by Gymnasium instead,
    where its own `max_episode_steps` says: 1000 for the registered worlds, -1 for never.)
    """

    def __init__(self, problem: Problem) -> None:
        check_problem(problem)
        self.problem = problem
        parts: dict[str, spaces.Space[Any]] = {
            "state": spaces.Discrete(problem.n_states),
            "task": spaces.Discrete(problem.n_task_states),
        }
        self.observation_space = spaces.Dict(parts)  # type: ignore[assignment]
        self.action_space = spaces.Discrete(problem.n_actions)
        self._simulator = Simulator(problem, self.np_random)

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

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Start an episode; the machine reads the start state where the task says so."""
        super().reset(seed=seed, options=options)
        self._simulator.rng = self.np_random
        self._simulator.reset()
        return self._observation(), self._info(0.0, 0.0)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, Info]:
        """Act, then let the task read the label of the state reached."""
        if not self.action_space.contains(action):
            raise ParameterError(
                f"action is {action!r}; allowed: 0 to {self.problem.n_actions - 1}"
            )
        if self._simulator.world.done[self.state, self.task]:
            return self._observation(), 0.0, True, False, self._info(0.0, 0.0)
        step = self._simulator.step(action)
        truncated = step.truncated and self.spec is None
        info = self._info(step.r_env, step.r_task)
        return self._observation(), step.r_env + step.r_task, step.terminated, truncated, info

    def _observation(self) -> Observation:
        return {"state": np.int64(self.state), "task": np.int64(self.task)}

    def _info(self, r_env: float, r_task: float) -> Info:
        label = self.problem.labels[self.problem.label[self.state]]
        return {
            "r_env": r_env,
            "r_task": r_task,
            "label": tuple(sorted(label)),
            "success": bool(self.problem.table.success[self.task]),
            "world_ended": bool(self.problem.mdp.terminal[self.state]),
        }


class OfficeEnv(ProblemEnv):
    """An Office world with a task: `map`, `task` and the rules of `OfficeOptions`.

    `map` and `task` are names of built-in ones, paths of your own files, or the objects themselves.
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 8}  # noqa: RUF012 (Gymnasium's)

    def __init__(
        self,
        map: str | os.PathLike[str] | GridMap,  # noqa: A002 (people call it a map)
        task: str | os.PathLike[str] | RewardMachine,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ParameterError(f"render_mode is {render_mode!r}; allowed: 'ansi', 'rgb_array'")
        self.grid = map if isinstance(map, GridMap) else load_map(map)
        super().__init__(
            office_problem(self.grid, office_task(self.grid, task), OfficeOptions.of(options))
        )
        self.render_mode = render_mode
        self._last: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Start an episode."""
        self._last = None
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, Info]:
        """Move up (0), right (1), down (2) or left (3)."""
        outcome = super().step(action)
        self._last = int(action)
        return outcome

    def render(self) -> Any:
        """The map with the walker on it, as text or as a picture."""
        if self.render_mode == "ansi":
            move = "" if self._last is None else f"  (moved {ACTIONS[self._last]})"
            state = self.problem.machine.states[self.task]
            return f"{write(self.grid, self.state)}\ntask state: {state}{move}\n"
        if self.render_mode == "rgb_array":
            return draw_picture(self.grid, self.state)
        gymnasium.logger.warn("render() without a render_mode shows nothing; give one to make()")
        return None


class TaskWrapper(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Any Gymnasium environment, with a task on top.

    `labels(observation, info)` says what is true after a step (and after a reset); where it depends
    on the whole step, give `transition_labels(observation, action, next_observation, info)`
    instead.

    >>> import gymnasium, qrmax
    >>> task = qrmax.RewardMachine(
    ...     [qrmax.Edge("go", "edge", "back"), qrmax.Edge("back", "home", "done", 1.0)],
    ...     initial="go",
    ...     success=["done"],
    ... )
    >>> names = {0: {"home"}, 3: {"edge"}}
    >>> env = qrmax.TaskWrapper(
    ...     gymnasium.make("FrozenLake-v1", is_slippery=False),
    ...     task,
    ...     labels=lambda observation, info: names.get(observation, ()),
    ... )
    >>> env.reset(seed=0)[0]
    {'state': 0, 'task': 0}

    The observation is that of the environment, under "state", and the number of the task's state,
    under "task". The reward is what the environment pays and what the task pays; `info` keeps what
    it had, and has `r_env`, `r_task`, `label`, `success` and `world_ended` added. An episode ends
    where either ends it (`world_ended` says whether the environment has); truncation is the
    environment's own. With `env_reward=False` what the environment pays does not count. A random
    machine draws from the environment's `np_random`, so that `reset(seed=...)` settles both.
    `numbering` numbers finite observations, for tables.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        machine: RewardMachine,
        labels: Callable[[Any, Info], Iterable[str]] | None = None,
        *,
        transition_labels: Callable[[Any, Any, Any, Info], Iterable[str]] | None = None,
        env_reward: bool = True,
    ) -> None:
        RecordConstructorArgs.__init__(  # so that Gymnasium can make another one like it
            self,
            machine=machine,
            labels=labels,
            transition_labels=transition_labels,
            env_reward=env_reward,
        )
        if not isinstance(env, gymnasium.Env):
            raise ParameterError(
                f"env is {shown(env)}; needed: one environment, as gymnasium.make makes it"
            )
        gymnasium.Wrapper.__init__(self, env)
        if not isinstance(machine, RewardMachine):
            raise ParameterError(f"machine is {machine!r}; needed: a RewardMachine")
        if (labels is None) == (transition_labels is None):
            raise ParameterError("TaskWrapper needs either labels=... or transition_labels=...")
        given = transition_labels if labels is None else labels
        if not callable(given):
            raise ParameterError(
                f"labels are {shown(given)}; needed: a function, such as "
                "labels=lambda observation, info: names.get(observation, ())"
            )
        check_flag("env_reward", env_reward)
        self._env_reward = env_reward
        self.machine = machine
        self._labels = labels
        self._transition_labels = transition_labels
        self.observation_space = spaces.Dict(
            {
                "state": env.observation_space,
                "task": spaces.Discrete(len(machine.states)),
            }
        )
        self._task = machine.initial
        self._observation: Any = None

    @property
    def labels_steps(self) -> bool:
        """Whether labels belong to whole steps, not to what is observed after them."""
        return self._transition_labels is not None

    @cached_property
    def numbering(self) -> Numbering:
        """Numbers for the environment's observations; an error where they are not finite."""
        return Numbering(self.env.observation_space)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Info]:
        """Start an episode; the machine reads the label of the first observation."""
        self._observation, info = self.env.reset(seed=seed, options=options)
        label = frozenset[str]()
        self._task = self.machine.initial
        if self._labels is not None:
            label = as_label(self._labels(self._observation, info))
            self._task = self.machine.reset(label)
        return self._seen(), self._told(info, 0.0, 0.0, label, world_ended=False)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """Act, then let the machine read the label of what came of it."""
        before = self._observation
        self._observation, reward, terminated, truncated, info = self.env.step(action)
        if self._labels is not None:
            label = as_label(self._labels(self._observation, info))
        else:
            assert self._transition_labels is not None  # the constructor saw to it
            label = as_label(self._transition_labels(before, action, self._observation, info))
        rng = self.np_random if self.machine.is_random else None
        self._task, r_task = self.machine.step(self._task, label, rng)
        r_env = float(reward) if self._env_reward else 0.0
        ended = terminated or self._task in self.machine.terminal
        return (
            self._seen(),
            r_env + r_task,
            ended,
            truncated,
            self._told(info, r_env, r_task, label, world_ended=bool(terminated)),
        )

    def _seen(self) -> dict[str, Any]:
        return {"state": self._observation, "task": self.machine.index(self._task)}

    def _told(
        self, info: Info, r_env: float, r_task: float, label: Label, *, world_ended: bool
    ) -> Info:
        ours = {
            "r_env": r_env,
            "r_task": r_task,
            "label": tuple(sorted(label)),
            "success": self._task in self.machine.success,
            "world_ended": world_ended,
        }
        return {**info, **ours}


register_worlds()
