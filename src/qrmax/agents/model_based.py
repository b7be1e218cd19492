"""What the agents that plan share: optimism, greedy choice, and a planner that keeps up.

Whatever is not known is worth `v_max`, by default R_max / (1 - gamma): the most that any policy can
collect. The agent always acts greedily; what it does not know looks best, and so it gets known.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.agents import step_loops
from qrmax.agents.base import AgentConfig, Ahead, Known, Play, Sizes, Tabular, as_lesson
from qrmax.agents.choice import among_best
from qrmax.agents.experience import Experience
from qrmax.agents.step_loops import Counting, Outlook
from qrmax.empirical.counts import Counter, Counts
from qrmax.errors import check_count, check_flag, check_range
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.planning.incremental import IncrementalPlanner
from qrmax.seeding import Stream


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelBasedConfig(AgentConfig):
    """Settings of the agents that plan."""

    t_env: int = 39  # samples before what an action does counts as known
    r_max: float = 1.0  # the most that a step pays
    v_max: float | None = None  # the value of the unknown; None: r_max / (1 - gamma)
    tolerance: float = 1e-5  # changes below this, relative to the value, are not planned with
    published: bool = False  # the rules of the published code in place of the paper's

    def __post_init__(self) -> None:
        AgentConfig.__post_init__(self)
        check_count("t_env", self.t_env)
        check_range("r_max", self.r_max, at_least=0.0, below=1e300)
        if self.v_max is not None:
            check_range("v_max", self.v_max, at_least=0.0, below=1e300)
        check_range("tolerance", self.tolerance, at_least=1e-15, below=1.0)
        check_flag("published", self.published)

    @property
    def slack(self) -> float:
        """Values this close, relative to the best, are equal as far as planning can tell."""
        return 2.0 * self.tolerance / (1.0 - self.gamma)

    @property
    def optimistic(self) -> float:
        """The value of what is not known."""
        return self.r_max / (1.0 - self.gamma) if self.v_max is None else self.v_max


class ModelBased(Tabular):
    """An agent with counters and a planner."""

    config: ModelBasedConfig
    planner: IncrementalPlanner
    counters: dict[str, Counter]  # by name

    loop = staticmethod(step_loops.explore)
    joint = False  # whether the planner knows pairs (s, q) only
    first_wins = False  # whether ties are at random only where all actions are equal

    def __init__(
        self, sizes: Sizes, config: ModelBasedConfig, rng: Stream, experience: Experience
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        self.slack = config.slack  # for a choice at every step

    @abstractmethod
    def grow(self, states: int) -> None:
        """Make room for more states, of which nothing is known."""

    @abstractmethod
    def counting(self) -> Counting:
        """How the compiled loop counts."""

    def values(self, s: int, q: int) -> list[float]:
        """QT(s, q, .)."""
        return self.planner.row(self.number(s, q), 0) if self.joint else self.planner.row(s, q)

    def number(self, s: int, q: int) -> int:
        """The number of a pair, for a planner that knows pairs only."""
        return s * self.sizes.task_states + q

    def act(self, s: int, q: int) -> int:
        """One of the best actions, each with the same chance."""
        return self.choose(self.values(s, q))

    def choose(self, values: list[float]) -> int:
        """One of the best actions, each with the same chance."""
        return among_best(values, self.slack, self.rng)

    @property
    def q(self) -> FloatArray:
        """The optimistic value of every action, `[s, q, a]`."""
        return self.planner.q.reshape(self.sizes)

    def policy(self) -> IntArray:
        """The greedy policy, `[s, q]`: the first of equally good actions."""
        return self.planner.greedy().reshape(self.sizes[:2])

    def known(self) -> Known:
        """How many pairs have been counted often enough, of all there are."""
        counts = [(counter.counts.n, counter.threshold) for counter in self.counters.values()]
        return Known(
            pairs=sum(int((n >= threshold).sum()) for n, threshold in counts),
            of=sum(n.size for n, _ in counts),
        )

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The counters and the planner."""
        arrays = {f"planner.{name}": array for name, array in self.planner.snapshot().items()}
        for name, counter in self.counters.items():
            for field, array in counter.counts._asdict().items():
                arrays[f"{name}.{field}"] = array
        return {name: array.copy() for name, array in arrays.items()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over counters and planner."""
        for name, counter in self.counters.items():
            counter.restore(Counts(*(arrays[f"{name}.{field}"].copy() for field in Counts._fields)))
        prefix = "planner."
        self.planner.restore(
            {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)}
        )

    def outlook(self) -> Outlook:
        """How the compiled loop chooses."""
        env, tables = self.planner.env, self.planner.tables
        return Outlook(
            env.succ,
            env.prob,
            env.reward,
            tables.gain,
            tables.done,
            self.planner.rules.optimistic,
            self.joint,
            self.config.slack,
            self.first_wins,
            np.empty(self.sizes.actions),
        )

    def ground(self, simulator: Play) -> step_loops.Ground | None:  # noqa: ARG002
        """Where states are buckets of a plane; elsewhere there is none."""
        return None

    def fast_forward(self, simulator: Play, limit: int) -> Ahead:
        """Steps that complete no estimate and meet nothing new, compiled."""
        self.planner.forget_rows()
        taken = step_loops.explore(
            simulator.world,
            simulator.state,
            self.outlook(),
            self.counting(),
            *self.numbers(simulator),
            limit,
            self.ground(simulator),
        )
        return Ahead(taken.steps, as_lesson(taken, simulator) if taken.unlearned else None)
