"""The horizon that is found from a problem."""

from __future__ import annotations

import math

import pytest

import qrmax
from gym_worlds import lake
from qrmax.errors import ParameterError, UnknownNameError
from qrmax.planning.auto_horizon import auto_horizon
from qrmax.training.run import make_session
from small_problems import errand, payday
from small_runs import WITH_A_HORIZON, corridor


def test_it_is_the_length_of_the_optimal_path_plus_half_of_it() -> None:
    """One step to the key and three to the exit, for certain."""
    assert auto_horizon(errand()) == 6
    slippery = errand(slip=0.5)  # each step takes two on average
    assert auto_horizon(slippery) == 12
    found = qrmax.evaluate(corridor(), qrmax.solve(corridor()).policy)
    assert auto_horizon(corridor()) == math.ceil(1.5 * (found.mean_length or 0.0))


def test_only_successful_episodes_count() -> None:
    """One of the two ways ends at once, in failure, every other time."""
    mdp = qrmax.TabularMDP([[[1, 2]], [[3, 3]], [[2, 2]], [[3, 3]]], [[[0.5, 0.5]]] * 4)
    task = qrmax.RewardMachine(
        [qrmax.Edge("go", "goal", "there", 1.0), qrmax.Edge("go", "hole", "lost")],
        initial="go",
        success=["there"],
        failure=["lost"],
    )
    problem = qrmax.Problem(mdp, task, [(), ("hole",), ("goal",)], [0, 0, 1, 2])
    assert auto_horizon(problem) == 3


def test_it_is_no_longer_than_an_episode() -> None:
    assert auto_horizon(errand(limit=5)) == 5


def test_without_discounting_it_is_that_of_the_discounted_optimum() -> None:
    assert auto_horizon(corridor(), 1.0) == auto_horizon(corridor(), 0.9)


@pytest.mark.parametrize("name", WITH_A_HORIZON)
def test_every_agent_with_a_horizon_accepts_it(name: str) -> None:
    assert make_session(name, errand(), horizon="auto").agent.config.episode_horizon == 6
    assert make_session(name, errand(), horizon=7).agent.config.episode_horizon == 7


def test_where_it_cannot_be_found_the_error_says_why() -> None:
    with pytest.raises(ParameterError, match=r"'FrozenLake-v1' has no known model"):
        qrmax.train("psrl", lake(), horizon="auto")
    with pytest.raises(ParameterError, match=r"optimal policy .* succeeds in 0 % of episodes"):
        auto_horizon(payday())
    with pytest.raises(UnknownNameError, match="unknown setting of qrmax 'horizon'"):
        qrmax.train("qrmax", errand(), horizon="auto")
    with pytest.raises(ParameterError, match="horizon is 'later'; allowed"):
        qrmax.train("psrl", errand(), horizon="later")
