"""Counterfactual experience for the off-policy learners of Stable-Baselines3.

    import gymnasium, qrmax
    from stable_baselines3 import DQN
    from qrmax.sb3 import CounterfactualReplayBuffer

    env = qrmax.TaskWrapper(gymnasium.make("FrozenLake-v1"), task, labels)
    model = DQN(
        "MultiInputPolicy",
        env,
        replay_buffer_class=CounterfactualReplayBuffer,
        replay_buffer_kwargs={"machine": env.machine},
    )

The machine reads labels and does not act on the environment. So from one transition of the
environment it is known what the same transition would have been in every other machine state
(Toro Icarte et al., 2022), and the replay buffer holds it for each of them:

    (s, q), a, r_E + r_Q(q, label), (s', q')     for all q that are not terminal

Needs the extra 'dqn'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.errors import MissingExtraError, ParameterError, shown
from qrmax.machines.label_reader import LabelReader, Move
from qrmax.machines.reward_machine import RewardMachine

try:
    from gymnasium import spaces
    from stable_baselines3.common.buffers import DictReplayBuffer
except ImportError as error:
    raise MissingExtraError(
        "qrmax.sb3 needs Stable-Baselines3, which is not installed: pip install 'qrmax[dqn]'"
    ) from error

__all__ = ["CounterfactualReplayBuffer"]

NEEDED = "label", "r_env", "world_ended"  # of `info`


class CounterfactualReplayBuffer(DictReplayBuffer):
    """A replay buffer that holds each transition for every machine state that is not terminal.

    For observations as a `TaskWrapper` has them, a `Dict` with the machine state under "task";
    other keys stay as they are. Rewards, next machine states and ends come from the machine and
    from the `info` of the wrapper. Truncation is not the end of an episode: such a transition
    bootstraps, unless the machine ends the episode.

    Args:
        buffer_size: The number of transitions to hold, counterfactual ones included.
        observation_space: The observation space of a `TaskWrapper`.
        action_space: Its action space.
        device: The device of PyTorch for samples.
        n_envs: The number of environments that are played at once.
        optimize_memory_usage: Not supported, as by all buffers of `Dict` observations.
        machine: The task, `env.machine`; it must be deterministic.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Dict,
        action_space: spaces.Space[Any],
        device: Any = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        *,
        machine: RewardMachine,
    ) -> None:
        _check(observation_space, machine)
        super().__init__(
            buffer_size,
            observation_space,
            action_space,
            device,
            n_envs,
            optimize_memory_usage,
            handle_timeout_termination=False,  # `add` knows which transitions end an episode
        )
        self.machine = machine
        self._reader = LabelReader(machine)

    def add(
        self,
        obs: dict[str, NDArray[Any]],
        next_obs: dict[str, NDArray[Any]],
        action: NDArray[Any],
        reward: NDArray[Any],  # noqa: ARG002 (it is one of those worked out here)
        done: NDArray[Any],  # noqa: ARG002
        infos: Sequence[Mapping[str, Any]],
    ) -> None:
        """Add a transition of each environment, for every machine state that is not terminal."""
        if not all(name in info for info in infos for name in NEEDED):
            raise ParameterError(
                f"info has no {', '.join(NEEDED)}; counterfactual experience needs those of a "
                "qrmax.TaskWrapper, or of one of qrmax's own worlds"
            )
        r_env = np.array([info["r_env"] for info in infos])
        world_ended = np.array([info["world_ended"] for info in infos])
        readings = [self._reader.read(info["label"], 'info["label"]') for info in infos]
        for q in self._reader.live:
            moves = [_certain(reading.moves[q]) for reading in readings]
            super().add(
                {**obs, "task": np.full(self.n_envs, q)},
                {**next_obs, "task": np.array([move.q for move in moves])},
                action,
                r_env + [move.reward for move in moves],
                world_ended | [move.terminal for move in moves],
                [],  # they would tell of timeouts alone
            )


def _certain(move: Move | None) -> Move:
    assert move is not None  # the constructor has refused stochastic machines
    return move


def _check(space: Any, machine: Any) -> None:
    """Raise a `ParameterError` unless the observations have the state of this machine."""
    if not isinstance(machine, RewardMachine):
        raise ParameterError(
            f"machine is {shown(machine)}; needed: the task of the environment, "
            "replay_buffer_kwargs={'machine': env.machine}"
        )
    if machine.is_stochastic:
        raise ParameterError(
            f"task {machine.name!r} is a stochastic reward machine, and counterfactual experience "
            "needs a deterministic one; use the learner's own replay buffer"
        )
    task = space.spaces.get("task") if isinstance(space, spaces.Dict) else None
    if not isinstance(task, spaces.Discrete) or task.n != len(machine.states):
        raise ParameterError(
            f"observations are {shown(space)}; needed: those of a qrmax.TaskWrapper with the task "
            f"{machine.name!r}, a Dict with the machine state as 'task': "
            f"Discrete({len(machine.states)})"
        )
