"""Planning on a lattice of reachable points (compiled)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qrmax.agents.continuous.local_model import LocalModel, Room, find_kinds, first_obstacle, gather, land
from qrmax.agents.continuous.near_points import NOTHING, cell_at, mixed, slot_of
from qrmax.planning.compilation import compiled, inner


UNKNOWN = -1
MOST_CORNERS = 3  # dimensions up to which all corners of a cell count


class Lattice(NamedTuple):
    width: float
    place: np.ndarray  # [node, d] int32
    point: np.ndarray  # [node, d]
    key: np.ndarray  # [slot] int64: node or NOTHING
    first: np.ndarray  # [row] int64: its first entry
    size: np.ndarray  # [row] int32
    dirty: np.ndarray  # [node] bool
    target: np.ndarray  # [entry] int32
    kind: np.ndarray  # [entry] int32
    weight: np.ndarray  # [entry]
    pay: np.ndarray  # [row]
    used: np.ndarray  # [3]: nodes, entries, arrivals around which there are nodes


class Machine(NamedTuple):
    """What a kind of arrival does in each machine state."""

    next_state: np.ndarray  # [q, kind, j] int32
    prob: np.ndarray  # [q, kind, j]; all 0: unknown
    reward: np.ndarray  # [q, kind]
    ends: np.ndarray  # [kind] bool
    terminal: np.ndarray  # [q] bool
    option: np.ndarray  # [q, o] int32 next states of labels that unknown places may have
    option_reward: np.ndarray  # [q, o]
    unknown: np.ndarray  # [2]: value of unknown (q, kind); reward of one that ends


class Hope(NamedTuple):
    optimistic: bool
    bonus: float  # the largest reward of the world seen
    worst: float  # the value of unknown places without optimism


@inner
def find_node(lattice, cell):
    number = 0
    for i in range(cell.size):
        number = mixed(number, cell[i])
    slot = number & (lattice.key.size - 1)
    while lattice.key[slot] != NOTHING:
        node = lattice.key[slot]
        same = True
        for i in range(cell.size):
            if lattice.place[node, i] != cell[i]:
                same = False
                break
        if same:
            return slot
        slot = (slot + 1) & (lattice.key.size - 1)
    return slot


@inner
def take_corner(model, lattice, t, weight, count, room, grow):
    """Take the node at `room.cell` if it can be seen from t; the new count, or -1: no room."""
    d = t.size
    for i in range(d):
        room.corner[i] = room.cell[i] * lattice.width
    if first_obstacle(model.obstacles, t, room.corner, room) >= 0:
        return count
    slot = find_node(lattice, room.cell)
    node = lattice.key[slot]
    if node == NOTHING:
        if not grow:
            return count
        node = lattice.used[0]
        if node == len(lattice.place):
            return -1
        for i in range(d):
            lattice.place[node, i] = room.cell[i]
            lattice.point[node, i] = room.corner[i]
        lattice.key[slot] = node
        lattice.used[0] += 1
        lattice.dirty[node] = True
    room.corner_node[count] = node
    room.corner_weight[count] = weight
    return count + 1


@inner
def take_simplex(model, lattice, t, room, grow):
    """Take the corners of t's simplex in Kuhn's triangulation; leaves the cell as it was."""
    d = t.size
    fraction, order, cell = room.fraction, room.order, room.cell
    for i in range(d):
        order[i] = i
    for i in range(1, d):
        o = order[i]
        j = i
        while j > 0 and fraction[order[j - 1]] < fraction[o]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = o
    count = 0
    for corner in range(d + 1):
        if corner > 0:
            cell[order[corner - 1]] += 1
        upper = 1.0 if corner == 0 else fraction[order[corner - 1]]
        lower = fraction[order[corner]] if corner < d else 0.0
        if upper - lower > 1e-9 and count >= 0:
            count = take_corner(model, lattice, t, upper - lower, count, room, grow)
    for i in range(d):
        cell[i] -= 1
    return count


@inner
def around(model, lattice, t, room, grow):
    """Nodes around t that can be seen from there, and their weights; the number of them.

    They are the corners of a cell or, in more than three dimensions, of a simplex. -1 if there is no room for new nodes.
    """
    d = t.size
    fraction, cell = room.fraction, room.cell
    for i in range(d):
        cell[i] = cell_at(t[i], lattice.width)
        fraction[i] = t[i] / lattice.width - cell[i]
    count = 0
    if d > MOST_CORNERS:
        count = take_simplex(model, lattice, t, room, grow)
    if d <= MOST_CORNERS or (count == 0 and room.walls[0] > 0 and d <= 2 * MOST_CORNERS):
        for corner in range(2**d):
            weight = 1.0
            for i in range(d):
                upper = corner >> i & 1
                weight *= fraction[i] if upper else 1.0 - fraction[i]
                cell[i] += upper
            count = take_corner(model, lattice, t, weight + 1e-6, count, room, grow)
            if count < 0:
                return -1
            for i in range(d):
                cell[i] -= corner >> i & 1
    total = 0.0
    for i in range(count):
        total += room.corner_weight[i]
    for i in range(count):
        room.corner_weight[i] /= total
    return count


@compiled
def fill_rows(model: LocalModel, lattice: Lattice, arrivals: int, room: Room) -> int:
    """Fill the rows of dirty nodes, and of those that they lead to.

    Returns 0, or 1 if there is no room for more nodes, or 2 for more entries.
    """
    d = lattice.point.shape[1]
    actions = model.law.weight.shape[0]
    t = np.empty(d)
    while lattice.used[2] < arrivals:
        n = lattice.used[2]
        for i in range(d):
            t[i] = model.arrivals.at[n, i]
        gather(model.obstacles, t, model.reach, room)
        if around(model, lattice, t, room, True) < 0:
            return 1
        lattice.used[2] += 1
    again = True
    while again:
        again = False
        node = 0
        while node < lattice.used[0]:
            if lattice.dirty[node]:
                again = True
                for i in range(d):
                    room.from_[i] = lattice.point[node, i]
                gather(model.obstacles, room.from_, model.reach, room)
                kept = lattice.used[1]
                for a in range(actions):
                    code = fill_row(model, lattice, node, a, t, room)
                    if code != 0:
                        lattice.used[1] = kept
                        return code
                lattice.dirty[node] = False
            node += 1
    return 0


@inner
def fill_row(model, lattice, node, a, t, room):
    """Fill the row of a node and an action."""
    actions, draws = model.law.weight.shape
    kinds = room.share.size
    row = node * actions + a
    first = lattice.used[1]
    entries = first
    lattice.first[row] = first
    lattice.pay[row] = 0.0
    for k in range(draws):
        chance = model.law.weight[a, k]
        if chance == 0.0:
            continue
        land(model, room.from_, a, k, t, room)
        known = find_kinds(model, t, room)
        corners = around(model, lattice, t, room, True) if known else 1
        if corners < 0:
            return 1
        if not known or corners == 0:
            corners = 1
            room.corner_node[0] = node
            room.corner_weight[0] = 1.0
        for c in range(kinds if known else 1):
            kind, share = c, 1.0
            if known:
                share = room.share[c]
                if share == 0.0:
                    continue
                lattice.pay[row] += chance * share * room.pay[c]
            else:
                kind = UNKNOWN
            for m in range(corners):
                target = room.corner_node[m]
                at = first
                while at < entries and not (
                    lattice.target[at] == target and lattice.kind[at] == kind
                ):
                    at += 1
                if at == entries:
                    if entries == lattice.target.size:
                        return 2
                    lattice.target[at] = target
                    lattice.kind[at] = kind
                    lattice.weight[at] = 0.0
                    entries += 1
                lattice.weight[at] += chance * share * room.corner_weight[m]
    lattice.used[1] = entries
    lattice.size[row] = entries - first
    return 0


@compiled
def mark_dirty(lattice, places, reach):
    """Mark nodes within reach of any of the places."""
    for node in range(lattice.used[0]):
        for n in range(len(places)):
            off = 0.0
            for j in range(places.shape[1]):
                off += (lattice.point[node, j] - places[n, j]) ** 2
            if off <= reach**2:
                lattice.dirty[node] = True
                break


@inner
def worth(machine, hope, value, gamma, q, kind, node):
    """The value of an arrival of this kind at a node, in machine state q."""
    if kind == UNKNOWN:
        if not hope.optimistic:
            return hope.worst
        best = -np.inf
        for o in range(machine.option.shape[1]):
            p = machine.option[q, o]
            v = machine.option_reward[q, o]
            if not machine.terminal[p]:
                v += gamma * value[node, p]
            best = max(best, v)
        if machine.option.shape[1] == 0:
            best = machine.unknown[0]
        return hope.bonus + best
    total, whole = machine.reward[q, kind], 0.0
    for j in range(machine.prob.shape[2]):
        p = machine.prob[q, kind, j]
        if p > 0.0:
            whole += p
            q_next = machine.next_state[q, kind, j]
            if not (machine.ends[kind] or machine.terminal[q_next]):
                total += gamma * p * value[node, q_next]
    if whole == 0.0:
        if not hope.optimistic:
            return hope.worst
        return machine.unknown[1] if machine.ends[kind] else machine.unknown[0]
    return total


@compiled
def solve_lattice(lattice, machine, hope, gamma, tolerance, floor, most, value):
    """Gauss-Seidel value iteration on `value[node, q]`; the number of sweeps."""
    nodes = lattice.used[0]
    actions = lattice.pay.size // len(lattice.place)
    states, kinds = machine.reward.shape
    plain = np.empty((states, kinds), dtype=np.int32)  # the next state, -1 none, -2 several
    gain = np.empty((states, kinds))
    for q in range(states):
        for c in range(kinds):
            plain[q, c] = -2
            if machine.prob[q, c, 0] == 1.0:
                p = machine.next_state[q, c, 0]
                plain[q, c] = -1 if machine.ends[c] or machine.terminal[p] else p
                gain[q, c] = machine.reward[q, c]
    for sweep in range(most):
        moved = False
        for step in range(nodes):
            node = step if sweep % 2 else nodes - 1 - step
            for q in range(states):
                if machine.terminal[q]:
                    continue
                unknown = worth(machine, hope, value, gamma, q, UNKNOWN, node)
                best = -np.inf
                for a in range(actions):
                    row = node * actions + a
                    v = lattice.pay[row]
                    for e in range(lattice.first[row], lattice.first[row] + lattice.size[row]):
                        kind = lattice.kind[e]
                        if kind == UNKNOWN:
                            v += lattice.weight[e] * unknown
                            continue
                        p = plain[q, kind]
                        if p >= 0:
                            v += lattice.weight[e] * (
                                gain[q, kind] + gamma * value[lattice.target[e], p]
                            )
                        elif p == -1:
                            v += lattice.weight[e] * gain[q, kind]
                        else:
                            v += lattice.weight[e] * worth(
                                machine, hope, value, gamma, q, kind, lattice.target[e]
                            )
                    best = max(best, v)
                if abs(best - value[node, q]) > tolerance * abs(best) + floor:
                    moved = True
                value[node, q] = best
        if not moved:
            return sweep + 1
    return most


@inner
def look(model, lattice, machine, hope, gamma, value, s, q, room, t, out):
    """Q(s, q, .) by one step of lookahead."""
    actions, draws = model.law.weight.shape
    kinds = room.share.size
    gather(model.obstacles, s, model.reach, room)
    for a in range(actions):
        total = 0.0
        for k in range(draws):
            chance = model.law.weight[a, k]
            if chance == 0.0:
                continue
            land(model, s, a, k, t, room)
            known = find_kinds(model, t, room)
            corners = around(model, lattice, t if known else s, room, False)
            if corners == 0:
                corners = around(model, lattice, s, room, False)
            if not known:
                for m in range(corners):
                    total += chance * room.corner_weight[m] * worth(
                        machine, hope, value, gamma, q, UNKNOWN, room.corner_node[m]
                    )
                continue
            for c in range(kinds):
                share = room.share[c]
                if share == 0.0:
                    continue
                total += chance * share * room.pay[c]
                if corners == 0:
                    total += chance * share * machine.reward[q, c]
                for m in range(corners):
                    total += chance * share * room.corner_weight[m] * worth(
                        machine, hope, value, gamma, q, c, room.corner_node[m]
                    )
        out[a] = total


@compiled
def look_ahead(model, lattice, machine, hope, gamma, value, s, q, room, out):
    """Q of many states `s[n, d]`, `q[n]`, into `out[n, a]`."""
    t = np.empty(s.shape[1])
    for n in range(len(s)):
        for i in range(s.shape[1]):
            room.from_[i] = s[n, i]
        look(model, lattice, machine, hope, gamma, value, room.from_, q[n], room, t, out[n])


@compiled
def foresee(model, s, a, t, room):
    """The end of a move without noise, into t."""
    gather(model.obstacles, s, model.reach, room)
    land(model, s, a, 0, t, room)


@compiled
def kinds_at(model, t, room):
    """Shares of kinds at t into room.share; whether it is known."""
    gather(model.obstacles, t, model.reach, room)
    return find_kinds(model, t, room)


@compiled
def rehash(lattice):
    """Enter all nodes into a new table."""
    for node in range(lattice.used[0]):
        number = 0
        for i in range(lattice.place.shape[1]):
            number = mixed(number, lattice.place[node, i])
        slot = number & (lattice.key.size - 1)
        while lattice.key[slot] != NOTHING:
            slot = (slot + 1) & (lattice.key.size - 1)
        lattice.key[slot] = node
