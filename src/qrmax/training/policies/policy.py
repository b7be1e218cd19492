"""The protocol of learned policies: acting, sampling episodes and exporting.

An agent recommends a policy in a form of its own. A `Policy` wraps that form in the interface that
training, evaluation and export need. A further kind of policy is a further file like its
neighbours, and an entry in `policy_kinds.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qrmax.errors import ParameterError
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.sampling import sample_episodes
from qrmax.seeding import Stream

if TYPE_CHECKING:
    from qrmax.training.domains.domain import Domain

SAMPLED_AT_ONCE = 200
"""Episodes per batch of a policy that acts in many episodes at once, at hardly any more cost."""


class View(NamedTuple):
    """A world state as the input of a policy."""

    state: Any  # its number, or an observation
    label: int  # the number of its label


class Encoded(NamedTuple):
    """A policy as tables, and the map from observations to their rows."""

    encoder: dict[str, Any]  # as `policy_reader.py` reads it
    tables: list[IntArray]  # [stage][row, q]


class Policy(ABC):
    """A learned policy."""

    at_once: int = SAMPLED_AT_ONCE  # episodes per batch of an evaluation
    stages: int | None = None  # their number; None for a stationary policy
    reads_labels: bool = False  # whether the label is part of a state

    def __init__(self, recommendation: Any) -> None:
        self.recommendation = recommendation

    @classmethod
    @abstractmethod
    def takes(cls, recommendation: Any) -> bool:
        """Whether an agent's recommendation is of this kind."""

    @abstractmethod
    def action(self, view: View, q: int, stage: int = 0) -> int:
        """The greedy action."""

    @property
    def table(self) -> IntArray:
        """The actions as a table `[s, q]`; those of stage 0 if the policy has stages."""
        raise ParameterError(
            "this policy is not a table: run.act(observation) gives its action for an observation"
        )

    def encoded(self, domain: Domain) -> Encoded:  # noqa: ARG002
        """The tables and the encoder of an exported policy."""
        raise ParameterError(
            "this policy is not a table, so it cannot be exported; run.save(...) saves it, and "
            "qrmax.load(...).act(observation, info) acts by it; an agent whose policy can be "
            "exported is 'bucket-qrmax'"
        )

    def sample(
        self, problem: ContinuousProblem, episodes: int, chance: Stream, gamma: float
    ) -> FloatArray:
        """Sampled episodes `[episode, 3]`: the return of each, its success, its length."""
        chance.random()  # otherwise the next sample would be the same
        rng = chance.apart("episodes")
        played = sample_episodes(problem, self.recommendation, episodes, rng, gamma)
        return np.stack([*played], axis=1).astype(np.float64)
