"""Gymnasium's CliffWalking: the upper left corner, then the upper right one, then the goal.

And never fall. Each move slips to either side as often as it goes where it should, so what is
learned leans on the walls: on its way no fall can happen. 30,000 steps, some seconds.
"""

from typing import Any

import gymnasium

import qrmax

TASK = "F(left & F(right & F goal)) & G !fall"
NAMES = {0: {"left"}, 11: {"right"}, 47: {"goal"}}  # of cells, row by row
FALL = -100  # a fall leads back to the start, and is told by its price only
ARROWS = "↑→↓←"


class Falls(gymnasium.Wrapper):
    """Says in `info` whether a step was a fall."""

    def step(self, action: Any) -> Any:
        """Act."""
        cell, reward, terminated, truncated, info = self.env.step(action)
        return cell, reward, terminated, truncated, {**info, "fell": reward == FALL}


def labels(before: int, move: int, cell: int, info: dict[str, Any]) -> set[str]:  # noqa: ARG001
    """What is true after a step."""
    return {"fall"} if info["fell"] else NAMES.get(cell, set())


def main() -> None:
    """Learn the task, watch an episode, and count in how many it succeeds."""
    world = Falls(gymnasium.make("CliffWalking-v1", is_slippery=True, render_mode="ansi"))
    env = qrmax.TaskWrapper(world, TASK, transition_labels=labels, env_reward=False)
    run = qrmax.train("qrmax-rm", env, seed=7, max_steps=30_000, gamma=0.99)
    print(f"{TASK}\nlearned in {run.steps:,} steps")

    task, moves = None, ""
    for moment in run.watch(seed=7):  # all moves, and a picture wherever the task goes on
        moves += "" if moment.action is None else ARROWS[moment.action]
        if moment.observation["task"] != task:
            print(f"{moves}\n{env.render()}{', '.join(moment.info['label'])}")
            task, moves = moment.observation["task"], ""
    print("\ndone" if moment.info["success"] else "\nfailed")

    ends = [[*run.watch(seed=seed)][-1] for seed in range(100)]
    print(f"success: {sum(end.info['success'] for end in ends)} of {len(ends)} episodes")


if __name__ == "__main__":
    main()
