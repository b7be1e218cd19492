"""Checks on environments: the greedy policy is rolled out in a second instance."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import qrmax
from gym_worlds import lake
from qrmax.errors import ParameterError, QRMaxWarning
from qrmax.training.rollout_evaluator import EPISODES
from qrmax.training.stopping import Budget, Reaches

GOAL = 47


class Counted(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Notes its steps and the seeds of its resets, in a list that copies share."""

    def __init__(self, env: Any, notes: Notes) -> None:
        super().__init__(env)
        self.notes = notes

    def reset(self, **options: Any) -> Any:
        self.notes.seeds.append((id(self), options.get("seed")))
        return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        self.notes.steps.append(id(self))
        return self.env.step(action)


class Notes:
    """Lists that a deep copy shares."""

    def __init__(self) -> None:
        self.seeds: list[tuple[int, int | None]] = []
        self.steps: list[int] = []

    def __deepcopy__(self, memo: Any) -> Notes:
        return self


def cliff(**options: Any) -> Any:
    env = gymnasium.make("CliffWalking-v1", **options)
    return qrmax.TaskWrapper(env, "F goal", labels=lambda s, _: {"goal"} if s == GOAL else ())


def same_learning(one: qrmax.Run, other: qrmax.Run) -> None:
    ours, theirs = one.agent.snapshot(), other.agent.snapshot()
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
    assert one.episodes == other.episodes


def test_checks_do_not_disturb_training() -> None:
    checked = qrmax.train("qrm", lake(is_slippery=True), max_steps=3000, stop="budget")
    hardly = qrmax.train(
        "qrm", lake(is_slippery=True), max_steps=3000, stop="budget", evaluate_every=3000
    )
    assert len(checked.curve) == 3 > len(hardly.curve)
    same_learning(checked, hardly)


def test_training_and_checks_have_instances_and_seeds_of_their_own() -> None:
    notes = Notes()
    env = Counted(lake(is_slippery=True), notes)
    qrmax.train("qrm", env, max_steps=3000, stop="budget")
    seeds = [(who, seed) for who, seed in notes.seeds if seed is not None]
    assert [seed for who, seed in seeds if who == id(env)] == [seeds[0][1]]
    of_checks = [seed for who, seed in seeds if who != id(env)]
    assert len({*of_checks, seeds[0][1]}) == 1 + 3


def test_a_run_that_is_broken_off_has_the_same_checks(tmp_path: Any) -> None:
    whole = qrmax.train("qrmax", lake(), t_env=1, max_steps=600, evaluate_every=100, stop="budget")
    part = qrmax.train("qrmax", lake(), t_env=1, max_steps=300, evaluate_every=100, stop="budget")
    part.save(tmp_path / "part.run")
    resumed = qrmax.load(tmp_path / "part.run", env=lake()).resume(600)
    assert resumed.curve[:3] == whole.curve[:3]
    assert len(resumed.curve) == len(whole.curve) == 6


@pytest.mark.filterwarnings("ignore:'goal', which the task names, was never true")
def test_checks_of_a_policy_that_never_ends_cost_no_more_than_training() -> None:
    notes = Notes()
    env = Counted(cliff(), notes)
    run = qrmax.train("qrmax", env, max_steps=3000)  # wanders: t_env is 39
    trained = sum(who == id(env) for who in notes.steps)
    assert trained == 3000
    assert len(notes.steps) - trained <= 2 * trained
    assert [row.success for row in run.curve] == [0.0, 0.0, 0.0]
    assert run.curve[0].start_value_low is None  # one episode tells nothing of a mean's error


def test_an_environment_that_is_solved_early_does_not_train_to_its_budget() -> None:
    run = qrmax.train("qrmax-rm", cliff(), t_env=1, seed=1)
    assert (run.reason, run.evaluation.success) == ("reaches", 1.0)
    assert run.trained < 20_000


def test_a_task_without_success_trains_to_its_budget() -> None:
    task = qrmax.RewardMachine([qrmax.Edge("on", "goal", "on", 1.0)], initial="on")
    env = qrmax.TaskWrapper(
        gymnasium.make("FrozenLake-v1"), task, labels=lambda s, _: {"goal"} if s == 3 else ()
    )
    assert qrmax.train("qrm", env, max_steps=1000).reason == "budget"
    with pytest.raises(ParameterError, match=r"no success states: give discounted_return"):
        qrmax.train("qrm", env, stop="reaches")


def test_where_no_second_instance_can_be_made_training_is_summed_up_and_says_so_once() -> None:
    inner = gymnasium.make("FrozenLake-v1", is_slippery=False)
    env = qrmax.TaskWrapper(
        inner, "F goal", labels=lambda *_: {"goal"} if inner.unwrapped.s == 15 else ()
    )
    with pytest.warns(QRMaxWarning, match="no second instance of the environment") as told:
        run = qrmax.train("qrmax", env, t_env=1, r_max=2.0, max_steps=5000)
    assert len(told) == 1
    assert run.reason == "reaches"  # by the episodes of training
    assert run.curve[-1].success == 1.0
    assert run.curve[-1].success_low is run.evaluation is None


@pytest.mark.parametrize(
    ("rule", "reached"),
    [
        (Reaches(success=0.5, in_a_row=1), True),
        (Reaches(episode_return=-12.0, in_a_row=2, episodes=3), True),
        (Reaches(discounted_return=-7.2, in_a_row=1), True),
        (Reaches(episode_return=-11.0), False),
        (Reaches(success=0.5, discounted_return=-7.0), False),
        (Budget(), False),
    ],
    ids=str,
)
def test_a_rule_asks_for_success_or_for_a_return(rule: Any, reached: bool) -> None:
    run = qrmax.train("qrmax-rm", cliff(), t_env=1, max_steps=4000, stop=rule)
    assert (run.reason == "reaches") is reached


def test_a_row_without_a_rule_has_some_episodes() -> None:
    run = qrmax.train("qrmax-rm", lake(), t_env=1, max_steps=2000, stop="budget")
    assert run.curve[-1].success_low == pytest.approx(1 / (1 + 1.96**2 / EPISODES), abs=1e-3)


def test_the_final_policy_is_rolled_out_in_full_however_bad_it_is() -> None:
    run = qrmax.train("q-learning", cliff(max_episode_steps=50), max_steps=100, evaluate_every=50)
    last, final = run.curve[-1], run.final_point
    assert final is not None
    assert (last.success, final.success) == (0.0, 0.0)
    assert last.success_high is not None
    assert final.success_high is not None
    assert final.success_high < 0.05 < last.success_high  # 100 episodes and few
    assert run.evaluation is not None
    assert run.evaluation.mean_length is None  # of successful episodes
