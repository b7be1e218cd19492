"""A world of your own in one file: a ring road with wind, its option, its task.

    python examples/own_world.py              registers it, solves it, trains on it
    cd examples
    qrmax solve own_world:RING/round --wind 0.3
    qrmax run own_world:RING/round --agent qrmax-rm

A distribution makes it known by name, `qrmax run ring/round`, with an entry point:

    [project.entry-points."qrmax.worlds"]
    ring = "own_world:RING"
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

import qrmax


@dataclass(frozen=True, kw_only=True)
class RingOptions(qrmax.Options):
    """The options of the ring."""

    size: Annotated[int, "number of places on the ring"] = 8
    wind: Annotated[float, "probability that the wind blocks a move"] = 0.1


def ring(task: qrmax.RewardMachine, options: RingOptions, name: str) -> qrmax.Problem:
    """A ring road with a depot and a customer opposite; wind may block a move."""
    here = np.arange(options.size)
    moves = [(here + 1) % options.size, (here - 1) % options.size]  # [a][s]
    succ = np.stack([np.stack([to, here], axis=-1) for to in moves], axis=1)  # [s, a, k]
    prob = np.broadcast_to([1.0 - options.wind, options.wind], succ.shape)
    label = np.zeros(options.size, dtype=int)
    label[0], label[options.size // 2] = 1, 2
    return qrmax.Problem(
        qrmax.TabularMDP(succ, prob, start=0),
        task,
        labels=[set(), {"depot"}, {"customer"}],
        label=label,
        max_episode_steps=200,
        name=name,
    )


RING = qrmax.World(
    name="ring",
    make=ring,
    options=RingOptions,
    tasks={"round": "F(customer & F depot)"},
)


if __name__ == "__main__":
    qrmax.register_world(RING)
    problem = qrmax.make("ring/round", wind=0.3)
    print(problem)
    print(f"optimal value {qrmax.solve(problem).start_value:.4f}")
    run = qrmax.train("qrmax-rm", problem, seed=7, t_env=20)
    print(f"{run.reason} after {run.steps} steps")
