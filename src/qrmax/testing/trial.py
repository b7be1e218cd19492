"""An agent at work on a small problem: played in Python or compiled, copied and compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from qrmax.agents.base import Agent, AnySimulator, Sizes, Tabular, Transition
from qrmax.agents.outside import restore_agent, saved_arrays
from qrmax.agents.registry import AgentLike, agent_class, make_agent, make_config
from qrmax.problems.continuous_problem import ContinuousProblem, PlaneSimulator
from qrmax.problems.problem import Problem
from qrmax.problems.simulator import Simulator
from qrmax.seeding import stream, stream_at


@dataclass(frozen=True)
class Trial:
    """An agent and the simulator that it plays."""

    agent: Agent
    simulator: AnySimulator

    def play(self, steps: int) -> Trial:
        """Take steps as the Python methods of the agent define them."""
        for _ in range(steps):
            self.step()
        return self

    def step(self, a: int | None = None) -> Transition:
        """Take one step, with an action of the agent's unless one is given; learn from it."""
        agent, simulator = self.agent, self.simulator
        if simulator.over:
            simulator.reset()
            agent.begin_episode(simulator.s, simulator.q)
        s, q = simulator.s, simulator.q
        chosen = agent.act(s, q) if a is None else a
        transition = Transition(s, q, chosen, simulator.step(chosen))
        self.learn(transition)
        return transition

    def learn(self, transition: Transition) -> None:
        """Learn from a transition; the agent may then end the episode."""
        self.agent.update(*transition)
        if self.agent.episode_over and not self.simulator.over:
            self.simulator.cut()

    def rush(self, steps: int, chunks: Iterable[int] = (10_000,)) -> Trial:
        """Take steps compiled, at most as many at a time as `chunks` says."""
        assert isinstance(self.agent, Tabular)  # others have no compiled loop
        sizes = cycle(chunks)
        while steps > 0:
            taken, transition = self.agent.fast_forward(self.simulator, min(steps, next(sizes)))
            assert 0 <= taken <= steps  # 0: an episode has begun in a new bucket
            steps -= taken
            if transition is not None:
                self.learn(transition)
        return self

    def state(self) -> dict[str, Any]:
        """Everything that is learned and drawn, in a form that compares bit for bit."""
        arrays = saved_arrays(self.agent)
        simulator: Any = self.simulator
        return {
            **{name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()},
            "simulator": simulator.state.tolist(),
            "world": simulator.rng.position(),
            "agent": self.agent.rng.position(),
        }

    def resumed(self, fresh: Agent) -> Trial:
        """The same trial with another agent, which takes over a snapshot of this one."""
        arrays = saved_arrays(self.agent)
        fresh.make_room_for(arrays)
        restore_agent(fresh, arrays)
        fresh.rng = stream_at(self.agent.rng.position())
        simulator: Any = self.simulator
        other = simulator_of(simulator.problem, fresh, stream_at(simulator.rng.position()))
        other.state[:] = simulator.state
        if isinstance(other, PlaneSimulator):
            other.position[:] = simulator.position
            other.observed[:] = simulator.observed
            if simulator.episodes:
                other.look()
        return Trial(fresh, other)


def simulator_of(problem: Problem | ContinuousProblem, agent: Agent, rng: Any) -> AnySimulator:
    """A simulator of a problem, for an agent."""
    if isinstance(problem, Problem):
        return Simulator(problem, rng)
    return PlaneSimulator(problem, rng, agent.perceive)


def make_trial(
    agent: AgentLike,
    problem: Problem | ContinuousProblem,
    *,
    seed: int = 7,
    settings: Mapping[str, Any] | None = None,
) -> Trial:
    """A fresh agent and a fresh simulator of a problem."""
    kind = agent_class(agent)
    states, observations = 0, None
    if isinstance(problem, Problem):
        states = problem.n_states
    else:
        observations = problem.observations
    sizes = Sizes(states, problem.n_task_states, problem.n_actions)
    config, rng = make_config(agent, settings or {}), stream(seed, "agent")
    coordinates = problem.coordinates if isinstance(problem, Problem) else None
    made = make_agent(kind, sizes, config, rng, problem, observations, coordinates)
    return Trial(made, simulator_of(problem, made, stream(seed, "world")))
