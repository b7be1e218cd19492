"""UCBVI-CH and UCBVI-BF with the constants of their paper (Azar, Osband and Munos, 2017).

    Q_h(x, a) = min(H,  r(x, a) + sum_y p(y | x, a) V_h+1(y) + b_h(x, a))    H if never tried,
                and at most what it was in the episode before
    V_h(x)    = max_a Q_h(x, a),  V_H = 0

    ucbvi-ch   b_h = 7 H L sqrt(1 / n)                                    Chernoff-Hoeffding
    ucbvi-bf   b_h = sqrt(8 L Var(V_h+1) / n) + 14 H L / (3 n)            Bernstein-Freedman
                     + sqrt(8 sum_y p(y | x, a) min(100^2 H^3 S^2 A L^2 / N'_h+1(y), H^2) / n)

    L = ln(5 S A T / delta)

where n is the visit count of (x, a), r and p are means, Var is under p, N'_h(y) counts the episodes
that were in y at stage h, S is the number of pairs x = (s, q), and T the total number of steps.

Assumes: rewards are between `r_min` and `r_max`, and the terms with H are scaled accordingly (H is
the largest return of an episode); T is given (`total_steps`). The paper's rewards are known, ours
are means. The last term of UCBVI-BF is left out at the last stage, whose successors have the value
0. Sees the machine's state; does not know the machine.

The constants are those of a proof: b_h exceeds H until (x, a) has been tried tens of thousands of
times, and until then actions are chosen at random. `ucbvi.py` has the bonuses used in comparisons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from qrmax.agents.base import Sizes
from qrmax.agents.episodic.episodic_agent import FiniteHorizonConfig
from qrmax.agents.episodic.tabled_agent import TabledAgent
from qrmax.agents.experience import Experience
from qrmax.errors import check_count, check_range
from qrmax.planning.stage_tables import Concentration, plan_monotone
from qrmax.seeding import Stream


@dataclass(frozen=True, kw_only=True, slots=True)
class UCBVIAzarConfig(FiniteHorizonConfig):
    """Settings of UCBVI-CH and UCBVI-BF."""

    delta: float = 0.05  # the probability that the regret bound fails
    total_steps: int = 1_000_000  # T

    def __post_init__(self) -> None:
        FiniteHorizonConfig.__post_init__(self)
        check_range("delta", self.delta, above=0.0, below=1.0)
        check_count("total_steps", self.total_steps)


class UCBVIAzar(TabledAgent):
    """UCBVI with a bonus of its paper."""

    Config = UCBVIAzarConfig
    config: UCBVIAzarConfig

    kernels = (plan_monotone,)
    hoeffding: ClassVar[bool]

    def __init__(
        self, sizes: Sizes, config: UCBVIAzarConfig, rng: Stream, experience: Experience
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        n_x, actions = self.seen.arrays.n.shape
        log = math.log(5.0 * n_x * actions * config.total_steps / config.delta)  # L
        top = float(self.v_max[0])  # H, if rewards are between 0 and 1
        correction = 100.0**2 * float(config.horizon) ** 3 * n_x**2 * actions * log**2
        correction *= float(config.r_span) ** 2
        self.rule = Concentration(log, top, self.hoeffding, correction)
        self.table.values[:] = top

    def plan_episode(self) -> None:
        """Lower the values to the upper confidence bounds of now."""
        plan_monotone(
            self.seen.arrays,
            self.done.reshape(-1),
            self.table.visits,
            self.rule,
            float(self.config.gamma),
            self.table.values,
        )


class UCBVICH(UCBVIAzar):
    """UCBVI with the Chernoff-Hoeffding bonus of its paper."""

    name = "ucbvi-ch"
    hoeffding = True


class UCBVIBF(UCBVIAzar):
    """UCBVI with the Bernstein-Freedman bonus of its paper."""

    name = "ucbvi-bf"
    hoeffding = False
    counts_visits = True
