"""Agents at work, for the tests of all of them: made by name, played in Python or compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from amounts import PLAIN
from qrmax import Problem
from qrmax.agents import published
from qrmax.agents.model_based import ModelBased
from qrmax.agents.registry import agent_class, agent_names, default_settings
from qrmax.agents.revising.revising_agent import RevisingAgent
from qrmax.testing.trial import Trial, make_trial


class Variant(NamedTuple):
    """An agent by name."""

    name: str

    @property
    def knows_machine(self) -> bool:
        return agent_class(self.name).knows_machine

    @property
    def plans(self) -> bool:
        return issubclass(agent_class(self.name), ModelBased)

    @property
    def revises(self) -> bool:
        return issubclass(agent_class(self.name), RevisingAgent)

    @property
    def has_horizon(self) -> bool:
        return agent_class(self.name).has_horizon

    @property
    def published(self) -> bool:
        return agent_class(self.name).__module__ == published.__name__

    def settings(self, **given: Any) -> dict[str, Any]:
        """Those of the given settings that this agent has."""
        known = default_settings(self.name)
        return {name: value for name, value in given.items() if name in known}

    def __str__(self) -> str:
        return self.name


KERNEL_USERS = [
    *("q-learning", "qrm", "rmax", "rmax-rm-published", "qrmax-published", "qrmax-rm"),
    *(
        "ucbvi-b",
        "ucbvi-b-rm",
        "psrl-rm",
        "opsrl",
        "ucbvi-bf",
        "ucbvi-prm",
        "psrl-exact",
        "ucbvi-b-published",
    ),
    *("qr-eb", "qr-effects", "qr-psrl-rm", "mbie", "qr-mbie-eb", "ucrl2-rm-b", "bucket-qrmax"),
    "effects-qrmax-rm",
]
"""Agents that use all compiled code between them: those to play without the compiler."""

KIN = ("qr-mbie", "qr-mbie-eb-rm", "mbie-eb", "ucrl2-rm-l")
"""Agents that differ from others by a fact alone: the contract is checked of them, and no more."""

NUMBERED = [
    name
    for name in (KERNEL_USERS if PLAIN else agent_names())
    if not agent_class(name).perceives and name not in KIN
]
"""The agents to which a state is a number: those that can play a tabular problem."""

VARIANTS = [Variant(name) for name in NUMBERED]
PLANNING = [variant for variant in VARIANTS if variant.plans]


def trial(variant: Variant | str, problem: Problem, *, seed: int = 7, **settings: Any) -> Trial:
    """A fresh agent, told those of the settings that it has, in a fresh world."""
    variant = Variant(variant) if isinstance(variant, str) else variant
    told = {"gamma": 0.9, "horizon": 20} | ({"samples": 1} if PLAIN else {}) | settings
    return make_trial(variant.name, problem, seed=seed, settings=variant.settings(**told))


def live_task_states(problem: Problem) -> list[int]:
    return np.flatnonzero(~problem.table.terminal).tolist()
