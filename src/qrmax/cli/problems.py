"""The options that say which problem is meant: those of `qrmax.make`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from qrmax.agents.registry import agent_class, agent_names, built_in_names, check_agent_name
from qrmax.plugins import is_reference, make_importable

SLIPS = ("perpendicular", "any")
STEP_LABELS = ("acted_in", "reached")
TASKS = (
    "A task is the name of a built-in one, your own file, or a formula: of LTLf, such as "
    "'F(coffee & F office)', or of the logic that it begins with, as in 'ldlf: <true*;coffee>tt' "
    "or 'ppltl: O coffee'. Files of formulas end in .ltlf, .ldlf or .ppltl."
)
"""What can be given for a task, for the help of verbs that are about tasks."""

MODELS = (".drn",)
"""Files of model checkers, which can be given as a problem."""


def complete_map(_: Any, __: Any, incomplete: str) -> list[str | CompletionItem]:
    """The built-in maps and the user's own files, for the shell."""
    from qrmax.worlds.grid import map_names

    return names_or_files(map_names(), incomplete)


def complete_task(_: Any, __: Any, incomplete: str) -> list[str | CompletionItem]:
    """The built-in tasks and the user's own files, for the shell."""
    from qrmax.machines.task_files import task_names

    return names_or_files(task_names(), incomplete)


def names_or_files(names: list[str], incomplete: str) -> list[str | CompletionItem]:
    """The names that begin so; files where there are none."""
    fitting: list[str | CompletionItem] = [name for name in names if name.startswith(incomplete)]
    return fitting or [CompletionItem(incomplete, type="file")]


def _complete_problem(_: Any, __: Any, incomplete: str) -> list[str]:
    """The problems whose names begin so, for the shell."""
    from qrmax.worlds.catalog import all_names

    return [name for name in all_names() if name.startswith(incomplete)]


def _complete_agent(_: Any, __: Any, incomplete: str) -> list[str]:
    return [name for name in agent_names() if name.startswith(incomplete)]


agent_option = click.option(
    "--agent",
    shell_complete=_complete_agent,
    help=f"One of {', '.join(built_in_names())}, or one that you have installed; see `qrmax list "
    "agents`. Or one of your own, as module:Class; the module may lie in this folder.  "
    "[default: qrmax; with real positions: bucket-qrmax]",
)


def check_agent(agent: str) -> None:
    """Raise an error unless there is such an agent; a class of the user's own is imported.

    Its module may lie in the current folder, as with `python -m`.
    """
    if is_reference(agent):
        make_importable(Path.cwd())
        agent_class(agent)
    else:
        check_agent_name(agent)


def usual_agent(problem: str | None) -> str:
    """The agent where none is named."""
    return "bucket-qrmax" if is_continuous(problem) else "qrmax"


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
    click.option(
        "--map",
        "map_",
        metavar="MAP",
        shell_complete=complete_map,
        help="A map: a name or your own file.",
    ),
    click.option(
        "--task",
        metavar="TASK",
        shell_complete=complete_task,
        help="A task: a name, your own file (.toml, .ltlf, .ldlf, .ppltl, ...), or a formula such "
        "as 'F coffee' or 'ldlf: <true*;coffee>tt'.",
    ),
    click.option(
        "--reward",
        metavar="NAME",
        help="A model file (.drn) in place of PROBLEM: which of its reward models counts.",
    ),
    click.option(
        "--slip",
        type=float,
        help="Office, warehouse, frozen-lake: how often a move goes elsewhere.  "
        "[default: 0.2; warehouse: 0.1]",
    ),
    click.option(
        "--slips",
        type=click.Choice(SLIPS),
        help="Office: where it goes then.  [default: as the map says]",
    ),
    click.option(
        "--blocked-moves-slip/--no-blocked-moves-slip",
        default=False,
        help="Office: whether a move into a wall can slip.  [default: no]",
    ),
    click.option(
        "--decoration-penalty",
        type=float,
        default=0.0,
        show_default=True,
        help="Office, continuous: what stepping on a decoration costs.",
    ),
    click.option(
        "--decorations-terminate/--no-decorations-terminate",
        default=True,
        help="Office, continuous: whether that, or a hole, ends the episode.  [default: yes]",
    ),
    click.option(
        "--size",
        type=int,
        help="River-swim: how many places; warehouse: how many rows.  [default: 6; 5]",
    ),
    click.option(
        "--right",
        type=float,
        help="River-swim: how often swimming right, against the current, succeeds.  [default: 0.6]",
    ),
    click.option(
        "--back",
        type=float,
        help="River-swim: how often one is carried back instead; otherwise one stays.  "
        "[default: 0.05]",
    ),
    click.option(
        "--labels",
        type=click.Choice(STEP_LABELS),
        help="River-swim: whether a step reads the label of the place acted in, or of the one "
        "reached.  [default: acted_in]",
    ),
    click.option(
        "--step",
        type=float,
        help="Continuous: how far a move goes.  [default: as the world has it]",
    ),
    click.option(
        "--noise",
        type=float,
        help="Continuous: the standard deviation of a move.  [default: as the world has it]",
    ),
    click.option(
        "--max-episode-steps",
        callback=_read_limit,
        default="1000",
        metavar="STEPS",
        show_default=True,
        help="Where episodes of any world are cut off, or 'none'.",
    ),
)


def problem_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument PROBLEM and the options of `qrmax.make`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def is_continuous(problem: str | None) -> bool:
    """Whether the problem of this name has real positions."""
    return problem is not None and problem.startswith("continuous/")


def make_problem(
    problem: str | None,
    map_: str | None,
    task: str | None,
    reward: str | None = None,
    **options: Any,
) -> Any:
    """The problem that these options describe."""
    from qrmax.worlds.catalog import make, option_names, without_task, worlds_with

    if problem is not None and problem.lower().endswith(MODELS):
        return _read_model(problem, map_, task, reward, **options)
    if reward is not None:
        raise click.UsageError("--reward is for model files, such as my.drn.")
    if problem is None and (map_ is None or task is None):
        lone = "--map" if map_ is not None else "--task" if task is not None else ""
        said = f"{lone} is only half of it: g" if lone else "G"
        raise click.UsageError(
            f"{said}ive a PROBLEM such as office/map1/exp5, or --map and --task."
        )
    if problem is not None and map_ is not None and "/" in problem.removeprefix("continuous/"):
        raise click.UsageError(
            f"PROBLEM {problem!r} says already what --map is to be: give --map and --task alone."
        )
    if problem is not None and task is not None and without_task(problem) != problem:
        raise click.UsageError(
            f"PROBLEM {problem!r} says already what --task is to be: "
            f"give {without_task(problem)} and --task."
        )
    context, known = click.get_current_context(), option_names(problem)
    for name in options.keys() - {*known}:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            *others, last = worlds_with(name)
            which = f"{', '.join(others)} and {last}" if others else last
            raise click.UsageError(f"--{name.replace('_', '-')} is for {which} worlds.")
    given = {
        name: value
        for name, value in options.items()
        if name in known and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    return make(problem, map=map_, task=task, **given)


def _read_model(
    path: str, map_: str | None, task: str | None, reward: str | None, **options: Any
) -> Any:
    """The problem of a file of a model checker and a task, or of the rewards that it has."""
    from qrmax.problems.model_files import load_model

    context = click.get_current_context()
    given = [
        name
        for name in options.keys() - {"max_episode_steps"}
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if map_ is not None or given:
        option = "map" if map_ is not None else given[0].replace("_", "-")
        raise click.UsageError(
            f"{path} is a model, with rules of its own: leave out --{option}; --task and "
            "--max-episode-steps can be given."
        )
    return load_model(path, reward=reward).problem(
        task, max_episode_steps=options["max_episode_steps"]
    )
