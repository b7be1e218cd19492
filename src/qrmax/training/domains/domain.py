"""The protocol of domains, the problems and environments that agents are trained on.

    sizes, observations    for the agent, and coordinates if states have them
    player                 for the agent to interact with
    evaluator              for its policies, with a default stopping rule and budget
    name, machine, labels  a description, for files and messages
    describe, arrays       for checkpoints, and `restore`
    act                    the action of a policy for an observation
    second_instance        to roll policies out in
    encoder                for exported policies

A tabular problem, a continuous problem and a Gymnasium environment are the three kinds, each in a
file of its own. A further kind is a further file, and an entry in `domain_kinds.py`.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from qrmax.agents.base import Agent, AgentConfig, Sizes
from qrmax.errors import ParameterError, shown
from qrmax.logic.guards import Label
from qrmax.machines.machine_table import MachineTable
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import format_task
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.planning.policy_evaluation import Evaluation
from qrmax.problems.observations import Observations
from qrmax.seeding import Chance, Stream
from qrmax.training.evaluator import Evaluator
from qrmax.training.player import Player
from qrmax.training.policies.policy import Policy, View
from qrmax.training.stopping import RULES, StoppingRule

Arrays = dict[str, NDArray[Any]]
Actor = Callable[[Any, Any, int], int]
"""The action for an observation, its info and the stage."""


class Task(Protocol):
    """A task: a reward machine over numbered labels."""

    @property
    def name(self) -> str:
        """The name of the problem or environment."""
        ...

    machine: RewardMachine
    table: MachineTable

    @property
    def labels(self) -> Sequence[Label]:
        """The labels, in the order of their numbers."""
        ...


class Learner(NamedTuple):
    """The facts about an agent that a domain is prepared for."""

    agent: type[Agent]
    gamma: float


class Domain(ABC):
    """A problem or an environment that an agent is trained on."""

    kind: ClassVar[str]  # in the files of runs
    simulated: ClassVar[bool] = True  # whether compiled loops can simulate it
    evaluates_exactly: ClassVar[bool] = False  # whether nothing is sampled for an evaluation
    rewards_known: ClassVar[bool] = True  # whether `reward_range` is certain
    budget: ClassVar[int] = 1_000_000  # steps
    short_run: ClassVar[int] = 100_000  # steps below which a lack of success is no surprise
    rules: ClassVar[Sequence[str]] = tuple(RULES)  # the built-in stopping rules that it allows
    why_no_others: ClassVar[str] = ""  # if there are others

    task: Task
    sizes: Sizes
    observations: Observations | None = None  # None if states are numbered
    coordinates: FloatArray | None = None  # of the states, [s, d]
    evaluation_env: Any = None  # a second instance that the user gave, and closes

    @classmethod
    @abstractmethod
    def takes(cls, thing: Any) -> bool:
        """Whether a problem or an environment is of this kind."""

    @classmethod
    @abstractmethod
    def pose(cls, thing: Any, learner: Learner, chance: Chance) -> Domain:
        """Make the domain of a problem or an environment, for a learner.

        `chance` seeds environments, which cannot draw from our random streams.
        """

    @classmethod
    @abstractmethod
    def restore(
        cls,
        described: Mapping[str, Any],
        arrays: Arrays,
        learner: Learner,
        chance: Chance,
        env: Any,
    ) -> Domain:
        """Restore a domain from what `describe` and `arrays` returned; see `absent` for `env`."""

    @classmethod
    def absent(cls, described: Mapping[str, Any]) -> Any:  # noqa: ARG003
        """A stand-in for the environment of a run that is only to act; None if not needed."""
        return None

    @property
    def name(self) -> str:
        """The name of the problem or environment."""
        return self.task.name

    @property
    def machine(self) -> RewardMachine:
        """The reward machine of the task."""
        return self.task.machine

    @property
    def labels(self) -> Sequence[Label]:
        """The labels, in the order of their numbers."""
        return self.task.labels

    @abstractmethod
    def is_made_of(self, thing: Any) -> bool:
        """Whether the domain was made of this very object, a problem or an environment."""

    @property
    def max_episode_steps(self) -> int | None:
        """The limit on the length of an episode; None if there is none, or it is unknown."""
        return None

    @property
    def made_from(self) -> Mapping[str, Any] | None:
        """The plain data that an environment was made from; None if there is none."""
        return None

    @property
    def problem(self) -> Any:
        """The problem; None for an environment."""
        return None

    # Training

    @classmethod
    @abstractmethod
    def default_rule(cls, machine: RewardMachine) -> str:
        """The name of the default stopping rule for a task."""

    def check_rule(self, rule: StoppingRule) -> None:
        """Refuse a rule that needs an optimum or an exact evaluation if there is none."""
        rule.check_task(self.machine)
        refused = {kind.name for kind in RULES.values()} - {*self.rules}
        if rule.name in refused:
            raise ParameterError(
                f"stop is {rule.name!r}; {self.why_no_others}: allowed are "
                f"{', '.join(map(repr, self.rules))}"
            )

    @abstractmethod
    def reward_range(self) -> tuple[float, float]:
        """The least and the greatest reward of a step, as far as known."""

    def auto_horizon(self, gamma: float) -> int:  # noqa: ARG002
        """The horizon for agents with this gamma, from the optimum; an error if that is unknown."""
        raise ParameterError(
            f"horizon is 'auto', and {self.name!r} has no known model, whose optimal episodes "
            "would determine it: give a number, such as horizon=150"
        )

    @abstractmethod
    def player(self, agent: Agent, chance: Stream) -> Player:
        """A player for the agent."""

    @abstractmethod
    def evaluator(self, gamma: float, horizon: int | None, every: int = 1000) -> Evaluator:
        """An evaluator of policies; `every` is the number of steps between two evaluations."""

    def check_evaluator(self, evaluator: Evaluator, gamma: float, horizon: int | None) -> None:
        """Refuse an evaluator that is not for this very problem, gamma and horizon."""
        posed = getattr(evaluator, "problem", None)
        if posed is not self.problem or (evaluator.gamma, evaluator.horizon) != (gamma, horizon):
            raise ParameterError(
                f"evaluator is for {getattr(posed, 'name', posed)!r} with gamma "
                f"{evaluator.gamma:g} and horizon {evaluator.horizon}; needed: one made for the "
                f"very problem of the run, {self.name!r}, with gamma {gamma:g} and horizon "
                f"{horizon}"
            )

    def prepare_to_resume(self) -> None:  # noqa: B027 (problems need nothing)
        """Prepare for training to be resumed."""

    def close(self) -> None:  # noqa: B027 (problems need nothing)
        """Close the environment that was trained on; for whoever made it."""

    # Acting

    def act(self, policy: Policy, observation: Any, info: Any, stage: int) -> int:
        """The greedy action for an observation, as the environment numbers actions."""
        if not (isinstance(observation, Mapping) and {"state", "task"} <= observation.keys()):
            raise ParameterError(
                f"observation is {shown(observation)}; needed: an observation of the environment, "
                'with "state" and "task"'
            )
        q = self._task_state(observation["task"])
        return self.first_action + policy.action(self.view(policy, observation, info), q, stage)

    def _task_state(self, number: Any) -> int:
        """The number of a machine state; an error if it is not one."""
        states = range(len(self.machine.states))
        try:
            q = operator.index(number)
        except TypeError:
            q = -1
        if q not in states:
            raise ParameterError(
                f'observation["task"] is {shown(number)}; allowed: 0 to {states[-1]}, the numbers '
                f"of the states of task {self.machine.name!r}"
            )
        return q

    @abstractmethod
    def view(self, policy: Policy, observation: Any, info: Any) -> View:
        """An observation as a policy sees it."""

    def actor(self, env: Any, policy: Policy) -> Actor:  # noqa: ARG002
        """The policy, to act in an environment."""
        return lambda observation, info, stage: self.act(policy, observation, info, stage)

    @abstractmethod
    def env_to_watch(self) -> Any:
        """The environment that was trained on; an error if there is none."""

    @abstractmethod
    def second_instance(self) -> Any:
        """Another environment like that of training, whose random stream is left alone."""

    def comparable_states(self) -> int | None:
        """The number of states that an environment must share; None if it may have others."""
        return None

    @classmethod
    def evaluate_exactly(
        cls,
        thing: Any,  # noqa: ARG003
        policy: Any,  # noqa: ARG003
        gamma: float,  # noqa: ARG003
        max_episode_steps: Any,  # noqa: ARG003
    ) -> Evaluation | None:
        """Policy evaluation without rollouts; None if that is not possible."""
        return None

    # Saving and exporting

    def describe(self, player: Player) -> dict[str, Any]:  # noqa: ARG002
        """The domain and the state of its player as plain data, arrays excluded."""
        return {
            "name": self.name,
            "machine": format_task(self.machine),
            "labels": [sorted(label) for label in self.labels],
        }

    def arrays(self) -> Arrays:
        """The arrays to be saved; none for an environment, which cannot be saved."""
        return {}

    def same_as(self, other: Domain) -> bool:
        """Whether another domain is the same: its kind, its task and its arrays."""
        ours, theirs = self.arrays(), other.arrays()
        return (
            self.kind == other.kind
            and format_task(self.machine) == format_task(other.machine)
            and self.max_episode_steps == other.max_episode_steps
            and ours.keys() == theirs.keys()
            and all(np.array_equal(ours[name], theirs[name]) for name in ours)
        )

    def restore_player(self, player: Player, described: Mapping[str, Any], agent: Agent) -> None:  # noqa: B027
        """Restore the state of a player."""

    first_action: int = 0
    """The number of the first action in the environment."""

    @property
    def reads_start(self) -> bool:
        """Whether the machine reads the label of the start."""
        return self.machine.consume_initial

    @property
    def proposition_names(self) -> set[str]:
        """The names that labels are made of."""
        return set().union(*self.labels)

    @abstractmethod
    def encoder(self) -> dict[str, Any]:
        """The map from an observation to the number of a state, as `policy_reader.py` reads it."""

    def by_observation(self, table: IntArray) -> IntArray:
        """A policy `[s, q]`, reindexed by the numbers that the encoder returns."""
        return table

    # Warnings

    def warn_of_settings(self, config: AgentConfig) -> None:  # noqa: B027
        """Warn of settings that do not suit the domain."""

    def oddity(self) -> str:
        """A description of something suspicious in training; empty if there is nothing."""
        return ""

    def remedies(self, steps: int) -> Iterator[str]:  # noqa: ARG002
        """Advice after a run of `steps` steps without success."""
        yield from ()

    def grid_side(self, dimension: int) -> int | None:  # noqa: ARG002
        """Cells per side of a grid that suits observations of this dimension; None if any does."""
        return None

    def diagnose(self, agent: Agent, samples: int, chance: Stream) -> Any:  # noqa: ARG002
        """A diagnosis of an agent's buckets."""
        raise ParameterError(
            f"a run of {agent.name!r} on {self.name!r} has no buckets of a plane to diagnose; "
            "needed: an agent such as 'bucket-qrmax' on a problem with continuous positions"
        )
