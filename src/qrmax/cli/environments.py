"""The options that describe a Gymnasium environment with a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

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
    from qrmax.plugins import make_importable
    from qrmax.studies.outside_problems import find_task
    from qrmax.studies.problem_specs import Environment, sources_of
    from qrmax.worlds.outside_environments import check_environment, code_of

    make_importable(".")
    described = Environment(
        label="",
        env=given.env,
        task=find_task(options["task"], Path()),
        labels=given.labelling,
        wrappers=given.wrapper,
        options=dict(_pair(text, read_value) for text in given.env_option),
    )
    probe = described.make()
    check_environment(probe)
    probe.close()
    sources = sources_of(code_of(given.env, given.labelling, None, given.wrapper))
    return replace(described, sources=sources).make()


def _pair(text: str, read_value: Callable[[str], Any]) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.UsageError(
            f"--env-option {text!r} is not of the form NAME=VALUE, as in is_slippery=true."
        )
    return name.strip(), read_value(value.strip())
