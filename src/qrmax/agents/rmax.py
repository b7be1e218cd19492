"""R-Max on pairs of world state and machine state (Brafman and Tennenholtz, 2003).

    tau, rho, n   by ((s, q), a): where actions lead, what they pay
    Q(x, a) = sum_x' R(x, a, x') + gamma sum_x' P(x' | x, a) V(x')     x = (s, q), once n is t_env

What is learned in one machine state is learned again in every other.

Assumes: sees the machine's state; does not know the machine.
"""

from __future__ import annotations

from typing import ClassVar

from qrmax.agents import step_loops
from qrmax.agents.base import Sizes
from qrmax.agents.experience import Experience
from qrmax.agents.model_based import ModelBased, ModelBasedConfig
from qrmax.empirical.counts import Counter
from qrmax.planning.incremental import IncrementalPlanner
from qrmax.problems.simulator import Step
from qrmax.seeding import Stream


class RMax(ModelBased):
    """R-Max: sees the machine's state, does not know the machine, learns one large model."""

    name = "rmax"
    Config = ModelBasedConfig
    told_the_machine: ClassVar[str | None] = "rmax-rm"

    in_loop = frozenset({"update"})
    joint = True

    def __init__(
        self,
        sizes: Sizes,
        config: ModelBasedConfig,
        rng: Stream,
        experience: Experience,
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        pairs = sizes.states * sizes.task_states
        self.pair = Counter(pairs, sizes.actions, threshold=config.t_env)
        self.counters = {"pair": self.pair}
        self.planner = IncrementalPlanner.without_task(
            pairs,
            sizes.actions,
            gamma=config.gamma,
            optimistic=config.optimistic,
            tolerance=config.tolerance,
        )

    def grow(self, states: int) -> None:
        """Grow to more states, all of them unknown."""
        self.sizes = self.sizes._replace(states=states)
        pairs = states * self.sizes.task_states
        self.pair.grow(pairs, self.sizes.actions)
        self.planner.grow(pairs)

    def update(self, s: int, q: int, a: int, step: Step) -> None:
        """Learn from one transition."""
        do_vi = False
        for p, p_next, r_task, terminated in self.experience(q, step):
            x, x_next = self.number(s, p), self.number(step.s, p_next)
            if self.pair.record(x, a, x_next, step.r_env + r_task):
                self.planner.learn_env(x, a, *self.pair.estimate(x, a))
                do_vi = True
            if terminated and self.planner.finish(x_next, 0):  # never on truncation
                do_vi = True
        if do_vi:
            self.planner.replan()

    def counting(self) -> step_loops.Counting:
        """The counters for the compiled loop."""
        return step_loops.Counting(
            *self.pair.counts,
            for_transitions=self.pair.for_transitions,
            for_rewards=self.pair.for_rewards,
            of_pairs=True,
            counterfactual=self.experience.knows_machine,
        )
