"""Playing a Gymnasium environment that has a task: what a learner sees of it, as numbers."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, cast

from qrmax.agents.base import Sizes
from qrmax.automata.guards import Label
from qrmax.automata.reward_machine import MachineTable, RewardMachine
from qrmax.errors import ParameterError
from qrmax.model.simulator import Step
from qrmax.seeding import Chance


class Player(Protocol):
    """What a learner plays: a `Simulator` of a problem, or an `EnvPlayer`."""

    @property
    def s(self) -> int:
        """The world state."""
        ...

    @property
    def q(self) -> int:
        """The machine state."""
        ...

    @property
    def over(self) -> bool:
        """Whether the episode is over, so that the next step needs a reset before."""
        ...

    def reset(self) -> None:
        """Start an episode."""
        ...

    def step(self, a: int) -> Step:
        """Act."""
        ...


class Episode(NamedTuple):
    """A finished episode."""

    value: float  # discounted reward
    success: bool


class EnvPlayer:
    """Plays an environment wrapped in a `TaskWrapper` (or one of our own worlds).

    Observations and labels become numbers; labels as they turn up. The environment is seeded once,
    at its first reset.
    """

    def __init__(self, env: Any, gamma: float, chance: Chance) -> None:
        self.env = env
        self.gamma = gamma
        self._seed: int | None = int(chance.random() * 2**31)
        self.machine, self.numbering = _task_of(env)
        self.labels: list[Label] = []
        self.table: MachineTable = self.machine.table(self.labels)
        self.sizes = Sizes(self.numbering.size, len(self.machine.states), _n_actions(env))
        self.episodes: list[Episode] = []  # finished since someone looked last
        self._value, self._discount = 0.0, 1.0
        self.s = 0
        self.q = 0
        self.over = True

    @property
    def name(self) -> str:
        """What the environment is called."""
        spec = getattr(self.env, "spec", None)
        return str(spec.id) if spec is not None else type(self.env.unwrapped).__name__

    def reset(self) -> None:
        """Start an episode."""
        observation, _ = self.env.reset(seed=self._seed)
        self._seed = None
        self._see(observation)
        self._value, self._discount = 0.0, 1.0
        self.over = False

    def step(self, a: int) -> Step:
        """Act."""
        first = int(self.env.action_space.start)
        observation, _, terminated, truncated, info = self.env.step(first + a)
        self._see(observation)
        step = Step(
            s=self.s,
            q=self.q,
            label=self._number_label(info["label"]),
            r_env=float(info["r_env"]),
            r_task=float(info["r_task"]),
            terminated=bool(terminated),
            truncated=bool(truncated),
            world_ended=bool(
                terminated and (info["world_ended"] or not self.table.terminal[self.q])
            ),
        )
        self._value += self._discount * (step.r_env + step.r_task)
        self._discount *= self.gamma
        self.over = step.terminated or step.truncated
        if self.over:
            self.episodes.append(Episode(self._value, bool(info["success"])))
        return step

    def know_labels(self, labels: list[Label]) -> None:
        """Number labels as they were numbered before."""
        self.labels = list(labels)
        self.table = self.machine.table(self.labels)

    def _see(self, observation: Any) -> None:
        self.s = self.numbering.number(observation["state"])
        self.q = int(observation["task"])

    def _number_label(self, names: tuple[str, ...]) -> int:
        label = frozenset(names)
        if label not in self.labels:
            self.know_labels([*self.labels, label])
        return self.labels.index(label)


def _task_of(env: Any) -> tuple[RewardMachine, Any]:
    """The machine of an environment, and the numbering of its observations."""
    from qrmax.worlds.gymnasium import ProblemEnv, TaskWrapper  # loads gymnasium
    from qrmax.worlds.numbering import Numbering

    layer = env
    while layer is not None:
        if isinstance(layer, TaskWrapper):
            return layer.machine, layer.numbering
        if isinstance(layer, ProblemEnv):
            return layer.problem.machine, Numbering(cast("Any", layer.observation_space)["state"])
        layer = getattr(layer, "env", None)
    raise ParameterError(
        f"{str(env)[:80]} has no task; give it one: "
        "qrmax.TaskWrapper(env, machine, labels=lambda observation, info: ...)"
    )


def _n_actions(env: Any) -> int:
    space = env.action_space
    if type(space).__name__ != "Discrete":
        raise ParameterError(
            f"actions are {str(space)[:80]}; these agents choose among numbered actions: "
            "wrap the environment so that its action space is Discrete"
        )
    return int(space.n)
