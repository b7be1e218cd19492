"""Agents that plan each episode with models sampled exactly from a posterior.

The models are those of `model_sampling.py`; of several, the most optimistic is assumed for every
state-action pair and stage.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar

import numpy as np

from qrmax.agents.base import Sizes
from qrmax.agents.episodic.episodic_agent import FiniteHorizonConfig
from qrmax.agents.episodic.model_sampling import Posterior, begin_models, make_models
from qrmax.agents.episodic.sampled_plan import plan_sampled
from qrmax.agents.episodic.tabled_agent import TabledAgent
from qrmax.agents.experience import Experience
from qrmax.planning.arrays import BoolArray
from qrmax.seeding import Stream


class SamplingAgent(TabledAgent):
    """An agent that samples models from a posterior, anew for every episode."""

    beside_loop: ClassVar[tuple[str, ...]] = ("known_ends",)
    kernels = (begin_models, plan_sampled)
    quick_settings = MappingProxyType({"horizon": 10, "samples": 2})

    def __init__(
        self,
        sizes: Sizes,
        config: FiniteHorizonConfig,
        rng: Stream,
        experience: Experience,
        posterior: Posterior,
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        self.posterior = posterior
        self.optimistic_prior = posterior.optimistic
        self.binarize_rewards = not posterior.gaussian
        self._v_next = np.append(self.v_max[1:], 0.0)  # [h], v_h+1
        self._n_succ = 0  # successors that there is room for
        self._models = make_models(0, 0, 0, posterior)
        self._resume = np.zeros((0, 0), dtype=np.uint64)  # see `begin_models`

    def plan_episode(self) -> None:
        """Sample models, and plan with the best of them."""
        seen = self.seen.arrays
        if self._n_succ != seen.outcome.shape[1]:
            (n_x, actions), self._n_succ = seen.n.shape, seen.outcome.shape[1]
            options = actions * self.posterior.draws
            self._models = make_models(n_x, options, self._n_succ, self.posterior)
            self._resume = np.zeros((n_x, options), dtype=np.uint64)
        each = 0.0 if self.posterior.optimistic else self.posterior.strength / len(seen.n)
        state = np.uint64(self.rng.random() * 2**53)
        with np.errstate(over="ignore"):  # integer overflow is part of the generator
            begin_models(seen, self.posterior, state, self._models, self._resume)
            plan_sampled(
                self._models,
                self._resume,
                each,
                self.known_ends(),
                self._v_next,
                float(self.config.gamma),
                self.table.values,
            )

    def known_ends(self) -> BoolArray:
        """The pairs whose value is 0, since the episode ends there, `[x]`."""
        return self.done.reshape(-1)
