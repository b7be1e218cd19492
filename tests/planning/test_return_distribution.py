"""Returns drawn from their exact distribution: those of episodes that are played."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qrmax
from qrmax.planning.return_distribution import ReturnDistribution, return_distribution
from qrmax.seeding import stream
from random_problems import problems, random_policy
from small_runs import corridor, fetching

GAMMA = 0.9


def by_trajectories(
    problem: qrmax.Problem, policy: np.ndarray, limit: int
) -> dict[float, float] | None:
    """The probability of each return, by enumerating all trajectories; None for early rewards."""
    done, mdp, table = problem.done(), problem.mdp, problem.table
    found: dict[float, float] = defaultdict(float)
    early = False

    def walk(s: int, q: int, t: int, chance: float) -> None:
        nonlocal early
        if t == limit:
            found[0.0] += chance
            return
        a = policy[t % len(policy), s, q]
        for s_next, p, r_env in zip(mdp.succ[s, a], mdp.prob[s, a], mdp.reward[s, a], strict=True):
            row = (part[q, problem.label[s_next]] for part in (table.next_state, table.prob))
            rewards = table.reward[q, problem.label[s_next]]
            for q_next, p_task, r_task in zip(*row, rewards, strict=True):
                if p * p_task == 0.0:
                    continue
                reward = r_env + r_task
                if done[s_next, q_next]:
                    found[round(GAMMA**t * reward, 9)] += chance * p * p_task
                else:
                    early |= reward != 0.0
                    walk(s_next, q_next, t + 1, chance * p * p_task)

    for s, q in np.argwhere(problem.start() > 0.0):
        if done[s, q]:
            found[0.0] += problem.start()[s, q]
        else:
            walk(int(s), int(q), 0, float(problem.start()[s, q]))
    return None if early else dict(found)


def chances(distribution: ReturnDistribution) -> dict[float, float]:
    """The probability of each return."""
    found: dict[float, float] = defaultdict(float)
    parts = np.diff(distribution.cumulative, prepend=0.0)
    for value, part in zip(distribution.values, parts, strict=True):
        found[round(float(value), 9)] += float(part)
    return found


@settings(max_examples=150)
@given(problem=problems(), seed=st.integers(0, 99), limit=st.integers(1, 4), stages=st.booleans())
def test_the_distribution_is_that_of_all_trajectories(
    problem: qrmax.Problem, seed: int, limit: int, *, stages: bool
) -> None:
    policy = np.stack([random_policy(problem, seed + i) for i in range(1 + stages)])
    expected = by_trajectories(problem, policy, limit)
    found = return_distribution(problem, policy, GAMMA, limit)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert (np.diff(found.cumulative) >= 0.0).all()
    for value, chance in chances(found).items():
        assert chance == pytest.approx(expected.pop(value, 0.0), abs=1e-12), value
    assert sum(expected.values()) < 1e-12


def test_a_reward_before_the_end_leaves_no_distribution() -> None:
    problem = corridor(bonus=0.5)
    assert return_distribution(problem, fetching(problem)[None], GAMMA, 1000) is None


def test_drawn_returns_have_the_exact_mean_and_take_one_number_each() -> None:
    problem = qrmax.make("office/map1/exp5")
    policy = qrmax.solve(problem).policy
    found = return_distribution(problem, policy[None], GAMMA, 1000)
    assert found is not None
    exact = np.diff(found.cumulative, prepend=0.0) @ found.values
    assert exact == pytest.approx(qrmax.evaluate(problem, policy).start_value, rel=1e-9)
    chance, other = stream(0, "any"), stream(0, "any")
    drawn = found.sample(50_000, chance)  # more than a block of the stream
    assert abs(drawn.mean() - exact) < 4.5 * drawn.std() / np.sqrt(len(drawn))
    numbers = [other.random() for _ in range(50_000)]
    at = np.searchsorted(found.cumulative, numbers, side="right")
    assert (drawn == found.values[at]).all()
    assert chance.random() == other.random()
