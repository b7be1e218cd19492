"""Tasks on vector environments."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import qrmax
from coffee_task import pick_up
from qrmax.errors import GuardError, ParameterError

TASK = "F(edge & F home)"
LABELS = {0: {"home"}, 2: {"edge"}, 8: {"edge", "side"}}
MODES = [*AutoresetMode]
N = 4


def bare(*, slippery: bool = True) -> gymnasium.Env[Any, Any]:
    """FrozenLake: holes end episodes, the task does, and so does the limit."""
    return gymnasium.make("FrozenLake-v1", is_slippery=slippery, max_episode_steps=15)


def steps(before: int, action: int, after: int, info: dict[str, Any]) -> set[str]:
    assert "prob" in info
    assert 0 <= action < 4
    return {"edge"} if (before, after) == (1, 2) else LABELS.get(after, set()) - {"edge"}


Labels = dict[str, Any]
OF_STATES: Labels = {"labels": LABELS}
OF_STEPS: Labels = {"transition_labels": steps}


def around(
    mode: AutoresetMode, kind: Any = SyncVectorEnv, given: Labels = OF_STATES, **options: Any
) -> qrmax.VectorTaskWrapper:
    """Our wrapper around a vector environment."""
    envs = kind([lambda: bare(**options)] * N, autoreset_mode=mode)
    return qrmax.VectorTaskWrapper(envs, TASK, **given)


def inside(
    mode: AutoresetMode, kind: Any = SyncVectorEnv, given: Labels = OF_STATES, **options: Any
) -> Any:
    """A vector environment of single ones in our wrapper."""
    return kind(
        [lambda: qrmax.TaskWrapper(bare(**options), TASK, **given)] * N, autoreset_mode=mode
    )


def play(envs: Any, mode: AutoresetMode, count: int = 150) -> list[Any]:
    """All that is seen in so many steps with actions that are mostly right."""
    rng = np.random.default_rng(3)
    seen = [envs.reset(seed=7)]
    for _ in range(count):
        results = envs.step(rng.choice(4, size=N, p=[0.3, 0.3, 0.25, 0.15]))
        seen.append(results)
        ended = results[2] | results[3]
        if mode == AutoresetMode.DISABLED and ended.any():
            seen.append(envs.reset(options={"reset_mask": ended}))
    envs.close()
    return seen


def plain(value: Any, mask: Any = None) -> Any:
    """Results as plain data; of infos what is there."""
    if isinstance(value, dict):
        masks = {key: value.get(f"_{key}") for key in value if f"_{key}" in value}
        keys = [key for key in value if not (key.startswith("_") and key[1:] in value)]
        return {key: plain(value[key], masks.get(key)) for key in keys}
    if isinstance(value, np.ndarray):
        kept = value if mask is None else value[mask]
        return [plain(x) for x in kept.tolist()], None if mask is None else mask.tolist()
    if isinstance(value, list | tuple):
        return [plain(x) for x in value]
    return value


@pytest.mark.parametrize("given", [OF_STATES, OF_STEPS], ids=["states", "steps"])
@pytest.mark.parametrize("mode", MODES, ids=[mode.name for mode in MODES])
def test_it_does_what_a_task_in_each_sub_environment_does(
    mode: AutoresetMode, given: Labels
) -> None:
    slippery = mode != AutoresetMode.NEXT_STEP  # there, one more step is taken
    ours = play(around(mode, given=given, slippery=slippery), mode)
    theirs = play(inside(mode, given=given, slippery=slippery), mode)
    assert plain(ours) == plain(theirs)
    steps_taken = [results for results in ours if len(results) == 5]
    ends = np.array([results[2:4] for results in steps_taken])
    assert ends.any(axis=(0, 2)).all()  # terminations and truncations
    tasks = [results[-1].get("final_info", results[-1])["success"] for results in steps_taken]
    assert np.any(tasks)


@pytest.mark.parametrize("mode", MODES, ids=[mode.name for mode in MODES])
def test_processes_of_their_own_do_the_same(mode: AutoresetMode) -> None:
    expected = plain(play(around(mode), mode, count=40))
    assert plain(play(around(mode, AsyncVectorEnv), mode, count=40)) == expected
    if mode != AutoresetMode.NEXT_STEP:
        assert plain(play(inside(mode, AsyncVectorEnv), mode, count=40)) == expected


def test_observations_are_in_the_spaces_that_are_said() -> None:
    envs = around(AutoresetMode.NEXT_STEP)
    observations, _ = envs.reset(seed=0)
    assert envs.observation_space.contains(observations)
    assert envs.single_observation_space["task"].n == len(envs.machine.states)
    observations, *_ = envs.step(envs.action_space.sample())
    assert envs.observation_space.contains(observations)


def test_an_episode_that_the_machine_ends_is_followed_by_another() -> None:
    """In the next step, of which the action and the reward do not count."""
    envs = qrmax.VectorTaskWrapper(
        SyncVectorEnv([lambda: bare(slippery=False)] * 2), "F right", labels={1: {"right"}}
    )
    envs.reset(seed=0)
    down_and_right = np.array([1, 2])
    observations, rewards, ended, _, infos = envs.step(down_and_right)
    assert (rewards.tolist(), ended.tolist()) == ([0.0, 1.0], [False, True])
    assert infos["success"].tolist() == [False, True]
    assert infos["world_ended"].tolist() == [False, False]
    observations, rewards, ended, _, _ = envs.step(down_and_right)
    assert observations["state"].tolist() == [8, 0]
    assert observations["task"].tolist() == [0, 0]
    assert (rewards.tolist(), ended.tolist()) == ([0.0, 0.0], [False, False])
    _, rewards, ended, _, _ = envs.step(np.array([0, 2]))
    assert (rewards.tolist(), ended.tolist()) == ([0.0, 1.0], [False, True])


def test_rewards_of_the_environments_can_be_left_out() -> None:
    def returns(**options: Any) -> float:
        envs = gymnasium.make_vec("CliffWalking-v1", num_envs=2, vectorization_mode="sync")
        wrapped = qrmax.VectorTaskWrapper(envs, "F never", labels={}, **options)
        wrapped.reset(seed=0)
        return float(wrapped.step(np.array([0, 0]))[1].sum())

    assert (returns(), returns(env_reward=False)) == (-2.0, 0.0)


def test_environments_that_are_vectors_by_themselves_can_have_a_task() -> None:
    envs = gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point")
    back_and_forth = [qrmax.Edge("go", "right", "back", 5.0), qrmax.Edge("back", "!right", "go")]
    wrapped = qrmax.VectorTaskWrapper(
        envs,
        qrmax.RewardMachine(back_and_forth, initial="go", consume_initial=False),
        labels=lambda x, _: {"right": bool(x[1] > 0.0)},  # the cart's speed
    )
    assert wrapped.reset(seed=0)[0]["state"].shape == (3, 4)
    observations, rewards, *_ = wrapped.step(np.array([0, 1, 0]))
    assert observations["task"].tolist() == [0, 1, 0]
    assert rewards.tolist() == [1.0, 6.0, 1.0]
    with pytest.raises(ParameterError, match="vectorization_mode='sync'"):
        qrmax.VectorTaskWrapper(envs, TASK, LABELS)


def test_a_stochastic_machine_is_settled_by_the_seed_and_differs_between_sub_environments() -> None:
    def ends(seed: int) -> list[list[bool]]:
        envs = SyncVectorEnv([bare] * 8, autoreset_mode=AutoresetMode.SAME_STEP)
        wrapped = qrmax.VectorTaskWrapper(
            envs, pick_up(0.5), transition_labels=lambda *_: {"coffee"}
        )
        wrapped.reset(seed=seed)
        return [wrapped.step(np.zeros(8, dtype=int))[2].tolist() for _ in range(5)]

    assert ends(3) == ends(3) != ends(4)
    assert 8 < np.sum(ends(3)) < 32
    assert len({tuple(column) for column in zip(*ends(3), strict=True)}) > 4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: qrmax.VectorTaskWrapper(bare(), TASK, LABELS), "there is qrmax.TaskWrapper"),
        (lambda: qrmax.VectorTaskWrapper(SyncVectorEnv([bare]), TASK), "either labels"),
        (lambda: qrmax.TaskWrapper(SyncVectorEnv([bare]), TASK, LABELS), "VectorTaskWrapper"),
    ],
)
def test_what_cannot_be_wrapped_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_label_that_is_none_is_refused_with_what_was_observed() -> None:
    envs = qrmax.VectorTaskWrapper(SyncVectorEnv([bare]), TASK, labels=lambda *_: "home")
    with pytest.raises(GuardError, match=r"labels\(...\) is the string .* \(observed: "):
        envs.reset(seed=0)
