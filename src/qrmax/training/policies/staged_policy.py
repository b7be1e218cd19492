"""Policies that depend on the stage of the episode, `[h, s, q]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from qrmax.errors import ParameterError, shown
from qrmax.planning.arrays import IntArray
from qrmax.training.policies.policy import Encoded, Policy, View

if TYPE_CHECKING:
    from qrmax.training.domains.domain import Domain


class StagedPolicy(Policy):
    """A table `[s, q]` of actions for each stage."""

    def __init__(self, recommendation: Any) -> None:
        super().__init__(recommendation)
        self.stages = len(recommendation)

    @classmethod
    def takes(cls, recommendation: Any) -> bool:
        """Whether it is an array of three axes."""
        return isinstance(recommendation, np.ndarray) and recommendation.ndim == 3

    def action(self, view: View, q: int, stage: int = 0) -> int:
        """The action in a numbered state, at a stage."""
        stages = len(self.recommendation)
        if not 0 <= stage < stages:
            raise ParameterError(
                f"stage is {shown(stage)}; allowed: 0 to {stages - 1}, as the episodes it was "
                f"trained for have {stages} steps"
            )
        return int(self.recommendation[stage, view.state, q])

    @property
    def table(self) -> IntArray:
        """The table of stage 0."""
        table: IntArray = self.recommendation[0]
        return table

    def encoded(self, domain: Domain) -> Encoded:
        """The tables, indexed by numbered observations."""
        return Encoded(
            domain.encoder(), [domain.by_observation(table) for table in self.recommendation]
        )
