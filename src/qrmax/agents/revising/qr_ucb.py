"""QR-UCB: counts that go on, shrunk rows, and optimism by their variance, on the two factors.

    L(s)         the successors seen from s under any action, m = |L(s)|
    P(x | s, a)  = (tau + alpha / m) / (n + alpha)          alpha by marginal likelihood
    W(q, a, x)   = R(s, a, x) + R_Q(q, x) + gamma V(x, q')  v_max until (q, x) is known
    Q(s, q, a)   = E_P W + c sd_P(W) / sqrt(n)              n >= t_min(t)
                 = v_max                                    else

as long as the bonus takes no negative probabilities: it is the largest expectation in a chi-square
ball of radius c^2 / n around P (`planning/confidence_sets.py`), so that no value exceeds that of
the best successor, nor v_max. t_min(t) is one more each time that t doubles from `growth` on. The
policy recommended is greedy on P, without bonus, among the actions that were tried.

Assumes: what QR-Max does. Sees the machine's state; does not know the machine. `qr-ucb-rm` does.
Successors that were never seen from a state are not believed in, once an action is known.

Proved: the optimistic Bellman operator is a gamma-contraction, so that the plan is unique. As t_min
grows without end, every pair that the agent can reach for ever is sampled for ever, or is worth no
more than others even at v_max; counts that go on make its estimates consistent.

Only observed: that c = 3 and t_min = 3 suffice mostly. They were chosen on `random-office` and
`random-mdp`, seeds 0 to 69, one run of 50,000 steps each: `qr-ucb-rm` got within 5 % of the optimum
for good in all 140 (with c = 2 in all but one of 80, with c = 1 in all but three), and in 38 of 40
on seeds 70 to 89, which were not used to choose. Of these two, one has missed likely successors
(none of the six samples of a pair led there, and no other action of the state does: only the
growing threshold repairs that), and one stays 5 to 9 % below an optimum of 3e-7.

The bonus is for the chance of transitions, and for rewards as far as they depend on the state
reached; rewards that are random beyond that, and random machines, have means and no bonus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qrmax.agents.revising.revising_agent import RevisingAgent, RevisingConfig
from qrmax.agents.revising.transition_rows import estimate_rows
from qrmax.errors import check_choice, check_range

EMPIRICAL_BAYES, NO_SHRINKAGE = SHRINKAGE = ("empirical-bayes", "none")
"""The rules by which rows are shrunk."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QRUCBConfig(RevisingConfig):
    """Settings of QR-UCB and QR-UCB-RM."""

    newer: ClassVar[tuple[str, ...]] = (*RevisingConfig.newer, "shrinkage")

    bonus_scale: float = 3.0  # c
    shrinkage: str = EMPIRICAL_BAYES  # how alpha is found; none: rows are frequencies

    def __post_init__(self) -> None:
        RevisingConfig.__post_init__(self)
        check_choice("shrinkage", self.shrinkage, SHRINKAGE)
        check_range("bonus_scale", self.bonus_scale, at_least=0.0, below=1e100)


class QRUCB(RevisingAgent):
    """QR-UCB: sees the machine's state, does not know the machine."""

    name = "qr-ucb"
    Config = QRUCBConfig
    told_the_machine = "qr-ucb-rm"
    config: QRUCBConfig

    @property
    def shrinkage(self) -> float:
        """The strength of the shrinkage: alpha, or 0."""
        return 0.0 if self.config.shrinkage == NO_SHRINKAGE else self.alpha

    def estimate(self) -> int:
        """Posterior means, with a radius that shrinks with the visit count."""
        squared = float(self.config.bonus_scale) ** 2
        changed: int = estimate_rows(
            self.seen.arrays,
            self.shrinkage,
            self.threshold,
            squared,
            self.counted,
            self.planner.rows,
            self._changed,
        )
        return changed


class QRUCBRM(QRUCB):
    """QR-UCB that knows the machine."""

    name = "qr-ucb-rm"
    knows_machine = True
