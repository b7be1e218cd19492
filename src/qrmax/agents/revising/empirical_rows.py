"""Agents with confidence sets around empirical transition rows: no prior, no growing threshold.

    P(x | s, a)  = tau(s, a, x) / n(s, a)      n >= t_min; s and a as seen, or s a pair (s, q)
    R(s, a, x)   the mean reward of the transition

A subclass says how far a row is trusted: by a bonus that is added to its value, or by the radius of
a ball (`planning/confidence_sets.py`). Both depend on the visit count, and are renewed with the
row: on news and by the clock of `revising_agent.py`, where the papers plan after every step.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qrmax.agents.revising.revising_agent import RevisingAgent, RowConfig
from qrmax.agents.revising.transition_rows import estimate_rows
from qrmax.errors import check_choice, check_range
from qrmax.planning.arrays import FloatArray, IntArray

SEEN, ALL = SUPPORTS = ("seen", "all")
"""The successors that mass may move to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EmpiricalRowConfig(RowConfig):
    """Settings of the agents with empirical rows."""

    t_min: int = 5  # samples before a state-action pair counts as known


@dataclass(frozen=True, kw_only=True, slots=True)
class RadiusConfig(EmpiricalRowConfig):
    """Settings of the agents with a set of distributions around each row."""

    radius_scale: float = 0.5  # c
    delta: float = 0.05  # the probability that a row is not in its set
    support: str = SEEN  # where mass may move: to successors that were seen, or to all states

    def __post_init__(self) -> None:
        EmpiricalRowConfig.__post_init__(self)
        check_range("radius_scale", self.radius_scale, at_least=0.0, below=1e100)
        check_range("delta", self.delta, above=0.0, below=1.0)
        check_choice("support", self.support, SUPPORTS)


class EmpiricalRows(RevisingAgent):
    """An agent that plans with empirical rows, and trusts them as far as a subclass says."""

    Config = EmpiricalRowConfig
    config: EmpiricalRowConfig
    beside_loop: ClassVar[tuple[str, ...]] = ("bonus", "radius", "ball")
    alphas: ClassVar[FloatArray] = np.zeros(1)
    first_alpha: ClassVar[float] = 0.0

    def retune(self) -> None:
        """Nothing: rows are estimated again once their counts are others."""

    def estimate(self) -> int:
        """Empirical rows, with the bonus and the radius of their visit counts."""
        seen, rows = self.seen.arrays, self.planner.rows
        changed: int = estimate_rows(
            seen, 0.0, self.threshold, 0.0, self.counted, rows, self._changed
        )
        states = self._changed[:changed]
        known = seen.n[states] >= self.threshold
        n = np.maximum(seen.n[states], 1)
        rows.base[states] = np.where(known, self.bonus(n), np.inf)
        rows.radius[states] = np.where(known, self.radius(n, seen.listed[states, None]), 0.0)
        return changed

    @abstractmethod
    def bonus(self, n: IntArray) -> FloatArray | float:
        """The exploration bonus of rows with n samples."""

    @abstractmethod
    def radius(self, n: IntArray, listed: IntArray) -> FloatArray | float:
        """The radius of the ball around rows with n samples and so many listed successors."""
