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
from qrmax.planning.lanes import LANES, add, fill, largest, least, load, mul, part, root, sub

if TYPE_CHECKING:  # numba does not read annotations
    from collections.abc import Callable

    from numpy.typing import NDArray

    from qrmax.empirical.successors import Seen
    from qrmax.planning.arrays import BoolArray, EnvModel, FloatArray, IntArray, TaskModel

    IndexArray = NDArray[np.uint64]

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


FROM_SCRATCH = Feeders(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32))
"""In place of predecessors if nothing is kept."""


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


class Arrival(NamedTuple):
    """The machine of a plan that is kept up: its reward and successor at (y, x), and the reverse.

    `before` up to `ends[y, x]`, from the end of the pair before, lists the pairs y' n_x + x in
    which an arrival in x leads to y.
    """

    paid: FloatArray  # [y, x]
    place: IntArray  # [y, x], the machine state that follows
    ends: IntArray  # [y, x]
    before: IntArray


def make_arrival(n_y: int, n_x: int) -> Arrival:
    """Allocate the machine of a plan; nothing is known of it."""
    return Arrival(
        paid=np.zeros((n_y, n_x)),
        place=np.full((n_y, n_x), -1, dtype=np.int32),
        ends=np.zeros((n_y, n_x), dtype=np.int32),
        before=np.zeros(n_y * n_x, dtype=np.int32),
    )


@_compiled
def backward_induction(
    belief: Belief,
    task: TaskModel,
    since: IntArray,
    fresh: BoolArray,
    feeders: Feeders,
    arrival: Arrival,
    stages: Stages,
    choice: IntArray,
) -> None:
    """Fill the stages, and `choice[h, y, x]` with the first of the best options unless it is empty.

    `since[y, x]` is the first stage to plan for that pair, since it cannot be reached earlier:
    before, it is taken to be worth v_max. Where it is NEVER, say because the episode is over there,
    it is worth 0.

    With `feeders`, stages that were filled before are changed to what they would be from scratch.
    Only what may change is computed: at every stage the pairs of an x that is `fresh`, whose model
    or reach is another than before, and pairs with a successor whose value is another, be it by a
    bit. The prior must be optimistic then, and every label have one outcome.

    What an option is worth is written out here for four options at a time, and once more in
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
    sums, records = task.prob.shape[2] > 1 or not optimistic_prior, choice.size > 0
    varies = _any_positive(spread)
    adds = varies or _any_positive(flat) or _any_positive(slope)
    one, below, n_pairs = _at(1), _at(n_options), _at(n_y * n_x)
    since_of, value = since.reshape(-1), np.zeros(n_y * n_x)  # [y, x], V_h
    paid, share, place = _on_arrival(task, gamma)
    if not sums:
        _read_machine(task, arrival, fresh)
    pays, ends, before = arrival.paid.reshape(-1), arrival.ends.reshape(-1), arrival.before
    work = np.empty((3, n_y * n_x, 2), np.int32)  # (y, x) of all stages; of one stage, by turns
    queued = np.full(n_y * n_x, horizon + 1, np.int32)  # the last stage to compute; -1 if all
    every, blank, plain = feeders.ends.size == 0, 0, np.empty((2, n_y * n_x))
    if sums and not (adds or records):
        blank = _list_blank(belief, since, work[1], plain, queued)
    always, more = _list_pairs(since, fresh, every, work[0], queued), 0
    for h in range(horizon, -1, -1):  # V_horizon is 0
        top = v_max[h] if h < horizon else 0.0
        tops, here, earlier = fill(top), _at(h) * n_pairs, _at(max(h, 1) - 1) * n_pairs
        now, count, more = 1 + h % 2, always + more, 0
        for i in range(count):
            y = work[0, _at(i), 0] if i < always else work[now, _at(i - always), 0]
            x = work[0, _at(i), 1] if i < always else work[now, _at(i - always), 1]
            pair = _at(y * n_x + x)
            best = top if since_of[pair] < NEVER else 0.0
            if h < horizon and since_of[pair] <= h:
                row, unseen, best = here + _at(y * n_x), fill(beyond[h, y]), -np.inf
                for lane in range(0, n_options, LANES):
                    o = _at(x * n_options + lane)
                    worth = fill(0.0)
                    k, e = _at(x * n_succ), _at(x * n_succ * n_options + lane)
                    for _ in range(listed[_at(x)]):
                        worth = add(worth, mul(load(weight, e), fill(gains[row + _at(succ[k])])))
                        k, e = k + one, e + below
                    total = add(worth, add(load(reward, o), mul(load(rest, o), unseen)))
                    if adds:
                        bonus = add(load(flat, o), mul(load(slope, o), tops))
                        if varies:
                            variance = fill(0.0)
                            k, e = _at(x * n_succ), _at(x * n_succ * n_options + lane)
                            for _ in range(listed[_at(x)]):
                                off = sub(fill(gains[row + _at(succ[k])]), worth)
                                variance = add(variance, mul(mul(load(weight, e), off), off))
                                k, e = k + one, e + below
                            bonus = add(bonus, mul(load(spread, o), root(variance)))
                        total = add(total, least(bonus, tops))
                    if records:
                        for n in range(LANES):
                            if best < top and part(total, n) > best:
                                best = part(total, n)
                                choice[h, y, x] = lane + n
                    best = max(best, largest(total))
                    if best >= top:
                        best = top
                        break
            elif i >= always:
                continue
            if sums:
                value[pair] = best
            elif h > 0:  # what is ahead of those that arrive here
                begin, end = 0, 1
                if n_y > 1:
                    begin, end = ends[pair - one] if pair > 0 else 0, ends[pair]
                for b in range(begin, end):
                    origin = _at(before[_at(b)]) if n_y > 1 else pair
                    gain = pays[origin] + gamma * best
                    if every:
                        gains[earlier + origin] = gain
                    elif gains[earlier + origin] != gain:
                        gains[earlier + origin] = gain
                        y_before = before[_at(b)] // n_x if n_y > 1 else 0
                        for f in range(
                            feeders.ends[_at(x - 1)] if x > 0 else 0, feeders.ends[_at(x)]
                        ):
                            feeder = feeders.feeder[_at(f)]
                            if queued[_at(y_before * n_x + feeder)] >= h:
                                queued[_at(y_before * n_x + feeder)] = h - 1
                                work[3 - now, _at(more), 0] = y_before
                                work[3 - now, _at(more), 1] = feeder
                                more += 1
        for i in range(blank if h < horizon else 0):
            best = plain[0, i] + plain[1, i] * beyond[h, work[1, i, 0]]
            value[_at(work[1, i, 0] * n_x + work[1, i, 1])] = best if best < top else top
        for y in range(n_y if h > 0 else 0):
            beyond[h - 1, y] = v_max[h - 1]
            if sums:
                for x in range(n_x):
                    ahead[h - 1, y, x] = paid[y, x]
                for j in range(share.shape[0]):
                    if n_y == 1:  # the same as below, without looking up where it leads
                        for x in range(n_x):
                            ahead[h - 1, y, x] += share[j, y, x] * value[x]
                    else:
                        for x in range(n_x):
                            ahead[h - 1, y, x] += share[j, y, x] * value[place[j, y, x]]
            if not optimistic_prior:
                beyond[h - 1, y] = _sum(gains, earlier + _at(y * n_x), n_x)


@_inner
def _sum(array: FloatArray, begin: int, size: int) -> float:
    """The sum of a part of a flat array, in sixteen sums side by side."""
    first = second = third = fourth = fill(0.0)
    step, at = _at(LANES), begin
    for _ in range(size // (4 * LANES)):
        first, at = add(first, load(array, at)), at + step
        second, at = add(second, load(array, at)), at + step
        third, at = add(third, load(array, at)), at + step
        fourth, at = add(fourth, load(array, at)), at + step
    together = add(add(first, second), add(third, fourth))
    total = 0.0
    for i in range(LANES):
        total += part(together, i)
    for i in range(size // (4 * LANES) * (4 * LANES), size):
        total += array[begin + _at(i)]
    return total


@_inner
def _list_pairs(
    since: IntArray, fresh: BoolArray, every: bool, pairs: IntArray, queued: IntArray
) -> int:
    """List the pairs of fresh x, or `every` pair that is planned for, too; their number."""
    count = 0
    for x in range(fresh.size):
        for y in range(since.shape[0]):
            waits = queued[y * fresh.size + x] >= 0
            if waits and (fresh[x] or (every and since[y, x] < NEVER)):
                pairs[count, 0], pairs[count, 1] = y, x
                queued[y * fresh.size + x] = -1
                count += 1
    return count


@_inner
def _list_blank(
    belief: Belief, since: IntArray, pairs: IntArray, plain: FloatArray, queued: IntArray
) -> int:
    """List the pairs of x without any known successor; their number.

    Their value is reward + rest x beyond, `plain`: of the best reward, if `rest` is that of all.
    """
    listed, rest, reward = belief.listed, belief.rest, belief.reward
    count = 0
    for x in range(listed.size):
        best, alike = -np.inf, listed[x] == 0
        for o in range(reward.shape[1] if alike else 0):
            best = max(best, reward[x, o])
            alike = alike and (rest[x, o] == rest[x, 0] or reward[x, o] == -np.inf)
        for y in range(since.shape[0]):
            if alike and since[y, x] == 0:
                pairs[count, 0], pairs[count, 1] = y, x
                plain[0, count], plain[1, count] = best, rest[x, 0]
                queued[y * listed.size + x] = -1
                count += 1
    return count


@_inner
def _any_positive(array: FloatArray) -> bool:
    """Whether there is a number above 0."""
    found = False
    for i in range(array.size):
        found |= array[i] > 0.0
    return found


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


@_inner
def _read_machine(task: TaskModel, arrival: Arrival, fresh: BoolArray) -> None:
    """Update the machine; where it is another than before, x is fresh."""
    label, next_state, _, reward = task
    paid, place, ends, before = arrival
    n_y, n_x = paid.shape
    same = True
    for y in range(n_y):
        for x in range(n_x):
            follows = next_state[y, label[x], 0]
            if place[y, x] != follows or paid[y, x] != reward[y, label[x]]:
                place[y, x], paid[y, x] = follows, reward[y, label[x]]
                fresh[x] = True
                same = False
    if same:
        return
    ends[:] = 0
    for y in range(n_y):
        for x in range(n_x):
            ends[place[y, x], x] += 1
    total = 0
    for y in range(n_y):
        for x in range(n_x):
            total += ends[y, x]
            ends[y, x] = total
    for y in range(n_y):
        for x in range(n_x):
            follows = place[y, x]
            ends[follows, x] -= 1
            before[ends[follows, x]] = y * n_x + x
    for y in range(n_y):  # back from the beginnings
        for x in range(n_x):
            ends[place[y, x], x] += 1


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
