"""`qrmax solve`: the exact optimum of a problem."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qrmax.cli.output import (
    NO_SUCCESS,
    OutputFile,
    as_json,
    examples,
    nominal_text,
    percent,
    picture_format,
    print_facts,
    print_json,
    write_or_print,
)
from qrmax.cli.print_moves import show_moves, show_moves_between
from qrmax.cli.problems import is_continuous, make_problem, problem_options
from qrmax.cli.world_options import ProblemCommand
from qrmax.errors import check_count, check_range

if TYPE_CHECKING:
    from qrmax.planning.fine_grid import FineSolution
    from qrmax.planning.staged_solution import StagedSolution
    from qrmax.planning.value_iteration import Solution


@click.command(
    cls=ProblemCommand,
    epilog=examples(
        "qrmax solve office/map1/exp5 --slip 0.1 --show",
        "qrmax solve office/map1/exp5 --horizon 150 --gamma 1",
        "qrmax solve office/map1/exp1 -o values.svg",
        "qrmax solve --map my.txt --task my.toml --json",
        "qrmax solve continuous/frozen-lake/abc --noise 0.02",
    ),
)
@problem_options
@click.option("--gamma", type=float, default=0.9, show_default=True, help="The discount factor.")
@click.option(
    "--horizon",
    type=int,
    help="A finite horizon in steps: the optimal policy then depends on the stage.",
)
@click.option(
    "--per-cell",
    type=int,
    help="Continuous positions: grid points along each side of a cell.  [default: refined until "
    "accurate]",
)
@click.option(
    "--show", is_flag=True, help="Show the optimal policy on the map, one panel per task state."
)
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    help="Draw values and policy to this file, whose name ends in .svg, .png or .pdf.",
)
@as_json
def solve(
    gamma: float,
    horizon: int | None,
    per_cell: int | None,
    show: bool,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Solve PROBLEM exactly, such as office/map1/exp5.

    Shows the discounted value of the optimal policy from the start, its success probability, the
    mean length of its successful episodes, and the length of the episode without slips. The error
    bound is rigorous: rounding is part of it. A problem that cannot be solved is refused.

    With --horizon episodes have at most that many steps, and --gamma may be 1. A world with
    continuous positions is solved on a fine grid, and the discretisation error is estimated.
    """
    if show and as_json:
        raise click.UsageError("--show and --json exclude each other: give one of them.")
    if horizon is None:
        check_range("gamma", gamma, above=0.0, below=1.0)
    else:
        check_count("horizon", horizon)
        check_range("gamma", gamma, above=0.0, at_most=1.0)
    kind = None if output is None else picture_format(output)
    problem = make_problem(**options)
    if is_continuous(options["problem"]):
        if horizon is not None:
            raise click.UsageError("--horizon is for worlds with discrete states.")
        _draw(_solve_continuous(problem, gamma, per_cell, as_json, show), kind, output)
        return
    if per_cell is not None:
        raise click.UsageError("--per-cell is for continuous worlds.")

    # these take a second: not before the input is known to be good
    from qrmax.planning.compile_notice import compile_notice
    from qrmax.planning.policy_evaluation import evaluate, warm_up
    from qrmax.planning.staged_solution import solve_horizon
    from qrmax.planning.value_iteration import solve as solve_problem

    with compile_notice(True):
        warm_up()
    started = time.perf_counter()
    limit = problem.max_episode_steps
    solution: Solution | StagedSolution
    if horizon is None:
        solution = solve_problem(problem, gamma)
        episodes = "episodes of any length"
    else:
        solution = solve_horizon(problem, horizon, gamma)
        limit = solution.horizon
        episodes = f"episodes of {limit} steps"
    result = evaluate(problem, solution.policy, gamma)
    seconds = time.perf_counter() - started
    _draw(solution, kind, output)
    bound = result.error_bound
    assert bound is not None  # nothing was sampled
    if as_json:
        print_json(
            {
                "problem": problem.name,
                "gamma": gamma,
                "start_value": solution.start_value,
                "start_value_error_bound": solution.start_error_bound,
                "success": result.success if problem.machine.success else None,
                "success_error_bound": bound.success,
                "mean_length": result.mean_length,
                "mean_length_error_bound": bound.mean_length,
                "nominal_length": result.nominal_length,
                "max_episode_steps": limit,
                "states": problem.n_states,
                "task_states": problem.n_task_states,
                "seconds": seconds,
            }
        )
        return
    facts = {
        "problem": problem.name,
        "states": f"{problem.n_states} x {problem.n_task_states} task states",
        "start value": f"{solution.start_value:.6g}  (gamma {gamma:g}, {episodes})",
        "error bound": f"{1.05 * solution.start_error_bound:.1e}  on the start value",  # rounded up
    }
    if not problem.machine.success:
        facts["success"] = NO_SUCCESS
    else:
        facts["success"] = percent(result.success) + (f"  within {limit} steps" if limit else "")
        if result.mean_length is not None:
            facts["mean length"] = f"{result.mean_length:.2f} steps, of successful episodes"
        facts["nominal length"] = nominal_text(result.nominal_length)
    print_facts({**facts, "seconds": f"{seconds:.3f}"})
    if show:
        first = solution.policy if horizon is None else solution.policy[0]
        if horizon is not None:
            click.echo("\nthe policy of stage 0; later stages may differ")
        show_moves(problem, first, hopeless=solution.value == 0.0)


def _draw(solution: Any, kind: str | None, output: Path | None) -> None:
    """Draw a solution to a file, if one is given."""
    if kind is not None:
        write_or_print(solution.draw().data(kind), output)
        click.echo(f"drawn to {output}", err=True)


def _solve_continuous(
    problem: Any, gamma: float, per_cell: int | None, as_json: bool, show: bool
) -> FineSolution:
    from qrmax.planning.compile_notice import compile_notice
    from qrmax.planning.fine_grid import solve_continuous

    started = time.perf_counter()
    with compile_notice(True):
        solution = solve_continuous(problem, gamma, per_cell)
    seconds = time.perf_counter() - started
    points, error = solution.grid.n_states, solution.error
    if as_json:
        print_json(
            {
                "problem": problem.name,
                "gamma": gamma,
                "start_value": solution.start_value,
                "start_value_error": error.value,
                "success": solution.success if problem.machine.success else None,
                "success_error": error.success,
                "mean_length": solution.mean_length,
                "max_episode_steps": problem.max_episode_steps,
                "points": points,
                "seconds": seconds,
            }
        )
        return solution
    facts = {
        "problem": problem.name,
        "grid": f"{points:,} points x {problem.n_task_states} task states",
        "start value": f"{solution.start_value:.4g}  (gamma {gamma:g}; "
        f"differs by {error.value:.2g} at half the resolution)",
    }
    if not problem.machine.success:
        facts["success"] = NO_SUCCESS
    else:
        length = solution.mean_length
        off = f"differs by {100 * error.success:.2f} points"
        facts["success"] = f"{percent(solution.success)}  ({off})"
        facts["mean length"] = (
            "none: no success" if length is None else f"{length:.1f} steps, of successful episodes"
        )
    print_facts({**facts, "seconds": f"{seconds:.3f}"})
    if show:
        show_moves_between(problem, lambda x, _, q: int(solution.actions(x[None], [q])[0]))
    return solution
