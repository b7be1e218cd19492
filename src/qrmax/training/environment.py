"""Interaction with a Gymnasium environment that has a task: numbered states and labels."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qrmax.agents.base import Agent, Sizes, State
from qrmax.errors import ObservationError, ParameterError
from qrmax.logic.guards import Label, as_label
from qrmax.machines.machine_table import MachineTable
from qrmax.machines.reward_machine import RewardMachine
from qrmax.planning.arrays import FloatArray
from qrmax.problems.coordinates import observed_coordinates
from qrmax.problems.mdp import MOST_REWARD
from qrmax.problems.observations import Observations
from qrmax.problems.problem import warn_of_an_end_at_the_start
from qrmax.problems.simulator import Step
from qrmax.seeding import Chance
from qrmax.training.absent import AbsentEnv

if TYPE_CHECKING:
    from qrmax.worlds.task_wrapper import Advance

MOST_LABELS = 256
UNSEEN = -1
"""In place of the number of a label that was not encountered in training."""


class Episode(NamedTuple):
    """A finished episode."""

    value: float  # discounted return
    total: float  # undiscounted return
    success: bool


class EnvPlayer:
    """Interaction with an environment in a `TaskWrapper` (or one of our own worlds).

    Observations and labels become numbers; labels are numbered as they are encountered. The
    environment is seeded once, at its first reset.

    An agent that is `factored` learns the machine's transitions by the state reached. If the
    labelling function is one of whole transitions, the same state can be reached with different
    labels, so for such an agent a state is an observation together with the label just read.

    An agent that perceives gets the observations themselves: `observations` is their space, and
    `perceive` is the agent's map from an observation to a state.
    """

    def __init__(self, env: Any, gamma: float, chance: Chance, kind: type[Agent]) -> None:
        self.env = env
        self.gamma = gamma
        self._seed: int | None = int(chance.random() * 2**31)
        layer, self.machine, labels_steps = task_of(env)
        self.layer = layer
        self.labels_steps = labels_steps
        self._propositions = self.machine.propositions  # others in a label are ignored
        self.with_label = kind.factored and labels_steps and not kind.perceives
        self._label_numbers: dict[Any, int] = {}  # by names as they were returned: a cache
        self._numbers: dict[Any, int] = {}  # by observations
        self.labels: list[Label] = _all_labels(self.machine) if self.with_label else []
        self.table: MachineTable = self.machine.table(self.labels)
        self.observations: Observations | None = None
        self.perceive: Callable[[Any, int], State] | None = None
        self.coordinates: FloatArray | None = None  # [s, d]
        states = 0
        if kind.perceives:
            self.observations = _observations(layer)
        else:
            self.numbering = _numbering(layer)
            copies = len(self.labels) if self.with_label else 1
            states = self.numbering.size * copies
            if kind.needs_coordinates:
                self.coordinates = _coordinates(layer, self.numbering, copies)
        self.sizes = Sizes(states, len(self.machine.states), _n_actions(env))
        self._first_action = int(env.action_space.start)
        self._advance = _advance_of(env)
        self.finished: list[Episode] = []  # since the last evaluation
        self.episodes = 0
        self.seen = set[str]()  # propositions that were true at some step
        self.reached = set[int]()  # machine states
        self._value, self._total, self._discount = 0.0, 0.0, 1.0
        self.s: State = 0
        self.q = 0
        self.over = True

    @property
    def name(self) -> str:
        """The name of the environment."""
        spec = getattr(self.env, "spec", None)
        return str(spec.id) if spec is not None else type(self.env.unwrapped).__name__

    def reset(self) -> None:
        """Start an episode."""
        observation, info = self.env.reset(seed=self._seed)
        self._seed = None
        self.s = self._state(observation["state"], self._number_label(info["label"]))
        self.q = int(observation["task"])
        self.reached.add(self.q)
        if not self.episodes and self.table.terminal[self.q]:
            warn_of_an_end_at_the_start(self.machine, as_label(info["label"]))
        self._value, self._total, self._discount = 0.0, 0.0, 1.0
        self.episodes += 1
        self.over = False

    def step(self, a: int) -> Step:
        """Act."""
        action = self._first_action + a
        if self._advance is not None:
            observed, reading, move, r_env, ended, truncated, _ = self._advance(action)
            self.q, r_task, terminal, success = move
            world_ended = bool(ended)
            terminated = world_ended or terminal
            label = self._label_numbers.get(reading.label)
            if label is None:
                label = self._number_label(reading.label)
        else:
            observation, _, ended, truncated, info = self.env.step(action)
            observed, self.q = observation["state"], int(observation["task"])
            label = self._number_label(info["label"])
            r_env, r_task, success = float(info["r_env"]), float(info["r_task"]), info["success"]
            terminated = bool(ended)
            world_ended = terminated and bool(
                info["world_ended"] or not self.table.terminal[self.q]
            )
        self.s = s = self._state(observed, label)
        self.reached.add(self.q)
        reward = r_env + r_task
        if not -MOST_REWARD < reward < MOST_REWARD:  # nor NaN
            raise ObservationError(
                f"{self.name} gave a reward of {reward:g} for action {action}; allowed: finite "
                f"numbers above {-MOST_REWARD:g}, below {MOST_REWARD:g}: correct it in the "
                "environment, or divide all rewards by the same number"
            )
        self._value += self._discount * reward
        self._total += reward
        self._discount *= self.gamma
        truncated = bool(truncated)
        if terminated or truncated:
            self.over = True
            self.finished.append(Episode(self._value, self._total, bool(success)))
        return Step(s, self.q, label, r_env, r_task, terminated, truncated, world_ended)

    def cut(self) -> None:
        """End the episode here; without success, or the environment would have ended it."""
        self.over = True
        self.finished.append(Episode(self._value, self._total, success=False))

    def know_labels(self, labels: list[Label]) -> None:
        """Number labels as in an earlier part of the run."""
        self.labels = list(labels)
        self.table = self.machine.table(self.labels)
        self._label_numbers.clear()

    def state(self, observation: Any, info: Any) -> State:
        """A state as the agent gets it: its number, or what the agent perceives."""
        if self.perceive is None and not self.with_label:
            return self._state(observation["state"], UNSEEN)
        if info is None:
            raise ParameterError(
                "labels belong to steps here, so a state is an observation and the label read: "
                "give both, run.act(observation, info)"
            )
        return self._state(observation["state"], self._number_label(info["label"]))

    def label_of(self, observation: Any, info: Any) -> int:  # noqa: ARG002
        """The number of the label in the `info` of an observation.

        It is `UNSEEN` if training has not encountered the label: acting adds no labels.
        """
        if info is None:
            return 0
        label = as_label(info["label"], 'info["label"]') & self._propositions
        return self.labels.index(label) if label in self.labels else UNSEEN

    @property
    def is_absent(self) -> bool:
        """Whether the run was loaded without its environment, for acting only."""
        return isinstance(self.env, AbsentEnv)

    def check_present(self) -> None:
        """Raise a `ParameterError` if there is no environment to interact with."""
        if isinstance(self.env, AbsentEnv):
            self.env.reset()

    def _state(self, observed: Any, label: int) -> State:
        if self.perceive is not None:
            return self.perceive(observed, label)
        try:
            number = self._numbers[observed]
        except (KeyError, TypeError):  # a new one, or an array
            number = self._number(observed)
        return label * self.numbering.size + number if self.with_label else number

    def _number(self, observed: Any) -> int:
        number: int = self.numbering.number(observed)
        with contextlib.suppress(TypeError):  # arrays have no hash
            self._numbers[observed] = number
        return number

    def _number_label(self, names: Iterable[str]) -> int:
        """The number of a label; a new label gets the next one."""
        if isinstance(names, tuple) and names in self._label_numbers:
            return self._label_numbers[names]
        given = as_label(names, 'info["label"]')
        self.seen |= given
        label = given & self._propositions
        if label not in self.labels:
            self.know_labels([*self.labels, label])
        number = self.labels.index(label)
        if isinstance(names, tuple | frozenset):
            self._label_numbers[names] = number
        return number


def no_environment(thing: Any) -> ParameterError:
    """The error about an object that is no environment."""
    return ParameterError(
        f"{str(thing)[:60]!r} is not an environment; needed: a Problem, such as "
        "qrmax.make('office/map1/exp5'), or a Gymnasium environment in a qrmax.TaskWrapper"
    )


def is_environment(thing: Any) -> bool:
    """Whether an agent can interact with this environment; an error for a vector environment."""
    if hasattr(thing, "num_envs"):
        raise ParameterError(
            f"{str(thing)[:80]} is a vector environment; these agents act in a single environment: "
            "give the one that gymnasium.make makes"
        )
    return all(hasattr(thing, name) for name in ("reset", "step", "action_space"))


def _all_labels(machine: RewardMachine) -> list[Label]:
    names = sorted(machine.propositions)
    if 2 ** len(names) > MOST_LABELS:
        raise ParameterError(
            f"task {machine.name!r} names {len(names)} propositions, and labels belong to steps: "
            f"this agent would keep tables for each of 2**{len(names)} labels, and allows "
            f"{MOST_LABELS}; use labels of states, fewer propositions, or another agent"
        )
    return [
        frozenset(chosen)
        for count in range(len(names) + 1)
        for chosen in itertools.combinations(names, count)
    ]


def task_of(env: Any) -> tuple[Any, RewardMachine, bool]:
    """The layer with the task, its machine, and whether labels belong to whole transitions."""
    if isinstance(env, AbsentEnv):
        return env, env.machine, env.labels_steps
    from qrmax.worlds.gymnasium import WorldEnv  # loads gymnasium
    from qrmax.worlds.task_wrapper import TaskWrapper

    layer = env
    while layer is not None:
        if isinstance(layer, TaskWrapper):
            return layer, layer.machine, layer.labels_steps
        if isinstance(layer, WorldEnv):
            return layer, layer.problem.machine, False
        layer = getattr(layer, "env", None)
    raise ParameterError(
        f"{str(env)[:80]} has no task; give it one: "
        "qrmax.TaskWrapper(env, 'F(a & F b)', labels=lambda observation, info: ...)"
    )


def _advance_of(env: Any) -> Callable[[int], Advance] | None:
    """The step without dictionaries of a `TaskWrapper`, if `env` is one and overrides no step."""
    if isinstance(env, AbsentEnv):
        return None
    from qrmax.worlds.task_wrapper import TaskWrapper

    return env.advance if getattr(type(env), "step", None) is TaskWrapper.step else None


def _numbering(layer: Any) -> Any:
    from qrmax.worlds.numbering import Numbering

    return getattr(layer, "numbering", None) or Numbering(layer.observation_space["state"])


def _coordinates(layer: Any, numbering: Any, copies: int) -> FloatArray | None:
    """The coordinates of all numbered observations, `copies` times; None if there are none."""
    if (given := layer.coordinates) is None:
        return None
    found = observed_coordinates(given, map(numbering.element, range(numbering.size)))
    return np.tile(found, (copies, 1))


def _observations(layer: Any) -> Observations:
    space = layer.observation_space["state"]
    if type(space).__name__ != "Box" or np.dtype(space.dtype).kind not in "fiu":
        raise ParameterError(
            f"observations are {str(space)[:80]}; this agent needs a Box of numbers. Discrete "
            "observations are for the others, such as 'qrmax'; those of several parts can "
            "be flattened by gymnasium.wrappers.FlattenObservation"
        )
    return Observations(space.low, space.high)


def _n_actions(env: Any) -> int:
    space = env.action_space
    if type(space).__name__ != "Discrete":
        raise ParameterError(
            f"actions are {str(space)[:80]}; these agents need discrete actions: "
            "wrap the environment so that its action space is Discrete"
        )
    return int(space.n)
