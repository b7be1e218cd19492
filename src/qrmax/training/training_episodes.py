"""Evaluation by the episodes of training, in which the agent explores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qrmax.seeding import Stream
from qrmax.training.environment import EnvPlayer
from qrmax.training.evaluator import Evaluator
from qrmax.training.point import Point


class TrainingEpisodes(Evaluator):
    """A summary of the episodes of training that ended since the last look."""

    success_word = "recent success"
    caveat = (
        "\nSuccess is that of the episodes of training, in which the agent explores; "
        "run.watch() plays the greedy policy."
    )

    def __init__(self, played: EnvPlayer, gamma: float, horizon: int | None) -> None:
        self.played = played
        self.gamma = gamma
        self.horizon = horizon

    def success(
        self,
        policy: Any,  # noqa: ARG002
        episodes: int,  # noqa: ARG002
        chance: Stream,  # noqa: ARG002
        at_least: float = 0.0,  # noqa: ARG002
    ) -> float:
        """The share of episodes that succeeded; 0 if none has ended."""
        ended = self.played.finished
        return sum(episode.success for episode in ended) / len(ended) if ended else 0.0

    def point(self, step: int, policy: Any, chance: Stream) -> Point | None:  # noqa: ARG002
        """The mean return and success of the episodes since the last row."""
        ended, self.played.finished = self.played.finished, []
        if not ended:
            return None
        return Point(
            step,
            start_value=sum(episode.value for episode in ended) / len(ended),
            gap=None,
            success=sum(episode.success for episode in ended) / len(ended),
            nominal_length=None,
        )

    def judge(self, policy: Any, seed: int) -> None:
        """Nothing: the greedy policy was not played."""

    def failure(self, policy: Any, seed: int, curve: Sequence[Point]) -> str:  # noqa: ARG002
        """In words, that no episode of training succeeded; empty if one did."""
        since = (episode.success for episode in self.played.finished)
        if any([*(point.success for point in curve), *since]):
            return ""
        return f"not one of the {self.played.episodes:,} episodes of training succeeded"
