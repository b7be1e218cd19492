"""Agents that revise their estimates for ever: rows, thresholds, recommendation, saving."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from amounts import amount
from learners import Trial, trial
from qrmax import Edge, Problem, RewardMachine, TabularMDP
from qrmax.agents.revising.revising_agent import RevisingAgent
from qrmax.agents.revising.transition_rows import ALPHAS, likeliest_alpha, log_evidence
from qrmax.empirical.successors import Successors
from qrmax.errors import ModelError
from qrmax.problems.simulator import Step
from small_problems import LEFT, RIGHT, errand

pytestmark = pytest.mark.small_enough_without_jit


def revising(tried: Trial) -> RevisingAgent:
    assert isinstance(tried.agent, RevisingAgent)
    return tried.agent


def step_to(s: int, q: int = 0, r_env: float = 0.0) -> Step:
    return Step(s, q, 0, r_env, 0.0, False, False, False)


def idle(limit: int | None = None) -> Problem:
    """A machine that never pays, on the cells of an errand."""
    machine = RewardMachine([Edge("go", "key", "other")], initial="go", states=["go", "other"])
    return errand(machine=machine, limit=limit)


# --- rows


def test_the_evidence_is_that_of_predicting_one_sample_after_the_other() -> None:
    """A Polya urn: each sample is predicted by the posterior mean of those before it."""
    seen, urn = Successors(4, 2, by_successor=True), np.random.default_rng(3)
    alpha, expected = 1.5, 0.0
    samples = [(a, int(urn.choice(3))) for a in (0, 1) for _ in range(12)]
    listed = {x for _, x in samples}
    counts = np.zeros((2, 4))
    for a, x in samples:
        share = alpha / len(listed)
        expected += math.log((counts[a, x] + share) / (counts[a].sum() + alpha))
        counts[a, x] += 1
        seen.record(0, a, x, 0.0)
    evidence = np.empty(1)
    log_evidence(seen.arrays, np.array([alpha]), evidence)
    assert evidence[0] == pytest.approx(expected)


def test_actions_that_are_alike_are_shrunk_towards_each_other() -> None:
    alike, apart = (Successors(9, 2, by_successor=True) for _ in range(2))
    rng = np.random.default_rng(1)
    for s in range(8):
        for a in (0, 1):
            for _ in range(10):
                alike.record(s, a, int(rng.choice(4)), 0.0)
                apart.record(s, a, a, 0.0)
    assert likeliest_alpha(alike.arrays) == ALPHAS.max()
    assert likeliest_alpha(apart.arrays) == ALPHAS.min()


def test_a_row_is_shrunk_towards_the_successors_of_all_actions() -> None:
    agent = revising(trial("qr-ucb", idle(), t_min=2))
    for x in (1, 1, 0):
        agent.update(1, 0, LEFT, step_to(x))
    agent.update(1, 0, RIGHT, step_to(2))
    assert agent.alpha == 1.0
    rows = agent.planner.rows
    assert rows.succ[1, :3].tolist() == [1, 0, 2]
    assert rows.prob[1, LEFT, :3] == pytest.approx([(2 + 1 / 3) / 4, (1 + 1 / 3) / 4, 1 / 3 / 4])
    assert rows.radius[1, LEFT] == pytest.approx(3.0**2 / 3)
    assert rows.base[1].tolist() == [0.0, np.inf]  # RIGHT was tried once


def test_sampled_rows_are_those_of_the_posterior() -> None:
    """Mean and variance of a Dirichlet distribution, within five standard errors."""
    agent = revising(trial("qr-psrl", idle(), t_min=2))
    for x in (1, 1, 1, 0, 2):
        agent.update(1, 0, LEFT, step_to(x))
    shape = np.array([3.0, 1.0, 1.0]) + agent.alpha / 3
    draws, rows = np.empty((2000, 3)), agent.planner.rows
    for i in range(len(draws)):
        agent.counted[1, LEFT] = -1
        assert agent.estimate() == 1
        draws[i] = rows.prob[1, LEFT, :3]
    mean, total = shape / shape.sum(), shape.sum()
    variance = mean * (1.0 - mean) / (total + 1.0)
    assert draws.sum(axis=1) == pytest.approx(1.0)
    assert (np.abs(draws.mean(axis=0) - mean) < 5.0 * np.sqrt(variance / len(draws))).all()
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.2)
    assert not rows.radius.any()


def test_rows_are_sampled_again_when_they_are_due_and_not_before() -> None:
    agent = revising(trial("qr-psrl", idle(), t_min=2, redraw=50))
    for s in (1, 2):
        for x in (0, 3, 3):
            agent.update(s, 0, LEFT, step_to(x))
    rows, drawn = agent.planner.rows, agent.planner.rows.prob.copy()
    while agent.t < 49:
        agent.update(2, 0, LEFT, step_to(3))
    assert (rows.prob[1] == drawn[1]).all()
    assert (rows.prob[2, LEFT] != drawn[2, LEFT]).any()  # it has twice as many samples, and more
    agent.update(2, 0, LEFT, step_to(3))
    assert (rows.prob[1, LEFT, :2] != drawn[1, LEFT, :2]).all()


# --- thresholds


def test_a_pair_is_unknown_again_once_the_threshold_has_grown() -> None:
    agent = revising(trial("qr-ucb", idle(), t_min=2, growth=10))
    for _ in range(2):
        agent.update(0, 0, LEFT, step_to(0))
    assert agent.planner.rows.base[0, LEFT] == 0.0
    for _ in range(8):
        agent.update(3, 0, LEFT, step_to(3))
    assert agent.t == 10
    assert agent.threshold == 3
    assert agent.planner.rows.base[0, LEFT] == np.inf
    assert agent.planner.q_at(0, 0)[LEFT] == agent.config.optimistic
    agent.update(0, 0, LEFT, step_to(0))
    assert agent.planner.rows.base[0, LEFT] == 0.0


def test_an_action_that_failed_at_first_is_not_given_up() -> None:
    """RIGHT pays 1 in half of the cases, LEFT always pays 0.2: no seed is misled by its start."""
    mdp = TabularMDP(
        np.array([[[1, 1], [1, 2]], [[0, 0], [0, 0]], [[0, 0], [0, 0]]]),
        np.array([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]]),
        np.array([[[0.2, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]),
    )
    machine = RewardMachine([Edge("go", "win", "go")], initial="go")
    problem = Problem(mdp, machine, [(), ("win",)], np.array([0, 0, 1]), max_episode_steps=20)
    for seed in range(amount(10, plain=1)):
        agent = revising(trial("qr-ucb-rm", problem, seed=seed, growth=500).rush(8100))
        assert agent.threshold == 3 + 5
        assert (agent.seen.arrays.n >= agent.threshold).all()
        assert agent.policy()[0, 0] == RIGHT


def test_a_random_machine_is_estimated_ever_better() -> None:
    chancy = RewardMachine(
        [Edge("go", "key", "won", 1.0, probability=0.25)], initial="go", states=["go", "won"]
    )
    tried = trial("qr-ucb", errand(machine=chancy, limit=9), t_task=4).rush(4000)
    agent = revising(tried)
    n, task = int(agent.task.counts.n[0, 0]), agent.planner.task
    assert n > 300
    won = task.prob[0, 0][task.next_state[0, 0] == 1].sum()
    assert won == pytest.approx(0.25, abs=0.1)
    assert task.reward[0, 0] == pytest.approx(won)


# --- the recommendation


def test_actions_that_were_never_tried_are_not_recommended() -> None:
    agent = revising(trial("qr-ucb", idle(), t_min=2))
    agent.update(0, 0, RIGHT, step_to(1, r_env=-3.0))
    assert agent.planner.q_at(0, 0)[LEFT] == agent.config.optimistic
    assert agent.q[0, 0].tolist() == [-np.inf, -3.0]
    assert agent.policy()[0, 0] == RIGHT


def test_the_recommended_policy_has_no_bonus() -> None:
    """LEFT reaches a state that pays in one of four tries, RIGHT pays little each time."""
    agent = revising(trial("qr-ucb", idle(), t_min=2))
    for x, r in ((1, 0.0), (1, 0.0), (1, 0.0), (2, 0.0)):
        agent.update(0, 0, LEFT, step_to(x, r_env=r))
    for _ in range(4):
        agent.update(0, 0, RIGHT, step_to(1, r_env=0.001))
    for s in (1, 2):
        for a in (LEFT, RIGHT):
            for _ in range(40):
                agent.update(s, 0, a, step_to(3, r_env=0.1 if s == 2 else 0.0))
    for a in (LEFT, RIGHT):
        for _ in range(40):
            agent.update(3, 0, a, step_to(3))
    optimistic = agent.planner.q_at(0, 0)
    assert optimistic[LEFT] > agent.q[0, 0, LEFT]
    assert agent.q[0, 0, LEFT] > agent.q[0, 0, RIGHT]
    assert agent.policy()[3, 0] == LEFT  # the first of equals


def test_arrivals_that_were_never_observed_are_not_recommended() -> None:
    """In machine state 1 nothing has happened yet, but LEFT and RIGHT were tried in state 0."""
    agent = revising(trial("qr-ucb", idle(), t_min=2))
    for _ in range(3):
        agent.update(1, 0, LEFT, step_to(0))
        agent.update(1, 0, RIGHT, step_to(2))
    agent.update(1, 1, RIGHT, Step(2, 1, 0, 0.0, 0.5, False, False, False))
    assert agent.planner.tables.gain[1].tolist()[0] == agent.config.optimistic
    assert agent.q[1, 1, LEFT] < agent.q[1, 1, RIGHT] < 1.0
    assert agent.policy()[1, 1] == RIGHT


# --- parts that can be switched off


def test_a_threshold_that_does_not_grow_stays() -> None:
    agent = revising(trial("qr-ucb", errand(slip=0.2, limit=15), t_min=2, growth=0).rush(300))
    assert agent.threshold == 2
    assert 300 < agent.due <= 400


def test_counts_freeze_and_the_threshold_is_no_higher() -> None:
    told = {"t_min": 2, "growth": 10, "freeze_after": 4}
    tried = trial("qr-eb", errand(slip=0.2, limit=15), **told).rush(300)
    agent = revising(tried)
    assert agent.seen.arrays.n.max() == agent.threshold == 4
    assert agent.t == 300 > agent.samples
    again = tried.resumed(trial("qr-eb", errand(slip=0.2, limit=15), **told).agent)
    assert again.rush(50).state() == tried.rush(50).state()
    arrays = agent.snapshot()
    with pytest.raises(ModelError, match=r"seen\.n: more than 3"):
        trial("qr-eb", errand(), t_min=2, growth=10, freeze_after=3).agent.restore(arrays)
    with pytest.raises(ModelError, match="clock"):
        trial("qr-eb", errand(), t_min=2, growth=10).agent.restore(arrays)


@pytest.mark.parametrize("name", ["qr-ucb", "qr-eb"])
def test_rows_without_shrinkage_are_frequencies(name: str) -> None:
    agent = revising(trial(name, idle(), t_min=2, shrinkage="none"))
    for x in (1, 1, 0):
        agent.update(1, 0, LEFT, step_to(x))
    agent.update(1, 0, RIGHT, step_to(2))
    free = [2 / 3, 1 / 3, 0.0]
    if name == "qr-ucb":
        assert agent.planner.rows.prob[1, LEFT, :3].tolist() == pytest.approx(free)
        values = np.array([0.0, 0.3, 9.0, 0.0])
        agent.planner.tables.gain[0] = values  # what was never seen is not hoped for
        assert agent.planner.q_at(1, 0)[LEFT] <= 0.3
    else:
        assert agent.planner.rows.prob[1, LEFT, 2] < 1 / 3 / 4  # that of alpha = 1


def test_the_optimistic_policy_is_recommended_if_it_is_asked_for() -> None:
    told = {"t_min": 2, "recommend": "optimistic"}
    agent = revising(trial("qr-ucb", errand(slip=0.2, limit=15), **told).rush(60))
    assert (agent.q == agent.planner.q).all()
    assert (agent.policy() == agent.planner.q.argmax(axis=2)).all()


# --- scale


@pytest.mark.parametrize("name", ["qr-ucb", "qr-ucb-rm"])
def test_rewards_of_any_scale_are_learned_alike(name: str) -> None:
    states = []
    for size in (1.0, 2.0**-30):
        edges = [Edge("go", "key", "has_key"), Edge("has_key", "exit", "out", size)]
        machine = RewardMachine(edges, initial="go", success=["out"])
        tried = trial(name, errand(machine=machine, slip=0.2, limit=15), r_max=size).rush(700)
        states.append((revising(tried).seen.arrays.n.tolist(), tried.agent.policy().tolist()))
    assert states[0] == states[1]


# --- saving


def holding(value: float) -> Callable[[np.ndarray], Any]:
    def change(array: np.ndarray) -> np.ndarray:
        array.flat[0] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("seen.outcome", holding(99)),
        ("seen.tau", holding(-1)),
        ("task.n", holding(-1)),
        ("planner.prob", holding(-0.5)),
        ("planner.prob", holding(2.0)),
        ("planner.prob", lambda array: array[:, :, :1]),
        ("planner.reward", holding(np.nan)),
        ("planner.reward", holding(np.inf)),
        ("planner.base", holding(-np.inf)),
        ("planner.radius", holding(-1.0)),
        ("planner.radius", lambda array: array[:2]),
        ("planner.head", holding(99)),
        ("planner.head", holding(-1)),
        ("planner.link", lambda array: np.zeros_like(array)),
        ("planner.task.next_state", holding(7)),
        ("planner.task.prob", holding(3.0)),
        ("planner.task.label", holding(2)),
        ("planner.task.reward", lambda array: array[:1]),
        ("planner.value", holding(np.nan)),
        ("planner.done", lambda array: array.astype(float)),
        ("rows.counted", holding(10**6)),
        ("rows.alpha", holding(0.7)),
        ("clock.t", holding(3)),
        ("clock.due", holding(0)),
        ("clock.due", holding(10**9)),
    ],
)
def test_arrays_that_no_run_leads_to_are_refused(
    name: str, change: Callable[[np.ndarray], Any]
) -> None:
    problem = errand(slip=0.2, limit=15)
    arrays = trial("qr-ucb", problem).rush(150).agent.snapshot()
    arrays[name] = change(arrays[name])
    with pytest.raises(ModelError):
        trial("qr-ucb", problem).agent.restore(arrays)
