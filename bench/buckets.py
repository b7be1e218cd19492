"""Bucket-QR-Max: steps per second beside the Python methods, and beside DQN if it is installed.

    python bench/buckets.py

Rates are those of a whole run from its first step on continuous/frozen-lake/abc, planning included
and evaluations left out, on one core, after compilation, best of three. `act/update` is the Python
methods of the agent with the compiled planner below them, which is how an environment of one's own
is played, to the same tables bit for bit. DQN learns from observations, too, and has no compiled
loop; its rate is that of its own defaults.
"""

from __future__ import annotations

from time import perf_counter

import qrmax
from learning import learn
from qrmax.errors import MissingExtraError, UnknownNameError
from qrmax.training.warm_up import warm_up

PROBLEM = "continuous/frozen-lake/abc"
AGENT = "bucket-qrmax"
ENCODERS: dict[str, dict[str, int]] = {
    "SimHash 4 x 8": {"functions": 4, "bits": 8},
    "grid 10 x 10": {"grid": 10},
    "grid 20 x 20": {"grid": 20},
}
THRESHOLDS = (10, 39)  # t_env
STEPS = 1_000_000
PYTHON_STEPS = 10_000
DQN_STEPS = 5_000
REPEATS = 3
TARGET = 300e3  # steps per second, at least


def rate(agent: str, steps: int, repeats: int, *, compiled: bool, **settings: int) -> float:
    """Steps per second, the best of some runs."""
    problem = qrmax.make(PROBLEM)
    runs = [learn(agent, problem, steps, compiled=compiled, **settings) for _ in range(repeats)]
    return steps / min(float(str(run["seconds"])) for run in runs)


def same_tables(**settings: int) -> bool:
    """Whether both speeds learn the same."""
    problem = qrmax.make(PROBLEM)
    fast, slow = (
        learn(AGENT, problem, PYTHON_STEPS, compiled=compiled, **settings)["digest"]
        for compiled in (True, False)
    )
    return fast == slow


def count_buckets(**settings: int) -> int:
    """How many have turned up after a whole run."""
    options = {"stop": "budget", "max_steps": STEPS, "evaluate_every": 10**9, **settings}
    return len(qrmax.train(AGENT, qrmax.make(PROBLEM), **options).agent.buckets)


def dqn() -> str:
    """What DQN does in the same world, or why there is nothing to say of it."""
    try:
        found = rate("dqn", DQN_STEPS, 1, compiled=False)
    except UnknownNameError:
        return "dqn: there is no such agent"
    except MissingExtraError as error:
        return f"dqn: not installed ({str(error).splitlines()[0]})"
    return f"{'dqn':<16}{'-':>6}{'-':>9}{'-':>10}{'-':>8}{found / 1e3:>12,.2f}"


def main() -> None:
    begin = perf_counter()
    warm_up(AGENT)
    print(f"{AGENT} on {PROBLEM}, {STEPS:,} steps, thousand steps per second\n")
    print(
        f"{'buckets':<16}{'t_env':>6}{'buckets':>9}{'compiled':>10}{'target':>8}{'act/update':>12}"
        f"{'ratio':>7}  same tables"
    )
    for name, encoder in ENCODERS.items():
        for t_env in THRESHOLDS:
            settings = {**encoder, "t_env": t_env}
            fast = rate(AGENT, STEPS, REPEATS, compiled=True, **settings)
            slow = rate(AGENT, PYTHON_STEPS, REPEATS, compiled=False, **settings)
            print(
                f"{name:<16}{t_env:>6}{count_buckets(**settings):>9}{fast / 1e3:>10,.0f}"
                f"{TARGET / 1e3:>8,.0f}{slow / 1e3:>12,.1f}{fast / slow:>7,.0f}  "
                f"{'yes' if same_tables(**settings) else 'NO':<11}"
                f"{'   <- below its target' if fast < TARGET else ''}",
                flush=True,
            )
    print(dqn())
    print(f"\n{perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
