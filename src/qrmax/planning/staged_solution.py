"""Backward induction on a tabular problem: its exact optimum for a finite horizon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qrmax.errors import check_count, check_range
from qrmax.pictures.drawing import Picture
from qrmax.pictures.on_demand import drawn
from qrmax.planning.arrays import Belief, FloatArray, IntArray
from qrmax.planning.error_bounds import staged_error
from qrmax.planning.finite_horizon import (
    FROM_SCRATCH,
    NEVER,
    NO_LIMIT,
    backward_induction,
    list_together,
    make_arrival,
    make_belief,
    make_stages,
    stage_values,
)
from qrmax.planning.models import Model, model_of
from qrmax.problems.problem import Problem, check_problem


@dataclass(frozen=True, eq=False)
class StagedSolution:
    """Optimal value function and non-stationary policy for a finite horizon.

    >>> import qrmax
    >>> qrmax.solve_horizon(qrmax.make("office/map0/exp0"), 50)
    StagedSolution('office/map0/exp0': start value 0.0394681, horizon 50, gamma 1)
    """

    problem: Problem
    horizon: int
    gamma: float
    value: FloatArray  # [s, q], at the first stage
    policy: IntArray  # [h, s, q], the first of equally good actions

    @property
    def start_value(self) -> float:
        """The expected return of an episode."""
        return float((self.problem.start() * self.value).sum())

    @property
    def start_error_bound(self) -> float:
        """The most by which `start_value` can differ from the optimum, by rounding."""
        return staged_error(model_of(self.problem), self.value, self.gamma, self.horizon)

    def draw(
        self, show: str = "both", states: Sequence[str] | None = None, stage: int = 0
    ) -> Picture:
        """Draw the values as colours and the actions as arrows, a panel for each machine state.

        `show` is "both", "values" or "policy"; `states` are the machine states shown, by default
        all that are not terminal. `stage` is the stage of the policy. `save` of the picture writes
        SVG, PNG or PDF.
        """
        picture: Picture = drawn("problem_picture:draw_solution", self, show, states, stage)
        return picture

    def _repr_svg_(self) -> str:
        return self.draw().svg()

    def __repr__(self) -> str:
        return (
            f"StagedSolution({self.problem.name!r}: start value {self.start_value:.6g}, "
            f"horizon {self.horizon}, gamma {self.gamma:g})"
        )


def solve_horizon(problem: Problem, horizon: int, gamma: float = 1.0) -> StagedSolution:
    """Compute the optimal policy `[h, s, q]` of episodes of at most `horizon` steps.

    `gamma` is the discount factor. If the problem truncates episodes earlier, the policy has no
    more stages than that.
    """
    check_problem(problem)
    check_count("horizon", horizon)
    check_range("gamma", gamma, above=0.0, at_most=1.0)
    horizon = min(horizon, problem.max_episode_steps or horizon)
    model = model_of(problem)
    belief, stages = _truth(model), make_stages(horizon, gamma, NO_LIMIT, model.done.shape)
    choice = np.zeros(stages.ahead.shape, dtype=np.int32)
    since = np.where(model.done, NEVER, 0).astype(np.int32)
    fresh, arrival = np.ones(problem.n_states, dtype=bool), make_arrival(*model.done.shape)
    backward_induction(belief, model.task, since, fresh, FROM_SCRATCH, arrival, stages, choice)
    value = np.zeros(model.done.shape)
    row = np.empty(problem.n_actions)
    for q, s in np.argwhere(~model.done).tolist():
        stage_values(belief, stages, 0, q, s, row)
        value[q, s] = row.max()
    return StagedSolution(problem, horizon, gamma, value.T, choice.transpose(0, 2, 1))


def _truth(model: Model) -> Belief:
    """The true transition model of the world."""
    env = model.env
    n_states, n_actions, n_succ = env.succ.shape
    belief = make_belief(n_states, n_actions, n_actions * n_succ)
    belief.reward[:, :n_actions] = env.reward
    list_together(env.succ, env.prob, belief.succ, belief.listed, belief.weight)
    return belief
