"""The learners that revise their estimates: cost of a step with its share of planning, and memory.

    python bench/revising.py

Costs are CPU time of the first 100,000 steps on office/map3/exp5, replanning included and
evaluations left out, after compilation, beside `qrmax-rm` in the same run. Replanning is all that
is not the compiled loop: rows, confidence sets, the structure of the world, and backups. Memory is
that of all arrays that an agent holds, on random Office maps of growing size.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np

import qrmax
from qrmax.agents.revising.revising_agent import RevisingAgent
from qrmax.agents.revising.ucrl2_rm import UCRL2RM
from qrmax.training.run import make_session
from qrmax.training.trainer import Session

PROBLEM = "office/map3/exp5"
STEPS = 100_000
PEER = "qrmax-rm"
AGENTS = (
    *("qr-ucb-rm", "qr-eb-rm", "qr-effects-rm", "qr-psrl-rm", "qr-mbie-rm", "qr-mbie-eb-rm"),
    *("qr-ucb", "qr-eb", "qr-effects", "qr-psrl", "mbie", "mbie-eb", "ucrl2-rm-l", "ucrl2-rm-b"),
)
MOST = 100.0  # microseconds of replanning for a step, at most
SIDES = (10, 20, 30, 40, 50)
SIZED = ("qr-ucb-rm", "qr-eb-rm", "qr-effects-rm", "qr-psrl-rm", "mbie")
SIZED_STEPS = 20_000
GROWTH = 1.5  # of the bytes for an entry, from the smallest world to the largest, at most
OURS = ("qrmax.agents", "qrmax.empirical", "qrmax.planning")


def session_of(agent: str, problem: qrmax.Problem, steps: int) -> Session:
    """A run without evaluations."""
    return make_session(agent, problem, stop="budget", max_steps=steps, evaluate_every=10**9)


def timed(method: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    """The same method, whose calls are timed."""

    def measured(*arguments: Any) -> Any:
        begin = process_time()
        result = method(*arguments)
        spent.append(process_time() - begin)
        return result

    return measured


def cost(agent: str, problem: qrmax.Problem) -> tuple[float, list[float]]:
    """CPU seconds of a run, compiled before, and those of each replanning."""
    for _ in session_of(agent, problem, STEPS // 50).events():
        pass
    session, spent = session_of(agent, problem, STEPS), list[float]()
    for name in ("update", "plan") if isinstance(session.agent, UCRL2RM) else ("update",):
        setattr(session.agent, name, timed(getattr(session.agent, name), spent))
    begin = process_time()
    for _ in session.events():
        pass
    return process_time() - begin, spent


def costs() -> None:
    """Costs of a step."""
    problem = qrmax.make(PROBLEM)
    print(f"{PROBLEM}, {STEPS:,} steps, microseconds of CPU time\n")
    print(
        f"{'agent':<15}{'a step':>8}{'replanning, a step':>20}{'target':>8}{'replans':>9}"
        f"{'each':>7}{'step / ' + PEER:>17}"
    )
    peer, _ = cost(PEER, problem)
    print(f"{PEER:<15}{peer / STEPS * 1e6:>8.2f}{1:>61}")
    for name in AGENTS:
        seconds, spent = cost(name, problem)
        replanning = sum(spent) / STEPS * 1e6
        print(
            f"{name:<15}{seconds / STEPS * 1e6:>8.1f}{replanning:>20.1f}{MOST:>8.0f}"
            f"{len(spent):>9,}{np.mean(spent) * 1e6:>7.0f}{seconds / peer:>17.0f}"
            + ("   <- above its target" if replanning > MOST else ""),
            flush=True,
        )


def arrays_of(thing: Any, found: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """Add the arrays within an object of ours, each once."""
    if isinstance(thing, np.ndarray):
        found[id(thing)] = thing
    elif isinstance(thing, tuple | list):
        for part in thing:
            arrays_of(part, found)
    elif type(thing).__module__.startswith(OURS):
        for part in vars(thing).values() if hasattr(thing, "__dict__") else ():
            arrays_of(part, found)
    return found


def memory() -> None:
    """Bytes of all arrays, by the size of the world."""
    print(f"\nrandom-office/3 with n x n cells, {SIZED_STEPS:,} steps, megabytes of arrays\n")
    columns = "".join(f"{f'n = {side}':>9}" for side in SIDES)
    print(f"{'agent':<15}{columns}   bytes for an entry of |S||A|k + |S||Q|")
    problems = [qrmax.make("random-office/3", width=side, height=side) for side in SIDES]
    for name in SIZED:
        held, each = [], []
        for problem in problems:
            session = session_of(name, problem, SIZED_STEPS)
            for _ in session.events():
                pass
            agent = session.agent
            assert isinstance(agent, RevisingAgent)
            agent.policy()  # by a plan of its own
            held.append(sum(array.nbytes for array in arrays_of(agent, {}).values()))
            states, task_states, _ = agent.model_sizes
            each.append(held[-1] / (agent.seen.arrays.tau.size + states * task_states))
        print(
            f"{name:<15}{''.join(f'{size / 2**20:>9.2f}' for size in held)}   "
            + ", ".join(f"{size:.0f}" for size in each)
            + ("   <- grows" if each[-1] > GROWTH * each[0] else ""),
            flush=True,
        )


def main() -> None:
    begin = perf_counter()
    costs()
    memory()
    print(f"\n{perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
