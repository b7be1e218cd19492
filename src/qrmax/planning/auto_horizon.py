"""The horizon that suits a problem: the length of its optimal episodes, plus a margin.

The paper sets H of UCBVI, PSRL and OPSRL to "the average optimal-path length computed by Value
Iteration, adding a small safety margin for stochastic slips", and does not say how large. Here

    H = ceil(1.5 L)     at most the limit on the length of episodes

where L is the mean length of the successful episodes of the optimal policy: an episode that ends in
failure is no path to the goal, and often a short one. Lengths are spread around L by slips: on the
Office problems of the paper's table 6 the quickest 99 % of the successful episodes take at most
1.3 L, so that 1.5 L truncates hardly any. (The paper's own numbers are 0.8 to 2.9 times L.)
"""

from __future__ import annotations

import math

from qrmax.errors import ParameterError
from qrmax.planning.policy_evaluation import evaluate
from qrmax.planning.value_iteration import solve
from qrmax.problems.problem import Problem

MARGIN = 0.5
"""The safety margin, as a share of the mean length."""

GAMMA = 0.9
"""The discount factor for agents that do not discount: without one, the optimum may dawdle."""

HARDLY_EVER = 1e-3
"""A probability of success below which the optimal policy does not try to succeed."""


def auto_horizon(problem: Problem, gamma: float = GAMMA) -> int:
    """The horizon of a problem, for agents with this discount factor.

    >>> import qrmax
    >>> auto_horizon(qrmax.make("office/map3/exp5"))
    234
    """
    plain, discount = problem.unshaped, gamma if gamma < 1.0 else GAMMA
    found = evaluate(plain, solve(plain, discount).policy, discount)
    if found.mean_length is None or found.success < HARDLY_EVER:
        raise ParameterError(
            f"horizon is 'auto', the mean length of successful episodes plus {MARGIN:.0%}; the "
            f"optimal policy for {problem.name!r} at gamma {discount:g} succeeds in "
            f"{100 * found.success:.2g} % of episodes: give a number, such as horizon=150"
        )
    steps = math.ceil((1.0 + MARGIN) * found.mean_length)
    return min(steps, problem.max_episode_steps or steps)
