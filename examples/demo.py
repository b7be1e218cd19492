"""The main job: train four learners on an Office task, and see how many steps each one needs.

The task is exp1 on map1: fetch coffee and bring it to the office without touching a plant. Moves
slip, and what is rewarded depends on what was done before.
"""

from statistics import mean
from time import perf_counter

import qrmax
from qrmax.report.policy_map import moves_on_map
from qrmax.training.warm_up import warm_up

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
    for agent in AGENTS:
        warm_up(agent)
    print(f"\n{PROBLEM}: {problem.machine.description}")
    print(f"steps to within 5 % of the optimum, exactly evaluated; {len(SEEDS)} seeds\n")
    for agent, about in AGENTS.items():
        print(f"{agent:<10} {about}")
    print("\nagent         steps      from .. to           success  seconds")
    for agent in AGENTS:
        begin = perf_counter()
        runs = [qrmax.train(agent, problem, seed=seed) for seed in SEEDS]
        seconds = perf_counter() - begin
        steps = [run.steps for run in runs]
        success = mean(run.evaluation.success for run in runs if run.evaluation is not None)
        spent = sum(run.reason == "budget" for run in runs)
        print(
            f"{agent:<10} {mean(steps):>8,.0f}  {min(steps):>8,} .. {max(steps):<8,} "
            f"{success:>9.1%} {seconds:>8.2f}"
            + (f"  {spent} of {len(runs)} hit the budget" if spent else "")
        )
    run = qrmax.train("qrmax", problem, seed=7)
    print(f"\nthe moves that {run.agent.name} learned, before and after the coffee\n")
    print(moves_on_map(problem, run.policy))
    print("\nnext: .venv/bin/qrmax run --help, docs/guide.md")


if __name__ == "__main__":
    main()
