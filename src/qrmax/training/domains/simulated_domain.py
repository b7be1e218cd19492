"""Domains with simulators of our own: problems whose model is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qrmax.agents.base import Agent, AgentConfig
from qrmax.errors import MOST, CheckpointError, ParameterError, warn
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import parse_task
from qrmax.problems.simulator import World
from qrmax.source import Source
from qrmax.training.domains.domain import Domain
from qrmax.training.player import Player
from qrmax.worlds.grid import GridMap, format_map, parse_map


class _Simulator(Player, Protocol):
    """A simulator, whose state is a few numbers."""

    world: World
    state: NDArray[np.int64]

    @property
    def place(self) -> int:
        """The cell or state that determines the label and whether the episode ends."""
        ...

    def look(self) -> Any:
        """The state as the agent perceives it."""
        ...


class SimulatedDomain(Domain):
    """A problem and its simulator."""

    env_class: str  # the environment of ours in which its policies can be rolled out
    posed: Any  # the problem

    @property
    def problem(self) -> Any:
        """The problem."""
        return self.posed

    def is_made_of(self, thing: Any) -> bool:
        """Whether this very problem is the one trained on."""
        return thing is self.posed

    @property
    def max_episode_steps(self) -> int | None:
        """The limit on the length of an episode."""
        limit: int | None = self.posed.max_episode_steps
        return limit

    def reward_range(self) -> tuple[float, float]:
        """The least and the greatest reward of a step."""
        lowest, highest = self.posed.reward_range()
        return lowest, highest

    def env_to_watch(self) -> Any:
        """Raise an error that says which environment to pass."""
        raise ParameterError(
            f"this run is on the problem {self.name!r}, not on an environment: give one, such "
            f"as qrmax.{self.env_class}(problem) or one of gymnasium.make, as run.watch(env)"
        )

    def describe(self, player: Any) -> dict[str, Any]:
        """The problem and the state of its simulator as plain data, arrays excluded."""
        described = super().describe(player)
        described |= {"max_episode_steps": self.max_episode_steps, "state": player.state.tolist()}
        if isinstance(self.posed.world, GridMap):
            grid = self.posed.world
            described["map"] = {"name": grid.name, "text": format_map(grid)}
        return described

    def restore_player(self, player: Any, described: Mapping[str, Any], agent: Agent) -> None:
        """Restore the state of the simulator; an error if there is no such state."""
        simulator: _Simulator = player
        state: list[int] = described["state"]
        s, q, age, over, episodes = state
        world = simulator.world
        fits = (
            all(type(number) is int for number in state)
            and 0 <= s < self.most_states
            and 0 <= q < len(world.terminal)
            and 0 <= age <= (world.limit or MOST)
            and over in (0, 1)
            and (not over) <= episodes <= MOST
        )
        if fits:
            simulator.state[:] = state
            fits = bool(over) or (age != world.limit and not world.done[simulator.place, q])
        if fits and not over:
            buckets = getattr(agent, "buckets", None)
            known = MOST if buckets is None else len(buckets)
            seen = simulator.look()
            fits = not isinstance(seen, int) or seen == s < known  # the state is not a new one
        if not fits:
            raise CheckpointError(f"inconsistent episode record: {state}")

    @property
    def most_states(self) -> int:
        """An upper bound on the numbers of states."""
        return MOST

    def warn_of_settings(self, config: AgentConfig) -> None:
        """Warn of an r_max, a horizon or rewards that prevent learning."""
        lowest, highest = self.reward_range()
        self._warn_of_pessimism(config, highest)
        self._warn_of_a_long_horizon(config)
        if lowest == highest == 0.0:
            warn(f"{self.name!r} has no rewards: all policies are equally good")

    def _warn_of_a_long_horizon(self, config: AgentConfig) -> None:
        horizon, limit = config.episode_horizon, self.max_episode_steps
        if limit is not None and horizon is not None and horizon > limit:
            warn(
                f"horizon is {horizon}, but episodes of {self.name!r} end after {limit} steps: it "
                f"plans beyond the end of episodes; give horizon={limit}"
            )

    def _warn_of_pessimism(self, config: AgentConfig, highest: float) -> None:
        r_max = config.reward_bounds.highest
        if r_max < highest:
            warn(
                f"r_max is {r_max:g}, but the largest reward of {self.name!r} is {highest:g}: "
                "unknown values are not optimistic, and the optimum may never be found"
            )


def stored_machine(described: Mapping[str, Any]) -> RewardMachine:
    """The reward machine of a description."""
    return parse_task(Source(f"the task of {described['name']}", described["machine"]))


def stored_map(described: Mapping[str, Any], states: int) -> GridMap | None:
    """The map that the problem was made of, for drawing; None if it was made of none."""
    if "map" not in described:
        return None
    grid = parse_map(Source(f"{described['map']['name']}.txt", described["map"]["text"]))
    if grid.n_states != states:
        raise CheckpointError(f"a map of {grid.n_states} cells, and {states} states")
    return grid
