"""The rules of the published code, where they differ from the paper's text.

The paper's step tables were made with these four agents, whose names end in `-published`; none of
their rules is in its text:

- ties: an action at random only if all are equal, else the first of the best (all four agents);
- QR-Max and QR-MaxRM: R_max times |Q|; a triple (s, q, a) enters planning only once it has itself
  been tried after its parts had become known, so that the planner is over pairs (s, q);
- QR-MaxRM counts each real sample of the world |Q| times;
- R-MaxRM counts each real step twice: once as it happened, once among the counterfactual ones.

Their settings (no slips, t_E = 39, value iteration to 1 %) are those of the protocol, not rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.agents.base import Sizes
from qrmax.agents.experience import COUNTERFACTUAL, Experience
from qrmax.agents.model_based import ModelBased
from qrmax.agents.qrmax import FactoredConfig, QRMax
from qrmax.agents.qrmax_rm import QRMaxRM, QRMaxRMConfig
from qrmax.agents.rmax import RMax
from qrmax.agents.rmax_rm import RMaxRM, RMaxRMConfig
from qrmax.agents.step_loops import Counting
from qrmax.planning.incremental import IncrementalPlanner
from qrmax.problems.simulator import Step
from qrmax.seeding import Stream


class PublishedTies(ModelBased):
    """Ties as in the published code."""

    first_wins = True
    in_loop = frozenset({"greedy_actions"})

    def greedy_actions(self, values: list[float]) -> list[int]:
        """The first of the best actions, or all of them if all are equal."""
        if values.count(values[0]) == len(values):
            return [*range(len(values))]
        return [values.index(max(values))]


class PublishedRMax(PublishedTies, RMax):
    """R-Max with the ties of the published code."""

    name = "rmax-published"
    told_the_machine = "rmax-rm-published"


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedRMaxRMConfig(RMaxRMConfig):
    """Settings of R-MaxRM, with the published code's counts by default."""

    count: str = COUNTERFACTUAL


class PublishedRMaxRM(PublishedRMax, RMaxRM):
    """R-MaxRM with the ties of the published code, counting each real step twice."""

    name = "rmax-rm-published"
    Config = PublishedRMaxRMConfig
    in_loop = frozenset({"experience"})


class PublishedQRMax(PublishedTies, QRMax):
    """QR-Max of the published code: plans with triples that it has tried."""

    name = "qrmax-published"
    Config = FactoredConfig
    told_the_machine = "qrmax-rm-published"
    in_loop = frozenset({"update"})
    joint = True

    def __init__(
        self, sizes: Sizes, config: FactoredConfig, rng: Stream, experience: Experience
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        self.untried = np.ones(sizes, dtype=bool)  # [s, q, a]

    def make_planner(self) -> IncrementalPlanner:
        """A planner for pairs, with R_max times |Q|."""
        config, sizes = self.config, self.sizes
        return IncrementalPlanner.without_task(
            sizes.states * sizes.task_states,
            sizes.actions,
            gamma=config.gamma,
            optimistic=config.optimistic * (sizes.task_states if config.v_max is None else 1),
            tolerance=config.tolerance,
        )

    def update(self, s: int, q: int, a: int, step: Step) -> None:
        """Learn from one transition."""
        do_vi = False
        for p, p_next, r_task, terminated in self.experience(q, step):
            do_vi = self._try(s, p, a) or do_vi
            self.task.record(p, step.s, p_next, r_task)
            if terminated and self.planner.finish(self.number(step.s, p_next), 0):
                do_vi = True
        self.env.record(s, a, step.s, step.r_env, self.times)
        if do_vi:
            self.planner.replan()

    def _try(self, s: int, q: int, a: int) -> bool:
        """Plan with (s, q, a) from now on, if its parts are known and it has not been tried."""
        if not self.untried[s, q, a] or not self.env.is_known(s, a):
            return False
        env = self.env.estimate(s, a)
        if not all(self.task.is_known(q, s_next) for s_next in env.outcomes):
            return False
        succ, prob, reward = [], [], env.reward
        for s_next, p_env in zip(env.outcomes.tolist(), env.prob.tolist(), strict=True):
            task = self.task.estimate(q, s_next)
            reward += p_env * task.reward
            for q_next, p_task in zip(task.outcomes.tolist(), task.prob.tolist(), strict=True):
                succ.append(self.number(s_next, q_next))
                prob.append(p_env * p_task)
        self.planner.learn_env(self.number(s, q), a, succ, prob, reward)
        self.untried[s, q, a] = False
        return True

    def counting(self) -> Counting:
        """The counters for the compiled loop."""
        return super().counting()._replace(untried=self.untried)

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Counters, planner, and the triples that have not been tried."""
        return {**super().snapshot(), "untried": self.untried.copy()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore all of that."""
        super().restore(arrays)
        self.untried[:] = arrays["untried"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedQRMaxRMConfig(QRMaxRMConfig):
    """Settings of QR-MaxRM, with the published code's counts by default."""

    count: str = COUNTERFACTUAL


class PublishedQRMaxRM(PublishedQRMax, QRMaxRM):
    """QR-MaxRM of the published code: each sample of the world counts |Q| times."""

    name = "qrmax-rm-published"
    Config = PublishedQRMaxRMConfig
