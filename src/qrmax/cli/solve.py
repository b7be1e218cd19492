"""`qrmax solve`: the exact optimum of a problem."""

from __future__ import annotations

import time
from typing import Any

import click

from qrmax.cli.moves import show_moves
from qrmax.cli.output import as_json, examples, percent, print_facts, print_json
from qrmax.cli.problems import make_problem, problem_options
from qrmax.errors import check_range


@click.command(
    epilog=examples(
        "qrmax solve office/map1/exp5 --slip 0.1 --show",
        "qrmax solve --map my.txt --task my.toml --json",
    )
)
@problem_options
@click.option("--gamma", type=float, default=0.9, show_default=True, help="The discount.")
@click.option("--show", is_flag=True, help="Show the best moves on the map, stage by stage.")
@as_json
def solve(gamma: float, show: bool, as_json: bool, **options: Any) -> None:
    """Solve PROBLEM exactly, such as office/map1/exp5.

    Shows the discounted value of the optimal policy from the start, how likely it is to succeed,
    how long its successful episodes are on average, and how long the run is on which nothing slips.
    """
    if show and as_json:
        raise click.UsageError("--show is for people and --json for programs: give one of them.")
    check_range("gamma", gamma, above=0.0, below=1.0)
    problem = make_problem(**options)

    # these take a second: not before the input is known to be good
    from qrmax.planning.compilation import is_compiled
    from qrmax.planning.kernels import solve_layer
    from qrmax.planning.policy_evaluation import evaluate, warm_up
    from qrmax.planning.value_iteration import solve as solve_problem

    if not is_compiled(solve_layer):
        click.echo("compiling the planner (once, less than a minute) ...", err=True)
    warm_up()
    started = time.perf_counter()
    solution = solve_problem(problem, gamma)
    result = evaluate(problem, solution.policy, gamma)
    seconds = time.perf_counter() - started
    if as_json:
        print_json(
            {
                "problem": problem.name,
                "gamma": gamma,
                "start_value": solution.start_value,
                "success": result.success,
                "mean_length": result.mean_length,
                "nominal_length": result.nominal_length,
                "max_episode_steps": problem.max_episode_steps,
                "states": problem.n_states,
                "task_states": problem.n_task_states,
                "seconds": seconds,
            }
        )
        return
    limit = problem.max_episode_steps
    facts = {
        "problem": problem.name,
        "states": f"{problem.n_states} x {problem.n_task_states} task states",
        "start value": f"{solution.start_value:.6g}  (gamma {gamma:g}, episodes of any length)",
    }
    if not problem.machine.success:
        facts["success"] = "the task has no success state"
    else:
        facts["success"] = percent(result.success) + (f"  within {limit} steps" if limit else "")
        if result.mean_length is not None:
            facts["mean length"] = f"{result.mean_length:.2f}  of successful episodes"
        nominal = "no success" if result.nominal_length is None else result.nominal_length
        facts["nominal length"] = f"{nominal}  if nothing slips"
    print_facts({**facts, "seconds": f"{seconds:.3f}"})
    if show:
        show_moves(problem, solution.policy, hopeless=solution.value == 0.0)
