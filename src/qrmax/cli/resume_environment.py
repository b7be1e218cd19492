"""The environment of a run that is resumed: made again from its description in the file.

No module is imported because a file names it. Modules of the user are named again on the command
line, and have to be those of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import click

from qrmax.cli.environments import OF_ENVIRONMENTS, EnvironmentOptions, make_environment_of


class Needed(NamedTuple):
    """A reference to a module of the user, and the option that gives it again."""

    option: str
    reference: str


class MadeAgain(NamedTuple):
    """An environment that was made again, and a notice if it is not in the same state."""

    env: Any
    notice: str


def environment_to_resume(
    path: Path,
    given: EnvironmentOptions,
    options: dict[str, Any],
    read_value: Callable[[str], Any],
) -> MadeAgain:
    """Make the environment of the run in a file again; there is none for a run on a problem.

    `options` are those of a problem, of which --task is for an environment without a description.
    """
    from qrmax.training.checkpoint import stored_environment

    stored = stored_environment(path)
    if stored is None:
        _refuse(given, options, OF_ENVIRONMENTS)
        return MadeAgain(None, "")
    if stored.made_from is not None:
        _refuse(given, options, ("env_option",))
        made = _made_again(path, stored.made_from, given)
    elif given.env is None:
        _refuse(given, options, OF_ENVIRONMENTS[1:])
        raise click.UsageError(
            f"{path} was trained in Python on the environment {stored.name!r}, which a file cannot "
            "hold: give --env, --task and --labelling, or resume it in Python: "
            f"qrmax.load({str(path)!r}, env=...).resume(...)"
        )
    else:
        task = {name: value for name, value in options.items() if name == "task"}
        made = make_environment_of(given, task, read_value)
    new_episode = f"{stored.name} cannot be restored in the middle of an episode: a new one begins"
    return MadeAgain(made, new_episode if stored.mid_episode else "")


def options_to_resume(made_from: Mapping[str, Any] | None) -> str:
    """The options that name the modules of an environment again, as they are typed."""
    needed = [] if made_from is None else _needed(made_from)
    return "".join(f" {option} {quote(reference)}" for option, reference in needed)


def _made_again(path: Path, made_from: Mapping[str, Any], given: EnvironmentOptions) -> Any:
    needed = _needed(made_from)
    _check_named(path, made_from, needed, given)

    from dataclasses import replace

    from qrmax.errors import warn
    from qrmax.plugins import make_importable
    from qrmax.studies.problem_specs import Environment, sources_of, spec_of
    from qrmax.worlds.outside_environments import check_environment, code_of

    if needed:
        make_importable(".")
    spec = spec_of(made_from)
    assert isinstance(spec, Environment)
    now = sources_of(code_of(spec.env, spec.labels, spec.transition_labels, spec.wrappers))
    for reference, origin in now.items():
        if spec.sources.get(reference) != origin:
            warn(f"{reference} has changed since the run was saved: a resumed run may differ")
    spec = replace(spec, sources=now)
    probe = spec.make()
    check_environment(probe)
    probe.close()
    return spec.make()


def _needed(made_from: Mapping[str, Any]) -> list[Needed]:
    """The references whose modules would be imported, in the order of the options."""
    from qrmax.studies.outside_code import mentions_code

    env, wrappers = str(made_from["env"]), made_from["wrappers"]
    labels = (made_from["labels"], made_from["transition_labels"])
    needed = [Needed("--env", env)] if ":" in env or mentions_code(made_from["options"]) else []
    needed += [Needed("--labelling", text) for text in labels if isinstance(text, str)]
    names = [each["wrapper"] if isinstance(each, Mapping) else each for each in wrappers]
    return [*needed, *(Needed("--wrapper", str(name)) for name in names)]


def _check_named(
    path: Path, made_from: Mapping[str, Any], needed: list[Needed], given: EnvironmentOptions
) -> None:
    """Refuse names that are missing, or not those of the file."""
    allowed = [*needed, Needed("--env", str(made_from["env"]))]
    named = [Needed("--env", given.env)] if given.env is not None else []
    named += [Needed("--labelling", given.labelling)] if given.labelling is not None else []
    named += [Needed("--wrapper", name) for name in given.wrapper]
    for option, reference in named:
        if Needed(option, reference) not in allowed:
            theirs = [known.reference for known in allowed if known.option == option]
            raise click.UsageError(
                f"{path} is a run with {option} {' and '.join(theirs) or 'not given'}, not with "
                f"{reference}: --resume takes the settings of the run."
            )
    missing = [each for each in needed if each not in named]
    if missing:
        words = " ".join(f"{option} {quote(reference)}" for option, reference in missing)
        raise click.UsageError(
            f"{path} needs code of yours, and loading a file imports no module: add {words}, as "
            f"in qrmax run --resume {path}{options_to_resume(made_from)}"
        )


def _refuse(given: EnvironmentOptions, options: Mapping[str, Any], names: tuple[str, ...]) -> None:
    found = {**given._asdict(), "task": options["task"]}
    for name in (*names, "task"):
        if found[name]:
            what = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"--resume takes the settings of the run: leave {what} out.")
