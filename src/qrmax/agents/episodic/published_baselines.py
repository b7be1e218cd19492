"""The rules of the published comparison, where they differ from `ucbvi` and `opsrl`.

The paper's table 6 compares with implementations after those of rlberry. Their rules are those of a
public version of that code, which need not be the one that made the table; none is in its text:

- the bonus of (x, a) is renewed at the stage h at which it is visited, with the counts of then and
  the values of the plan under way; at all other stages it stays what it was (UCBVI);
- no end is known: a pair in which an episode has ended is like any other that was never tried, so
  that its value is v_h (UCBVI), or one of a sampled model (OPSRL);
- the policy to evaluate is the greedy one of stage 0 at all stages, without bonus or sampling. A
  state-action pair that was never tried leads to any x with equal chance, so that an end is worth
  the more the sooner it is reached. (If ends were worth 0, all ways that lead there within H steps
  would be equally good at stage 0, and the first action would be taken.) OPSRL takes the means of
  its posterior, by which a pair that was never tried has the reward 1/2;
- OPSRL has a uniform prior: p(. | x, a) ~ Dirichlet(counts + prior / |X|).

One rule of that code is not followed: it plans anew after H steps where the world then is, without
a reset. Here the world is reset after H steps, as for all agents with a horizon.

    Q_h(x, a) = r(x, a) + sum_y p(y | x, a) V_h+1(y) + bonus_h(x, a)      clipped at v_h; UCBVI

    ucbvi-sb-published    bonus_h = c / sqrt(n) + v_h / n
    ucbvi-b-published     bonus_h = c (sqrt(Var V_h+1 / n) + v_h / n)
    ucbvi-h-published     bonus_h = c v_h / (2 sqrt(n))                   at most v_h

Assumes: sees the machine's state; does not know the machine.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qrmax.agents.base import Sizes
from qrmax.agents.episodic.model_sampling import Posterior
from qrmax.agents.episodic.opsrl import OPSRLConfig
from qrmax.agents.episodic.sampling_agent import SamplingAgent
from qrmax.agents.episodic.tabled_agent import TabledAgent
from qrmax.agents.episodic.ucbvi import UCBVIConfig
from qrmax.agents.experience import Experience
from qrmax.agents.step_loops import BonusRule
from qrmax.planning.arrays import BoolArray, FloatArray, IntArray
from qrmax.planning.finite_horizon import list_feeders
from qrmax.planning.stage_tables import (
    SampledModels,
    keep_up_with_bonuses,
    make_means,
    make_table,
    plan_models,
    plan_with_bonuses,
)
from qrmax.seeding import Stream


class PublishedBaseline(TabledAgent):
    """A baseline that is evaluated by its greedy policy of stage 0."""

    beside_loop: ClassVar[tuple[str, ...]] = ("greedy_values",)

    @abstractmethod
    def greedy_values(self) -> FloatArray:
        """Action values `[h, x, a]` without bonus or sampling, of stage 0 at least."""

    @property
    def q(self) -> FloatArray:
        """The action values at stage 0 without bonus or sampling, `[s, q, a]`."""
        return np.asarray(self.greedy_values()[0]).reshape(self.sizes)

    def policy(self) -> IntArray:
        """The greedy policy of stage 0, `[s, q]`: the first of equally good actions."""
        return np.asarray(self.q.argmax(axis=2), dtype=np.int32)

    def recommendation(self) -> IntArray:
        """The same at every stage, `[h, s, q]`."""
        return np.repeat(self.policy()[None], self.config.horizon, axis=0)


class PublishedUCBVI(PublishedBaseline):
    """UCBVI of the published comparison, with any bonus."""

    Config = UCBVIConfig
    config: UCBVIConfig

    beside_loop: ClassVar[tuple[str, ...]] = ("_meet_something_new",)
    kernels = (plan_with_bonuses, keep_up_with_bonuses)
    renews_bonus = True

    def __init__(
        self, sizes: Sizes, config: UCBVIConfig, rng: Stream, experience: Experience
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        n_x = len(self.seen.arrays.n)
        self._feeders = list_feeders(self.seen.arrays)
        self._outdated = True  # whether there are new successors since
        self._planned: IntArray = np.zeros(n_x, dtype=np.int32)  # [x], visit counts of the plan
        self._means = make_means(self.seen.arrays)
        self._totals = np.zeros(config.horizon)  # see `plan_with_bonuses`

    def plan_episode(self) -> None:
        """Plan with the empirical model and the bonuses of each stage."""
        seen, table, gamma = self.seen.arrays, self.table, float(self.config.gamma)
        if self._outdated:
            self._feeders, self._outdated = list_feeders(seen), False
        if self._means.share.shape != seen.tau.shape:
            self._means, self._totals[:] = make_means(seen), 0.0
        given = seen, table.bonus, self.v_max, gamma
        kept = self._means, self._totals, table.values
        if keep_up_with_bonuses(*given, self._planned, self._feeders, *kept):
            return
        plan_with_bonuses(*given, True, *kept)
        self._planned[:] = seen.n.sum(axis=1)

    def greedy_values(self) -> FloatArray:
        """Action values at stage 0 on the empirical model."""
        seen, bonus, gamma = self.seen.arrays, self.table.bonus, float(self.config.gamma)
        values = make_table(1, *seen.n.shape)
        unused = make_means(seen), np.empty(1)
        plan_with_bonuses(seen, bonus, self.v_max, gamma, False, *unused, values)
        return values

    def _meet_something_new(self) -> None:
        super()._meet_something_new()
        self._outdated = True

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over counts and table; the next plan is made from scratch, to the same result."""
        super().restore(arrays)
        self._outdated = True
        self._totals[:] = 0.0


class PublishedUCBVISB(PublishedUCBVI):
    """UCBVI-sB of the published comparison."""

    name = "ucbvi-sb-published"

    def bonus_rule(self) -> BonusRule:
        """C / sqrt(n) + v_h / n."""
        return BonusRule(flat=float(self.config.bonus_scale), slope=1.0, spread=0.0, half=0.0)


class PublishedUCBVIB(PublishedUCBVI):
    """UCBVI-B of the published comparison."""

    name = "ucbvi-b-published"

    def bonus_rule(self) -> BonusRule:
        """C (sqrt(Var / n) + v_h / n)."""
        c = float(self.config.bonus_scale)
        return BonusRule(flat=0.0, slope=c, spread=c, half=0.0)


class PublishedUCBVIH(PublishedUCBVI):
    """UCBVI-H of the published comparison."""

    name = "ucbvi-h-published"

    def bonus_rule(self) -> BonusRule:
        """C v_h / (2 sqrt(n))."""
        return BonusRule(flat=0.0, slope=0.0, spread=0.0, half=float(self.config.bonus_scale) / 2.0)


class PublishedOPSRL(PublishedBaseline, SamplingAgent):
    """OPSRL of the published comparison: the best of several models, with a uniform prior."""

    name = "opsrl-published"
    Config = OPSRLConfig
    config: OPSRLConfig

    def __init__(
        self, sizes: Sizes, config: OPSRLConfig, rng: Stream, experience: Experience
    ) -> None:
        posterior = Posterior(
            strength=float(config.prior),
            optimistic=False,
            gaussian=False,
            lowest=float(config.r_min),
            span=float(config.r_span),
            draws=config.samples,
        )
        super().__init__(sizes, config, rng, experience, posterior)

    def known_ends(self) -> BoolArray:
        """None."""
        return np.zeros(self.done.size, dtype=bool)

    def greedy_values(self) -> FloatArray:
        """Action values on the means of the posterior."""
        n, rho, listed, outcome, tau = self.seen.arrays
        prior, (n_x, actions) = float(self.config.prior), n.shape
        room = outcome.shape[1]
        known = np.maximum(outcome, 0)[:, None, :]  # those that are not listed have the weight 0
        share = (1.0 + rho) / (2.0 + n)
        means = SampledModels(
            succ=np.ascontiguousarray(np.broadcast_to(known, (n_x, actions, room))),
            weight=tau / (n + prior)[:, :, None],
            listed=np.ascontiguousarray(np.broadcast_to(listed[:, None], (n_x, actions))),
            rest=np.asarray(prior / (n + prior), dtype=np.float64),
            reward=self.config.r_min + self.config.r_span * share,
        )
        values = make_table(*self.table.values.shape)
        plan_models(means, self.known_ends(), self._v_next, False, float(self.config.gamma), values)
        return values
