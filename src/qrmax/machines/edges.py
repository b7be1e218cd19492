"""The edges of a reward machine, and the events that they form.

Edges of one state with the same guard are alternatives of one *event*: if the guard holds, one of
them is taken, each with its probability. With the remaining probability the machine stays in its
state, with reward 0. If the first edge of an event has probability 1, there are no alternatives.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from qrmax.errors import GuardError, TaskError, shown
from qrmax.logic.guards import Guard
from qrmax.logic.isop import shortened

ALWAYS = Guard.parse("true")
ROUNDING = 1e-9  # tolerance for the probabilities of an event to sum to 1


@dataclass(frozen=True, slots=True)
class Edge:
    """A transition from one state to another, taken if the guard holds, with a reward.

    >>> Edge("start", "coffee & !mail", "has_coffee")
    Edge('start' -> 'has_coffee' when 'coffee & !mail', reward 0)
    >>> Edge("start", "coffee", "has_coffee", probability=0.8)
    Edge('start' -> 'has_coffee' when 'coffee', reward 0, probability 0.8)

    Args:
        source: the state that it leaves.
        guard: a Boolean condition on the label read, as a `Guard` or as text.
        target: the state that it leads to.
        reward: the reward for taking it.
        probability: below 1, the edge is one of several alternatives: those of the same state with
            the same guard. With the probability left over the machine stays, with reward 0.
    """

    source: str
    guard: Guard
    target: str
    reward: float = 0.0
    probability: float = 1.0

    def __init__(
        self,
        source: str,
        guard: Guard | str,
        target: str,
        reward: float = 0.0,
        probability: float = 1.0,
    ) -> None:
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "guard", Guard.parse(guard) if isinstance(guard, str) else guard)
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "reward", _number(reward))
        object.__setattr__(self, "probability", _number(probability))
        if not math.isfinite(self.reward):
            self._refuse("reward", reward, "finite numbers")
        if not 0.0 < self.probability <= 1.0:
            self._refuse("probability", probability, "numbers above 0, at most 1")

    def _refuse(self, what: str, value: object, allowed: str) -> None:
        raise TaskError(
            f"the {what} of {self.source!r} -> {self.target!r} is {shown(value)}; "
            f"allowed: {allowed}"
        )

    def __repr__(self) -> str:
        ends = f"{self.source!r} -> {self.target!r}"
        chance = f", probability {self.probability:g}" if self.probability < 1.0 else ""
        return f"Edge({ends} when {str(self.guard)!r}, reward {self.reward:g}{chance})"


class Outcome(NamedTuple):
    """A possible effect of reading a label: next state and reward, with their probability."""

    probability: float
    state: str
    reward: float


class Event(NamedTuple):
    """A guard and the outcomes if it holds; probabilities are positive and sum to 1."""

    guard: Guard
    outcomes: tuple[Outcome, ...]


def events_of(edges: Iterable[Edge], otherwise: Outcome) -> list[Event]:
    """Group the edges of one state into events, in the order in which guards are tried.

    The guard of the last event always holds: `otherwise` is its outcome, for unmatched labels.
    """
    alternatives: dict[Guard, list[Edge]] = {}
    for edge in edges:
        alternatives.setdefault(edge.guard, []).append(edge)
    events = [Event(guard, _outcomes(group)) for guard, group in alternatives.items()]
    return [*events, Event(ALWAYS, (otherwise,))]


def exclusive(events: Iterable[Event]) -> list[Event]:
    """The same events with mutually exclusive guards."""
    found: list[Event] = []
    before: list[Guard] = []
    for event in events:
        guard = event.guard
        for earlier in before:
            if _can_hold(guard, earlier):
                guard = guard.but_not(earlier)
        before.append(event.guard)
        if _can_hold(guard):
            found.append(Event(shortened(guard), event.outcomes))
    return found


def _can_hold(guard: Guard, other: Guard | None = None) -> bool:
    """Whether the guard, or both guards, can hold; True if that is too hard to decide."""
    try:
        return (guard.example() if other is None else guard.overlap(other)) is not None
    except GuardError:
        return True


def _outcomes(edges: Sequence[Edge]) -> tuple[Outcome, ...]:
    first = edges[0]
    if first.probability == 1.0:
        return (Outcome(1.0, first.target, first.reward),)
    total = math.fsum(edge.probability for edge in edges)
    if total > 1.0 + ROUNDING:
        raise TaskError(
            f"the probabilities of the edges of {first.source!r} when {str(first.guard)[:80]!r} "
            f"sum to {total:.12g}; allowed: at most 1"
        )
    if total >= 1.0 - ROUNDING:
        return tuple(Outcome(e.probability / total, e.target, e.reward) for e in edges)
    happens = [Outcome(edge.probability, edge.target, edge.reward) for edge in edges]
    return (*happens, Outcome(1.0 - total, first.source, 0.0))


def _number(value: float) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
