"""Agents at work, for the tests of all of them: made by name, played in Python or compiled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from qrmax import Problem
from qrmax.agents.base import Agent, Lesson, Sizes
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
    """An agent by name, with the paper's rules or those of the published code."""

    name: str
    published: bool = False

    @property
    def knows_machine(self) -> bool:
        return agent_class(self.name).knows_machine

    @property
    def plans(self) -> bool:
        return "t_env" in default_settings(self.name)

    @property
    def has_horizon(self) -> bool:
        return "horizon" in default_settings(self.name)

    def settings(self, **given: Any) -> dict[str, Any]:
        """Those of the given settings that this agent has."""
        known = default_settings(self.name)
        rules = {"published": True} if self.published else {}
        return {name: value for name, value in given.items() if name in known} | rules

    def __str__(self) -> str:
        return f"{self.name}{'-published' * self.published}"


NUMBERED = [name for name in agent_names() if not agent_class(name).perceives]
"""The agents to which a state is a number: those that can play a tabular problem."""

VARIANTS = [
    Variant(name, published)
    for name in NUMBERED
    for published in (False, True)
    if not published or "published" in default_settings(name)
]
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
                agent.begin(simulator.s, simulator.q)
            s, q = simulator.s, simulator.q
            a = agent.act(s, q)
            self.learn(Lesson(s, q, a, simulator.step(a)))
        return self

    def learn(self, lesson: Lesson) -> None:
        """Learn from a step; the agent may then end the episode."""
        self.agent.update(*lesson)
        if self.agent.over and not self.simulator.over:
            self.simulator.cut()

    def rush(self, steps: int, chunks: Iterable[int] = (10_000,)) -> Trial:
        """Take steps compiled, up to so many at a time."""
        sizes = cycle(chunks)
        while steps > 0:
            taken, lesson = self.agent.fast_forward(self.simulator, min(steps, next(sizes)))
            assert 1 <= taken <= steps
            steps -= taken
            if lesson is not None:
                self.learn(lesson)
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
