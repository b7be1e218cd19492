"""A task on any Gymnasium environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import gymnasium
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from qrmax.errors import ParameterError, check_flag, shown
from qrmax.logic.formula import Formula
from qrmax.machines.label_reader import Move, Reading
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import AnyTask, load_task
from qrmax.problems.coordinates import CoordinatesOfObservations, check_function
from qrmax.problems.labelling_function import (
    Info,
    Labelling,
    LabelsOfObservations,
    LabelsOfTransitions,
)
from qrmax.worlds.numbering import Numbering

Advance = tuple[Any, Reading, Move, float, bool, bool, Info]
"""Observation, label, transition of the machine, reward of the environment, whether it has ended or
truncated the episode, and its info. A plain tuple: it is made at every step."""


class TaskWrapper(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Any Gymnasium environment, with a task on top.

    Args:
        env: The environment, as `gymnasium.make` makes it.
        task: A `RewardMachine`, or what `load_task` takes: a formula, the name of a built-in task,
            the path of a file.
        labels: The labelling function, `labels(observation, info)`, called after each step and each
            reset: the names of the propositions that are true, `{"edge"}`, or a mapping of names to
            True and False, `{"edge": observation == 3, "home": observation == 0}`. Also a mapping
            of observations to labels, `{3: {"edge"}, 0: {"home"}}`.
        transition_labels: In place of `labels`, a labelling function of whole transitions,
            `transition_labels(observation, action, next_observation, info)`.
        env_reward: Whether rewards of the environment are added to those of the task.
        coordinates: A function of an observation that returns its coordinates, one number or
            several, for agents that need them: `lambda observation: divmod(observation, 4)`.

    >>> import gymnasium, qrmax
    >>> env = qrmax.TaskWrapper(
    ...     gymnasium.make("FrozenLake-v1", is_slippery=False),
    ...     "F(edge & F home)",
    ...     labels={0: {"home"}, 3: {"edge"}},
    ... )
    >>> env.reset(seed=0)[0]
    {'state': 0, 'task': 0}

    The observation is that of the environment, under "state", and the number of the machine state,
    under "task". The reward is the sum of the environment's and the machine's; `info` is that of
    the environment, with `r_env`, `r_task`, `label`, `success` and `world_ended` added. An episode
    terminates if the environment or the machine does (`world_ended` is whether the environment
    has); truncation is the environment's own. A stochastic machine draws from the environment's
    `np_random`, so that `reset(seed=...)` seeds both. `machine` is the reward machine of the task;
    `numbering` numbers finite observations, for tables.

    Transitions of the machine are cached by label: guards are evaluated once for each label.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        task: AnyTask,
        labels: LabelsOfObservations | None = None,
        *,
        transition_labels: LabelsOfTransitions | None = None,
        env_reward: bool = True,
        coordinates: CoordinatesOfObservations | None = None,
    ) -> None:
        machine = machine_of_task(task)
        RecordConstructorArgs.__init__(  # so that Gymnasium can make another instance
            self,
            task=machine,
            labels=labels,
            transition_labels=transition_labels,
            env_reward=env_reward,
            coordinates=coordinates,
        )
        if not isinstance(env, gymnasium.Env):
            raise ParameterError(
                f"env is {shown(env)}; needed: one environment, as gymnasium.make makes it "
                "(of vector environments qrmax.VectorTaskWrapper makes use)"
            )
        gymnasium.Wrapper.__init__(self, env)
        check_flag("env_reward", env_reward)
        check_function(coordinates)
        self.labelling = Labelling(machine, labels, transition_labels)
        self.env_reward = env_reward
        self.coordinates = coordinates
        self.machine = machine
        self.observation_space = spaces.Dict(
            {
                "state": env.observation_space,
                "task": spaces.Discrete(len(machine.states)),
            }
        )
        self.made_from: Mapping[str, Any] | None = None  # plain data, if it was made from a file
        self._q = machine.index(machine.initial)
        self._observation: Any = None

    @property
    def labels_steps(self) -> bool:
        """Whether labels belong to whole transitions, not to the observations after them."""
        return self.labelling.of_transitions is not None

    @cached_property
    def numbering(self) -> Numbering:
        """The numbering of the environment's observations; an error if they are not finite."""
        return Numbering(self.env.observation_space)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Info]:
        """Start an episode; the machine reads the label of the first observation."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._observation = observation
        self._q, reading = self.labelling.start(observation, info)
        success = self.machine.states[self._q] in self.machine.success
        info = told(info, 0.0, 0.0, reading, success, world_ended=False)
        return {"state": observation, "task": self._q}, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """Take an action; the machine then reads the label of the transition."""
        observation, reading, move, r_env, terminated, truncated, info = self.advance(action)
        q, r_task, ended, success = move
        return (
            {"state": observation, "task": q},
            r_env + r_task,
            terminated or ended,
            truncated,
            told(info, r_env, r_task, reading, success, bool(terminated)),
        )

    def advance(self, action: Any) -> Advance:
        """Take an action as `step` does, without dictionaries, which is faster for learners."""
        before = self._observation
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._observation = observation
        reading = self.labelling.read(before, action, observation, info)
        move = reading.moves[self._q]
        if move is None:
            move = self.labelling.reader.draw(self._q, reading, self.np_random)
        self._q = move[0]
        r_env = float(reward) if self.env_reward else 0.0
        return observation, reading, move, r_env, terminated, truncated, info


def told(
    info: Info,
    r_env: float,
    r_task: float,
    reading: Reading,
    success: bool,
    world_ended: bool,
) -> Info:
    """The `info` of an environment, with the entries of its task added."""
    return {
        **info,
        "r_env": r_env,
        "r_task": r_task,
        "label": reading.names,
        "success": success,
        "world_ended": world_ended,
    }


def machine_of_task(task: Any) -> RewardMachine:
    """The reward machine of a task in any of the forms accepted."""
    if isinstance(task, RewardMachine):
        return task
    if not isinstance(task, str | os.PathLike | Formula):
        raise ParameterError(
            f"task is {shown(task)}; needed: a RewardMachine, a formula such as "
            "'F(coffee & F office)', or the name or file of a task"
        )
    return load_task(task)
