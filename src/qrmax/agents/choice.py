"""Tie-breaking among greedy actions.

Unless their docstrings say otherwise, agents break ties uniformly at random. For agents that plan,
values that differ by less than the error of planning count as equal.
"""

from __future__ import annotations

from qrmax.seeding import Chance


def among_best(values: list[float], slack: float, rng: Chance) -> int:
    """One of the greedy actions, uniformly at random; see `greedy_actions` and `one_of`."""
    best = max(values)
    if slack == 0.0 and values.count(best) == 1:  # cheap, and mostly enough
        return values.index(best)
    return one_of(greedy_actions(values, slack), rng)


def greedy_actions(values: list[float], slack: float) -> list[int]:
    """The actions whose values are within `slack` times the size of the best value.

    >>> greedy_actions([0.5, 2.0, 1.99], 0.01)
    [1, 2]
    """
    best = max(values)
    least = best - slack * abs(best)
    return [a for a, value in enumerate(values) if value >= least]


def one_of(actions: list[int], rng: Chance) -> int:
    """One of several actions, uniformly at random; a number is drawn only if there is a choice."""
    return actions[0] if len(actions) == 1 else actions[int(rng.random() * len(actions))]
