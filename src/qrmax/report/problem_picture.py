"""Pictures of problems and of what is known about their states: values, policies, visits.

    problem.draw()                                 the map, and the machine beside it
    solution.draw()                                optimal values and actions
    run.draw("policy" | "values" | "visits" | "known" | "buckets")

Panels are one for each machine state that is not terminal and that the labels of the problem lead
to, unless nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import check_choice
from qrmax.pictures.colour_scale import ColourScale
from qrmax.pictures.composition import beside
from qrmax.pictures.drawing import Picture
from qrmax.report.ground import Ground, cell_scale
from qrmax.report.machine_picture import draw_machine
from qrmax.report.map_picture import draw_map
from qrmax.report.scene import PlaneScene, TabularScene, scene_of
from qrmax.report.state_panels import Panel, draw_panels, machine_panels
from qrmax.worlds.grid import GridMap
from qrmax.worlds.picture import Walker

if TYPE_CHECKING:
    from qrmax.planning.fine_grid import FineSolution
    from qrmax.planning.staged_solution import StagedSolution
    from qrmax.planning.value_iteration import Solution
    from qrmax.problems.continuous_problem import ContinuousProblem
    from qrmax.problems.problem import Problem

SHOWN = ("both", "values", "policy")


def draw_problem(
    problem: Problem | ContinuousProblem, walker: Walker | None = None, *, machine: bool = True
) -> Picture:
    """The map of a problem, or its states as a grid or graph; the machine beside it."""
    world = world_picture(problem, walker)
    if not machine:
        return world
    there = problem.machine.restricted(problem.labels, name=problem.machine.name)
    return beside(world, draw_machine(there), title=problem.name)


def world_picture(problem: Problem | ContinuousProblem, walker: Walker | None = None) -> Picture:
    """The map of a problem, or its states as a grid or graph."""
    grid = problem.world
    if isinstance(grid, GridMap):
        return draw_map(grid, cell=cell_scale(problem), walker=walker, title=problem.name)
    ground = scene_of(problem).whole_ground
    nothing = np.full(len(ground.places), np.nan)
    none = np.full(len(ground.places), -1, dtype=np.int32)
    about = f"{len(ground.places)} states, {problem.n_actions} actions"
    panel = Panel("", "", nothing, none)
    return draw_panels(ground, [panel], title=problem.name, about=about, scale=None, scale_name="")


def draw_solution(
    solution: Solution | StagedSolution,
    show: str = "both",
    states: Sequence[str] | None = None,
    stage: int = 0,
) -> Picture:
    """Optimal values as colours, optimal actions as arrows."""
    problem = solution.problem
    policy = solution.policy if solution.policy.ndim == 2 else solution.policy[stage]
    at = "" if solution.policy.ndim == 2 else f", horizon {len(solution.policy)}, stage {stage}"
    return draw_values(
        problem,
        solution.value,
        policy,
        title=f"{problem.name}: the optimum",
        about=f"gamma {solution.gamma:g}{at}; value of the start {solution.start_value:.4g}",
        show=show,
        states=states,
    )


def draw_values(
    problem: Problem,
    value: NDArray[np.float64],
    policy: NDArray[np.int32],
    *,
    title: str,
    about: str,
    show: str = "both",
    states: Sequence[str] | None = None,
) -> Picture:
    """Values `[s, q]` as colours and actions `[s, q]` as arrows, a panel for each machine state."""
    check_choice("show", show, SHOWN)
    scene = TabularScene(problem)
    fill = scene.worth_showing(value)
    moves = np.where(np.isnan(fill), -1, policy)
    return value_panels(problem, scene.ground, fill, moves, title, about, show, states)


def draw_fine_solution(
    solution: FineSolution, show: str = "both", states: Sequence[str] | None = None
) -> Picture:
    """The near-optimal values and actions of a continuous problem, as a field."""
    problem = solution.problem
    check_choice("show", show, SHOWN)
    scene = PlaneScene(problem)
    points, weights = solution.grid.around(*scene.ground.at.T)
    values = (weights[:, :, None, None] * solution.q[points]).sum(axis=1)  # [n, q, a]
    fill = np.where(scene.done, np.nan, values.max(axis=2))
    moves = np.where(scene.done | (fill == 0.0), -1, values.argmax(axis=2))
    about = f"gamma {solution.gamma:g}; value of the start {solution.start_value:.4g}"
    title = f"{problem.name}: near-optimal"
    return value_panels(problem, scene.ground, fill, moves, title, about, show, states)


def value_panels(
    problem: Problem | ContinuousProblem,
    ground: Ground,
    fill: NDArray[Any],
    moves: NDArray[Any],
    title: str,
    about: str,
    show: str,
    states: Sequence[str] | None,
) -> Picture:
    """Values `[s, q]` as colours and actions as arrows, on any ground."""
    shown = machine_panels(problem.machine, problem.labels, states)
    numbers = [q for q, _, _ in shown]
    scale = None if show == "policy" else ColourScale.of(fill[:, numbers])
    none = np.full(len(fill), -1, dtype=np.int32)
    panels = [
        Panel(state, then, fill[:, q], none if show == "values" else moves[:, q])
        for q, state, then in shown
    ]
    return draw_panels(
        ground, panels, title=title, about=about, scale=scale,
        scale_name="discounted value" + ", log scale" * (scale is not None and scale.logarithmic),
    )  # fmt: skip
