"""Many episodes at once are as many single ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import qrmax
from gym_worlds import in_order
from planes import walk
from qrmax.errors import ParameterError
from qrmax.problems.continuous_problem import ContinuousProblem, PlaneSimulator
from qrmax.problems.sampling import Episodes, sample_episodes
from qrmax.seeding import stream

MAP = ". . *\n\n. A .\n-\n. * ."
EPISODES = 3000


class Wanders:
    """Goes here and there by where it is and what is done, so that everything happens."""

    def __init__(self, n_actions: int = 4) -> None:
        self.n_actions = n_actions

    def actions(self, observations: np.ndarray, q: np.ndarray) -> np.ndarray:
        return (np.floor(observations.sum(axis=1) * 7.0).astype(int) + q) % self.n_actions


class Always:
    def __init__(self, action: int) -> None:
        self.action = action

    def actions(self, observations: np.ndarray, q: np.ndarray) -> np.ndarray:  # noqa: ARG002
        return np.full(len(q), self.action)


def one_by_one(problem: ContinuousProblem, policy: Any, gamma: float) -> Episodes:
    simulator = PlaneSimulator(problem, stream(5, "world"), lambda seen, label: (seen, label))
    found = []
    for _ in range(EPISODES):
        simulator.reset()
        total, discount, length = 0.0, 1.0, 0
        while not simulator.over:
            seen, q = simulator.observation()[None], np.array([simulator.q])
            step = simulator.step(int(policy.actions(seen, q)[0]))
            total += discount * (step.r_env + step.r_task)
            discount *= gamma
            length += 1
        succeeded = bool(problem.table.success[simulator.q])
        found.append((total, succeeded, length))
    returns, successes, lengths = zip(*found, strict=True)
    return Episodes(np.array(returns), np.array(successes), np.array(lengths))


def fickle() -> qrmax.RewardMachine:
    """A is found out only sometimes, in two ways, or lost for good; nothing else is certain."""
    edges = [
        qrmax.Edge("go", "A", "there", 1.0, probability=0.2),
        qrmax.Edge("go", "A", "go", 0.5, probability=0.3),
        qrmax.Edge("go", "A", "lost", -1.0, probability=0.1),
    ]
    return qrmax.RewardMachine(edges, initial="go", success=["there"], failure=["lost"])


@pytest.mark.parametrize("task", [None, fickle()], ids=["certain", "random"])
def test_episodes_are_like_those_of_the_simulator(task: Any) -> None:
    problem = walk(MAP, task, noise=0.3, decoration_penalty=0.4, max_episode_steps=25)
    policy, gamma = Wanders(), 0.9
    apart = one_by_one(problem, policy, gamma)
    together = sample_episodes(problem, policy, EPISODES, np.random.default_rng(1), gamma)
    assert together.successes.dtype == bool
    assert 0.02 < apart.successes.mean() < 0.98
    assert (apart.lengths == 25).any()  # cut off
    for one, other in zip(apart, together, strict=True):
        assert one.shape == other.shape == (EPISODES,)
        error = np.hypot(one.std(), other.std()) / np.sqrt(EPISODES)
        assert abs(one.mean() - other.mean()) < 5 * error
        assert one.std() == pytest.approx(other.std(), rel=0.15)


def test_without_noise_an_episode_is_what_it_must_be() -> None:
    problem = walk(". . . A", noise=0.0, step=1.0)
    played = sample_episodes(problem, Always(0), 3, np.random.default_rng(1), 0.9)
    assert played.returns.tolist() == pytest.approx([0.81] * 3)
    assert played.successes.all()
    assert played.lengths.tolist() == [3, 3, 3]


def test_what_is_cut_off_is_no_success() -> None:
    problem = walk(". . . A", noise=0.0, step=1.0)
    played = sample_episodes(problem, Always(0), 2, np.random.default_rng(1), 1.0, 2)
    assert (played.returns.tolist(), played.successes.any()) == ([0.0, 0.0], False)
    assert played.lengths.tolist() == [2, 2]


def test_what_ends_at_the_limit_counts() -> None:
    problem = walk(". . . A", noise=0.0, step=1.0, max_episode_steps=3)
    assert sample_episodes(problem, Always(0), 2, np.random.default_rng(1), 1.0).successes.all()


def test_failure_ends_an_episode_without_success() -> None:
    problem = walk(". H A", noise=0.0, step=1.0)
    played = sample_episodes(problem, Always(0), 2, np.random.default_rng(1), 1.0)
    assert (played.successes.any(), played.lengths.tolist()) == (False, [1, 1])


def test_the_same_generator_gives_the_same_episodes() -> None:
    problem = qrmax.make("continuous/frozen-lake/abc")
    first, second, third = (
        sample_episodes(problem, Wanders(), 50, np.random.default_rng(seed), 0.9)
        for seed in (1, 1, 2)
    )
    assert first.lengths.tolist() == second.lengths.tolist() != third.lengths.tolist()


def test_a_policy_sees_observations_in_the_units_of_the_world() -> None:
    seen = []

    class Looks(Always):
        def actions(self, observations: np.ndarray, q: np.ndarray) -> np.ndarray:
            seen.append((observations.copy(), q.copy()))
            return super().actions(observations, q)

    line = qrmax.make("continuous/line/ab", noise=0.0)
    sample_episodes(line, Looks(0), 2, np.random.default_rng(1), 0.9)
    assert len(seen) == 21
    np.testing.assert_allclose([at[0, 0] for at, _ in seen], 0.025 * np.arange(1, 22))
    assert [q.tolist() for _, q in seen] == [[0, 0]] * 13 + [[1, 1]] * 8
    assert seen[0][0].shape == (2, 1)


def test_episodes_without_a_limit_are_refused() -> None:
    problem = walk(". . A", in_order("A"), max_episode_steps=None)
    with pytest.raises(ParameterError, match="needed: max_episode_steps"):
        sample_episodes(problem, Always(0), 2, np.random.default_rng(1), 0.9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"episodes": 0}, "episodes is 0"),
        ({"gamma": 1.5}, "gamma is 1.5"),
        ({"max_episode_steps": 0}, "max_episode_steps is 0"),
        ({"problem": "continuous/line/ab"}, "needed: a ContinuousProblem"),
    ],
)
def test_bad_arguments_are_named(change: dict[str, Any], message: str) -> None:
    given = {
        "problem": walk(". . A"),
        "policy": Always(0),
        "episodes": 2,
        "rng": np.random.default_rng(1),
        "gamma": 0.9,
    }
    with pytest.raises(ParameterError, match=message):
        sample_episodes(**(given | change))
