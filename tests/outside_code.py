"""Code of a user's own, as it lies beside a study: an agent, an environment, labels, a problem."""

from __future__ import annotations

from pathlib import Path

SARSA = '''
"""Sarsa on state-action pairs."""

from dataclasses import dataclass

import numpy as np

import qrmax
from qrmax.agents.base import Agent, AgentConfig
from qrmax.errors import check_range


@dataclass(frozen=True, kw_only=True, slots=True)
class SarsaConfig(AgentConfig):
    alpha: float = 0.1
    epsilon: float = 0.1

    def __post_init__(self):
        AgentConfig.__post_init__(self)
        check_range("alpha", self.alpha, above=0.0, at_most=1.0)


class Sarsa(Agent):
    name = "sarsa"
    Config = SarsaConfig

    def __init__(self, *given):
        super().__init__(*given)
        self.values = np.ones(self.sizes)

    def act(self, s, q):
        if self.rng.random() < self.config.epsilon:
            return int(self.rng.random() * self.sizes.actions)
        return int(self.values[s, q].argmax())

    def update(self, s, q, a, step):
        ahead = 0.0 if step.terminated else self.values[step.s, step.q].max()
        target = step.r_env + step.r_task + self.config.gamma * ahead
        self.values[s, q, a] += self.config.alpha * (target - self.values[s, q, a])

    def recommendation(self):
        return self.values.argmax(axis=2)

    def snapshot(self):
        return {"values": self.values}

    def restore(self, arrays):
        self.values[...] = arrays["values"]
'''


def write_module(folder: Path, name: str, text: str) -> Path:
    """Write a module; the name is to be one that no other test uses, as modules stay imported."""
    path = folder / f"{name}.py"
    path.write_text(text)
    return path
