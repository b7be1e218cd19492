"""Success and failure states, inferred for formats that do not distinguish them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from qrmax.machines.edges import Edge
from qrmax.machines.formats.names import unused


class Ends(NamedTuple):
    """The edges of a machine, and the terminal states that they lead to."""

    edges: list[Edge]
    success: frozenset[str]
    failure: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """Every terminal state."""
        return self.success | self.failure


def ends_by_reward(edges: Sequence[Edge], terminal: Iterable[str]) -> Ends:
    """Classify terminal states: success if entered with a positive reward, else failure.

    One that is also entered without such a reward is split: those edges lead to a failure named
    after it. If no terminal state is rewarded, all of them are successes.

    >>> edges = [Edge("0", "coffee", "1", 1.0), Edge("0", "mud", "1")]
    >>> ends_by_reward(edges, ["1"]).failure
    frozenset({'1 unpaid'})
    """
    every = frozenset(terminal)
    rewarded = {edge.target for edge in edges if edge.reward > 0.0} & every
    if not rewarded:
        return Ends([*edges], every, frozenset())
    taken = {end for edge in edges for end in (edge.source, edge.target)} | every
    unpaid = {end: unused(f"{end} unpaid", taken) for end in rewarded}
    classified = [
        edge
        if edge.target not in rewarded or edge.reward > 0.0
        else replace(edge, target=unpaid[edge.target])
        for edge in edges
    ]
    split = {edge.target for edge in classified} & {*unpaid.values()}
    return Ends(classified, every & rewarded, (every - rewarded) | split)
