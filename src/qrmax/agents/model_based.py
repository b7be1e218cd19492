"""Agents that plan with an empirical model: optimistic initialisation and incremental planning.

The value of unknown state-action pairs is `v_max`, by default R_max / (1 - gamma), an upper bound
on the return of any policy. The agent acts greedily; unknown pairs look best, and are explored.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.agents import step_loops
from qrmax.agents.base import (
    AgentConfig,
    AnySimulator,
    FastForwardResult,
    ModelCoverage,
    Sizes,
    Tabular,
    VisitCounts,
    as_transition,
)
from qrmax.agents.choice import greedy_actions, one_of
from qrmax.agents.experience import Experience
from qrmax.agents.optimism import Optimism
from qrmax.agents.step_loops import Counting, Outlook
from qrmax.empirical.counts import Counter, Counts
from qrmax.errors import check_count
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.planning.incremental import IncrementalPlanner
from qrmax.planning.kernels import settle
from qrmax.seeding import Stream


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelBasedConfig(Optimism, AgentConfig):
    """Settings of the agents that plan with an empirical model."""

    from_rewards = ("r_max",)

    t_env: int = 39  # samples before a state-action pair counts as known
    r_max: float = 1.0  # the largest reward of a step
    v_max: float | None = None  # value of unknown pairs; None: r_max / (1 - gamma)
    tolerance: float = 1e-5  # changes below this, relative to the value, are not planned with

    def __post_init__(self) -> None:
        AgentConfig.__post_init__(self)
        check_count("t_env", self.t_env)
        self.check_optimism()


class ModelBased(Tabular):
    """An agent with an empirical model and a planner."""

    config: ModelBasedConfig
    planner: IncrementalPlanner
    counters: dict[str, Counter]  # by name

    loop = staticmethod(step_loops.explore)
    beside_loop = ("grow", "counting", "outlook", "ground", "make_planner")
    kernels = (settle,)
    quick_settings = MappingProxyType({"t_env": 2})
    joint = False  # whether the planner is over pairs (s, q), without a machine
    first_wins = False  # whether ties are broken at random only if all actions are equal

    def __init__(
        self, sizes: Sizes, config: ModelBasedConfig, rng: Stream, experience: Experience
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        self.slack = config.slack  # for a choice at every step

    @abstractmethod
    def grow(self, states: int) -> None:
        """Grow to more states, all of them unknown."""

    @abstractmethod
    def counting(self) -> Counting:
        """The counters for the compiled loop."""

    def values(self, s: int, q: int) -> list[float]:
        """QT(s, q, .)."""
        pair = (self.number(s, q), 0) if self.joint else (s, q)
        values: list[float] = self.planner.q_at(*pair).tolist()
        return values

    def number(self, s: int, q: int) -> int:
        """The index of the pair (s, q), for a planner without a machine."""
        return s * self.sizes.task_states + q

    def act(self, s: int, q: int) -> int:
        """Act greedily; ties are broken uniformly at random."""
        greedy = self.planner.derived.get((s, q))
        if greedy is None:
            greedy = self.planner.derived[s, q] = self.greedy_actions(self.values(s, q))
        return one_of(greedy, self.rng)

    def greedy_actions(self, values: list[float]) -> list[int]:
        """The actions that planning cannot tell from the best."""
        return greedy_actions(values, self.slack)

    @property
    def q(self) -> FloatArray:
        """The optimistic action values, `[s, q, a]`."""
        return self.planner.q.reshape(self.sizes)

    def policy(self) -> IntArray:
        """The greedy policy, `[s, q]`: the first of equally good actions."""
        return self.planner.greedy().reshape(self.sizes[:2])

    def known(self) -> ModelCoverage:
        """The pairs whose visit count has reached the threshold, of all there are."""
        counts = [(counter.counts.n, counter.threshold) for counter in self.counters.values()]
        return ModelCoverage(
            pairs=sum(int((n >= threshold).sum()) for n, threshold in counts),
            of=sum(n.size for n, _ in counts),
        )

    def visits(self) -> VisitCounts:
        """The visits of state-action pairs, counted up to the threshold."""
        first, *_ = self.counters.values()  # of the world, or of pairs (s, q)
        shape = self.sizes if self.joint else (self.sizes.states, self.sizes.actions)
        return VisitCounts(first.counts.n.reshape(shape), first.threshold)

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
        """The planner's tables for the compiled loop."""
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

    def ground(self, simulator: AnySimulator) -> step_loops.Ground | None:  # noqa: ARG002
        """The plane whose buckets are the states, for the compiled loop; None for other states."""
        return None

    def fast_forward(self, simulator: AnySimulator, limit: int) -> FastForwardResult:
        """Take compiled steps, up to one that completes an estimate or reaches something new."""
        self.planner.derived.clear()  # compiled code is about to change the values
        taken = step_loops.explore(
            simulator.world,
            simulator.state,
            self.outlook(),
            self.counting(),
            *self.numbers(simulator),
            limit,
            self.ground(simulator),
        )
        return FastForwardResult(
            taken.steps, as_transition(taken, simulator) if taken.unlearned else None
        )
