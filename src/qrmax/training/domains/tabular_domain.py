"""Tabular problems as domains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

import numpy as np

from qrmax.agents.base import Agent, Sizes
from qrmax.machines.reward_machine import RewardMachine
from qrmax.planning.arrays import IntArray
from qrmax.planning.auto_horizon import auto_horizon
from qrmax.planning.policy_evaluation import Evaluation, evaluate
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.problem import Problem
from qrmax.problems.simulator import Simulator
from qrmax.seeding import Chance, Stream
from qrmax.training.domains.domain import Actor, Arrays, Learner
from qrmax.training.domains.simulated_domain import SimulatedDomain, stored_machine, stored_map
from qrmax.training.exact_evaluator import ExactEvaluator
from qrmax.training.policies.policy import Policy, View

MDP_ARRAYS = ("succ", "prob", "reward", "terminal", "start")


class TabularDomain(SimulatedDomain):
    """A `Problem`, evaluated exactly."""

    kind = "tabular"
    evaluates_exactly = True
    env_class = "ProblemEnv"

    def __init__(self, problem: Problem) -> None:
        self.task = self.posed = problem
        self.sizes = Sizes(problem.n_states, problem.n_task_states, problem.n_actions)
        self.coordinates = problem.coordinates

    @classmethod
    def takes(cls, thing: Any) -> TypeGuard[Problem]:
        """Whether it is a `Problem`."""
        return isinstance(thing, Problem)

    @classmethod
    def pose(cls, thing: Any, learner: Learner, chance: Chance) -> TabularDomain:  # noqa: ARG003
        """The domain of a problem."""
        return cls(thing)

    @classmethod
    def restore(
        cls,
        described: Mapping[str, Any],
        arrays: Arrays,
        learner: Learner,  # noqa: ARG003
        chance: Chance,  # noqa: ARG003
        env: Any,  # noqa: ARG003
    ) -> TabularDomain:
        """The domain of a stored problem."""
        mdp = TabularMDP(
            *(arrays[name] for name in ("succ", "prob", "reward")),
            **{name: arrays[name] for name in ("terminal", "start")},
            coordinates=arrays.get("coordinates"),
        )
        return cls(
            Problem(
                mdp,
                stored_machine(described),
                described["labels"],
                arrays["label"],
                max_episode_steps=described["max_episode_steps"],
                name=described["name"],
                world=stored_map(described, len(arrays["succ"])),
                origin=arrays.get("origin"),
            )
        )

    def arrays(self) -> Arrays:
        """The MDP, the labelling function and, if there are any, coordinates and origins.

        States that were split by labels have origins.
        """
        problem = self.posed
        mdp = {name: getattr(problem.mdp, name) for name in MDP_ARRAYS}
        found = {"coordinates": problem.coordinates, "origin": problem.origin}
        optional = {name: array for name, array in found.items() if array is not None}
        return {"label": problem.label, **mdp, **optional}

    @classmethod
    def default_rule(cls, machine: RewardMachine) -> str:  # noqa: ARG003
        """A value within 5 % of the optimum."""
        return "exact"

    def auto_horizon(self, gamma: float) -> int:
        """The mean length of the optimal policy's successful episodes, plus a margin."""
        return auto_horizon(self.posed, gamma)

    def player(self, agent: Agent, chance: Stream) -> Simulator:  # noqa: ARG002
        """A simulator of the problem."""
        return Simulator(self.posed, chance)

    def evaluator(
        self,
        gamma: float,
        horizon: int | None,
        every: int = 1000,  # noqa: ARG002
    ) -> ExactEvaluator:
        """Exact policy evaluation."""
        return ExactEvaluator(self.posed, gamma, horizon)

    @classmethod
    def evaluate_exactly(
        cls, thing: Any, policy: Any, gamma: float, max_episode_steps: Any
    ) -> Evaluation:
        """Exact policy evaluation."""
        return evaluate(thing, policy, gamma, max_episode_steps)

    @property
    def most_states(self) -> int:
        """The number of states."""
        return self.sizes.states

    def view(self, policy: Policy, observation: Any, info: Any) -> View:  # noqa: ARG002
        """The number of a state; if states were split by labels, the label determines which."""
        state = self.posed.state_of(int(observation["state"]), info)
        return View(state, int(self.posed.label[state]))

    def actor(self, env: Any, policy: Policy) -> Actor:
        """The policy; in an environment made of a problem, observations are numbers of states."""
        if not self.takes(getattr(getattr(env, "unwrapped", None), "problem", None)):
            return super().actor(env, policy)
        label = self.posed.label
        return lambda seen, _, stage: policy.action(
            View(int(seen["state"]), int(label[int(seen["state"])])), int(seen["task"]), stage
        )

    def second_instance(self) -> Any:
        """The problem as an environment; the plain one of a shaped task."""
        from qrmax.worlds.gymnasium import ProblemEnv  # loads gymnasium

        return ProblemEnv(self.posed.unshaped)

    def encoder(self) -> dict[str, Any]:
        """The observed number, with the label if states were split by labels."""
        origin = self.posed.origin
        count = self.sizes.states if origin is None else int(origin.max()) + 1
        return {"labelled": int(origin is not None), "digits": [[[], 0, count]]}

    def by_observation(self, table: IntArray) -> IntArray:
        """A policy over states that were split by labels, reindexed by labels and observations."""
        problem = self.posed
        if problem.origin is None:
            return table
        count = int(problem.origin.max()) + 1
        spread = np.zeros((len(problem.labels) * count, table.shape[1]), dtype=table.dtype)
        spread[problem.label * count + problem.origin] = table
        return spread
