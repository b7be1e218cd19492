"""The learners that plan for episodes of H steps: steps per second, beside the Python methods.

    python bench/episodes.py

Rates are those of a whole run from its first step on office/map0/exp0, a 10 x 10 grid with four
task states, in episodes of 50 steps: planning before each of them included and evaluations left
out, on one core, after compilation, best of five. `act/update` is the Python methods of the agent
with the compiled planner below them, to the same tables bit for bit.
"""

from __future__ import annotations

from time import perf_counter

import qrmax
from learning import learn
from qrmax.training.warm_up import warm_up

PROBLEM = "office/map0/exp0"
HORIZON = 50
STEPS = {"opsrl": 60_000}  # of a compiled run; others:
OTHERS = 300_000
PYTHON_STEPS = 20_000
REPEATS = 5
SETTINGS = {"opsrl": {"samples": 8}}
TARGETS = {  # steps per second, at least
    "ucbvi-sb": 200e3,
    "ucbvi-b": 200e3,
    "ucbvi-h": 200e3,
    "ucbvi-b-rm": 200e3,
    "psrl": 60e3,
    "psrl-rm": 60e3,
    "opsrl": 20e3,
}


def rate(agent: str, problem: qrmax.Problem, steps: int, *, compiled: bool) -> float:
    """Steps per second, the best of some runs."""
    runs = [play(agent, problem, steps, compiled=compiled) for _ in range(REPEATS)]
    return steps / min(float(str(run["seconds"])) for run in runs)


def play(agent: str, problem: qrmax.Problem, steps: int, *, compiled: bool) -> dict[str, object]:
    settings = {"horizon": HORIZON, **SETTINGS.get(agent, {})}
    return learn(agent, problem, steps, compiled=compiled, **settings)


def main() -> None:
    begin = perf_counter()
    problem = qrmax.make(PROBLEM)
    print(f"{PROBLEM}, horizon {HORIZON}, thousand steps per second\n")
    print(
        f"{'agent':<11}{'steps':>9}{'compiled':>10}{'target':>8}{'act/update':>12}"
        f"{'compiled / act/update':>23}  same tables"
    )
    for agent, target in TARGETS.items():
        warm_up(agent)
        steps = STEPS.get(agent, OTHERS)
        fast = rate(agent, problem, steps, compiled=True)
        methods = rate(agent, problem, PYTHON_STEPS, compiled=False)
        tables = [
            play(agent, problem, PYTHON_STEPS, compiled=compiled)["digest"]
            for compiled in (True, False)
        ]
        same = tables[0] == tables[1]
        print(
            f"{agent:<11}{steps:>9,}{fast / 1e3:>10,.0f}{target / 1e3:>8,.0f}"
            f"{methods / 1e3:>12,.1f}{fast / methods:>23,.1f}  {'yes' if same else 'NO'}"
            + ("" if fast >= target else "   <- below its target"),
            flush=True,
        )
    print(f"\n{perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
