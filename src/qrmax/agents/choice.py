"""Tie-breaking among greedy actions.

Unless their docstrings say otherwise, agents break ties uniformly at random. For agents that plan,
values that differ by less than the error of planning count as equal.
"""

from __future__ import annotations

from qrmax.planning.arrays import FloatArray
from qrmax.seeding import Chance


def among_best(values: FloatArray | list[float], slack: float, rng: Chance) -> int:
    """One of the greedy actions, uniformly at random.

    An action counts as greedy if its value is within `slack` times the size of the best value. A
    random number is drawn only if there is a tie.
    """
    row: list[float] = values if isinstance(values, list) else values.tolist()
    best = max(row)
    ties = row.count(best)  # cheap, and mostly enough
    if ties == len(row) > 1:
        return int(rng.random() * ties)
    if ties == 1 and slack == 0.0:
        return row.index(best)
    least = best - slack * abs(best)
    candidates = [a for a, value in enumerate(row) if value >= least]
    if len(candidates) == 1:
        return candidates[0]
    return candidates[int(rng.random() * len(candidates))]
