"""Rewards that values would overflow with are refused before they fill tables with NaN."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import qrmax
from gym_worlds import Loop, in_order
from qrmax.agents.registry import agent_class, agent_names
from qrmax.errors import ModelError, ObservationError, ParameterError

TABULAR = [name for name in agent_names() if not agent_class(name).perceives]
MODEL_FREE = ["q-learning", "qrm"]


def swing(r_env: float, r_task: float) -> qrmax.Problem:
    """Two states, between which one can go or stay; each step has the same reward."""
    mdp = qrmax.TabularMDP(
        [[[1], [0]], [[0], [1]]], np.ones((2, 2, 1)), np.full((2, 2, 1), r_env), start=0
    )
    task = qrmax.RewardMachine([qrmax.Edge("go", "goal", "go", r_task)], initial="go")
    return qrmax.Problem(mdp, task, [(), ["goal"]], [0, 1], max_episode_steps=20, name="swing")


@pytest.mark.parametrize("reward", [1e300, -1e305, 1e308])
def test_no_world_has_rewards_beyond_1e300(reward: float) -> None:
    with pytest.raises(ModelError, match=r"reward is .* at state 0, action 0, .*below 1e"):
        swing(reward, 0.0)


@pytest.mark.parametrize("agent", TABULAR)
@pytest.mark.parametrize(("r_env", "r_task"), [(0.0, 1e300), (-9e299, -9e299)])
def test_every_agent_refuses_rewards_beyond_1e300(agent: str, r_env: float, r_task: float) -> None:
    with pytest.raises(ParameterError, match=r"a step of 'swing' can have a reward of .*allowed"):
        qrmax.train(agent, swing(r_env, r_task), max_steps=10)


@pytest.mark.parametrize("agent", MODEL_FREE)
def test_below_that_values_are_numbers(agent: str) -> None:
    run = qrmax.train(agent, swing(-9e299, 5e299), max_steps=3000, alpha=1.0, stop="budget")
    assert np.isfinite(run.agent.q).all()


@pytest.mark.parametrize("agent", MODEL_FREE)
@pytest.mark.parametrize("reward", [1e300, -1e308, float("nan"), float("inf")])
def test_what_an_environment_pays_is_refused_as_well(agent: str, reward: float) -> None:
    limited = gymnasium.wrappers.TimeLimit(Loop(pays=reward), 10)
    env = qrmax.TaskWrapper(limited, in_order("never"), labels=lambda *_: ())
    words = rf"Loop gave a reward of {reward:g} for action 0; allowed".replace("+", r"\+")
    with pytest.raises(ObservationError, match=words):
        qrmax.train(agent, env, max_steps=20)


def test_so_are_the_rewards_of_a_task_on_an_environment() -> None:
    task = in_order("never", reward=1e301, name="mine")
    env = qrmax.TaskWrapper(Loop(), task, labels=lambda *_: ())
    with pytest.raises(ParameterError, match="a step of 'Loop' can have a reward of 1e\\+301"):
        qrmax.train("q-learning", env, max_steps=20)
