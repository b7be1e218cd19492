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

Proved (for the product, and plans after every step): PAC with
beta = sqrt(ln(2 |X| |A| m / delta) / 2) / (1 - gamma), m of the order of a million. BETA_NOTE
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
