"""The option `--set NAME=VALUE`: hyperparameters of an agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def settings_option(about: str) -> Callable[[Command], Command]:
    """The option, with this help; the command gets a mapping `settings`."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        callback=_read_settings,
        metavar="NAME=VALUE",
        help=about,
    )


def read_value(text: str) -> Any:
    """A value as in Python: a number, true, false or none; otherwise the text."""
    words: dict[str, bool | None] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _read_settings(_: Any, __: Any, texts: tuple[str, ...]) -> dict[str, Any]:
    """Parse NAME=VALUE pairs."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE, as in t_env=20.")
        settings[name.strip().replace("-", "_")] = read_value(value.strip())
    return settings
