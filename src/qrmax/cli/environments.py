"""The options that describe a Gymnasium environment with a task, and a run on one in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from qrmax.cli.output import print_facts, print_json

if TYPE_CHECKING:
    from qrmax.training.run import Run

OF_ENVIRONMENTS = ("env", "labelling", "wrapper", "env_option")

_OPTIONS = (
    click.option(
        "--env",
        metavar="ID",
        help="A Gymnasium environment in place of PROBLEM, by its id or as module:function; needs "
        "--task and --labelling.",
    ),
    click.option(
        "--labelling",
        metavar="MODULE:FUNCTION",
        help="Its labelling function: labels(observation, info) names the true propositions.",
    ),
    click.option(
        "--wrapper",
        multiple=True,
        metavar="MODULE:CLASS",
        help="A wrapper of it; may be given several times, the innermost first.",
    ),
    click.option(
        "--env-option",
        multiple=True,
        metavar="NAME=VALUE",
        help="A keyword argument of it, such as is_slippery=true; may be given several times.",
    ),
)


class EnvironmentOptions(NamedTuple):
    """The options that were given."""

    env: str | None
    labelling: str | None
    wrapper: tuple[str, ...]
    env_option: tuple[str, ...]


def environment_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of environments."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def make_environment_of(
    given: EnvironmentOptions, options: dict[str, Any], read_value: Callable[[str], Any]
) -> Any:
    """The environment that the options describe; None if they describe none.

    `options` are those of a problem: only --task is for environments, too.
    """
    if given.env is None:
        for name in OF_ENVIRONMENTS[1:]:
            if getattr(given, name):
                raise click.UsageError(f"--{name.replace('_', '-')} is for --env.")
        return None
    context = click.get_current_context()
    for option in context.command.params:
        name = option.name or ""
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and name in options.keys() - {"task"}:
            what = option.opts[0] if isinstance(option, click.Option) else "PROBLEM"
            raise click.UsageError(f"--env is given in place of PROBLEM: leave {what} out.")
    if options["task"] is None or given.labelling is None:
        raise click.UsageError(
            "--env needs --task and --labelling, as in --env CliffWalking-v1 --task 'F goal' "
            "--labelling mine:labels."
        )
    from qrmax.machines.task_files import load_task
    from qrmax.plugins import make_importable
    from qrmax.worlds.outside_environments import check_environment, make_environment

    make_importable(".")
    description: dict[str, Any] = {
        "task": load_task(options["task"]),
        "labels": given.labelling,
        "wrappers": given.wrapper,
        "options": dict(_pair(text, read_value) for text in given.env_option),
    }
    probe = make_environment(given.env, **description)
    check_environment(probe)
    probe.close()
    return make_environment(given.env, **description)


def print_run(outcome: Run, rule: str, as_json: bool, files: dict[str, Any]) -> None:
    """Print what a run on an environment came to."""
    last = outcome.curve[-1]._asdict() if outcome.curve else {}
    if as_json:
        print_json(
            {
                "agent": outcome.agent.name,
                "env": outcome.task_name,
                "seed": outcome.seed,
                "steps": outcome.steps,
                "episodes": outcome.episodes,
                "reason": outcome.reason,
                "trained": outcome.trained,
                "last_check": last,
                "seconds": outcome.seconds,
                "settings": asdict(outcome.agent.config),
            }
        )
        return
    unmet = "" if rule == "budget" else f": the rule {rule!r} was not met"
    facts = {
        "environment": outcome.task_name,
        "agent": outcome.agent.name,
        "steps": f"{outcome.steps:,}"
        + (f", the budget{unmet}" if outcome.reason == "budget" else ""),
        "episodes": f"{outcome.episodes:,}",
        **{name: text for name in _SHOWN if (text := _interval(last, name))},
        **{name: str(path) for name, path in files.items() if path is not None},
    }
    print_facts({name.replace("_", " "): text for name, text in facts.items()})


_SHOWN = ("success", "episode_return", "length")


def _interval(last: dict[str, Any], name: str) -> str:
    """A number of the last check with its confidence interval."""
    value, low, high = (last.get(f"{name}{end}") for end in ("", "_low", "_high"))
    if value is None:
        return ""
    return f"{value:.3g}" + ("" if low is None or high is None else f"  [{low:.3g} to {high:.3g}]")


def _pair(text: str, read_value: Callable[[str], Any]) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.UsageError(
            f"--env-option {text!r} is not of the form NAME=VALUE, as in is_slippery=true."
        )
    return name.strip(), read_value(value.strip())
