"""What limits learning in buckets: what they look like, and what they allow once they are known.

For each way of making buckets: how many there are, how large they are, whether they mix labels, and
how often the best plan on them succeeds when each is sampled evenly, so that nothing depends on how
a learner explores. Prints a page in Markdown.
"""

from __future__ import annotations

import sys
from statistics import mean
from typing import NamedTuple

import numpy as np

import qrmax
from qrmax.agents.buckets.buckets import Buckets
from qrmax.agents.buckets.simhash import simhash, uniform_grid
from qrmax.analysis.bucket_diagnosis import diagnose, scatter
from qrmax.analysis.bucket_plan import plan_on_buckets
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.seeding import stream
from qrmax.training.plane_evaluator import PlaneEvaluator

PROBLEMS = ("continuous/frozen-lake/abc", "continuous/office/map1/exp1")
SEEDS = range(5)
GAMMA = 0.95
OFFSET = 0.7
BITS = 8
SAMPLES = 50_000
EPISODES = 500
ABOUT = f"""\
Made by `python examples/bucket_limits.py` with qrmax {qrmax.__version__}: means over seeds \
{SEEDS[0]} to {SEEDS[-1]}, each of which draws other
hyperplanes. Buckets are looked at through {SAMPLES:,} observations, spread evenly; diameters are \
in cells of the map, moves
are of 0.65. *Allowed* is how often the plan on these buckets succeeds when each action was \
sampled {SAMPLES:,} times all over the
plane, and the unknown is worth nothing ({EPISODES} episodes; in brackets the least and the most \
over the seeds). That is what planning
makes of such buckets, not a bound: a learner comes by other samples, and may be luckier now and \
then."""


class Partition(NamedTuple):
    """A way of making buckets."""

    name: str
    functions: int = 0  # of SimHash
    grid: int = 0
    event_aware: bool = False

    def buckets(self, problem: ContinuousProblem, seed: int) -> Buckets:
        """Fresh buckets."""
        observations = problem.observations
        if self.grid:
            projection = uniform_grid(observations.dimension, self.grid)
        else:
            rng = np.random.default_rng(seed)
            projection = simhash(observations.dimension, self.functions, BITS, OFFSET, rng)
        return Buckets(observations, projection, event_aware=self.event_aware)


PARTITIONS = (
    *(
        Partition(f"{BITS * functions} hyperplanes{kind}", functions, event_aware=bool(kind))
        for functions in (2, 4, 8, 16)
        for kind in ("", ", event-aware")
    ),
    *(Partition(f"grid of {cells} x {cells}", grid=cells) for cells in (10, 12, 14, 20, 36)),
)


def row(problem: ContinuousProblem, evaluator: PlaneEvaluator, partition: Partition) -> str:
    """A row of the table: means over the seeds, and the spread of what is allowed."""
    found, allowed = [], []
    for seed in SEEDS:
        buckets = partition.buckets(problem, seed)
        rng = np.random.default_rng(seed)
        policy = plan_on_buckets(problem, buckets, GAMMA, rng, SAMPLES)
        found.append(diagnose(buckets, *scatter(problem, SAMPLES, rng)))
        allowed.append(evaluator.success(policy, EPISODES, stream(seed, "evaluation")))
    cells = [
        partition.name,
        f"{mean(d.buckets for d in found):,.0f}",
        f"{mean(d.mean_diameter for d in found):.2f}",
        f"{mean(d.largest_diameter for d in found):.2f}",
        f"{mean(d.mixed_buckets for d in found):.0%}",
        f"{mean(d.singletons / d.buckets for d in found):.0%}",
        f"{mean(allowed):.2f} ({min(allowed):.2f} to {max(allowed):.2f})",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print the page."""
    print("# What buckets allow\n")
    print(ABOUT)
    head = "buckets | mean diameter | largest | mix labels | seen once | allowed"
    for name in PROBLEMS:
        problem = qrmax.make(name, max_episode_steps=300)
        evaluator = PlaneEvaluator(problem, GAMMA)
        best = evaluator.best_success
        print(f"\n## {name}\n\nThe optimum of a fine grid succeeds with {best:.2f}.\n")
        print(f"| | {head} |\n|---|{'---:|' * 6}")
        for partition in PARTITIONS:
            print(row(problem, evaluator, partition), flush=True)
            print(f"{name}: {partition.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
