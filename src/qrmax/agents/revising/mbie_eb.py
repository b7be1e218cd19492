"""MBIE-EB (Strehl and Littman, 2008): the empirical model plus beta / sqrt(n).

    Q(x, a) = R(x, a) + beta / sqrt(n(x, a)) + gamma sum_x' P(x' | x, a) V(x')      n >= t_min
            = v_max                                                                 else

Q is clipped at v_max; t_min is 1 in the paper. The policy recommended is greedy on the empirical
model, without bonus, among the actions that were tried.

    mbie-eb         x = (s, q): the product, as R-Max learns it
    qr-mbie-eb      x = s: the two factors; P and n serve in every machine state
    qr-mbie-eb-rm   the same, and the machine is given

Assumes: what R-Max does and, factored, what QR-Max does. Sees the machine's state; only the last
one knows the machine.

Proved (for the product, t_min 1, and plans after every step): PAC with
beta = sqrt(ln(2 |X| |A| m / delta) / 2) / (1 - gamma). That is about 30 at gamma 0.9 with 100
states, 4 actions, m = 10^4 and delta 0.05: the bonus alone is above v_max = 10 for n < 9, and above
a value of 0.001 until n is of the order of 10^9. With it the agent explores all that it can reach
evenly, and does not stop; what it recommends may be good all the same.

Only observed, on `random-office` and `random-mdp` with seeds 20 to 29, one run of 50,000 steps
each: runs of 20 that got within 5 % of the optimum for good,

    beta              0     0.001   0.01    0.03    0.1     0.3    26 (t_min 1)
    qr-mbie-eb-rm     18    18      19      19      20      20     19
    mbie-eb                         17              18      18            (beta 1: 15)

with t_min 5. With t_min 1 and beta 0.1, `mbie-eb` got there in 16. `qr-mbie-eb` did in 19 with the
defaults. An additive bonus is not scale-free: most of these optima are above 0.01, and beside much
smaller ones any beta above 0 explores evenly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qrmax.agents.revising.empirical_rows import EmpiricalRowConfig, EmpiricalRows
from qrmax.errors import check_range
from qrmax.planning.arrays import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, slots=True)
class MBIEEBConfig(EmpiricalRowConfig):
    """Settings of MBIE-EB on the product and factored."""

    beta: float = 0.1  # scale of the exploration bonus

    def __post_init__(self) -> None:
        EmpiricalRowConfig.__post_init__(self)
        check_range("beta", self.beta, at_least=0.0, below=1e100)


class QRMBIEEB(EmpiricalRows):
    """MBIE-EB on the two factors: sees the machine's state, does not know the machine."""

    name = "qr-mbie-eb"
    Config = MBIEEBConfig
    told_the_machine = "qr-mbie-eb-rm"
    config: MBIEEBConfig

    def bonus(self, n: IntArray) -> FloatArray | float:
        """Beta / sqrt(n)."""
        found: FloatArray = float(self.config.beta) / np.sqrt(n)
        return found

    def radius(self, n: IntArray, listed: IntArray) -> FloatArray | float:  # noqa: ARG002
        """0: rows are taken for the truth."""
        return 0.0


class QRMBIEEBRM(QRMBIEEB):
    """MBIE-EB on the two factors that knows the machine."""

    name = "qr-mbie-eb-rm"
    knows_machine = True


class MBIEEB(QRMBIEEB):
    """MBIE-EB: sees the machine's state, does not know the machine, learns one large model."""

    name = "mbie-eb"
    factored = False
    joint = True
