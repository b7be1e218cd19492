"""Evaluation by training episodes, in which the agent explores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qrmax.seeding import Stream
from qrmax.training.environment import EnvPlayer
from qrmax.training.evaluator import Evaluator
from qrmax.training.goal import Goal
from qrmax.training.point import Point


class TrainingEpisodes(Evaluator):
    """A summary of the training episodes that ended since the last evaluation."""

    success_word = "recent success"
    caveat = (
        "\nSuccess is that of training episodes, in which the agent explores; "
        "run.watch() rolls out the greedy policy."
    )

    def __init__(self, played: EnvPlayer, gamma: float, horizon: int | None) -> None:
        self.played = played
        self.gamma = gamma
        self.horizon = horizon
        self._succeeded = False  # whether an episode that is in no row did

    def reaches(self, policy: Any, goal: Goal, episodes: int, chance: Stream) -> bool:  # noqa: ARG002
        """Whether the episodes since the last row reach a goal; False if none has ended."""
        ended = self.played.finished
        if not ended:
            return False
        columns = ([e.success for e in ended], [e.value for e in ended], [e.total for e in ended])
        return goal.is_met(Goal(*(sum(column) / len(ended) for column in columns)))

    def note_successes(self) -> None:
        """Discard the episodes since the last row, except for whether one succeeded."""
        self._succeeded |= any(episode.success for episode in self.played.finished)
        self.played.finished = []

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
            episode_return=sum(episode.total for episode in ended) / len(ended),
        )

    def judge(self, policy: Any, seed: int) -> None:
        """Nothing: the greedy policy was not rolled out."""

    def failure(self, policy: Any, seed: int, curve: Sequence[Point]) -> str:  # noqa: ARG002
        """A message if no training episode succeeded; empty if one did."""
        self.note_successes()
        if self._succeeded or any(point.success for point in curve):
            return ""
        return f"none of the {self.played.episodes:,} training episodes succeeded"
