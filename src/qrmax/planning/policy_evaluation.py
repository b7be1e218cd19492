"""Exact policy evaluation: no episode is sampled.

With a limit on the length of an episode, the start distribution is propagated along the policy step
by step. Without one, three linear systems are solved as value iteration is, with the action fixed:

    V(x) = r(x) + gamma sum_x' P(x' | x) V(x')     discounted value
    h(x) = sum_x' P(x' | x) h(x'),  1 on success   probability of success
    w(x) = h(x) + sum_x' P(x' | x) w(x')           mean of (length x success)

so that the mean length of the successful episodes is w / h.

A policy may depend on the stage, `[h, s, q]`: it is followed for as many steps as it has stages, or
restarts after the last one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrmax.errors import ParameterError, check_count, check_range
from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine
from qrmax.planning import kernels
from qrmax.planning.arrays import IntArray
from qrmax.planning.error_bounds import (
    ErrorBound,
    followed_error,
    from_start,
    length_error,
    success_error,
    value_error,
)
from qrmax.planning.finite_horizon import follow_stages
from qrmax.planning.models import Model, by_arrival, model_of
from qrmax.planning.value_iteration import solve, solve_model
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.problem import Problem, check_problem

NEGLIGIBLE_DISCOUNT = 1e-12  # rewards discounted by this much are left out


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Value, success probability and episode length of a policy, from the start distribution.

    >>> import qrmax
    >>> problem = qrmax.make("office/map1/exp1")
    >>> evaluation = qrmax.evaluate(problem, qrmax.solve(problem).policy)
    >>> round(evaluation.success, 4), round(evaluation.mean_length, 2), evaluation.nominal_length
    (0.6687, 21.1, 15)
    """

    start_value: float  # discounted reward
    success: float  # probability of success
    mean_length: float | None  # of the successful episodes; None if there are none
    nominal_length: int | None  # if the most likely outcome always happens; None: no success
    error_bound: ErrorBound | None = field(default=None, compare=False)  # None: sampled


def evaluate(
    problem: Problem,
    policy: ArrayLike,
    gamma: float = 0.9,
    max_episode_steps: int | Literal["problem"] | None = "problem",
    *,
    repeat_stages: bool = False,
) -> Evaluation:
    """Evaluate a policy `[s, q]`, or a non-stationary one `[h, s, q]`, exactly.

    `gamma` is the discount factor; it may be 1 if episodes are limited. `max_episode_steps` limits
    the length of an episode: that of the problem by default (1000 for the built-in worlds), None
    for no limit. A truncated episode is no success and gets no further reward. A policy with stages
    is followed for no more steps than it has stages; with `repeat_stages` it restarts after the
    last one, and without a limit is followed until the discount is negligible (1e-12).
    """
    check_problem(problem)
    if max_episode_steps == "problem":
        max_episode_steps = problem.max_episode_steps
    if max_episode_steps is not None:
        check_count("max_episode_steps", max_episode_steps)
    model = model_of(problem)
    actions = _check_policy(problem, policy)
    staged = np.ndim(policy) == 3
    limit = _limit(len(actions) if staged and not repeat_stages else None, max_episode_steps)
    if limit is None and staged:
        limit = negligible_after(gamma)
    if limit is None:
        check_range("gamma", gamma, above=0.0, below=1.0)
        value, success, lengths, bound = _without_limit(problem, model, actions[0], gamma)
    else:
        check_range("gamma", gamma, above=0.0, at_most=1.0)
        follow = follow_stages if staged else kernels.follow
        value, success, lengths = follow(
            model.env,
            model.task,
            model.done,
            model.success,
            actions if staged else actions[0],
            model.start,
            gamma,
            limit,
        )
        bound = followed_error(model, gamma, limit, success, lengths)
    return Evaluation(
        start_value=float(value),
        success=min(1.0, float(success)),  # a sum of probabilities: 1 + 1e-15 is rounding
        mean_length=float(lengths / success) if success > 0.0 else None,
        nominal_length=_nominal_length(problem, model, actions, limit),
        error_bound=bound,
    )


def negligible_after(gamma: float) -> int:
    """The number of steps after which the discount is negligible.

    >>> negligible_after(0.9)
    263
    """
    check_range("gamma", gamma, above=0.0, below=1.0)
    return math.ceil(math.log(NEGLIGIBLE_DISCOUNT) / math.log(gamma))


def nominal_length(
    problem: Problem, policy: IntArray, *, repeat_stages: bool = False
) -> int | None:
    """The length of an episode in which the most likely outcome always happens; None: no success.

    A small part of `evaluate`, and far quicker.
    """
    actions = _by_task_state(policy)
    stages = len(actions) if policy.ndim == 3 and not repeat_stages else None
    limit = _limit(stages, problem.max_episode_steps)
    return _nominal_length(problem, model_of(problem), actions, limit)


def nominal_reward(problem: Problem, policy: IntArray, *, repeat_stages: bool = False) -> float:
    """Undiscounted return of an episode in which the most likely outcome always happens."""
    model, actions = model_of(problem), _by_task_state(policy)
    stages = len(actions) if policy.ndim == 3 and not repeat_stages else None
    limit = _limit(stages, problem.max_episode_steps)
    env, task, q, s = model.likeliest
    total = 0.0
    for step in range(len(actions) * model.start.size if limit is None else limit):
        if model.done[q, s]:
            break
        a = actions[step % len(actions), q, s]
        total += float(model.env.reward[s, a])
        s = int(env[s, a])
        total += float(model.task.reward[q, model.task.label[s]])
        q = int(task[q, model.task.label[s]])
    return total


def warm_up(*, staged: bool = False) -> None:
    """Compile the kernels of solving and evaluating, or load them from numba's cache.

    `staged`: those for non-stationary policies, too.
    """
    mdp = TabularMDP([[[1]], [[1]]], [[[1.0]], [[1.0]]])
    task = RewardMachine([Edge("go", "goal", "there", 1.0)], initial="go", success=["there"])
    problem = Problem(mdp, task, [(), ("goal",)], [0, 1], max_episode_steps=1)
    solution = solve(problem)
    evaluate(problem, solution.policy)
    if staged:
        evaluate(problem, np.stack([solution.policy, solution.policy]))


def _limit(stages: int | None, max_episode_steps: int | None) -> int | None:
    """The number of steps for which a policy with this many stages, if any, can be followed."""
    return min((n for n in (stages, max_episode_steps) if n is not None), default=None)


def _without_limit(
    problem: Problem, model: Model, policy: IntArray, gamma: float
) -> tuple[float, float, float, ErrorBound]:
    value = solve_model(model, gamma, policy=policy).value
    no_reward = model.env._replace(reward=np.zeros_like(model.env.reward))
    succeeds = problem.table.success
    arrival = model.task.prob * succeeds[model.task.next_state]  # [q, label, j]
    counting = model._replace(env=no_reward, task=model.task._replace(reward=arrival.sum(axis=2)))
    chance = solve_model(counting, 1.0, policy=policy).value
    onward = kernels.gains(counting.task, chance, 1.0)  # [q, s]: success after arriving in s
    timing = model._replace(env=no_reward, task=by_arrival(model.task, onward))
    lengths = solve_model(timing, 1.0, policy=policy).value
    over = np.where(model.done & succeeds[:, None], 1.0, 0.0)
    found = [float((model.start * part).sum()) for part in (value, chance + over, lengths)]
    errors = (
        value_error(model, value, gamma, policy),
        *success_error(counting, chance, timing, lengths, policy),
    )
    value_off, off, lengths_off = (
        from_start(model.start, part, error)
        for part, error in zip((value, chance + over, lengths), errors, strict=True)
    )
    bound = ErrorBound(value_off, off, length_error(found[1], found[2], off, lengths_off))
    return found[0], found[1], found[2], bound


def _nominal_length(
    problem: Problem, model: Model, actions: IntArray, limit: int | None
) -> int | None:
    longest = len(actions) * model.start.size  # a longer run repeats itself
    length, q = kernels.nominal_run(
        model.likeliest,
        model.task.label,
        model.done,
        actions,
        longest if limit is None else min(limit, longest),
    )
    return int(length) if length >= 0 and problem.table.success[q] else None


def _check_policy(problem: Problem, policy: ArrayLike) -> IntArray:
    """The policy as `[h, q, s]`."""
    actions = np.asarray(policy)
    shape = (problem.n_states, problem.n_task_states)
    fits = actions.shape == shape or (actions.ndim == 3 and actions.shape[1:] == shape)
    if not fits or actions.dtype.kind not in "iu" or not actions.size:
        raise ParameterError(
            f"policy holds {actions.dtype} of shape {actions.shape}; needed: an action's number "
            f"for each state and task state, whole numbers of shape {shape}, or of shape "
            f"(stages, {shape[0]}, {shape[1]})"
        )
    outside = (actions < 0) | (actions >= problem.n_actions)
    if outside.any():
        *stage, s, q = (int(i) for i in np.unravel_index(int(outside.argmax()), actions.shape))
        where = f"stage {stage[0]}, " if stage else ""
        raise ParameterError(
            f"policy is {actions[*stage, s, q]} at {where}state {s}, task state {q}; "
            f"allowed: 0 to {problem.n_actions - 1}"
        )
    return _by_task_state(actions)


def _by_task_state(policy: NDArray[Any]) -> IntArray:
    """A policy `[s, q]` or `[h, s, q]` as `[h, q, s]`."""
    staged = policy if policy.ndim == 3 else policy[None]
    return np.ascontiguousarray(staged.transpose(0, 2, 1), dtype=np.int32)
