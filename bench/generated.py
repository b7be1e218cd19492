"""The optima of generated problems: how long, how risky and how large they are.

Usage: python bench/generated.py [SEEDS]
"""

from __future__ import annotations

import sys

import numpy as np

import qrmax

SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
GAMMA = 0.9


def facts(name: str) -> dict[str, float]:
    """The optimum of a problem in numbers; NaN for a success rate if there is no success."""
    problem = qrmax.make(name)
    best = qrmax.evaluate(problem, qrmax.solve(problem, GAMMA).policy, GAMMA)
    return {
        "states": problem.n_states,
        "task states": problem.n_task_states,
        "start value": best.start_value,
        "success": best.success if problem.machine.success else np.nan,
        "nominal length": np.nan if best.nominal_length is None else best.nominal_length,
    }


def main(seeds: int) -> None:
    """Print quantiles over the seeds, for each generator."""
    for world in ("random-office", "random-mdp"):
        found = [facts(f"{world}/{seed}") for seed in range(seeds)]
        print(f"{world}, seeds 0 to {seeds - 1}, gamma {GAMMA}: quantiles")
        print(" " * 16 + "".join(f"{share:>10.0%}" for share in SHARES))
        for fact in found[0]:
            quantiles = np.nanquantile([each[fact] for each in found], SHARES)
            print(f"{fact:16}" + "".join(f"{number:>10.3g}" for number in quantiles))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
