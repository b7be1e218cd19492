"""Stable-Baselines3 on tasks: its learners as they are, and counterfactual experience for them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import qrmax
from coffee_task import pick_up
from gym_worlds import in_order
from qrmax.errors import MissingExtraError, ParameterError

if importlib.util.find_spec("stable_baselines3") is None:
    pytest.skip("Stable-Baselines3 is not installed (the extra 'dqn')", allow_module_level=True)

from stable_baselines3 import DQN
from stable_baselines3.common.vec_env import DummyVecEnv

from qrmax.sb3 import CounterfactualReplayBuffer

LABELS = {0: {"home"}, 3: {"edge"}}
TASK = "F(edge & F home)"


def lake(limit: int = 30, **changes: Any) -> qrmax.TaskWrapper:
    env = gymnasium.make("FrozenLake-v1", max_episode_steps=limit, **changes)
    return qrmax.TaskWrapper(env, TASK, LABELS)


def learner(envs: int = 1, size: int = 4000, make: Any = lake, **changes: Any) -> DQN:
    """A DQN that only plays at random and remembers."""
    settings: dict[str, Any] = {"learning_starts": 10**6, "buffer_size": size, "seed": 3}
    return DQN(
        "MultiInputPolicy",
        DummyVecEnv([make] * envs),
        replay_buffer_class=CounterfactualReplayBuffer,
        replay_buffer_kwargs={"machine": make().machine},
        **{**settings, **changes},
    )


def transitions(buffer: Any) -> list[tuple[Any, ...]]:
    """All that a buffer holds, in order: s, q, a, r, s', q', and whether nothing follows."""
    n = buffer.size()
    columns = [
        buffer.observations["state"],
        buffer.observations["task"],
        buffer.actions,
        buffer.rewards,
        buffer.next_observations["state"],
        buffer.next_observations["task"],
        buffer.dones * (1 - buffer.timeouts),  # as samples have it
    ]
    flat = [column[:n].reshape(n * buffer.n_envs).tolist() for column in columns]
    return [*zip(*flat, strict=True)]


@pytest.mark.parametrize("envs", [1, 3])
def test_a_transition_is_held_for_each_machine_state_as_the_machines_table_has_it(
    envs: int,
) -> None:
    model = learner(envs)
    model.learn(600)
    held = transitions(model.replay_buffer)
    machine = lake().machine
    labels = [frozenset(LABELS.get(s, ())) for s in range(16)]
    table = machine.table(labels)
    live = np.flatnonzero(~table.terminal).tolist()
    assert len(held) == 600 * len(live)
    holes = {5, 7, 11, 12, 15}
    for s, q, _, reward, s_next, q_next, over in held:
        assert q_next == table.next_state[q, s_next, 0]
        assert reward == pytest.approx(table.reward[q, s_next, 0] + (s_next == 15))
        assert over == (table.terminal[q_next] or s_next in holes)
        assert s not in holes
    assert {q for _, q, *_ in held} == set(live)
    together = [held[i : i + envs] for i in range(0, len(held), envs)]
    for i in range(0, len(together), len(live)):  # one transition of each environment
        same = [[(s, a, s_next) for s, _, a, _, s_next, *_ in row] for row in together[i : i + 2]]
        assert same[0] == same[1]


def test_truncation_is_not_termination_and_the_machines_end_is() -> None:
    """After one step episodes are cut off; with the edge behind it, home is the end."""
    model = learner(make=lambda: lake(limit=1, is_slippery=False))
    model.learn(100)
    held = transitions(model.replay_buffer)
    go, back = 0, 1
    at_home = {q: {over for _, p, _, _, s, _, over in held if (p, s) == (q, 0)} for q in (go, back)}
    assert at_home == {go: {0.0}, back: {1.0}}
    assert {over for *_, s, _, over in held if s != 0} == {0.0}


def test_a_small_task_is_learned_from_it() -> None:
    """Two to the right, and back."""

    def world() -> qrmax.TaskWrapper:
        env = gymnasium.make("FrozenLake-v1", max_episode_steps=20, is_slippery=False)
        return qrmax.TaskWrapper(env, TASK, {0: {"home"}, 2: {"edge"}}, env_reward=False)

    settings: dict[str, Any] = {
        "learning_rate": 3e-3,
        "learning_starts": 100,
        "train_freq": 2,
        "target_update_interval": 50,
        "exploration_fraction": 0.8,
        "gamma": 0.9,
        "policy_kwargs": {"net_arch": [32]},
    }
    model = learner(make=world, **settings)
    model.learn(1500)
    env, rewards, over = world(), [], False
    observation, _ = env.reset(seed=0)
    while not over:
        action, _ = model.predict(observation, deterministic=True)
        observation, reward, terminated, truncated, _ = env.step(int(action))
        rewards.append(reward)
        over = terminated or truncated
    assert rewards == [0.0, 0.0, 0.0, 1.0]


def test_a_buffer_can_be_saved_and_loaded(tmp_path: Any) -> None:
    model = learner(size=300)
    model.learn(100)
    model.save_replay_buffer(tmp_path / "held.pkl")
    other = learner(size=300)
    other.load_replay_buffer(tmp_path / "held.pkl")
    assert transitions(other.replay_buffer) == transitions(model.replay_buffer)
    other.learn(8)  # and goes on
    assert len(transitions(other.replay_buffer)) == 216


def test_the_example_of_the_guide_runs() -> None:
    guide = (Path(__file__).parents[1] / "docs" / "guide.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python3\n(.*?)^```", guide, flags=re.MULTILINE | re.DOTALL)
    [example] = [block for block in blocks if "stable_baselines3" in block]
    names: dict[str, Any] = {"env": lake()}
    exec(example.replace("10_000", "40"), names)
    assert len(transitions(names["model"].replay_buffer)) == 40 * 2


class Forgetful(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that tells nothing."""

    def step(self, action: Any) -> Any:
        return *self.env.step(action)[:4], {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"machine": None}, "machine is None; needed: the task of the environment"),
        ({"machine": pick_up(0.3)}, "is a stochastic reward machine"),
        ({"machine": in_order("a", "b", "c", "d")}, r"'task': Discrete\(5\)"),
    ],
)
def test_what_it_cannot_work_with_is_refused(change: dict[str, Any], message: str) -> None:
    env = lake()
    with pytest.raises(ParameterError, match=message):
        CounterfactualReplayBuffer(10, env.observation_space, env.action_space, **change)
    with pytest.raises(ParameterError, match=r"needed: those of a qrmax\.TaskWrapper"):
        CounterfactualReplayBuffer(
            10, gymnasium.spaces.Discrete(3), env.action_space, machine=env.machine
        )


def test_an_environment_that_does_not_tell_what_is_needed_is_refused() -> None:
    machine = lake().machine
    model = DQN(
        "MultiInputPolicy",
        Forgetful(lake()),
        replay_buffer_class=CounterfactualReplayBuffer,
        replay_buffer_kwargs={"machine": machine},
        buffer_size=100,
    )
    with pytest.raises(ParameterError, match="info has no label, r_env, world_ended"):
        model.learn(10)


def test_without_the_extra_it_says_how_to_get_it() -> None:
    code = "import sys; sys.modules['stable_baselines3'] = None; import qrmax.sb3"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"{MissingExtraError.__name__}: qrmax.sb3 needs Stable-Baselines3" in done.stderr
    assert "pip install 'qrmax[dqn]'" in done.stderr
