"""Backward induction: optimal values of each of the H stages of an episode.

    Q_h(x, y, a) = max_b  R_b(x, a) + sum_k w_b(x, a, k) G_h(y, x_k) + rest_b(x, a) beyond_h(y)
                   + min(bonus_h, v_h),      all of it clipped at v_h
    V_h(x, y)    = max_a Q_h(x, y, a),       0 where the episode is over
    G_h(y, x')   = sum_j P(j | y, x') (R_Q(y, x', j) + gamma V_h+1(x', y_j))
    bonus_h      = flat(x, a) + slope(x, a) v_h + spread(x, a) sqrt(Var G_h)
    v_h          = r_span sum_i gamma^i, the largest return of the H - h steps left

for h = H - 1 down to 0, with V_H = 0. Where the machine is known, x is a world state and y a
machine state; if it is not, x is a pair of both and there is one y. G_h is the value of arriving
somewhere at the end of step h. Only successors that were seen are listed; `rest` weighs
what was not, and `beyond` is its value: v_h, or the sum of G_h(y, .) over all x.

NumPy's version of this is `reference.backward_induction`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from qrmax.errors import ParameterError
from qrmax.planning.arrays import Belief, Stages
from qrmax.planning.compilation import compiled, inner

if TYPE_CHECKING:  # numba does not read annotations
    from collections.abc import Callable

    from numpy.typing import NDArray

    from qrmax.empirical.successors import Seen
    from qrmax.planning.arrays import BoolArray, EnvModel, FloatArray, IntArray, TaskModel

    IndexArray = NDArray[np.uint64]

LANES = 4
"""Number of options per batch: successors are looked up once for all of them."""

NEVER = 2**31 - 1

NO_LIMIT = 1e290
"""As `r_span`, if values are not to be clipped."""

NO_CHOICE: IntArray = np.empty((0, 0, 0), dtype=np.int32)
"""In place of a policy if none is asked for."""

_compiled, _inner = compiled, inner
_at = cast("Callable[[Any], int]", np.uint64)  # an index that needs no check for being negative


def make_belief(n_x: int, n_options: int, n_succ: int) -> Belief:
    """Allocate models in which every option is unknown."""
    shape = (n_x, -(-n_options // LANES) * LANES)
    reward = np.full(shape, np.inf)
    reward[:, n_options:] = -np.inf
    return Belief(
        succ=np.zeros((n_x, n_succ), dtype=np.int32),
        listed=np.zeros(n_x, dtype=np.int32),
        weight=np.zeros((n_x, n_succ, shape[1])),
        rest=np.zeros(shape),
        reward=reward,
        flat=np.zeros(shape),
        slope=np.zeros(shape),
        spread=np.zeros(shape),
    )


class Feeders(NamedTuple):
    """Predecessors of each x: `feeder` up to `ends[x]`, from the end of the x before."""

    ends: IntArray  # [x]
    feeder: IntArray


def make_stages(
    horizon: int,
    gamma: float,
    r_span: float,
    shape: tuple[int, int],
    *,
    optimistic_prior: bool = False,
) -> Stages:
    """Allocate a plan of `horizon` stages with tables `[y, x]` of this shape.

    >>> make_stages(3, 0.5, 2.0, (1, 10)).v_max.tolist()
    [3.5, 3.0, 2.0]
    """
    try:
        ahead, beyond = np.zeros((horizon, *shape)), np.zeros((horizon, shape[0]))
    except MemoryError as error:
        raise ParameterError(
            f"horizon is {horizon}: planning for {shape[0] * shape[1]} pairs takes "
            f"{horizon * shape[0] * shape[1] * 8 / 1e9:,.0f} GB of memory; give a smaller one"
        ) from error
    v_max = largest_returns(horizon, gamma, r_span)
    return Stages(gamma, v_max, optimistic_prior, ahead, beyond)


def largest_returns(horizon: int, gamma: float, r_span: float) -> FloatArray:
    """v_h, the largest return of the stages from h on.

    >>> largest_returns(3, 0.5, 2.0).tolist()
    [3.5, 3.0, 2.0]
    """
    v_max, most = np.empty(horizon), 0.0
    for h in reversed(range(horizon)):
        most = r_span + gamma * most
        v_max[h] = most
    return v_max


@_compiled
def backward_induction(
    belief: Belief,
    task: TaskModel,
    since: IntArray,
    stale: BoolArray,
    stages: Stages,
    choice: IntArray,
) -> None:
    """Fill the stages, and `choice[h, y, x]` with the first of the best options unless it is empty.

    `since[y, x]` is the first stage to plan for that pair, since it cannot be reached earlier:
    before, it is taken to be worth v_max. Where it is NEVER, say because the episode is over there,
    it is worth 0. Without a machine, only pairs are planned for that are `stale[x]`: the others can
    lead to nothing that has changed since the stages were filled before.

    What an option is worth is written out four times for the four lanes, and once more in
    `stage_values` and in the agents' step loop: calls that are given arrays would cost more than
    what they do.
    """
    succ, listed, weight = belief.succ.reshape(-1), belief.listed, belief.weight.reshape(-1)
    rest, reward = belief.rest.reshape(-1), belief.reward.reshape(-1)
    flat, slope = belief.flat.reshape(-1), belief.slope.reshape(-1)
    spread, gains = belief.spread.reshape(-1), stages.ahead.reshape(-1)
    gamma, v_max, optimistic_prior, ahead, beyond = stages
    horizon, n_y, n_x = ahead.shape
    n_succ, n_options = belief.weight.shape[1:]
    alone = task.next_state.size == 1 and task.reward[0, 0] == 0.0  # there is no machine
    varies, records = np.any(spread > 0.0), choice.size > 0
    adds = varies or np.any(flat > 0.0) or np.any(slope > 0.0)
    one, two, three, below = _at(1), _at(2), _at(3), _at(n_options)
    value = np.zeros((n_y, n_x))  # V_h+1, then V_h
    after = value.reshape(-1)
    paid, share, place = _on_arrival(task, gamma)
    for h in range(horizon - 1, -1, -1):
        top = v_max[h]
        for y in range(n_y):
            if alone:
                for x in range(n_x):
                    if stale[x]:
                        ahead[h, y, x] = gamma * value[y, x]
            else:
                for x in range(n_x):
                    ahead[h, y, x] = paid[y, x]
                for j in range(share.shape[0]):
                    for x in range(n_x):
                        ahead[h, y, x] += share[j, y, x] * after[place[j, y, x]]
            beyond[h, y] = top if optimistic_prior else np.sum(ahead[h, y])
        for y in range(n_y):
            unseen, row = beyond[h, y], _at((h * n_y + y) * n_x)
            for x in range(n_x):
                if since[y, x] > h or (alone and not stale[x]):
                    if since[y, x] < NEVER:
                        value[y, x] = top
                    continue
                best = -np.inf
                for lane in range(0, n_options, LANES):
                    o = _at(x * n_options + lane)
                    worth0 = worth1 = worth2 = worth3 = 0.0
                    var0 = var1 = var2 = var3 = 0.0
                    k, e = _at(x * n_succ), _at(x * n_succ * n_options + lane)
                    for _ in range(listed[x]):
                        gain = gains[row + _at(succ[k])]
                        worth0 += weight[e] * gain
                        worth1 += weight[e + one] * gain
                        worth2 += weight[e + two] * gain
                        worth3 += weight[e + three] * gain
                        k, e = k + one, e + below
                    if varies:
                        k, e = _at(x * n_succ), _at(x * n_succ * n_options + lane)
                        for _ in range(listed[x]):
                            gain = gains[row + _at(succ[k])]
                            var0 += weight[e] * (gain - worth0) * (gain - worth0)
                            var1 += weight[e + one] * (gain - worth1) * (gain - worth1)
                            var2 += weight[e + two] * (gain - worth2) * (gain - worth2)
                            var3 += weight[e + three] * (gain - worth3) * (gain - worth3)
                            k, e = k + one, e + below
                    total0 = worth0 + (reward[o] + rest[o] * unseen)
                    total1 = worth1 + (reward[o + one] + rest[o + one] * unseen)
                    total2 = worth2 + (reward[o + two] + rest[o + two] * unseen)
                    total3 = worth3 + (reward[o + three] + rest[o + three] * unseen)
                    if adds:
                        bonus0 = flat[o] + slope[o] * top
                        bonus1 = flat[o + one] + slope[o + one] * top
                        bonus2 = flat[o + two] + slope[o + two] * top
                        bonus3 = flat[o + three] + slope[o + three] * top
                        if varies:
                            bonus0 += spread[o] * np.sqrt(var0)
                            bonus1 += spread[o + one] * np.sqrt(var1)
                            bonus2 += spread[o + two] * np.sqrt(var2)
                            bonus3 += spread[o + three] * np.sqrt(var3)
                        total0 += bonus0 if bonus0 < top else top
                        total1 += bonus1 if bonus1 < top else top
                        total2 += bonus2 if bonus2 < top else top
                        total3 += bonus3 if bonus3 < top else top
                    if records:
                        for i, worth in enumerate((total0, total1, total2, total3)):
                            if best < top and worth > best:
                                best = worth
                                choice[h, y, x] = lane + i
                    total0 = total0 if total0 > total1 else total1
                    total2 = total2 if total2 > total3 else total3
                    total0 = total0 if total0 > total2 else total2
                    best = best if best > total0 else total0
                    if best >= top:
                        break
                value[y, x] = best if best < top else top


@_inner
def _on_arrival(task: TaskModel, gamma: float) -> tuple[FloatArray, FloatArray, IndexArray]:
    """Reward and successors of the machine at (y, x), looked up once for all stages.

    What it pays, `[y, x]`; how much each of its outcomes counts, and where in a flat table `[y, x]`
    it leads, `[j, y, x]`.
    """
    label, next_state, prob, reward = task
    n_y, n_x, n_j = next_state.shape[0], label.size, next_state.shape[2]
    paid = np.empty((n_y, n_x))
    share = np.empty((n_j, n_y, n_x))
    place = np.empty((n_j, n_y, n_x), np.uint64)  # as `_at`
    for y in range(n_y):
        for x in range(n_x):
            paid[y, x] = reward[y, label[x]]
            for j in range(n_j):
                share[j, y, x] = gamma * prob[y, label[x], j]
                place[j, y, x] = next_state[y, label[x], j] * n_x + x
    return paid, share, place


@_compiled
def stage_values(
    belief: Belief, stages: Stages, h: int, y: int, x: int, values: FloatArray
) -> None:
    """Q_h(x, y, .)."""
    succ, listed, weight, rest, reward, flat, slope, spread = belief
    gains, unseen, top = stages.ahead[h, y], stages.beyond[h, y], stages.v_max[h]
    values[:] = -np.inf
    for o in range(reward.shape[1]):
        worth = 0.0
        for k in range(listed[x]):
            worth += weight[x, k, o] * gains[succ[x, k]]
        bonus = flat[x, o] + slope[x, o] * top
        if spread[x, o] > 0.0:
            variance = 0.0
            for k in range(listed[x]):
                off = gains[succ[x, k]] - worth
                variance += weight[x, k, o] * off * off
            bonus += spread[x, o] * np.sqrt(variance)
        worth += reward[x, o] + rest[x, o] * unseen
        worth += min(bonus, top)
        a = o % values.size
        values[a] = max(values[a], min(worth, top))


@_compiled
def stages_reached(
    succ: IntArray, task: TaskModel, done: BoolArray, starts: BoolArray, since: IntArray
) -> None:
    """The first stage at which an episode can reach each pair (y, x), into `since`; NEVER if over.

    `succ[x, k]` is negative if there are fewer successors.
    """
    n_y, n_x = done.shape
    pairs = np.empty(done.size, np.int32)
    since[:] = NEVER
    found = 0
    for y in range(n_y):
        for x in range(n_x):
            if starts[y, x] and not done[y, x]:
                since[y, x] = 0
                pairs[found] = y * n_x + x
                found += 1
    at = 0
    while at < found:
        y, x = pairs[at] // n_x, pairs[at] % n_x
        at += 1
        for k in range(succ.shape[1]):
            x_next = succ[x, k]
            if x_next < 0:
                break
            y_next = task.next_state[y, task.label[x_next], 0]
            if since[y_next, x_next] == NEVER and not done[y_next, x_next]:
                since[y_next, x_next] = since[y, x] + 1
                pairs[found] = y_next * n_x + x_next
                found += 1


@_compiled
def list_feeders(seen: Seen) -> Feeders:
    """List the predecessors of each x."""
    listed, outcome = seen.listed, seen.outcome
    ends = np.zeros(listed.size, np.int32)
    for x in range(listed.size):
        for k in range(listed[x]):
            ends[outcome[x, k]] += 1
    ends[:] = np.cumsum(ends)
    feeder = np.empty(ends[-1], np.int32)
    place = ends.copy()
    for x in range(listed.size):
        for k in range(listed[x]):
            place[outcome[x, k]] -= 1
            feeder[place[outcome[x, k]]] = x
    return Feeders(ends, feeder)


@_compiled
def mark_upstream(feeders: Feeders, stale: BoolArray) -> None:
    """Mark all ancestors of what is marked."""
    ends, feeder = feeders
    waiting = np.empty(stale.size, np.int32)
    count = 0
    for x in range(stale.size):
        if stale[x]:
            waiting[count] = x
            count += 1
    at = 0
    while at < count:
        x = waiting[at]
        at += 1
        for i in range(0 if x == 0 else ends[x - 1], ends[x]):
            if not stale[feeder[i]]:
                stale[feeder[i]] = True
                waiting[count] = feeder[i]
                count += 1


@_compiled
def follow_stages(
    env: EnvModel,
    task: TaskModel,
    done: BoolArray,
    success: FloatArray,
    policy: IntArray,
    start: FloatArray,
    gamma: float,
    limit: int,
) -> tuple[float, float, float]:
    """Value of a policy `[h, q, s]`, its success, and the mean of length x success.

    The policy restarts after its last stage.
    """
    succ, prob, reward = env.succ, env.prob, env.reward
    label, next_state, task_prob, task_reward = task
    n_q, n_s = done.shape
    mass = start.copy()
    arrived = np.zeros((n_q, n_s))
    value, chance, lengths, discount = 0.0, 0.0, 0.0, 1.0
    for q in range(n_q):
        for s in range(n_s):
            if done[q, s]:
                chance += mass[q, s] * success[q, s]
                mass[q, s] = 0.0
    for step in range(limit):
        alive = 0.0
        for q in range(n_q):
            for s in range(n_s):
                weight = mass[q, s]
                if weight == 0.0:
                    continue
                mass[q, s] = 0.0
                a = policy[step % policy.shape[0], q, s]
                value += discount * weight * reward[s, a]
                for k in range(succ.shape[2]):
                    share = weight * prob[s, a, k]
                    if share > 0.0:
                        s_next = succ[s, a, k]
                        read = label[s_next]
                        value += discount * share * task_reward[q, read]
                        for j in range(task_prob.shape[2]):
                            arrived[next_state[q, read, j], s_next] += share * task_prob[q, read, j]
        for q in range(n_q):
            for s in range(n_s):
                weight = arrived[q, s]
                if weight > 0.0:
                    arrived[q, s] = 0.0
                    if done[q, s]:
                        chance += weight * success[q, s]
                        lengths += (step + 1) * weight * success[q, s]
                    else:
                        mass[q, s] = weight
                        alive += weight
        discount *= gamma
        if alive == 0.0:
            break
    return value, chance, lengths


@_compiled
def list_together(
    succ: IntArray, prob: FloatArray, together: IntArray, listed: IntArray, weight: FloatArray
) -> None:
    """One list of successors for all actions of a state, from one for each."""
    n_states, n_actions, n_succ = succ.shape
    for s in range(n_states):
        for a in range(n_actions):
            for i in range(n_succ):
                if prob[s, a, i] > 0.0:
                    k = 0
                    while k < listed[s] and together[s, k] != succ[s, a, i]:
                        k += 1
                    if k == listed[s]:
                        together[s, k] = succ[s, a, i]
                        listed[s] += 1
                    weight[s, k, a] += prob[s, a, i]
