"""MBIE (Strehl and Littman, 2008): the best model in an L1 ball around each empirical row.

    Q(x, a)    = max { sum_x' p(x') (R(x, a, x') + gamma V(x')) :  |p - P(. | x, a)|_1 <= eps }
    eps(x, a)  = c sqrt(2 (ln(2^m - 2) - ln delta) / n(x, a))
    Q(x, a)    = v_max while n < t_min

The maximum moves eps / 2 of the probability from the worst successors to the best one
(`planning/confidence_sets.py`). Two settings say what the paper leaves out or decides otherwise:

    support = "all"     the paper's: p is a distribution on all m = |X| states; a successor that was
                        never seen is worth v_max
    support = "seen"    on the m successors that were seen from x under any action
    c                   `radius_scale`, 1 in the paper; t_min is 1 there

The policy recommended is greedy on the empirical model, among the actions that were tried.

    mbie         x = (s, q): the product, as R-Max learns it
    qr-mbie      x = s: the two factors; P and n serve in every machine state
    qr-mbie-rm   the same, and the machine is given

Assumes: what R-Max does and, factored, what QR-Max does. Sees the machine's state; only the last
one knows the machine. The paper has an interval for mean rewards as well; here they are by
successor, so that what is random in them is the transition, and no bonus is added.

Proved (for the product, support "all", c and t_min 1, and plans after every step): PAC. With 100
states and delta 0.05, eps is 0.12 after 10,000 samples of one pair: 6 % of the probability may then
go to a state worth v_max, so that values much below that are never told apart.
The operator is a gamma-contraction with either support. With "seen", nothing depends on the scale
of rewards; but as P is 0 or 1 at first, t_min 1 takes first samples for the truth.

Only observed, on `random-office` and `random-mdp`, one run each: runs that got within 5 % of the
optimum for good, of 16 (seeds 0 to 7, 30,000 steps) and of 20 (seeds 20 to 29, 50,000 steps):

    qr-mbie-rm    c 0.5, t_min 1    12           c 0.1, t_min 5    16
                  c 0.5, t_min 3    16 and 20    c 0.25, t_min 3   18 of 20
                  c 0.5, t_min 5    16 and 20    c 0.25, t_min 5   16 and 20
                  c 1, t_min 5      16 and 20    "all", c 0.1, t_min 1     16
                  "all", c 1, t_min 1 (the paper's)  15 and 20, later
    qr-mbie       c 0.5, t_min 5    20 of 20
    mbie          c 0.5, t_min 3    19 of 20     c 0.25, t_min 5   20 of 20
                  c 0.5, t_min 5    20 of 20     "all", c 1, t_min 1       12 of 20

`qr-ucb-rm` has 16 and 20 there: on these problems, the two do not differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qrmax.agents.revising.empirical_rows import SEEN, EmpiricalRows, RadiusConfig
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.planning.confidence_sets import L1, L1_ANYWHERE


@dataclass(frozen=True, kw_only=True, slots=True)
class MBIEConfig(RadiusConfig):
    """Settings of MBIE on the product and factored."""


class QRMBIE(EmpiricalRows):
    """MBIE on the two factors: sees the machine's state, does not know the machine."""

    name = "qr-mbie"
    Config = MBIEConfig
    told_the_machine = "qr-mbie-rm"
    config: MBIEConfig

    @property
    def ball(self) -> int:
        """An L1 ball on the support."""
        return L1 if self.config.support == SEEN else L1_ANYWHERE

    def bonus(self, n: IntArray) -> FloatArray | float:  # noqa: ARG002
        """0: optimism is in the rows."""
        return 0.0

    def radius(self, n: IntArray, listed: IntArray) -> FloatArray | float:
        """The radius eps of rows with n samples."""
        config = self.config
        m = listed if config.support == SEEN else np.array([self.model_sizes.states])
        return float(config.radius_scale) * l1_radius(n, m, float(config.delta))


class QRMBIERM(QRMBIE):
    """MBIE on the two factors that knows the machine."""

    name = "qr-mbie-rm"
    knows_machine = True


class MBIE(QRMBIE):
    """MBIE: sees the machine's state, does not know the machine, learns one large model."""

    name = "mbie"
    factored = False
    joint = True


def l1_radius(n: IntArray, m: IntArray, delta: float) -> FloatArray:
    """sqrt(2 (ln(2^m - 2) - ln delta) / n): of n samples with m outcomes (Weissman et al., 2003).

    0 for a single outcome, of which there is nothing to be uncertain about.

    >>> l1_radius(np.array([100]), np.array([1, 2, 4]), 0.05).round(3)
    array([0.   , 0.272, 0.336])
    """
    found: FloatArray = np.sqrt(np.maximum(2.0 * (log_subsets(m) - math.log(delta)) / n, 0.0))
    return found


def log_subsets(m: IntArray) -> FloatArray:
    """ln(2^m - 2), of the subsets of m outcomes but for the empty and the whole set."""
    with np.errstate(divide="ignore"):  # minus infinity for a single outcome
        rest = np.log1p(-(2.0 ** (1.0 - np.maximum(m, 1))))
    return np.asarray(m * math.log(2.0) + rest, dtype=np.float64)
