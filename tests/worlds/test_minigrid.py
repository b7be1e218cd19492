"""MiniGrid with numbered states, against MiniGrid itself."""

from __future__ import annotations

import pickle
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest

import qrmax
from qrmax.errors import MissingExtraError, ModelError, ParameterError, QRMaxWarning, SizeError

pytest.importorskip("minigrid")

ENVIRONMENTS = [
    "Empty-5x5",
    "DoorKey-5x5",
    "Unlock",
    "LavaGapS5",
    "FourRooms",
    "KeyCorridorS3R1",
    "RedBlueDoors-6x6",
    "ObstructedMaze-1Dlh",  # the key is in a box
]
NO_DROP = ("left", "right", "forward", "pickup", "toggle")
KEY_FIRST = "F(carrying_key & F(door_open & F at_goal))"


@cache
def world(name: str) -> Any:
    actions = NO_DROP if name.startswith("Obstructed") else None
    return qrmax.minigrid(f"MiniGrid-{name}-v0", seed=3, actions=actions)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_model_is_what_minigrid_does(name: str) -> None:
    """A random walk in an environment of its own, beside the numbers and the table."""
    numbered = world(name)
    real = gymnasium.make(f"MiniGrid-{name}-v0")
    rng = np.random.default_rng(1)
    for _ in range(3):
        real.reset(seed=3)
        s, _ = numbered.reset()
        assert s == 0
        for _ in range(90):
            a = int(rng.integers(numbered.action_space.n))
            _, reward, terminated, truncated, _ = real.step(
                real.unwrapped.actions[numbered.action_names[a]]
            )
            t, paid, ended, cut, _ = numbered.step(a)
            assert (ended, cut) == (terminated, truncated)
            assert paid == (1.0 if float(reward) > 0.0 else 0.0)
            assert numbered.P[s][a] == [(1.0, t, paid, ended)]
            inner = real.unwrapped
            state = numbered.states[t]
            assert (state.cell, state.direction) == (tuple(inner.agent_pos), inner.agent_dir)
            assert (numbered.unwrapped.grid.encode() == inner.grid.encode()).all()
            s = t
            if terminated or truncated:
                break


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_labels_say_what_is_on_the_grid(name: str) -> None:
    numbered = world(name)
    rng = np.random.default_rng(2)
    s, _ = numbered.reset()
    for _ in range(200):
        env, label = numbered.unwrapped, numbered.labels(s)
        ahead = env.grid.get(*env.front_pos)
        here = env.grid.get(*env.agent_pos)
        doors = [thing for thing in env.grid.grid if thing is not None and thing.type == "door"]
        assert ("carrying" in label) == (env.carrying is not None)
        if env.carrying is not None:
            assert f"carrying_{env.carrying.color}_{env.carrying.type}" in label
        assert ("door_open" in label) == any(door.is_open for door in doors)
        locked = {f"{door.color}_door_locked" for door in doors if door.is_locked}
        assert {name for name in label if name.endswith("door_locked")} - {"door_locked"} == locked
        assert ("facing_key" in label) == (ahead is not None and ahead.type == "key")
        assert ("at_goal" in label) == (here is not None and here.type == "goal")
        s, _, terminated, truncated, _ = numbered.step(int(rng.integers(numbered.action_space.n)))
        if terminated or truncated:
            s, _ = numbered.reset()


def test_the_layout_is_the_same_in_every_episode_and_another_with_another_seed() -> None:
    numbered = world("FourRooms")
    numbered.reset(seed=1)
    first = numbered.unwrapped.grid.encode()
    numbered.reset(seed=2)
    assert (numbered.unwrapped.grid.encode() == first).all()
    other = qrmax.minigrid("MiniGrid-FourRooms-v0", seed=4)
    other.reset()
    assert (other.unwrapped.grid.encode() != first).any()


def shortest(numbered: Any) -> int:
    """The least number of steps to MiniGrid's own reward, by a search that plans nothing."""
    front, seen, steps = {0}, {0}, 0
    while front:
        steps += 1
        moves = [entry for s in front for (entry,) in numbered.P[s].values()]
        if any(reward > 0.0 for _, _, reward, _ in moves):
            return steps
        front = {t for _, t, _, ended in moves if not ended} - seen
        seen |= front
    raise AssertionError


@pytest.mark.parametrize("name", ["Empty-5x5", "DoorKey-5x5", "Unlock", "LavaGapS5"])
def test_the_exact_optimum_is_the_shortest_way(name: str) -> None:
    numbered = world(name)
    mdp = qrmax.TabularMDP.from_gymnasium(numbered)
    nothing = qrmax.RewardMachine([], initial="go", states=["go"])
    problem = qrmax.Problem(mdp, nothing, [()], np.zeros(mdp.n_states, dtype=int))
    assert qrmax.solve(problem, 0.9).start_value == pytest.approx(0.9 ** (shortest(numbered) - 1))


def test_a_task_is_learned_near_the_optimum_and_played_in_minigrid() -> None:
    env = qrmax.minigrid("MiniGrid-DoorKey-5x5-v0", KEY_FIRST, seed=3)
    problem = qrmax.Problem.from_gymnasium(env)
    assert problem.max_episode_steps == 250
    run = qrmax.train("qrmax-rm", problem, seed=1, t_env=1)
    assert run.reason == "exact"
    moments = [*run.watch(env)]
    assert moments[-1].info["success"]
    assert {"at_goal", "at_green_goal", "door_open"} <= {*moments[-1].info["label"]}
    assert run.evaluation is not None
    assert len(moments) - 1 == run.evaluation.nominal_length


def test_agents_learn_in_the_environment_itself_as_well() -> None:
    env = qrmax.minigrid(
        "MiniGrid-Empty-5x5-v0", "F(corner & F at_goal)", places={"corner": (3, 1)}
    )
    run = qrmax.train("qrmax-rm", env, seed=1, t_env=1, max_steps=1500)
    last = [*run.watch()][-1]
    assert last.info["success"]
    assert last.reward == 1.0  # what MiniGrid pays is left out
    assert pickle.loads(pickle.dumps(env)).reset()[0] == env.reset()[0]


def test_fewer_actions_make_fewer_states() -> None:
    few = qrmax.minigrid("MiniGrid-DoorKey-5x5-v0", actions=NO_DROP, seed=3)
    assert few.action_names == [*NO_DROP]
    assert few.action_space.n == 5
    assert len(few.states) < len(world("DoorKey-5x5").states) / 2
    assert shortest(few) == shortest(world("DoorKey-5x5"))
    with pytest.raises(ParameterError, match="action is 5; allowed: 0 to 4, left, right"):
        few.step(5)


def test_what_cannot_be_numbered_is_refused() -> None:
    make = qrmax.minigrid
    with pytest.raises(ModelError, match="DynamicObstaclesEnv moves things at random"):
        make("MiniGrid-Dynamic-Obstacles-5x5-v0")
    with pytest.raises(ModelError, match="has instructions that depend on the history"):
        make("BabyAI-GoToRedBall-v0")
    with pytest.raises(SizeError, match="more than 50 states; give fewer actions"):
        make("MiniGrid-DoorKey-5x5-v0", max_states=50)
    with pytest.raises(ParameterError, match="needed: a MiniGrid environment, or the id of one"):
        make(gymnasium.make("FrozenLake-v1"))
    with pytest.raises(ParameterError, match=r"actions are .*fly.*; allowed: some of left, right"):
        make("MiniGrid-Empty-5x5-v0", actions=["fly"])
    with pytest.raises(ParameterError, match=r"place 'far' is \(9, 1\); allowed: columns 0 to 4"):
        make("MiniGrid-Empty-5x5-v0", places={"far": (9, 1)})
    with pytest.raises(ParameterError, match="render_mode given beside an environment"):
        make(gymnasium.make("MiniGrid-Empty-5x5-v0"), render_mode="ansi")
    with pytest.warns(QRMaxWarning, match="did you mean 'carrying_key'"):
        make("MiniGrid-DoorKey-5x5-v0", "F carying_key", seed=3)


def test_without_minigrid_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "minigrid", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'qrmax\[minigrid\]'"):
        qrmax.minigrid("MiniGrid-Empty-5x5-v0")
