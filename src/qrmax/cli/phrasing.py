"""Messages in the words of the command line: options in place of Python's arguments.

The library's messages name Python arguments, `max_steps is 0` or `give task=...`. A command that
has an option for such an argument shows the option's name, or `--set` for hyperparameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import click

SET = "--set"
AMBIGUOUS = {"alpha"}  # the level of Welch's test, or the learning rate


def in_options(message: str, command: click.Command | None) -> str:
    """Rewrite a message of the library in the options of this command.

    >>> run = click.Command("run", params=[click.Option(["--max-steps"]), click.Option(["--set"])])
    >>> in_options("max_steps is 0; allowed: whole numbers from 1", run)
    '--max-steps is 0; allowed: whole numbers from 1'
    >>> in_options("above r_max = 1; give r_max=2 or more, or max_steps=5", run)
    'above r_max = 1; give --set r_max=2 or more, or --max-steps 5'
    """
    options = _options(command)
    for name, option in options.items():
        message = re.sub(rf"(?<![\w-]){name}=\.\.\.", option, message)
        message = re.sub(rf"(?<![\w-]){name}=(?=[\w'\"])", f"{option} ", message)
        if "_" in name:  # others are words, too
            message = re.sub(rf"(?<![\w'\"-]){name}(?![\w'\"=])", option, message)
        message = re.sub(rf"^{name}(?= is )", option, message)
    if SET in options.values():
        message = re.sub(r"(?<![\w-])(?<!--set )([a-z]\w*=)(?=[\w.])", rf"{SET} \1", message)
    return message


def _options(command: click.Command | None) -> Mapping[str, str]:
    """The options of a command, by the Python argument that each stands for."""
    params = command.params if command else []
    return {
        option.removeprefix("--").replace("-", "_"): option
        for param in params
        if isinstance(param, click.Option)
        for option in param.opts
        if option.startswith("--") and option.removeprefix("--") not in AMBIGUOUS
    }
