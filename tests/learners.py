"""Agents at work, for the tests of all of them: made by name, played in Python or compiled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from qrmax import Problem
from qrmax.agents import published
from qrmax.agents.base import Agent, Sizes, Transition
from qrmax.agents.model_based import ModelBased
from qrmax.agents.registry import (
    agent_class,
    agent_names,
    default_settings,
    make_agent,
    make_config,
)
from qrmax.problems.simulator import Simulator
from qrmax.seeding import stream


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


NUMBERED = [name for name in agent_names() if not agent_class(name).perceives]
"""The agents to which a state is a number: those that can play a tabular problem."""

VARIANTS = [Variant(name) for name in NUMBERED]
PLANNING = [variant for variant in VARIANTS if variant.plans]


@dataclass(frozen=True)
class Trial:
    """An agent and the world that it plays."""

    agent: Agent
    simulator: Simulator

    def play(self, steps: int) -> Trial:
        """Take steps as the definition of the agent says."""
        agent, simulator = self.agent, self.simulator
        for _ in range(steps):
            if simulator.over:
                simulator.reset()
                agent.begin_episode(simulator.s, simulator.q)
            s, q = simulator.s, simulator.q
            a = agent.act(s, q)
            self.learn(Transition(s, q, a, simulator.step(a)))
        return self

    def learn(self, transition: Transition) -> None:
        """Learn from a step; the agent may then end the episode."""
        self.agent.update(*transition)
        if self.agent.episode_over and not self.simulator.over:
            self.simulator.cut()

    def rush(self, steps: int, chunks: Iterable[int] = (10_000,)) -> Trial:
        """Take steps compiled, up to so many at a time."""
        sizes = cycle(chunks)
        while steps > 0:
            taken, transition = self.agent.fast_forward(self.simulator, min(steps, next(sizes)))
            assert 1 <= taken <= steps
            steps -= taken
            if transition is not None:
                self.learn(transition)
        return self

    def state(self) -> dict[str, Any]:
        """Everything there is, in a form that compares bit for bit."""
        arrays = self.agent.snapshot()
        return {
            **{name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()},
            "simulator": self.simulator.state.tolist(),
            "world": self.simulator.rng.position(),
            "agent": self.agent.rng.position(),
        }


def trial(variant: Variant | str, problem: Problem, *, seed: int = 7, **settings: Any) -> Trial:
    """A fresh agent, told those of the settings that it has, in a fresh world."""
    variant = Variant(variant) if isinstance(variant, str) else variant
    told = {"gamma": 0.9, "horizon": 20} | settings
    config = make_config(variant.name, variant.settings(**told))
    sizes = Sizes(problem.n_states, problem.n_task_states, problem.n_actions)
    agent = make_agent(variant.name, sizes, config, stream(seed, "agent"), problem)
    return Trial(agent, Simulator(problem, stream(seed, "world")))


def live_task_states(problem: Problem) -> list[int]:
    return np.flatnonzero(~problem.table.terminal).tolist()
