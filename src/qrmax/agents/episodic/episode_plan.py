"""A model of the world, and its value function at each stage of an episode."""

from __future__ import annotations

import numpy as np

from qrmax.agents.episodic import beliefs
from qrmax.empirical.successors import Seen
from qrmax.planning.arrays import BoolArray, IntArray, Stages, TaskModel
from qrmax.planning.finite_horizon import (
    FROM_SCRATCH,
    NEVER,
    NO_CHOICE,
    backward_induction,
    list_feeders,
    make_arrival,
    make_belief,
    stages_reached,
)


class EpisodePlan:
    """Incremental backward induction, with the same result as from scratch.

    A pair that no episode can reach before stage h is not planned for at earlier stages, unless the
    plan is `everywhere`; a pair of which neither the model nor the value of any successor has
    changed keeps its value. A plan that `chooses` records the greedy actions as well,
    `choice[h, y, x]`.
    """

    def __init__(
        self,
        seen: Seen,
        stages: Stages,
        *,
        models: int = 1,
        everywhere: bool,
        chooses: bool = False,
    ) -> None:
        self.stages = stages
        self.models = models
        self.everywhere = everywhere
        self.redrawn = False  # whether all models are others than in the last plan
        self.outdated = True  # whether something new was observed since `look_around`
        n_x, actions = seen.n.shape
        self.belief = make_belief(n_x, actions * models, seen.outcome.shape[1])
        self.settled: IntArray = np.full(seen.n.shape, -1, dtype=np.int32)  # see `estimate`
        self.fresh: BoolArray = np.ones(n_x, dtype=bool)  # since the last plan
        self.arrival = make_arrival(*stages.ahead.shape[1:])
        self.since: IntArray = np.zeros(stages.ahead.shape[1:], dtype=np.int32)
        self.feeders = list_feeders(seen)
        self.choice = np.zeros_like(stages.ahead, dtype=np.int32) if chooses else NO_CHOICE

    def look_around(self, seen: Seen, task: TaskModel, done: BoolArray, starts: BoolArray) -> None:
        """Update the successors, and the first stage at which each pair can be reached."""
        if not self.outdated:
            return
        if self.belief.succ.shape != seen.outcome.shape:  # more of them than there was room for
            n_x, actions = seen.n.shape
            self.belief = make_belief(n_x, actions * self.models, seen.outcome.shape[1])
            self.settled[:] = -1
        beliefs.list_successors(seen, self.belief)
        self.feeders = list_feeders(seen)
        before = self.since.copy()
        if self.everywhere:
            self.since[:] = np.where(done, NEVER, 0)
        else:
            stages_reached(seen.outcome, task, done, starts, self.since)
        self.fresh |= (self.since != before).any(axis=0)
        self.outdated = False

    def estimate(self, seen: Seen, worth: beliefs.Worth, bonus: beliefs.Bonus) -> bool:
        """Use the empirical model plus a bonus; returns whether that is known for every count."""
        self.redrawn = False
        return bool(beliefs.estimate(seen, worth, bonus, self.settled, self.belief, self.fresh))

    def draw(self, seen: Seen, prior: beliefs.Prior, state: np.uint64) -> None:
        """Use models sampled from the posterior."""
        with np.errstate(over="ignore"):  # integer overflow is part of the generator
            beliefs.draw_posterior(seen, prior, state, self.belief)
        self.redrawn = True

    def renew(self, task: TaskModel) -> None:
        """Plan with the current model."""
        backward_induction(
            self.belief,
            task,
            self.since,
            self.fresh,
            FROM_SCRATCH if self.redrawn else self.feeders,
            self.arrival,
            self.stages,
            self.choice,
        )
        self.fresh[:] = False
