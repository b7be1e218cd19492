"""QR-EFFECTS: a law of displacements shared by all states, and what is local."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.agents.base import Sizes
from qrmax.agents.experience import Experience
from qrmax.agents.revising.displacements import Displacements
from qrmax.agents.revising.effects import (
    EffectRule,
    Ground,
    Law,
    fill_rows_by_law,
    fit_law,
    make_law,
    widened,
)
from qrmax.agents.revising.qr_ucb import QRUCB, QRUCBConfig
from qrmax.agents.revising.replanning import next_due
from qrmax.agents.revising.revising_agent import NOT_COUNTED
from qrmax.errors import ModelError
from qrmax.planning.arrays import FloatArray, IntArray, Rows
from qrmax.seeding import Stream

FITS = 2  # steps of expectation maximisation at each timed replanning
FIRST = 10  # steps between the first timed replannings


class QREffects(QRUCB):
    """QR-EFFECTS: sees the machine's state, does not know the machine."""

    name = "qr-effects"
    told_the_machine = "qr-effects-rm"
    needs_coordinates = True

    def __init__(
        self,
        sizes: Sizes,
        config: QRUCBConfig,
        rng: Stream,
        experience: Experience,
        coordinates: FloatArray,
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        self.displacements = Displacements(coordinates)
        self.law = make_law(sizes.actions)
        self.paid_by_arrival = True
        self._marked = np.zeros(sizes.states, dtype=bool)
        self._lay_ground()

    def _lay_ground(self, edge: FloatArray | None = None) -> None:
        """Widen the arrays by displacement, and find the places of successors in the lists."""
        to = self.displacements.to
        self.law = widened(self.law, to.shape[1])
        wider = np.zeros(to.shape)
        if edge is not None:
            wider[:, : edge.shape[1]] = edge
        slot = np.full(to.shape, -1, dtype=np.int32)
        self.ground = Ground(to, slot, self.displacements.back, wider)
        for s in np.flatnonzero(self.seen.arrays.listed).tolist():
            self._place(s)

    def _place(self, s: int) -> None:
        """Find the places of the successors of s in its list."""
        listed = self.seen.arrays.outcome[s, : self.seen.arrays.listed[s]].tolist()
        for j, x in enumerate(self.ground.to[s].tolist()):
            self.ground.slot[s, j] = listed.index(x) if x in listed else -1

    def next_due(self, t: int) -> int:
        """More often at first."""
        return next_due(t, self.config.growth, max(FIRST, t // 10))

    @property
    def watched(self) -> int:
        """Whatever is new is news."""
        return 0

    def expect(self, s: int, x: int) -> None:
        """List the states that displacements lead to, once a state was stood in."""
        for state in (s, x):
            self._furnish(state)

    def _furnish(self, s: int) -> None:
        known = self.seen.arrays.outcome[s, : self.seen.arrays.listed[s]].tolist()
        for x in self.ground.to[s].tolist():
            if x >= 0 and x not in known:
                self.seen.expect(s, x)
                self.planner.list_successors(self.seen.arrays, s)
                self.counted[s] = NOT_COUNTED
        self._place(s)

    def retune(self) -> None:
        super().retune()
        seen = self.seen.arrays
        if self.displacements.share_common(seen):
            self._lay_ground(self.ground.edge)
            for s in np.flatnonzero(seen.listed).tolist():
                self._furnish(s)
        seen = self.seen.arrays
        self.paid_by_arrival = _paid_by_arrival(seen)
        for _ in range(FITS):
            self.law = fit_law(seen, self.ground, self.law, self.alpha)

    def estimate(self) -> int:
        fewer = self.threshold - self.config.t_min if self.paid_by_arrival else self.threshold
        squared = float(self.config.bonus_scale) ** 2
        rule = EffectRule(self.alpha, self.threshold, fewer, squared, False)
        return self._fill(rule, self.ground, self.counted, self.planner.rows)

    def fill_means(self, counted: IntArray, rows: Rows) -> None:
        counted[:] = NOT_COUNTED
        rule = EffectRule(self.alpha, 1, 1, 0.0, True)
        self._fill(rule, self.ground._replace(edge=self.ground.edge.copy()), counted, rows)
        rows.base[(rows.base == -np.inf).all(axis=1) & (rows.listed > 0)] = 0.0

    def _fill(self, rule: EffectRule, ground: Ground, counted: IntArray, rows: Rows) -> int:
        found: int = fill_rows_by_law(
            self.seen.arrays, ground, self.law, rule, counted, rows, self._marked, self._changed
        )
        return found


def _paid_by_arrival(seen: Any) -> bool:
    """Whether the rewards of the world depend on the state reached alone, as far as observed."""
    s, a, k = np.nonzero(seen.tau)
    mean = seen.rho[s, a, k] / seen.tau[s, a, k]
    if not mean.any():
        return True
    x = seen.outcome[s, k]
    lowest, highest = np.full(len(seen.n), np.inf), np.full(len(seen.n), -np.inf)
    np.minimum.at(lowest, x, mean)
    np.maximum.at(highest, x, mean)
    reached = lowest <= highest
    apart = highest[reached] - lowest[reached]
    return bool((apart <= 1e-9 * np.maximum(1e-300, np.abs(highest[reached]))).all())


class QREffectsRM(QREffects):
    """QR-EFFECTS that knows the machine."""

    name = "qr-effects-rm"
    knows_machine = True
