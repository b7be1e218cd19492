"""OPSRL (Tiapkin et al., 2022): the best of B models sampled from a posterior, optimistic prior.

    Q_h(x, a) = max_b  r_b(x, a) + sum_x' p_b(x' | x, a) V_h+1(x')     b = 1..B, clipped at v_h

    p_b(. | x, a) ~ Dirichlet(counts, prior)      one more successor, of value v_h
    r_b(x, a)     ~ as in PSRL

A state-action pair that was never tried leads to that successor with probability 1.

Assumes: sees the machine's state; does not know the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qrmax.agents.episodic.psrl import PSRL, PSRLConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class OPSRLConfig(PSRLConfig):
    """Settings of OPSRL."""

    newer: ClassVar[tuple[str, ...]] = ()

    samples: int = 8  # B, the models sampled at once


class OPSRL(PSRL):
    """OPSRL: several sampled models of the world, and optimism among them."""

    name = "opsrl"
    Config = OPSRLConfig
    config: OPSRLConfig

    told_the_machine: ClassVar[str | None] = None
    optimistic_prior = True
