"""Watching an episode of what was learned."""

from __future__ import annotations

import pytest

import qrmax
from gym_worlds import lake, room
from qrmax.errors import ParameterError
from qrmax.training.policies.policy import View
from qrmax.training.policies.staged_policy import StagedPolicy

RIGHT, LEFT = 2, 0  # FrozenLake's


def test_an_episode_is_watched_from_its_start_to_its_end() -> None:
    env = lake()
    run = qrmax.train("qrmax-rm", env, t_env=1, max_steps=1500)
    moments = list(run.watch(seed=1))
    assert [moment.action for moment in moments] == [None, *[RIGHT] * 3, *[LEFT] * 3]
    assert [moment.observation["state"] for moment in moments] == [0, 1, 2, 3, 2, 1, 0]
    assert [moment.reward for moment in moments] == [0.0] * 6 + [5.0]
    assert [moment.info["success"] for moment in moments] == [False] * 6 + [True]


def test_the_environment_is_at_the_moment_that_is_looked_at() -> None:
    env = lake()
    run = qrmax.train("qrmax-rm", env, t_env=1, max_steps=1500)
    for moment in run.watch(seed=1):
        assert env.unwrapped.s == moment.observation["state"]


def test_a_seed_makes_the_episode_the_same_again() -> None:
    env = room(noise=0.5)
    run = qrmax.train("qrmax", env, t_env=5, max_steps=2000)
    assert list(run.watch(seed=3)) == list(run.watch(seed=3))
    ways = {tuple(moment.observation["state"] for moment in run.watch(seed=i)) for i in range(5)}
    assert len(ways) > 1


def test_where_the_environment_cuts_the_episode_off_it_ends() -> None:
    env = room(limit=3)  # too few for the task
    run = qrmax.train("qrmax-rm", env, t_env=1, max_steps=100)
    assert len(list(run.watch(seed=1))) == 1 + 3


def test_what_was_learned_on_a_problem_is_watched_in_an_environment_of_it() -> None:
    problem = qrmax.make("office/map1/exp1", slip=0)
    run = qrmax.train("qrmax-rm", problem, t_env=1)
    *_, last = run.watch(qrmax.ProblemEnv(problem), seed=1)
    assert last.info["success"]
    with pytest.raises(ParameterError, match=r"on the problem 'office/map1/exp1'.*run\.watch\(env"):
        run.watch(seed=1)


def test_another_environment_than_the_one_trained_on_may_be_given() -> None:
    run = qrmax.train("qrmax-rm", lake(), t_env=1, max_steps=1500)
    cut = lake(max_episode_steps=2)
    assert len(list(run.watch(cut, seed=1))) == 1 + 2


def test_a_policy_for_episodes_of_some_steps_is_watched_stage_by_stage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = qrmax.train("ucbvi-b-rm", room(), horizon=4, max_steps=400)
    action, stages = StagedPolicy.action, []

    def noted(policy: StagedPolicy, view: View, q: int, stage: int) -> int:
        stages.append(stage)
        return action(policy, view, q, stage)

    monkeypatch.setattr(StagedPolicy, "action", noted)
    assert len(list(run.watch(seed=1))) == 1 + 4
    assert stages == [0, 1, 2, 3]
