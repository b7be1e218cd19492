"""Random MDPs: `random-mdp/SEED` is a Garnet MDP with labels and a task, drawn from the seed.

Garnet (Archibald, McKinnon and Thomas, 1995): each of the `actions` of each of the `states` leads
to `branching` different states, drawn uniformly, with probabilities that are the lengths of the
parts of [0, 1] between uniform points. 3 to 6 propositions are true in some states each, at most
one in a state. In some MDPs one to three states are dead ends, in which the episode ends. The task
is one of `random_tasks`, endless patrols included.

Guaranteed: each state has an action that never leads to a dead end, and by those actions every
state can be reached from every other, along a cycle through all of them. So the reward can be
reached from the start, and the optimum is positive; at a discount factor of 0.9, optimal policies
succeed in 20 to 100 % of episodes on the seeds 0 to 1999 whose tasks have an end, in 89 % or more
on 19 of 20 (`python bench/generated.py`). States have no coordinates.

To compare learners fairly, choose their settings on the seeds 0 to 99, and report the results on
seeds from 1000 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import ParameterError, check_count
from qrmax.machines.reward_machine import RewardMachine
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.problem import Problem
from qrmax.worlds.draws import Draws
from qrmax.worlds.options import Options
from qrmax.worlds.random_tasks import random_task
from qrmax.worlds.world import World

FEWEST_STATES, MOST_STATES, MOST_ACTIONS = 10, 10_000, 100
STATES, ACTIONS, BRANCHING, LABELS = (10, 60), (2, 5), (1, 5), (3, 6)  # those that are drawn
SHARE_OF_A_LABEL = 20  # a proposition is true in at most one of so many states, or in one
KINDS = ("sequence", "any-order", "branching", "patrol", "restart")


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomMDPOptions(Options):
    """The options of random MDPs; None is what the seed says."""

    states: Annotated[int | None, "number of states"] = None
    actions: Annotated[int | None, "number of actions"] = None
    branching: Annotated[int | None, "number of successors of a state-action pair"] = None
    max_episode_steps: Annotated[int | None, "steps after which episodes are truncated"] = 1000

    def __post_init__(self) -> None:
        allowed = {
            "states": (FEWEST_STATES, MOST_STATES),
            "actions": (1, MOST_ACTIONS),
            "branching": (1, (self.states or MOST_STATES) // 2),
        }
        for name, (least, most) in allowed.items():
            if (value := getattr(self, name)) is not None:
                check_count(name, value, at_least=least, at_most=most)
        if self.max_episode_steps is not None:
            check_count("max_episode_steps", self.max_episode_steps)


def random_mdp(
    seed: int, task: RewardMachine | None, options: RandomMDPOptions, name: str
) -> Problem:
    """Random MDPs of the Garnet family with random labels and a task, drawn from a seed."""
    draws = Draws(seed, "random-mdp size")
    drawn = [draws.integer(*bounds) for bounds in (STATES, ACTIONS, BRANCHING)]
    given = (options.states, options.actions, options.branching)
    n_states, n_actions, width = (g or d for g, d in zip(given, drawn, strict=True))
    if options.branching is None:
        width = min(width, n_states // 2)
    elif width > n_states // 2:
        raise ParameterError(
            f"branching is {width}, and {name!r} has {n_states} states; allowed: 1 to "
            f"{n_states // 2}, or give states={2 * width}"
        )
    states = Draws(seed, "random-mdp labels").shuffled(range(n_states))
    start, ends, label, names = _labelled(Draws(seed, "random-mdp ends"), states)
    succ, prob = _garnet(Draws(seed, "random-mdp"), states, ends, n_actions, width)
    terminal = np.isin(np.arange(n_states), ends)
    return Problem(
        TabularMDP(succ, prob, terminal=terminal, start=start),
        task or random_task(Draws(seed, "random-mdp task"), names, KINDS),
        [(), *([each] for each in names)],
        label,
        max_episode_steps=options.max_episode_steps,
        name=name,
    )


def _labelled(
    draws: Draws, states: Sequence[int]
) -> tuple[int, list[int], NDArray[np.int32], list[str]]:
    """The start, the dead ends, the number of each state's label, and the propositions."""
    start, *others = states
    ends = [others.pop() for _ in range(draws.integer(1, 3) if draws.happens(0.3) else 0)]
    names = [*ascii_lowercase[: min(draws.integer(*LABELS), len(others) // 2)]]
    label = np.zeros(len(states), dtype=np.int32)
    for number in range(1, len(names) + 1):
        for _ in range(draws.integer(1, max(1, len(states) // SHARE_OF_A_LABEL))):
            label[others.pop()] = number
    return start, ends, label, names


def _garnet(
    draws: Draws, states: Sequence[int], ends: Sequence[int], n_actions: int, width: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Successor lists and probabilities, with a safe action in each state along a cycle."""
    succ = np.zeros((len(states), n_actions, width), dtype=np.int32)
    prob = np.zeros(succ.shape)
    alive = [state for state in states if state not in {*ends}]
    cycle = draws.shuffled(alive)
    following = dict(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    for state in range(len(states)):
        safe = draws.integer(0, n_actions - 1)
        for action in range(n_actions):
            if state in following and action == safe:
                nexts = [following[state]]
                others = [each for each in draws.some_of(alive, width) if each not in nexts]
                nexts += others[: width - 1]
            else:
                nexts = draws.some_of(states, width)
            succ[state, action] = nexts
            cuts = sorted(draws.number() for _ in range(width - 1))
            prob[state, action] = np.diff([0.0, *cuts, 1.0])
    return succ, prob


WORLD = World(
    name="random-mdp",
    make=random_mdp,
    options=RandomMDPOptions,
    seeds=(*range(100), *range(1000, 1100)),
    meaning_of_none=dict.fromkeys(("states", "actions", "branching"), "drawn from the seed"),
)
