"""A model of moves: a law for each action, obstacles, and labels by nearest arrivals (compiled)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from qrmax.agents.continuous.near_points import Cells, collect
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.planning.compilation import inner

EXTENT = 0.5
ALIKE = 0.7
SPAN = 1.5
LONE = 0.02
SOFT = 0.05
FAINT = 0.02
BENDS = 3


class Law(NamedTuple):
    coefficient: FloatArray  # [a, feature, d]
    centre: FloatArray  # [d]
    draw: FloatArray  # [a, k, d]
    weight: FloatArray  # [a, k]


class Obstacles(NamedTuple):
    at: FloatArray  # [i, d]
    normal: FloatArray  # [i, d]
    extent: FloatArray  # [i]
    slack: FloatArray  # [i]
    cells: Cells


class Arrivals(NamedTuple):
    at: FloatArray  # [n, d]
    kind: IntArray  # [n]
    pay: FloatArray  # [n]
    cells: Cells


class Room(NamedTuple):
    near: IntArray
    wall: IntArray
    walls: IntArray  # [1]
    feature: FloatArray
    from_: FloatArray
    to: FloatArray
    corner: FloatArray
    fraction: FloatArray
    order: IntArray
    cell: IntArray
    share: FloatArray  # [kind]
    dist: FloatArray  # [kind]
    pay: FloatArray  # [kind]
    corner_node: IntArray
    corner_weight: FloatArray


class LocalModel(NamedTuple):
    law: Law
    obstacles: Obstacles
    arrivals: Arrivals
    low: FloatArray
    high: FloatArray
    radius: FloatArray  # [1]
    reach: float  # of moves, extents and corners


@inner
def features(x, centre, out):
    d = x.size
    out[0] = 1.0
    for i in range(d):
        out[1 + i] = x[i] - centre[i]
    at = 1 + d
    for i in range(d):
        for j in range(i, d):
            if at < out.size:
                out[at] = (x[i] - centre[i]) * (x[j] - centre[j])
                at += 1


@inner
def crossing(obstacles, i, s, t):
    """The part of the way from s to t at which obstacle i stops it; 2 if it does not."""
    at, normal = obstacles.at, obstacles.normal
    slack = obstacles.slack[i]
    d = s.size
    a_s = 0.0
    a_t = 0.0
    for j in range(d):
        a_s += (s[j] - at[i, j]) * normal[i, j]
        a_t += (t[j] - at[i, j]) * normal[i, j]
    if a_t < a_s:
        if a_s < -slack or a_t >= -1e-12:
            return 2.0
    else:
        if a_s >= -slack or a_t <= 1e-12:
            return 2.0
    part = min(max(a_s / (a_s - a_t), 0.0), 1.0)
    off, along = 0.0, 0.0
    for j in range(d):
        w = s[j] + part * (t[j] - s[j]) - at[i, j]
        along += w * normal[i, j]
        off += w * w
    off -= along * along
    if off > obstacles.extent[i] ** 2:
        return 2.0
    return part


@inner
def gather(obstacles, s, reach, room):
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
def first_obstacle(obstacles, s, t, room):
    """The first of the gathered obstacles between s and t, or -1."""
    best, first = 2.0, -1
    for n in range(room.walls[0]):
        i = room.wall[n]
        part = crossing(obstacles, i, s, t)
        if part < best or (part == best and first >= 0 and i < first):
            best, first = part, i
    return first


@inner
def land(model, s, a, k, t, room):
    """The end of a move from s, with draw k of the noise, into t."""
    law = model.law
    d = s.size
    features(s, law.centre, room.feature)
    for j in range(d):
        move = law.draw[a, k, j]
        for f in range(room.feature.size):
            move += law.coefficient[a, f, j] * room.feature[f]
        t[j] = s[j] + move
    obstacles = model.obstacles
    for _ in range(BENDS):
        i = first_obstacle(obstacles, s, t, room)
        if i < 0:
            break
        a_s, a_t = 0.0, 0.0
        for j in range(d):
            a_s += (s[j] - obstacles.at[i, j]) * obstacles.normal[i, j]
            a_t += (t[j] - obstacles.at[i, j]) * obstacles.normal[i, j]
        goal = 0.0 if a_t < a_s else -1.5 * obstacles.slack[i] - 1e-9
        for j in range(d):
            t[j] += (goal - a_t) * obstacles.normal[i, j]
    for j in range(d):
        t[j] = min(max(t[j], model.low[j]), model.high[j])


@inner
def find_kinds(model, t, room):
    """Shares of the kinds of arrivals around t, into room.share; whether there are any."""
    arrivals = model.arrivals
    kinds = room.share.size
    for c in range(kinds):
        room.dist[c] = np.inf
        room.share[c] = 0.0
    limit = model.radius[0] ** 2
    count = collect(arrivals.cells, t, room.near)
    found, seen = False, False
    for n in range(count):
        i = room.near[n]
        off = 0.0
        for j in range(t.size):
            off += (arrivals.at[i, j] - t[j]) ** 2
        c = arrivals.kind[i]
        if off > limit:
            continue
        found = True
        if off < room.dist[c]:
            if room.walls[0] > 0:
                for j in range(t.size):
                    room.to[j] = arrivals.at[i, j]
                if first_obstacle(model.obstacles, t, room.to, room) >= 0:
                    continue
            seen = True
            room.dist[c] = off
            room.pay[c] = arrivals.pay[i]
    if not found:
        return False
    if not seen:
        for n in range(count):
            i = room.near[n]
            off = 0.0
            for j in range(t.size):
                off += (arrivals.at[i, j] - t[j]) ** 2
            c = arrivals.kind[i]
            if off <= limit and off < room.dist[c]:
                room.dist[c] = off
                room.pay[c] = arrivals.pay[i]
    total = 0.0
    for c in range(kinds):
        if room.dist[c] < np.inf:
            room.share[c] = 1.0 / (room.dist[c] + SOFT**2)
            total += room.share[c]
    kept = 0.0
    for c in range(kinds):
        room.share[c] /= total
        if room.share[c] < FAINT:
            room.share[c] = 0.0
        kept += room.share[c]
    for c in range(kinds):
        room.share[c] /= kept
    return True


