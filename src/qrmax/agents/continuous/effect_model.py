"""The model of the world that is planned with, from the transitions observed.

An epoch begins with the unit and the laws fitted to all transitions so far, which stay as they are;
transitions that follow extend it: arrivals, obstacles, and the rows of the lattice that they touch.
The next epoch begins when there are a quarter more transitions. So everything is a function of the
transitions and of the times at which the agent has planned.
"""

from __future__ import annotations

import numpy as np

from qrmax.agents.continuous.displacement_laws import (
    OUTLYING,
    feature_count,
    features_of,
    fit_law,
    largest_degree,
    noise_points,
    typical_move,
)
from qrmax.agents.continuous.lattice import (
    DONE,
    MOST_CORNERS,
    NODES_FULL,
    fill_rows,
    make_lattice,
    mark_dirty,
    with_more_entries,
    with_more_nodes,
)
from qrmax.agents.continuous.local_model import Arrivals, Law, LocalModel, Obstacles, make_room
from qrmax.agents.continuous.lookahead import foresee
from qrmax.agents.continuous.near_points import NOTHING, make_cells
from qrmax.agents.continuous.obstacle_fit import (
    EXTENT,
    SPAN,
    add_arrivals,
    add_stops,
    fit_obstacles,
    open_obstacles,
)
from qrmax.agents.continuous.transition_log import TransitionLog
from qrmax.empirical.growth import padded
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.problems.observations import FAR, Observations

RADIUS = 0.75  # of what an arrival says about the places around it
LEAST_RADIUS, NARROWER = 0.2, 0.7
WIDTH = 1.0 / 3.0  # of the lattice, in two dimensions
APART = 0.15  # arrivals of one kind nearer to one another are one
GROWTH = 1.25  # of the transitions, until the next epoch
LEAST_STOP = 0.1  # moves that fall short by less are not stopped
LONGEST = 5.0  # farther obstacles on the way are not looked for
SHARE = 0.3  # kinds with a smaller share are a surprise


class EffectModel:
    """Laws, obstacles, arrivals and the lattice of one epoch."""

    def __init__(self, log: TransitionLog, observations: Observations, n: int) -> None:
        self.log = log
        self.begun = self.extended = n
        self.unit = typical_move(log.x[:n], log.y[:n])
        d = len(self.unit)
        room = int(GROWTH * n) + 256
        self._fit_laws(n)
        moves = np.linalg.norm(self._law_of(*self._scaled(0, n)[::2]), axis=1)
        self.longest = min(float(moves.max()) + 2.0 * float(self.sigma.max()), LONGEST)
        width = WIDTH * max(1.0, d / 2.0)
        sight = max(width * float(np.sqrt(d)), RADIUS)
        self.reach = self.longest + EXTENT + sight
        self.arrivals = Arrivals(
            np.zeros((room, d)),
            np.full(room, NOTHING, dtype=np.int32),
            np.zeros(room),
            make_cells(RADIUS, room),
        )
        self.obstacles = Obstacles(
            np.zeros((room, d)),
            np.zeros((room, d)),
            np.zeros(room),
            np.zeros(room),
            make_cells(max(SPAN, self.reach), room),
        )
        self._direction, self._strength = np.zeros((room, d)), np.zeros(room)
        self._found: IntArray = np.zeros(room, dtype=np.int32)
        self.n_arrivals = self.n_obstacles = 0
        self.radius = np.array([RADIUS])
        low = np.where(np.abs(observations.low) < FAR, observations.low, -np.inf)
        high = np.where(np.abs(observations.high) < FAR, observations.high, np.inf)
        self.local = LocalModel(
            self.law,
            self.obstacles,
            self.arrivals,
            low / self.unit,
            high / self.unit,
            self.radius,
            self.reach,
            sight,
        )
        self.lattice = make_lattice(width, d, log.sizes.actions)
        self.value: FloatArray = np.zeros((0, log.sizes.task_states))
        self.kinds = 0
        self.extended = 0
        self.extend(n)

    def fits(self, n: int) -> bool:
        """Whether n transitions still belong to this epoch."""
        return n <= GROWTH * self.begun

    def extend(self, n: int) -> None:
        """Take in the transitions up to n."""
        log, i = self.log, self.extended
        if log.kinds_until(n) != self.kinds:
            self.kinds = log.kinds_until(n)
            d = len(self.unit)
            corners = 2**d if d <= MOST_CORNERS else d + 1
            self.room = make_room(
                len(self._found), self.law.coefficient.shape[1], d, self.kinds, corners
            )
        if n > i:
            x, y, a = self._scaled(i, n)
            self._extend_obstacles(x, y, a, n)
            before = self.n_arrivals
            self.n_arrivals = add_arrivals(
                y, log.kind[i:n], log.r_env[i:n], APART, self.arrivals, before, self._found
            )
            new = self.arrivals.at[before : self.n_arrivals]
            mark_dirty(self.lattice, new, self.longest + RADIUS + 0.01)
        self.extended = n
        self._fill()

    def narrow(self) -> bool:
        """Look for unknown places at a finer scale; whether that is possible."""
        if self.radius[0] * NARROWER < LEAST_RADIUS:
            return False
        self.radius[0] *= NARROWER
        self.lattice.dirty[: self.lattice.used[0]] = True
        self._fill()
        return True

    def surprises(self, s: FloatArray, a: int, y: FloatArray, kind: int) -> bool:
        """Whether a move, in units, does not end as foreseen."""
        if kind >= self.kinds:
            return True
        known = foresee(self.local, s, a, y, self.room)
        off = np.abs(self.room.end - y) > OUTLYING * self.sigma[a] + 0.02
        return bool(off.any()) or not known or self.room.share[kind] < SHARE

    def _scaled(self, i: int, n: int) -> tuple[FloatArray, FloatArray, IntArray]:
        log = self.log
        return log.x[i:n] / self.unit, log.y[i:n] / self.unit, log.a[i:n]

    def _fit_laws(self, n: int) -> None:
        x, y, a = self._scaled(0, n)
        actions, d = self.log.sizes.actions, x.shape[1]
        self.degree = largest_degree(d)
        centre = x.mean(axis=0)
        draw, weight = noise_points(np.zeros((d, d)))
        self.law = Law(
            np.zeros((actions, feature_count(d, self.degree), d)),
            centre,
            np.stack([draw] * actions),
            np.stack([weight] * actions),
        )
        self.sigma = np.full((actions, d), 0.01)
        for b in range(actions):
            mine = a == b
            if mine.any():
                found = fit_law(x[mine] - centre, y[mine] - x[mine])
                self.law.coefficient[b], self.sigma[b] = found.coefficient, found.sigma
                self.law.draw[b], self.law.weight[b] = noise_points(found.covariance)

    def _law_of(self, x: FloatArray, a: IntArray) -> FloatArray:
        """Displacements by law, `[n, d]`."""
        features = features_of(x - self.law.centre, self.degree)
        return np.asarray(np.einsum("nf,nfd->nd", features, self.law.coefficient[a]))

    def _extend_obstacles(self, x: FloatArray, y: FloatArray, a: IntArray, n: int) -> None:
        """Take in moves from x to y, the last of n transitions."""
        short = y - x - self._law_of(x, a)
        size, sigma = np.linalg.norm(short, axis=1), self.sigma[a]
        lawful = (np.abs(short) <= OUTLYING * sigma).all(axis=1)
        normal = short / np.maximum(size, 1e-12)[:, None]
        widest = sigma.max(axis=1)
        in_front = ((x - y) * normal).sum(axis=1) >= -3.0 * widest - 0.02
        stopped = ~lawful & (size > LEAST_STOP) & in_front
        walls, old = self.obstacles, self.n_obstacles
        kept = (walls.at, walls.normal, walls.slack[:, None], walls.extent[:, None])
        before = np.concatenate([part[:old] for part in kept], axis=1)
        if stopped.any():
            self.n_obstacles = add_stops(
                y[stopped],
                normal[stopped],
                np.square(size[stopped] / widest[stopped]),
                walls,
                self._direction,
                self._strength,
                old,
                self._found,
            )
            fit_obstacles(walls, self._direction, self._strength, self.n_obstacles, self._found)
            x, y, a = self._scaled(0, n)
            short = y - x - self._law_of(x, a)
            lawful = (np.abs(short) <= OUTLYING * self.sigma[a]).all(axis=1)
        margin = 3.0 * float(np.median(self.sigma))
        open_obstacles(walls, x[lawful], y[lawful], margin, self._found)
        after = np.concatenate([part[: self.n_obstacles] for part in kept], axis=1)
        changed = np.ones(self.n_obstacles, dtype=np.bool_)
        changed[:old] = (np.abs(after[:old] - before) > 1e-6).any(axis=1)
        mark_dirty(self.lattice, walls.at[: self.n_obstacles][changed], self.reach)

    def _fill(self) -> None:
        """Fill the rows of dirty nodes, and make room for the values of new ones."""
        while (code := fill_rows(self.local, self.lattice, self.n_arrivals, self.room)) != DONE:
            if code == NODES_FULL:
                self.lattice = with_more_nodes(self.lattice)
            else:
                self.lattice = with_more_entries(self.lattice, self.log.sizes.actions)
        nodes = int(self.lattice.used[0])
        if nodes > len(self.value):
            self.value = padded(self.value, nodes)
