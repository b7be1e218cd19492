"""Edge labels and state identifiers, shared by the formats that are drawings.

    coffee & !mail            the guard alone
    office / 1.0              reward 1
    office, p=0.8 / 1.0       taken with probability 0.8, reward 1

Settings that a drawing cannot show, such as `undefined`, are stored beside it, as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from qrmax.errors import QRMaxError, TaskError, shown
from qrmax.logic.guards import Guard
from qrmax.machines.edges import Edge
from qrmax.machines.formats.fields import make_machine
from qrmax.machines.formats.names import unused
from qrmax.machines.formats.number import number_of
from qrmax.machines.reward_machine import RewardMachine
from qrmax.source import Source

SUCCESS, FAILURE = "success", "failure"

_EDGE_TEXT = re.compile(
    r'(?P<when>(?:[^/,"]|"[^"]*")*)(?:,\s*p\s*=(?P<probability>[^/,]*))?(?:/(?P<reward>[^/,]*))?'
)
_FLAGS = {"true": True, "false": False}


def edge_text(edge: Edge) -> str:
    """Format the label of an edge, for `read_edge`."""
    chance = f", p={edge.probability!r}" if edge.probability < 1.0 else ""
    reward = f" / {edge.reward!r}" if edge.reward else ""
    return f"{edge.guard}{chance}{reward}"


def read_edge(start: str, text: str, end: str) -> Edge:
    """Parse the label of an edge."""
    parts = _EDGE_TEXT.fullmatch(text)
    if parts is None:
        raise TaskError(
            f"the label {shown(text)} of an edge is not of the form 'guard, p=probability / reward'"
        )
    guard = Guard.parse(parts["when"].strip())
    return Edge(
        start,
        guard,
        end,
        _number("reward", parts["reward"], otherwise=0.0),
        _number("probability", parts["probability"], otherwise=1.0),
    )


def settings_of(machine: RewardMachine) -> dict[str, str]:
    """The settings that a drawing does not show, except default values."""
    settings = {
        "description": (machine.description, ""),
        "undefined": (machine.undefined, "stay"),
        "strict": (str(machine.strict).lower(), "false"),
        "consume_initial": (str(machine.consume_initial).lower(), "true"),
    }
    return {key: value for key, (value, default) in settings.items() if value != default}


def identifiers(names: Iterable[str], is_plain: Callable[[str], bool]) -> dict[str, str]:
    """An identifier for each state that the format allows: its name if that is allowed."""
    states = [*names]
    taken = {name for name in states if is_plain(name)}
    found: dict[str, str] = {}
    for number, name in enumerate(states):
        found[name] = name if is_plain(name) else unused(f"state_{number}", taken)
        taken.add(found[name])
    return found


class Drawing:
    """A machine being read from a drawing, with states and edges in any order."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.names: dict[str, str] = {}  # identifier -> state, in the order of their mention
        self.ends: dict[str, str] = {}  # identifier -> SUCCESS or FAILURE
        self.arrows: list[tuple[int, str, str, str]] = []  # offset, from, label, to
        self.initial: str | None = None
        self.settings: dict[str, Any] = {"name": Path(source.name).stem}

    def mention(self, identifier: str) -> None:
        """Add a state, named like its identifier unless it gets another name."""
        self.names.setdefault(identifier, identifier)

    def set(self, key: str, value: str) -> bool:
        """Set an attribute of the machine; return whether it is one."""
        if key in ("name", "description", "undefined"):
            self.settings[key] = value
        elif key in ("strict", "consume_initial") and value in _FLAGS:
            self.settings[key] = _FLAGS[value]
        else:
            return False
        return True

    def machine(self) -> RewardMachine:
        """Build the machine, after everything has been read."""
        if self.initial is None:
            raise TaskError(f"{self.source.name}: no initial state; an arrow must lead to it")
        if len({*self.names.values()}) < len(self.names):
            twice = next(n for n in self.names.values() if [*self.names.values()].count(n) > 1)
            raise TaskError(f"{self.source.name}: two states are called {shown(twice)}")
        ends = {
            kind: [self.names[each] for each, its in self.ends.items() if its == kind]
            for kind in (SUCCESS, FAILURE)
        }
        return make_machine(
            self.source,
            [self._edge(*arrow) for arrow in self.arrows],
            initial=self.names[self.initial],
            states=[*self.names.values()],
            **ends,
            **self.settings,
        )

    def _edge(self, offset: int, start: str, text: str, end: str) -> Edge:
        try:
            return read_edge(self.names[start], text, self.names[end])
        except QRMaxError as error:
            line, _ = self.source.place(offset)
            raise self.source.error(TaskError, str(error), line=line or 1) from error


def _number(what: str, text: str | None, otherwise: float) -> float:
    if text is None:
        return otherwise
    number = number_of(text.strip())
    if number is None:
        raise TaskError(f"the {what} {shown(text.strip())} of an edge is not a number")
    return number
