"""The exact optimum of a tabular problem, by value iteration on its two factors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from qrmax.errors import ConvergenceError, check_range
from qrmax.model.problem import Problem, check_problem
from qrmax.planning import kernels
from qrmax.planning.arrays import EnvModel, FloatArray, IntArray, Rules, Tables, TaskModel
from qrmax.planning.models import Model, model_of

TOLERANCE = 1e-13
MAX_ROUNDS = 1_000_000


@dataclass(frozen=True, eq=False)
class Solution:
    """The optimum of a problem.

    >>> import qrmax
    >>> solution = qrmax.solve(qrmax.make("office/map1/exp1"))
    >>> solution
    Solution('office/map1/exp1': start value 0.0879463, gamma 0.9)
    >>> solution.policy.shape, solution.q.shape
    ((108, 3), (108, 3, 4))
    """

    problem: Problem
    gamma: float
    value: FloatArray  # [s, q]
    policy: IntArray  # [s, q], the first of equally good actions
    backups: int  # how many Bellman backups it took
    _tables: Tables

    @property
    def start_value(self) -> float:
        """The discounted value of an episode from its start."""
        return float((self.problem.start() * self.value).sum())

    @cached_property
    def q(self) -> FloatArray:
        """The value of every action, `[s, q, a]`; made when first asked for."""
        table = kernels.action_values(model_of(self.problem).env, self._tables, np.inf)
        return np.moveaxis(table, 0, 1)

    def __repr__(self) -> str:
        return (
            f"Solution({self.problem.name!r}: start value {self.start_value:.6g}, "
            f"gamma {self.gamma:g})"
        )


class Solved(NamedTuple):
    """V of a model, and what it cost."""

    value: FloatArray  # [q, s]
    backups: int
    rounds: int


def solve(problem: Problem, gamma: float = 0.9, *, tolerance: float = TOLERANCE) -> Solution:
    """The optimal values and policy of a problem, with rewards discounted by `gamma`.

    `tolerance` is the largest relative error that any Bellman equation may have at the end. The
    relative error of a value is at most that times the mean number of steps to its rewards.
    """
    check_problem(problem)
    check_range("gamma", gamma, above=0.0, below=1.0)
    check_range("tolerance", tolerance, at_least=1e-15, below=1.0)
    model = model_of(problem)
    value, backups, _ = solve_model(model, gamma, tolerance=tolerance)
    tables = Tables(value, kernels.gains(model.task, value, gamma), model.done)
    policy = kernels.greedy(model.env, tables, np.inf)
    return Solution(problem, gamma, value.T, policy.T, backups, tables)


def solve_model(
    model: Model,
    gamma: float,
    *,
    tolerance: float = TOLERANCE,
    policy: IntArray = kernels.ANY_ACTION,
    max_rounds: int = MAX_ROUNDS,
) -> Solved:
    """V of a model under a policy `[q, s]`, or under the best one."""
    value = np.zeros(model.done.shape)
    rules = Rules(gamma, tolerance, np.inf, has_both_signs(model.env, model.task))
    backups = rounds = 0
    for layer in model.layers:
        layer_backups, layer_rounds, settled = kernels.solve_layer(
            model.env, model.task, value, model.done, policy, layer, rules, max_rounds
        )
        if not settled:
            raise ConvergenceError(
                f"value iteration with gamma {gamma} did not settle to {tolerance} within "
                f"{max_rounds} rounds; a larger tolerance or a smaller gamma would"
            )
        backups += layer_backups
        rounds += layer_rounds
    return Solved(value, backups, rounds)


def has_both_signs(env: EnvModel, task: TaskModel) -> bool:
    """Whether rewards can cancel."""
    lowest = min(env.reward.min(), task.reward.min())
    highest = max(env.reward.max(), task.reward.max())
    return bool(lowest < 0.0 < highest)
