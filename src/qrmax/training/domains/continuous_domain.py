"""Problems with real positions as domains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from qrmax.agents.base import Agent, Sizes
from qrmax.agents.buckets.in_buckets import InBuckets
from qrmax.machines.reward_machine import RewardMachine
from qrmax.problems.continuous_problem import ContinuousProblem, PlaneSimulator
from qrmax.problems.plane import Plane
from qrmax.seeding import Chance, Stream
from qrmax.training.domains.domain import Arrays, Learner
from qrmax.training.domains.simulated_domain import SimulatedDomain, stored_machine, stored_map
from qrmax.training.plane_evaluator import PlaneEvaluator
from qrmax.training.policies.policy import Policy, View
from qrmax.training.stopping import SAMPLED

PLANE_ARRAYS = ("direction", "noise", "wall", "reward", "scale")
MOST_A_SIDE = 60  # cells of a grid that fits a map


class ContinuousDomain(SimulatedDomain):
    """A `ContinuousProblem`, evaluated by sampled episodes."""

    kind = "continuous"
    env_class = "ContinuousEnv"
    rules = SAMPLED
    why_no_others = "policies on continuous positions are evaluated by sampling"

    def __init__(self, problem: ContinuousProblem) -> None:
        self.task = self.posed = problem
        self.sizes = Sizes(0, problem.n_task_states, problem.n_actions)  # states are discovered
        self.observations = problem.observations

    @classmethod
    def takes(cls, thing: Any) -> bool:
        """Whether it is a `ContinuousProblem`."""
        return isinstance(thing, ContinuousProblem)

    @classmethod
    def pose(cls, thing: Any, learner: Learner, chance: Chance) -> ContinuousDomain:  # noqa: ARG003
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
    ) -> ContinuousDomain:
        """The domain of a stored problem."""
        plane = {name: arrays[name] for name in PLANE_ARRAYS}
        return cls(
            ContinuousProblem(
                Plane(columns=described["columns"], **plane),
                stored_machine(described),
                described["labels"],
                arrays["label"],
                terminal=arrays["terminal"],
                start=described["start"],
                max_episode_steps=described["max_episode_steps"],
                name=described["name"],
                world=stored_map(described, len(arrays["label"])),
                rotation=described.get("rotation", 0.0),
                sensor_noise=described.get("sensor_noise", 0.0),
            )
        )

    def arrays(self) -> Arrays:
        """The plane and the labelling function."""
        plane = {name: getattr(self.posed.plane, name) for name in PLANE_ARRAYS}
        return {"label": self.posed.label, "terminal": self.posed.terminal, **plane}

    def describe(self, player: Any) -> dict[str, Any]:
        """The problem and the state of its simulator, the position included."""
        return {
            **super().describe(player),
            "position": player.position.tolist(),
            "observed": player.observed.tolist(),
            "rotation": self.posed.rotation,
            "sensor_noise": self.posed.sensor_noise,
            "columns": self.posed.plane.columns,
            "start": self.posed.start,
        }

    def restore_player(self, player: Any, described: Mapping[str, Any], agent: Agent) -> None:
        """Restore the state and the position of the simulator."""
        player.stand(described["position"], described.get("observed"))
        super().restore_player(player, described, agent)

    @classmethod
    def default_rule(cls, machine: RewardMachine) -> str:  # noqa: ARG003
        """A success rate close to that of the optimal policy."""
        return "success"

    def player(self, agent: Agent, chance: Stream) -> PlaneSimulator:
        """A simulator of the problem, which the agent perceives."""
        return PlaneSimulator(self.posed, chance, agent.perceive)

    def evaluator(
        self,
        gamma: float,
        horizon: int | None,  # noqa: ARG002
        every: int = 1000,  # noqa: ARG002
    ) -> PlaneEvaluator:
        """Sampled policy evaluation."""
        return PlaneEvaluator(self.posed, gamma)

    def view(self, policy: Policy, observation: Any, info: Any) -> View:  # noqa: ARG002
        """An observation, with the label of its position."""
        return View(observation["state"], self.posed.label_of(observation["state"], info))

    def second_instance(self) -> Any:
        """The problem as an environment; the plain one of a shaped task."""
        from qrmax.worlds.gymnasium import ContinuousEnv  # loads gymnasium

        return ContinuousEnv(self.posed.unshaped)

    def encoder(self) -> dict[str, Any]:
        """Observations have no numbers: policies of a plane have encoders of their own."""
        raise NotImplementedError

    def grid_side(self, dimension: int) -> int:  # noqa: ARG002
        """Cells per side of a grid whose cells lie within those of the map."""
        rows = len(self.posed.plane.wall) // self.posed.plane.columns
        columns: int = self.posed.plane.columns
        together = math.lcm(rows, columns)
        return together if together <= MOST_A_SIDE else max(rows, columns)

    def diagnose(self, agent: Agent, samples: int, chance: Stream) -> Any:
        """The sizes of an agent's buckets, and how many mix labels."""
        from qrmax.analysis.bucket_diagnosis import diagnose, scatter

        if not isinstance(agent, InBuckets):
            return super().diagnose(agent, samples, chance)
        return diagnose(agent.buckets, *scatter(self.posed, samples, chance.apart("positions")))
