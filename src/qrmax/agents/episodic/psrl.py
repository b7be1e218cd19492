"""PSRL (Osband, Russo and Van Roy, 2013): plan each episode with a sampled model.

    Q_h(x, a) = max_b  r_b(x, a) + sum_x' p_b(x' | x, a) V_h+1(x')     b = 1..B, clipped at v_h

    p_b(. | x, a) ~ Dirichlet(counts + prior / |X|)
    r_b(x, a)     ~ r_min + r_span Beta(1 + successes, 1 + failures)

The paper has B = 1 (`samples`); of several models the best is assumed. Rewards are binarized: r
counts as a success with probability (r - r_min) / r_span, else as a failure. The probability of
successors that were never seen is drawn for all of them together and spread evenly, so that
together they have their mean value.

Assumes: sees the machine's state; does not know the machine. `psrl-rm` does, and counts by (s, a).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qrmax.agents.base import Sizes
from qrmax.agents.episodic import beliefs
from qrmax.agents.episodic.episodic_agent import FiniteHorizonConfig
from qrmax.agents.episodic.finite_horizon_agent import FiniteHorizon
from qrmax.agents.experience import Experience
from qrmax.errors import check_count, check_range
from qrmax.seeding import Stream


@dataclass(frozen=True, kw_only=True, slots=True)
class PSRLConfig(FiniteHorizonConfig):
    """Settings of PSRL."""

    newer: ClassVar[tuple[str, ...]] = ("samples",)

    prior: float = 1.0  # pseudo-counts of all successors together
    samples: int = 1  # B, the models sampled at once

    def __post_init__(self) -> None:
        FiniteHorizonConfig.__post_init__(self)
        check_range("prior", self.prior, at_least=1e-6, below=1e100)
        check_count("samples", self.samples)


class PSRL(FiniteHorizon):
    """PSRL: one model of the world, sampled anew for every episode."""

    name = "psrl"
    Config = PSRLConfig
    config: PSRLConfig

    told_the_machine: ClassVar[str | None] = "psrl-rm"
    optimistic_prior = False
    binarize_rewards = True

    def __init__(
        self, sizes: Sizes, config: PSRLConfig, rng: Stream, experience: Experience
    ) -> None:
        self.models = config.samples
        super().__init__(sizes, config, rng, experience)
        self.prior = beliefs.Prior(
            float(config.prior),  # compiled code takes no integer as large as 10**30
            self.optimistic_prior,
            float(config.r_min),
            float(config.r_span),
            self.models,
        )

    def believe(self) -> None:
        """Sample models from the posterior."""
        self.plan.draw(self.seen.arrays, self.prior, np.uint64(self.rng.random() * 2**53))


class PSRLRM(PSRL):
    """PSRL that knows the machine, and shares samples among its states."""

    name = "psrl-rm"
    knows_machine = True
    factored = True
