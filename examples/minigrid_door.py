"""MiniGrid's DoorKey: fetch the key, open the door, and shut it behind you on the way to the goal.

And never let go of the key. The world is observed as five numbers, not as a picture. 10,000 steps,
some seconds; needs `pip install minigrid`.
"""

from typing import Any

import gymnasium
import minigrid  # noqa: F401 (it registers its worlds)
import numpy as np
from gymnasium.spaces import MultiDiscrete
from minigrid.core.world_object import Door

import qrmax

TASK = "F(key & F(open & F(goal & !open))) & G(key -> G key)"
SIZE = 6  # with the walls around it
LAYOUT = 3  # the seed of every episode, so that all are in the same rooms


class Symbolic(gymnasium.ObservationWrapper):
    """Column, row and direction of the walker, whether it carries the key, the state of the door.

    Where a dropped key lies is left out: the task has failed by then.
    """

    observation_space = MultiDiscrete([SIZE, SIZE, 4, 2, 3])

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:  # noqa: ARG002
        """Begin in the same rooms again."""
        return super().reset(seed=LAYOUT, options=options)

    def observation(self, observation: Any) -> Any:  # noqa: ARG002
        """The five numbers, in place of what MiniGrid shows."""
        world = self.unwrapped
        door = next(thing for thing in world.grid.grid if isinstance(thing, Door))
        carries = world.carrying is not None
        return np.array([*world.agent_pos, world.agent_dir, carries, door.encode()[2]])


def labels(observation: Any, _: Any) -> set[str]:
    """What is true there."""
    column, row, _direction, carries, door = observation
    facts = {"key": carries, "open": door == 0, "goal": column == row == SIZE - 2}
    return {name for name, holds in facts.items() if holds}


def main() -> None:
    """Learn the task, then watch an episode."""
    world = Symbolic(gymnasium.make(f"MiniGrid-DoorKey-{SIZE}x{SIZE}-v0"))
    env = qrmax.TaskWrapper(world, TASK, labels, env_reward=False)
    run = qrmax.train("qrmax-rm", env, seed=7, max_steps=10_000, t_env=1)  # nothing slips here
    print(f"{TASK}\nlearned in {run.steps:,} steps\n")

    for moment in run.watch():
        done = "start" if moment.action is None else env.unwrapped.actions(moment.action).name
        picture = env.unwrapped.pprint_grid().replace("WG", "##")  # grey walls
        print(f"{picture}\n{done}: {', '.join(moment.info['label'])}\n")
    print("done" if moment.info["success"] else "failed")


if __name__ == "__main__":
    main()
