"""The protocol of players: environments or simulators, stepped one transition at a time."""

from __future__ import annotations

from typing import Protocol

from qrmax.agents.base import State
from qrmax.problems.simulator import Step


class Player(Protocol):
    """A simulator of episodes: a `Simulator` of a problem, or an `EnvPlayer`."""

    @property
    def s(self) -> State:
        """The world state, as the agent perceives it."""
        ...

    @property
    def q(self) -> int:
        """The machine state."""
        ...

    @property
    def over(self) -> bool:
        """Whether the episode is over, so that a reset is needed before the next step."""
        ...

    @property
    def episodes(self) -> int:
        """The number of episodes that have begun."""
        ...

    def reset(self) -> None:
        """Start an episode."""
        ...

    def step(self, a: int) -> Step:
        """Act."""
        ...

    def cut(self) -> None:
        """End the episode here."""
        ...
