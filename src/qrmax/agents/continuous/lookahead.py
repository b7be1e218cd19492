"""Values on the lattice, and one step of lookahead from an exact state (compiled).

    V(x, q) = max_a  sum over the row of (x, a) of weight * worth(q, kind, target)

    worth(q, c, x') = R(q, c) + gamma sum_q' P(q' | q, c) V(x', q')     nothing after an end
    worth(q, unknown, x) = max_l R(q, l) + gamma V(x, delta(q, l))      as the best label could be

besides the rewards of the world. The unknown place may have any label, but what remains of the task
must still be walked from here, so that optimism is tight. If the machine is not known, there is no
such bound: unknown places, and labels that were not yet read in q, are worth r_max / (1 - gamma).
Without optimism all of these have the value 0, or that of the lowest reward for ever, if below 0.

Gauss-Seidel sweeps, forth and back, until no value changes by more than a thousandth of itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qrmax.agents.continuous.lattice import UNKNOWN, Lattice, Longs, around
from qrmax.agents.continuous.local_model import (
    LocalModel,
    Room,
    find_kinds,
    gather,
    gather_close,
    land,
)
from qrmax.planning.arrays import BoolArray, FloatArray, IntArray
from qrmax.planning.compilation import compiled, inner

SEVERAL, ENDED = -2, -1


class Readings(NamedTuple):
    """The machine, by kinds of arrivals; a pair without probabilities is unknown."""

    next_state: IntArray  # [q, kind, j]
    prob: FloatArray  # [q, kind, j]
    reward: FloatArray  # [q, kind]
    ends: BoolArray  # [kind]: whether the world ends
    terminal: BoolArray  # [q]
    option: IntArray  # [q, label]: next states of all labels, of a known machine
    option_reward: FloatArray  # [q, label]


class Outlook(NamedTuple):
    """Values of what is unknown."""

    optimistic: bool
    bonus: float  # the largest reward of the world seen
    place: float  # an unknown place or reading, if the machine is not known
    end: float  # the same if the world ends
    worst: float  # all of them without optimism


@inner
def _worth(
    machine: Readings,
    outlook: Outlook,
    value: FloatArray,
    gamma: float,
    q: int,
    kind: int,
    node: int,
) -> float:
    """The value of an arrival of a kind at a node."""
    if kind == UNKNOWN:
        if not outlook.optimistic:
            return outlook.worst
        best = outlook.place if machine.option.shape[1] == 0 else -np.inf
        for label in range(machine.option.shape[1]):
            p = machine.option[q, label]
            v = machine.option_reward[q, label]
            best = max(best, v if machine.terminal[p] else v + gamma * value[node, p])
        return outlook.bonus + best
    total, known = float(machine.reward[q, kind]), False
    for j in range(machine.prob.shape[2]):
        if machine.prob[q, kind, j] > 0.0:
            known = True
            p = machine.next_state[q, kind, j]
            if not (machine.ends[kind] or machine.terminal[p]):
                total += gamma * machine.prob[q, kind, j] * value[node, p]
    if known:
        return total
    if not outlook.optimistic:
        return outlook.worst
    return outlook.end if machine.ends[kind] else outlook.place


@compiled
def solve_lattice(
    lattice: Lattice,
    machine: Readings,
    outlook: Outlook,
    gamma: float,
    floor: float,
    most: int,
    value: FloatArray,
) -> int:
    """Value iteration on `value[node, q]`; returns the number of sweeps, `most` at most.

    Changes below `floor`, or a thousandth of the value, do not count.
    """
    nodes = lattice.used[0]
    actions = lattice.size.size // len(lattice.place)
    states, kinds = machine.reward.shape
    follows = np.empty((states, kinds), dtype=np.int32)  # the next state, ENDED or SEVERAL
    for q in range(states):
        for c in range(kinds):
            p = machine.next_state[q, c, 0]
            over = machine.ends[c] or machine.terminal[p]
            follows[q, c] = SEVERAL if machine.prob[q, c, 0] != 1.0 else ENDED if over else p
    for sweep in range(most):
        moved = False
        for step in range(nodes):
            node = step if sweep % 2 else nodes - 1 - step
            for q in range(states):
                if machine.terminal[q]:
                    continue
                unknown = _worth(machine, outlook, value, gamma, q, UNKNOWN, node)
                best = -np.inf
                for a in range(actions):
                    row = node * actions + a
                    v = lattice.reward[row]
                    for e in range(lattice.first[row], lattice.first[row] + lattice.size[row]):
                        kind, target = lattice.kind[e], lattice.target[e]
                        if kind == UNKNOWN:
                            worth = unknown
                        elif follows[q, kind] >= 0:
                            worth = (
                                machine.reward[q, kind] + gamma * value[target, follows[q, kind]]
                            )
                        elif follows[q, kind] == ENDED:
                            worth = machine.reward[q, kind]
                        else:
                            worth = _worth(machine, outlook, value, gamma, q, kind, target)
                        v += lattice.weight[e] * worth
                    best = max(best, v)
                moved = moved or abs(best - value[node, q]) > 1e-3 * abs(best) + floor
                value[node, q] = best
        if not moved:
            return sweep + 1
    return most


@compiled
def look_ahead(
    model: LocalModel,
    lattice: Lattice,
    machine: Readings,
    outlook: Outlook,
    gamma: float,
    value: FloatArray,
    s: FloatArray,
    q: Longs,
    room: Room,
    out: FloatArray,
) -> None:
    """Q(s, q, .) of many states `s[n, d]`, `q[n]` by one step of lookahead, to `out[n, a]`."""
    for n in range(len(s)):
        for i in range(s.shape[1]):
            room.start[i] = s[n, i]
        gather(model.obstacles, room.start, model.reach, room)
        for a in range(out.shape[1]):
            out[n, a] = _look(model, lattice, machine, outlook, gamma, value, q[n], a, room)


@inner
def _look(
    model: LocalModel,
    lattice: Lattice,
    machine: Readings,
    outlook: Outlook,
    gamma: float,
    value: FloatArray,
    q: int,
    a: int,
    room: Room,
) -> float:
    """Q of the state in `room.start`."""
    total = 0.0
    for k in range(model.law.weight.shape[1]):
        chance = model.law.weight[a, k]
        if chance == 0.0:
            continue
        land(model, room.start, a, k, room.end, room)
        known = find_kinds(model, room.end, room)
        corners = around(model, lattice, room.end, room, False) if known else 0
        if corners == 0:  # nothing of the lattice is in sight from there
            gather_close(model.obstacles, room.start, model.sight, room)
            corners = around(model, lattice, room.start, room, False)
        for c in range(room.share.size if known else 1):
            share = chance * room.share[c] if known else chance
            if share == 0.0:
                continue
            if known:
                total += share * (room.reward[c] + (machine.reward[q, c] if corners == 0 else 0.0))
            for m in range(corners):
                kind = c if known else UNKNOWN
                worth = _worth(machine, outlook, value, gamma, q, kind, room.node[m])
                total += share * room.weight[m] * worth
    return total


@compiled
def foresee(model: LocalModel, s: FloatArray, a: int, y: FloatArray, room: Room) -> bool:
    """Write the end of a move without noise to `room.end`; whether y is a known place.

    The shares of the kinds at y are in `room.share` then.
    """
    gather(model.obstacles, y, model.reach, room)
    known = find_kinds(model, y, room)
    gather(model.obstacles, s, model.reach, room)
    land(model, s, a, 0, room.end, room)
    return known
