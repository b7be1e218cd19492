"""RiverSwim: a chain of states in a river, and the patrol between its ends.

    river-swim/patrol          reward 1 for each arrival at the right end; then back to the left end
    river-swim/noisy-patrol    the same, but the right end is noticed only with probability 0.8

Swimming right, against the current, succeeds with probability `right`; with probability `back` the
swimmer is carried one place to the left, and otherwise stays. Swimming left always succeeds.
Episodes start at the left end.

In the literature the label is that of the place in which the agent acts, hence of the state-action
pair. So it is here, and a state is a place together with the label that was read on the transition
to it (see `problems.step_labels`). With `labels="reached"` it belongs to the place
reached, as in all other worlds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from qrmax.errors import ParameterError, check_choice, check_count, check_range
from qrmax.machines.reward_machine import RewardMachine
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.problem import Problem
from qrmax.worlds.options import Options
from qrmax.worlds.world import World

ACTIONS = ("right", "left")
LABELS: list[set[str]] = [set(), {"left"}, {"right"}]
_NOTHING, _LEFT, _RIGHT = range(3)


@dataclass(frozen=True, kw_only=True, slots=True)
class RiverSwimOptions(Options):
    """The options of RiverSwim."""

    size: Annotated[int, "number of places"] = 6
    right: Annotated[float, "probability that swimming right, upstream, succeeds"] = 0.6
    back: Annotated[float, "probability that it is carried back instead; otherwise it stays"] = 0.05
    labels: Annotated[
        Literal["acted_in", "reached"], "the place whose label a transition reads"
    ] = "acted_in"
    max_episode_steps: Annotated[int | None, "steps after which episodes are truncated"] = 1000

    def __post_init__(self) -> None:
        check_count("size", self.size)
        if self.size < 2:
            raise ParameterError("size is 1; allowed: at least 2, a river has two ends")
        check_range("right", self.right, at_least=0.0, at_most=1.0)
        check_range("back", self.back, at_least=0.0, at_most=1.0)
        if self.right + self.back > 1.0:
            raise ParameterError(
                f"right is {self.right} and back {self.back}; allowed: at most 1 together"
            )
        check_choice("labels", self.labels, ("acted_in", "reached"))
        if self.max_episode_steps is not None:
            check_count("max_episode_steps", self.max_episode_steps)


def river_swim(task: RewardMachine, options: RiverSwimOptions, name: str) -> Problem:
    """RiverSwim: a chain of places in a river, against whose current swimming right may fail."""
    mdp = _river(options)
    label = np.full(options.size, _NOTHING)
    label[0], label[-1] = _LEFT, _RIGHT
    limit = options.max_episode_steps
    if options.labels == "reached":
        return Problem(mdp, task, LABELS, label, max_episode_steps=limit, name=name)
    steps = np.broadcast_to(label[:, None, None], mdp.succ.shape)
    return Problem.with_step_labels(mdp, task, LABELS, steps, max_episode_steps=limit, name=name)


def _river(options: RiverSwimOptions) -> TabularMDP:
    places = np.arange(options.size)
    upstream, downstream = (places + 1).clip(max=options.size - 1), (places - 1).clip(min=0)
    right = np.stack([upstream, downstream, places], axis=-1)
    left = np.stack([downstream] * 3, axis=-1)
    chances = [[options.right, options.back, 1.0 - options.right - options.back], [1.0, 0.0, 0.0]]
    prob = np.broadcast_to(np.array(chances).clip(min=0.0), (options.size, 2, 3))
    return TabularMDP(np.stack([right, left], axis=1), prob, coordinates=places[:, None])


WORLD = World(
    name="river-swim",
    make=river_swim,
    options=RiverSwimOptions,
    tasks={"patrol": "river-swim/patrol", "noisy-patrol": "river-swim/noisy-patrol"},
)
