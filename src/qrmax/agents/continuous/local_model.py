"""A model of single moves: a law for each action, obstacles, and labels of places (compiled).

In units of a typical move (`displacement_laws.py`), a move of action a from s ends at

    t = s + f_a(s) + e        e: draws of the noise, with their weights

unless an obstacle is between. Obstacle i is a disc with centre c_i, normal n_i and radius rho_i
(`obstacle_fit.py`). A move that crosses one, from either side, ends on its plane, and slides along
it with what is left of the move; four times at most. A start within the slack of a plane counts as
in front of it.

The kind of an arrival is its label and whether the world ended. At t the kind c has the weight

    w_c = 1 / (d_c^2 + 0.05^2)        d_c: distance to the nearest arrival of this kind

among the arrivals that no obstacle hides from t. A place without any arrival within `radius` is
unknown. Class-wise nearest neighbours make up for kinds that are rarely visited, such as holes.

Assumes: between its border and the nearest visits a label does not change; obstacles are as wide as
half a move until a move has crossed them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qrmax.agents.continuous.near_points import Cells, collect
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.planning.compilation import inlined, inner

SOFT = 0.05  # distances below this hardly differ
FAINT = 0.02  # kinds with a smaller share are left out
BENDS = 4  # obstacles that one move can meet; in a corner the first one once more
CLEAR = 1e-3  # distance of the end of a stopped move from the plane


class Law(NamedTuple):
    """Displacements of all actions, as polynomials."""

    coefficient: FloatArray  # [a, feature, d]
    centre: FloatArray  # [d], of the features
    draw: FloatArray  # [a, k, d]; draw 0 is 0
    weight: FloatArray  # [a, k]


class Obstacles(NamedTuple):
    """Discs that stop moves."""

    at: FloatArray  # c, [i, d]
    normal: FloatArray  # n, [i, d]
    extent: FloatArray  # rho, [i]
    slack: FloatArray  # [i]
    cells: Cells


class Arrivals(NamedTuple):
    """Places reached, thinned."""

    at: FloatArray  # [i, d]
    kind: IntArray  # [i]
    reward: FloatArray  # [i], of the world
    cells: Cells


class LocalModel(NamedTuple):
    """Everything that the end of a move depends on."""

    law: Law
    obstacles: Obstacles
    arrivals: Arrivals
    low: FloatArray  # [d], bounds of observations; infinite if there are none
    high: FloatArray  # [d]
    radius: FloatArray  # [1]: without arrivals within it, a place is unknown
    reach: float  # farthest obstacle that can matter for a move from a place
    sight: float  # farthest arrival or corner of a cell that can matter at a place


class Room(NamedTuple):
    """Buffers."""

    near: IntArray  # [i]
    wall: IntArray  # [i]: the obstacles within reach
    close: IntArray  # [i]: those of them that can hide anything from a place
    walls: IntArray  # [2]: the numbers of both
    feature: FloatArray  # [feature]
    start: FloatArray  # [d]
    end: FloatArray  # [d]
    other: FloatArray  # [d]
    corner: FloatArray  # [d]
    fraction: FloatArray  # [d]
    order: IntArray  # [d]
    cell: IntArray  # [d]
    share: FloatArray  # [kind]
    distance: FloatArray  # [kind], squared
    reward: FloatArray  # [kind]
    node: IntArray  # [corner]
    weight: FloatArray  # [corner]


def make_room(points: int, features: int, dimension: int, kinds: int, corners: int) -> Room:
    """Buffers for that many points, features, dimensions, kinds of arrivals and corners."""
    return Room(
        near=np.zeros(points, dtype=np.int32),
        wall=np.zeros(points, dtype=np.int32),
        close=np.zeros(points, dtype=np.int32),
        walls=np.zeros(2, dtype=np.int32),
        feature=np.zeros(features),
        start=np.zeros(dimension),
        end=np.zeros(dimension),
        other=np.zeros(dimension),
        corner=np.zeros(dimension),
        fraction=np.zeros(dimension),
        order=np.zeros(dimension, dtype=np.int32),
        cell=np.zeros(dimension, dtype=np.int32),
        share=np.zeros(kinds),
        distance=np.zeros(kinds),
        reward=np.zeros(kinds),
        node=np.zeros(corners, dtype=np.int32),
        weight=np.zeros(corners),
    )


@inlined
def _features(x: FloatArray, centre: FloatArray, out: FloatArray) -> None:
    """1, x_i and x_i x_j, as many of them as there is room for (as `features_of` in NumPy)."""
    d = x.size
    out[0] = 1.0
    at = 1
    for i in range(d):
        if at < out.size:
            out[at] = x[i] - centre[i]
            at += 1
    for i in range(d):
        for j in range(i, d):
            if at < out.size:
                out[at] = (x[i] - centre[i]) * (x[j] - centre[j])
                at += 1


@inlined
def crossing(obstacles: Obstacles, i: int, s: FloatArray, t: FloatArray) -> float:
    """The part of the way from s to t after which obstacle i stops it; 2 if it does not."""
    at, normal, slack = obstacles.at, obstacles.normal, obstacles.slack[i]
    before, after = 0.0, 0.0  # distances to the plane
    for j in range(s.size):
        before += (s[j] - at[i, j]) * normal[i, j]
        after += (t[j] - at[i, j]) * normal[i, j]
    if after < before:
        if before < -slack or after >= -1e-12:
            return 2.0
    elif before >= -slack or after <= 1e-12:
        return 2.0
    part = min(max(before / (before - after), 0.0), 1.0)
    off, along = 0.0, 0.0
    for j in range(s.size):
        w = s[j] + part * (t[j] - s[j]) - at[i, j]
        along += w * normal[i, j]
        off += w * w
    return part if off - along * along <= obstacles.extent[i] ** 2 else 2.0


@inner
def gather(obstacles: Obstacles, s: FloatArray, reach: float, room: Room) -> None:
    """Note the obstacles within reach of s, which `first_obstacle` looks at."""
    count = 0
    for n in range(collect(obstacles.cells, s, room.near)):
        i = room.near[n]
        off = 0.0
        for j in range(s.size):
            off += (obstacles.at[i, j] - s[j]) ** 2
        if off <= reach**2 and obstacles.extent[i] > 0.0:
            room.wall[count] = i
            count += 1
    room.walls[0] = count


@inner
def first_obstacle(obstacles: Obstacles, s: FloatArray, t: FloatArray, room: Room) -> int:
    """The first of the gathered obstacles between s and t, or -1."""
    best, first = 2.0, -1
    for n in range(room.walls[0]):
        i = room.wall[n]
        part = crossing(obstacles, i, s, t)
        if part < best or (part == best and first > i):
            best, first = part, i
    return first


@inner
def gather_close(obstacles: Obstacles, t: FloatArray, sight: float, room: Room) -> None:
    """Note those of the gathered obstacles that can hide anything from t within sight of it."""
    count = 0
    for n in range(room.walls[0]):
        i = room.wall[n]
        off = 0.0
        for j in range(t.size):
            off += (obstacles.at[i, j] - t[j]) ** 2
        if off <= (sight + obstacles.extent[i]) ** 2:
            room.close[count] = i
            count += 1
    room.walls[1] = count


@inlined
def in_sight(obstacles: Obstacles, t: FloatArray, x: FloatArray, room: Room) -> bool:
    """Whether none of the obstacles that are close to t is between t and x."""
    clear = True
    for n in range(room.walls[1]):
        clear = clear and crossing(obstacles, room.close[n], t, x) > 1.0
    return clear


@inner
def land(model: LocalModel, s: FloatArray, a: int, k: int, t: FloatArray, room: Room) -> None:
    """Write the end of a move from s, with draw k of the noise, to t."""
    law, obstacles, d = model.law, model.obstacles, s.size
    _features(s, law.centre, room.feature)
    for j in range(d):
        move = law.draw[a, k, j]
        for f in range(room.feature.size):
            move += law.coefficient[a, f, j] * room.feature[f]
        t[j] = s[j] + move
    for _ in range(BENDS):
        i = first_obstacle(obstacles, s, t, room)
        if i < 0:
            break
        before, after = 0.0, 0.0
        for j in range(d):
            before += (s[j] - obstacles.at[i, j]) * obstacles.normal[i, j]
            after += (t[j] - obstacles.at[i, j]) * obstacles.normal[i, j]
        goal = CLEAR if after < before else -1.5 * obstacles.slack[i] - CLEAR
        for j in range(d):
            t[j] += (goal - after) * obstacles.normal[i, j]
    for j in range(d):
        t[j] = min(max(t[j], model.low[j]), model.high[j])


@inner
def find_kinds(model: LocalModel, t: FloatArray, room: Room) -> bool:
    """Write the shares of the kinds at t to `room.share`; whether the place is known.

    Obstacles close to t are gathered, for `in_sight`.
    """
    gather_close(model.obstacles, t, model.sight, room)
    arrivals = model.arrivals
    for c in range(room.share.size):
        room.distance[c] = np.inf
        room.share[c] = 0.0
    count = collect(arrivals.cells, t, room.near)
    found, seen = _nearest(model, t, count, True, room)
    if not found:
        return False
    if not seen:
        _nearest(model, t, count, False, room)
    total = 0.0
    for c in range(room.share.size):
        if room.distance[c] < np.inf:
            room.share[c] = 1.0 / (room.distance[c] + SOFT**2)
            total += room.share[c]
    kept = 0.0
    for c in range(room.share.size):
        room.share[c] /= total
        if room.share[c] < FAINT:
            room.share[c] = 0.0
        kept += room.share[c]
    for c in range(room.share.size):
        room.share[c] /= kept
    return True


@inner
def _nearest(
    model: LocalModel, t: FloatArray, count: int, open_only: bool, room: Room
) -> tuple[bool, bool]:
    """The nearest collected arrivals of each kind; whether there are any, and any in sight."""
    arrivals, limit = model.arrivals, model.radius[0] ** 2
    found, seen = False, False
    for n in range(count):
        i = room.near[n]
        off = 0.0
        for j in range(t.size):
            off += (arrivals.at[i, j] - t[j]) ** 2
        if off > limit:
            continue
        found = True
        c = arrivals.kind[i]
        if off >= room.distance[c]:
            continue
        if open_only and room.walls[1] > 0:
            for j in range(t.size):
                room.other[j] = arrivals.at[i, j]
            if not in_sight(model.obstacles, t, room.other, room):
                continue
        seen = True
        room.distance[c] = off
        room.reward[c] = arrivals.reward[i]
    return found, seen
