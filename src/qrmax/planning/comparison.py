"""Decide `V^pi >= threshold` from bounds, without full policy evaluation.

The start distribution is propagated along the policy, as in `policy_evaluation`. After t of at most
T steps, with d_t(x) the mass left on pair x, the value of the policy lies between

    C_t + gamma^t sum_x d_t(x) w    and    C_t + sum_x d_t(x) (gamma^t V*(x) - gamma^T w)

where C_t is the discounted reward collected so far, V* the optimal value of episodes without a
limit, and w <= 0 the worst infinite return: the least reward over 1 - gamma, or 0 if no reward is
negative. (Truncation at T may favour a policy, but by no more than w.) A policy that wanders falls
behind V* by a factor of gamma at each step, so that a few steps decide.
"""

from __future__ import annotations

import numpy as np

from qrmax.planning import kernels
from qrmax.planning.arrays import IntArray
from qrmax.planning.models import model_of
from qrmax.planning.value_iteration import Solution, has_both_signs

ERROR = 1e-10  # of V*, times 1 - gamma, relative: far above the default tolerance of solving
GRAIN = 1e-290  # smaller values may be missing from V*
NO_LIMIT = 2**62


class Comparison:
    """Comparison of policy values with a threshold."""

    def __init__(self, solution: Solution) -> None:
        self._problem, self._gamma = solution.problem, solution.gamma
        env, task = model_of(solution.problem)[:2]
        value = solution.value.T
        size = np.abs(value)
        if has_both_signs(env, task):  # an error is as large as what cancels
            size = np.full_like(size, size.max() + np.abs(env.reward).max())
            size += np.abs(task.reward).max()
        error = size * ERROR / (1.0 - solution.gamma) + GRAIN  # that of following a policy, too
        error = np.maximum(error, solution.error_bound.T)
        least = min(0.0, float(env.reward.min() + task.reward.min()))
        self._worst = least / (1.0 - solution.gamma)
        self._ceiling = np.ascontiguousarray(value + error)  # [q, s]
        self._error = float((solution.problem.start().T * error).sum())

    def exceeds(self, policy: IntArray, threshold: float) -> bool | None:
        """Whether the value of a policy `[s, q]` exceeds a threshold; None if too close to tell."""
        model = model_of(self._problem)
        low, high = threshold - self._error, threshold + self._error
        least, most = kernels.bracket(
            model.env,
            model.task,
            model.done,
            self._ceiling,
            np.ascontiguousarray(policy.T, dtype=np.int32),
            model.start,
            self._gamma,
            self._problem.max_episode_steps or NO_LIMIT,
            self._worst,
            low,
            high,
        )
        if least > high:
            return True
        return False if most < low else None
