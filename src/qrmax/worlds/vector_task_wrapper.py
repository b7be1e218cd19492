"""A task on any vector environment of Gymnasium: one machine state for each sub-environment.

Episodes also terminate with the machine, of which vector environments know nothing. So the
sub-environments whose machine has terminated are reset by Gymnasium's `reset_mask`, according to
the autoreset mode of the vector environment: in the same step, in the next one, or by the caller.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import (
    AsyncVectorEnv,
    AutoresetMode,
    SyncVectorEnv,
    VectorEnv,
    VectorWrapper,
)
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import NDArray

from qrmax.errors import ParameterError, check_flag, shown
from qrmax.machines.label_reader import Move, Reading
from qrmax.machines.task_files import AnyTask
from qrmax.problems.labelling_function import (
    Info,
    Labelling,
    LabelsOfObservations,
    LabelsOfTransitions,
)
from qrmax.worlds.task_wrapper import machine_of_task, told

Flags = NDArray[np.bool_]  # [i], for each sub-environment
OWN_STREAM = 0x7A5C  # separates a machine's stream from an environment's with the same seed


@dataclass(slots=True)
class Batch:
    """The results of one step in all sub-environments."""

    states: Any
    rewards: NDArray[Any]
    terminations: Flags
    truncations: Flags
    parts: list[Info]  # the `info` of each
    begun: Flags  # whether the step was a reset
    ended_inside: Flags  # whether the environment itself ended an episode


class VectorTaskWrapper(VectorWrapper[Any, Any, Any, Any, Any]):
    """Any vector environment of Gymnasium, with a task on top of each sub-environment.

    Args:
        env: The vector environment, as `gymnasium.make_vec` makes it.
        task: A `RewardMachine`, a formula, or the name or file of a task, as for `TaskWrapper`.
        labels: The labelling function or mapping of `TaskWrapper`. It is called for each
            sub-environment, with its observation and its part of `infos`.
        transition_labels: In place of `labels`, a labelling function of whole transitions, as for
            `TaskWrapper`.
        env_reward: Whether rewards of the environments are added to those of the task.

    >>> import gymnasium, qrmax
    >>> envs = qrmax.VectorTaskWrapper(
    ...     gymnasium.make_vec("FrozenLake-v1", num_envs=2, is_slippery=False),
    ...     "F(edge & F home)",
    ...     labels={0: {"home"}, 3: {"edge"}},
    ... )
    >>> observations, infos = envs.reset(seed=0)
    >>> observations["state"].tolist(), observations["task"].tolist()
    ([0, 0], [0, 0])
    >>> envs.close()

    It is equivalent to a vector environment of `TaskWrapper`s, in each autoreset mode, with two
    differences. A stochastic machine draws from streams of this wrapper, one for each
    sub-environment, which `reset(seed=...)` seeds. And with `AutoresetMode.NEXT_STEP` a
    sub-environment whose machine alone has terminated takes one more step, which is not observed,
    before it is reset: vector environments can only step all of them at once. If random streams
    must be identical, wrap each sub-environment in a `TaskWrapper` instead:

        gymnasium.make_vec(name, num_envs=8, wrappers=[lambda env: qrmax.TaskWrapper(env, ...)])
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        task: AnyTask,
        labels: LabelsOfObservations | None = None,
        *,
        transition_labels: LabelsOfTransitions | None = None,
        env_reward: bool = True,
    ) -> None:
        if not isinstance(env, VectorEnv):
            raise ParameterError(
                f"env is {shown(env)}; needed: a vector environment, as gymnasium.make_vec makes "
                "it; for a single environment there is qrmax.TaskWrapper"
            )
        super().__init__(env)
        check_flag("env_reward", env_reward)
        self.machine = machine_of_task(task)
        if self.machine.terminal and not isinstance(env.unwrapped, SyncVectorEnv | AsyncVectorEnv):
            raise ParameterError(
                f"task {self.machine.name!r} can end episodes, and {env.unwrapped} cannot reset "
                "single sub-environments; make it by gymnasium.make_vec with "
                "vectorization_mode='sync' or 'async', or give a task without terminal states"
            )
        self.labelling = Labelling(self.machine, labels, transition_labels)
        self.env_reward = env_reward
        self.single_observation_space = spaces.Dict(
            {
                "state": env.single_observation_space,
                "task": spaces.Discrete(len(self.machine.states)),
            }
        )
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)
        mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self.autoreset_mode = AutoresetMode(mode)
        self._same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        self._q = np.zeros(env.num_envs, dtype=np.int64)
        self._before: Any = None  # the last observations
        self._ended = np.zeros(env.num_envs, dtype=bool)  # whether the last step ended an episode
        self._ended_inside = self._ended  # whether the environment itself ended it
        self._rng = [np.random.default_rng() for _ in range(env.num_envs)]

    @property
    def labels_steps(self) -> bool:
        """Whether labels belong to whole transitions, not to the observations after them."""
        return self.labelling.of_transitions is not None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, Info]:
        """Start episodes: in all sub-environments, or in those of `options["reset_mask"]`."""
        mask = np.ones(self.num_envs, dtype=bool)
        if options is not None:
            options = {**options}  # a copy: vector environments remove the mask
            mask = options.get("reset_mask", mask)
        self._seed(seed)
        states, infos = self.env.reset(seed=seed, options=options)
        parts = self._split(infos)
        for i, observation in enumerate(self._each(states)):
            if mask[i]:
                parts[i] = self._start(i, observation, parts[i])
        self._ended = self._ended & ~mask
        self._ended_inside = self._ended_inside & ~mask
        return self._observations(states), self._joined(parts)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Info]:
        """Take an action in each sub-environment; the machine of each then reads its label."""
        batch = self._step_inside(actions)
        befores = self._each(self._before) if self.labels_steps else repeat(None, self.num_envs)
        chosen = iterate(self.action_space, actions)
        each = zip(befores, chosen, self._each(batch.states), strict=True)
        finals = [self._read(batch, i, *transition) for i, transition in enumerate(each)]
        self._ended = batch.terminations | batch.truncations
        self._ended_inside = batch.ended_inside
        if self._same_step:
            self._restart(batch, finals)
        observations, infos = self._observations(batch.states), self._joined(batch.parts)
        return observations, batch.rewards, batch.terminations, batch.truncations, infos

    def _step_inside(self, actions: Any) -> Batch:
        """Step the sub-environments; those whose last step ended an episode may start one."""
        states, *results, infos = self.env.step(actions)
        rewards, terminations, truncations = (np.array(result) for result in results)
        none = np.zeros(self.num_envs, dtype=bool)
        parts = self._split(infos)
        batch = Batch(states, rewards, terminations, truncations, parts, none, none)
        if self.autoreset_mode == AutoresetMode.NEXT_STEP:
            batch.begun = self._ended
            self._reset_inside(batch, batch.begun & ~self._ended_inside)
            rewards[batch.begun] = 0.0
            terminations[batch.begun] = truncations[batch.begun] = False
        batch.ended_inside = terminations | truncations
        return batch

    def _read(self, batch: Batch, i: int, before: Any, action: Any, observation: Any) -> Info:
        """Let the machine of a sub-environment read its label.

        Returns `final_obs` and `final_info`, in case the next episode starts in the same step.
        """
        info = batch.parts[i]
        if batch.begun[i]:
            batch.parts[i] = self._start(i, observation, info)
            return {}
        restarted = self._same_step and batch.ended_inside[i]  # its next episode has started
        if restarted:
            observation, info = info.pop("final_obs"), info.pop("final_info")
        reading = self.labelling.read(before, action, observation, info)
        move = self._move(i, reading)
        r_env = float(batch.rewards[i]) if self.env_reward else 0.0
        world_ended = bool(batch.terminations[i])
        batch.rewards[i] = r_env + move.reward
        batch.terminations[i] = world_ended or move.terminal
        read = told(info, r_env, move.reward, reading, move.success, world_ended)
        if not restarted:
            batch.parts[i] = read
        if not self._same_step:
            return {}
        return {"final_obs": {"state": observation, "task": move.q}, "final_info": read}

    def _restart(self, batch: Batch, finals: list[Info]) -> None:
        """Start the next episodes in the step that ended the last ones."""
        self._reset_inside(batch, self._ended & ~batch.ended_inside)
        for i, observation in enumerate(self._each(batch.states)):
            if self._ended[i]:
                batch.parts[i] = {**finals[i], **self._start(i, observation, batch.parts[i])}

    def _reset_inside(self, batch: Batch, mask: Flags) -> None:
        """Reset the sub-environments whose machine alone has terminated."""
        if not mask.any():
            return
        batch.states, infos = self.env.reset(options={"reset_mask": mask})
        fresh = self._split(infos)
        batch.parts = [fresh[i] if mask[i] else part for i, part in enumerate(batch.parts)]

    def _start(self, i: int, observation: Any, info: Info) -> Info:
        """Reset the machine of a sub-environment; it reads the label of the first observation."""
        self._q[i], reading = self.labelling.start(observation, info)
        success = self.machine.states[self._q[i]] in self.machine.success
        return told(info, 0.0, 0.0, reading, success, world_ended=False)

    def _move(self, i: int, reading: Reading) -> Move:
        """Advance the machine of a sub-environment by a label."""
        q = int(self._q[i])
        move = reading.moves[q] or self.labelling.reader.draw(q, reading, self._rng[i])
        self._q[i] = move.q
        return move

    def _seed(self, seed: int | Sequence[int | None] | None) -> None:
        if seed is None:
            return
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed
        for i, each in enumerate(seeds):
            if each is not None:
                self._rng[i] = np.random.default_rng([each, OWN_STREAM])

    def _each(self, states: Any) -> Iterator[Any]:
        """The observations of the sub-environments, one after the other."""
        return iterate(self.env.observation_space, states)

    def _observations(self, states: Any) -> dict[str, Any]:
        if self.labels_steps:
            self._before = copy.deepcopy(states)  # vector environments may reuse their arrays
        return {"state": states, "task": self._q.copy()}

    def _split(self, infos: Info) -> list[Info]:
        """The `info` of each sub-environment."""
        return [_part(infos, i) for i in range(self.num_envs)]

    def _joined(self, parts: list[Info]) -> Info:
        """The infos of all sub-environments, joined as in Gymnasium."""
        infos: Info = {}
        for i, part in enumerate(parts):
            infos = self._add_info(infos, part, i)
        return infos


def _part(infos: Info, i: int) -> Info:
    """The `info` of one sub-environment; entries without a mask belong to all of them."""
    found: Info = {}
    for key, value in infos.items():
        mask = infos.get(f"_{key}")
        if (key.startswith("_") and key[1:] in infos) or (mask is not None and not mask[i]):
            continue
        if isinstance(value, dict):
            found[key] = _part(value, i)
        else:
            found[key] = bool(value[i]) if isinstance(value[i], np.bool_) else value[i]
    return found
