"""A continuous problem on a fine grid: numbered points instead of positions.

Every cell has points of its own, in equal parts along each side, borders included. A function on
the plane is its values at these points, interpolated in between, within each cell. So its
expectation over the end of a move is a sum over points,

    E f(x', y') = sum_i E w_i(x', y') f(point i)        w_i: interpolation weight of point i

and E w_i is the transition probability to point i. Nothing is sampled for it: a move goes along x,
then along y, with independent noise, and along one axis the weights are piecewise polynomials,
whose expectations over a normal distribution are known. So the probability of each cell, and with
it of each label, reward and termination, is that of the true move, however near a border it begins
and however small the noise is relative to the grid; quadrature nodes in place of the noise would be
off by up to a node there. Probability mass beyond a wall is put at the wall.

Linear interpolation between two points adds variance to a move, 1/6 of their distance squared on
average: half as much again as the noise, if they are three standard deviations apart. So the
interpolation is cubic. With u from 0 to 1 between points 0 and 1, and D_i the second difference at
point i, the cubic through points -1, 0, 1, 2 is

    f(u) = (1 - u) f(0) + u f(1) - u (1 - u) (2 - u) / 6 D_0 - u (1 - u) (1 + u) / 6 D_1

and a second difference in f adds 2 e to a point and takes e off both neighbours, limited so that no
probability becomes negative. At the border of a cell it is the parabola through its first or last
three points.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import ParameterError, QRMaxWarning, check_count, check_range
from qrmax.problems.continuous_problem import ContinuousProblem, check_continuous
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.plane import DOWN, LEFT, NEAR, RIGHT, UP, FloatArray, Plane
from qrmax.problems.problem import Problem

IndexArray = NDArray[np.int64]

FAR = 8.0  # standard deviations: nothing lands farther than this
LIKELY = 4.0  # standard deviations: hardly anything lands farther than this
NEGLIGIBLE = 1e-4  # points less likely than this, relative to the likeliest, are left out
AT_ONCE = 2**19  # successors computed per block
MOST = 2**29  # successors in all: some gigabytes
MOST_PARTS = 256

_erf = np.vectorize(math.erf, otypes=[np.float64])


class FineGrid:
    """The points of a plane.

    Point (i, j) of a cell, counted along x and y from its upper left corner, is state
    (cell * rows + j) * columns + i, for cells of `rows` x `columns` points.
    """

    def __init__(self, plane: Plane, per_cell: tuple[int, int]) -> None:
        self.plane = plane
        self.per_cell = per_cell
        self.x = np.linspace(0.0, 1.0, per_cell[0] + 1)  # [i], offsets of points in their cell
        self.y = np.linspace(0.0, 1.0, per_cell[1] + 1)  # [j]
        if len(plane.scale) == 1:
            self.y = np.array([0.5])  # a line: nothing moves across it

    @property
    def size(self) -> int:
        """The number of points in a cell."""
        return len(self.x) * len(self.y)

    @property
    def n_states(self) -> int:
        """The number of points."""
        return len(self.plane.wall) * self.size

    @property
    def cell(self) -> IndexArray:
        """The cell of each point, `[s]`."""
        return np.repeat(np.arange(len(self.plane.wall)), self.size)

    def around(self, x: FloatArray, y: FloatArray) -> tuple[IndexArray, FloatArray]:
        """The points around each position, in its own cell, and their weights, `[n, 4]`."""
        i, right = _between(x - np.floor(x), len(self.x) - 1)
        j, below = _between(y - np.floor(y), len(self.y) - 1)
        cell = np.floor(y).astype(np.int64) * self.plane.columns + np.floor(x).astype(np.int64)
        corner = (cell * len(self.y) + j) * len(self.x) + i
        down = len(self.x) if len(self.y) > 1 else 0
        points = np.stack([corner, corner + 1, corner + down, corner + down + 1], axis=1)
        left, above = 1.0 - right, 1.0 - below
        weights = [above * left, above * right, below * left, below * right]
        return points, np.stack(weights, axis=1)


def discretise(problem: ContinuousProblem, per_cell: int | tuple[int, int]) -> Problem:
    """A continuous problem as one over the points of a fine grid.

    `per_cell` is the number of parts of a cell along each side, or along x and along y. The `world`
    of the new problem is the `FineGrid`.

    >>> import qrmax
    >>> discretise(qrmax.make("continuous/line/ab"), per_cell=4)
    Problem('continuous/line/ab on a fine grid': 100 states x 3 task states, 2 actions)
    """
    check_continuous(problem)
    parts = per_cell if isinstance(per_cell, tuple) else (per_cell, per_cell)
    for count in parts:
        check_count("per_cell", count)
        check_range("per_cell", count, at_most=MOST_PARTS)
    grid = FineGrid(problem.plane, parts)
    start = np.zeros(grid.n_states)
    points, weights = grid.around(*np.array(problem.start_position)[:, None])
    np.add.at(start, points[0], weights[0])
    succ, prob = _successors(problem, grid)
    reward = problem.plane.reward
    mdp = TabularMDP(
        succ,
        prob,
        reward[succ // grid.size] if reward.any() else None,
        terminal=problem.terminal[grid.cell],
        start=start,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QRMaxWarning)  # the continuous problem has warned already
        return Problem(
            mdp,
            problem.machine,
            problem.labels,
            problem.label[grid.cell],
            max_episode_steps=problem.max_episode_steps,
            name=f"{problem.name} on a fine grid",
            world=grid,
        )


class _Axis(NamedTuple):
    """End points of moves along one axis: the m-th of the likely ones, and its probability.

    Cells with walls at the same distances back and forth are of one kind, and share an entry.
    """

    kind: IndexArray  # [cell]
    way: IndexArray  # [a]
    shift: IndexArray  # [kind, way, point, m]: in cells
    point: IndexArray  # [kind, way, point, m]: the point in the cell reached
    weight: FloatArray  # [kind, way, point, m]


def _successors(problem: ContinuousProblem, grid: FineGrid) -> tuple[NDArray[np.int32], FloatArray]:
    """Successors of each point and action, and their probabilities, `[s, a, k]`."""
    n_actions = problem.n_actions
    _check_size(grid, n_successors(problem, grid))
    x, y = _axis(grid, grid.x, 0), _axis(grid, grid.y, 1)
    width = x.weight.shape[3] * y.weight.shape[3]
    blocks = -(-problem.n_cells * grid.size * width // AT_ONCE)
    parts = [
        [_block(grid, x, y, cells, a) for a in range(n_actions)]
        for cells in np.array_split(np.arange(problem.n_cells), min(blocks, problem.n_cells))
    ]
    width = max(points.shape[1] for row in parts for points, _ in row)
    succ = np.zeros((grid.n_states, n_actions, width), dtype=np.int32)
    prob = np.zeros(succ.shape)
    at = grid.n_states
    while parts:  # each is freed once it is copied
        row = parts.pop()
        at -= len(row[0][0])
        for a, (points, chances) in enumerate(row):
            succ[at : at + len(points), a, : points.shape[1]] = points
            prob[at : at + len(points), a, : points.shape[1]] = chances
    return succ, prob


def n_successors(problem: ContinuousProblem, grid: FineGrid) -> int:
    """The approximate number of successors of all actions on a grid."""
    spread = np.ceil(2.0 * LIKELY * problem.plane.noise * grid.per_cell) + 2.0
    return int(grid.n_states * problem.n_actions * np.minimum(spread, grid.n_states).prod())


def _block(
    grid: FineGrid, x: _Axis, y: _Axis, cells: IndexArray, a: int
) -> tuple[NDArray[np.int32], FloatArray]:
    """Successors of the points of some cells under one action, `[s, k]`: first along x, then y."""
    kind, way = x.kind[cells], x.way[a]
    column = cells[:, None, None] + x.shift[kind, way]  # [cell, i, m]
    kind_there, way_there = y.kind[column], y.way[a]
    shift = y.shift[kind_there, way_there]  # [cell, i, m, j, l]
    cell = column[..., None, None] + shift * grid.plane.columns
    point = cell * len(grid.y) + y.point[kind_there, way_there]
    point = point * len(grid.x) + x.point[kind, way][..., None, None]
    weight = y.weight[kind_there, way_there] * x.weight[kind, way][..., None, None]
    shape = (len(cells) * grid.size, -1)
    return _likely(
        point.transpose(0, 3, 1, 2, 4).reshape(shape),
        weight.transpose(0, 3, 1, 2, 4).reshape(shape),
    )


def _likely(points: IndexArray, weights: FloatArray) -> tuple[NDArray[np.int32], FloatArray]:
    """The points of each row that are not negligible, moved to its front and renormalised."""
    likely = _not_negligible(weights)
    row, column = np.nonzero(likely)
    place = likely.cumsum(axis=1)[row, column] - 1
    shape = (len(points), int(place.max()) + 1)
    kept, chances = np.zeros(shape, dtype=np.int32), np.zeros(shape)
    kept[row, place] = points[row, column]
    chances[row, place] = weights[row, column]
    return kept, chances / chances.sum(axis=1, keepdims=True)


def _not_negligible(weights: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(weights > NEGLIGIBLE * weights.max(axis=-1, keepdims=True))


def _check_size(grid: FineGrid, entries: int) -> None:
    if entries > MOST:
        raise ParameterError(
            f"a grid of {grid.per_cell[0]} x {grid.per_cell[1]} parts to a cell has "
            f"{grid.n_states} points here, and about {entries} transitions; allowed: {MOST}. "
            "Give fewer parts, or less noise"
        )


def _axis(grid: FineGrid, offsets: FloatArray, axis: int) -> _Axis:
    """Moves along one axis, from the points at these offsets of any cell."""
    plane = grid.plane
    ways, way = np.unique(plane.direction[:, axis], return_inverse=True)
    noise = float(plane.noise[axis])
    back, forth = _reach(plane, axis)
    farthest = int(max(back.max(), forth.max()))
    far = int(min(farthest, math.ceil(np.abs(ways).max() + FAR * noise) + 1))
    runs, kind = np.unique(
        np.minimum(np.stack([back, forth], axis=1), far), axis=0, return_inverse=True
    )
    _check_size(grid, len(runs) * len(ways) * (2 * far + 1) * len(offsets) ** 2)
    free = _without_walls(offsets, ways, noise, far)  # [way, point, cell, point]
    stopped = np.stack([_stopped(free, far, *run) for run in runs.tolist()])
    flat = stopped.reshape(*stopped.shape[:3], -1)
    width = int(_not_negligible(flat).sum(axis=-1).max())
    order = np.argsort(-flat, axis=-1, kind="stable")[..., :width]
    shift, point = np.divmod(order, len(offsets))
    weight = np.take_along_axis(flat, order, axis=-1)
    shift = np.where(weight > 0.0, shift - far, 0)  # padding stays, where there is a cell
    return _Axis(kind.reshape(-1), way.reshape(-1), shift, point, weight)


def _without_walls(offsets: FloatArray, ways: FloatArray, noise: float, far: int) -> FloatArray:
    """The probability of the points up to `far` cells away, `[way, point, cell, point]`.

    Probability mass beyond that is put at the last point on that side.
    """
    parts = len(offsets) - 1
    if parts == 0:  # across a line, where nothing moves
        return np.ones((len(ways), 1, 1, 1))
    border = np.arange(-far * parts, (far + 1) * parts + 1) / parts
    start = np.minimum(offsets, 1.0 - NEAR)  # the last point is also within its cell
    ahead = (start + ways[:, None])[..., None] - border  # [way, point, border]
    if noise > NEAR:
        beyond = 0.5 * (1.0 + _erf(ahead / (noise * math.sqrt(2.0))))
        density = np.exp(-0.5 * (ahead / noise) ** 2) / math.sqrt(2.0 * math.pi)
    else:
        ahead = np.round(ahead, 12)  # rounding errors must not decide the side of a border
        beyond, density = (ahead >= 0.0).astype(np.float64), np.zeros_like(ahead)
    by_cell = (len(ways), len(offsets), 2 * far + 1, parts)
    m0, m1, m2, m3 = (
        moment.reshape(by_cell)
        for moment in _moments(ahead[..., :-1] * parts, noise * parts, beyond, density)
    )
    weight = np.zeros((*by_cell[:3], parts + 1))
    weight[..., :-1] += np.maximum(m0 - m1, 0.0)
    weight[..., 1:] += np.maximum(m1, 0.0)
    _bend(weight, np.maximum(m1 - m2, 0.0), np.maximum(m2 - m3, 0.0))
    weight[..., 0, 0] += 1.0 - beyond[..., 0]
    weight[..., -1, -1] += beyond[..., -1]
    return weight


def _moments(
    mean: FloatArray, noise: float, beyond: FloatArray, density: FloatArray
) -> tuple[FloatArray, ...]:
    """E[u**k; 0 <= u < 1] for k = 0, 1, 2, 3 and u normal, by integration by parts.

    `beyond` is the probability of being beyond each border, 0 and 1 and so on; `density` is that of
    the standard normal number there.
    """
    at_0, at_1 = noise * density[..., :-1], noise * density[..., 1:]
    m0 = beyond[..., :-1] - beyond[..., 1:]
    m1 = mean * m0 + at_0 - at_1
    m2 = mean * m1 + noise**2 * m0 - at_1
    m3 = mean * m2 + 2.0 * noise**2 * m1 - at_1
    return m0, m1, m2, m3


def _bend(weight: FloatArray, bend: FloatArray, skew: FloatArray) -> None:
    """Turn linear interpolation into cubic, limited so that no weight becomes negative.

    `bend` and `skew` are E[u (1 - u)] and E[u u (1 - u)] between each point and the next.
    """
    gain = np.zeros_like(weight)  # e, at each point; at the ends of a cell there is none
    gain[..., 1:-2] += (2.0 * bend - skew)[..., 1:-1] / 6.0
    gain[..., 2:-1] += (bend + skew)[..., 1:-1] / 6.0
    if bend.shape[-1] > 1:
        gain[..., 1] += bend[..., 0] / 2.0
        gain[..., -2] += bend[..., -1] / 2.0
    asked = _beside(gain)
    share = np.minimum(1.0, weight / np.maximum(asked, np.finfo(float).tiny))
    gain[..., 1:-1] *= np.minimum(share[..., :-2], share[..., 2:])
    weight += 2.0 * gain - _beside(gain)


def _beside(gain: FloatArray) -> FloatArray:
    """The weight that both neighbours of each point gain."""
    total = np.zeros_like(gain)
    total[..., :-1] += gain[..., 1:]
    total[..., 1:] += gain[..., :-1]
    return total


def _stopped(free: FloatArray, far: int, back: int, forth: int) -> FloatArray:
    """The same with walls `back` and `forth` cells away: mass beyond a wall is put at it."""
    weight = np.zeros_like(free)
    first, last = far - back, far + forth
    weight[:, :, first : last + 1] = free[:, :, first : last + 1]
    weight[:, :, first, 0] += free[:, :, :first].sum(axis=(2, 3))
    weight[:, :, last, -1] += free[:, :, last + 1 :].sum(axis=(2, 3))
    return weight


def _reach(plane: Plane, axis: int) -> tuple[IndexArray, IndexArray]:
    """The number of cells back and forth from each cell until a wall, `[cell]`."""
    wall = plane.wall.reshape(-1, plane.columns, 4)
    closed = wall[:, :, [LEFT, RIGHT]] if axis == 0 else wall[:, :, [UP, DOWN]].swapaxes(0, 1)
    back, forth = np.zeros((2, *closed.shape[:2]), dtype=np.int64)  # [line, place]
    for place in range(1, closed.shape[1]):
        back[:, place] = np.where(closed[:, place, 0], 0, back[:, place - 1] + 1)
        mirror = closed.shape[1] - 1 - place
        forth[:, mirror] = np.where(closed[:, mirror, 1], 0, forth[:, mirror + 1] + 1)
    if axis == 1:
        back, forth = back.T, forth.T
    return back.reshape(-1), forth.reshape(-1)


def _between(offset: FloatArray, parts: int) -> tuple[IndexArray, FloatArray]:
    """The last point at or before each offset in a cell, and the weight of the next one."""
    if parts == 0:
        return np.zeros(len(offset), dtype=np.int64), np.zeros(len(offset))
    point = np.minimum((offset * parts).astype(np.int64), parts - 1)
    return point, offset * parts - point
