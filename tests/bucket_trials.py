"""Agents with buckets at work on planes, for their tests."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from typing import Any

from learners import Trial
from qrmax import Edge, RewardMachine, make
from qrmax.agents.base import Sizes
from qrmax.agents.registry import make_agent, make_config
from qrmax.problems.continuous_problem import ContinuousProblem, PlaneSimulator
from qrmax.seeding import stream
from qrmax.source import Source
from qrmax.worlds.grid import parse_map

BUCKET_AGENTS = ["bucket-qrmax", "bucket-qrmax-rm", "bucket-rmax"]


class PlaneTrial(Trial):
    """An agent and the plane that it plays in."""

    def rush(self, steps: int, chunks: Iterable[int] = (10_000,)) -> PlaneTrial:
        """Take steps compiled; a stretch has none where an episode begins in a new bucket."""
        sizes = cycle(chunks)
        stuck = 0
        while steps > 0:
            taken, lesson = self.agent.fast_forward(self.simulator, min(steps, next(sizes)))
            stuck = 0 if taken else stuck + 1
            assert 0 <= taken <= steps
            assert stuck < 2
            steps -= taken
            if lesson is not None:
                self.learn(lesson)
        return self

    def state(self) -> dict[str, Any]:
        """Everything there is, the position included."""
        return {**super().state(), "position": self.simulator.position.tolist()}


def bucket_trial(
    name: str, problem: ContinuousProblem, *, seed: int = 7, **settings: Any
) -> PlaneTrial:
    """A fresh agent, told those of the settings that it has, in a fresh world."""
    known = make_config(name, {})
    told = {key: value for key, value in settings.items() if hasattr(known, key)}
    agent = make_agent(
        name,
        Sizes(0, problem.n_task_states, problem.n_actions),
        make_config(name, told),
        stream(seed, "agent"),
        problem,
        problem.observations,
    )
    return PlaneTrial(agent, PlaneSimulator(problem, stream(seed, "world"), agent.perceive))


def chancy(*names: str, chance: float = 0.5) -> RewardMachine:
    """Each of these in turn, noticed with some chance only; each pays, the last one most."""
    edges = [
        Edge(f"{i}", name, f"{i + 1}", 1.0 if name == names[-1] else 0.25, probability=chance)
        for i, name in enumerate(names)
    ]
    return RewardMachine(edges, initial="0", success=[f"{len(names)}"], name="chancy")


def side_trip() -> ContinuousProblem:
    """A line with the start between B and A, which is to be visited first."""
    text = "start: 9,0\n\n. . B . . . . . . . . . . . . . A . . .\n"
    rules = {"step": 0.08, "noise": 0.03, "max_episode_steps": 60}
    return make("continuous/line/ab", map=parse_map(Source("side trip", text)), **rules)
