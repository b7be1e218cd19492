"""Output of results: aligned text, or JSON."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

import click

from qrmax.live_line import folded
from qrmax.source import check_output, write_whole

NO_SUCCESS = "the task has no success state"
PICTURES = ("svg", "png", "pdf")  # those of `pictures.drawing`; a test holds them together
SEPARATORS = tuple(filter(None, [os.sep, os.altsep]))

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


class OutputFile(click.Path):
    """A file to be written, checked to be writable before any work begins."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check the path as text, since a `Path` has no final slash."""
        if str(value).endswith(SEPARATORS):
            self.fail(f"{str(value)!r} is a folder and cannot be written: give a file.", param, ctx)
        check_output(value)
        return Path(value)


picture_option = click.option(
    "-o",
    "--output",
    type=OutputFile(),
    required=True,
    help=f"The picture: a file whose name ends in .{', .'.join(PICTURES)}.",
)


def picture_format(output: Path, formats: Iterable[str] = PICTURES, option: str = "") -> str:
    """The suffix of a file name, in lower case, if it is that of one of the formats.

    Any other suffix is an error, so that no file has a misleading name; `option` is suggested
    instead, if there is one.
    """
    kind = output.suffix.lower().removeprefix(".")
    allowed = [*formats]
    if kind not in allowed:
        got = f"ends in {output.suffix!r}" if output.suffix else "has no suffix"
        ends = ", ".join(f".{format_}" for format_ in allowed)
        raise click.UsageError(
            f"{output}: the name {got}, and the suffix decides the format; allowed: {ends}"
            + (f", or any name with {option}." if option else ".")
        )
    return kind


def examples(*commands: str, note: str = "") -> str:
    """The end of a command's help: examples, after an optional note."""
    lines = ["Example:" if len(commands) == 1 else "Examples:", *(f"  {c}" for c in commands)]
    return "\n\n".join(filter(None, [note, "\b\n" + "\n".join(lines)]))


def print_json(result: Mapping[str, Any]) -> None:
    """Print a result as JSON."""
    click.echo(json.dumps(result, indent=2))


def terminal_width(file: TextIO | None = None) -> int | None:
    """The width of the terminal on stdout; None for a file or a pipe."""
    if not (file or sys.stdout).isatty():
        return None
    return shutil.get_terminal_size().columns


def wrapped(text: str, indent: int = 0, file: TextIO | None = None) -> str:
    """A line wrapped to the terminal's width; continuation lines are indented.

    In a file it is one line.
    """
    width = terminal_width(file)
    return text if width is None else folded(text, width, indent)


def print_message(text: str) -> None:
    """Print an error or a warning on stderr, wrapped to the terminal's width."""
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        click.echo(wrapped(line, indent + 2, sys.stderr), err=True)


def with_bold(name: str, text: str) -> str:
    """A text whose first word is bold on a terminal with colours."""
    plain = (
        terminal_width() is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    )
    return text if plain else click.style(name, bold=True) + text.removeprefix(name)


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, aligned."""
    width = max(map(len, facts))
    for name, value in facts.items():
        first, *others = str(value).split("\n")
        click.echo(with_bold(name, wrapped(f"{name.ljust(width)}  {first}", indent=width + 2)))
        for line in others:
            click.echo(wrapped(" " * (width + 2) + line, indent=width + 4))


def write_or_print(data: bytes, path: Path | None) -> None:
    """Write a result to a file, or to stdout."""
    if path is None:
        sys.stdout.buffer.write(data)
    else:
        write_whole(path, data)


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns, aligned; the first is text, the others are numbers.

    Columns that do not fit the terminal follow below the others, beside the first one again.
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    rule = ["-" * width for width in widths]
    for number, block in enumerate(_blocks(widths, terminal_width())):
        if number:
            click.echo()
        for row in (head, rule, *rows):
            cells = [row[i].rjust(widths[i]) if i else row[i].ljust(widths[i]) for i in block]
            click.echo("  ".join(cells).rstrip())


def _blocks(widths: Sequence[int], room: int | None) -> list[list[int]]:
    """The columns that fit side by side, the first one in each block.

    >>> _blocks([10, 5, 5, 5], 25), _blocks([10, 5, 5, 5], None)
    ([[0, 1, 2], [0, 3]], [[0, 1, 2, 3]])
    """
    blocks, used = [[0]], widths[0]
    for column, width in enumerate(widths[1:], start=1):
        if room is not None and used + 2 + width > room and len(blocks[-1]) > 1:
            blocks.append([0])
            used = widths[0]
        blocks[-1].append(column)
        used += 2 + width
    return blocks


def short_number(number: float | None) -> str:
    """A number in a few characters, however large.

    >>> short_number(37125), short_number(10**16), short_number(None)
    ('37125', '1.00e+16', '-')
    """
    if number is None:
        return "-"
    if isinstance(number, int) and number < 10**7:
        return str(number)
    return f"{Decimal(number):.3g}"  # the floats end at 1e308


def nominal_text(steps: int | None) -> str:
    """The length of the episode in which every transition is the most likely one.

    >>> nominal_text(1), nominal_text(None)
    ('1 step, without slips', 'none: no success within the limit, even without slips')
    """
    if steps is None:
        return "none: no success within the limit, even without slips"
    return f"{steps:,} step{'' if steps == 1 else 's'}, without slips"


def percent(share: float, digits: int = 2) -> str:
    """A share as a percentage."""
    return f"{100 * share:.{digits}f} %"
