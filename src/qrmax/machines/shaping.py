"""Reward shaping: a machine that pays on the way, without changing what is best.

A state q is worth V(q) to someone who could choose every edge:

    V(q) = max over edges of reward + gamma V(q'),  V = 0 at the ends.

The shaped machine pays reward + gamma V(q') - V(q) for each step from q to q', also for those that
stay. Along an episode the additions come to less V at its start, whatever is done in between. So
all policies lose the same, and the best ones stay the best (Ng, Harada and Russell, 1999).

That needs V to be 0 where an episode ends. At the ends of the machine it is; where the world ends
episodes on its own, labels must tell (`world_ends`), or agents would learn to look for such an end
with much V unpaid.

V is worked out from below, until no edge makes it any larger, and what a step pays is 0 where it is
no more than the rounding of its three parts. So the best edge of a state costs exactly nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from qrmax.errors import SizeError, check_range
from qrmax.logic.guards import Guard
from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine

NEVER = Guard.parse("false")
SHAPED = " (shaped)"  # the end of a shaped machine's name
ROUNDING = 1e-12  # of a sum, relative to its largest part
MOST_LOOKS = 20_000_000  # at edges, to find V: some seconds


class Shaping(NamedTuple):
    """How a shaped machine was made."""

    unshaped: RewardMachine
    gamma: float
    world_ends: Guard
    potential: Mapping[str, float]  # V of every state


def potentials(machine: RewardMachine, gamma: float) -> dict[str, float]:
    """V of every state."""
    check_range("gamma", gamma, above=0.0, below=1.0)
    # Staying for nothing is always possible in time, so no state is worth less than nothing.
    value = dict.fromkeys(machine.states, 0.0)
    for _ in range(MOST_LOOKS // max(1, len(machine.edges)) + 1):
        before = dict(value)
        for edge in reversed(machine.edges):  # most people begin at the start
            worth = edge.reward + gamma * value[edge.target]
            value[edge.source] = max(value[edge.source], worth)
        if value == before:
            return value
    raise SizeError(
        f"{machine.name}: gamma is {gamma:g}, and what its states are worth takes more than "
        f"{MOST_LOOKS} looks at its edges; give a smaller one"
    )


def shape(machine: RewardMachine, gamma: float, world_ends: Guard) -> RewardMachine:
    """The machine with the potentials' part in every reward."""
    value = potentials(machine, gamma)
    edges = []
    for state in machine.states:
        if state in machine.terminal:
            continue
        for guard, outcomes in machine.events(state):
            last_step = Guard((*guard.postfix, *world_ends.postfix, "&"))
            cases = [(last_step, 0.0), (guard, gamma)]  # the first that holds is taken
            for when, left in cases[world_ends == NEVER :]:
                edges += [
                    Edge(state, when, target, _sum(reward, left * value[target], -value[state]), p)
                    for p, target, reward in outcomes
                ]
    shaped = RewardMachine(
        edges,
        initial=machine.initial,
        success=machine.success,
        failure=machine.failure,
        states=machine.states,
        consume_initial=machine.consume_initial,
        name=machine.name + SHAPED,
        description=machine.description,
    )
    shaped.shaping = Shaping(machine, float(gamma), world_ends, value)
    return shaped


def _sum(*parts: float) -> float:
    """The sum; 0 where it is no more than the rounding of its parts."""
    total = sum(parts)
    return 0.0 if abs(total) <= ROUNDING * max(map(abs, parts)) else total
