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


CLIFF = '''
"""CliffWalking with labels, a wrapper, and problems made in Python."""

import gymnasium

import qrmax


class Falls(gymnasium.Wrapper):
    """Says in `info` whether a step led over the cliff, and pays nothing."""

    def step(self, action):
        seen, reward, ended, cut, info = self.env.step(action)
        return seen, 0.0, ended, cut, {**info, "fell": reward <= -100}


def labels(seen, info):
    return {"left": seen == 24, "goal": seen == 47, "fall": bool(info.get("fell"))}


def make_env(length=4):
    return gymnasium.make("FrozenLake-v1", is_slippery=False, max_episode_steps=10 * length)


def corner(seen, info):
    return {"goal"} if seen == 15 else ()


def no_text(seen, info):
    return [3]


def make_problem(exp=1):
    return qrmax.make(f"office/map1/exp{exp}")


def make_mdp():
    return qrmax.TabularMDP([[[1]], [[0]]], [[[1.0]], [[1.0]]])


def nothing():
    return None


not_a_function = 3


def no_wrapper(env):
    return 3


def raises(**options):
    raise RuntimeError("no lake today")
'''

CLIFF_STUDY = """
agents = ["qrm", "q-learning"]
seeds = 2
max_steps = 600
evaluate_every = 200

[[problems]]
label = "cliff"
env = "CliffWalking-v1"
options = {{ max_episode_steps = 60 }}
wrappers = ["{module}:Falls"]
task = "F(left & F goal) & G !fall"
labels = "{module}:labels"
"""
