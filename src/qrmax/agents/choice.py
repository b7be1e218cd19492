"""Choosing among actions of equal value.

Every agent takes an action uniformly among the best. For agents that plan, values that differ by
less than planning can tell apart count as equal.
"""

from __future__ import annotations

from qrmax.planning.arrays import FloatArray
from qrmax.seeding import Chance


def among_best(values: FloatArray | list[float], slack: float, rng: Chance) -> int:
    """One of the best actions, each with the same chance.

    An action counts as best if it is within `slack` times the size of the best value. Only where
    there is a choice is a random number drawn.
    """
    row: list[float] = values if isinstance(values, list) else values.tolist()
    best = max(row)
    ties = row.count(best)  # soon told, and mostly all there is to tell
    if ties == len(row) > 1:
        return int(rng.random() * ties)
    if ties == 1 and slack == 0.0:
        return row.index(best)
    least = best - slack * abs(best)
    candidates = [a for a, value in enumerate(row) if value >= least]
    if len(candidates) == 1:
        return candidates[0]
    return candidates[int(rng.random() * len(candidates))]
