"""Gymnasium environments as domains."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from qrmax.agents.base import Agent
from qrmax.errors import CheckpointError, ParameterError, shown
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import format_task
from qrmax.problems.coordinates import check_coordinates
from qrmax.seeding import Chance, Stream
from qrmax.training.absent import AbsentEnv
from qrmax.training.domains.domain import Actor, Arrays, Domain, Learner
from qrmax.training.domains.simulated_domain import stored_machine
from qrmax.training.environment import EnvPlayer, is_environment
from qrmax.training.player import Player
from qrmax.training.policies.policy import Policy, View
from qrmax.training.rollout_evaluator import RolloutEvaluator


class EnvironmentDomain(Domain):
    """An environment in a `TaskWrapper`, or one of our own."""

    kind = "environment"
    simulated = False
    rewards_known = False
    budget = 100_000  # it is stepped in Python
    short_run = 5_000
    rules = ("reaches", "budget")
    why_no_others = "an environment has no known optimum to compare with"

    def __init__(self, env: Any, learner: Learner, chance: Chance) -> None:
        self.played = EnvPlayer(env, learner.gamma, chance, learner.agent)
        self.task = self.played
        self.sizes, self.observations = self.played.sizes, self.played.observations
        self.coordinates = self.played.coordinates
        self.first_action = int(env.action_space.start)

    @classmethod
    def takes(cls, thing: Any) -> bool:
        """Whether it has the methods of an environment."""
        return is_environment(thing)

    @classmethod
    def pose(cls, thing: Any, learner: Learner, chance: Chance) -> EnvironmentDomain:
        """The domain of an environment."""
        return cls(thing, learner, chance)

    @classmethod
    def restore(
        cls,
        described: Mapping[str, Any],
        arrays: Arrays,
        learner: Learner,
        chance: Chance,
        env: Any,
    ) -> EnvironmentDomain:
        """The domain of an environment that is passed again, if it matches the one trained on."""
        if env is None:
            raise CheckpointError(
                f"was trained on the environment {described['name']!r}, which a file cannot hold; "
                "give it in Python: qrmax.load(path, env=...)"
            )
        domain = cls(env, learner, chance)
        domain.played.know_labels([frozenset(label) for label in described["labels"]])
        domain.played.episodes = described["episodes"]
        if domain.played.is_absent and "coordinates" in arrays:
            domain.coordinates = check_coordinates(arrays["coordinates"], domain.sizes.states)
        domain._check_same(described, arrays)
        return domain

    @classmethod
    def absent(cls, described: Mapping[str, Any]) -> AbsentEnv:
        """A stand-in for the environment, with its spaces and its task."""
        found = AbsentEnv(described["name"], stored_machine(described), described["spaces"])
        found.made_from = described.get("made_from")
        return found

    def is_made_of(self, thing: Any) -> bool:
        """Whether this very environment is the one trained on."""
        return thing is self.played.env or thing is getattr(self.played.env, "unwrapped", None)

    def close(self) -> None:
        """Close the environment that was trained on."""
        self.played.env.close()

    def describe(self, player: Player) -> dict[str, Any]:
        """The task, the spaces and the number of episodes."""
        from qrmax.worlds.spaces import describe  # loads gymnasium, which is there already

        played = self.played
        spaces = {
            "state": describe(played.layer.observation_space["state"]),
            "action": describe(played.env.action_space),
            "labels_steps": played.labels_steps,
        }
        return {
            **super().describe(player),
            "sizes": self.sizes,
            "observations": self._fingerprint(),
            "spaces": spaces,
            "episodes": played.episodes,
            "mid_episode": not played.over,
            "made_from": self.made_from,
        }

    def arrays(self) -> Arrays:
        """The coordinates, if the agent needs them; the environment itself cannot be saved."""
        return {} if self.coordinates is None else {"coordinates": self.coordinates}

    @property
    def made_from(self) -> Mapping[str, Any] | None:
        """The plain data that the environment was made from; None if it was made in Python."""
        found: Mapping[str, Any] | None = getattr(self.played.env, "__dict__", {}).get("made_from")
        return found

    def _check_same(self, described: Mapping[str, Any], arrays: Arrays) -> None:
        """Refuse an environment whose spaces or task are not those of the one trained on."""
        ours: Any = self.coordinates
        theirs: Any = arrays.get("coordinates")
        differs = {
            "another task": format_task(self.machine) != described["machine"],
            "other sizes": list(self.sizes) != list(described["sizes"]),
            "other observations": self._fingerprint() != described["observations"],
            "other coordinates": not np.array_equal(ours, theirs),  # or None
        }
        for what, does in differs.items():
            if does:
                raise ParameterError(
                    f"this environment is not the one that was trained on, {described['name']!r}: "
                    f"it has {what}"
                )

    def _fingerprint(self) -> str | None:
        """A hash of the bounds of real-valued observations; there may be thousands."""
        box = self.observations
        if box is None:
            return None
        return hashlib.sha256(box.low.tobytes() + box.high.tobytes()).hexdigest()

    @classmethod
    def default_rule(cls, machine: RewardMachine) -> str:
        """A success rate of 95 %, or the budget for tasks without success states."""
        return "reaches" if machine.success else "budget"

    def reward_range(self) -> tuple[float, float]:
        """The range of the task's rewards, 0 and 1 included; the environment may add others."""
        rewards = [edge.reward for edge in self.machine.edges]
        return min([0.0, *rewards]), max([1.0, *rewards])

    def player(self, agent: Agent, chance: Stream) -> EnvPlayer:  # noqa: ARG002
        """The environment itself; the agent may perceive its observations."""
        self.played.perceive = agent.perceive if agent.perceives else None
        return self.played

    def evaluator(self, gamma: float, horizon: int | None, every: int = 1000) -> RolloutEvaluator:
        """Rollouts in a second instance of the environment."""
        return RolloutEvaluator(self, gamma, horizon, every)

    def prepare_to_resume(self) -> None:
        """Start a new episode: the environment may have been stepped by others since."""
        self.played.check_present()
        self.played.over = True

    def view(self, policy: Policy, observation: Any, info: Any) -> View:
        """The number of a state or, for an agent that perceives, an observation."""
        if self.observations is None:
            return View(self.played.state(observation, info), 0)
        if policy.reads_labels and info is None:
            raise ParameterError(
                "buckets are event_aware, so a state is an observation and the label read: "
                "give both, run.act(observation, info)"
            )
        return View(observation["state"], self.played.label_of(observation["state"], info))

    def actor(self, env: Any, policy: Policy) -> Actor:  # noqa: ARG002
        """The policy; observations of the environment need not be checked at each step."""
        first, view = self.first_action, self.view
        return lambda seen, info, stage: (
            first + policy.action(view(policy, seen, info), int(seen["task"]), stage)
        )

    def env_to_watch(self) -> Any:
        """The environment that was trained on."""
        self.played.check_present()
        return self.played.env

    def second_instance(self) -> Any:
        """Another environment like that of training, made from its spec or copied."""
        self.played.check_present()
        from qrmax.worlds.another import another  # loads gymnasium

        return another(self.played.env)

    def comparable_states(self) -> int | None:
        """The number of states, if they are numbered."""
        return self.sizes.states if self.observations is None else None

    @property
    def reads_start(self) -> bool:
        """Whether the machine reads a label at the start; labels of steps begin with a step."""
        return self.machine.consume_initial and not self.played.labels_steps

    @property
    def proposition_names(self) -> set[str]:
        """The propositions of the task: labels keep no others."""
        return set(self.machine.propositions)

    def encoder(self) -> dict[str, Any]:
        """The digits that make up the number of an observation."""
        from qrmax.worlds.spaces import describe  # loads gymnasium, which is there already

        space = describe(self.played.layer.observation_space["state"])
        return {"labelled": int(self.played.with_label), "digits": _digits(space, [])}

    def oddity(self) -> str:
        """The propositions that were never true, perhaps misspelt in the task or in the labels."""
        missing = sorted(self.machine.propositions - self.played.seen)
        if not missing:
            return ""
        were = "was" if len(missing) == 1 else "were"
        return (
            f"{', '.join(map(repr, missing))}, which the task names, {were} never true in "
            f"training; true at some time: {', '.join(sorted(self.played.seen)) or 'nothing'}"
        )

    def remedies(self, steps: int) -> Iterator[str]:
        """Advice about the labelling function and the length of episodes."""
        if missing := self.oddity():
            yield f"the labelling function: {missing}; does it return these exact names, and when?"
        played = self.played
        reached = ", ".join(repr(self.machine.states[q]) for q in sorted(played.reached))
        length = steps / max(played.episodes, 1)
        yield (
            f"the episodes: {played.episodes:,} of {length:,.0f} steps on average reached the task "
            f"states {reached}; if its step limit truncates them before the rest, raise it"
        )


def check_description(made_from: Any) -> None:
    """Raise an error unless this is a description of an environment, as plain data."""
    text, table = str, Mapping
    kinds: dict[str, tuple[type, ...]] = {
        "env": (text,),
        "task": (table,),
        "labels": (text, table, type(None)),
        "transition_labels": (text, type(None)),
        "wrappers": (list,),
        "options": (table,),
        "env_reward": (bool,),
        "sources": (table,),
    }
    if not isinstance(made_from, Mapping) or made_from.keys() != kinds.keys():
        raise ValueError(f"the description of its environment is {shown(made_from)}")
    for name, allowed in kinds.items():
        if not isinstance(made_from[name], allowed):
            raise TypeError(f"the {name} of its environment is {shown(made_from[name])}")


def _digits(space: Any, path: list[Any]) -> list[list[Any]]:
    """The parts of an observation, most significant first, as in `Numbering`."""
    match space["kind"]:
        case "Discrete":
            return [[path, space["start"], space["n"]]]
        case "MultiBinary":
            return [[[*path, *place], 0, 2] for place in product(*map(range, space["shape"]))]
        case "MultiDiscrete":
            sizes, starts = np.array(space["n"]), np.array(space["start"])
            return [
                [[*path, *map(int, place)], int(starts[place]), int(sizes[place])]
                for place in np.ndindex(sizes.shape)
            ]
        case _:
            return [d for key, part in space["parts"] for d in _digits(part, [*path, key])]
