"""The learners: steps per second beside plain Python, and memory on large grids.

    python bench/learning.py            everything
    python bench/learning.py --quick    without the large grids

Rates are those of a whole run from its first step on office/map1/exp5, replanning included and
evaluations left out, on one core, after compilation, best of three. `Python` is the same run with
compilation switched off (NUMBA_DISABLE_JIT=1): our own reference path, and bit for bit the same
tables. `act/update` is the Python methods of the agent with the compiled planner below them, which
is how an environment of one's own is played.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
from time import perf_counter

import qrmax
from planning import open_grid
from qrmax.agents.base import Agent
from qrmax.agents.model_based import ModelBased
from qrmax.training.run import make_session
from qrmax.training.warm_up import warm_up

PROBLEM = "office/map1/exp5"
STEPS = {"q-learning": 2_000_000, "qrm": 2_000_000}  # of a compiled run; others:
OTHERS = 200_000
PYTHON_STEPS = {"q-learning": 100_000, "qrm": 100_000}
TARGETS = {  # steps per second, at least
    "q-learning": 10e6,
    "qrm": 10e6,
    "rmax": 0.5e6,
    "rmax-rm": 0.5e6,
    "qrmax": 1e6,
    "qrmax-rm": 1e6,
}
RATIO = 100  # to plain Python, at least
REPEATS = 3
GRIDS = (50, 100, 200)
GRID_STEPS = 1_000_000
GRID_AGENTS = ("qrmax", "qrmax-rm", "rmax", "q-learning")
KEPT = 0.5  # of QR-Max's rate on the smallest grid, on the largest, at least
WHOLE_STEPS = {50: 500_000, 100: 2_000_000, 200: 7_200_000}  # until QR-Max has nothing to explore


def learn(
    agent: str, problem: qrmax.Problem, steps: int, *, compiled: bool, **settings: int
) -> dict[str, object]:
    """Train for so many steps, without a single evaluation."""
    session = make_session(
        agent,
        problem,
        stop="budget",
        max_steps=steps,
        evaluate_every=10**9,
        compiled=compiled,
        **settings,
    )
    replans = _count_replans(session.agent)
    for _ in session.events():
        pass
    digest = hashlib.sha256()
    for name, array in sorted(session.agent.snapshot().items()):
        digest.update(name.encode() + array.tobytes())
    stored = sum(array.nbytes for array in session.agent.snapshot().values())
    return {
        "seconds": session.progress.seconds,
        "digest": digest.hexdigest(),
        "stored": stored,
        "replans": len(replans),
        "backups": sum(replans),
    }


def _count_replans(agent: Agent) -> list[int]:
    """The backups of each replan from now on."""
    counts: list[int] = []
    if isinstance(agent, ModelBased):
        replan = agent.planner.replan

        def counted() -> int:
            counts.append(replan())
            return counts[-1]

        agent.planner.replan = counted  # type: ignore[method-assign]
    return counts


def elsewhere(*arguments: str, jit: bool = True) -> dict[str, float | str]:
    """The same script in a process of its own."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0" if jit else "1"}
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float | str] = json.loads(done.stdout)
    return found


def rates() -> None:
    problem = qrmax.make(PROBLEM)
    print(f"{PROBLEM}, thousand steps per second\n")
    print(
        f"{'agent':<11}{'steps':>10}{'compiled':>10}{'target':>9}{'act/update':>12}"
        f"{'Python':>9}{'compiled / Python':>19}  same tables"
    )
    for agent, target in TARGETS.items():
        steps, few = STEPS.get(agent, OTHERS), PYTHON_STEPS.get(agent, OTHERS)
        warm_up(agent)
        runs = [learn(agent, problem, steps, compiled=True) for _ in range(REPEATS)]
        fast = steps / min(float(str(run["seconds"])) for run in runs)
        again = learn(agent, problem, few, compiled=True)
        methods = learn(agent, problem, few, compiled=False)
        plain = elsewhere("--one", agent, "--steps", str(few), jit=False)
        slow = few / float(plain["seconds"])
        same = again["digest"] == methods["digest"] == plain["digest"]
        print(
            f"{agent:<11}{steps:>10,}{fast / 1e3:>10,.0f}{target / 1e3:>9,.0f}"
            f"{few / float(str(methods['seconds'])) / 1e3:>12,.1f}{slow / 1e3:>9,.2f}"
            f"{fast / slow:>19,.0f}  {'yes' if same else 'NO'}"
            + ("" if fast >= target and fast >= RATIO * slow else "   <- below its target"),
            flush=True,
        )


def grids() -> None:
    """Rates and memory by the size of the world: a rate should not fall with it."""
    print(f"\nopen n x n grid, 9 task states, {GRID_STEPS:,} steps\n")
    print(
        f"{'agent':<11}{'n':>5}{'pairs':>10}{'k steps/s':>11}{'peak, MB':>10}"
        f"{'tables, MB':>12}{'bytes / (s, q)':>16}"
    )
    rates: dict[str, list[float]] = {agent: [] for agent in GRID_AGENTS}
    for agent in GRID_AGENTS:
        for size in GRIDS:
            found = elsewhere("--grid", str(size), "--one", agent, "--steps", str(GRID_STEPS))
            seconds, peak, stored = (float(found[key]) for key in ("seconds", "peak", "stored"))
            rates[agent].append(GRID_STEPS / seconds)
            pairs = size * size * 9
            print(
                f"{agent:<11}{size:>5}{pairs:>10,}"
                f"{GRID_STEPS / seconds / 1e3:>11,.0f}{peak:>10,.0f}"
                f"{stored / 2**20:>12,.1f}{stored / pairs:>16,.0f}",
                flush=True,
            )
    print("\nthousand steps per second by the size of the grid\n")
    first, last = GRIDS[0], GRIDS[-1]
    columns = "".join(f"{f'n = {size}':>11}" for size in GRIDS)
    print(f"{'agent':<11}{columns}{f'{last} / {first}':>11}")
    for agent, row in rates.items():
        kept = row[-1] / row[0]
        print(
            f"{agent:<11}{''.join(f'{rate / 1e3:>11,.0f}' for rate in row)}{kept:>11.2f}"
            + ("   <- loses more than half" if agent == "qrmax" and kept < KEPT else "")
        )


def whole_runs() -> None:
    """QR-Max until there is nothing left to explore, and what its planning takes."""
    print("\nqrmax on the open grid until all it can reach is known\n")
    print(f"{'n':>5}{'steps':>11}{'k steps/s':>11}{'replans':>9}{'backups each':>14}")
    for size, steps in WHOLE_STEPS.items():
        found = elsewhere("--grid", str(size), "--one", "qrmax", "--steps", str(steps))
        seconds, replans, backups = (float(found[x]) for x in ("seconds", "replans", "backups"))
        print(
            f"{size:>5}{steps:>11,}{steps / seconds / 1e3:>11,.0f}{replans:>9,.0f}"
            f"{backups / replans:>14,.0f}",
            flush=True,
        )


def one(agent: str, steps: int, size: int) -> None:
    """One run, its figures printed as JSON."""
    if size:
        warm_up(agent)
    problem = open_grid(size) if size else qrmax.make(PROBLEM)
    found = learn(agent, problem, steps, compiled=bool(size))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**found, "peak": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the large grids")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--grid", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one, options.steps, options.grid)
        return
    begin = perf_counter()
    rates()
    if not options.quick:
        grids()
        whole_runs()
    print(f"\n{perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
