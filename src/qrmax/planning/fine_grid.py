"""Approximate optimum of a continuous problem: the exact optimum of its discretisation.

The discretisation error is estimated by solving on a grid of half the points along each side, too:
the difference between both is the error that is reported. Near a border or a goal, the value of a
position changes within about the noise of a move, so a grid has to be about as fine as that; and
if both grids differ by much, it is refined, as long as that takes seconds and not minutes.

A rotated sensor changes nothing but the observations. With a noisy one, the optimum is that of a
policy that sees positions exactly: an upper bound on that of policies of noisy observations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrmax.errors import ParameterError, check_count, check_range, shown, warn
from qrmax.pictures.drawing import Picture
from qrmax.pictures.on_demand import drawn
from qrmax.planning.policy_evaluation import Evaluation, evaluate
from qrmax.planning.value_iteration import Solution, solve
from qrmax.problems.continuous_problem import ContinuousProblem, check_continuous
from qrmax.problems.discretisation import MOST_PARTS as FINEST
from qrmax.problems.discretisation import FineGrid, discretise, n_successors
from qrmax.problems.plane import FloatArray

TOLERANCE = 1e-9  # of the Bellman equations: far below what the grid costs
PART = 1.25  # default length of a part of a cell, in standard deviations of a move
LEAST_PARTS, MOST_PARTS = 2, 16  # along a side of a cell, by default
GOOD = 0.05  # a relative error that needs no finer grid
AFFORDABLE = 2**24  # most transition probabilities that a refined grid may have by default


class GridError(NamedTuple):
    """Difference between a solution and that on a grid with half as many points to a side."""

    value: float  # in the start value
    success: float  # in the probability of success

    def relative(self, value: float, success: float) -> float:
        """Return the larger of the two relative errors."""
        pairs = zip(self, (value, success), strict=True)
        return max((error / abs(of) for error, of in pairs if of), default=0.0)


@dataclass(frozen=True, eq=False)
class FineSolution:
    """Approximate optimum of a continuous problem, found on a grid.

    >>> import qrmax
    >>> solution = qrmax.solve_continuous(qrmax.make("continuous/line/ab"), gamma=0.95)
    >>> round(solution.start_value, 3), round(solution.success, 6), solution.error.value < 0.001
    (0.349, 1.0, True)
    >>> right, left = 0, 1
    >>> solution.actions(np.array([[0.1], [0.9]]), np.array([0, 0])).tolist() == [right, left]
    True
    """

    problem: ContinuousProblem
    gamma: float
    start_value: float  # of an episode from its start, discounted
    success: float  # its probability
    mean_length: float | None  # of the successful episodes; None if there are none
    error: GridError
    grid: FineGrid
    q: FloatArray  # [s, q, a]: the value of every action at every point of the grid

    def actions(self, observations: ArrayLike, q: ArrayLike) -> NDArray[np.int64]:
        """The best action at each observation `[n, d]` with the machine in `q [n]`."""
        seen = self.problem.observations.check_all(observations)
        task = np.asarray(q)
        states = self.problem.n_task_states
        known = task.shape == (len(seen),) and np.isin(task, range(states)).all()
        if not known:
            raise ParameterError(
                f"q is {shown(q)}; needed: a whole number from 0 to {states - 1} for each of "
                f"{len(seen)} observations"
            )
        points, weights = self.grid.around(*self.problem.positions(seen).T)
        values = (weights[:, :, None] * self.q[points, task.astype(int)[:, None]]).sum(axis=1)
        return np.asarray(values.argmax(axis=1))

    def draw(self, show: str = "both", states: Sequence[str] | None = None) -> Picture:
        """Draw the values as colours and the actions as arrows, a panel for each machine state.

        `show` is "both", "values" or "policy"; `states` are the machine states shown, by default
        all that are not terminal. `save` of the picture writes SVG, PNG or PDF.
        """
        picture: Picture = drawn("problem_picture:draw_fine_solution", self, show, states)
        return picture

    def _repr_svg_(self) -> str:
        return self.draw().svg()

    def __repr__(self) -> str:
        return (
            f"FineSolution({self.problem.name!r}: start value {self.start_value:.4g}, "
            f"gamma {self.gamma:g}, {self.grid.n_states} points)"
        )


def solve_continuous(
    problem: ContinuousProblem, gamma: float = 0.9, per_cell: int | None = None
) -> FineSolution:
    """Approximate the optimal value function and policy of a continuous problem on a grid.

    `gamma` is the discount factor. `per_cell` is the number of parts into which a cell is cut along
    each side. By default a part is about as long as the standard deviation of a move on that axis,
    there are 2 to 16 of them, and twice as many if the error would be above 5 % and that can be
    afforded; if it still is, a warning says so.
    """
    check_continuous(problem)
    check_range("gamma", gamma, above=0.0, below=1.0)
    if per_cell is not None:
        check_count("per_cell", per_cell)
        check_range("per_cell", per_cell, at_most=FINEST)
    parts = _parts(problem) if per_cell is None else (per_cell, per_cell)
    rough = _Evaluated.of(_solve(problem, gamma, (max(1, parts[0] // 2), max(1, parts[1] // 2))))
    while True:
        fine = _solve(problem, gamma, parts)
        evaluated = _Evaluated.of(fine)
        error = GridError(
            *(abs(ours - theirs) for ours, theirs in zip(evaluated, rough, strict=True))
        )
        finer = 2 * parts[0], 2 * parts[1]
        relative = error.relative(*evaluated)
        if relative <= GOOD or per_cell is not None or _too_fine(problem, finer):
            break
        del fine  # before the next one needs the memory
        rough, parts = evaluated, finer
    solution, evaluation = fine
    if relative > GOOD and per_cell is None:
        warn(
            f"the optimum of {problem.name!r} is inaccurate: at half the resolution it differs "
            f"by {relative:.0%}; give a larger per_cell than {max(parts)}"
        )
    return FineSolution(
        problem=problem,
        gamma=gamma,
        start_value=evaluated.value,
        success=evaluated.success,
        mean_length=evaluation.mean_length,
        error=error,
        grid=solution.problem.world,  # type: ignore[arg-type]  # discretise put it there
        q=solution.q,
    )


class _Evaluated(NamedTuple):
    """Value and success probability of the optimal policy on a grid."""

    value: float
    success: float

    @classmethod
    def of(cls, solved: tuple[Solution, Evaluation]) -> _Evaluated:
        solution, evaluation = solved
        return cls(solution.start_value, evaluation.success)


def _solve(
    problem: ContinuousProblem, gamma: float, parts: tuple[int, int]
) -> tuple[Solution, Evaluation]:
    solution = solve(discretise(problem, parts), gamma, tolerance=TOLERANCE)
    return solution, evaluate(solution.problem, solution.policy, gamma)


def _too_fine(problem: ContinuousProblem, parts: tuple[int, int]) -> bool:
    """Whether a grid takes more than seconds, or is too fine to be made."""
    return max(parts) > FINEST or n_successors(problem, FineGrid(problem.plane, parts)) > AFFORDABLE


def _parts(problem: ContinuousProblem) -> tuple[int, int]:
    """The default number of parts of a cell along x and along y."""
    noise = problem.plane.noise.tolist()
    x, y = (round(min(MOST_PARTS, 1.0 / (PART * s))) if s else MOST_PARTS for s in noise)
    return max(LEAST_PARTS, x), max(LEAST_PARTS, y)
