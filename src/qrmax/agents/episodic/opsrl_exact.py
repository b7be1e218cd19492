"""OPSRL (Tiapkin et al., 2022) with the posterior of its paper, and a choice of prior.

    Q_h(x, a) = max_b  r_b(x, a) + sum_y p_b(y | x, a) V_h+1(y)        b = 1..B, `samples`

    p_b(. | x, a) ~ Dirichlet(counts, prior)            `transition_prior` "optimistic":
                                                        one more successor, of value v_h+1
               or ~ Dirichlet(counts + prior / |X|)     "uniform": as in `psrl-exact`
    r_b(x, a)     ~ as in `psrl-exact`

where v_h is the largest return of the stages from h on: a step to the extra successor has a sampled
reward, and is followed by the best of everything. (In `opsrl` that successor has the value v_h, and
a state-action pair that was never tried has no sampled reward, but the value v_h.)

The paper's rewards are known, and its transitions depend on the stage; here rewards are sampled,
too, as in its authors' experiments, and one sample serves at all stages.

Assumes: sees the machine's state; does not know the machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from qrmax.agents.base import Sizes
from qrmax.agents.episodic.psrl_exact import PSRLExactConfig, exact_posterior
from qrmax.agents.episodic.sampling_agent import SamplingAgent
from qrmax.agents.experience import Experience
from qrmax.errors import check_choice
from qrmax.seeding import Stream

TRANSITION_PRIORS = ("optimistic", "uniform")


@dataclass(frozen=True, kw_only=True, slots=True)
class OPSRLExactConfig(PSRLExactConfig):
    """Settings of OPSRL with the posterior of its paper."""

    samples: int = 8  # B, the models sampled at once
    transition_prior: str = "optimistic"  # or "uniform"

    def __post_init__(self) -> None:
        PSRLExactConfig.__post_init__(self)
        check_choice("transition_prior", self.transition_prior, TRANSITION_PRIORS)


class OPSRLExact(SamplingAgent):
    """OPSRL with the optimistic or the uniform prior of its paper."""

    name = "opsrl-exact"
    Config = OPSRLExactConfig
    config: OPSRLExactConfig

    def __init__(
        self, sizes: Sizes, config: OPSRLExactConfig, rng: Stream, experience: Experience
    ) -> None:
        posterior = exact_posterior(config, optimistic=config.transition_prior == "optimistic")
        super().__init__(sizes, config, rng, experience, posterior)
