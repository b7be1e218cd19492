"""Validation of reward machines: each check raises a `TaskError` that says why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from qrmax.errors import TaskError
from qrmax.logic.guards import braced

if TYPE_CHECKING:
    from qrmax.machines.reward_machine import RewardMachine


def check_ends(machine: RewardMachine) -> None:
    """Check that terminal states are success or failure, not both, absorbing and not initial."""
    name = machine.name
    if both := machine.success & machine.failure:
        raise TaskError(f"{name}: {sorted(both)[0]!r} is both a success and a failure")
    for edge in machine.edges:
        if edge.source in machine.terminal:
            raise TaskError(f"{name}: {edge!r} leaves a terminal state; the episode is over there")
    if machine.initial in machine.terminal:
        raise TaskError(f"{name}: the initial state {machine.initial!r} is terminal")


def check_declared(
    machine: RewardMachine, declared: Sequence[str], used: Iterable[str], implied: Collection[str]
) -> None:
    """Check that every state in use is declared once; `implied` ones may be declared, too."""
    times = Counter(declared)
    for state in used:
        if not times[state]:
            raise TaskError(
                f"{machine.name}: state {state!r} is used but not among the declared states "
                f"{', '.join(map(repr, machine.states))}"
            )
    for state in machine.states:
        if times[state] > 1 + (state in implied):
            raise TaskError(f"{machine.name}: state {state!r} is declared twice")


def check_overlaps(machine: RewardMachine) -> None:
    """Check that no two guards of a state overlap, unless they are alternatives."""
    for state in machine.states:
        edges = machine.edges_of(state)
        for later, edge in enumerate(edges, start=1):
            for other in edges[later:]:
                if edge.guard == other.guard and edge.probability < 1.0:
                    continue  # alternatives of one event
                label = edge.guard.overlap(other.guard)
                if label is not None:
                    raise TaskError(
                        f"{machine.name}: strict, but two edges of {state!r} overlap\n"
                        f"  {edge!r}\n  {other!r}\n"
                        f"  both hold for the label {braced(label)};\n"
                        f"  make one guard exclude the other, or drop strict: the first is taken"
                    )
