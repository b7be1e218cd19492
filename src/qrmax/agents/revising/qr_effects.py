"""QR-EFFECTS: QR-UCB with a law of displacements, the same for all states that have coordinates.

The world is factored once more: into a law of displacements that all states share, and what is
local. Where the law is believed, its row is known before the pair was ever tried:

    P(. | s, a)  = w (tau + beta p) / (n + beta) + (1 - w) (tau + alpha / m) / (n + alpha)
    radius       = c^2 (w (1 / (n + beta) + 1 / (N_a + 1)) + (1 - w) / max(n, 1))

with p the row by law, N_a the samples of the action that it was fitted to, and w the posterior
weight of the law for this row (`effects.py`). Local are what is open or shut, the labels and ends
of states, and every row as far as it is free:

    explored with     d_b*, the nominal displacement of a, counts as open until that is less likely
                      than 1 in 100; other displacements as they are believed
    recommended by    d_b* counts as shut unless it was crossed, one way or the other
    never stood in    a state is worth v_max: its labels and ends are learned by standing there
    known             (s, a) if n >= t_min(t), or if w >= 1/2 and n >= t_min(t) - t_min, that is,
                      at first without a sample; t_min(t) grows as QR-UCB's does

An action has a law once it has three samples, and has moved something. Rows by law need as many
samples as free ones where the rewards of the world do not depend on the state reached alone.
Estimates of the law are timed: after every tenth more steps. All else is QR-UCB's.

Assumes, beyond QR-Max: coordinates. That displacements follow one law is not assumed but tested,
row by row: where it does not hold, w is near 0, and rows are those of QR-UCB. Assumed is that what
the law predicts of a pair that was never tried may be believed as far as the tried pairs of the
same state, and of the world, bear it out. So exceptions that cannot be seen from tried pairs, such
as a shortcut where a wall should be, are found late: when t_min(t) grows, at `growth` steps first.
Sees the machine's state; does not know the machine. `qr-effects-rm` does.

Kin: relocatable action models (Leffler, Littman and Edmunds, AAAI 2007), whose types of states are
given; here there are two for each action, open and shut, and they are inferred.

Proved: no more than of QR-UCB, whose operator this has with other rows and radii; as t_min(t) grows
without end, every pair that the agent can reach for ever is sampled for ever or worth no more than
others. Rows use their own samples for the law, for what is open, and for the weights.

Only observed, with c = 3, t_min = 3 and `growth` = 10,000 as in QR-UCB, which were not chosen anew;
steps to 5 % for good in 20,000 (`qrmax-rm`: 50,000), one run for each seed, checks every 100 steps
(250), median and most:

    problems                            qr-effects-rm    qr-eb-rm     qr-ucb-rm      qrmax-rm
    random-office/0-19                    600   9,300   1,500 18,100  2,700 1 fails  27,000 4 fail
    0-27, 15 x 15 cells, slip 0.2       1,100   1,900
    0-9, slips that differ by cell        500   1,600                 2,700   5,900
    0-9, 20 % of edges one way only     1,300   4,400                 4,200 1 fails
    0-9, actions permuted, 10 % of cells  600  10,100                 1,400 1 fails
    0-9, one teleport in 10 % of cells  1,100  10,300                 2,400  13,200
    0-9, actions permuted in all cells  2,000 1 fails                 1,700   6,200

The latest run of the first line is on slips that differ by cell, where nearly equal routes are told
apart by each cell's own samples (seed 18; 12,000 steps with `qr-ucb-rm`). Three runs with teleports
end at 10,100 to 10,300 steps, when t_min(t) first grows: in each, the optimal policy takes a
teleport that was never tried (seeds 4, 7, 9). Seed 1 with permuted actions, late in 10 % of the
cells and failing in all, stays some per cent below an optimum that takes many steps, by samples
that are too few; `qr-ucb-rm` fails or is late on it, too.

On a first look at the Office problems, three seeds each, `office/map1/exp5` took 500, 700 and 800
steps, and `office/map3/exp5` 3,400, 7,400 and 10,900.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.agents.base import Sizes
from qrmax.agents.experience import Experience
from qrmax.agents.revising.displacements import Displacements
from qrmax.agents.revising.effects import (
    BETAS,
    CROSSED,
    MOST_EVIDENCE,
    EffectRule,
    Ground,
    Law,
    fill_rows_by_law,
    fit_law,
    make_law,
    widened,
)
from qrmax.agents.revising.qr_eb import ROUNDING
from qrmax.agents.revising.qr_ucb import QRUCB, QRUCBConfig
from qrmax.agents.revising.replanning import next_due
from qrmax.agents.revising.revising_agent import NOT_COUNTED
from qrmax.empirical.successors import Seen
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
        self.coordinates = coordinates
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
        """Every new successor is news."""
        return 0

    def expect(self, s: int, x: int) -> None:
        """List the states that displacements lead to, once a state was stood in."""
        for state in (s, x):
            self._furnish(state)

    def _furnish(self, s: int) -> None:
        """List the states that displacements lead to from s."""
        known = self.seen.arrays.outcome[s, : self.seen.arrays.listed[s]].tolist()
        for x in self.ground.to[s].tolist():
            if x >= 0 and x not in known:
                self.seen.expect(s, x)
                self.planner.list_successors(self.seen.arrays, s)
                self.counted[s] = NOT_COUNTED
        self._place(s)

    def retune(self) -> None:
        """Fit alpha; share displacements that have become common, and fit the law."""
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
        """Mixtures of rows by law and of free rows, with their radii."""
        fewer = self.threshold - self.config.t_min if self.paid_by_arrival else self.threshold
        squared = float(self.config.bonus_scale) ** 2
        rule = EffectRule(self.alpha, self.shrinkage, self.threshold, fewer, squared, False)
        return self._fill(rule, self.ground, self.counted, self.planner.rows)

    def fill_means(self, counted: IntArray, rows: Rows) -> None:
        """The same rows without radii, of pairs that were tried or whose law is believed."""
        counted[:] = NOT_COUNTED
        rule = EffectRule(self.alpha, self.shrinkage, 1, 1, 0.0, True)
        self._fill(rule, self.ground._replace(edge=self.ground.edge.copy()), counted, rows)
        rows.base[(rows.base == -np.inf).all(axis=1) & (rows.listed > 0)] = 0.0

    def _fill(self, rule: EffectRule, ground: Ground, counted: IntArray, rows: Rows) -> int:
        found: int = fill_rows_by_law(
            self.seen.arrays, ground, self.law, rule, counted, rows, self._marked, self._changed
        )
        return found

    # --- saving

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Those of QR-UCB, and the law, displacements and edges."""
        effects = {
            **self.law._asdict(),
            "edge": self.ground.edge,
            "displacements": self.displacements.examples,
            "paid_by_arrival": np.array([self.paid_by_arrival]),
        }
        return super().snapshot() | {f"effects.{name}": x.copy() for name, x in effects.items()}

    def make_room_for(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Grow as QR-UCB does, and to the displacements of a snapshot."""
        super().make_room_for(arrays)
        self.displacements = Displacements(self.coordinates)
        self.displacements.restore(arrays["effects.displacements"])
        self._lay_ground()

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over counts, rows, plan, clock, law, displacements and edges."""
        law = Law(*(arrays[f"effects.{name}"].copy() for name in Law._fields))
        edge = arrays["effects.edge"]
        displacements = Displacements(self.coordinates)
        displacements.restore(arrays["effects.displacements"])
        _check_law(law, (2, self.sizes.actions, len(displacements)))
        if edge.shape != displacements.to.shape:
            raise ModelError(f"effects.edge: not {displacements.to.shape} numbers")
        crossed = edge == CROSSED
        if not (crossed | (np.abs(edge) <= MOST_EVIDENCE)).all():
            raise ModelError("effects.edge: not evidence")
        super().restore(arrays)
        self.displacements, self.law = displacements, law
        self.paid_by_arrival = bool(arrays["effects.paid_by_arrival"][0])
        self._lay_ground(edge)
        times = self.seen.arrays.tau.sum(axis=1)
        s, j = np.nonzero(crossed)
        slot = self.ground.slot[s, j]
        if (slot < 0).any() or (times[s, slot] == 0).any():
            raise ModelError("effects.edge: crossed, but never observed")


def _check_law(law: Law, shape: tuple[int, int, int]) -> None:
    """Raise a `ModelError` unless these are the parameters of a law."""
    shapes = (shape, shape[:2], (3,), (1,), (1,))
    for name, array, fitting in zip(Law._fields, law, shapes, strict=True):
        if array.shape != fitting or not np.isfinite(array).all() or (array < 0.0).any():
            raise ModelError(f"effects.{name}: not {fitting} numbers of 0 or more")
    if not (np.abs(law.share.sum(axis=2) - 1.0) <= ROUNDING).all():
        raise ModelError("effects.share: not distributions")
    for name, array in (("reversal", law.reversal), ("trust", law.trust)):
        if not ((array > 0.0) & (array < 1.0)).all():
            raise ModelError(f"effects.{name}: not in (0, 1)")
    if law.beta[0] not in BETAS:
        raise ModelError(f"effects.beta is {law.beta[0]}; allowed: {BETAS.tolist()}")


def _paid_by_arrival(seen: Seen) -> bool:
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
