"""Roll out a policy, yielding each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class RolloutStep(NamedTuple):
    """One step of a rollout; the first one is the reset."""

    action: int | None  # that led here; None after the reset
    observation: Any
    reward: float
    info: dict[str, Any]


def episode(
    env: Any, act: Callable[[Any, Any, int], int], seed: int | None, most_steps: int | None
) -> Iterator[RolloutStep]:
    """Roll out one episode; `act` maps an observation, its info and the stage to an action."""
    observation, info = env.reset(seed=seed)
    yield RolloutStep(None, observation, 0.0, info)
    stage, over = 0, False
    while not over and stage != most_steps:
        action = act(observation, info, stage)
        observation, reward, terminated, truncated, info = env.step(action)
        yield RolloutStep(action, observation, float(reward), info)
        stage, over = stage + 1, terminated or truncated
