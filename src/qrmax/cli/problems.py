"""The argument and options that say which problem is meant: those of `qrmax.make`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from qrmax.agents.registry import agent_class, agent_names, built_in_names, check_agent_name
from qrmax.cli.own_agents import agents_in
from qrmax.plugins import is_reference, make_importable

TASKS = (
    "A task is the name of a built-in one, your own file, or a formula: of LTLf, such as "
    "'F(coffee & F office)', or of the logic that it begins with, as in 'ldlf: <true*;coffee>tt' "
    "or 'ppltl: O coffee'. Files of formulas end in .ltlf, .ldlf or .ppltl."
)
"""The forms of a task, for the help of verbs that are about tasks."""

MODELS = (".drn",)
"""Files of model checkers, which can be given as a problem."""


def complete_map(_: Any, __: Any, incomplete: str) -> list[str | CompletionItem]:
    """Complete the name of a map, or the path of a file."""
    from qrmax.worlds.grid import map_names

    return names_or_files(map_names(), incomplete)


def complete_task(_: Any, __: Any, incomplete: str) -> list[str | CompletionItem]:
    """Complete the name of a task, or the path of a file."""
    from qrmax.machines.task_files import task_names

    return names_or_files(task_names(), incomplete)


def names_or_files(names: list[str], incomplete: str) -> list[str | CompletionItem]:
    """Return the names that begin so; files if there are none."""
    fitting: list[str | CompletionItem] = [name for name in names if name.startswith(incomplete)]
    return fitting or [CompletionItem(incomplete, type="file")]


def _complete_problem(_: Any, __: Any, incomplete: str) -> list[str]:
    """Complete the name of a problem; of a generator's hundreds, once its own name is there."""
    from qrmax.worlds.world_registry import worlds

    names = []
    for world in worlds():
        drawn = world.seeds and not incomplete.startswith(f"{world.name}/")
        names += world.problem_names()[: 1 if drawn else None]
    return [name for name in names if name.startswith(incomplete)]


def _complete_agent(_: Any, __: Any, incomplete: str) -> list[str]:
    """Complete the name of an agent, or `module:Class` for a module in this folder."""
    names = [name for name in agent_names() if name.startswith(incomplete)]
    return names + (agents_in(Path.cwd(), incomplete) if incomplete else [])


agent_option = click.option(
    "--agent",
    shell_complete=_complete_agent,
    help=f"One of {', '.join(built_in_names())}, or one that you have installed; see `qrmax list "
    "agents`. Or one of your own, as module:Class; the module may be in this folder.  "
    "[default: qrmax; with continuous positions: bucket-qrmax]",
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
    """Return the agent to train if none is named."""
    return "bucket-qrmax" if is_continuous(problem) else "qrmax"


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
        help="For a model file (.drn) as PROBLEM: the reward model to use.",
    ),
)


def problem_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a `ProblemCommand` the argument PROBLEM and what goes with a problem of any world."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def is_continuous(problem: str | None) -> bool:
    """Whether the problem of this name has real-valued positions."""
    if problem is None or problem.lower().endswith(MODELS):
        return False
    from qrmax.worlds.catalog import is_continuous as has_positions

    return has_positions(problem)


def make_problem(
    problem: str | None,
    map_: str | None,
    task: str | None,
    reward: str | None = None,
    **options: Any,
) -> Any:
    """Make the problem that these options describe."""
    from qrmax.worlds.catalog import make, option_names, worlds_with
    from qrmax.worlds.world_registry import by_family

    given = {name: value for name, value in options.items() if _is_given(name)}
    if problem is not None and problem.lower().endswith(MODELS):
        return _read_model(problem, map_, task, reward, given)
    if reward is not None:
        raise click.UsageError("--reward is for model files, such as my.drn.")
    _check_parts(problem, map_, task)
    for name in given.keys() - {*option_names(problem)}:
        *others, last = by_family(worlds_with(name))
        which = f"{', '.join(others)} and {last}" if others else last
        raise click.UsageError(f"--{name.replace('_', '-')} is for {which} worlds.")
    return make(problem, map=map_, task=task, **given)


def _check_parts(problem: str | None, map_: str | None, task: str | None) -> None:
    """Refuse a problem of which a part is missing, or given twice."""
    from qrmax.worlds.catalog import parse_name, without_task

    if problem is None and (map_ is None or task is None):
        lone = "--map" if map_ is not None else "--task" if task is not None else ""
        said = f"{lone} is only half of it: g" if lone else "G"
        raise click.UsageError(
            f"{said}ive a PROBLEM such as office/map1/exp5, or --map and --task."
        )
    parsed = parse_name(problem)
    if problem is None or parsed is None:
        return
    if map_ is not None and parsed.map is not None:
        raise click.UsageError(
            f"PROBLEM {problem!r} already has a map: give --map and --task without it."
        )
    if task is not None and parsed.task is not None:
        raise click.UsageError(
            f"PROBLEM {problem!r} already has a task: give {without_task(problem)} and --task."
        )


def _is_given(name: str) -> bool:
    """Whether an option stands on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


def _read_model(
    path: str, map_: str | None, task: str | None, reward: str | None, given: dict[str, Any]
) -> Any:
    """Make the problem of a file of a model checker and a task, or of the rewards that it has."""
    from qrmax.problems.model_files import load_model

    unfit = ["map"] if map_ is not None else [*given.keys() - {"max_episode_steps"}]
    if unfit:
        raise click.UsageError(
            f"{path} is a model with its own dynamics: leave out "
            f"--{unfit[0].replace('_', '-')}; --task and --max-episode-steps can be given."
        )
    limit = given.get("max_episode_steps", MODEL_EPISODE_STEPS)
    return load_model(path, reward=reward).problem(task, max_episode_steps=limit)


MODEL_EPISODE_STEPS = 1000
"""Steps after which episodes of a model file are truncated, if nothing else is said."""
