"""Transition rows on a lattice of the places that can be reached (compiled).

Nodes are points of a cubic lattice, found by hashing, so that only those around arrivals and around
the ends of moves from other nodes exist. The row of (node, a) is the distribution of where the
draws of a move end (`local_model.py`):

    (kind, target, weight)      reading that kind of label, and the corners of the cell around t

Weights of corners are multilinear or, in more than three dimensions, those of a simplex in Kuhn's
triangulation (Munos and Moore, 2002). A corner that an obstacle hides from t has no weight. A move
to an unknown place has the kind UNKNOWN, and the node itself for its target. Rows are filled again
when they are marked as dirty: an arrival or an obstacle nearby is new or another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.agents.continuous.local_model import (
    LocalModel,
    Room,
    find_kinds,
    gather,
    gather_close,
    in_sight,
    land,
)
from qrmax.agents.continuous.near_points import NOTHING, cell_at, mixed
from qrmax.empirical.growth import padded
from qrmax.planning.arrays import BoolArray, FloatArray, IntArray
from qrmax.planning.compilation import compiled, inlined, inner

UNKNOWN = -1
MOST_CORNERS = 3  # dimensions up to which all corners of a cell count
MOST_NODES = 2**14
DONE, NODES_FULL, ENTRIES_FULL = range(3)

Longs = NDArray[np.int64]


class Lattice(NamedTuple):
    """Nodes and rows; row `node |A| + a`."""

    width: float
    place: IntArray  # [node, d]
    point: FloatArray  # [node, d]
    key: IntArray  # [slot]: a node, or NOTHING
    first: Longs  # [row]: its first entry
    size: IntArray  # [row]: the number of its entries
    reward: FloatArray  # [row]: the mean reward of the world
    dirty: BoolArray  # [node]
    target: IntArray  # [entry]: a node
    kind: IntArray  # [entry]: a kind of arrival, or UNKNOWN
    weight: FloatArray  # [entry]
    used: Longs  # [3]: nodes, entries, arrivals around which there are nodes


def make_lattice(width: float, dimension: int, actions: int) -> Lattice:
    """An empty lattice."""
    nodes, entries = 1024, 2**16
    return Lattice(
        width,
        np.zeros((nodes, dimension), dtype=np.int32),
        np.zeros((nodes, dimension)),
        np.full(4 * nodes, NOTHING, dtype=np.int32),
        np.zeros(nodes * actions, dtype=np.int64),
        np.zeros(nodes * actions, dtype=np.int32),
        np.zeros(nodes * actions),
        np.zeros(nodes, dtype=np.bool_),
        np.zeros(entries, dtype=np.int32),
        np.zeros(entries, dtype=np.int32),
        np.zeros(entries),
        np.zeros(3, dtype=np.int64),
    )


def with_more_nodes(lattice: Lattice) -> Lattice:
    """The lattice with room for twice as many nodes."""
    nodes, rows = 2 * len(lattice.place), 2 * len(lattice.size)
    wider = lattice._replace(
        place=padded(lattice.place, nodes),
        point=padded(lattice.point, nodes),
        key=np.full(4 * nodes, NOTHING, dtype=np.int32),
        first=padded(lattice.first, rows),
        size=padded(lattice.size, rows),
        reward=padded(lattice.reward, rows),
        dirty=padded(lattice.dirty, nodes),
    )
    enter_nodes(wider)
    return wider


def with_more_entries(lattice: Lattice, actions: int) -> Lattice:
    """The lattice without the entries of former rows, with room for more if needed."""
    nodes, rows = int(lattice.used[0]), int(lattice.used[0]) * actions
    size = np.where(np.repeat(lattice.dirty[:nodes], actions), 0, lattice.size[:rows])
    ends = np.cumsum(size, dtype=np.int64)
    first, total = ends - size, int(ends[-1])
    index = np.repeat(lattice.first[:rows] - first, size) + np.arange(total)
    room = len(lattice.target) * (2 if 2 * total > len(lattice.target) else 1)
    packed = lattice._replace(
        target=padded(lattice.target[index], room),
        kind=padded(lattice.kind[index], room),
        weight=padded(lattice.weight[index], room),
    )
    packed.first[:rows], packed.size[:rows], packed.used[1] = first, size, total
    return packed


@inlined
def _slot(lattice: Lattice, cell: IntArray) -> int:
    """The slot of the node of a cell, or the free one where it belongs."""
    number = 0
    for i in range(cell.size):
        number = mixed(number, cell[i])
    slot = number & (lattice.key.size - 1)
    while lattice.key[slot] != NOTHING:
        same = True
        for i in range(cell.size):
            same = same and lattice.place[lattice.key[slot], i] == cell[i]
        if same:
            return slot
        slot = (slot + 1) & (lattice.key.size - 1)
    return slot


@compiled
def enter_nodes(lattice: Lattice) -> None:
    """Enter all nodes into a new table."""
    for node in range(lattice.used[0]):
        lattice.key[_slot(lattice, lattice.place[node])] = node


@inlined
def _take_corner(
    model: LocalModel,
    lattice: Lattice,
    t: FloatArray,
    weight: float,
    count: int,
    room: Room,
    grow: bool,
) -> int:
    """Take the node at `room.cell` if it can be seen from t; the new count, or -1: no room."""
    d = t.size
    for i in range(d):
        room.corner[i] = room.cell[i] * lattice.width
    if not in_sight(model.obstacles, t, room.corner, room):
        return count
    slot = _slot(lattice, room.cell)
    node = lattice.key[slot]
    if node == NOTHING:
        if not grow or lattice.used[0] == MOST_NODES:
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
    room.node[count] = node
    room.weight[count] = weight
    return count + 1


@inner
def _take_simplex(
    model: LocalModel, lattice: Lattice, t: FloatArray, room: Room, grow: bool
) -> int:
    """Take the corners of t's simplex; leaves the cell as it was."""
    d = t.size
    fraction, order, cell = room.fraction, room.order, room.cell
    for i in range(d):
        j = i
        while j > 0 and fraction[order[j - 1]] < fraction[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
    count = 0
    for corner in range(d + 1):
        if corner > 0:
            cell[order[corner - 1]] += 1
        upper = 1.0 if corner == 0 else fraction[order[corner - 1]]
        lower = fraction[order[corner]] if corner < d else 0.0
        if upper - lower > 1e-9 and count >= 0:
            count = _take_corner(model, lattice, t, upper - lower, count, room, grow)
    for i in range(d):
        cell[i] -= 1
    return count


@inner
def around(model: LocalModel, lattice: Lattice, t: FloatArray, room: Room, grow: bool) -> int:
    """Write the nodes around t in sight, and their weights, to the room; the number of them.

    Obstacles close to t must have been gathered. It is -1 if there is no room for a new node; new
    ones are made only to `grow`.
    """
    d = t.size
    fraction, cell = room.fraction, room.cell
    for i in range(d):
        cell[i] = cell_at(t[i], lattice.width)
        fraction[i] = t[i] / lattice.width - cell[i]
    count = 0
    if d > MOST_CORNERS:
        count = _take_simplex(model, lattice, t, room, grow)
    else:
        for corner in range(2**d):
            weight = 1.0
            for i in range(d):
                upper = (corner >> i) & 1
                weight *= fraction[i] if upper else 1.0 - fraction[i]
                cell[i] += upper
            count = _take_corner(model, lattice, t, weight + 1e-6, count, room, grow)
            if count < 0:
                return -1
            for i in range(d):
                cell[i] -= (corner >> i) & 1
    total = 0.0
    for i in range(count):
        total += room.weight[i]
    for i in range(count):
        room.weight[i] /= total
    return count


@compiled
def mark_dirty(lattice: Lattice, places: FloatArray, reach: float) -> None:
    """Mark the nodes within reach of any of these places."""
    for node in range(lattice.used[0]):
        for n in range(len(places)):
            off = 0.0
            for j in range(places.shape[1]):
                off += (lattice.point[node, j] - places[n, j]) ** 2
            if off <= reach**2:
                lattice.dirty[node] = True
                break


@compiled
def fill_rows(model: LocalModel, lattice: Lattice, arrivals: int, room: Room) -> int:
    """Fill the rows of dirty nodes, and of those that they lead to: DONE, or what is full."""
    d = lattice.point.shape[1]
    actions = model.law.weight.shape[0]
    while lattice.used[2] < arrivals:
        for i in range(d):
            room.end[i] = model.arrivals.at[lattice.used[2], i]
        gather(model.obstacles, room.end, model.reach, room)
        gather_close(model.obstacles, room.end, model.sight, room)
        if around(model, lattice, room.end, room, True) < 0:
            return NODES_FULL
        lattice.used[2] += 1
    node = 0
    while node < lattice.used[0]:  # new ones are at the end
        if lattice.dirty[node]:
            for i in range(d):
                room.start[i] = lattice.point[node, i]
            gather(model.obstacles, room.start, model.reach, room)
            kept = lattice.used[1]
            for a in range(actions):
                code = _fill_row(model, lattice, node, a, room)
                if code != DONE:
                    lattice.used[1] = kept
                    return code
            lattice.dirty[node] = False
        node += 1
    return DONE


@inner
def _fill_row(model: LocalModel, lattice: Lattice, node: int, a: int, room: Room) -> int:
    """Fill the row of a node and an action: DONE, or what is full."""
    row = node * model.law.weight.shape[0] + a
    first = lattice.used[1]
    entries = first
    lattice.first[row] = first
    lattice.reward[row] = 0.0
    for k in range(model.law.weight.shape[1]):
        chance = model.law.weight[a, k]
        if chance == 0.0:
            continue
        land(model, room.start, a, k, room.end, room)
        known = find_kinds(model, room.end, room)
        corners = around(model, lattice, room.end, room, True) if known else 0
        if corners < 0:
            return NODES_FULL
        if corners == 0:
            corners = 1
            room.node[0] = node
            room.weight[0] = 1.0
        for c in range(room.share.size if known else 1):
            share = room.share[c] if known else 1.0
            kind = c if known else UNKNOWN
            if share == 0.0:
                continue
            if known:
                lattice.reward[row] += chance * share * room.reward[c]
            for m in range(corners):
                at = first
                while at < entries and not (
                    lattice.target[at] == room.node[m] and lattice.kind[at] == kind
                ):
                    at += 1
                if at == entries:
                    if entries == lattice.target.size:
                        return ENTRIES_FULL
                    lattice.target[at] = room.node[m]
                    lattice.kind[at] = kind
                    lattice.weight[at] = 0.0
                    entries += 1
                lattice.weight[at] += chance * share * room.weight[m]
    lattice.used[1] = entries
    lattice.size[row] = entries - first
    return DONE
