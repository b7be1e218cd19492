"""UCBVI-PRM (Lin and Zhang, 2025): UCBVI for known machines, whose counts serve in all states.

    Q_h(q, s, a) = min(H, r(s, a) + sum_z p(z | s, a) (R_Q(q, z) + W_h+1(q, z)) + c b_h)
                   and at most what it was in the last plan;  H if (s, a) was never tried
    W_h(q, z)    = V_h(q', z),  q' the machine's state after it was in q and z was reached
    V_h(q, s)    = max_a Q_h(q, s, a),  V_H = 0

    b_h = sqrt(8 L Var_p(W_h+1) / n) + 14 H L / (3 n) + sqrt(2 L / n)
          + sqrt(8 sum_z p(z | s, a) min(100^2 H^3 O^2 A L^2 / N'_h+1(z), H^2) / n)

    L = ln(6 O A T / delta)

where n is the visit count of (s, a), p and r are means, N'_h(z) counts the episodes that were in z
at stage h, in any state of the machine, O is the number of world states, and T the total number of
steps. It plans when a visit count becomes a power of two, also during an episode.

`bonus_scale` is c: 1 in the paper, and 0.001 in its published experiments, which is the default.
With c = 1 the last term is H sqrt(8 / n) until N' exceeds 100^2 H O^2 A L^2, which is 10^13 for O =
100, A = 4, H = 50 and T = 10^6: a bonus of a hundredth of H takes 80,000 samples of the pair, and
values far below H are never told apart.

Assumes: knows the machine, its rewards and which of its states end the episode. Rewards are between
`r_min` and `r_max`, and terms with H are scaled accordingly (H is the largest return of an
episode); T is given (`total_steps`). The paper's labels are on (s, a, z), ours on z; its machines
may be random, ours are not; its rewards are those of the machine alone, those of the world are
means here. Formula, N' and the rule of planning are as in the authors' public code as well, which
has H^2 for the minimum at the last stage, as here.

The policy recommended is that of all agents of this kind, greedy on the empirical model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from qrmax.agents.base import Sizes
from qrmax.agents.episodic.tabled_agent import TabledAgent
from qrmax.agents.episodic.ucbvi_azar import UCBVIAzarConfig
from qrmax.agents.experience import Experience
from qrmax.errors import check_range
from qrmax.planning.finite_horizon import list_feeders
from qrmax.planning.machine_stages import (
    KeptPlan,
    MachineBonus,
    corrects,
    keep_up_with_machine,
    make_kept_plan,
    plan_with_machine,
)
from qrmax.problems.simulator import Step
from qrmax.seeding import Stream


@dataclass(frozen=True, kw_only=True, slots=True)
class UCBVIPRMConfig(UCBVIAzarConfig):
    """Settings of UCBVI-PRM."""

    bonus_scale: float = 0.001  # c

    def __post_init__(self) -> None:
        UCBVIAzarConfig.__post_init__(self)
        check_range("bonus_scale", self.bonus_scale, at_least=0.0, below=1e100)


class UCBVIPRM(TabledAgent):
    """UCBVI-PRM: knows the machine, and shares samples among its states."""

    name = "ucbvi-prm"
    Config = UCBVIPRMConfig
    config: UCBVIPRMConfig

    knows_machine = True
    factored = True
    counts_visits = True
    doubles = True
    in_loop = frozenset({"update"})
    kernels = (plan_with_machine, keep_up_with_machine, list_feeders)

    def __init__(
        self, sizes: Sizes, config: UCBVIPRMConfig, rng: Stream, experience: Experience
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        states, _, actions = sizes
        log = math.log(6.0 * states * actions * config.total_steps / config.delta)  # L
        top, unit = float(self.v_max[0]), float(config.r_span)
        correction = 100.0**2 * float(config.horizon) ** 3 * states**2 * actions * log**2
        scale = float(config.bonus_scale)
        self.rule = MachineBonus(log, top, correction * unit**2, unit, scale)
        self.table.values[:] = top
        self._kept: KeptPlan | None = None  # None: nothing that it holds is that of the table

    def plan_episode(self) -> None:
        """Keep the plan: it is made when a visit count becomes a power of two."""

    def update(self, s: int, q: int, a: int, step: Step) -> None:
        """Learn from one transition, at this stage, and plan if the count is a power of two."""
        super().update(s, q, a, step)
        n = int(self.seen.arrays.n[s, a])
        if n & (n - 1) == 0:
            self.plan()

    def plan(self) -> None:
        """Lower the values to the upper confidence bounds of now."""
        seen, gamma, table = self.seen.arrays, float(self.config.gamma), self.table
        if corrects(table.visits, self.rule):
            self._kept = None
            plan_with_machine(
                seen, self.task, self.done, table.visits, self.rule, gamma, table.values
            )
            return
        if self._kept is None or self._kept.share.shape[1] != seen.tau.shape[2]:
            self._kept = make_kept_plan(self.config.horizon, self.sizes.task_states, seen)
        feeders = list_feeders(seen)
        keep_up_with_machine(
            seen, self.task, self.done, self.rule, gamma, feeders, self._kept, table.values
        )

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over counts and table."""
        super().restore(arrays)
        self._kept = None
