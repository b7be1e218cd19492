"""Environments of others with tasks of ours, and small ones that show one thing each."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import qrmax

TAXI = next(name for name in gymnasium.registry if name.startswith("Taxi-v"))  # v3 or v4


def in_order(*propositions: str, reward: float = 1.0, name: str = "in order") -> Any:
    """Make each of these true, one after the other; the last one pays."""
    states = ["start", *propositions]
    edges = [
        qrmax.Edge(states[i], p, p, reward if i == len(propositions) - 1 else 0.0)
        for i, p in enumerate(propositions)
    ]
    return qrmax.RewardMachine(edges, initial="start", success=[propositions[-1]], name=name)


def lake(reward: float = 5.0, **changes: Any) -> qrmax.TaskWrapper:
    """FrozenLake: to its upper right corner (state 3) and back; its own goal pays 1."""
    names = {0: {"home"}, 3: {"corner"}}
    env = gymnasium.make("FrozenLake-v1", **{"is_slippery": False, **changes})
    return qrmax.TaskWrapper(
        env, in_order("corner", "home", reward=reward), labels=lambda seen, _: names.get(seen, ())
    )


def cliff() -> qrmax.TaskWrapper:
    """CliffWalking: to the upper left corner, then to the upper right one; each step costs 1."""
    names = {0: {"left"}, 11: {"right"}}
    return qrmax.TaskWrapper(
        gymnasium.make("CliffWalking-v1", max_episode_steps=200),
        in_order("left", "right", reward=50.0),
        labels=lambda seen, _: names.get(int(seen), ()),
    )


def taxi() -> qrmax.TaskWrapper:
    """Taxi: let the passenger in, then take them to the place R, wherever they want to go."""

    def labels(seen: int, _: Any) -> set[str]:
        row, column, passenger, _ = env.unwrapped.decode(int(seen))
        aboard = passenger == 4
        return ({"aboard"} if aboard else set()) | ({"R"} if (row, column) == (0, 0) else set())

    env = gymnasium.make(TAXI)
    return qrmax.TaskWrapper(env, in_order("aboard", "R", reward=100.0), labels=labels)


class Loop(gymnasium.Env[int, int]):
    """One state, one action; each step pays, and ends the episode if so wished, in state `end`."""

    observation_space = spaces.Discrete(2)
    action_space = spaces.Discrete(1)

    def __init__(self, *, terminates: bool = False, pays: float = 1.0, end: int = 1) -> None:
        self.terminates = terminates
        self.pays = pays
        self.end = end

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        assert action == 0
        return self.end if self.terminates else 0, self.pays, self.terminates, False, {}


class Room(gymnasium.Env[Any, Any]):
    """A room of 3 x 3, seen as a `space` would have it; actions 1 to 4, noisy if so wished."""

    action_space = spaces.Discrete(4, start=1)
    moves = ((-1, 0), (0, 1), (1, 0), (0, -1))
    spaces_by_name: dict[str, spaces.Space[Any]] = {  # noqa: RUF012 (spaces are not changed)
        "discrete": spaces.Discrete(9, start=100),
        "multidiscrete": spaces.MultiDiscrete([3, 3]),
        "tuple": spaces.Tuple([spaces.Discrete(3), spaces.Discrete(3, start=-1)]),
        "dict": spaces.Dict({"y": spaces.Discrete(3), "x": spaces.MultiBinary(2)}),
    }

    def __init__(self, kind: str, noise: float = 0.0) -> None:
        self.kind = kind
        self.noise = noise
        self.observation_space = self.spaces_by_name[kind]
        self.at = (1, 1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.at = (1, 1)
        return self.seen(), {"at": self.at}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        if self.np_random.random() < self.noise:
            action = int(self.np_random.integers(1, 5))
        y, x = (min(2, max(0, p + d)) for p, d in zip(self.at, self.moves[action - 1], strict=True))
        self.at = y, x
        return self.seen(), 0.0, False, False, {"at": self.at}

    def seen(self) -> Any:
        y, x = self.at
        return {
            "discrete": np.int64(100 + 3 * y + x),
            "multidiscrete": np.array([y, x]),
            "tuple": (y, x - 1),
            "dict": {"y": y, "x": np.array([x // 2, x % 2], dtype=np.int8)},
        }[self.kind]


def room(kind: str = "discrete", noise: float = 0.0, limit: int = 50) -> qrmax.TaskWrapper:
    """From the middle of the room to its upper left corner, then to the lower right one."""
    names = {(0, 0): {"first"}, (2, 2): {"second"}}
    env = gymnasium.wrappers.TimeLimit(Room(kind, noise), limit)
    return qrmax.TaskWrapper(
        env, in_order("first", "second"), labels=lambda _, info: names.get(info["at"], ())
    )


def successes(run: qrmax.Run, env: Any, episodes: int, *, seed: int = 1000) -> int:
    """In how many episodes the greedy policy succeeds, played through the environment itself."""
    count = 0
    for episode in range(episodes):
        seen, info = env.reset(seed=seed + episode)
        over = False
        while not over:
            seen, _, ended, cut, info = env.step(run.act(seen, info))
            over = ended or cut
        count += info["success"]
    return count
