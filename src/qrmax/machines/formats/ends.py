"""Which ends are good ones, in formats that do not say."""

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


def ends_by_pay(edges: Sequence[Edge], terminal: Iterable[str]) -> Ends:
    """Terminal states that are entered for a positive reward are successes, the others failures.

    One that is also entered without such a reward becomes two: these edges lead to a failure, named
    after it. Where no end is paid for at all, reaching any of them is what is wanted.

    >>> edges = [Edge("0", "coffee", "1", 1.0), Edge("0", "mud", "1")]
    >>> ends_by_pay(edges, ["1"]).failure
    frozenset({'1 unpaid'})
    """
    every = frozenset(terminal)
    paid = {edge.target for edge in edges if edge.reward > 0.0} & every
    if not paid:
        return Ends([*edges], every, frozenset())
    taken = {end for edge in edges for end in (edge.source, edge.target)} | every
    unpaid = {end: unused(f"{end} unpaid", taken) for end in paid}
    sorted_out = [
        edge
        if edge.target not in paid or edge.reward > 0.0
        else replace(edge, target=unpaid[edge.target])
        for edge in edges
    ]
    split = {edge.target for edge in sorted_out} & {*unpaid.values()}
    return Ends(sorted_out, every & paid, (every - paid) | split)
