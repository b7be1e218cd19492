"""How results look: aligned text for people, JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from qrmax.source import write_whole

NO_SUCCESS = "the task has no success state"
SEPARATORS = tuple(filter(None, [os.sep, os.altsep]))

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


class OutputFile(click.Path):
    """A file to be written; what is a folder, or is written like one, is refused."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A `Path`, which would not show any more how the text ended."""
        if str(value).endswith(SEPARATORS) or Path(value).is_dir():
            self.fail(f"{str(value)!r} is a folder and cannot be written: give a file.", param, ctx)
        return super().convert(value, param, ctx)


def examples(*commands: str, note: str = "") -> str:
    """How a verb's help ends: with examples, perhaps after a note."""
    lines = ["Example:" if len(commands) == 1 else "Examples:", *(f"  {c}" for c in commands)]
    return "\n\n".join(filter(None, [note, "\b\n" + "\n".join(lines)]))


def print_json(result: Mapping[str, Any]) -> None:
    """Print a result for programs to read."""
    click.echo(json.dumps(result, indent=2))


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, aligned."""
    width = max(map(len, facts))
    for name, value in facts.items():
        click.echo(f"{name.ljust(width)}  {value}")


def write_or_print(data: bytes, path: Path | None) -> None:
    """Write a result into a file, or to stdout."""
    if path is None:
        sys.stdout.buffer.write(data)
    else:
        write_whole(path, data)


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns, aligned; the first is text, the others are numbers."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    rule = ["-" * width for width in widths]
    for row in (head, rule, *rows):
        cells = [
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo("  ".join(cells).rstrip())


def percent(share: float, digits: int = 2) -> str:
    """A share as people read it."""
    return f"{100 * share:.{digits}f} %"
