"""Reward shaping: a machine that pays on the way, without changing what is best.

A state q is worth V(q) to someone who could choose every edge:

    V(q) = max over edges of reward + gamma V(q'),  V = 0 at the ends.

The shaped machine pays reward + gamma V(q') - V(q) for each step from q to q', also for those that
stay. Along an episode the additions come to less V at its start, whatever is done in between. So
all policies lose the same, and the best ones stay the best (Ng, Harada and Russell, 1999).

That needs V to be 0 where an episode ends. At the ends of the machine it is; where the world ends
episodes on its own, labels must tell (`world_ends`), or agents would learn to look for such an end
with much V unpaid.
"""

from __future__ import annotations

import math

from qrmax.automata.edges import Edge
from qrmax.automata.guards import Guard
from qrmax.automata.reward_machine import RewardMachine
from qrmax.errors import check_range

NEVER = Guard.parse("false")
PRECISION = 1e-12  # of V, relative to the largest reward


def potentials(machine: RewardMachine, gamma: float) -> dict[str, float]:
    """V of every state."""
    check_range("gamma", gamma, above=0.0, below=1.0)
    value = dict.fromkeys(machine.states, 0.0)
    largest = max((abs(edge.reward) for edge in machine.edges), default=0.0)
    change = math.inf
    while change > PRECISION * largest * (1.0 - gamma):
        # Staying for nothing is always possible in time, so no state is worth less than nothing.
        better = dict.fromkeys(machine.states, 0.0)
        for edge in machine.edges:
            worth = edge.reward + gamma * value[edge.target]
            better[edge.source] = max(better[edge.source], worth)
        change = max(abs(better[state] - value[state]) for state in machine.states)
        value = better
    return value


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
                    Edge(state, when, target, reward + left * value[target] - value[state], chance)
                    for chance, target, reward in outcomes
                ]
    return RewardMachine(
        edges,
        initial=machine.initial,
        success=machine.success,
        failure=machine.failure,
        states=machine.states,
        consume_initial=machine.consume_initial,
        name=machine.name,
        description=machine.description,
    )
