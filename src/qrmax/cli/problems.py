"""The options that say which problem is meant: those of `qrmax.make`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

SLIPS = ("perpendicular", "any")


def _complete_problem(_: Any, __: Any, incomplete: str) -> list[str]:
    """The problems whose names begin so, for the shell."""
    from qrmax.worlds.catalog import problem_names

    return [name for name in problem_names() if name.startswith(incomplete)]


def _read_limit(_: Any, __: Any, value: str) -> int | None:
    """A whole number, or None for no limit."""
    if value == "none":
        return None
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a whole number nor 'none'.") from None


_OPTIONS = (
    click.argument("problem", required=False, shell_complete=_complete_problem),
    click.option("--map", "map_", metavar="MAP", help="A map: a name or your own file."),
    click.option("--task", metavar="TASK", help="A task: a name or your own TOML file."),
    click.option(
        "--slip",
        type=float,
        default=0.2,
        show_default=True,
        help="How often a move goes elsewhere.",
    ),
    click.option(
        "--slips",
        type=click.Choice(SLIPS),
        help="Where it goes then.  [default: as the map says]",
    ),
    click.option(
        "--decoration-penalty",
        type=float,
        default=0.0,
        show_default=True,
        help="What stepping on a decoration costs.",
    ),
    click.option(
        "--decorations-terminate/--no-decorations-terminate",
        default=True,
        show_default=True,
        help="Whether that ends the episode.",
    ),
    click.option(
        "--blocked-moves-slip/--no-blocked-moves-slip",
        default=False,
        show_default=True,
        help="Whether a move into a wall can slip.",
    ),
    click.option(
        "--max-episode-steps",
        callback=_read_limit,
        default="1000",
        metavar="STEPS",
        show_default=True,
        help="Where episodes are cut off, or 'none'.",
    ),
)


def problem_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument PROBLEM and the options of `qrmax.make`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def make_problem(problem: str | None, map_: str | None, task: str | None, **options: Any) -> Any:
    """The problem that these options describe."""
    from qrmax.worlds.catalog import make

    return make(problem, map=map_, task=task, **options)
