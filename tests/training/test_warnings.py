"""What is legal, but surely not meant; and what is refused."""

from __future__ import annotations

import warnings

import gymnasium
import pytest

import qrmax
from qrmax.errors import GuardError, ParameterError, QRMaxWarning
from small_runs import corridor


def go() -> qrmax.RewardMachine:
    return qrmax.RewardMachine([qrmax.Edge("a", "x", "b", 1.0)], initial="a", success=["b"])


def test_chance_in_a_task_with_one_sample_to_know_it_is_warned_of() -> None:
    with pytest.warns(QRMaxWarning, match="t_task is 1"):
        qrmax.train("qrmax", corridor(chance=0.8), max_steps=10)
    qrmax.train("qrmax", corridor(chance=0.8), max_steps=10, t_task=20)


def test_a_problem_that_never_pays_is_warned_of() -> None:
    unpaid = qrmax.RewardMachine([qrmax.Edge("a", "coffee", "b")], initial="a", success=["b"])
    with pytest.warns(QRMaxWarning, match="has no rewards: all policies are equally good"):
        qrmax.train("qrmax", qrmax.make("office/map1", task=unpaid), max_steps=10)


def test_labels_that_are_none_and_labels_that_are_no_function_are_refused() -> None:
    lake = gymnasium.make("FrozenLake-v1")
    wrapped = qrmax.TaskWrapper(lake, go(), labels=lambda *_: None)  # type: ignore[arg-type]
    with pytest.raises(GuardError, match="if none is true"):
        wrapped.reset()
    with pytest.raises(ParameterError, match="needed: a function"):
        qrmax.TaskWrapper(lake, go(), labels=[{"x"}])  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="needed: one environment"):
        qrmax.TaskWrapper("FrozenLake-v1", go(), labels=lambda *_: ())  # type: ignore[arg-type]


def test_the_reward_of_the_environment_can_be_left_out() -> None:
    env = qrmax.TaskWrapper(
        gymnasium.make("CliffWalking-v1"), go(), labels=lambda *_: (), env_reward=False
    )
    env.reset(seed=0)
    _, reward, _, _, info = env.step(0)
    assert (reward, info["r_env"]) == (0.0, 0.0)  # the cliff costs 1 for each step


def test_an_action_is_asked_for_with_an_observation() -> None:
    run = qrmax.train("qrm", corridor(), max_steps=10)
    with pytest.raises(ParameterError, match="an observation of the environment"):
        run.act(3)


@pytest.mark.parametrize(
    ("task", "warned"),
    [("F(goal & F hoem)", True), ("F corner & G !hle", True), ("F corner", False)],
)
def test_a_name_that_no_label_ever_gives_is_warned_of(task: str, warned: bool) -> None:
    names = {0: {"home"}, 3: {"corner"}, 15: {"goal"}}
    lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    env = qrmax.TaskWrapper(lake, task, labels=lambda cell, _: names.get(cell, ()))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        qrmax.train("qrmax", env, max_steps=2_000, t_env=1)
    texts = [str(warning.message) for warning in told]
    assert any("which the task names, was never true" in text for text in texts) is warned


def test_a_task_that_is_over_before_the_first_step_is_warned_of() -> None:
    always = qrmax.load_task("G !decoration")
    with pytest.warns(
        QRMaxWarning, match="is over before the first step, so there is never a reward"
    ):
        qrmax.make("office/map1", task=always)
    lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    env = qrmax.TaskWrapper(lake, "F home", labels=lambda cell, _: {"home"} if cell == 0 else ())
    with pytest.warns(QRMaxWarning, match=r"over before the first step.*\{home\}, leads to"):
        qrmax.train("qrmax", env, max_steps=20)
    patrol = qrmax.RewardMachine.from_ltlf("G !decoration", pay="each")
    qrmax.make("office/map1", task=patrol)  # which can be paid again and again


@pytest.mark.parametrize(("grid", "warned"), [(1000, True), (10, False)])
def test_buckets_that_are_met_but_once_are_warned_of(grid: int, warned: bool) -> None:
    lake = qrmax.make("continuous/frozen-lake/abc", max_episode_steps=50)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        qrmax.train(
            "bucket-qrmax", lake, grid=grid, stop="budget", max_steps=1000, evaluate_every=2000
        )
    texts = [str(warning.message) for warning in told]
    assert any("give a coarser grid" in text for text in texts) is warned
