"""DQN: Q-learning with a neural network, on observations (Mnih et al., 2015).

    Q(x, a)  moves towards  r_E + r_Q + gamma max_a' Q'(x', a')        x = (observation, q)

on minibatches from a replay buffer, with the maximum replaced by 0 if the episode has terminated.
Q' is the target network, a copy of Q made some steps ago. x is the normalised observation, followed
by the one-hot machine state.

Both networks, the replay buffer and the gradient steps are those of Stable-Baselines3, which comes
with the extra 'dqn'; nothing here but the making of an agent needs it. Randomness is ours:
actions and batches are drawn from the agent's stream, the initial weights are seeded from it, and
no global generator is touched. PyTorch is told to use one thread, in the whole process: these
networks are too small for more, and sums are the same for any number of cores.

DQN-RM stores each transition once for every machine state that is not terminal, as if the machine
had been there (counterfactual experience, Toro Icarte et al., 2022): its replay buffer is the one
that `qrmax.sb3` has for all off-policy learners of Stable-Baselines3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qrmax.agents.base import Agent, AgentConfig, Sizes
from qrmax.agents.experience import Counterfactual, Experience
from qrmax.errors import MissingExtraError, ModelError, ParameterError, check_count, check_range
from qrmax.machines.reward_machine import RewardMachine
from qrmax.planning.arrays import IntArray
from qrmax.problems.observations import Observations
from qrmax.problems.simulator import Step
from qrmax.seeding import Stream

Single = NDArray[np.float32]  # the precision of the networks
MOST_REMEMBERED = 10**7  # transitions, of some hundred bytes each
MOST_HIDDEN = 8192  # units: two layers of them are 256 MB, and more than any such task needs


@dataclass(frozen=True, kw_only=True, slots=True)
class DQNConfig(AgentConfig):
    """Settings of DQN and DQN-RM."""

    hidden: int = 64  # units in each of two layers
    learning_rate: float = 1e-3  # of Adam
    batch_size: int = 32  # transitions in a gradient step
    buffer_size: int = 50_000  # transitions in the replay buffer; then the oldest go
    learning_starts: int = 1000  # steps before the first gradient step
    train_every: int = 4  # steps between two updates
    gradient_steps: int = 1  # in each update
    target_update_interval: int = 500  # steps between two copies of Q to Q'
    epsilon_start: float = 1.0  # initial probability of a random action
    epsilon_end: float = 0.05  # and the final one
    exploration_steps: int = 10_000  # steps of the linear decay between them

    def __post_init__(self) -> None:
        AgentConfig.__post_init__(self)
        check_range("learning_rate", self.learning_rate, above=0.0, at_most=1.0)
        check_range("epsilon_start", self.epsilon_start, at_least=0.0, at_most=1.0)
        check_range("epsilon_end", self.epsilon_end, at_least=0.0, at_most=1.0)
        for count in (
            "hidden",
            "batch_size",
            "buffer_size",
            "learning_starts",
            "train_every",
            "gradient_steps",
            "target_update_interval",
            "exploration_steps",
        ):
            check_count(count, getattr(self, count))
        check_range("hidden", self.hidden, at_most=MOST_HIDDEN)
        check_range("buffer_size", self.buffer_size, at_most=MOST_REMEMBERED)
        if self.epsilon_end > self.epsilon_start:
            raise ParameterError(
                f"epsilon_start is {self.epsilon_start:g}, and epsilon_end {self.epsilon_end:g}; "
                "allowed: an end that is not above the start"
            )
        if self.batch_size > self.buffer_size:
            raise ParameterError(
                f"batch_size is {self.batch_size}, and buffer_size {self.buffer_size}; allowed: "
                "a batch_size of at most buffer_size"
            )


class DQN(Agent):
    """DQN: sees observations and the machine's state, does not know the machine, keeps no model."""

    name = "dqn"
    perceives = True
    told_the_machine = "dqn-rm"
    epsilon_greedy = True
    Config = DQNConfig
    config: DQNConfig

    def __init__(
        self,
        sizes: Sizes,
        config: DQNConfig,
        rng: Stream,
        experience: Experience,
        observations: Observations,
    ) -> None:
        super().__init__(sizes, config, rng, experience, observations)
        self.steps = 0
        self._task_state: Single = np.eye(sizes.task_states, dtype=np.float32)  # [q, its input]
        self.check_installed()
        self.learner = _make_learner(
            config,
            dimension=observations.dimension,
            sizes=sizes,
            seed=int(rng.apart("weights").integers(2**63)),
            choose=self._choose,
            machine=experience.task.machine if isinstance(experience, Counterfactual) else None,
        )
        arrays = [weights.detach().numpy() for weights in self.learner.q_net.parameters()]
        self._layers = [*zip(arrays[::2], arrays[1::2], strict=True)]  # the network's own memory

    @classmethod
    def check_installed(cls) -> None:
        """Raise a `MissingExtraError` unless the extra is there."""
        try:
            import stable_baselines3  # noqa: F401
            import torch  # noqa: F401
        except ImportError as error:
            raise MissingExtraError(
                f"the agent {cls.name!r} needs PyTorch and Stable-Baselines3, which are not "
                "installed: pip install 'qrmax[dqn]'\n"
                "  on Linux this includes 5.5 GB of CUDA libraries, which are not used; to avoid "
                "them, install PyTorch's CPU build first (see its page on installation)"
            ) from error

    @property
    def epsilon(self) -> float:
        """The current probability of a random action."""
        config = self.config
        gone = min(self.steps / config.exploration_steps, 1.0)
        return config.epsilon_start + gone * (config.epsilon_end - config.epsilon_start)

    def perceive(self, observation: Any, label: int) -> Single:  # noqa: ARG002 (q says enough)
        """The observation, scaled to [-1, 1]."""
        return self.observations.normalise(observation).astype(np.float32)

    def act(self, s: Single, q: int) -> int:
        """Act epsilon-greedily; the first of equally good actions."""
        if self.rng.random() < self.epsilon:
            return int(self.rng.random() * self.sizes.actions)
        return int(self.values(s[None], np.array([q]))[0].argmax())

    def values(self, s: Single, q: NDArray[np.integer]) -> Single:
        """Action values `[n, a]` in states `s[n, d]` and machine states `q[n]`.

        Computed in NumPy from the network's own weights: for networks this small, a forward pass
        in PyTorch takes several times as long.
        """
        *hidden, last = self._layers
        values = self._joined(s, q)
        for weights, bias in hidden:
            values = np.maximum(values @ weights.T + bias, 0.0)
        result: Single = values @ last[0].T + last[1]
        return result

    def update(self, s: Single, q: int, a: int, step: Step) -> None:
        """Store the transition; every `train_every` steps, train on minibatches."""
        config, learner = self.config, self.learner
        learner.replay_buffer.add(
            _seen(s, q),
            _seen(step.s, step.q),
            np.array([a]),
            np.array([step.r_env + step.r_task]),
            np.array([step.terminated]),  # never on truncation
            [self._info(step)],
        )
        self.steps += 1
        if self.steps % config.target_update_interval == 0:
            from stable_baselines3.common.utils import polyak_update

            polyak_update(learner.q_net.parameters(), learner.q_net_target.parameters(), tau=1.0)
        if self.steps > config.learning_starts and self.steps % config.train_every == 0:
            learner.train(config.gradient_steps, config.batch_size)

    def recommendation(self) -> NetworkPolicy:
        """The greedy policy of the network, which changes as the network is trained."""
        return NetworkPolicy(self)

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """The networks, the moments of Adam, the replay buffer and the number of steps."""
        replay = self.learner.replay_buffer
        remembered = [column[: replay.size()] for column in _columns(replay)]
        return {
            **{name: tensor.numpy().copy() for name, tensor in _tensors(self.learner).items()},
            "transitions": np.concatenate(
                remembered, axis=1, dtype=np.float32, casting="unsafe"
            ).T.copy(),  # [column, n]: what grows is the last axis
            "place": np.array([replay.pos]),
            "steps": np.array([self.steps]),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore all of that."""
        replay = self.learner.replay_buffer
        columns, transitions = _columns(replay), arrays["transitions"].T
        n, place, steps = len(transitions), int(arrays["place"][0]), int(arrays["steps"][0])
        full = n == replay.buffer_size
        if steps < 0 or not (0 <= place < n if full else place == n < replay.buffer_size):
            raise ModelError(
                f"inconsistent replay buffer: after {steps} steps {n} transitions, the next at "
                f"{place}, buffer_size {replay.buffer_size}"
            )
        ends = np.cumsum([column.shape[1] for column in columns])
        kept = np.split(transitions, ends[:-1], axis=1)
        _, q, _, q_next, action, _, done = kept
        for numbers, below in (
            (q, self.sizes.task_states),
            (q_next, self.sizes.task_states),
            (action, self.sizes.actions),
            (done, 2),
        ):
            if not np.isin(numbers, range(below)).all():
                raise ModelError("the replay buffer has an impossible transition")
        for column, values in zip(columns, kept, strict=True):
            column[:n] = values
        for name, tensor in _tensors(self.learner).items():
            tensor.numpy()[...] = arrays[name]
        replay.pos, replay.full, self.steps = place, full, steps

    def _info(self, step: Step) -> dict[str, Any]:  # noqa: ARG002 (see DQN-RM)
        """Return the info of a step for the replay buffer: none is needed."""
        return {}

    def _joined(self, s: Single, q: int | NDArray[np.integer]) -> Single:
        """Concatenate observations and one-hot machine states, the input of the networks."""
        return np.concatenate([s, self._task_state[q]], axis=-1)

    def _choose(self, among: int, count: int) -> IntArray:
        """Sample indices below `among` from the agent's stream."""
        return np.array([int(self.rng.random() * among) for _ in range(count)], dtype=np.int32)


class DQNRM(DQN):
    """DQN that knows the machine and remembers each step for all its states at once."""

    name = "dqn-rm"
    knows_machine = True
    experience: Counterfactual

    def _info(self, step: Step) -> dict[str, Any]:
        """Return the info that counterfactual experience needs, as a `TaskWrapper` has it."""
        label = self.experience.task.labels[step.label]
        return {"label": label, "r_env": step.r_env, "world_ended": step.world_ended}


class NetworkPolicy:
    """The greedy policy of an agent's network, for many observations at once."""

    def __init__(self, agent: DQN) -> None:
        self._agent = agent

    def action(self, observation: Any, label: int, q: int) -> int:  # noqa: ARG002 (q says enough)
        """Return the greedy action."""
        return int(self.actions([observation], [q])[0])

    def actions(self, observations: ArrayLike, q: ArrayLike) -> IntArray:
        """The greedy action for each of the observations `[n, d]` with machine states `q[n]`."""
        s = self._agent.observations.normalise_all(observations).astype(np.float32)
        values = self._agent.values(s, np.asarray(q, dtype=np.int32))
        best: IntArray = values.argmax(axis=1).astype(np.int32)
        return best


def _make_learner(
    config: DQNConfig,
    *,
    dimension: int,
    sizes: Sizes,
    seed: int,
    choose: Callable[[int, int], IntArray],
    machine: RewardMachine | None,
) -> Any:
    """The learner of Stable-Baselines3, without environment or log, with our random stream.

    With a machine, its replay buffer holds counterfactual experience.
    """
    import stable_baselines3
    import torch
    from gymnasium.spaces import Box, Dict, Discrete
    from stable_baselines3.common.buffers import DictReplayBuffer
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.type_aliases import DictReplayBufferSamples

    from qrmax.sb3 import CounterfactualReplayBuffer

    kind: Any = DictReplayBuffer if machine is None else CounterfactualReplayBuffer

    class Replay(kind):
        """A buffer that samples from our stream, not from NumPy's global generator."""

        def sample(self, batch_size: int, env: Any = None) -> Any:  # noqa: ARG002
            """Sample a minibatch."""
            chosen = choose(self.size(), batch_size)

            def drawn(column: NDArray[Any]) -> Any:
                return torch.from_numpy(column[chosen, 0])

            return DictReplayBufferSamples(
                observations={key: drawn(each) for key, each in self.observations.items()},
                actions=drawn(self.actions),
                next_observations={k: drawn(each) for k, each in self.next_observations.items()},
                dones=torch.from_numpy(self.dones[chosen]),
                rewards=torch.from_numpy(self.rewards[chosen]),
            )

    torch.set_num_threads(1)
    learner = stable_baselines3.DQN(
        "MultiInputPolicy",
        None,
        learning_rate=config.learning_rate,
        buffer_size=config.buffer_size,
        gamma=config.gamma,
        replay_buffer_class=Replay,
        replay_buffer_kwargs={"handle_timeout_termination": False}  # truncation is never `done`
        if machine is None
        else {"machine": machine},
        policy_kwargs={
            "net_arch": [config.hidden, config.hidden],
            "optimizer_kwargs": {"fused": True},  # all of Adam in one call
        },
        device="cpu",
        _init_setup_model=False,  # which would need an environment
    )
    learner.observation_space = Dict(
        {"state": Box(-1.0, 1.0, (dimension,), np.float32), "task": Discrete(sizes.task_states)}
    )
    learner.action_space = Discrete(sizes.actions)
    learner.n_envs = 1
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        learner._setup_model()
    learner.set_logger(Logger(folder=None, output_formats=[]))
    _begin_adam(learner)
    return learner


def _begin_adam(learner: Any) -> None:
    """Initialise the state of Adam, which by itself it has only from its first step on."""
    import torch

    for weights in learner.q_net.parameters():
        learner.policy.optimizer.state[weights] = {
            "step": torch.tensor(0.0),
            "exp_avg": torch.zeros_like(weights),
            "exp_avg_sq": torch.zeros_like(weights),
        }


def _tensors(learner: Any) -> dict[str, Any]:
    """Everything that training changes, but for the replay buffer; to read and to write."""
    found: dict[str, Any] = {}
    both = zip(learner.q_net.parameters(), learner.q_net_target.parameters(), strict=True)
    for i, (weights, target) in enumerate(both):
        adam = learner.policy.optimizer.state[weights]
        found |= {
            f"network.{i}": weights.detach(),
            f"target.{i}": target.detach(),
            f"adam.step.{i}": adam["step"],
            f"adam.mean.{i}": adam["exp_avg"],
            f"adam.square.{i}": adam["exp_avg_sq"],
        }
    return found


def _columns(replay: Any) -> list[NDArray[Any]]:
    """The arrays of a replay buffer, `[place, number]`; to read and to write."""
    now, later = replay.observations, replay.next_observations
    seen = (now["state"], now["task"], later["state"], later["task"])
    arrays = (*seen, replay.actions, replay.rewards, replay.dones)
    return [array.reshape(len(array), -1) for array in arrays]


def _seen(s: Single, q: int) -> dict[str, NDArray[Any]]:
    """An observation and a machine state, as replay buffers take them."""
    return {"state": s[None], "task": np.array([q])}
