"""Policies on a map, printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def show_moves(problem: Any, policy: Any, hopeless: Any = None) -> None:
    """Print the map for each non-terminal task state, with the policy's actions.

    `hopeless[s, q]` marks states without an action worth showing.
    """
    from qrmax.report.policy_map import moves_on_map

    if problem.world is None:
        click.echo("there is no map to show the policy on", err=True)
    else:
        click.echo(f"\n{moves_on_map(problem, policy, hopeless=hopeless)}")


def show_moves_between(problem: Any, action: Callable[[Any, int, int], int]) -> None:
    """Print the policy's actions at the centre of each cell, for continuous positions.

    `action(observation, label, q)` is the policy.
    """
    import numpy as np

    from qrmax.worlds.grid import MOVES

    plane, cells = problem.plane, np.arange(problem.n_cells)
    middle = np.stack([cells % plane.columns, cells // plane.columns], axis=1) + 0.5
    seen = problem.observe(middle)
    way = (plane.direction @ np.array(MOVES).T).argmax(axis=1)  # [a]: the nearest move of the map
    policy = [
        [way[action(seen[cell], int(problem.label[cell]), q)] for q in range(problem.n_task_states)]
        for cell in cells
    ]
    click.echo("\nat the centre of each cell")
    show_moves(problem, np.array(policy))
