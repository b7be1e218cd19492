"""`qrmax.evaluate`: exact on problems, by rollouts on environments."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import qrmax
from gym_worlds import lake
from qrmax.errors import ParameterError
from small_runs import corridor, fetching

UP, RIGHT, DOWN = 0, 1, 2


def cliff() -> Any:
    env = gymnasium.make("CliffWalking-v1")
    return qrmax.TaskWrapper(env, "F goal", labels=lambda s, _: {"goal"} if s == 47 else ())


def along_the_edge(observation: Any, info: Any = None) -> int:  # noqa: ARG001
    state = observation["state"]
    return UP if state == 36 else DOWN if state == 35 else RIGHT


class Model:
    """A policy as Stable-Baselines3 has them."""

    def predict(self, observation: Any, deterministic: bool = False) -> tuple[Any, None]:
        assert deterministic
        return np.array(along_the_edge(observation)), None


def as_table() -> np.ndarray:
    actions = [along_the_edge({"state": s}) for s in range(48)]
    return np.stack([actions, actions], axis=1)


@pytest.mark.parametrize(
    "policy", [along_the_edge, Model(), as_table(), np.stack([as_table()] * 20)], ids=type
)
def test_a_policy_walks_along_the_cliff(policy: Any) -> None:
    found = qrmax.evaluate(cliff(), policy, gamma=0.5, episodes=5)
    assert found.episodes == 5
    assert found.success.mean == 1.0
    assert found.length == (13.0, 13.0, 13.0)
    assert found.episode_return.mean == -12.0  # the last step has the task's reward as well
    assert found.discounted_return.mean == pytest.approx(-2.0 * (1 - 0.5**13) + 0.5**12)


def test_a_run_is_evaluated_with_its_own_gamma_and_leaves_its_environment_alone() -> None:
    env = lake(is_slippery=True)
    run = qrmax.train("qrmax", env, t_env=5, gamma=0.8, max_steps=3000, stop="budget")
    before = env.unwrapped.np_random.bit_generator.state
    found = qrmax.evaluate(env, run, episodes=50, seed=3)
    assert env.unwrapped.np_random.bit_generator.state == before
    assert (
        found
        == run.evaluate(50, seed=3)
        == qrmax.evaluate(lake(is_slippery=True), run, episodes=50, seed=3)
    )
    assert found != qrmax.evaluate(env, run, episodes=50, seed=4)
    assert found.success.low < run.evaluation.success < found.success.high


def test_a_problem_is_evaluated_exactly_as_before() -> None:
    problem = corridor()
    found = qrmax.evaluate(problem, fetching(problem), 0.9)
    assert isinstance(found, qrmax.Evaluation)
    run = qrmax.train("qrmax", problem, t_env=3, gamma=0.95)
    assert qrmax.evaluate(problem, run).start_value == run.evaluation.start_value


def test_a_continuous_problem_is_evaluated_by_rollouts() -> None:
    line = qrmax.make("continuous/line/ab")
    run = qrmax.train("bucket-qrmax", line, grid=10, t_env=3, seed=0, max_steps=5000)
    found = qrmax.evaluate(line, run, episodes=20)
    assert found.success.mean == 1.0
    again = qrmax.evaluate(line, run.recommendation, run.agent.config.gamma, episodes=20, seed=0)
    assert again == found


@pytest.mark.parametrize(
    ("env", "policy", "words"),
    [
        (lambda: 7, along_the_edge, "'7' is not an environment"),
        (lambda: gymnasium.make("CliffWalking-v1"), along_the_edge, "has no task; give it one"),
        (cliff, np.zeros((3, 2), dtype=int), r"shape \(3, 2\); needed.*\(48, 2\)"),
        (cliff, lambda *_: "left", "policy gave 'left'; needed: the number of an action"),
        (cliff, lambda *_: 7, r"policy gave 7; allowed: actions of Discrete\(4\)"),
        (cliff, "qrm", "policy is 'qrm'; needed: a run, an array"),
    ],
    ids=["no environment", "no task", "other states", "no action", "another action", "a name"],
)
def test_what_cannot_be_evaluated_is_refused(env: Any, policy: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        qrmax.evaluate(env(), policy, episodes=2)
