"""Stable-Baselines3 on a task: PPO and DQN as they are, and DQN with counterfactual experience.

Gymnasium's FrozenLake, to a corner and back home. An environment in a TaskWrapper is like any other
with observations of several parts, the state of the task among them. Needs the extra 'dqn'; some
seconds.
"""

from typing import Any

import gymnasium
import torch
from stable_baselines3 import DQN, PPO

import qrmax
from qrmax.sb3 import CounterfactualReplayBuffer

TASK = "F(corner & F home)"
LABELS = {0: {"home"}, 2: {"corner"}}
STEPS = 2000


def make_env() -> qrmax.TaskWrapper:
    """The lake, whose own goal does not count."""
    lake = gymnasium.make("FrozenLake-v1", is_slippery=False, max_episode_steps=20)
    return qrmax.TaskWrapper(lake, TASK, LABELS, env_reward=False)


def learners() -> dict[str, Any]:
    """Three learners, with settings for tasks as small as this."""
    small = {"policy_kwargs": {"net_arch": [32]}, "gamma": 0.9, "seed": 7, "device": "cpu"}
    off_policy = {
        "learning_rate": 3e-3,
        "learning_starts": 100,
        "target_update_interval": 50,
        "train_freq": 2,
        "exploration_fraction": 0.5,
        "buffer_size": 10_000,
    }
    machine = make_env().machine
    return {
        "PPO": PPO(
            "MultiInputPolicy", make_env(), n_steps=256, learning_rate=3e-3, ent_coef=0.02, **small
        ),
        "DQN": DQN("MultiInputPolicy", make_env(), **off_policy, **small),
        "DQN, counterfactual": DQN(
            "MultiInputPolicy",
            make_env(),
            replay_buffer_class=CounterfactualReplayBuffer,
            replay_buffer_kwargs={"machine": machine},
            **off_policy,
            **small,
        ),
    }


def play(model: Any) -> str:
    """An episode of the greedy policy: the cells it comes to, and how it ends."""
    env, over = make_env(), False
    observation, info = env.reset(seed=0)
    cells = [observation["state"]]
    while not over:
        action, _ = model.predict(observation, deterministic=True)
        observation, _, terminated, truncated, info = env.step(int(action))
        cells.append(observation["state"])
        over = terminated or truncated
    return f"{' '.join(map(str, cells))}  {'success' if info['success'] else 'failure'}"


def main() -> None:
    """Train each of them, and show what it does then."""
    torch.set_num_threads(1)  # these networks are too small for more
    print(f"{TASK}, {STEPS:,} steps each")
    for name, model in learners().items():
        model.learn(STEPS)
        print(f"{name + ':':<21}{play(model)}")


if __name__ == "__main__":
    main()
