"""RiverSwim: a chain of places in a river, and the patrol between its ends.

    river-swim/patrol          1 for each arrival at the right end; then back to the left end
    river-swim/noisy-patrol    the same, but the right end is noticed only with probability 0.8

Swimming right, against the current, succeeds with probability `right`; with `back` one is carried a
place to the left, and otherwise one stays. Swimming left always succeeds. Episodes start at the
left end.

In the literature what is true belongs to the place that one acts *in*, that is to the step (s, a).
So it does here, and a state is a place together with the label that was read on the way to it (see
`model.step_labels`). With `labels="reached"` it belongs to the place reached, as everywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qrmax.errors import ParameterError, check_choice, check_count, check_range
from qrmax.machines.reward_machine import RewardMachine
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.problem import Problem
from qrmax.worlds.options import Options

ACTIONS = ("right", "left")
LABELS: list[set[str]] = [set(), {"left"}, {"right"}]
_NOTHING, _LEFT, _RIGHT = range(3)


@dataclass(frozen=True, kw_only=True, slots=True)
class RiverSwimOptions(Options):
    """The rules of RiverSwim."""

    size: int = 6  # how many places there are
    right: float = 0.6  # how often swimming right succeeds
    back: float = 0.05  # how often it is carried back instead; otherwise one stays
    labels: str = "acted_in"  # whose label a step reads: that of the place left, or "reached"
    max_episode_steps: int | None = 1000  # episodes are truncated here; None: never

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


def river_swim(task: RewardMachine, options: RiverSwimOptions) -> Problem:
    """The problem of doing a task in the river."""
    mdp = _river(options)
    label = np.full(options.size, _NOTHING)
    label[0], label[-1] = _LEFT, _RIGHT
    facts: dict[str, Any] = {
        "max_episode_steps": options.max_episode_steps,
        "name": f"river-swim/{task.name.removeprefix('river-swim/')}",
    }
    if options.labels == "reached":
        return Problem(mdp, task, LABELS, label, **facts)
    steps = np.broadcast_to(label[:, None, None], mdp.succ.shape)
    return Problem.with_step_labels(mdp, task, LABELS, steps, **facts)


def _river(options: RiverSwimOptions) -> TabularMDP:
    places = np.arange(options.size)
    upstream, downstream = (places + 1).clip(max=options.size - 1), (places - 1).clip(min=0)
    right = np.stack([upstream, downstream, places], axis=-1)
    left = np.stack([downstream] * 3, axis=-1)
    chances = [[options.right, options.back, 1.0 - options.right - options.back], [1.0, 0.0, 0.0]]
    prob = np.broadcast_to(np.array(chances).clip(min=0.0), (options.size, 2, 3))
    return TabularMDP(np.stack([right, left], axis=1), prob)
