"""Which ends are good ones, in formats that do not say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from qrmax.automata.edges import Edge


class Ends(NamedTuple):
    """The terminal states of a machine."""

    success: frozenset[str]
    failure: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """Every terminal state."""
        return self.success | self.failure


def ends_by_pay(edges: Iterable[Edge], terminal: Iterable[str]) -> Ends:
    """Terminal states that are entered for a positive reward are successes, the others failures.

    Where no end is paid for at all, reaching any of them is what is wanted.
    """
    every = frozenset(terminal)
    paid = {edge.target for edge in edges if edge.reward > 0.0} & every
    return Ends(every & paid, every - paid) if paid else Ends(every, frozenset())
