"""Stationary policies of numbered states, `[s, q]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from qrmax.planning.arrays import IntArray
from qrmax.training.policies.policy import Encoded, Policy, View

if TYPE_CHECKING:
    from qrmax.training.domains.domain import Domain


class TablePolicy(Policy):
    """A table `[s, q]` of actions."""

    @classmethod
    def takes(cls, recommendation: Any) -> bool:
        """Whether it is an array of two axes."""
        return isinstance(recommendation, np.ndarray) and recommendation.ndim == 2

    def action(self, view: View, q: int, stage: int = 0) -> int:  # noqa: ARG002
        """The action in a numbered state."""
        return int(self.recommendation[view.state, q])

    @property
    def table(self) -> IntArray:
        """The table itself."""
        table: IntArray = self.recommendation
        return table

    def encoded(self, domain: Domain) -> Encoded:
        """The table, indexed by numbered observations."""
        return Encoded(domain.encoder(), [domain.by_observation(self.table)])
