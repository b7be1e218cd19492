"""UCBVI (Azar, Osband and Munos, 2017): the empirical model plus an exploration bonus.

    Q_h(x, a) = r(x, a) + sum_x' p(x' | x, a) V_h+1(x') + min(bonus, v_h)     clipped at v_h

    ucbvi-sb    c / sqrt(n) + v_h / n                simplified Bernstein
    ucbvi-b     c (sqrt(Var V_h+1 / n) + v_h / n)    Bernstein
    ucbvi-h     c v_h / (2 sqrt(n))                  Hoeffding

where n is the visit count, r and p are means, v_h is the largest return of the rest of the episode,
and Var is under p. A state-action pair that was never tried has the value v_h. The bonus is renewed
at all stages before every episode, not only at those visited. (With gamma below 1, or the machine
known, the variance is that of what is averaged: gamma V_h+1, and the machine's reward.)

Assumes: sees the machine's state; does not know the machine. `ucbvi-b-rm` does; counts by (s, a).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from qrmax.agents.base import Sizes
from qrmax.agents.episodic import beliefs
from qrmax.agents.episodic.episodic_agent import FiniteHorizonConfig
from qrmax.agents.episodic.finite_horizon_agent import FiniteHorizon
from qrmax.agents.experience import Experience
from qrmax.errors import check_range
from qrmax.planning.arrays import FloatArray
from qrmax.seeding import Stream


@dataclass(frozen=True, kw_only=True, slots=True)
class UCBVIConfig(FiniteHorizonConfig):
    """Settings of UCBVI."""

    bonus_scale: float = 1.0  # c

    def __post_init__(self) -> None:
        FiniteHorizonConfig.__post_init__(self)
        check_range("bonus_scale", self.bonus_scale, at_least=0.0, below=1e100)


class UCBVI(FiniteHorizon):
    """UCBVI with any bonus."""

    Config = UCBVIConfig
    config: UCBVIConfig

    def __init__(
        self, sizes: Sizes, config: UCBVIConfig, rng: Stream, experience: Experience
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        self._bonus = self._bonus_up_to(1024)

    def believe(self) -> None:
        """The empirical model plus a bonus that shrinks with the visit count."""
        seen, worth = self.seen.arrays, beliefs.Worth(0.0, 1.0, np.inf)
        while not self.plan.estimate(seen, worth, self._bonus):
            self._bonus = self._bonus_up_to(2 * len(self._bonus.flat))

    @abstractmethod
    def bonus(self, n: FloatArray, c: float) -> tuple[ArrayLike, ArrayLike, ArrayLike]:
        """Flat, slope and spread: the bonus is flat + slope v_h + spread sqrt(Var V_h+1)."""

    def _bonus_up_to(self, limit: int) -> beliefs.Bonus:
        """The bonus for every visit count below a limit; none for 0, whose value is v_h anyway."""
        n = np.arange(1.0, limit)
        parts = self.bonus(n, self.config.bonus_scale)
        return beliefs.Bonus(*(np.r_[0.0, np.broadcast_to(part, n.shape)] for part in parts))


class UCBVISB(UCBVI):
    """UCBVI with the simplified Bernstein bonus."""

    name = "ucbvi-sb"

    def bonus(self, n: FloatArray, c: float) -> tuple[ArrayLike, ArrayLike, ArrayLike]:
        """C / sqrt(n) + v_h / n."""
        return c / np.sqrt(n), 1.0 / n, 0.0


class UCBVIB(UCBVI):
    """UCBVI with the Bernstein bonus."""

    name = "ucbvi-b"
    told_the_machine = "ucbvi-b-rm"

    def bonus(self, n: FloatArray, c: float) -> tuple[ArrayLike, ArrayLike, ArrayLike]:
        """C (sqrt(Var / n) + v_h / n)."""
        return 0.0, c / n, c / np.sqrt(n)


class UCBVIH(UCBVI):
    """UCBVI with the Hoeffding bonus."""

    name = "ucbvi-h"

    def bonus(self, n: FloatArray, c: float) -> tuple[ArrayLike, ArrayLike, ArrayLike]:
        """C v_h / (2 sqrt(n))."""
        return 0.0, c / (2.0 * np.sqrt(n)), 0.0


class UCBVIBRM(UCBVIB):
    """UCBVI-B that knows the machine, and shares samples among its states."""

    name = "ucbvi-b-rm"
    knows_machine = True
    factored = True
