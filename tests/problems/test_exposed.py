"""Exact models of Gymnasium environments that expose them, against the environments themselves."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import qrmax
from gym_worlds import TAXI, Loop
from qrmax.errors import ModelError, ParameterError

GAMMA = 0.97
IDS: list[tuple[str, dict[str, Any]]] = [
    ("FrozenLake-v1", {}),
    ("FrozenLake8x8-v1", {"is_slippery": False}),
    ("CliffWalking-v1", {"is_slippery": True}),
    (TAXI, {}),
    (TAXI, {"is_rainy": True}),
]


def dense_values(env: Any, gamma: float) -> Any:
    """Policy iteration on P as dense matrices, which knows nothing of our arrays."""
    table = env.unwrapped.P
    n, m = len(table), len(table[0])
    moves, reward = np.zeros((n, m, n)), np.zeros((n, m))
    for s in range(n):
        for a in range(m):
            for p, t, r, terminated in table[s][a]:
                reward[s, a] += p * r
                moves[s, a, t] += 0.0 if terminated else p
    policy = np.zeros(n, dtype=int)
    while True:
        rows = np.arange(n)
        value = np.linalg.solve(np.eye(n) - gamma * moves[rows, policy], reward[rows, policy])
        q = reward + gamma * moves @ value
        better = np.where(q.max(axis=1) > q[rows, policy] + 1e-10, q.argmax(axis=1), policy)
        if (better == policy).all():
            return value
        policy = better


def nothing() -> qrmax.RewardMachine:
    return qrmax.RewardMachine([], initial="go", states=["go"])


@pytest.mark.parametrize(("env_id", "options"), IDS)
def test_values_are_those_of_a_dense_solve_of_the_table(
    env_id: str, options: dict[str, Any]
) -> None:
    env = gymnasium.make(env_id, **options)
    mdp = qrmax.TabularMDP.from_gymnasium(env)
    n = int(env.observation_space.n)  # type: ignore[attr-defined]
    problem = qrmax.Problem(mdp, nothing(), [()], np.zeros(mdp.n_states, dtype=int))
    value = qrmax.solve(problem, GAMMA).value[:, 0]
    acted_in = ~mdp.terminal[:n]
    wanted = dense_values(env, GAMMA)
    np.testing.assert_allclose(value[:n][acted_in], wanted[acted_in], rtol=1e-9, atol=1e-9)
    assert (value[mdp.terminal] == 0.0).all()


def test_a_state_in_which_only_some_transitions_end_gets_a_terminal_copy() -> None:
    taxi = qrmax.TabularMDP.from_gymnasium(gymnasium.make(TAXI))
    assert taxi.n_states == 504  # the four places, with the passenger delivered there
    assert np.flatnonzero(taxi.terminal).tolist() == [500, 501, 502, 503]
    lake = qrmax.TabularMDP.from_gymnasium(gymnasium.make("FrozenLake-v1"))
    assert np.flatnonzero(lake.terminal).tolist() == [5, 7, 11, 12, 15]


class Chain(gymnasium.Env[int, int]):
    """Any table of transitions."""

    def __init__(self, table: Any, start: Any = (1.0, 0.0)) -> None:
        self.P = table
        self.observation_space = spaces.Discrete(2)
        self.action_space = spaces.Discrete(1)
        self.initial_state_distrib = np.array(start)


def test_a_start_in_which_an_episode_can_end_is_no_end_itself() -> None:
    env = Chain(
        {0: {0: [(0.5, 0, 1.0, True), (0.5, 1, 0.0, False)]}, 1: {0: [(1.0, 0, 4.0, True)]}}
    )
    mdp = qrmax.TabularMDP.from_gymnasium(env)
    assert mdp.terminal.tolist() == [False, False, True]
    problem = qrmax.Problem(mdp, nothing(), [()], [0, 0, 0])
    assert qrmax.solve(problem, 0.5).start_value == pytest.approx(0.5 + 0.5 * 0.5 * 4.0)


GOOD = {0: {0: [(1.0, 0, 0.0, False)]}, 1: {0: [(1.0, 1, 0.0, False)]}}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({0: GOOD[0]}, "does not have a list for each of the 2 states and 1 actions"),
        ({0: {0: [(1.0, 2, 0.0, False)]}, 1: GOOD[1]}, r"P\[0\]\[0\]\[0\] is \(1.0, 2"),
        ({0: {0: [(1.0, 0, 0.0)]}, 1: GOOD[1]}, r"P\[0\]\[0\]\[0\] is \(1.0, 0, 0.0\)"),
        ({0: GOOD[0], 1: {0: [(0.9, 1, 0.0, False)]}}, "sum of prob is 0.9 at state 1, action 0"),
    ],
)
def test_a_table_that_is_no_model_is_refused(table: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        qrmax.TabularMDP.from_gymnasium(Chain(table))


def test_environments_whose_model_is_not_the_table_are_refused() -> None:
    make = qrmax.TabularMDP.from_gymnasium
    lake = gymnasium.make("FrozenLake-v1")
    with pytest.raises(ModelError, match="wrapped in TransformReward, which may change"):
        make(gymnasium.wrappers.TransformReward(lake, lambda reward: 2.0 * float(reward)))
    with pytest.raises(ModelError, match="fickle_passenger"):
        make(gymnasium.make(TAXI, fickle_passenger=True))
    with pytest.raises(ModelError, match="CartPole-v1 exposes no model"):
        make(gymnasium.make("CartPole-v1"))
    with pytest.raises(ModelError, match="exposes no model"):
        make(Loop())
    with pytest.raises(ModelError, match="has a task, which an MDP leaves out"):
        make(lake_task())
    with pytest.raises(ParameterError, match="env is 'FrozenLake-v1'; needed: an environment"):
        make("FrozenLake-v1")


# --- with a task

NAMES = {3: {"corner"}, 0: {"home"}}


def lake_task(**options: Any) -> qrmax.TaskWrapper:
    env = gymnasium.make("FrozenLake-v1", max_episode_steps=60)
    return qrmax.TaskWrapper(
        env, "F(corner & F home)", labels=lambda seen, _: NAMES.get(seen, ()), **options
    )


def returns(env: Any, policy: Any, episodes: int, gamma: float) -> Any:
    """What a policy [s, q] brings in the environment itself."""
    found = []
    for seed in range(episodes):
        seen, _ = env.reset(seed=seed)
        total, discount, over = 0.0, 1.0, False
        while not over:
            seen, reward, terminated, truncated, _ = env.step(policy[seen["state"], seen["task"]])
            total, discount = total + discount * reward, discount * gamma
            over = terminated or truncated
        found.append(total)
    return np.array(found)


def test_the_exact_value_is_what_the_environment_brings() -> None:
    env = lake_task()
    problem = qrmax.Problem.from_gymnasium(env)
    assert problem.max_episode_steps == 60
    policy = qrmax.solve(problem, GAMMA).policy
    exact = qrmax.evaluate(problem, policy, GAMMA).start_value
    sampled = returns(env, policy, 400, GAMMA)
    assert abs(sampled.mean() - exact) < 4.0 * sampled.std() / math.sqrt(len(sampled))
    assert exact > 0.1  # and not 0 = 0


def test_training_stops_near_the_exact_optimum_and_plays_in_the_environment(tmp_path: Path) -> None:
    env = lake_task(env_reward=False)
    problem = qrmax.Problem.from_gymnasium(env)
    run = qrmax.train("qrmax-rm", problem, seed=3, gamma=GAMMA, stop="exact", t_env=60)
    assert run.reason == "exact"
    assert run.gap is not None
    assert run.gap < 0.05
    ends = [[*run.watch(env, seed=seed)][-1] for seed in range(60)]
    share = sum(end.info["success"] for end in ends) / len(ends)
    assert run.evaluation is not None
    success = run.evaluation.success
    assert abs(share - success) < 4.0 * math.sqrt(success * (1.0 - success) / len(ends))
    run.save(tmp_path / "lake.run")
    assert qrmax.load(tmp_path / "lake.run").act({"state": 0, "task": 0}) == run.act(
        {"state": 0, "task": 0}
    )


def test_a_task_is_given_beside_the_environment_as_well() -> None:
    plain = gymnasium.make("FrozenLake-v1", max_episode_steps=60)
    beside = qrmax.Problem.from_gymnasium(
        plain, "F(corner & F home)", labels=lambda seen, _: NAMES.get(seen, ())
    )
    inside = qrmax.Problem.from_gymnasium(lake_task())
    assert qrmax.solve(beside).start_value == qrmax.solve(inside).start_value
    assert beside.name == "FrozenLake-v1/F(corner & F home)"
    with pytest.raises(ParameterError, match="needs a task, and either labels"):
        qrmax.Problem.from_gymnasium(plain)
    with pytest.raises(ParameterError, match="has a task already"):
        qrmax.Problem.from_gymnasium(lake_task(), "F home")
    with pytest.raises(ParameterError, match="asks info for 'prob', which is not part"):
        qrmax.Problem.from_gymnasium(plain, "F home", labels=lambda _, info: {str(info["prob"])})


def test_what_the_environment_pays_can_be_left_out() -> None:
    with_it = qrmax.Problem.from_gymnasium(lake_task())
    without = qrmax.Problem.from_gymnasium(lake_task(env_reward=False))
    assert with_it.reward_range()[1] == 2.0
    assert without.reward_range()[1] == 1.0


def fell(before: int, _: int, cell: int, __: Any) -> set[str]:
    """A fall leads back to the start, which is otherwise reached from itself or from above."""
    return {"fall"} if cell == 36 and before not in (24, 36) else {"goal"} if cell == 47 else set()


def test_labels_of_steps_make_states_that_the_environment_is_played_with(tmp_path: Path) -> None:
    world = gymnasium.make("CliffWalking-v1", is_slippery=True, max_episode_steps=300)
    env = qrmax.TaskWrapper(world, "F goal & G !fall", transition_labels=fell, env_reward=False)
    problem = qrmax.Problem.from_gymnasium(env)
    assert problem.n_states == 39  # 38 cells off the cliff; the start once more, after a fall
    run = qrmax.train("qrmax-rm", problem, seed=1, gamma=0.99, t_env=30)
    run.save(tmp_path / "cliff.run")
    again = qrmax.load(tmp_path / "cliff.run")
    assert run.evaluation is not None
    success = run.evaluation.success
    for one in (run, again):
        ends = [[*one.watch(env, seed=seed)][-1] for seed in range(50)]
        share = sum(end.info["success"] for end in ends) / len(ends)
        assert abs(share - success) <= 4.0 * math.sqrt(success * (1.0 - success) / 50) + 1e-9
    ours = [*run.watch(qrmax.ProblemEnv(problem), seed=0)][-1]  # it shows the states themselves
    assert ours.info["success"]
    with pytest.raises(ParameterError, match=r"give both, run.act\(observation, info\)"):
        run.act({"state": 36, "task": 0})
