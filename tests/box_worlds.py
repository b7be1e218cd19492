"""Environments with real observations and tasks, for the agents with buckets."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import qrmax
from gym_worlds import in_order
from qrmax.worlds.gymnasium import ProblemEnv


def _sides(low: float, high: float, place: int = 0) -> Any:
    """Left where a number of the observation is below, right where it is above."""

    def labels(seen: Any, _: Any) -> set[str]:
        return {"left"} if seen[place] < low else {"right"} if seen[place] > high else set()

    return labels


CLASSIC = {  # what is true where
    "CartPole-v1": _sides(-0.02, 0.02),
    "MountainCar-v0": _sides(-0.55, -0.45),
    "Acrobot-v1": _sides(0.98, 0.995),
    "LunarLander-v3": _sides(-0.05, 0.05),
}


class Steady(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Starts every episode alike, whatever the seed; notes the steps at which episodes end."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.steps = 0
        self.ends: list[int] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        del seed
        return self.env.reset(seed=7, options=options)

    def step(self, action: Any) -> Any:
        self.steps += 1
        seen, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            self.ends.append(self.steps)
        return seen, reward, terminated, truncated, info


def classic(name: str) -> Steady:
    """An environment of Gymnasium's, with a task of ours: left, then right."""
    env = gymnasium.make(name, max_episode_steps=60)
    task = in_order("left", "right")
    return Steady(qrmax.TaskWrapper(env, task, labels=CLASSIC[name], env_reward=False))


class Screen(gymnasium.Env[Any, int]):
    """A dot that goes right or left; `show` says what is seen of it, by its column and the time."""

    action_space = spaces.Discrete(2)

    def __init__(self, space: spaces.Box, show: Any, columns: int = 8) -> None:
        self.observation_space = space
        self.show = show
        self.columns = columns
        self.at, self.time = 0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.at, self.time = self.columns // 2, 0
        return self.show(self.at, self.time), {"at": self.at}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at = min(max(self.at + (1 if action else -1), 0), self.columns - 1)
        self.time += 1
        return self.show(self.at, self.time), 0.0, False, self.time == 40, {"at": self.at}


def screen(space: spaces.Box, show: Any) -> qrmax.TaskWrapper:
    """To the left end, then to the right one."""
    env = Screen(space, show)
    names = {0: {"left"}, env.columns - 1: {"right"}}
    return qrmax.TaskWrapper(
        env, in_order("left", "right"), labels=lambda _, info: names.get(info["at"], ())
    )


def picture(at: int, _: int) -> np.ndarray:
    """A light column on a dark screen, 4 x 8 in three colours."""
    shown = np.zeros((4, 8, 3), dtype=np.uint8)
    shown[:, at] = 255
    return shown


PICTURES = spaces.Box(0, 255, (4, 8, 3), np.uint8)


class InABox(ProblemEnv):
    """A tabular problem whose states are seen as points on a line, one in each unit of it."""

    def __init__(self, problem: qrmax.Problem) -> None:
        super().__init__(problem)
        parts: dict[str, spaces.Space[Any]] = {
            "state": spaces.Box(0.0, problem.n_states, (1,), np.float64),
            "task": self.observation_space["task"],
        }
        self.observation_space = spaces.Dict(parts)

    def _observation(self) -> Any:
        return {"state": np.array([self.state + 0.5]), "task": np.int64(self.task)}
