"""The protocol of evaluators: policy evaluation, exact or sampled, beside the optimum if known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from qrmax.planning.policy_evaluation import Evaluation
from qrmax.seeding import Stream
from qrmax.training.goal import Goal
from qrmax.training.point import Point

NEXT_TO_NOTHING = 1e-3  # of the optimal success rate, which slips alone may reach


class Best(NamedTuple):
    """The optimal policy in numbers."""

    start_value: float
    success: float

    def lacking(self, success: float) -> str:
        """A message if a policy does not succeed and the optimal one does; else empty."""
        if success >= NEXT_TO_NOTHING or success >= NEXT_TO_NOTHING * self.success:
            return ""
        share = 100 * self.success
        return f"its policy does not succeed, and the optimal one does in {share:.1f} % of episodes"


class Evaluator(ABC):
    """Evaluates the policies of one problem or environment."""

    success_word: str = "success"  # for the line of progress
    caveat: str = ""  # about its numbers, for a warning after a run

    problem: Any = None  # that of the runs; None for an environment
    gamma: float
    horizon: int | None = None

    @property
    def optimum(self) -> Best | None:
        """The optimal policy in numbers; None if it is unknown."""
        return None

    @abstractmethod
    def reaches(self, policy: Any, goal: Goal, episodes: int, chance: Stream) -> bool:
        """Whether a policy reaches a goal, exactly or in `episodes` sampled episodes.

        Sampling may end early once the goal is out of reach.
        """

    @abstractmethod
    def point(self, step: int, policy: Any, chance: Stream) -> Point | None:
        """The row of a learning curve at this step; None if there is nothing to report."""

    def gap(self, policy: Any) -> float | None:  # noqa: ARG002
        """The exact gap to the optimum, relative to it; None if it is not exact."""
        return None

    @abstractmethod
    def judge(self, policy: Any, seed: int) -> Evaluation | None:
        """The final evaluation of a run with this seed."""

    def final_point(self, step: int, policy: Any, seed: int) -> Point | None:  # noqa: ARG002
        """The final evaluation as a row of the curve; None if it is not by rollouts."""
        return None

    def close(self) -> None:  # noqa: B027 (most have nothing to close)
        """Close an environment that was made for evaluations; the next one makes another."""

    def stationary(self, policy: Any) -> Evaluation | None:  # noqa: ARG002
        """The evaluation of stage 0 alone of a policy with stages; None if it has none."""
        return None

    @abstractmethod
    def failure(self, policy: Any, seed: int, curve: Sequence[Point]) -> str:
        """A message if the policy does not succeed; empty if it does."""
