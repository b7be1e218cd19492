"""Agents that keep a model of the world to plan an episode with, and act by it: UCBVI, PSRL, OPSRL.

The model (`believe`) is the empirical one with exploration bonuses, or one or several sampled from
a posterior. Values are kept for each stage, and actions looked up on the way.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.agents import step_loops
from qrmax.agents.base import AnySimulator, Sizes
from qrmax.agents.choice import among_best
from qrmax.agents.episodic.episode_plan import EpisodePlan
from qrmax.agents.episodic.episodic_agent import (
    EpisodicAgent,
    FiniteHorizonConfig,
    named_arrays,
)
from qrmax.agents.experience import Experience
from qrmax.errors import ModelError
from qrmax.planning.arrays import Belief
from qrmax.planning.finite_horizon import backward_induction, make_stages, stage_values
from qrmax.seeding import Stream


class FiniteHorizon(EpisodicAgent):
    """An agent that keeps a model to plan with, and looks actions up in it at each stage."""

    loop = staticmethod(step_loops.follow_plan)
    beside_loop = ("begin_episode", "plan_episode", "believe", "bonus")  # before an episode
    kernels = (backward_induction,)

    def __init__(
        self,
        sizes: Sizes,
        config: FiniteHorizonConfig,
        rng: Stream,
        experience: Experience,
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        self.plan = EpisodePlan(
            self.seen.arrays,
            make_stages(
                config.horizon,
                config.gamma,
                config.r_span,
                self.done.shape,
                optimistic_prior=self.optimistic_prior,
            ),
            models=self.models,
            everywhere=not self.optimistic_prior,  # else, unreachable pairs have no effect
        )
        self._values = np.empty(sizes.actions)

    def plan_episode(self) -> None:
        """Form a model, and plan with it."""
        self.plan.look_around(self.seen.arrays, self.task, self.done, self.starts)
        self.believe()
        self.plan.renew(self.task)

    @abstractmethod
    def believe(self) -> None:
        """Form the model to plan with from the empirical one."""

    def act(self, s: int, q: int) -> int:
        """Act greedily at this stage; ties are broken uniformly at random."""
        plan = self.plan
        stage_values(plan.belief, plan.stages, self.stage, *self.place(s, q), self._values)
        return among_best(self._values.tolist(), 0.0, self.rng)

    def follow(
        self, simulator: AnySimulator, counting: step_loops.EpisodeCounting, limit: int
    ) -> step_loops.Taken:
        """Take compiled steps of this episode, by the plan."""
        return step_loops.follow_plan(
            simulator.world,
            simulator.state,
            self.plan.belief,
            self.plan.stages,
            counting,
            self.done,
            *self.numbers(simulator),
            self.stage,
            limit,
        )

    def _meet_something_new(self) -> None:
        super()._meet_something_new()
        self.plan.outdated = True

    # --- saving

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The counts, and the plan of the episode under way."""
        stages = self.plan.stages
        parts = {
            "seen": self.seen.arrays._asdict(),
            "belief": _growing_last(self.plan.belief)._asdict(),
            "task": self._task_arrays(),
            "stages": {"ahead": stages.ahead, "beyond": stages.beyond},
            "episode": self._episode_arrays(),
        }
        return named_arrays(parts)

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over counts and plan; the next plan is made from scratch, to the same result."""
        self._restore_episode(arrays)
        kept = Belief(*(arrays[f"belief.{name}"].copy() for name in Belief._fields))
        belief = _growing_last(kept)
        self._check_belief(belief)
        self._restore_task(arrays)
        self.plan.belief = belief
        self.plan.stages.ahead[:] = arrays["stages.ahead"]
        self.plan.stages.beyond[:] = arrays["stages.beyond"]
        self.plan.outdated = True
        self.plan.settled[:] = -1
        self.plan.fresh[:] = True

    def _check_belief(self, belief: Belief) -> None:
        """Refuse successors out of range, which compiled code does not check."""
        n_x, room = belief.succ.shape
        fits = all(
            getattr(belief, name).shape == getattr(self.plan.belief, name).shape
            for name in Belief._fields
            if name not in ("succ", "weight")
        )
        if not fits or belief.weight.shape != (n_x, room, belief.rest.shape[1]):
            raise ModelError("inconsistent model: shapes of successors do not match")
        if not ((belief.succ >= 0) & (belief.succ < n_x)).all():
            raise ModelError(f"a successor is not one of 0 to {n_x - 1}")
        if not ((belief.listed >= 0) & (belief.listed <= room)).all():
            raise ModelError("inconsistent model: more successors than entries")


def _growing_last(belief: Belief) -> Belief:
    """Swap the axis that grows with new successors to the end, or back."""
    return belief._replace(weight=np.ascontiguousarray(belief.weight.swapaxes(1, 2)))
