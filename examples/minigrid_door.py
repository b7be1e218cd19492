"""MiniGrid's DoorKey: fetch the key, open the door, and shut it behind you on the way to the goal.

And never let go of the key. States are numbered, so the optimum is exact and training stops once
the policy is near it. Some seconds; needs `pip install 'qrmax[minigrid]'`.
"""

import qrmax

TASK = """F(carrying_key & F(door_open & F(at_goal & !door_open)))
          & G(carrying_key -> G carrying_key)"""


def main() -> None:
    """Learn the task, then watch an episode."""
    env = qrmax.minigrid("MiniGrid-DoorKey-6x6-v0", TASK, seed=3)
    run = qrmax.train("qrmax-rm", qrmax.Problem.from_gymnasium(env), seed=7, t_env=1)
    print(f"learned in {run.steps:,} steps\n")
    for moment in run.watch(env):
        print(env.unwrapped.pprint_grid().replace("WG", "##"))  # grey walls
        print(", ".join(moment.info["label"]), end="\n\n")
    print("done" if moment.info["success"] else "failed")


if __name__ == "__main__":
    main()
