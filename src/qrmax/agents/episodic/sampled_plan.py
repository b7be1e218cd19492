"""Backward induction with sampled models, of which only what matters is drawn (compiled).

    Q_h(x, a) = max_b  r_b(x, a) + gamma sum_y p_b(y | x, a) V_h+1(y)      b = 1..B
    V_h(x)    = max_a Q_h(x, a),  0 where the episode is over              V_H = 0

An option o is an action in one of the models. Most options are never the best of their x, and have
an upper bound that says so, after MacQueen (1967): from one stage to the one before, no value grows
by more than V does where it grows most,

    Q_h(x, o) <= Q_h'(x, o) + gamma sum_{i=h}^{h'-1} max_y (V_i+1(y) - V_i+2(y))     h < h'

and what has not been drawn of a model leads at most to the largest V. So an option is evaluated
again, and more of its successors are drawn, only when its bound reaches the best value. Values and
greedy actions are those of all models drawn completely; `slack` is far above any rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from qrmax.agents.episodic.model_sampling import LEFT, draw_on
from qrmax.planning.compilation import compiled, inner

if TYPE_CHECKING:  # numba does not read annotations
    from collections.abc import Callable

    from qrmax.agents.episodic.model_sampling import BitsArray
    from qrmax.planning.arrays import BoolArray, FloatArray
    from qrmax.planning.stage_tables import SampledModels

_compiled, _inner = compiled, inner
_at = cast("Callable[[Any], int]", np.uint64)  # an index that needs no check for being negative


@_compiled
def plan_sampled(
    models: SampledModels,
    resume: BitsArray,
    each: float,
    done: BoolArray,
    v_next: FloatArray,
    gamma: float,
    values: FloatArray,
) -> None:
    """Fill a table `[h, x, a]` with the values of the best actions, and less for all others.

    The others' values are lower bounds: minus infinity if no model had to be evaluated. `models`
    are those of `begin_models`. `each` is the pseudo-count of an unobserved successor, and 0 if
    `rest` is the probability of one more successor, of value `v_next[h]`.
    """
    _, _, _, rest, reward = models
    (horizon, n_x, n_actions), n_options = values.shape, reward.shape[1]
    bound = np.empty((n_x, n_options))  # of Q_h(x, o), less `rise`
    best, second = np.zeros(n_x, np.int64), np.empty(n_x)  # an option; the bound of all others
    value, ahead = np.zeros(n_x), np.zeros(n_x)  # V_h+1, gamma V_h+1
    drawn_for = np.full(n_x, -1, np.int64)
    largest, rise, unseen = 0.0, 0.0, 0.0
    for x in range(n_x):
        for o in range(n_options):
            bound[x, o] = reward[x, o]  # exact at the last stage
            largest = max(largest, abs(reward[x, o]))
            if reward[x, o] > reward[x, best[x]]:
                best[x] = o
        second[x] = _highest(bound, x, best[x])
    for h in range(horizon - 1, -1, -1):
        steepest = most = -np.inf
        size = mean = 0.0
        for x in range(n_x):
            steepest = max(steepest, gamma * value[x] - ahead[x])
            ahead[x] = gamma * value[x]
            most, size = max(most, ahead[x]), max(size, abs(ahead[x]))
            mean += ahead[x] / n_x
        if each > 0.0:
            unseen = mean
        else:
            steepest = max(steepest, gamma * v_next[h] - unseen)
            unseen = gamma * v_next[h]
            size = max(size, abs(unseen))
        rise += steepest
        slack = 1e-9 * (size + largest)
        for x in range(n_x):
            for a in range(n_actions):
                values[h, x, a] = 0.0 if done[x] else -np.inf
            value[x] = 0.0
            if done[x]:
                continue
            top = best[x]
            if each > 0.0 and rest[x, top] > LEFT:
                draw_on(models, resume, each, ahead, most, -np.inf, drawn_for, x, top)
            highest = _worth(models, ahead, unseen, x, top)
            bound[x, top] = highest - rise
            values[h, x, top % n_actions] = highest
            if second[x] + rise >= highest - slack:
                for o in range(n_options):
                    if o == best[x] or bound[x, o] + rise < highest - slack:
                        continue
                    if each > 0.0 and rest[x, o] > LEFT:
                        worth = draw_on(
                            models, resume, each, ahead, most, highest - slack, drawn_for, x, o
                        )
                        bound[x, o] = worth - rise
                        if worth < highest - slack:
                            continue
                    worth = _worth(models, ahead, unseen, x, o)
                    bound[x, o] = worth - rise
                    a = o % n_actions
                    values[h, x, a] = max(values[h, x, a], worth)
                    if worth > highest:
                        highest, top = worth, o
                best[x] = top
                second[x] = _highest(bound, x, top)
            value[x] = highest


@_inner
def _worth(models: SampledModels, ahead: FloatArray, unseen: float, x: int, o: int) -> float:
    """The value of an option whose successors are all drawn."""
    succ, weight, listed, rest, reward = models
    worth: float = reward[x, o] + rest[x, o] * unseen
    places, weights = succ[x, o], weight[x, o]
    for k in range(_at(listed[x, o])):
        worth += weights[k] * ahead[_at(places[k])]
    return worth


@_inner
def _highest(bound: FloatArray, x: int, but: int) -> float:
    """The highest bound of the options of x but one."""
    highest = -np.inf
    for o in range(bound.shape[1]):
        if o != but:
            highest = max(highest, bound[x, o])
    return highest
