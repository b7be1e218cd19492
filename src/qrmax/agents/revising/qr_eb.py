"""QR-EB: QR-UCB with an actuator prior, believed as far as the data say.

"An action may act like another one": what a slip does is what another action would have done, with
the same probabilities everywhere (`actuators.py`). Rows are mixtures of the free row of QR-UCB, of
one near the structured row p_K, and of p_K, with weights w0, w1, w2 by Bayes factors:

    P(. | s, a)  = w0 (tau + alpha / m) / (n + alpha) + w1 (tau + near) / (n + beta) + w2 p_K
    radius       = c^2 (w0 / n + w1 / (n + beta) + w2 min(1, 1 - max_x pm(s, a, x) + 1 / (n + 200)))

and all else is QR-UCB's. So one sample of a nominal successor is nearly enough where the structure
holds. A pair with fewer than 4 samples stays unknown while all of them look like slips:
pu(s, a) (1 - w0) > 0.1.

Assumes: what QR-Max does; that actuators are alike everywhere is not assumed, but learned: where it
does not hold, w0 is near 1, and the agent is QR-UCB. Sees the machine's state; does not know the
machine. `qr-eb-rm` does.

Proved: no more than of QR-UCB, whose operator this has with other radii. Rows use their own samples
twice, for the structure and for the weights, so that the radius is no confidence statement. Only
observed: that fewer samples are needed on maps with slips, and not more elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.agents.base import Sizes
from qrmax.agents.experience import Experience
from qrmax.agents.revising.actuators import (
    Actuators,
    RowRule,
    fill_rows,
    fit_actuators,
    make_actuators,
)
from qrmax.agents.revising.qr_ucb import QRUCB, QRUCBConfig
from qrmax.errors import ModelError
from qrmax.planning.arrays import IntArray, Rows
from qrmax.seeding import Stream

FITS = 3  # steps of expectation maximisation at each timed replanning
ROUNDING = 1e-9


class QREB(QRUCB):
    """QR-EB: sees the machine's state, does not know the machine."""

    name = "qr-eb"
    told_the_machine = "qr-eb-rm"

    def __init__(
        self, sizes: Sizes, config: QRUCBConfig, rng: Stream, experience: Experience
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        self.actuators = make_actuators(sizes.actions)

    def retune(self) -> None:
        """Fit alpha, K, kappa and the weights of the three kinds of rows."""
        super().retune()
        for _ in range(FITS):
            fitted = Actuators(*(np.empty_like(part) for part in self.actuators))
            fit_actuators(self.seen.arrays, self.alpha, self.actuators, fitted)
            self.actuators = fitted

    def estimate(self) -> int:
        """Mixtures of free and structured rows, with their radii."""
        squared = float(self.config.bonus_scale) ** 2
        return self._fill(
            RowRule(self.alpha, self.shrinkage, self.threshold, squared, True),
            self.counted,
            self.planner.rows,
        )

    def fill_means(self, counted: IntArray, rows: Rows) -> None:
        """The same rows of all pairs that were tried, without radii."""
        self._fill(RowRule(self.alpha, self.shrinkage, 1, 0.0, False), counted, rows)

    def _fill(self, rule: RowRule, counted: IntArray, rows: Rows) -> int:
        changed: int = fill_rows(
            self.seen.arrays, self.actuators, rule, counted, rows, self._changed
        )
        return changed

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Those of QR-UCB, and the actuators."""
        fitted = self.actuators._asdict().items()
        return super().snapshot() | {f"actuators.{name}": array.copy() for name, array in fitted}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over counts, rows, plan, clock and actuators."""
        actuators = Actuators(*(arrays[f"actuators.{name}"].copy() for name in Actuators._fields))
        for name, new, old in zip(Actuators._fields, actuators, self.actuators, strict=True):
            if new.shape != old.shape or not ((new > 0.0) & (new <= 1.0)).all():
                raise ModelError(f"actuators.{name}: not {old.shape} numbers in (0, 1]")
        for name, sums in (
            ("matrix", actuators.matrix.sum(axis=1)),
            ("weight", actuators.weight.sum()),
        ):
            if not (np.abs(sums - 1.0) <= ROUNDING).all():
                raise ModelError(f"actuators.{name}: not a distribution")
        super().restore(arrays)
        self.actuators = actuators


class QREBRM(QREB):
    """QR-EB that knows the machine."""

    name = "qr-eb-rm"
    knows_machine = True
