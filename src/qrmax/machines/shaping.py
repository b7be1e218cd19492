"""Potential-based reward shaping (Ng, Harada and Russell, 1999), with values of the machine.

The potential V(q) is the optimal value of state q if every edge could be chosen freely:

    V(q) = max over edges of reward + gamma V(q'),  V = 0 in terminal states.

The shaped machine gives reward + gamma V(q') - V(q) for each step from q to q', also if q' = q. The
added terms of an episode telescope to -V at its start, whatever the agent does. So the value of
every policy is lowered by the same amount, and optimal policies stay optimal.

That requires V = 0 where an episode ends. In the terminal states of the machine it is; where the
environment ends episodes on its own, labels must say so (`world_ends`), or agents would learn to
seek such an end while V is large.

V is computed by value iteration from below, to its fixed point, and a shaped reward no larger than
the rounding error of its three terms is 0. So the best edge of a state has shaped reward exactly 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from qrmax.errors import SizeError, check_range
from qrmax.logic.guards import Guard
from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine

NEVER = Guard.parse("false")
SHAPED = " (shaped)"  # suffix of a shaped machine's name
ROUNDING = 1e-12  # of a sum, relative to its largest term
MAX_UPDATES = 20_000_000  # of edges, in value iteration: a few seconds


class Shaping(NamedTuple):
    """The provenance of a shaped machine."""

    unshaped: RewardMachine
    gamma: float
    world_ends: Guard
    potential: Mapping[str, float]  # V of every state


def potentials(machine: RewardMachine, gamma: float) -> dict[str, float]:
    """V of every state."""
    check_range("gamma", gamma, above=0.0, below=1.0)
    # Staying with reward 0 is possible under some label, so no value is negative.
    value = dict.fromkeys(machine.states, 0.0)
    for _ in range(MAX_UPDATES // max(1, len(machine.edges)) + 1):
        before = dict(value)
        for edge in reversed(machine.edges):  # most files list them from the start: fewer sweeps
            backup = edge.reward + gamma * value[edge.target]
            value[edge.source] = max(value[edge.source], backup)
        if value == before:
            return value
    raise SizeError(
        f"{machine.name}: gamma is {gamma:g}, and value iteration takes more than {MAX_UPDATES} "
        "updates; give a smaller one"
    )


def shape(machine: RewardMachine, gamma: float, world_ends: Guard) -> RewardMachine:
    """The machine with shaped rewards."""
    value = potentials(machine, gamma)
    edges = []
    for state in machine.states:
        if state in machine.terminal:
            continue
        for guard, outcomes in machine.events(state):
            last_step = Guard((*guard.postfix, *world_ends.postfix, "&"))
            cases = [(last_step, 0.0), (guard, gamma)]  # the first that holds is taken
            for when, discount in cases[world_ends == NEVER :]:
                edges += [
                    Edge(
                        state,
                        when,
                        target,
                        _sum(reward, discount * value[target], -value[state]),
                        p,
                    )
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


def _sum(*terms: float) -> float:
    """The sum; 0 if it is no more than the rounding error of its terms."""
    total = sum(terms)
    return 0.0 if abs(total) <= ROUNDING * max(map(abs, terms)) else total
