"""Every compiled planning kernel, together (numba's cache does not see edits in other files).

The factored Bellman backup never builds the product:

    G(q, s')   = R_Q(q, s') + gamma sum_q' P(q' | q, s') V(s', q')        the gain of reaching s'
    Q(s, q, a) = R_E(s, a)  + sum_s' P(s' | s, a) G(q, s')
    V(s, q)    = max_a Q(s, q, a),  0 if (s, q) is terminal

Both V and G are kept as tables `[q, s]`. A change of V(s, q) changes G(p, s) for the machine states
p that move to q on reading the label of s, and with it Q(s0, p, a) for the predecessors s0 of s:
this is the only way in which changes propagate, in a full solve as in an incremental one.

Unknown estimates are infinite: R_E(s, a) and G(q, s') before they are known. A backup that meets an
infinity yields the value `optimistic` instead, so that known and unknown parts of a model mix
without a mask. In a full model nothing is infinite. An incremental solve may have an optimistic
value for each (s, q, a) instead, and exploration bonuses that are added to Q(s, q, a).

**Order.** Machine layers (strongly connected components) are solved last first, and within a layer
one machine state after the other. For one machine state, G splits into the gain of leaving it,
which is fixed meanwhile, and the gain of staying in it; so V(., q) obeys a plain Bellman equation
of the size of the world, which is copied (to a `Block`) with the world states numbered by their
distance from the rewards. Initial values are computed in that order behind a moving front: a value
converges before others depend on it, and the number of backups per pair does not grow with the size
of the world, while plain sweeps, in whatever order, need more passes the longer the episodes are.
Further sweeps over the pairs whose successors have changed make it exact. Layers of several machine
states take rounds of this. With a reward on every step, such as a cost, there would be no distances
to measure; `potentials.py` removes it beforehand.

**Convergence** is relative: a change counts if it exceeds `tolerance` times the value, or, if there
are gains of both signs (`signed`), times the sum of the absolute values of the terms. At the end
every pair satisfies its Bellman equation up to that.

Rounds that converge slowly (recurrent tasks, gamma near 1) are extrapolated along the last change,
which removes the slowest mode of the error; the pauses between extrapolations grow, so that
convergence stays guaranteed. If a layer does not converge soon, `value_iteration.py` continues with
modified policy iteration, whose linear systems `policy_systems.py` solves.

Each kernel has a twin in `reference.py`. No fastmath, no threads: results are the same everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from qrmax.planning.arrays import Block, Chain, Worklist
from qrmax.planning.compilation import compiled, inlined, inner

if TYPE_CHECKING:  # numba does not read annotations
    from collections.abc import Callable

    from qrmax.planning.arrays import (
        BoolArray,
        EnvModel,
        Exploration,
        FloatArray,
        IntArray,
        Likeliest,
        Order,
        Rules,
        Tables,
        TaskModel,
    )

NO_EDGE = -1  # the end of a chain of predecessors
NOT_LINKED = -2  # an edge that is in no chain

ANY_ACTION = np.empty((0, 0), dtype=np.int32)
"""Given as the policy, it means: the best action."""

_NO_WORK = Worklist(
    np.empty((0, 0), np.int32),
    np.empty(0, np.int32),
    np.empty(0, np.int32),
    np.empty((0, 0), np.bool_),
)

_NEGLIGIBLE = 1e-300  # below this, relative changes are within the resolution of floats
_SPENT = 1e-18  # relative to the probability of success: the rest cannot change the sums
_LONG = 10_000  # steps after which other methods of comparison are faster
_REACH = 64  # distances behind the front within which changes are still backed up
_PATIENCE = 2  # rounds before the first extrapolation is prepared

# Unsigned numbers need no check for being negative, and divide far faster.
_unsigned = cast("Callable[[int], int]", np.uint32)  # there are fewer than 2**31 edges
_wide = cast("Callable[[int], int]", np.uint64)
_long = cast("Callable[[int], int]", np.int64)  # a literal would have a type of its own

# Functions called in inner loops are inlined and take plain arrays: passing a NamedTuple, or
# reading its fields in a loop, costs more than a backup. Loops are written out if a call of NumPy
# would take much longer to compile.
_compiled, _inner, _inlined = compiled, inner, inlined


# --- predecessors


@_inlined
def _link_pair(
    succ: IntArray, prob: FloatArray, head: IntArray, link: IntArray, s: int, a: int
) -> None:
    """Enter the successors of (s, a) into the chains of predecessors, each state once."""
    n_actions, width = succ.shape[1:]
    for k in range(width):
        if prob[s, a, k] > 0.0 and not _is_linked(succ, link, s, succ[s, a, k]):
            edge = (s * n_actions + a) * width + k
            link[edge] = head[succ[s, a, k]]
            head[succ[s, a, k]] = edge


@_inlined
def _is_linked(succ: IntArray, link: IntArray, s: int, target: int) -> bool:
    n_actions, width = succ.shape[1:]
    found = False
    for a in range(n_actions):
        for k in range(width):
            edge = (s * n_actions + a) * width + k
            found = found or (succ[s, a, k] == target and link[edge] != NOT_LINKED)
    return found


@_compiled
def unlink_replaced(
    succ: IntArray,
    prob: FloatArray,
    head: IntArray,
    link: IntArray,
    new: IntArray,
    s: int,
    a: int,
) -> None:
    """Take edges of (s, a) out of their chains if `new[k]` is to be their successor instead.

    Another action of s that leads to the old successor is linked in its place. Successors that are
    dropped without a replacement stay linked, which costs unnecessary backups at most.
    """
    n_actions, width = succ.shape[1:]
    for k in range(new.size):
        edge, target = (s * n_actions + a) * width + k, succ[s, a, k]
        if link[edge] == NOT_LINKED or new[k] == target:
            continue
        if head[target] == edge:
            head[target] = link[edge]
        else:
            before = head[target]
            while link[before] != edge:
                before = link[before]
            link[before] = link[edge]
        link[edge] = NOT_LINKED
        for other in range(n_actions):
            for j in range(width):
                leads = succ[s, other, j] == target and prob[s, other, j] > 0.0
                if other != a and leads and not _is_linked(succ, link, s, target):
                    edge = (s * n_actions + other) * width + j
                    link[edge] = head[target]
                    head[target] = edge


def link_predecessors(succ: IntArray, prob: FloatArray) -> tuple[IntArray, IntArray]:
    """The chains of predecessors of a whole world."""
    head = np.full(succ.shape[0], NO_EDGE, dtype=np.int32)
    link = np.full(succ.size, NOT_LINKED, dtype=np.int32)
    env_changed(succ, prob, head, link, _NO_WORK, 0, succ.shape[0] * succ.shape[1])
    return head, link


@_compiled
def env_changed(
    succ: IntArray,
    prob: FloatArray,
    head: IntArray,
    link: IntArray,
    work: Worklist,
    begin: int,
    end: int,
) -> None:
    """Queue the states of pairs (s, a) that have become known or changed.

    The pairs are those numbered s |A| + a from `begin` to `end`. Their successors are entered into
    the chains of predecessors, and (q, s) is queued for every machine state q of the worklist.
    """
    ring, first, length, waiting = work
    n_actions = succ.shape[1]
    for pair in range(begin, end):
        s = pair // n_actions
        _link_pair(succ, prob, head, link, s, pair - s * n_actions)
        for q in range(waiting.shape[0]):
            if not waiting[q, s]:
                waiting[q, s] = True
                place = first[q] + length[q]
                if place >= ring.shape[1]:
                    place -= ring.shape[1]
                ring[q, place] = s
                length[q] += 1


# --- the backup


@_inlined
def _action_value(
    succ: IntArray,
    prob: FloatArray,
    reward: FloatArray,
    gain: FloatArray,
    optimistic: float,
    q: int,
    s: int,
    a: int,
) -> float:
    """Q(s, q, a)."""
    total = reward[s, a]
    for k in range(succ.shape[2]):
        p = prob[s, a, k]
        if p > 0.0:  # padding must not meet an infinity: 0 * inf is not a number
            total += p * gain[q, succ[s, a, k]]
    if total == np.inf:
        total = optimistic
    return float(total)


@_inlined
def _mass(
    succ: IntArray, prob: FloatArray, reward: FloatArray, gain: FloatArray, q: int, s: int, a: int
) -> float:
    """The sum of the absolute values of the terms of Q(s, q, a)."""
    total = abs(reward[s, a])
    for k in range(succ.shape[2]):
        p = prob[s, a, k]
        if p > 0.0:
            total += p * abs(gain[q, succ[s, a, k]])
    return float(total)


@_inlined
def _gain(
    label: IntArray,
    next_state: IntArray,
    task_prob: FloatArray,
    task_reward: FloatArray,
    value: FloatArray,
    gamma: float,
    q: int,
    s: int,
) -> float:
    """G(q, s)."""
    total = task_reward[q, label[s]]
    for j in range(next_state.shape[2]):
        p = task_prob[q, label[s], j]
        if p > 0.0:
            total += gamma * p * value[next_state[q, label[s], j], s]
    return float(total)


@_inlined
def _leads_to(next_state: IntArray, task_prob: FloatArray, p: int, label: int, q: int) -> bool:
    """Whether the machine can move from p to q on this label."""
    found = False
    for j in range(next_state.shape[2]):
        found = found or (next_state[p, label, j] == q and task_prob[p, label, j] > 0.0)
    return found


def gains(task: TaskModel, value: FloatArray, gamma: float) -> FloatArray:
    """G as `[q, s]`, bit for bit as `_gain` computes it; NumPy is fast enough."""
    gain: FloatArray = np.take(task.reward, task.label, axis=1)
    states = np.arange(value.shape[1])
    for j in range(task.next_state.shape[2]):
        p = np.take(task.prob[:, :, j], task.label, axis=1)
        q_next = np.take(task.next_state[:, :, j], task.label, axis=1)
        np.add(gain, gamma * p * value[q_next, states], out=gain, where=p > 0.0)
    return gain


def greedy(env: EnvModel, tables: Tables, optimistic: float) -> IntArray:
    """The greedy policy, `[q, s]`: the first of equal actions, 0 in terminal pairs."""
    policy = np.zeros(tables.gain.shape, dtype=np.int32)
    _choose(env.succ, env.prob, env.reward, tables.gain, tables.done, optimistic, policy)
    return policy


@_compiled
def _choose(
    succ: IntArray,
    prob: FloatArray,
    reward: FloatArray,
    gain: FloatArray,
    done: BoolArray,
    optimistic: float,
    policy: IntArray,
) -> None:
    for q in range(gain.shape[0]):
        for s in range(gain.shape[1]):
            if not done[q, s]:
                best = -np.inf
                for a in range(succ.shape[1]):
                    worth = _action_value(succ, prob, reward, gain, optimistic, q, s, a)
                    if worth > best:
                        best = worth
                        policy[q, s] = a


@_compiled
def action_values(env: EnvModel, tables: Tables, optimistic: float) -> FloatArray:
    """Q as `[q, s, a]`, 0 in terminal pairs."""
    succ, prob, reward = env.succ, env.prob, env.reward
    gain, done = tables.gain, tables.done
    table = np.zeros((gain.shape[0], gain.shape[1], succ.shape[1]))
    for q in range(gain.shape[0]):
        for s in range(gain.shape[1]):
            if not done[q, s]:
                for a in range(succ.shape[1]):
                    table[q, s, a] = _action_value(succ, prob, reward, gain, optimistic, q, s, a)
    return table


@_compiled
def action_values_at(
    succ: IntArray,
    prob: FloatArray,
    reward: FloatArray,
    gain: FloatArray,
    optimistic: float,
    q: int,
    s: int,
) -> FloatArray:
    """Q(s, q, .), even if (s, q) is terminal.

    Python calls this for single pairs: plain arrays are passed twice as fast as a NamedTuple.
    """
    values = np.empty(succ.shape[1])
    for a in range(values.size):
        values[a] = _action_value(succ, prob, reward, gain, optimistic, q, s, a)
    return values


# --- a full solve, one machine layer at a time


@_compiled
def solve_layer(
    env: EnvModel,
    task: TaskModel,
    value: FloatArray,
    done: BoolArray,
    policy: IntArray,
    layer: IntArray,
    rules: Rules,
    max_backups: int,
    max_sweeps: int,
    from_nothing: bool,
) -> tuple[int, bool]:
    """Find V for one machine layer, given V of all layers it leads to.

    A round takes at most `max_sweeps` sweeps over a machine state, and there are more rounds until
    `max_backups` are used up. Returns the number of backups, and whether the layer converged.
    """
    backups = 0
    wait, waited = _PATIENCE, 0
    before = between = np.empty(0)
    while True:
        settled = True
        for q in layer:
            count, changed, finished = _solve_block(
                env, task, value, done, policy, q, rules, max_sweeps, from_nothing
            )
            backups += count
            settled = settled and finished and (layer.size == 1 or not changed)
        if settled or backups >= max_backups:
            return backups, settled
        from_nothing = False
        waited += 1
        if waited == wait:
            before = _copy_layer(value, layer)
        elif waited == wait + 1:
            between = _copy_layer(value, layer)
        elif waited == wait + 2:
            _extrapolate(value, layer, before, between)
            wait, waited = wait + (wait + 1) // 2, 0


@_inner
def _solve_block(
    env: EnvModel,
    task: TaskModel,
    value: FloatArray,
    done: BoolArray,
    policy: IntArray,
    q: int,
    rules: Rules,
    max_sweeps: int,
    from_nothing: bool,
) -> tuple[int, bool, bool]:
    """Bring V(., q) up to date, given V of the other machine states, in a limited number of sweeps.

    Returns the number of backups, whether anything changed and whether it finished.
    """
    leaving, staying = _arrivals(task, value, q, rules.gamma)
    order, ends, position = _by_distance(env, done, q, leaving, staying)
    block = _gather(env, policy, q, leaving, staying, order, position)
    v = np.empty(order.size)
    fresh = np.empty(v.size, np.bool_)  # a successor has changed since the last backup
    for i in range(order.size):
        v[i], fresh[i] = value[q, order[i]], True
    backups = _build_up(block, v, ends, rules.tolerance) if from_nothing else 0
    first = _long(0)  # the first such pair
    changed = from_nothing
    for _ in range(max_sweeps):
        if first >= v.size:
            break
        count, changes, first = _sweep(env, block, v, rules, order, position, fresh, first)
        backups += count
        changed = changed or changes
    value[q] = 0.0  # states from which no reward is reachable
    for i in range(order.size):
        value[q, order[i]] = v[i]
    return backups, changed, first >= v.size


@_inner
def _arrivals(
    task: TaskModel, value: FloatArray, q: int, gamma: float
) -> tuple[FloatArray, FloatArray]:
    """G(q, s) in two parts: G(q, s) = leaving[s] + staying[s] V(s, q)."""
    label, next_state, task_prob, task_reward = task
    leaving, staying = np.empty(value.shape[1]), np.empty(value.shape[1])
    for s in range(value.shape[1]):
        leaving[s], staying[s] = task_reward[q, label[s]], 0.0
        for j in range(next_state.shape[2]):
            weight = gamma * task_prob[q, label[s], j]
            q_next = next_state[q, label[s], j]
            if q_next != q:
                leaving[s] += weight * value[q_next, s]
            else:
                staying[s] += weight
    return leaving, staying


@_inner
def _by_distance(
    env: EnvModel, done: BoolArray, q: int, leaving: FloatArray, staying: FloatArray
) -> tuple[IntArray, IntArray, IntArray]:
    """The world states by the number of steps, within q, to a reward that is not 0.

    If most states have rewards themselves, only leaving q counts, and states that cannot come last.
    Returns the states in that order, the end of each distance in it, and the place of each state in
    the order (-1: the state is terminal, or no reward is reachable from it).
    """
    reward, head, link = env.reward, env.head, env.link
    n_states, n_actions, width = env.succ.shape
    per_state = n_actions * width
    order = np.empty(n_states, np.int32)
    position = np.empty(n_states, np.int32)
    pays = np.empty(n_states, np.bool_)
    paying = 0
    for s in range(n_states):
        position[s], pays[s] = -1, False
        for a in range(n_actions):
            pays[s] = pays[s] or reward[s, a] != 0.0
        paying += 1 if pays[s] else 0
    late = 2 * paying > n_states
    ends = np.empty(n_states + 1, np.int32)
    size, n_ends, at = 0, 0, 0
    for part in range(2 if late else 1):
        for s in range(n_states):
            if pays[s] and late == (part == 1):
                size = _enter(done, q, s, order, position, size)
            if part == 0 and leaving[s] != 0.0:
                edge = head[s]
                while edge != NO_EDGE:
                    size = _enter(done, q, edge // per_state, order, position, size)
                    edge = link[edge]
        while at < size:
            end = size
            ends[n_ends] = end
            n_ends += 1
            while at < end:
                s = order[at]
                at += 1
                if staying[s] > 0.0:
                    edge = head[s]
                    while edge != NO_EDGE:
                        size = _enter(done, q, edge // per_state, order, position, size)
                        edge = link[edge]
    return order[:size].copy(), ends[:n_ends].copy(), position


@_inlined
def _enter(done: BoolArray, q: int, s: int, order: IntArray, position: IntArray, size: int) -> int:
    if position[s] < 0 and not done[q, s]:
        position[s] = size
        order[size] = s
        size += 1
    return size


@_inner
def _gather(
    env: EnvModel,
    policy: IntArray,
    q: int,
    leaving: FloatArray,
    staying: FloatArray,
    order: IntArray,
    position: IntArray,
) -> Block:
    """The Bellman equations of V(., q), in order: a plain MDP in which leaving q is a reward.

    Self-loops are solved for: v = c + w v + rest becomes v = (c + rest) / (1 - w).
    """
    succ, prob, reward = env.succ, env.prob, env.reward
    n_actions = succ.shape[1] if policy.shape[0] == 0 else 1
    constant = np.empty((order.size, n_actions))
    target = np.empty((order.size, n_actions, succ.shape[2]), np.int32)
    weight = np.empty(target.shape)
    for i in range(order.size):
        s = order[i]
        for choice in range(n_actions):
            a = choice if policy.shape[0] == 0 else policy[q, s]
            constant[i, choice] = reward[s, a]
            waits = 0.0
            for k in range(succ.shape[2]):
                s_next, p = succ[s, a, k], prob[s, a, k]
                target[i, choice, k], weight[i, choice, k] = 0, 0.0
                constant[i, choice] += p * leaving[s_next]
                if s_next == s:
                    waits += p * staying[s]
                elif p > 0.0 and position[s_next] >= 0:
                    target[i, choice, k] = position[s_next]
                    weight[i, choice, k] = p * staying[s_next]
            if 0.0 < waits < 1.0:
                constant[i, choice] /= 1.0 - waits
                for k in range(succ.shape[2]):
                    weight[i, choice, k] /= 1.0 - waits
    return Block(constant, target, weight)


@_inlined
def _best(
    constant: FloatArray, target: IntArray, weight: FloatArray, v: FloatArray, i: int
) -> tuple[float, int]:
    """The value of place i in a block, and the first choice that attains it."""
    best, choice = -np.inf, 0
    for a in range(target.shape[1]):
        total = constant[i, a]
        for k in range(target.shape[2]):
            total += weight[i, a, k] * v[target[i, a, k]]
        if total > best:
            best, choice = total, a
    return best, choice


@_inner
def _build_up(block: Block, v: FloatArray, ends: IntArray, tolerance: float) -> int:
    """Compute initial values behind a front that moves away from the rewards.

    Sweep t covers the distances up to t, from just before the nearest one that still changed in the
    previous sweep. Returns the number of backups.
    """
    constant, target, weight = block
    backups, low = 0, 0
    for front in range(ends.size):
        if front >= _REACH:
            low = max(low, ends[front - _REACH])
        nearest = ends[front]
        for i in range(low, ends[front]):
            new, _ = _best(constant, target, weight, v, i)
            if abs(new - v[i]) > tolerance * abs(new) + _NEGLIGIBLE:
                nearest = min(nearest, i)
            v[i] = new
        backups += ends[front] - low
        distance = front + 1  # the number of distances that end at or before the nearest
        while distance > 0 and ends[distance - 1] > nearest:
            distance -= 1
        low = ends[distance - 2] if distance >= 2 else 0
    return backups


@_inner
def _sweep(
    env: EnvModel,
    block: Block,
    v: FloatArray,
    rules: Rules,
    order: IntArray,
    position: IntArray,
    fresh: BoolArray,
    first: int,
) -> tuple[int, bool, int]:
    """Back up the marked places, nearest first, and mark the predecessors of those that change.

    Returns the number of backups, whether there were changes, and the first place that is marked
    for the next sweep.
    """
    head, link, per_state = env.head, env.link, env.succ.shape[1] * env.succ.shape[2]
    constant, target, weight = block
    backups, changed, nearest = 0, False, v.size
    for i in range(first, v.size):
        if not fresh[i]:
            continue
        fresh[i] = False
        backups += 1
        new, choice = _best(constant, target, weight, v, i)
        change = abs(new - v[i])
        if change <= rules.tolerance * abs(new) + _NEGLIGIBLE:
            continue
        if rules.signed:
            mass = abs(constant[i, choice])
            for k in range(target.shape[2]):
                mass += weight[i, choice, k] * abs(v[target[i, choice, k]])
            if change <= rules.tolerance * mass:
                continue
        v[i] = new
        changed = True
        edge = head[order[i]]
        while edge != NO_EDGE:
            heard = position[edge // per_state]
            if heard >= 0 and heard != i:  # self-loops are solved for
                fresh[heard] = True
                if heard < i:
                    nearest = min(nearest, heard)
            edge = link[edge]
    return backups, changed, nearest


@_inner
def _copy_layer(value: FloatArray, layer: IntArray) -> FloatArray:
    n_states = value.shape[1]
    copy = np.empty(layer.size * n_states)
    for i in range(layer.size):
        for s in range(n_states):
            copy[i * n_states + s] = value[layer[i], s]
    return copy


@_inner
def _extrapolate(
    value: FloatArray, layer: IntArray, before: FloatArray, between: FloatArray
) -> None:
    """Extrapolate along the last change, by its rate of decay."""
    n_states = value.shape[1]
    dot = square = 0.0
    for i in range(layer.size):
        for s in range(n_states):
            j = i * n_states + s
            dot += (value[layer[i], s] - between[j]) * (between[j] - before[j])
            square += (between[j] - before[j]) * (between[j] - before[j])
    if 0.0 < dot < square:
        jump = dot / (square - dot)  # rate + rate^2 + ..., the changes still to come
        for i in range(layer.size):
            for s in range(n_states):
                value[layer[i], s] += jump * (value[layer[i], s] - between[i * n_states + s])


# --- an incremental solve: a worklist of the pairs affected by changes


@_inlined
def _push_sources(
    head: IntArray,
    link: IntArray,
    per_state: int,
    ring: IntArray,
    first: IntArray,
    length: IntArray,
    waiting: BoolArray,
    q: int,
    s: int,
) -> None:
    """Put the predecessors of s on the worklist of q, each once."""
    waiting_q = waiting[q]
    edge = head[s]
    while edge != NO_EDGE:
        source = _unsigned(edge) // per_state
        if not waiting_q[source]:
            waiting_q[source] = True
            place = first[q] + length[q]
            if place >= ring.shape[1]:
                place -= ring.shape[1]
            ring[q, place] = source
            length[q] += 1
        edge = link[_unsigned(edge)]


@_compiled
def task_changed(
    env: EnvModel, task: TaskModel, tables: Tables, work: Worklist, gamma: float, q: int, s: int
) -> None:
    """Back up the predecessors of s: the machine's transition in q on arriving in s has changed."""
    label, next_state, task_prob, task_reward = task
    value, gain = tables.value, tables.gain
    ring, first, length, waiting = work
    per_state = _unsigned(env.succ.shape[1] * env.succ.shape[2])
    gain[q, s] = _gain(label, next_state, task_prob, task_reward, value, gamma, q, s)
    _push_sources(env.head, env.link, per_state, ring, first, length, waiting, q, s)


def value_changed(
    env: EnvModel, task: TaskModel, tables: Tables, work: Worklist, gamma: float, q: int, s: int
) -> None:
    """Propagate a change of V(s, q) to its predecessors, in every layer."""
    label = task.label[s]
    leads = (task.next_state[:, label] == q) & (task.prob[:, label] > 0.0)
    for p in np.nonzero(leads.any(axis=1))[0].tolist():
        task_changed(env, task, tables, work, gamma, p, s)


@_compiled
def settle(
    env: EnvModel,
    task: TaskModel,
    tables: Tables,
    work: Worklist,
    order: Order,
    rules: Rules,
    exploration: Exploration | None,
) -> int:
    """Process the worklist, layer by layer; returns the number of backups.

    There are two compiled forms, without and with `exploration`. Agents spend their time in this
    loop, so it reads flat arrays and rows of tables, with unsigned numbers, which need no check for
    being negative: together twice as fast.
    """
    all_succ, all_prob, reward, head, link = env
    succ, prob = all_succ.reshape(-1), all_prob.reshape(-1)
    label, next_state, task_prob, task_reward = task
    value, gain, done = tables
    ring, first, length, waiting = work
    states, ends, feeders, feeder_ends = order
    gamma, tolerance, optimistic, signed = rules
    n_states = value.shape[1]
    n_actions, width = all_succ.shape[1], all_succ.shape[2]
    per_state = _unsigned(env.succ.shape[1] * env.succ.shape[2])
    backups, layer, begin = 0, 0, 0
    while layer < ends.size:
        busy = False
        for place in range(begin, ends[layer]):
            q = states[place]
            ring_q, waiting_q = ring[q], waiting[q]
            value_q, gain_q, done_q = value[q], gain[q], done[q]
            for _ in range(length[q]):  # those queued when this round begins
                s = _unsigned(ring_q[first[q]])
                first[q] = first[q] + 1 if first[q] + 1 < n_states else 0
                length[q] -= 1
                waiting_q[s] = False
                if done_q[s]:
                    continue
                backups += 1
                if exploration is None:
                    new, action = _best_of_row(
                        succ, prob, reward, gain_q, optimistic, per_state, n_actions, width, s
                    )
                else:
                    new, action = _best_explored(
                        all_succ, all_prob, reward, gain, exploration, q, s
                    )
                change = abs(new - value_q[s])
                if change <= tolerance * abs(new) + _NEGLIGIBLE:
                    continue
                if signed:
                    mass = _mass(all_succ, all_prob, reward, gain, q, s, action)
                    if exploration is not None:
                        mass += abs(exploration.env_bonus[s, action])
                        mass += abs(exploration.bonus[q, s, action])
                    if mass < np.inf and change <= tolerance * mass:
                        continue
                value_q[s] = new
                busy = True
                for i in range(feeder_ends[q - 1] if q > 0 else 0, feeder_ends[q]):
                    p = feeders[i]  # as `value_changed` does, without its calls
                    if _leads_to(next_state, task_prob, p, label[s], q):
                        gain[p, s] = _gain(
                            label, next_state, task_prob, task_reward, value, gamma, p, s
                        )
                        _push_sources(head, link, per_state, ring, first, length, waiting, p, s)
        if not busy:
            begin = ends[layer]
            layer += 1
    return backups


@_inlined
def _best_of_row(
    succ: IntArray,
    prob: FloatArray,
    reward: FloatArray,
    gain: FloatArray,
    optimistic: float,
    per_state: int,
    n_actions: int,
    width: int,
    s: int,
) -> tuple[float, int]:
    """V(s, q) and the first action that attains it, from flat arrays and one row of gains."""
    best, action = -np.inf, 0
    edge = _wide(s) * _wide(per_state)
    for a in range(n_actions):
        total = reward[s, a]
        for _ in range(width):
            p = prob[edge]
            if p > 0.0:
                total += p * gain[_unsigned(succ[edge])]
            edge += _wide(1)
        if total == np.inf:
            total = optimistic
        if total > best:
            best, action = total, a
    return best, action


@_inlined
def _best_explored(
    succ: IntArray,
    prob: FloatArray,
    reward: FloatArray,
    gain: FloatArray,
    exploration: Exploration,
    q: int,
    s: int,
) -> tuple[float, int]:
    """V(s, q) and the first action that attains it, with bonuses and optimistic values."""
    best, action = -np.inf, 0
    for a in range(succ.shape[1]):
        total = _action_value(succ, prob, reward, gain, np.inf, q, s, a)
        if total == np.inf:
            total = exploration.unknown[q, s, a]
        else:
            total += exploration.env_bonus[s, a] + exploration.bonus[q, s, a]
        if total > best:
            best, action = total, a
    return best, action


# --- policy evaluation by propagating the state distribution


def follow(
    env: EnvModel,
    task: TaskModel,
    done: BoolArray,
    success: FloatArray,
    policy: IntArray,
    start: FloatArray,
    gamma: float,
    steps: int,
) -> tuple[float, float, float]:
    """Propagate the start distribution `[q, s]` under a policy for a number of steps.

    Returns the expected discounted return, the probability of success within these steps, and the
    mean of (length x success).
    """
    begun = _begin(env, task, done, success, start)
    found = _follow(env, task, done, success, policy, begun, gamma, steps, steps, _NO_QUESTION)
    return found[:3]


def bracket(
    env: EnvModel,
    task: TaskModel,
    done: BoolArray,
    ceiling: FloatArray,
    policy: IntArray,
    start: FloatArray,
    gamma: float,
    limit: int,
    worst: float,
    low: float,
    high: float,
) -> tuple[float, float]:
    """Bounds on the value of a policy, tightened until they are above `high` or below `low`.

    The remaining return is at least `worst` and at most `ceiling[q, s]`, plus the costs that the
    limit on the length of episodes may save (see `comparison.py`).
    """
    begun = _begin(env, task, done, ceiling, start)
    question = Question(True, worst, -worst * gamma**limit, low, high)
    steps = min(limit, _LONG)
    found = _follow(env, task, done, ceiling, policy, begun, gamma, limit, steps, question)
    return found[3:]


@_compiled
def _follow(
    env: EnvModel,
    task: TaskModel,
    done: BoolArray,
    worth: FloatArray,
    policy: IntArray,
    begun: Begun,
    gamma: float,
    limit: int,
    steps: int,
    question: Question,
) -> tuple[float, float, float, float, float]:
    """The shared loop of `follow` and, given a question, of `bracket`."""
    chain, here, there, known, succeeded = begun
    compares, worst, spared, low, high = question
    laid, collected, lengths, discount = _long(0), 0.0, 0.0, 1.0
    least, most = -np.inf, np.inf
    for step in range(1, steps + 1):
        laid, known = known, _lay_out(env, task, done, worth, policy, chain, laid, known)
        paid, won, alive = _spread(chain, laid, here, there)
        here, there = there, here
        collected += discount * paid
        succeeded += won
        lengths += won * step
        discount *= gamma
        if compares:
            least = collected + discount * alive * worst
            most = collected + discount * won + alive * spared
            if step == limit:
                least = most = collected
            if least > high or most < low or discount <= _SPENT:
                break
            continue
        if alive <= _SPENT * succeeded:
            break
        if discount <= _SPENT and known == laid and _is_zero(chain.worth, known):
            break  # success is unreachable
    return collected, succeeded, lengths, least, most


@_inlined
def _is_zero(array: FloatArray, size: int) -> bool:
    """Whether the first `size` entries are all 0."""
    zero = True
    for i in range(size):
        zero = zero and array[i] == 0.0
    return zero


class Question(NamedTuple):
    """Thresholds that the value of a policy is compared with; see `bracket`."""

    compares: bool
    worst: float
    spared: float
    low: float
    high: float


_NO_QUESTION = Question(False, 0.0, 0.0, 0.0, 0.0)


class Begun(NamedTuple):
    """The start distribution on a chain that has only the start pairs."""

    chain: Chain
    here: FloatArray  # [i], the probability mass on the pairs of the chain
    there: FloatArray  # [i], a buffer for the mass after a step
    known: int  # the number of pairs
    over: float  # the expected `worth` of episodes that are over at the start


def _begin(
    env: EnvModel, task: TaskModel, done: BoolArray, worth: FloatArray, start: FloatArray
) -> Begun:
    """A chain of the pairs in which episodes start."""
    size, width = start.size, env.succ.shape[2] * task.next_state.shape[2]
    chain = Chain(
        np.full(start.shape, -1, dtype=np.int32),
        np.empty(size, dtype=np.int32),
        np.empty(size, dtype=np.int64),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(size * width, dtype=np.int32),
        np.empty(size * width),
    )
    here, there = np.zeros(size), np.zeros(size)
    pairs = np.flatnonzero((start > 0.0) & ~done)
    chain.number.reshape(-1)[pairs] = np.arange(pairs.size)
    chain.pair[: pairs.size] = pairs
    here[: pairs.size] = start.reshape(-1)[pairs]
    over = (start > 0.0) & done
    at_once = np.cumsum(start[over] * worth[over])  # summed in sequence, as steps are
    return Begun(chain, here, there, pairs.size, float(at_once[-1]) if at_once.size else 0.0)


@_inner
def _lay_out(
    env: EnvModel,
    task: TaskModel,
    done: BoolArray,
    worth_of: FloatArray,
    policy: IntArray,
    chain: Chain,
    laid: int,
    known: int,
) -> int:
    """Expand the discovered pairs of a chain; returns the number of pairs discovered then.

    A pair is discovered when a predecessor is expanded, so that the chain grows by the pairs that
    can be reached in one more step.
    """
    succ, prob, env_reward = env.succ, env.prob, env.reward
    label_of, next_state, task_prob, task_reward = task
    number, pair, ends, reward, worth, stay, target, weight = chain
    edge = ends[laid - 1] if laid > 0 else 0
    for i in range(laid, known):
        q, s = divmod(pair[i], number.shape[1])
        a = policy[q, s]
        paid, brought, staying = env_reward[s, a], 0.0, 0.0
        for k in range(succ.shape[2]):
            p = prob[s, a, k]
            if p <= 0.0:
                continue
            s_next = succ[s, a, k]
            label = label_of[s_next]
            paid += p * task_reward[q, label]
            for j in range(next_state.shape[2]):
                moving, q_next = p * task_prob[q, label, j], next_state[q, label, j]
                if moving <= 0.0:
                    continue
                brought += moving * worth_of[q_next, s_next]
                if done[q_next, s_next]:
                    continue
                if number[q_next, s_next] < 0:
                    number[q_next, s_next] = known
                    pair[known] = q_next * number.shape[1] + s_next
                    known += 1
                staying += moving
                target[edge], weight[edge] = number[q_next, s_next], moving
                edge += 1
        ends[i], reward[i], worth[i], stay[i] = edge, paid, brought, staying
    return known


@_inner
def _spread(
    chain: Chain, laid: int, here: FloatArray, there: FloatArray
) -> tuple[float, float, float]:
    """Move the mass one step on; returns the expected reward, worth and mass that continues."""
    _, _, ends, reward, worth, stay, target, weight = chain
    paid = brought = staying = 0.0
    edge = _wide(0)
    for i in range(laid):
        mass, end = here[i], _wide(ends[i])
        if mass > 0.0:
            here[i] = 0.0
            paid += mass * reward[i]
            brought += mass * worth[i]
            staying += mass * stay[i]
            while edge < end:
                there[_unsigned(target[edge])] += mass * weight[edge]
                edge += _wide(1)
        edge = end
    return paid, brought, staying


@_compiled
def nominal_run(
    likeliest: Likeliest, label: IntArray, done: BoolArray, policy: IntArray, steps: int
) -> tuple[int, int]:
    """Length and final machine state of the episode in which the likeliest outcome always happens.

    The length is -1 if the episode is not over after `steps`. The policy is `[h, q, s]`, and
    restarts after its last stage.
    """
    env, task, q, s = likeliest
    stages = policy.shape[0]
    for step in range(steps + 1):
        if done[q, s]:
            return step, q
        s = env[s, policy[step % stages, q, s]]
        q = task[q, label[s]]
    return -1, q
