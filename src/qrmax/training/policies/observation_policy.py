"""Policies that compute an action from an observation, such as those of networks."""

from __future__ import annotations

from typing import Any

from qrmax.training.policies.policy import Policy, View


class ObservationPolicy(Policy):
    """Policy with a method `action(observation, label, q)`, such as a network.

    On a continuous problem it also needs `actions(observations, q)`, so that many episodes can be
    sampled at once: `at_once` of them, if it has such an attribute.
    """

    def __init__(self, recommendation: Any) -> None:
        super().__init__(recommendation)
        self.at_once = int(getattr(recommendation, "at_once", self.at_once))

    @classmethod
    def takes(cls, recommendation: Any) -> bool:
        """Whether it has such a method."""
        return callable(getattr(recommendation, "action", None))

    def action(self, view: View, q: int, stage: int = 0) -> int:  # noqa: ARG002
        """The action for an observation."""
        return int(self.recommendation.action(view.state, view.label, q))
