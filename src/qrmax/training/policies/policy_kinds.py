"""The kinds of policies."""

from __future__ import annotations

from typing import Any

from qrmax.errors import ParameterError
from qrmax.training.policies.bucket_table_policy import BucketTablePolicy
from qrmax.training.policies.observation_policy import ObservationPolicy
from qrmax.training.policies.policy import Policy
from qrmax.training.policies.staged_policy import StagedPolicy
from qrmax.training.policies.table_policy import TablePolicy

KINDS: tuple[type[Policy], ...] = (TablePolicy, StagedPolicy, BucketTablePolicy, ObservationPolicy)
"""A recommendation is of the first kind whose `takes` is true."""


def as_policy(recommendation: Any) -> Policy:
    """An agent's recommendation as a `Policy`."""
    for kind in KINDS:
        if kind.takes(recommendation):
            return kind(recommendation)
    raise ParameterError(
        f"a policy is a {type(recommendation).__name__}; needed: an array [s, q] or [h, s, q], or "
        "an object with a method action(observation, label, q)"
    )
