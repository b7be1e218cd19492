"""Compiled step loops of the tabular agents, together (numba's cache sees edits in this file only).

Each loop plays a tabular problem (`World`, `state` as in `problems/simulator.py`) and gives the
same results as the Python methods of the agent, bit for bit, drawing from the same random streams
in the same order. The loops of the agents that plan stop after a step that needs replanning,
reaches something for the first time or needs larger arrays: such a transition is left to the
agent's `update`, so that planning is implemented only once. Estimates of the machine that complete
without a backup (no predecessor of the state is known yet) are entered in the loop, as large worlds
have thousands of them. Every loop also stops when the random numbers drawn ahead run out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from qrmax.planning.compilation import compiled, inlined, inner
from qrmax.planning.confidence_sets import fill_row_values

if TYPE_CHECKING:  # numba does not read annotations
    from collections.abc import Callable

    from numpy.typing import NDArray

    from qrmax.agents.buckets.buckets import Lookup
    from qrmax.planning.arrays import (
        Belief,
        BoolArray,
        FloatArray,
        IntArray,
        Rows,
        Stages,
        Tables,
        TaskModel,
    )
    from qrmax.problems.continuous_problem import PlaneSimulator
    from qrmax.problems.plane import Plane
    from qrmax.problems.sensor import Sensor
    from qrmax.problems.simulator import World

    LongArray = NDArray[np.int64]

_S, _Q, _AGE, _OVER, _EPISODES = range(5)  # as in problems/simulator.py
_NOTHING = -1  # as in empirical/counts.py
_NO_EDGE = -1  # as in planning/kernels.py
_PER_STEP = 8  # as in seeding.py
_NEAR = 1e-9  # as in problems/plane.py
_FARTHEST = 4.0  # as in problems/sensor.py
_MIXER = 0x45D9F3B  # as in buckets.py

_long = cast("Callable[[Any], int]", np.int64)  # the one integer type of all returned values

_unsigned = cast("Callable[[Any], int]", np.uint32)  # needs no check for being negative

_compiled, _inner, _inlined = compiled, inner, inlined


class Numbers(NamedTuple):
    """Random numbers drawn ahead from a stream, and the position in them."""

    block: FloatArray
    at: LongArray  # [1]


class Ground(NamedTuple):
    """A plane, the current position in it, and the buckets that are its states."""

    plane: Plane
    position: FloatArray  # [2]
    sensor: Sensor
    observed: FloatArray  # [d]
    lookup: Lookup

    @classmethod
    def of(cls, player: PlaneSimulator, lookup: Lookup) -> Ground:
        """The ground of a simulator, which compiled code moves."""
        problem = player.problem
        return cls(problem.plane, player.position, problem.sensor, player.observed, lookup)


class TemporalDifference(NamedTuple):
    """The settings of Q-learning and QRM."""

    alpha: float
    epsilon: float
    gamma: float
    counterfactual: bool  # learn for every machine state


class Outlook(NamedTuple):
    """Action values of an agent that plans, and its rule of breaking ties.

    `joint`: its planner is over pairs, numbered s |Q| + q, without a machine.
    """

    succ: IntArray  # [x, a, k]
    prob: FloatArray  # [x, a, k]
    reward: FloatArray  # [x, a]
    gain: FloatArray  # [y, x]
    done: BoolArray  # [y, x]
    optimistic: float
    joint: bool
    slack: float  # values this close to the best, relative to it, count as best
    first_wins: bool  # the published ties: at random only if all actions are equal
    values: FloatArray  # [a], a buffer for those of one pair


class TaskFactor(NamedTuple):
    """Visit counts and model of the machine factor, which a step of the loop may complete.

    The arrays of a counter by (q, y) (`empirical/counts.py`) with its two thresholds, where y is s'
    itself or, if counts are `by_label`, its label (`arrivals.py`); then those of the planner's
    machine (`planning/incremental.py`).
    """

    n: IntArray  # [q, y]
    outcome: IntArray  # [q, y, k]
    tau: IntArray  # [q, y, k]
    rho: FloatArray  # [q, y]
    for_transitions: int
    for_rewards: int
    place: IntArray  # [s'], y; -1 if the label is not known
    by_label: bool
    next_state: IntArray  # [q, s', j]
    prob: FloatArray  # [q, s', j]
    reward: FloatArray  # [q, s']
    value: FloatArray  # [q, s]
    moves: BoolArray  # [q, q']
    head: IntArray  # [s']
    gamma: float
    signed: bool


_NO_NUMBERS = np.empty((0, 0), dtype=np.int32)
_NO_LISTS = np.empty((0, 0, 0), dtype=np.int32)
_NO_REALS = np.empty((0, 0))
_NO_TASK_FACTOR = TaskFactor(
    n=_NO_NUMBERS,
    outcome=_NO_LISTS,
    tau=_NO_LISTS,
    rho=_NO_REALS,
    for_transitions=0,
    for_rewards=0,
    place=np.empty(0, dtype=np.int32),
    by_label=False,
    next_state=_NO_LISTS,
    prob=np.empty((0, 0, 0)),
    reward=_NO_REALS,
    value=_NO_REALS,
    moves=np.empty((0, 0), dtype=bool),
    head=np.empty(0, dtype=np.int32),
    gamma=0.0,
    signed=False,
)
_NOTHING_UNTRIED = np.empty((0, 0, 0), dtype=bool)


class Counting(NamedTuple):
    """The counter of an agent that plans, as arrays, and the increments of a step.

    `of_pairs`: it counts pairs ((s, q), a), the observed transition with weight `times` and, if
    `counterfactual`, those from the other machine states with weight 1. Otherwise it counts (s, a)
    with weight `times`, and has a `task` factor for the machine, updated in all machine states if
    `counterfactual`. `untried` marks the triples that the published code has yet to try; it is
    empty for other agents.
    """

    n: IntArray
    outcome: IntArray
    tau: IntArray
    rho: FloatArray
    for_transitions: int
    for_rewards: int
    of_pairs: bool
    times: int = 1
    counterfactual: bool = False
    task: TaskFactor = _NO_TASK_FACTOR
    untried: BoolArray = _NOTHING_UNTRIED  # [s, q, a]


class Taken(NamedTuple):
    """The last step of a loop."""

    steps: int
    unlearned: bool  # whether the last step is left to the agent, as follows
    s: int
    q: int
    a: int
    s_next: int
    q_next: int
    label: int
    r_env: float
    r_task: float
    terminated: bool
    truncated: bool
    place: int  # what the end of an episode depends on: s_next, or the cell of a plane


# --- playing


@_inlined
def _random(block: FloatArray, at: LongArray) -> float:
    """The next number of a stream."""
    u = block[at[0]]
    at[0] += 1
    return float(u)


@_inlined
def _draw(weights: FloatArray, i: int, j: int, u: float) -> int:
    """The index in weights[i, j] by inverse-CDF sampling; never one of weight 0 (as in draw.py)."""
    last = 0
    for k in range(weights.shape[2]):
        weight = weights[i, j, k]
        if weight > 0.0:
            last = k
            u -= weight
            if u < 0.0:
                break
    return last


@_inlined
def _outcome(
    succ: IntArray,
    prob: FloatArray,
    label_of: IntArray,
    next_state: IntArray,
    task_prob: FloatArray,
    s: int,
    q: int,
    a: int,
    block: FloatArray,
    at: LongArray,
) -> tuple[int, int, int, int, int]:
    """Sample a transition: the index k, the state, its label, the index j, the machine state."""
    k = _draw(prob, s, a, _random(block, at))
    s_next = _long(succ[s, a, k])
    label = _long(label_of[s_next])
    j = _event(task_prob, q, label, block, at)
    return k, s_next, label, j, _long(next_state[q, label, j])


@_inlined
def _event(task_prob: FloatArray, q: int, label: int, block: FloatArray, at: LongArray) -> int:
    """Sample an outcome of the machine."""
    j = 0
    if task_prob[q, label, 0] != 1.0:
        j = _draw(task_prob, q, label, _random(block, at))
    return j


@_inner
def _reset(world: World, state: LongArray, numbers: Numbers) -> None:
    """Start an episode."""
    i, u = 0, _random(numbers.block, numbers.at)
    for k in range(world.start_prob.size):  # as `_draw`, written out
        weight = world.start_prob[k]
        if weight > 0.0:
            i = k
            u -= weight
            if u < 0.0:
                break
    state[_S] = world.start_pair[i, 0]
    state[_Q] = world.start_pair[i, 1]
    state[_AGE] = 0
    state[_OVER] = 0
    state[_EPISODES] += 1


@_inner
def _walk(ground: Ground, a: int, u: float, v: float) -> int:
    """Move in a plane; returns the cell reached (as `move` in problems/plane.py)."""
    direction, noise, wall, columns, _, _ = ground.plane
    position = ground.position
    radius, angle = math.sqrt(-2.0 * math.log(1.0 - u)), 2.0 * math.pi * v
    cell = _long(math.floor(position[1]) * columns + math.floor(position[0]))
    for axis in range(2):
        forth, back, stride, g = 1, 3, 1, radius * math.cos(angle)
        if axis == 1:
            forth, back, stride, g = 2, 0, columns, radius * math.sin(angle)
        here = position[axis]
        place, target = math.floor(here), here + (direction[a, axis] + noise[axis] * g)
        while target >= place + 1.0:
            if wall[cell, forth]:
                target = place + 1.0 - _NEAR
                break
            place, cell = place + 1.0, cell + stride
        while target < place:
            if wall[cell, back]:
                target = place
                break
            place, cell = place - 1.0, cell - stride
        position[axis] = target
    return cell


@_inner
def _sense(ground: Ground, block: FloatArray, at: LongArray) -> None:
    """Observe the current position (as in problems/continuous_problem.py)."""
    position, scale, observed = ground.position, ground.plane.scale, ground.observed
    axes, noise = ground.sensor
    radius, angle = 0.0, 0.0
    if noise != 0.0:
        radius = math.sqrt(-2.0 * math.log(1.0 - _random(block, at)))
        angle = 2.0 * math.pi * _random(block, at)
    for i in range(scale.size):
        exact = 0.0
        for j in range(scale.size):
            exact += axes[i, j] * (position[j] * scale[j])
        g = radius * (math.cos(angle) if i == 0 else math.sin(angle))
        observed[i] = exact + noise * min(max(g, -_FARTHEST), _FARTHEST)


@_inner
def _bucket(ground: Ground, label: int) -> int:
    """The bucket of the current observation, -1 if there is none (as in buckets.py)."""
    low, high, squashed = ground.lookup.scaling
    rows, top, word, shift, _ = ground.lookup.projection
    keys, slots = ground.lookup.keys, ground.lookup.slots
    seen, key = ground.lookup.seen, ground.lookup.key
    for i in range(ground.observed.size):
        x = ground.observed[i]
        if squashed[i]:
            seen[i] = x / (1.0 + abs(x))
        else:
            seen[i] = 2.0 * (min(max(x, low[i]), high[i]) - low[i]) / (high[i] - low[i]) - 1.0
    key[:] = 0
    key[0] = label if ground.lookup.event_aware else 0
    for row in range(rows.shape[0]):
        total = rows[row, 0]
        for i in range(seen.size):
            total += rows[row, 1 + i] * seen[i]
        number = _long(min(max(math.floor(total), 0.0), float(top[row])))
        key[word[row]] |= number << shift[row]
    mixed = 0
    for i in range(key.size):
        mixed = (mixed ^ key[i]) * _MIXER
        mixed = (mixed ^ (mixed >> 31)) & 0xFFFFFFFF
    slot = mixed & (slots.size - 1)
    while slots[slot] != _NOTHING:
        same = True
        for i in range(key.size):
            same = same and keys[slots[slot], i] == key[i]
        if same:
            break
        slot = (slot + 1) & (slots.size - 1)
    return _long(slots[slot])


@_inner
def _enter(
    ground: Ground, state: LongArray, label_of: IntArray, block: FloatArray, at: LongArray
) -> None:
    """Start in the middle of the cell that `_reset` has drawn; the state becomes its bucket."""
    cell, columns = state[_S], ground.plane.columns
    ground.position[0] = cell % columns + 0.5
    ground.position[1] = cell // columns + 0.5
    _sense(ground, block, at)
    state[_S] = _bucket(ground, label_of[cell])


@_inlined
def _enough(block: FloatArray, at: LongArray) -> bool:
    """Whether enough random numbers are left for a step."""
    return bool(block.size - at[0] >= _PER_STEP)


# --- choosing


@_inlined
def _one_of(values: FloatArray, slack: float, block: FloatArray, at: LongArray) -> int:
    """One of the greedy actions, uniformly at random (as in choice.py)."""
    best = values[0]
    for a in range(1, values.size):
        best = max(best, values[a])
    least = best - slack * abs(best)
    count, chosen = 0, 0
    for a in range(values.size):
        if values[a] >= least:
            if count == 0:
                chosen = a
            count += 1
    if count > 1:
        skip = int(_random(block, at) * count)
        for a in range(values.size):
            if values[a] >= least:
                if skip == 0:
                    chosen = a
                    break
                skip -= 1
    return chosen


@_compiled
def first_best(qt: FloatArray) -> IntArray:
    """The greedy policy of a table `[s, q, a]`: the first of equally good actions."""
    policy = np.zeros(qt.shape[:2], np.int32)
    for s in range(qt.shape[0]):
        for q in range(qt.shape[1]):
            best = qt[s, q, 0]
            for a in range(1, qt.shape[2]):
                if qt[s, q, a] > best:
                    best = qt[s, q, a]
                    policy[s, q] = a
    return policy


# --- Q-learning and QRM


@_compiled
def temporal_difference(
    world: World,
    state: LongArray,
    qt: FloatArray,
    rule: TemporalDifference,
    world_numbers: Numbers,
    agent_numbers: Numbers,
    limit: int,
) -> int:
    """Take up to `limit` steps; returns the number of steps taken.

    Action selection and sampling are written out here: even inlined, a call that is given arrays
    counts references to them, which costs as much as the rest of a step.
    """
    succ, prob, reward, label_of = world.succ, world.prob, world.reward, world.label
    next_state, task_prob, task_reward = world.next_state, world.task_prob, world.task_reward
    done, terminal, longest = world.done, world.terminal, world.limit
    alpha, epsilon, gamma, counterfactual = rule
    (block, at), (agent_block, agent_at) = world_numbers, agent_numbers
    n_q, n_actions = qt.shape[1:]
    s, q, age, over = state[_S], state[_Q], state[_AGE], state[_OVER] == 1
    taken = 0
    while taken < limit and _enough(block, at) and _enough(agent_block, agent_at):
        taken += 1
        if over:
            _reset(world, state, world_numbers)
            s, q, age = state[_S], state[_Q], 0
        row = qt[s, q]
        explores = agent_block[agent_at[0]] < epsilon
        agent_at[0] += 1
        if explores:
            a = int(agent_block[agent_at[0]] * n_actions)
            agent_at[0] += 1
        else:  # as `_one_of`, written out
            best, count, a = row[0], 1, 0
            for i in range(1, n_actions):
                if row[i] > best:
                    best, count, a = row[i], 1, i
                elif row[i] == best:
                    count += 1
            if count > 1:
                skip = int(agent_block[agent_at[0]] * count)
                agent_at[0] += 1
                a = -1
                while skip >= 0:
                    a += 1
                    if row[a] == best:
                        skip -= 1
        k, u = 0, block[at[0]]  # as `_outcome`, written out
        at[0] += 1
        for i in range(prob.shape[2]):
            weight = prob[s, a, i]
            if weight > 0.0:
                k = i
                u -= weight
                if u < 0.0:
                    break
        s_next = _long(succ[s, a, k])
        label = _long(label_of[s_next])
        j = 0
        if task_prob[q, label, 0] != 1.0:
            j = _draw(task_prob, q, label, _random(block, at))
        q_next = _long(next_state[q, label, j])
        terminated = done[s_next, q_next]
        r_env = reward[s, a, k]
        ahead = qt[s_next]
        low, high = (0, n_q) if counterfactual else (q, q + 1)
        for p in range(low, high):
            if terminal[p]:
                continue
            p_next, r_task = _unsigned(q_next), task_reward[p, label, j]
            if counterfactual:
                p_next = _unsigned(next_state[p, label, 0])
            target = r_env + r_task
            if not done[s_next, p_next]:
                best = ahead[p_next, 0]
                for i in range(1, n_actions):
                    best = max(best, ahead[p_next, i])
                target += gamma * best
            qt[s, p, a] += alpha * (target - qt[s, p, a])
        s, q, age = s_next, q_next, age + 1
        over = terminated or age == longest
    state[_S], state[_Q], state[_AGE], state[_OVER] = s, q, age, over
    return taken


# --- the agents that plan


@_inlined
def _look(
    succ: IntArray,
    prob: FloatArray,
    reward: FloatArray,
    gain: FloatArray,
    optimistic: float,
    values: FloatArray,
    y: int,
    x: int,
) -> None:
    """Q(x, y, .) as the planner computes it (`action_values_at`)."""
    for a in range(values.size):
        total = reward[x, a]
        for k in range(succ.shape[2]):
            p = prob[x, a, k]
            if p > 0.0:
                total += p * gain[y, succ[x, a, k]]
        if total == np.inf:
            total = optimistic
        values[a] = total


@_inlined
def _choose(
    values: FloatArray, slack: float, first_wins: bool, block: FloatArray, at: LongArray
) -> int:
    if not first_wins:
        chosen = _one_of(values, slack, block, at)
    else:  # as in published.py
        chosen, equal = 0, True
        for a in range(1, values.size):
            equal = equal and values[a] == values[0]
            if values[a] > values[chosen]:
                chosen = a
        if equal and values.size > 1:
            chosen = int(_random(block, at) * values.size)
    return chosen


@_inlined
def _counts_plainly(
    n: IntArray, outcome: IntArray, t_env: int, t_moves: int, times: int, i: int, j: int, seen: int
) -> bool:
    """Whether counting a sample with weight `times` needs no room and makes nothing known."""
    plainly = n[i, j] >= t_moves
    if n[i, j] + times >= t_env:
        plainly = False
    elif not plainly:
        for k in range(outcome.shape[2]):
            if outcome[i, j, k] == seen or outcome[i, j, k] == _NOTHING:
                plainly = True
                break
    return bool(plainly)


@_inlined
def _count(
    n: IntArray,
    outcome: IntArray,
    tau: IntArray,
    rho: FloatArray,
    t_moves: int,
    t_rewards: int,
    times: int,
    i: int,
    j: int,
    seen: int,
    reward: float,
) -> None:
    """Count a sample with weight `times` (as `Counter.record` does)."""
    k = 0
    if n[i, j] < t_moves:
        while outcome[i, j, k] != seen and outcome[i, j, k] != _NOTHING:
            k += 1
        outcome[i, j, k] = seen
    for _ in range(times):
        if n[i, j] < t_moves:
            tau[i, j, k] += 1
        if n[i, j] < t_rewards:
            rho[i, j] += reward
        n[i, j] += 1


@_inner
def _learns_quietly(
    task: TaskFactor, plans: bool, q: int, s_next: int, q_next: int, r_task: float
) -> bool:
    """Whether a sample of (q, s') needs neither room nor a backup (see `_learn_task`)."""
    y, outcome = task.place[s_next], task.outcome
    n = task.n[q, y]
    k = 0  # the index of the outcome
    if n < task.for_transitions:
        while k < outcome.shape[2] and outcome[q, y, k] != _NOTHING:
            if outcome[q, y, k] == q_next:
                break
            k += 1
    quiet = k < outcome.shape[2]
    if quiet and plans and n + 1 >= max(task.for_transitions, task.for_rewards):
        if task.by_label:  # it is entered for all states with that label
            return False
        room = task.prob.shape[2]
        paid = task.rho[q, y] + (r_task if n < task.for_rewards else 0.0)
        quiet = task.head[s_next] == _NO_EDGE and k < room and (paid >= 0.0 or task.signed)
        quiet = quiet and (n >= task.for_transitions or task.moves[q, q_next])
        for i in range(outcome.shape[2]):
            if outcome[q, y, i] != _NOTHING:
                quiet = quiet and i < room and task.moves[q, outcome[q, y, i]]
    return bool(quiet)


@_inner
def _learn_task(
    task: TaskFactor,
    gain: FloatArray,
    plans: bool,
    q: int,
    s_next: int,
    q_next: int,
    r_task: float,
) -> None:
    """Count a sample of (q, s'), and enter the estimate once the pair is known.

    As `Counter.record`, `Counter.estimate` and `IncrementalPlanner.learn_task` do.
    """
    n, outcome, tau, rho, t_moves, t_rewards = task[:6]
    y = _long(task.place[s_next])
    _count(n, outcome, tau, rho, t_moves, t_rewards, 1, q, y, q_next, r_task)
    samples = n[q, y]
    if not plans or samples < max(t_moves, t_rewards):
        return
    total = rho[q, y] / min(samples, t_rewards)
    task.reward[q, s_next] = total
    for k in range(task.prob.shape[2]):
        task.prob[q, s_next, k] = 0.0
        if k < outcome.shape[2] and outcome[q, y, k] != _NOTHING:
            q_after, p = outcome[q, y, k], tau[q, y, k] / min(samples, t_moves)
            task.next_state[q, s_next, k] = q_after
            task.prob[q, s_next, k] = p
            total += task.gamma * p * task.value[q_after, s_next]
    gain[q, s_next] = total


@_compiled
def explore(
    world: World,
    state: LongArray,
    outlook: Outlook,
    counting: Counting,
    world_numbers: Numbers,
    agent_numbers: Numbers,
    limit: int,
    ground: Ground | None,
) -> Taken:
    """Run any agent that plans, up to a step that needs replanning or reaches something new.

    There are two compiled forms: without a `ground`, and, if states are buckets, with one.
    """
    succ, prob, reward, label_of = world.succ, world.prob, world.reward, world.label
    next_state, task_prob, task_reward = world.next_state, world.task_prob, world.task_reward
    done, terminal, longest = world.done, world.terminal, world.limit
    est_succ, est_prob, est_reward, gain, known_done, optimistic = outlook[:6]
    joint, slack, first, values = outlook[6:]
    n, outcome, tau, rho, t_moves, t_rewards, of_pairs = counting[:7]
    times, counterfactual, task, untried = counting[7:]
    n_task, column, t_env = task.n, task.place, max(t_moves, t_rewards)
    t_task = max(task.for_transitions, task.for_rewards)
    (block, at), (agent_block, agent_at) = world_numbers, agent_numbers
    n_q = next_state.shape[0]
    taken = 0
    while taken < limit and _enough(block, at) and _enough(agent_block, agent_at):
        if state[_OVER]:
            _reset(world, state, world_numbers)
            if ground is not None:
                _enter(ground, state, label_of, block, at)
                if state[_S] == _NOTHING:
                    break
        taken += 1
        s, q = state[_S], state[_Q]
        y, x = (0, s * n_q + q) if joint else (q, s)
        _look(est_succ, est_prob, est_reward, gain, optimistic, values, y, x)
        a = _choose(values, slack, first, agent_block, agent_at)
        if ground is None:
            k, s_next, label, j, q_next = _outcome(
                succ, prob, label_of, next_state, task_prob, s, q, a, block, at
            )
            place, r_env = s_next, reward[s, a, k]
        else:
            place = _walk(ground, a, _random(block, at), _random(block, at))
            _sense(ground, block, at)
            label, r_env = _long(label_of[place]), ground.plane.reward[place]
            s_next = _bucket(ground, label)
            j = _event(task_prob, q, label, block, at)
            q_next = _long(next_state[q, label, j])
        age = state[_AGE] + 1
        terminated, truncated = done[place, q_next], age == longest
        state[_S], state[_Q], state[_AGE] = s_next, q_next, age
        state[_OVER] = terminated or truncated
        r_task = task_reward[q, label, j]
        plain = s_next != _NOTHING  # whether there is neither a backup to do nor room to make
        fresh = False  # whether the sample is of a pair (q, s') that is not known yet
        low, high = (0, n_q) if counterfactual else (q, q + 1)
        if not plain:
            pass
        elif of_pairs:
            for p in range(low, high):
                if plain and not terminal[p]:
                    p_next = next_state[p, label, 0] if counterfactual else q_next
                    x, x_next = s * n_q + p, s_next * n_q + p_next
                    plain = known_done[0, x_next] or not done[place, p_next]
                    if plain and n[x, a] < t_env:
                        often = times if p == q else 1
                        plain = _counts_plainly(n, outcome, t_env, t_moves, often, x, a, x_next)
        elif column[s_next] == _NOTHING:
            plain = False
        else:
            y, x = (0, s_next * n_q + q_next) if joint else (q_next, s_next)
            plain = known_done[y, x] or not terminated
            fresh = n_task[q, column[s_next]] < t_task
            # a bucket that is known may still be entered with other labels
            if fresh or (ground is not None and counterfactual):
                for p in range(low, high):
                    if plain and not terminal[p]:
                        p_next = _long(next_state[p, label, 0]) if counterfactual else q_next
                        r_p = task_reward[p, label, 0] if counterfactual else r_task
                        y, x = (0, s_next * n_q + p_next) if joint else (p_next, s_next)
                        plain = known_done[y, x] or not done[place, p_next]
                        if plain and n_task[p, column[s_next]] < t_task:
                            plain = _learns_quietly(task, not joint, p, s_next, p_next, r_p)
            if n[s, a] < t_env:
                plain = plain and _counts_plainly(n, outcome, t_env, t_moves, times, s, a, s_next)
            elif untried.size > 0:
                plain = plain and not untried[s, q, a]
        if not plain:
            return Taken(
                taken,
                True,
                s,
                q,
                a,
                s_next,
                q_next,
                label,
                r_env,
                r_task,
                terminated,
                truncated,
                place,
            )
        if of_pairs:
            for p in range(low, high):
                x = s * n_q + p
                if n[x, a] < t_env and not terminal[p]:
                    p_next = next_state[p, label, 0] if counterfactual else q_next
                    r_all = r_env + (task_reward[p, label, 0] if counterfactual else r_task)
                    often = times if p == q else 1
                    x_next = s_next * n_q + p_next
                    _count(n, outcome, tau, rho, t_moves, t_rewards, often, x, a, x_next, r_all)
            continue
        if n[s, a] < t_env:
            _count(n, outcome, tau, rho, t_moves, t_rewards, times, s, a, s_next, r_env)
        if fresh:
            for p in range(low, high):
                if n_task[p, column[s_next]] < t_task and not terminal[p]:
                    p_next = _long(next_state[p, label, 0]) if counterfactual else q_next
                    r_p = task_reward[p, label, 0] if counterfactual else r_task
                    _learn_task(task, gain, not joint, p, s_next, p_next, r_p)
    return Taken(taken, False, 0, 0, 0, 0, 0, 0, 0.0, 0.0, False, False, 0)


# --- the agents that revise their estimates


class RowCounting(NamedTuple):
    """The counters of an agent that revises its estimates, and its rules.

    `Seen` (empirical/successors.py), then the arrays of a counter by (q, y) (empirical/counts.py),
    where y is s' or its label.
    """

    n: IntArray  # [s, a]
    rho: FloatArray  # [s, a, k]
    listed: IntArray
    outcome: IntArray
    tau: IntArray
    n_task: IntArray  # [q, y]
    task_outcome: IntArray
    task_tau: IntArray
    task_rho: FloatArray
    place: IntArray  # [s'], y; -1 if the label is not known
    threshold: int  # samples after which a state-action pair is known
    freeze_after: int  # samples after which no more of it count
    watched: int  # samples after which new successors, and twice as many samples, are news
    t_task: int
    counterfactual: bool  # one arrival in s' tells the machine's transitions from all states
    joint: bool  # it counts pairs (s, q) as states of a world, and all rewards as the world's
    optimistic: float
    slack: float


@_inlined
def _is_power_of_two(n: int) -> bool:
    return bool(n & (n - 1) == 0)


@_compiled
def explore_rows(
    world: World,
    state: LongArray,
    rows: Rows,
    tables: Tables,
    task: TaskModel,
    counting: RowCounting,
    world_numbers: Numbers,
    agent_numbers: Numbers,
    limit: int,
    due: int,
) -> Taken:
    """Run an agent that revises its estimates, up to a step after which it replans.

    The step number `due` is one of these.
    """
    succ, prob, reward, label_of = world.succ, world.prob, world.reward, world.label
    next_state, task_prob, task_reward = world.next_state, world.task_prob, world.task_reward
    done, longest = world.done, world.limit
    gain, known_done = tables.gain, tables.done
    n, rho, listed, outcome, tau = counting[:5]
    n_task, task_outcome, task_tau, task_rho, column = counting[5:10]
    threshold, freeze_after, watched, t_task, counterfactual, joint, optimistic, slack = counting[
        10:
    ]
    (block, at), (agent_block, agent_at) = world_numbers, agent_numbers
    worth, values = np.empty((2, outcome.shape[1])), np.empty(n.shape[1])
    n_q = next_state.shape[0]
    taken = 0
    while taken < limit and _enough(block, at) and _enough(agent_block, agent_at):
        if state[_OVER]:
            _reset(world, state, world_numbers)
        taken += 1
        s, q = state[_S], state[_Q]
        m, x = (0, s * n_q + q) if joint else (q, s)
        fill_row_values(rows, gain, optimistic, m, x, worth, values)
        a = _one_of(values, slack, agent_block, agent_at)
        k, s_next, label, j, q_next = _outcome(
            succ, prob, label_of, next_state, task_prob, s, q, a, block, at
        )
        age = state[_AGE] + 1
        terminated, truncated = done[s_next, q_next], age == longest
        state[_S], state[_Q], state[_AGE] = s_next, q_next, age
        state[_OVER] = terminated or truncated
        r_env, r_task = reward[s, a, k], task_reward[q, label, j]
        m_next, x_next = (0, s_next * n_q + q_next) if joint else (q_next, s_next)
        place, samples, counts = 0, n[x, a] + 1, n[x, a] < freeze_after
        while place < listed[x] and outcome[x, place] != x_next:
            place += 1
        news = taken == due or (counts and (place == listed[x] or samples == threshold))
        news = news or (terminated and not known_done[m_next, x_next])
        if not news and counts and samples > watched:
            news = tau[x, a, place] == 0 or _is_power_of_two(samples)
        slot, y = 0, column[x_next]
        news = news or y == _NOTHING
        if counterfactual:
            news = news or n_task[m, y] == 0
        elif not news:
            while slot < task_outcome.shape[2] and task_outcome[q, y, slot] != q_next:
                slot += 1
            news = slot == task_outcome.shape[2]
            as_estimated = (
                task.prob[q, s_next, 0] == 1.0 and task.next_state[q, s_next, 0] == q_next
            )
            if not news and not (as_estimated and task.reward[q, s_next] == r_task):
                arrivals = n_task[q, y] + 1
                news = arrivals == t_task or (arrivals > t_task and _is_power_of_two(arrivals))
        if news:
            return Taken(
                taken,
                True,
                s,
                q,
                a,
                s_next,
                q_next,
                label,
                r_env,
                r_task,
                terminated,
                truncated,
                s_next,
            )
        if counts:
            n[x, a] += 1
            rho[x, a, place] += r_env + r_task if joint else r_env
            tau[x, a, place] += 1
        if not counterfactual:
            n_task[q, y] += 1
            task_rho[q, y] += r_task
            task_tau[q, y, slot] += 1
    return Taken(taken, False, 0, 0, 0, 0, 0, 0, 0.0, 0.0, False, False, 0)


class Plan(NamedTuple):
    """A policy to follow until the visits of a state-action pair have doubled."""

    policy: IntArray  # [q, s]
    planned: IntArray  # [s, a], the visit counts that it was made with
    starts: IntArray  # [q, s], starts of episodes


@_compiled
def follow_policy(
    world: World,
    state: LongArray,
    plan: Plan,
    known_done: BoolArray,
    counting: RowCounting,
    world_numbers: Numbers,
    agent_numbers: Numbers,
    limit: int,
) -> Taken:
    """Follow a policy until a plan is due, or up to a step that reaches something new."""
    succ, prob, reward, label_of = world.succ, world.prob, world.reward, world.label
    next_state, task_prob, task_reward = world.next_state, world.task_prob, world.task_reward
    done, longest = world.done, world.limit
    policy, planned, starts = plan
    n, rho, listed, outcome, tau, n_task = counting[:6]
    (block, at), (agent_block, agent_at) = world_numbers, agent_numbers
    taken = 0
    while taken < limit and _enough(block, at) and _enough(agent_block, agent_at):
        if state[_OVER]:
            _reset(world, state, world_numbers)
            starts[state[_Q], state[_S]] += 1
        s, q = state[_S], state[_Q]
        a = _long(policy[q, s])
        if n[s, a] - planned[s, a] >= max(1, planned[s, a]):
            break
        taken += 1
        k, s_next, label, j, q_next = _outcome(
            succ, prob, label_of, next_state, task_prob, s, q, a, block, at
        )
        age = state[_AGE] + 1
        terminated, truncated = done[s_next, q_next], age == longest
        state[_S], state[_Q], state[_AGE] = s_next, q_next, age
        state[_OVER] = terminated or truncated
        r_env = reward[s, a, k]
        place = 0
        while place < listed[s] and outcome[s, place] != s_next:
            place += 1
        news = place == listed[s] or n_task[q, s_next] == 0
        if news or (terminated and not known_done[q_next, s_next]):
            return Taken(
                taken,
                True,
                s,
                q,
                a,
                s_next,
                q_next,
                label,
                r_env,
                task_reward[q, label, j],
                terminated,
                truncated,
                s_next,
            )
        n[s, a] += 1
        rho[s, a, place] += r_env
        tau[s, a, place] += 1
    return Taken(taken, False, 0, 0, 0, 0, 0, 0, 0.0, 0.0, False, False, 0)


# --- the agents that plan for each episode


class EpisodeCounting(NamedTuple):
    """The counters of an agent that plans each episode: `Seen` (empirical/successors.py).

    `joint`: it counts pairs (s, q), and the sum of the rewards of world and machine.
    `binarize_rewards`: a reward counts as 1 with probability (reward - lowest) / span, else as 0.
    """

    n: IntArray
    rho: FloatArray
    listed: IntArray
    outcome: IntArray
    tau: IntArray
    joint: bool
    binarize_rewards: bool
    lowest: float
    span: float


@_compiled
def follow_plan(
    world: World,
    state: LongArray,
    belief: Belief,
    stages: Stages,
    counting: EpisodeCounting,
    known_done: BoolArray,
    world_numbers: Numbers,
    agent_numbers: Numbers,
    stage: int,
    limit: int,
) -> Taken:
    """Follow the plan of an episode, to its end or up to a step that reaches something new."""
    succ, prob, reward, label_of = world.succ, world.prob, world.reward, world.label
    next_state, task_prob, task_reward = world.next_state, world.task_prob, world.task_reward
    done, longest = world.done, world.limit
    est_succ, est_listed, weight, rest, est_reward, flat, slope, spread = belief
    _, v_max, _, ahead, beyond = stages
    n, rho, listed, outcome, tau, joint, binarize_rewards, lowest, span = counting
    (block, at), (agent_block, agent_at) = world_numbers, agent_numbers
    n_q = next_state.shape[0]
    values = np.empty(succ.shape[1])
    limit = min(limit, v_max.size - stage)
    taken = 0
    while taken < limit and _enough(block, at) and _enough(agent_block, agent_at):
        s, q = state[_S], state[_Q]
        y, x = (0, s * n_q + q) if joint else (q, s)
        top, unseen = v_max[stage + taken], beyond[stage + taken, y]
        taken += 1
        values[:] = -np.inf  # as `stage_values`, written out
        for o in range(est_reward.shape[1]):
            worth = 0.0
            for k in range(est_listed[x]):
                worth += weight[x, k, o] * ahead[stage + taken - 1, y, est_succ[x, k]]
            bonus = flat[x, o] + slope[x, o] * top
            if spread[x, o] > 0.0:
                variance = 0.0
                for k in range(est_listed[x]):
                    off = ahead[stage + taken - 1, y, est_succ[x, k]] - worth
                    variance += weight[x, k, o] * off * off
                bonus += spread[x, o] * np.sqrt(variance)
            worth += est_reward[x, o] + rest[x, o] * unseen
            worth += min(bonus, top)
            a = o % values.size
            values[a] = max(values[a], min(worth, top))
        a = _one_of(values, 0.0, agent_block, agent_at)
        k, s_next, label, j, q_next = _outcome(
            succ, prob, label_of, next_state, task_prob, s, q, a, block, at
        )
        age = state[_AGE] + 1
        terminated, truncated = done[s_next, q_next], age == longest
        state[_S], state[_Q], state[_AGE] = s_next, q_next, age
        state[_OVER] = terminated or truncated
        r_env, r_task = reward[s, a, k], task_reward[q, label, j]
        y_next, x_next = (0, s_next * n_q + q_next) if joint else (q_next, s_next)
        place = 0
        while place < listed[x] and outcome[x, place] != x_next:
            place += 1
        if place == listed[x] or (terminated and not known_done[y_next, x_next]):
            return Taken(
                taken,
                True,
                s,
                q,
                a,
                s_next,
                q_next,
                label,
                r_env,
                r_task,
                terminated,
                truncated,
                s_next,
            )
        paid = r_env + r_task if joint else r_env
        if binarize_rewards:
            share = (paid - lowest) / span if span > 0.0 else 0.0
            hurdle = _random(agent_block, agent_at) if 0.0 < share < 1.0 else 0.5
            paid = 1.0 if hurdle < share else 0.0
        n[x, a] += 1
        rho[x, a] += paid
        tau[x, a, place] += 1
        if state[_OVER]:
            break
    return Taken(taken, False, 0, 0, 0, 0, 0, 0, 0.0, 0.0, False, False, 0)


class BonusRule(NamedTuple):
    """Exploration bonus of n visits: flat / sqrt(n) + slope v / n + (spread sd + half v) / sqrt(n).

    v is the largest return of the rest of the episode, sd the standard deviation of the value of
    the successor.
    """

    flat: float
    slope: float
    spread: float
    half: float


class StageTable(NamedTuple):
    """Action values of every stage by pairs x = s |Q| + q, and what a step records for a plan."""

    values: FloatArray  # [h, x, a]
    visits: IntArray  # [h, x] or, if s is counted, [h, s]: of a stage; empty if not counted
    bonus: FloatArray  # [h, x, a], renewed at the stage that is visited; empty if none is
    v_max: FloatArray  # [h]
    rule: BonusRule
    doubles: bool  # whether the agent plans when a visit count is a power of two


@_compiled
def visit_bonus(
    table: StageTable,
    n: IntArray,
    listed: IntArray,
    outcome: IntArray,
    tau: IntArray,
    h: int,
    x: int,
    a: int,
) -> float:
    """The exploration bonus of (x, a) at stage h, with the counts of now and the values planned."""
    values, _, _, v_max, rule, _ = table
    tried = n[x, a]
    mean = variance = 0.0
    if rule.spread > 0.0 and h + 1 < v_max.size:
        for k in range(listed[x]):
            mean += tau[x, a, k] / tried * _greatest(values, h + 1, outcome[x, k])
        for k in range(listed[x]):
            off = _greatest(values, h + 1, outcome[x, k]) - mean
            variance += tau[x, a, k] / tried * off * off
    root = np.sqrt(tried)
    bonus = rule.flat / root + rule.slope * v_max[h] / tried
    bonus += (rule.spread * np.sqrt(variance) + rule.half * v_max[h]) / root
    capped: float = min(bonus, v_max[h])
    return capped


@_inner
def _greatest(values: FloatArray, h: int, x: int) -> float:
    best: float = values[h, x, 0]
    for a in range(1, values.shape[2]):
        best = max(best, values[h, x, a])
    return best


@_compiled
def follow_table(
    world: World,
    state: LongArray,
    table: StageTable,
    counting: EpisodeCounting,
    known_done: BoolArray,
    world_numbers: Numbers,
    agent_numbers: Numbers,
    stage: int,
    limit: int,
) -> Taken:
    """Follow a table of action values, as `follow_plan` follows a plan."""
    succ, prob, reward, label_of = world.succ, world.prob, world.reward, world.label
    next_state, task_prob, task_reward = world.next_state, world.task_prob, world.task_reward
    done, longest = world.done, world.limit
    values, visits, bonus, v_max, _, doubles = table
    n, rho, listed, outcome, tau, joint, binarize_rewards, lowest, span = counting
    (block, at), (agent_block, agent_at) = world_numbers, agent_numbers
    n_q = next_state.shape[0]
    limit = min(limit, v_max.size - stage)
    taken = 0
    while taken < limit and _enough(block, at) and _enough(agent_block, agent_at):
        s, q, h = state[_S], state[_Q], stage + taken
        pair = s * n_q + q
        x = pair if joint else s
        taken += 1
        a = _one_of(values[h, pair], 0.0, agent_block, agent_at)
        k, s_next, label, j, q_next = _outcome(
            succ, prob, label_of, next_state, task_prob, s, q, a, block, at
        )
        age = state[_AGE] + 1
        terminated, truncated = done[s_next, q_next], age == longest
        state[_S], state[_Q], state[_AGE] = s_next, q_next, age
        state[_OVER] = terminated or truncated
        r_env, r_task = reward[s, a, k], task_reward[q, label, j]
        y_next, x_next = (0, s_next * n_q + q_next) if joint else (q_next, s_next)
        place = 0
        while place < listed[x] and outcome[x, place] != x_next:
            place += 1
        news = place == listed[x] or (terminated and not known_done[y_next, x_next])
        if news or (doubles and _is_power_of_two(n[x, a] + 1)):
            return Taken(
                taken,
                True,
                s,
                q,
                a,
                s_next,
                q_next,
                label,
                r_env,
                r_task,
                terminated,
                truncated,
                s_next,
            )
        paid = r_env + r_task if joint else r_env
        if binarize_rewards:
            share = (paid - lowest) / span if span > 0.0 else 0.0
            hurdle = _random(agent_block, agent_at) if 0.0 < share < 1.0 else 0.5
            paid = 1.0 if hurdle < share else 0.0
        n[x, a] += 1
        rho[x, a] += paid
        tau[x, a, place] += 1
        if visits.size > 0:
            visits[h, x] += 1
        if bonus.size > 0:
            bonus[h, x, a] = visit_bonus(table, n, listed, outcome, tau, h, x, a)
        if state[_OVER]:
            break
    return Taken(taken, False, 0, 0, 0, 0, 0, 0, 0.0, 0.0, False, False, 0)


# --- following a policy


@_compiled
def sample_returns(
    world: World,
    state: LongArray,
    policy: IntArray,
    gamma: float,
    numbers: Numbers,
    found: FloatArray,
    episode: int,
    under_way: FloatArray,
    ground: Ground | None,
) -> int:
    """Roll out a policy `[h, s, q]`; returns the index of the next episode.

    `found[episode]` is its return, whether it succeeded, and its length. After its last stage
    the policy restarts. In an unknown bucket, it takes the first action.
    `under_way` keeps the return so far and the discount of an episode in which the numbers run out.
    """
    succ, prob, reward, label_of = world.succ, world.prob, world.reward, world.label
    next_state, task_prob, task_reward = world.next_state, world.task_prob, world.task_reward
    block, at = numbers
    total, discount = under_way[0], under_way[1]
    while episode < found.shape[0] and _enough(block, at):
        if state[_OVER]:
            _reset(world, state, numbers)
            total, discount = 0.0, 1.0
            if ground is not None:
                _enter(ground, state, label_of, block, at)
        s, q = state[_S], state[_Q]
        a = policy[state[_AGE] % policy.shape[0], s, q] if s != _NOTHING else 0
        if ground is None:
            k, s_next, label, j, q_next = _outcome(
                succ, prob, label_of, next_state, task_prob, s, q, a, block, at
            )
            place, r_env = s_next, reward[s, a, k]
        else:
            place = _walk(ground, a, _random(block, at), _random(block, at))
            _sense(ground, block, at)
            label, r_env = _long(label_of[place]), ground.plane.reward[place]
            s_next = _bucket(ground, label)
            j = _event(task_prob, q, label, block, at)
            q_next = _long(next_state[q, label, j])
        total += discount * (r_env + task_reward[q, label, j])
        discount *= gamma
        state[_S], state[_Q], state[_AGE] = s_next, q_next, state[_AGE] + 1
        state[_OVER] = world.done[place, q_next] or state[_AGE] == world.limit
        if state[_OVER]:
            found[episode, 0] = total
            found[episode, 1] = world.success[q_next]
            found[episode, 2] = state[_AGE]
            episode += 1
    under_way[0], under_way[1] = total, discount
    return episode
