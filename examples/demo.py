"""The main job: train four learners on an Office task, and see how many steps each one needs.

The task is exp1 on map1: fetch coffee and bring it to the office without touching a plant. Moves
slip, and what is rewarded depends on what was done before.
"""

from statistics import mean
from time import perf_counter

import qrmax
from qrmax.training.warm_up import needs_compiling, warm_up
from qrmax.worlds.picture import write_moves

PROBLEM = "office/map1/exp1"
AGENTS = {
    "qrmax": "learns the world and the task apart",
    "qrmax-rm": "the same, and knows the task",
    "rmax": "learns the product of both",
    "qrm": "Q-learning that knows the task",
}
SEEDS = range(5)


def main() -> None:
    """Print a table of steps to a policy within 5 % of the optimum, and the moves learned."""
    problem = qrmax.make(PROBLEM)
    if any(map(needs_compiling, AGENTS)):
        print("compiling (once, less than a minute) ...", flush=True)
    for agent in AGENTS:
        warm_up(agent)
    print(f"\n{PROBLEM}: {problem.machine.description}")
    print(f"steps to within 5 % of the optimum, exactly evaluated; {len(SEEDS)} seeds\n")
    print("agent         steps      from .. to           success  seconds  ")
    for agent, about in AGENTS.items():
        begin = perf_counter()
        runs = [qrmax.train(agent, problem, seed=seed) for seed in SEEDS]
        seconds = perf_counter() - begin
        steps = [run.steps for run in runs]
        success = mean(run.evaluation.success for run in runs if run.evaluation is not None)
        spent = sum(run.reason == "budget" for run in runs)
        print(
            f"{agent:<10} {mean(steps):>8,.0f}  {min(steps):>8,} .. {max(steps):<8,} "
            f"{success:>9.1%} {seconds:>8.2f}  {about}"
            + (f"; {spent} of {len(runs)} hit the budget" if spent else "")
        )
    run = qrmax.train("qrmax", problem, seed=7)
    show_moves(problem, run)
    print("next: .venv/bin/qrmax run --help, docs/guide.md")


def show_moves(problem: qrmax.Problem, run: qrmax.Run) -> None:
    """The learned moves on the map, before and after the coffee."""
    done = problem.done()
    for q, state in enumerate(problem.machine.states):
        if state not in problem.machine.terminal:
            moves = run.policy[:, q].copy()
            moves[done[:, q]] = -1
            print(f"\n{run.agent.name}'s moves in task state {state!r}\n")
            print(write_moves(problem.world, moves))  # type: ignore[arg-type]  # it is a map


if __name__ == "__main__":
    main()
