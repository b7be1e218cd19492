"""Value iteration on the two factors of a tabular problem: its exact optimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from qrmax.errors import ConvergenceError, check_range
from qrmax.pictures.drawing import Picture
from qrmax.pictures.on_demand import drawn
from qrmax.planning import kernels
from qrmax.planning.arrays import EnvModel, FloatArray, IntArray, Rules, Tables, TaskModel
from qrmax.planning.error_bounds import from_start, value_error
from qrmax.planning.models import Model, model_of
from qrmax.planning.policy_systems import evaluate_layer
from qrmax.planning.potentials import potential_of, shaped
from qrmax.planning.residuals import residual, rounding
from qrmax.problems.problem import Problem, check_problem

TOLERANCE = 1e-13
SWEEPS = 128  # backups per pair after which a policy's linear system is solved
ROUND = 64  # sweeps over one machine state before the others have their turn
SWEEPS_BETWEEN = 16  # two linear systems
MAX_TURNS = 1000
FAR_LARGER = 10.0  # a potential than the values, so that its rounding matters
NEGLIGIBLE = 1e-300  # as in the sweeps


@dataclass(frozen=True, eq=False)
class Solution:
    """Optimal value function and policy of a problem.

    >>> import qrmax
    >>> solution = qrmax.solve(qrmax.make("office/map1/exp1"))
    >>> solution
    Solution('office/map1/exp1': start value 0.0879463, gamma 0.9)
    >>> solution.policy.shape, solution.q.shape
    ((108, 3), (108, 3, 4))
    >>> solution.start_error_bound < 1e-11, bool(solution.error_bound.max() < 1e-11)
    (True, True)
    """

    problem: Problem
    gamma: float
    value: FloatArray  # [s, q]
    policy: IntArray  # [s, q], the first of equally good actions
    backups: int  # number of Bellman backups
    _solved: Solved

    @property
    def start_value(self) -> float:
        """The discounted value of an episode from its start."""
        return float((self.problem.start() * self.value).sum())

    @cached_property
    def q(self) -> FloatArray:
        """The optimal action values, `[s, q, a]`; computed on first use."""
        model, tables, potential = self._solved.model, self._solved.tables, self._solved.potential
        table = kernels.action_values(model.env, tables, np.inf)
        table = np.where(tables.done[:, :, None], 0.0, table + potential[:, None, None])
        return np.moveaxis(table, 0, 1)

    @cached_property
    def error_bound(self) -> FloatArray:
        """The most by which each value can differ from the optimum, `[s, q]`, rounding included.

        Computed on first use, from the Bellman residuals of the values.
        """
        return value_error(model_of(self.problem), self._solved.value, self.gamma).T

    @property
    def start_error_bound(self) -> float:
        """The most by which `start_value` can differ from the optimum."""
        return from_start(self.problem.start(), self.value, self.error_bound)

    def draw(self, show: str = "both", states: Sequence[str] | None = None) -> Picture:
        """Draw the values as colours and the actions as arrows, a panel for each machine state.

        `show` is "both", "values" or "policy"; `states` are the machine states shown, by default
        all that are not terminal. `save` of the picture writes SVG, PNG or PDF.
        """
        picture: Picture = drawn("problem_picture:draw_solution", self, show, states)
        return picture

    def _repr_svg_(self) -> str:
        return self.draw().svg()

    def __repr__(self) -> str:
        return (
            f"Solution({self.problem.name!r}: start value {self.start_value:.6g}, "
            f"gamma {self.gamma:g})"
        )


class Solved(NamedTuple):
    """V of a model, and the shaped form of the model that it was found in."""

    value: FloatArray  # [q, s], V
    backups: int
    model: Model  # shaped by a potential
    tables: Tables  # V - Phi and its gains
    potential: FloatArray  # [q], Phi


def solve(problem: Problem, gamma: float = 0.9, *, tolerance: float = TOLERANCE) -> Solution:
    """Compute the optimal value function and policy of a problem.

    `gamma` is the discount factor. `tolerance` is the largest final Bellman residual, relative to
    the value, or to the terms that cancel in it if rewards have both signs or most steps have a
    cost. The error of a value is at most the residual times 1 / (1 - gamma); `error_bound` bounds
    the error that remains. Values that do not converge raise a `ConvergenceError`.
    """
    check_problem(problem)
    check_range("gamma", gamma, above=0.0, below=1.0)
    check_range("tolerance", tolerance, at_least=1e-15, below=1.0)
    solved = solve_model(model_of(problem), gamma, tolerance=tolerance)
    policy = kernels.greedy(solved.model.env, solved.tables, np.inf)
    return Solution(problem, gamma, solved.value.T, policy.T, solved.backups, solved)


def solve_model(
    model: Model,
    gamma: float,
    *,
    tolerance: float = TOLERANCE,
    policy: IntArray = kernels.ANY_ACTION,
    max_turns: int = MAX_TURNS,
) -> Solved:
    """V of a model under a policy `[q, s]`, or under the best one.

    If most steps have the same reward, V is found for the model shaped by a potential, and then
    made to satisfy the equations of the model itself if these are more exact: if rewards are never
    negative, so that small values count, or if the potential is far larger than V.
    """
    potential = potential_of(model, gamma) if gamma < 1.0 else None
    value, backups = np.zeros(model.done.shape), 0
    if potential is not None:
        inner = shaped(model, gamma, potential)
        backups = _solve_layers(inner, value, gamma, tolerance, policy, max_turns, True)
        shifted = np.where(model.done, 0.0, value + potential[:, None])
        lowest = min(model.env.reward.min(), model.task.reward.min())
        if lowest < 0.0 and np.abs(potential).max() <= FAR_LARGER * np.abs(shifted).max():
            tables = Tables(value, kernels.gains(inner.task, value, gamma), model.done)
            return Solved(shifted, backups, inner, tables, potential)
        value = shifted if lowest < 0.0 else np.maximum(shifted, 0.0)
    backups += _solve_layers(model, value, gamma, tolerance, policy, max_turns, potential is None)
    tables = Tables(value, kernels.gains(model.task, value, gamma), model.done)
    return Solved(value, backups, model, tables, np.zeros(len(value)))


def _solve_layers(
    model: Model,
    value: FloatArray,
    gamma: float,
    tolerance: float,
    policy: IntArray,
    max_turns: int,
    from_nothing: bool,
) -> int:
    """Bring V up to date, layer by layer; returns the number of backups."""
    rules = Rules(gamma, tolerance, np.inf, has_both_signs(model.env, model.task))
    backups = 0
    for layer in model.layers:
        count, settled = _solve_layer(model, value, layer, rules, policy, max_turns, from_nothing)
        if not settled:
            raise ConvergenceError(
                f"value iteration with gamma {gamma} did not converge to {tolerance} within "
                f"{max_turns} rounds of sweeps and linear systems; give a larger tolerance or a "
                "smaller gamma"
            )
        backups += count
    return backups


def _solve_layer(
    model: Model,
    value: FloatArray,
    layer: IntArray,
    rules: Rules,
    policy: IntArray,
    max_turns: int,
    from_nothing: bool,
) -> tuple[int, bool]:
    """Modified policy iteration, as soon as sweeps have shown that they do not settle soon.

    A turn is some sweeps, then V of the greedy policy from its linear system. Sweeps from V of a
    policy never lower it, so neither does the next policy, and the turns converge. V has settled
    when all its Bellman equations hold, whether sweeps or a system made them so.
    """
    env, task, done = model.env, model.task, model.done
    backups, budget, sweeps = 0, SWEEPS * layer.size * value.shape[1], ROUND
    for _ in range(max_turns):
        count, settled = kernels.solve_layer(
            env, task, value, done, policy, layer, rules, budget, sweeps, from_nothing
        )
        backups += count
        if settled:
            return backups, True
        chosen = policy
        if not policy.size:
            tables = Tables(value, kernels.gains(task, value, rules.gamma), done)
            chosen = kernels.greedy(env, tables, np.inf)
        if evaluate_layer(model, value, chosen, layer, rules.gamma):
            size, mass = residual(model, value, rules.gamma, policy, layer)
            if (size <= max(rules.tolerance, rounding(model)) * mass + NEGLIGIBLE).all():
                return backups, True
            budget, sweeps = 0, SWEEPS_BETWEEN
        from_nothing = False
    return backups, False


def has_both_signs(env: EnvModel, task: TaskModel) -> bool:
    """Whether rewards can cancel."""
    lowest = min(env.reward.min(), task.reward.min())
    highest = max(env.reward.max(), task.reward.max())
    return bool(lowest < 0.0 < highest)
