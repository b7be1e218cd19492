"""The learners that plan for episodes of H steps: steps per second, beside the Python methods.

    python bench/episodes.py

Rates are those of a whole run from its first step on office/map0/exp0, a 10 x 10 grid with four
task states, in episodes of 50 steps: planning before each of them included and evaluations left
out, on one core, after compilation, best of five. `act/update` is the Python methods of the agent
with the compiled planner below them, to the same tables bit for bit. A plan is one episode's, by
what was learned in 20,000 steps; in NumPy it is that of `qrmax.planning.reference`.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import qrmax
from learning import learn
from qrmax.agents.episodic.finite_horizon_agent import FiniteHorizon
from qrmax.planning import reference
from qrmax.training.warm_up import warm_up

PROBLEM = "office/map0/exp0"
HORIZON = 50
STEPS = {"opsrl": 60_000}  # of a compiled run; others:
OTHERS = 300_000
PYTHON_STEPS = 20_000
REPEATS = 5
SETTINGS = {"opsrl": {"samples": 8}}
TARGETS = {  # steps per second, at least; None: there is none
    "ucbvi-sb": 200e3,
    "ucbvi-b": 200e3,
    "ucbvi-h": 200e3,
    "psrl": 60e3,
    "opsrl": 20e3,
    "ucbvi-b-rm": None,
    "psrl-rm": None,
}


def rate(agent: str, problem: qrmax.Problem, steps: int, *, compiled: bool) -> float:
    """Steps per second, the best of some runs."""
    runs = [play(agent, problem, steps, compiled=compiled) for _ in range(REPEATS)]
    return steps / min(float(str(run["seconds"])) for run in runs)


def play(agent: str, problem: qrmax.Problem, steps: int, *, compiled: bool) -> dict[str, object]:
    settings = {"horizon": HORIZON, **SETTINGS.get(agent, {})}
    return learn(agent, problem, steps, compiled=compiled, **settings)


def planning(agent: str, problem: qrmax.Problem) -> tuple[float, float]:
    """Seconds to plan an episode after a while of learning, compiled and in NumPy."""
    run = qrmax.train(agent, problem, stop="budget", max_steps=20_000, horizon=HORIZON)
    assert isinstance(run.agent, FiniteHorizon)
    plan, task, done = run.agent.plan, run.agent.task, run.agent.done

    def compiled() -> None:
        plan.fresh[:] = True
        plan.renew(task)

    def in_numpy() -> None:
        reference.backward_induction(plan.belief, task, done, plan.stages)

    return best_of(compiled, 50), best_of(in_numpy, 3)


def best_of(work: Callable[[], None], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        begin = perf_counter()
        work()
        seconds.append(perf_counter() - begin)
    return min(seconds)


def main() -> None:
    begin = perf_counter()
    problem = qrmax.make(PROBLEM)
    print(f"{PROBLEM}, horizon {HORIZON}, thousand steps per second\n")
    print(
        f"{'agent':<11}{'steps':>9}{'compiled':>10}{'target':>8}{'act/update':>12}  same tables"
        f"{'plan, ms':>10}{'in NumPy':>10}{'ratio':>7}"
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
        plan, in_numpy = planning(agent, problem)
        wanted = f"{target / 1e3:,.0f}" if target else "-"
        print(
            f"{agent:<11}{steps:>9,}{fast / 1e3:>10,.0f}{wanted:>8}{methods / 1e3:>12,.1f}  "
            f"{'yes' if same else 'NO':<11}{plan * 1e3:>10.3f}{in_numpy * 1e3:>10.1f}"
            f"{in_numpy / plan:>7,.0f}{'   <- below its target' if fast < (target or 0) else ''}",
            flush=True,
        )
    print(f"\n{perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
