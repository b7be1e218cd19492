"""Thresholds that a policy is to reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Goal(NamedTuple):
    """Thresholds on the success rate and on mean returns of an episode; None for no threshold."""

    success: float | None = None
    discounted_return: float | None = None
    episode_return: float | None = None

    def is_met(self, means: Goal) -> bool:
        """Whether a policy with these means reaches all thresholds."""
        return all(
            least is None or (mean is not None and mean >= least)
            for least, mean in zip(self, means, strict=True)
        )

    def is_out_of_reach(self, successes: Sequence[bool], episodes: int) -> bool:
        """Whether too many episodes have failed for `episodes` in all to reach the success rate."""
        if self.success is None:
            return False
        return len(successes) - sum(successes) > (1.0 - self.success) * episodes
