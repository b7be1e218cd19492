"""The kinds of domains."""

from __future__ import annotations

from typing import Any

from qrmax.errors import CheckpointError
from qrmax.seeding import Chance
from qrmax.training.domains.continuous_domain import ContinuousDomain
from qrmax.training.domains.domain import Domain, Learner
from qrmax.training.domains.environment_domain import EnvironmentDomain
from qrmax.training.domains.tabular_domain import TabularDomain
from qrmax.training.environment import no_environment

KINDS: tuple[type[Domain], ...] = (TabularDomain, ContinuousDomain, EnvironmentDomain)


def domain_kind(thing: Any) -> type[Domain]:
    """The kind of domain that a problem or an environment is."""
    for kind in KINDS:
        if kind.takes(thing):
            return kind
    raise no_environment(thing)


def is_problem(thing: Any) -> bool:
    """Whether this is a problem, whose model is known, and not an environment."""
    return any(kind.simulated and kind.takes(thing) for kind in KINDS)


def domain_of(thing: Any, learner: Learner, chance: Chance) -> Domain:
    """The domain of a problem or an environment, for a learner."""
    return domain_kind(thing).pose(thing, learner, chance)


def stored_kind(name: str) -> type[Domain]:
    """The kind of domain that a file names."""
    for kind in KINDS:
        if kind.kind == name:
            return kind
    known = ", ".join(kind.kind for kind in KINDS)
    raise CheckpointError(f"holds a domain of kind {name!r}; known: {known}")
