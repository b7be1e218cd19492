"""PSRL (Osband, Russo and Van Roy, 2013) with the exact posterior over all states.

    Q_h(x, a) = max_b  r_b(x, a) + sum_y p_b(y | x, a) V_h+1(y)         b = 1..B, not clipped

    p_b(. | x, a) ~ Dirichlet(counts + prior / |X|)                     every y has its own draw
    r_b(x, a)     ~ r_min + r_span Beta(1 + successes, 1 + failures)    `reward_posterior` "beta"
               or ~ r_min + r_span N(sum / (1 + n), 1 / (1 + n))        "gaussian"

The paper has B = 1 draw (`samples`). With "beta", rewards are binarized as in `psrl`. With
"gaussian" they are summed up, as shares of r_span above r_min, their noise is taken to have the
variance 1 and their mean the prior N(0, 1), in the same unit: samples may be out of range.

In `psrl`, successors that were never seen have one draw together, spread evenly: their mean value
has the right expectation and too small a variance, so that `psrl` explores less than this agent.

Assumes: sees the machine's state; does not know the machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from qrmax.agents.base import Sizes
from qrmax.agents.episodic.episodic_agent import FiniteHorizonConfig
from qrmax.agents.episodic.model_sampling import Posterior
from qrmax.agents.episodic.sampling_agent import SamplingAgent
from qrmax.agents.experience import Experience
from qrmax.errors import check_choice, check_count, check_range
from qrmax.seeding import Stream

REWARD_POSTERIORS = ("beta", "gaussian")


@dataclass(frozen=True, kw_only=True, slots=True)
class PSRLExactConfig(FiniteHorizonConfig):
    """Settings of PSRL with the exact posterior."""

    prior: float = 1.0  # pseudo-counts of all successors together
    samples: int = 1  # B, the models sampled at once
    reward_posterior: str = "beta"  # or "gaussian"

    def __post_init__(self) -> None:
        FiniteHorizonConfig.__post_init__(self)
        check_range("prior", self.prior, at_least=1e-6, below=1e100)
        check_count("samples", self.samples)
        check_choice("reward_posterior", self.reward_posterior, REWARD_POSTERIORS)


class PSRLExact(SamplingAgent):
    """PSRL whose posterior is over all states, sampled anew for every episode."""

    name = "psrl-exact"
    Config = PSRLExactConfig
    config: PSRLExactConfig

    def __init__(
        self, sizes: Sizes, config: PSRLExactConfig, rng: Stream, experience: Experience
    ) -> None:
        super().__init__(sizes, config, rng, experience, exact_posterior(config))


def exact_posterior(config: PSRLExactConfig, *, optimistic: bool = False) -> Posterior:
    """The posterior that the settings describe."""
    return Posterior(
        strength=float(config.prior),  # compiled code takes no integer as large as 10**30
        optimistic=optimistic,
        gaussian=config.reward_posterior == "gaussian",
        lowest=float(config.r_min),
        span=float(config.r_span),
        draws=config.samples,
    )
