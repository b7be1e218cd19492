"""What every agent is: it acts, it learns from steps, and it has a greedy policy.

    agent.begin(s, q)                    an episode starts
    agent.act(s, q) -> a                 the action to take now
    agent.update(s, q, a, step)          learn from what it led to
    agent.recommendation()               the policy to judge it by
    agent.snapshot(), agent.restore(...) everything learned, as named arrays

An agent knows the sizes of a problem, its own settings and a random stream. It never sees the
world; agents that know the machine are given it. To most a state is a number. Where the world shows
vectors, an agent that can make something of them is asked first, and s is what it says:

    agent.perceive(observation, label) -> s

A `Tabular` agent has its `policy() -> [s, q]`, the greedy one, the first of equally good actions.
The Python methods are the definition of an algorithm; `fast_forward` runs the same algorithm
compiled, with bit-identical results: it takes steps until one needs thought, and leaves that one to
`update`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from qrmax.agents.experience import Experience
from qrmax.agents.outside import note_source
from qrmax.agents.step_loops import Numbers, Taken
from qrmax.errors import check_range
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.problems.continuous_problem import PlaneSimulator
from qrmax.problems.simulator import Simulator, Step
from qrmax.seeding import Stream

NOTHING = -1
"""In place of a state: one that compiled code has not come upon before."""

Play = Simulator | PlaneSimulator
"""What is played where nothing but numbers is needed."""

State = Any
"""A state as an agent sees it: a number, or what its `perceive` has made of an observation."""


class Sizes(NamedTuple):
    """How large a problem is."""

    states: int  # |S|; where there are observations, how many to have room for at first
    task_states: int  # |Q|
    actions: int  # |A|


class Lesson(NamedTuple):
    """A step that has been taken but not yet learned from."""

    s: int
    q: int
    a: int
    step: Step


class Ahead(NamedTuple):
    """How far a compiled loop has come."""

    taken: int  # steps, the lesson's included
    lesson: Lesson | None  # the last of them, where it needs thought


class Known(NamedTuple):
    """How much of its model an agent has learned."""

    pairs: int
    of: int


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentConfig:
    """What every agent can be told."""

    agent: ClassVar[type[Agent]]  # whose config it is; each class of agents has one of its own
    gamma: float = 0.9  # discount

    def __post_init__(self) -> None:
        check_range("gamma", self.gamma, above=0.0, below=1.0)


class Agent(ABC):
    """A learner. The module's docstring says what it can do."""

    name: ClassVar[str]  # the class's own in kebab case unless it is declared
    version: ClassVar[str | None] = None  # of an agent from outside, in place of a hash
    knows_machine: ClassVar[bool] = False
    factored: ClassVar[bool] = False  # learns what the machine does by the state reached
    perceives: ClassVar[bool] = False  # sees observations; is made with `Observations`
    Config: ClassVar[type[AgentConfig]] = AgentConfig

    def __init_subclass__(cls, **options: Any) -> None:
        """Give every class a name and a config of its own: none goes by those of its parent."""
        super().__init_subclass__(**options)
        note_source(cls)
        if "name" not in vars(cls):
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()
        cls.Config = _own_config(cls)

    def __init__(
        self, sizes: Sizes, config: AgentConfig, rng: Stream, experience: Experience
    ) -> None:
        self.sizes = sizes
        self.config = config
        self.rng = rng
        self.experience = experience

    def __repr__(self) -> str:
        return f"{self.name}({self.config})"

    @classmethod  # noqa: B027 (most need nothing)
    def check_installed(cls) -> None:
        """Raise a `MissingExtraError` where something that it needs is not installed."""

    def perceive(self, observation: Any, label: int) -> State:
        """What the agent makes of an observation, and of the number of its label."""
        raise NotImplementedError  # the trainer asks those that `perceives` only

    def begin(self, s: State, q: int) -> None:  # noqa: B027 (most agents do not care)
        """An episode starts in (s, q)."""

    @property
    def over(self) -> bool:
        """Whether the agent ends the episode here, by a clock of its own."""
        return False

    @abstractmethod
    def act(self, s: State, q: int) -> int:
        """The action to take now."""

    @abstractmethod
    def update(self, s: State, q: int, a: int, step: Step) -> None:
        """Learn from what action a in (s, q) led to."""

    @abstractmethod
    def recommendation(self) -> Any:
        """The policy to judge it by."""

    @abstractmethod
    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Everything learned, as named arrays."""

    def make_room_for(self, arrays: Mapping[str, NDArray[Any]]) -> None:  # noqa: B027
        """Grow as large as the agent of this snapshot was; most never grow."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a snapshot."""

    @property
    def samples(self) -> int:
        """The number of steps counted if every step is; 0 otherwise."""
        return 0

    @property
    def nbytes(self) -> int:
        """The memory of all that it has learned and planned."""
        return sum(array.nbytes for array in self.snapshot().values())

    def known(self) -> Known | None:
        """How much of its model is known; None where there is no model."""
        return None


AgentConfig.agent = Agent  # type: ignore[type-abstract]  # nobody makes one of it


def _own_config(cls: type[Agent]) -> type[AgentConfig]:
    """The config that a class declares, or one like its parent's that belongs to this class."""
    config: Any = cls.Config
    if not (isinstance(config, type) and issubclass(config, AgentConfig)):
        return cls.Config  # `check_declared` says what is wrong with it
    if "Config" in vars(cls) and "agent" not in vars(config):
        config.agent = cls
        return cls.Config
    named = {"__module__": cls.__module__, "__qualname__": f"{cls.__qualname__}.Config"}
    return type("Config", (config,), {**named, "__slots__": (), "agent": cls})


class Tabular(Agent):
    """A learner that keeps tables of numbered states."""

    loop: ClassVar[Callable[..., Any]]  # its compiled form

    @abstractmethod
    def fast_forward(self, simulator: Play, limit: int) -> Ahead:
        """Take up to so many steps, compiled; stop after one that needs thought."""

    @property
    @abstractmethod
    def q(self) -> FloatArray:
        """The value of every action as the agent sees it, `[s, q, a]`."""

    @abstractmethod
    def policy(self) -> IntArray:
        """The greedy policy, `[s, q]`: the first of equally good actions."""

    def recommendation(self) -> Any:
        """Its policy: `[s, q]`, or `[h, s, q]` where it depends on the stage."""
        return self.policy()

    def numbers(self, simulator: Play) -> tuple[Numbers, Numbers]:
        """The random numbers of the world and of the agent, for a compiled loop."""
        assert isinstance(simulator.rng, Stream)  # the trainer sees to it
        simulator.rng.refill()
        self.rng.refill()
        return Numbers(simulator.rng.block, simulator.rng.at), Numbers(self.rng.block, self.rng.at)


def as_lesson(taken: Taken, simulator: Play) -> Lesson:
    """The last step of a compiled loop, which it has left to the agent."""
    step = Step(
        simulator.look() if taken.s_next == NOTHING else taken.s_next,
        taken.q_next,
        taken.label,
        taken.r_env,
        taken.r_task,
        taken.terminated,
        taken.truncated,
        bool(simulator.world.done[taken.place, taken.q]),  # as in simulator.py
    )
    return Lesson(taken.s, taken.q, taken.a, step)
