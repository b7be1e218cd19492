"""Solve the paper's problems exactly, and show the five maps.

Pictures land in results/optima.
"""

from pathlib import Path
from time import perf_counter

import qrmax
from qrmax.planning.policy_evaluation import warm_up
from qrmax.report.map_picture import draw_map
from qrmax.worlds.picture import write

TASKS = {
    "map0": ["exp0"],
    "map1": ["exp1", "exp2", "exp3", "exp4", "exp5", "exp6"],
    "map2": ["exp1", "exp2", "exp3", "exp4", "exp5", "exp6"],
    "map3": ["exp1", "exp2", "exp3", "exp4", "exp5", "exp6"],
    "map4": ["exp6"],
}
PICTURES = Path("results/optima")


def main() -> None:
    """Show each map with its picture and the optimum of each of its tasks."""
    warm_up()
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, tasks in TASKS.items():
        grid = qrmax.load_map(name)
        draw_map(grid).save(PICTURES / f"{name}.svg")
        print(f"\n{name}\n\n{write(grid, grid.start_state)}\n")
        print("task  states      start value  success  mean length  nominal length  seconds")
        for task in tasks:
            show_optimum(f"office/{name}/{task}", task)
    print(f"\npictures of the maps: {PICTURES}/*.svg")


def show_optimum(name: str, task: str) -> None:
    """One row of the table."""
    problem = qrmax.make(name)
    begin = perf_counter()
    solution = qrmax.solve(problem)
    result = qrmax.evaluate(problem, solution.policy)
    seconds = perf_counter() - begin
    states = f"{problem.n_states} x {problem.n_task_states}"
    print(
        f"{task:<5} {states:<11} {solution.start_value:>11.4g} {100 * result.success:>7.2f}% "
        f"{result.mean_length:>12.2f} {result.nominal_length:>15} {seconds:>8.3f}"
    )


if __name__ == "__main__":
    main()
