"""Q-learning on pairs of world state and machine state (Watkins and Dayan, 1992).

    Q(s, q, a) += alpha (r_E + r_Q + gamma max_a' Q(s', q', a') - Q(s, q, a))

with the maximum replaced by 0 if the episode has terminated. Explores by epsilon-greedy actions and
by optimistic initialisation, Q0.

Assumes: sees the machine's state; does not know the machine. Model-free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.agents import step_loops
from qrmax.agents.base import AgentConfig, AnySimulator, FastForwardResult, Sizes, Tabular
from qrmax.agents.choice import among_best
from qrmax.agents.experience import Experience
from qrmax.agents.value_rows import ValueRows
from qrmax.errors import check_range
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.problems.simulator import Step
from qrmax.seeding import Stream


@dataclass(frozen=True, kw_only=True, slots=True)
class QLearningConfig(AgentConfig):
    """Settings of Q-learning and QRM."""

    alpha: float = 0.1  # learning rate
    epsilon: float = 0.1  # probability of a random action
    q0: float = 2.0  # optimistic initial value of every action

    def __post_init__(self) -> None:
        AgentConfig.__post_init__(self)
        check_range("alpha", self.alpha, above=0.0, at_most=1.0)
        check_range("epsilon", self.epsilon, at_least=0.0, at_most=1.0)
        check_range("q0", self.q0, at_least=-1e300, at_most=1e300)


class QLearning(Tabular):
    """Q-learning: sees the machine's state, does not know the machine, keeps no model."""

    name = "q-learning"
    Config = QLearningConfig
    told_the_machine = "qrm"
    epsilon_greedy = True
    loop = staticmethod(step_loops.temporal_difference)
    config: QLearningConfig

    def __init__(
        self,
        sizes: Sizes,
        config: QLearningConfig,
        rng: Stream,
        experience: Experience,
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        self.rows = ValueRows(np.full(sizes, config.q0, dtype=np.float64))  # Q(s, q, a)

    @property
    def qt(self) -> FloatArray:
        """The table of values as an array, `[s, q, a]`."""
        return self.rows.written_back()

    def act(self, s: int, q: int) -> int:
        """Act epsilon-greedily; ties are broken uniformly at random."""
        if self.rng.random() < self.config.epsilon:
            return int(self.rng.random() * self.sizes.actions)
        return among_best(self.rows[s][q], 0.0, self.rng)

    def update(self, s: int, q: int, a: int, step: Step) -> None:
        """TD update towards the bootstrapped target; truncation still bootstraps."""
        alpha, gamma, r_env = self.config.alpha, self.config.gamma, step.r_env
        values, next_values = self.rows[s], self.rows[step.s]  # [q][a]
        for p, p_next, r_task, terminated in self.experience(q, step):
            target = r_env + r_task
            if not terminated:
                target += gamma * max(next_values[p_next])
            values[p][a] += alpha * (target - values[p][a])

    def fast_forward(self, simulator: AnySimulator, limit: int) -> FastForwardResult:
        """Take all steps compiled: none needs planning."""
        rule = step_loops.TemporalDifference(
            self.config.alpha,
            self.config.epsilon,
            self.config.gamma,
            self.experience.knows_machine,
        )
        taken = step_loops.temporal_difference(
            simulator.world,
            simulator.state,
            self.qt,
            rule,
            *self.numbers(simulator),
            limit,
        )
        return FastForwardResult(taken, None)

    @property
    def q(self) -> FloatArray:
        """The action values, `[s, q, a]`."""
        return self.qt

    def policy(self) -> IntArray:
        """The greedy policy, `[s, q]`: the first of equally good actions."""
        policy: IntArray = step_loops.first_best(self.qt)
        return policy

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The action values."""
        return {"qt": self.qt.copy()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over action values."""
        self.qt[:] = arrays["qt"]
