"""Effect model."""

from __future__ import annotations

import numpy as np

from qrmax.agents.continuous import displacement_laws as laws
from qrmax.agents.continuous.lattice import Lattice, fill_rows, look_ahead, mark_dirty, solve_lattice
from qrmax.agents.continuous.local_model import EXTENT, SPAN, Arrivals, Law, LocalModel, Obstacles, Room
from qrmax.agents.continuous.near_points import make_cells
from qrmax.agents.continuous.obstacle_fit import add_arrivals, add_stops, fit_obstacles, open_obstacles
from qrmax.empirical.growth import padded

RADIUS = 0.75
WIDTH = 1.0 / 3.0
APART = 0.15
LEAST_RADIUS = 0.2
SPARE = 2.0


class EffectModel:
    """One epoch: unit and law fixed; extended by samples."""

    def __init__(self, data, observations, actions):
        self.data = data
        self.actions = actions
        n = data.n
        self.begun = n
        self.unit = measure(data)
        d = len(self.unit)
        self.d = d
        x, y, a = self._scaled(0, n)
        self.centre = x.mean(0)
        self.degree = 2 if d <= 6 else 1
        F = laws.feature_count(d, self.degree)
        coef = np.zeros((actions, F, d))
        draws, weight = np.zeros((actions, 2 * d + 1, d)), np.zeros((actions, 2 * d + 1))
        weight[:, 0] = 1.0
        self.sigma = np.full((actions, d), 0.01)
        for b in range(actions):
            mine = a == b
            if mine.any():
                coef[b], cov, self.sigma[b] = laws.fit_law(x[mine] - self.centre, y[mine] - x[mine])
                draws[b], weight[b] = laws.noise_points(cov)
        self.law = Law(coef, self.centre, draws, weight)
        self.margin = 3.0 * float(np.median(self.sigma))
        move = np.linalg.norm(self._moves(x, a), axis=1)
        self.longest = min(float(move.max()) + 2.0 * float(self.sigma.max()), 5.0)
        self.reach = self.longest + EXTENT + max(WIDTH * np.sqrt(d), RADIUS)
        box = observations
        self.low = np.where(np.abs(box.low) < 1e30, box.low, -np.inf) / self.unit
        self.high = np.where(np.abs(box.high) < 1e30, box.high, np.inf) / self.unit
        self.radius = np.array([RADIUS])
        self.kinds = len(data.kinds)
        cap = int(2.0 * n) + 1024
        self.found = np.zeros(cap, np.int32)
        self.arrivals = Arrivals(np.zeros((cap, d)), np.full(cap, -1, np.int32), np.zeros(cap), make_cells(RADIUS, cap))
        self.obstacles = Obstacles(np.zeros((cap, d)), np.zeros((cap, d)), np.zeros(cap), np.zeros(cap), make_cells(max(SPAN, self.reach), cap))
        self.first, self.strength = np.zeros((cap, d)), np.zeros(cap)
        self.n_arrivals = self.n_obstacles = 0
        self.cap = cap
        self.odd = 0
        self.used = 0
        self.value = np.zeros((0, data.task_states))
        nodes, entries = 1024, 65536
        self.lattice = Lattice(WIDTH, np.zeros((nodes, d), np.int32), np.zeros((nodes, d)), np.full(4 * nodes, -1, np.int64),
                               np.zeros(nodes * actions, np.int64), np.zeros(nodes * actions, np.int32), np.zeros(nodes, bool),
                               np.zeros(entries, np.int32), np.zeros(entries, np.int32), np.zeros(entries), np.zeros(nodes * actions), np.zeros(3, np.int64))
        self.extend()

    def _scaled(self, i, n):
        d = self.data
        return d.x[i:n] / self.unit, d.y[i:n] / self.unit, d.a[i:n]

    def _moves(self, x, a):
        f = laws.features_of(x - self.centre, self.degree) if len(x) else np.zeros((0, 1))
        if not hasattr(self, "law"):
            raise RuntimeError
        return np.einsum("nf,nfd->nd", f, self.law.coefficient[a])

    @property
    def full(self):
        n = self.data.n
        return n >= self.cap or n > 1.25 * self.begun

    def extend(self):
        i, n = self.used, self.data.n
        x, y, a = self._scaled(i, n)
        if n > i:
            self._extend_obstacles(x, y, a)
            before = self.n_arrivals
            self.n_arrivals = add_arrivals(y, self.data.kind[i:n].copy(), self.data.pay[i:n].copy(), APART, self.arrivals, before, self.found)
            new = self.arrivals.at[before : self.n_arrivals]
            mark_dirty(self.lattice, new, self.longest + RADIUS + 0.01)
        self.used = n
        if len(self.data.kinds) != self.kinds or not hasattr(self, "room"):
            self.kinds = len(self.data.kinds)
            C, d = self.kinds, self.d
            self.room = Room(np.zeros(self.cap, np.int32), np.zeros(self.cap, np.int32), np.zeros(1, np.int64), np.zeros(self.law.coefficient.shape[1]),
                             np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d, np.int32), np.zeros(d, np.int32), np.zeros(C), np.zeros(C), np.zeros(C),
                             np.zeros(2**min(d, 6) + d, np.int32), np.zeros(2**min(d, 6) + d))
        self.local = LocalModel(self.law, self.obstacles, self.arrivals, self.low, self.high, self.radius, self.reach)
        self.fill()

    def _extend_obstacles(self, x, y, a):
        move = self._moves(x, a)
        r = y - x - move
        size = np.linalg.norm(r, axis=1)
        sig = self.sigma[a]
        stopped = (np.abs(r) > 5 * sig).any(1) & (size > 0.1)
        normal = r / np.maximum(size, 1e-12)[:, None]
        front = ((x - y) * normal).sum(1) >= -3 * sig.max(1) - 0.02
        wall = stopped & front
        self.odd += int((stopped & ~front).sum())
        old = self.n_obstacles
        ob = self.obstacles
        before = tuple(v[:old].copy() for v in (ob.at, ob.normal, ob.slack, ob.extent))
        if wall.any():
            self.n_obstacles = add_stops(y[wall], normal[wall], (size[wall] / sig[wall].max(1)) ** 2, ob, self.first, self.strength, old, self.found)
            fit_obstacles(ob, self.first, self.strength, self.n_obstacles, self.found)
            X, Y, A = self._scaled(0, self.data.n)
            R = Y - X - self._moves(X, A)
            free = (np.abs(R) <= 5 * self.sigma[A]).all(1)
            X, Y = X[free], Y[free]
        else:
            X, Y = x[~stopped], y[~stopped]
        open_obstacles(ob, np.ascontiguousarray(X), np.ascontiguousarray(Y), self.margin, self.found)
        changed = np.zeros(self.n_obstacles, bool)
        changed[old:] = True
        for was, now in zip(before, (ob.at, ob.normal, ob.slack, ob.extent), strict=True):
            off = np.abs(now[:old] - was) > 1e-6
            changed[:old] |= off.any(1) if off.ndim == 2 else off
        mark_dirty(self.lattice, ob.at[: self.n_obstacles][changed], self.reach)

    def shrink(self):
        self.radius[0] *= 0.7
        self.lattice.dirty[: self.lattice.used[0]] = True
        self.fill()

    def fill(self):
        while True:
            lat = self.lattice
            code = fill_rows(self.local, lat, self.n_arrivals, self.room)
            if code == 0:
                break
            if code == 1:
                nodes = 2 * len(lat.place)
                key = np.full(4 * nodes, -1, np.int64)
                self.lattice = lat._replace(
                    place=padded(lat.place, nodes), point=padded(lat.point, nodes), dirty=padded(lat.dirty, nodes), key=key,
                    first=padded(lat.first, nodes * self.actions), size=padded(lat.size, nodes * self.actions), pay=padded(lat.pay, nodes * self.actions))
                from qrmax.agents.continuous.lattice import rehash
                rehash(self.lattice)
            else:
                self._compact()
        n = int(self.lattice.used[0])
        if n > len(self.value):
            self.value = padded(self.value, n)

    def _compact(self):
        lat = self.lattice
        rows = int(lat.used[0]) * self.actions
        live = ~np.repeat(lat.dirty[: int(lat.used[0])], self.actions)
        size = np.where(live, lat.size[:rows], 0)
        start = np.concatenate([[0], np.cumsum(size)])
        total = int(start[-1])
        index = np.repeat(lat.first[:rows] - start[:-1], size) + np.arange(total)
        cap = max(2 * len(lat.target), 4 * total) if total * 2 > len(lat.target) else len(lat.target)
        new = lat._replace(target=padded(lat.target[index], cap), kind=padded(lat.kind[index], cap), weight=padded(lat.weight[index], cap))
        new.first[:rows] = start[:-1]
        new.size[:rows] = size
        new.used[1] = total
        self.lattice = new


def measure(data):
    n = data.n
    move = np.abs(data.y[:n] - data.x[:n])
    span = np.ptp(np.concatenate([data.x[:n], data.y[:n]]), axis=0)
    unit = np.maximum(np.quantile(move, 0.9, axis=0), span / 40.0)
    return np.where(unit > 0.0, unit, 1.0)
