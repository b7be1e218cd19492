"""Agents with a table of action values for every stage of an episode, filled before it begins.

`plan_episode` fills `values[h, x, a]`, and an episode follows it greedily. Values may be kept from
one plan to the next. A step may also record, for the next plan, that x was visited at stage h
(`visits`), or renew the exploration bonus of (x, a) at stage h alone (`bonus`).

Memory is O(H|S||Q||A|). The table is of pairs x = s |Q| + q. So are the counts and the visits of a
stage, but for an agent that knows the machine, which counts world states x = s. Bonuses that are
renewed on the way are of pairs only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qrmax.agents import step_loops
from qrmax.agents.base import AnySimulator, Sizes
from qrmax.agents.choice import among_best
from qrmax.agents.episodic.episodic_agent import (
    EpisodicAgent,
    FiniteHorizonConfig,
    named_arrays,
)
from qrmax.agents.experience import Experience
from qrmax.planning.finite_horizon import largest_returns
from qrmax.planning.stage_tables import make_table
from qrmax.problems.simulator import Step
from qrmax.seeding import Stream

_NO_RULE = step_loops.BonusRule(0.0, 0.0, 0.0, 0.0)


class TabledAgent(EpisodicAgent):
    """An agent that follows a table of action values."""

    loop = staticmethod(step_loops.follow_table)
    beside_loop: ClassVar[tuple[str, ...]] = ("begin_episode", "plan_episode", "bonus_rule")
    counts_visits: ClassVar[bool] = False  # of each stage
    renews_bonus: ClassVar[bool] = False  # at the stage that is visited
    doubles: ClassVar[bool] = False  # whether it plans when a visit count is a power of two

    def __init__(
        self,
        sizes: Sizes,
        config: FiniteHorizonConfig,
        rng: Stream,
        experience: Experience,
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        horizon, n_x = config.horizon, len(self.seen.arrays.n)
        values = make_table(horizon, sizes.states * sizes.task_states, sizes.actions)
        self.v_max = largest_returns(horizon, config.gamma, config.r_span)
        self.table = step_loops.StageTable(
            values=values,
            visits=np.zeros((horizon, n_x) if self.counts_visits else (0, 0), dtype=np.int32),
            bonus=np.zeros_like(values) if self.renews_bonus else np.empty((0, 0, 0)),
            v_max=self.v_max,
            rule=self.bonus_rule(),
            doubles=self.doubles,
        )
        self.table.values[:] = self.v_max[:, None, None]
        if self.renews_bonus:
            self.table.bonus[:] = self.v_max[:, None, None]

    def bonus_rule(self) -> step_loops.BonusRule:
        """The bonus that a visit renews."""
        return _NO_RULE

    def act(self, s: int, q: int) -> int:
        """Act greedily at this stage; ties are broken uniformly at random."""
        values = self.table.values[self.stage, s * self.sizes.task_states + q]
        return among_best(values.tolist(), 0.0, self.rng)

    def update(self, s: int, q: int, a: int, step: Step) -> None:
        """Learn from one transition, at this stage."""
        (_, x), h = self.place(s, q), self.stage
        super().update(s, q, a, step)
        if self.counts_visits:
            self.table.visits[h, x] += 1
        if self.renews_bonus:
            n, _, listed, outcome, tau = self.seen.arrays
            counts = n, listed, outcome, tau
            self.table.bonus[h, x, a] = step_loops.visit_bonus(self.table, *counts, h, x, a)

    def follow(
        self, simulator: AnySimulator, counting: step_loops.EpisodeCounting, limit: int
    ) -> step_loops.Taken:
        """Take compiled steps of this episode, by the table."""
        return step_loops.follow_table(
            simulator.world,
            simulator.state,
            self.table,
            counting,
            self.done,
            *self.numbers(simulator),
            self.stage,
            limit,
        )

    # --- saving

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The counts, and the table of the episode under way."""
        kept: dict[str, NDArray[Any]] = {"values": self.table.values}
        if self.counts_visits:
            kept["visits"] = self.table.visits
        if self.renews_bonus:
            kept["bonus"] = self.table.bonus
        parts = {"seen": self.seen.arrays._asdict(), "table": kept}
        if not self.joint:
            parts["task"] = self._task_arrays()
        return named_arrays(parts | {"episode": self._episode_arrays()})

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over counts and table."""
        self._restore_episode(arrays)
        if not self.joint:
            self._restore_task(arrays)
        for name in ("values", "visits", "bonus"):
            if f"table.{name}" in arrays:
                getattr(self.table, name)[:] = arrays[f"table.{name}"]
