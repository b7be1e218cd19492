"""An episode as it was learned to be played, one moment after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Moment(NamedTuple):
    """What there is to see after a step, or after the reset."""

    action: int | None  # what was done; None after the reset
    observation: Any
    reward: float
    info: dict[str, Any]


def episode(
    env: Any, act: Callable[[Any, Any, int], int], seed: int | None, most_steps: int | None
) -> Iterator[Moment]:
    """Play an episode; `act` says what to do for an observation, its info and the stage."""
    observation, info = env.reset(seed=seed)
    yield Moment(None, observation, 0.0, info)
    stage, over = 0, False
    while not over and stage != most_steps:
        action = act(observation, info, stage)
        observation, reward, terminated, truncated, info = env.step(action)
        yield Moment(action, observation, float(reward), info)
        stage, over = stage + 1, terminated or truncated
