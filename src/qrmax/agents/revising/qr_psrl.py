"""QR-PSRL: posterior sampling of transition rows, discounted, on the two factors.

    L(s)         the successors seen from s under any action, m = |L(s)|
    P(. | s, a)  ~ Dirichlet(tau + alpha / m) on L(s)       alpha by marginal likelihood
    Q(s, q, a)   = E_P [R(s, a, x) + R_Q(q, x) + gamma V(x, q')]        n >= t_min(t)
                 = v_max                                                else

All rows are sampled again every `redraw` steps; in between, a row is sampled again only if its pair
has become known, has twice as many samples or a new successor, or if the list of s has grown.
t_min(t) is one more each time that t doubles from `growth` on. The policy recommended is greedy on
the posterior means, among the actions that were tried.

Assumes: what QR-Max does. Sees the machine's state; does not know the machine. `qr-psrl-rm` does.
Successors that were never seen from a state are not believed in, once an action is known, so that
nothing depends on the scale of rewards (a prior over all states would).

Proved: nothing beyond the consistency of counts that go on; the regret bounds of PSRL are for
episodes of a fixed horizon and a prior that is true. Only observed: that t_min = 5 suffices; with
2, first samples mislead it for long.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qrmax.agents.revising.replanning import next_due
from qrmax.agents.revising.revising_agent import RevisingAgent, RevisingConfig
from qrmax.agents.revising.transition_rows import draw_rows
from qrmax.errors import check_count


@dataclass(frozen=True, kw_only=True, slots=True)
class QRPSRLConfig(RevisingConfig):
    """Settings of QR-PSRL and QR-PSRL-RM."""

    t_min: int = 5  # samples before a state-action pair counts as known, at first
    redraw: int = 500  # steps after which all rows are sampled again

    def __post_init__(self) -> None:
        RevisingConfig.__post_init__(self)
        check_count("redraw", self.redraw)


class QRPSRL(RevisingAgent):
    """QR-PSRL: sees the machine's state, does not know the machine."""

    name = "qr-psrl"
    Config = QRPSRLConfig
    told_the_machine = "qr-psrl-rm"
    config: QRPSRLConfig

    def next_due(self, t: int) -> int:
        """The time at which all rows are sampled again."""
        return next_due(t, self.config.growth, self.config.redraw)

    def estimate(self) -> int:
        """Sample the rows that are due."""
        state = np.uint64(self.rng.random() * 2**53)
        with np.errstate(over="ignore"):  # integer overflow is part of the generator
            changed: int = draw_rows(
                self.seen.arrays,
                self.alpha,
                self.threshold,
                state,
                self.counted,
                self.planner.rows,
                self._changed,
            )
        return changed


class QRPSRLRM(QRPSRL):
    """QR-PSRL that knows the machine."""

    name = "qr-psrl-rm"
    knows_machine = True
