"""A policy on its map."""

from __future__ import annotations

from typing import Any

import click


def show_moves(problem: Any, policy: Any, hopeless: Any = None) -> None:
    """The map once for each task state that does not end the episode, with the moves on it.

    `hopeless[s, q]` marks where no move is worth showing.
    """
    from qrmax.worlds.picture import write_moves

    if problem.world is None:
        click.echo("there is no map to show the moves on", err=True)
        return
    nothing = problem.done() if hopeless is None else problem.done() | hopeless
    for q, state in enumerate(problem.machine.states):
        if state not in problem.machine.terminal:
            moves = policy[:, q].copy()
            moves[nothing[:, q]] = -1
            click.echo(f"\ntask state {state}\n\n{write_moves(problem.world, moves)}")
