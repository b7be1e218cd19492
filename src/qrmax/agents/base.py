"""The contract of all agents, built in or from outside.

    agent.begin_episode(s, q)            an episode starts
    agent.act(s, q) -> a                 the action to take
    agent.update(s, q, a, step)          learn from the transition
    agent.policy() -> [s, q]             the greedy policy
    agent.recommendation()               the policy that the agent is evaluated by
    agent.snapshot(), agent.restore(...) everything learned, as named arrays

The least that a class has to define is `act`, `update` and `policy`, or `recommendation` in place
of `policy`. All else has a default: arrays, numbers, lists and dicts among its attributes are saved
(see `saving.py`), and its one setting is the discount factor.

An agent is given the sizes of a problem, its own config and a random stream. It never sees the
world; agents that know the machine learn from counterfactual experience as well (`experience.py`).
A state is a number, unless the agent `perceives`: then it maps observations to states of its own:

    agent.perceive(observation, label) -> s

The Python methods are the definition of an algorithm. A `Tabular` agent may run the same algorithm
compiled, with bit-identical results: `fast_forward` takes steps up to one that needs planning, and
leaves that transition to `update`. `compiled.py` says for which classes it is used.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from qrmax.agents.experience import Experience
from qrmax.agents.outside import note_source
from qrmax.agents.saving import to_arrays, update_from_arrays
from qrmax.agents.step_loops import Numbers, Taken
from qrmax.errors import AgentError, check_range
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.problems.continuous_problem import PlaneSimulator
from qrmax.problems.observations import Observations
from qrmax.problems.simulator import Simulator, Step
from qrmax.seeding import Stream

NOTHING = -1
"""Placeholder for a state that compiled code has not visited before."""

AnySimulator = Simulator | PlaneSimulator
"""A simulator that a compiled loop can play."""

State = Any
"""A state as an agent sees it: a number, or the result of its `perceive`."""

GIVEN = frozenset({"sizes", "config", "rng", "experience", "observations", "coordinates"})
"""The attributes that an agent is made with, and that are not learned."""


class Sizes(NamedTuple):
    """The numbers of states, of task states and of actions of a problem."""

    states: int  # |S|; for an agent that perceives, the room to begin with
    task_states: int  # |Q|
    actions: int  # |A|


class Transition(NamedTuple):
    """A transition that the agent has not yet learned from."""

    s: int
    q: int
    a: int
    step: Step


class FastForwardResult(NamedTuple):
    """The progress of a compiled loop."""

    taken: int  # steps, that of the transition included
    transition: Transition | None  # the last of them, if it is left to `update`


class ModelCoverage(NamedTuple):
    """The part of its model that an agent has learned."""

    pairs: int  # that are known
    of: int


class VisitCounts(NamedTuple):
    """Visits of state-action pairs, as far as an agent counts them."""

    n: IntArray  # [s, a], or [s, q, a] if it does not learn the factors apart
    threshold: int  # visits from which on a pair counts as known


class RewardBounds(NamedTuple):
    """Bounds on the reward of a step that an algorithm assumes."""

    lowest: float = -math.inf
    highest: float = math.inf


MACHINE_KNOWN, Q_OBSERVED, LABELS_OBSERVED = INFORMATION = (
    "machine known",
    "q observed",
    "q and labels observed",
)
"""Levels of information on the task, besides the rewards."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentConfig:
    """The settings of an agent: hyperparameters with defaults, validated when it is made.

    Args:
        gamma: the discount factor, in (0, 1).
    """

    agent: ClassVar[type[Agent]]  # whose config it is; each class of agents has one of its own
    from_rewards: ClassVar[tuple[str, ...]] = ()
    """Of `r_min` and `r_max`, those settings whose default is the reward range of the problem."""
    newer: ClassVar[tuple[str, ...]] = ()
    """Settings that run ids leave out at their default: there were runs before they existed."""

    gamma: float = 0.9  # discount factor

    def __post_init__(self) -> None:
        check_range("gamma", self.gamma, above=0.0, below=1.0)

    @property
    def episode_horizon(self) -> int | None:
        """The number of steps that the agent plans for; None for no limit."""
        return None

    @property
    def reward_bounds(self) -> RewardBounds:
        """The bounds on rewards that the algorithm assumes."""
        return RewardBounds()

    @property
    def reads_labels(self) -> bool:
        """Whether it learns from labels."""
        return False

    @property
    def information(self) -> str:
        """The information on the task that it is given: one of `INFORMATION`."""
        if self.agent.knows_machine:
            return MACHINE_KNOWN
        return LABELS_OBSERVED if self.reads_labels else Q_OBSERVED

    @property
    def trusts_one_sample(self) -> bool:
        """Whether the machine is assumed to be deterministic, so that one sample is enough."""
        return False


class Agent(ABC):
    """A learner; the docstring of the module has its contract.

    Args:
        sizes: the numbers of states, task states and actions.
        config: an instance of the class's `Config`.
        rng: the only source of randomness that an agent may use.
        experience: the machine's transitions to learn from, with counterfactual ones for an agent
            that knows the machine.
        observations: the bounds of the observations, for an agent that perceives.
        coordinates: the coordinates of the states, `[s, d]`, for an agent that needs them; given by
            name.

    Class attributes declare facts about the agent:

        name: its name; by default that of the class in kebab case.
        version: in run ids, in place of a hash of the source of an agent from outside.
        Config: the dataclass of its settings; by default `AgentConfig`, with `gamma` alone.
        knows_machine: it is given the reward machine; its experience is counterfactual.
        factored: it learns the machine's transitions by the state reached, (q, s').
        perceives: it sees observations, which `perceive` maps to states, and is made with their
            bounds.
        needs_coordinates: it is made with the coordinates of the states; problems without any are
            refused.
        on_policy: it learns the value of the policy that it follows.
        epsilon_greedy: it explores by random actions alone.
        has_horizon: it plans for episodes of `config.horizon` steps.
        told_the_machine: the name of its variant that knows the machine.
        kernels: the compiled functions that it uses, besides a compiled loop.
        quick_settings: settings with which a few steps exercise all its code, for tests.
        not_saved: the attributes that `snapshot` leaves out.
    """

    name: ClassVar[str]
    version: ClassVar[str | None] = None
    Config: ClassVar[type[AgentConfig]] = AgentConfig
    _declared: ClassVar[type[AgentConfig]] = AgentConfig  # by this class, or by the next that does

    knows_machine: ClassVar[bool] = False
    factored: ClassVar[bool] = False
    perceives: ClassVar[bool] = False
    needs_coordinates: ClassVar[bool] = False
    on_policy: ClassVar[bool] = False
    epsilon_greedy: ClassVar[bool] = False
    has_horizon: ClassVar[bool] = False
    told_the_machine: ClassVar[str | None] = None
    kernels: ClassVar[tuple[Callable[..., Any], ...]] = ()
    quick_settings: ClassVar[Mapping[str, Any]] = {}
    not_saved: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Give every class a name and a config of its own: none shares those of its parent."""
        super().__init_subclass__(**options)
        note_source(cls)
        if "name" not in vars(cls):
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()
        cls.Config = _own_config(cls)

    def __init__(
        self,
        sizes: Sizes,
        config: AgentConfig,
        rng: Stream,
        experience: Experience,
        observations: Observations | None = None,
        coordinates: FloatArray | None = None,
    ) -> None:
        self.sizes = sizes
        self.config = config
        self.rng = rng
        self.experience = experience
        if observations is not None:
            self.observations = observations
        if coordinates is not None:
            self.coordinates = coordinates

    def __repr__(self) -> str:
        return f"{self.name}({self.config})"

    @classmethod  # noqa: B027 (most need nothing)
    def check_installed(cls) -> None:
        """Raise a `MissingExtraError` if something that it needs is not installed."""

    # --- an episode

    def perceive(self, observation: Any, label: int) -> State:
        """Map an observation, and the number of its label, to a state."""
        raise NotImplementedError  # the trainer asks only agents that declare `perceives`

    @property
    def perceives_labels(self) -> bool:
        """Whether the state of an observation depends on its label as well."""
        return False

    def begin_episode(self, s: State, q: int) -> None:  # noqa: B027 (most need nothing)
        """Prepare for an episode that starts in (s, q)."""

    @abstractmethod
    def act(self, s: State, q: int) -> int:
        """Choose the action to take in (s, q)."""

    @abstractmethod
    def update(self, s: State, q: int, a: int, step: Step) -> None:
        """Learn from the transition that action a in (s, q) led to.

        A `Step` has the next states `s` and `q`, the `label` read, the rewards `r_env` and
        `r_task`, `terminated`, `truncated` and `world_ended`.
        """

    @property
    def episode_over(self) -> bool:
        """Whether the agent ends the episode, by a clock of its own."""
        return False

    # --- the result

    def policy(self) -> IntArray:
        """Return the greedy policy, `[s, q]`."""
        raise AgentError(f"agent {self.name!r} has no table of actions: policy() is not defined")

    def recommendation(self) -> Any:
        """Return the policy to evaluate it by: `[s, q]`, or `[h, s, q]` if it depends on the stage.

        That of an agent that perceives has a method `action(observation, label, q) -> a`.
        """
        return self.policy()

    def known(self) -> ModelCoverage | None:
        """Return the part of its model that is known; None for an agent without a model."""
        return None

    def visits(self) -> VisitCounts | None:
        """Return its counts of state-action pairs; None for an agent that keeps none."""
        return None

    # --- saving

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Return everything learned as named arrays, copied.

        By default that is every attribute but those that it was made with and those of `not_saved`.
        """
        left_out = {*GIVEN, *self.not_saved}
        learned = {key: x for key, x in vars(self).items() if key not in left_out}
        return to_arrays(learned, f"agent {self.name!r}")

    def make_room_for(self, arrays: Mapping[str, NDArray[Any]]) -> None:  # noqa: B027
        """Grow to the size of the agent of this snapshot; most agents never grow."""

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over a snapshot of an agent of the same class, sizes and config."""
        update_from_arrays(vars(self), arrays)

    @property
    def samples(self) -> int:
        """The number of steps counted, for an agent that counts every step; 0 otherwise."""
        return 0

    @property
    def nbytes(self) -> int:
        """The memory of everything that it has learned and planned."""
        return sum(array.nbytes for array in self.snapshot().values())


AgentConfig.agent = Agent  # type: ignore[type-abstract]  # never instantiated


def _own_config(cls: type[Agent]) -> type[AgentConfig]:
    """The config that a class declares, or one like its parent's that belongs to this class."""
    if "Config" in vars(cls):
        cls._declared = cls.Config
    config: Any = cls._declared  # not that of a mixin without one
    if not (isinstance(config, type) and issubclass(config, AgentConfig)):
        return cls._declared  # `check_declared` says what is wrong with it
    if "Config" in vars(cls) and "agent" not in vars(config):
        config.agent = cls
        return cls._declared
    named = {"__module__": cls.__module__, "__qualname__": f"{cls.__qualname__}.Config"}
    return type("Config", (config,), {**named, "__slots__": (), "agent": cls})


class Tabular(Agent):
    """An agent with tables of numbered states, and with a compiled loop."""

    loop: ClassVar[Callable[..., Any]]  # the compiled form of the methods of its class
    in_loop: ClassVar[frozenset[str]] = frozenset()
    """The methods that this very class overrides and that the inherited loop implements as well."""
    beside_loop: ClassVar[tuple[str, ...]] = ()
    """The methods that a loop calls or does not depend on, so that they may be overridden."""

    @abstractmethod
    def fast_forward(self, simulator: AnySimulator, limit: int) -> FastForwardResult:
        """Take up to `limit` steps, compiled; stop after one that needs `update` itself."""

    @property
    @abstractmethod
    def q(self) -> FloatArray:
        """The action values, `[s, q, a]`."""

    @abstractmethod
    def policy(self) -> IntArray:
        """Return the greedy policy, `[s, q]`: the first of equally good actions."""

    def numbers(self, simulator: AnySimulator) -> tuple[Numbers, Numbers]:
        """The random numbers of the world and of the agent, for a compiled loop."""
        assert isinstance(simulator.rng, Stream)  # the trainer ensures it
        simulator.rng.refill()
        self.rng.refill()
        return Numbers(simulator.rng.block, simulator.rng.at), Numbers(self.rng.block, self.rng.at)


def as_transition(taken: Taken, simulator: AnySimulator) -> Transition:
    """The last step of a compiled loop, which is left to the agent's `update`."""
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
    return Transition(taken.s, taken.q, taken.a, step)
