"""Tasks as TOML, the format to write by hand.

    name = "exp1"
    description = "Bring coffee to the office."
    initial = "start"
    success = ["delivered"]
    edges = [
      { from = "start", when = "coffee", to = "has_coffee" },
      { from = "has_coffee", when = "office", to = "delivered", reward = 1.0 },
    ]

An edge may have a `probability` below 1, as one of several alternatives: the edges from the same
state with the same `when`. With the remaining probability the machine stays where it is. For a
stochastic reward, `reward = [[1.0, 0.5], [3.0, 0.4]]` lists values with their probabilities.

Optional keys: `failure`, `states` (to fix their order), `undefined`, `strict`, `consume_initial`;
`shaped = { gamma = 0.9, world_ends = "hole" }` adds potential-based reward shaping.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from itertools import groupby

from qrmax.errors import TaskError
from qrmax.machines.edges import Edge
from qrmax.machines.formats.fields import machine_of
from qrmax.machines.reward_machine import FAILED, RewardMachine
from qrmax.source import Source


def parse(source: Source) -> RewardMachine:
    """Parse a task from TOML text."""
    try:
        data = tomllib.loads(source.text)
    except (ValueError, RecursionError) as error:  # ValueError: also a number of 5000 digits
        raise TaskError(f"{source.name}: not valid TOML: {error}") from error
    return machine_of(source, data)


def format(machine: RewardMachine) -> str:  # noqa: A001 (each format has one)
    """Format a task as TOML text that `parse` reads back to an equal machine."""
    if (how := machine.shaping) is not None:
        ends = _quote(str(how.world_ends))
        unshaped = format(how.unshaped)
        return f"{unshaped}shaped = {{ gamma = {how.gamma!r}, world_ends = {ends} }}\n"
    can_fail = machine.undefined == "fail"
    lines = [f"name = {_quote(machine.name)}"]
    if machine.description:
        lines.append(f"description = {_quote(machine.description)}")
    lines.append(f"initial = {_quote(machine.initial)}")
    implied = {FAILED} if can_fail else set()
    for key, group in (("success", machine.success), ("failure", machine.failure - implied)):
        if group:
            lines.append(f"{key} = [{', '.join(map(_quote, sorted(group)))}]")
    lines.append(f"states = [{', '.join(map(_quote, machine.states))}]")
    if can_fail:
        lines.append('undefined = "fail"')
    if machine.strict:
        lines.append("strict = true")
    if not machine.consume_initial:
        lines.append("consume_initial = false")
    lines += ["edges = [", *(f"  {entry}," for entry in _entries(machine.edges)), "]"]
    return "\n".join(lines) + "\n"


def _entries(edges: Iterable[Edge]) -> Iterable[str]:
    """The edges; those that differ only in reward and probability are merged."""
    for (source, guard, target), group in groupby(edges, lambda e: (e.source, e.guard, e.target)):
        parts = {"from": source, "when": str(guard), "to": target}
        text = ", ".join(f"{key} = {_quote(value)}" for key, value in parts.items())
        alike = [*group]
        if len(alike) > 1 and all(edge.probability < 1.0 for edge in alike):
            rewards = ", ".join(f"[{edge.reward!r}, {edge.probability!r}]" for edge in alike)
            yield f"{{ {text}, reward = [{rewards}] }}"
            continue
        for edge in alike:
            reward = f", reward = {edge.reward!r}" if edge.reward else ""
            chance = f", probability = {edge.probability!r}" if edge.probability < 1.0 else ""
            yield f"{{ {text}{reward}{chance} }}"


def _quote(text: str) -> str:
    """A TOML basic string: JSON's escapes, and DEL, which JSON does not escape."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
