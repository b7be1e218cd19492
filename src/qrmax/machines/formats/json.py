"""Tasks as JSON, with the keys of TOML files; RMSpec files are recognised by their keys."""

from __future__ import annotations

import json
from typing import Any

from qrmax.errors import TaskError
from qrmax.machines.formats import rmspec
from qrmax.machines.formats.fields import data_of, machine_of
from qrmax.machines.reward_machine import RewardMachine
from qrmax.source import Source


def parse(source: Source) -> RewardMachine:
    """Parse a task from JSON text, in our own format or RMSpec."""
    data = _read(source)
    if isinstance(data, dict) and rmspec.is_spec(data):
        return rmspec.machine_of(source, data)
    return machine_of(source, data)


def format(machine: RewardMachine) -> str:  # noqa: A001 (each format has one)
    """Format a task as JSON text that `parse` reads back to an equal machine."""
    return json.dumps(data_of(machine), indent=2, ensure_ascii=False) + "\n"


def _read(source: Source) -> Any:
    try:
        return json.loads(
            source.text, object_pairs_hook=_without_repetition, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        raise source.error(
            TaskError, f"not valid JSON: {error.msg}", line=error.lineno, column=error.colno
        ) from error
    except (ValueError, RecursionError) as error:  # ValueError: also a number of 5000 digits
        raise TaskError(f"{source.name}: not valid JSON: {error}") from error


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Reject repeated keys, whose meaning JSON leaves open."""
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"duplicate key {key[:80]!r}")
        table[key] = value
    return table


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")
