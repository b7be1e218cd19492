"""Gymnasium's Taxi: let the passenger in, drive by the place Y, and only then deliver.

And, once aboard, nobody gets out before the destination. Where passengers wait and want to go
differs from episode to episode, and it rains: one move in five goes astray. 50,000 steps, some
seconds.
"""

from typing import Any

import gymnasium
import numpy as np

import qrmax

TASK = "F(aboard & F(yellow & F delivered)) & G(aboard -> (aboard W delivered))"
SHAPE = (5, 5, 5, 4)  # row, column, where the passenger is, where they want to go
YELLOW = (4, 0)
ABOARD = 4  # where the passenger is, after the places R, G, Y, B


def labels(state: int, _: Any) -> set[str]:
    """What is true in a state."""
    row, column, passenger, destination = np.unravel_index(state, SHAPE)
    facts = {
        "aboard": passenger == ABOARD,
        "yellow": (row, column) == YELLOW,
        "delivered": passenger == destination,
    }
    return {name for name, holds in facts.items() if holds}


def main() -> None:
    """Learn the task, watch an episode, and count in how many it succeeds."""
    world = gymnasium.make("Taxi-v4", is_rainy=True, render_mode="ansi")
    env = qrmax.TaskWrapper(world, TASK, labels, env_reward=False)
    run = qrmax.train("qrmax-rm", env, seed=7, max_steps=50_000, gamma=0.95, t_env=10)
    print(f"{TASK}\nlearned in {run.steps:,} steps\n")

    for moment in run.watch(seed=7):
        print(f"{env.render()}{', '.join(moment.info['label'])}\n")
    print("done" if moment.info["success"] else "failed")

    ends = [[*run.watch(seed=seed)][-1] for seed in range(100)]
    print(f"success: {sum(end.info['success'] for end in ends)} of {len(ends)} episodes")


if __name__ == "__main__":
    main()
