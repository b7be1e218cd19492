"""Continuous worlds as Gymnasium environments."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import qrmax
from gym_worlds import in_order
from planes import plane_of, walk
from qrmax.errors import ParameterError, UnknownNameError
from qrmax.problems.continuous_problem import ContinuousProblem, PlaneSimulator
from qrmax.worlds.catalog import all_names, is_continuous
from qrmax.worlds.gymnasium import ContinuousEnv

KINDS = ["FrozenLake-abc", "Office-map1-exp1", "Line-ab", "Corridor-abc", "Bottleneck-abc"]


@pytest.mark.parametrize("mode", [None, "ansi", "rgb_array"])
@pytest.mark.parametrize("kind", KINDS)
def test_gymnasiums_own_checker_has_nothing_to_say(kind: str, mode: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(f"qrmax/Continuous{kind}-v0", render_mode=mode)
        check_env(env.unwrapped)


def env_id(name: str) -> str:
    _, world, *rest = name.split("/")
    return f"qrmax/Continuous{world.title().replace('-', '')}-{'-'.join(rest)}-v0"


def test_every_continuous_problem_is_registered() -> None:
    names = [*filter(is_continuous, all_names())]
    assert {f"qrmax/Continuous{kind}-v0" for kind in KINDS} <= {*map(env_id, names)}
    for name in names:
        spec = gymnasium.spec(env_id(name))
        assert (spec.kwargs, spec.max_episode_steps) == ({"problem": name}, 1000)


def episode(env: Any, seed: int, actions: list[int]) -> list[Any]:
    seen = [env.reset(seed=seed)[0]]
    for action in actions:
        observation, reward, ended, _, info = env.step(action)
        seen.append((observation, reward, ended, info["r_env"], info["r_task"], info["label"]))
        if ended:
            break
    return seen


@pytest.mark.parametrize("name", ["continuous/line/ab", "continuous/office/map1/exp5"])
def test_an_episode_is_that_of_the_simulator_with_the_same_generator(name: str) -> None:
    env = gymnasium.make(env_id(name), noise=0.3)
    problem = env.unwrapped.problem
    simulator = PlaneSimulator(problem, np.random.default_rng(7), lambda seen, _: tuple(seen))
    actions = np.random.default_rng(1).integers(0, problem.n_actions, 60).tolist()
    first, *seen = episode(env, 7, actions)
    simulator.reset()
    assert (tuple(first["state"]), first["task"]) == (simulator.s, simulator.q)
    for (observation, reward, ended, *told), action in zip(seen, actions, strict=False):
        step = simulator.step(action)
        assert (tuple(observation["state"]), observation["task"]) == (step.s, step.q)
        assert (reward, ended) == (step.r_env + step.r_task, step.terminated)
        assert told == [step.r_env, step.r_task, tuple(sorted(problem.labels[step.label]))]
    assert len({tuple(part[0]["state"]) for part in seen}) > 3


def test_another_seed_gives_another_episode() -> None:
    env = gymnasium.make("qrmax/ContinuousFrozenLake-abc-v0")
    ends = [episode(env, seed, [2, 2, 2])[-1][0]["state"].tolist() for seed in (3, 3, 4)]
    assert ends[0] == ends[1] != ends[2]


@pytest.mark.parametrize("kind", KINDS)
def test_observations_are_always_in_their_space(kind: str) -> None:
    """Also at the borders, where moves with much noise end most of the time."""
    env = gymnasium.make(f"qrmax/Continuous{kind}-v0", noise=0.5, decorations_terminate=False)
    space, actions = env.observation_space, np.random.default_rng(2)
    assert space["state"].dtype == np.float64
    env.reset(seed=2)
    for _ in range(300):
        observation, *_ = env.step(actions.integers(0, env.action_space.n))
        assert observation in space
        assert (observation["state"] < space["state"].high).all()


def test_info_splits_the_reward_and_names_what_is_true() -> None:
    env = ContinuousEnv(walk(". * A", noise=0.0, step=1.0, decoration_penalty=7.0))
    env.reset(seed=0)
    _, reward, ended, cut, info = env.step(0)
    assert (reward, ended, cut) == (-7.0, True, False)
    assert info == {
        "r_env": -7.0,
        "r_task": 0.0,
        "label": ("decoration",),
        "success": False,
        "world_ended": True,
    }
    assert env.step(0)[1:3] == (0.0, True)  # it is over, and stays so
    assert env.position == (1.5, 0.5)


def test_success_is_told_and_the_world_has_not_ended_it() -> None:
    env = ContinuousEnv(walk(". . A", noise=0.0, step=1.0))
    assert env.reset(seed=0)[1] == {
        "r_env": 0.0,
        "r_task": 0.0,
        "label": (),
        "success": False,
        "world_ended": False,
    }
    env.step(0)
    _, reward, ended, _, info = env.step(0)
    assert (reward, ended, info["success"], info["world_ended"]) == (1.0, True, True, False)
    assert env.task == 1


def test_a_world_made_directly_is_cut_off_where_its_problem_says() -> None:
    env = ContinuousEnv("continuous/line/ab", max_episode_steps=3)
    for _ in range(2):
        env.reset(seed=0)
        assert [env.step(1)[3] for _ in range(3)] == [False, False, True]


def test_a_registered_world_is_cut_off_by_gymnasium_and_once_only() -> None:
    env = gymnasium.make("qrmax/ContinuousLine-ab-v0", max_episode_steps=4)
    env.reset(seed=0)
    assert [env.step(1)[3] for _ in range(4)] == [False, False, False, True]
    assert env.unwrapped.problem.max_episode_steps == 1000
    env = gymnasium.make("qrmax/ContinuousLine-ab-v0", max_episode_steps=-1)
    env.reset(seed=0)
    assert not any(env.step(1)[3] for _ in range(1001))


def test_a_map_and_a_task_of_ones_own_have_an_id(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text("start: 0,0\n\n. c O\n\n. . .")
    env = gymnasium.make(
        "qrmax/ContinuousOffice-v0", map=tmp_path / "my.txt", task="exp1", noise=0.0, step=1.0
    )
    env.reset(seed=0)
    env.step(1)
    assert env.step(1)[1:3] == (1.0, True)


def test_options_reach_the_problem() -> None:
    env = gymnasium.make(
        "qrmax/ContinuousOffice-map1-exp1-v0",
        step=0.5,
        noise=0.1,
        decoration_penalty=2.0,
        decorations_terminate=False,
    )
    plane = env.unwrapped.problem.plane
    assert (plane.direction.max(), plane.noise.max(), plane.reward.min()) == (0.5, 0.1, -2.0)


def test_a_misspelt_option_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'noise'"):
        gymnasium.make("qrmax/ContinuousLine-ab-v0", nose=0.1)


@pytest.mark.parametrize("action", [-1, 2, "on", 0.5])
def test_an_action_that_does_not_exist_is_refused(action: object) -> None:
    env = ContinuousEnv("continuous/line/ab")
    env.reset(seed=0)
    with pytest.raises(ParameterError, match="allowed: 0 to 1"):
        env.step(action)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"problem": "office/map1/exp1"}, "needed: a ContinuousProblem"),
        ({"problem": None}, "needed: a ContinuousProblem"),
        ({"problem": walk(". A"), "noise": 0.1}, "noise given beside a problem"),
        ({"problem": walk(". A"), "render_mode": "human"}, "render_mode is 'human'"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        ContinuousEnv(**arguments)


def test_a_problem_without_a_map_can_be_played_but_not_shown() -> None:
    problem = ContinuousProblem(
        plane_of(np.zeros((1, 3, 2), dtype=bool), step=1.0),
        in_order("A"),
        [(), ("A",)],
        [0, 0, 1],
        terminal=[False] * 3,
        start=0,
    )
    env = ContinuousEnv(problem)
    env.reset(seed=0)
    env.step(1)
    assert env.step(1)[1] == 1.0
    with pytest.raises(ParameterError, match="no map to show"):
        ContinuousEnv(problem, render_mode="ansi")


def test_an_environment_can_be_pickled() -> None:
    env = ContinuousEnv("continuous/line/ab")
    env.reset(seed=3)
    other = pickle.loads(pickle.dumps(env))
    assert [env.step(0)[0] for _ in range(5)] == [other.step(0)[0] for _ in range(5)]


def test_a_random_task_is_played_with_the_same_generator() -> None:
    edges = [qrmax.Edge("go", "A", "there", 1.0, probability=0.5)]
    task = qrmax.RewardMachine(edges, initial="go", success=["there"])
    env = ContinuousEnv(walk(". A A A", task, noise=0.0, step=1.0))
    lengths = []
    for seed in range(200):
        env.reset(seed=seed)
        lengths.append(1)
        while not env.step(0)[2]:
            lengths[-1] += 1
    assert np.mean(lengths) == pytest.approx(2.0, abs=0.5)
    assert min(lengths) == 1 < max(lengths)


def test_the_text_picture_shows_the_cell_the_position_and_the_task() -> None:
    env = ContinuousEnv("continuous/frozen-lake/abc", render_mode="ansi", noise=0.0)
    env.reset(seed=0)
    assert env.render().split("\n")[0] == "B . . . . @ . . . ."
    env.step(2)
    lines = env.render().split("\n")
    assert (lines[0], lines[2]) == ("B . . . . . . . . .", ". . . . . @ . . . .")
    assert lines[-3:] == ["position: 5.500, 1.150", "task state: start  (moved down)", ""]


def test_moves_on_a_line_have_their_names() -> None:
    env = ContinuousEnv("continuous/line/ab", render_mode="ansi", noise=0.0)
    env.reset(seed=0)
    for action, name in enumerate(("right", "left")):
        env.step(action)
        assert f"(moved {name})" in env.render()


def centre(image: np.ndarray) -> np.ndarray:
    """The middle of what is red, in pixels: x, y."""
    red = (image[:, :, 0] > 200) & (image[:, :, 1] < 120)
    return np.argwhere(red).mean(axis=0)[::-1]


def test_the_colour_picture_shows_the_walker_at_its_position() -> None:
    env = ContinuousEnv("continuous/frozen-lake/abc", render_mode="rgb_array", noise=0.1)
    env.reset(seed=4)
    for action in (2, 2, 1, 2, 2, 3, 3):
        image = env.render()
        np.testing.assert_allclose(centre(image) / 32.0, env.position, atol=0.05)
        env.step(action)
    assert (image.shape, image.dtype) == ((321, 321, 3), np.uint8)


def test_a_walker_at_the_border_is_drawn_as_far_as_there_is_a_picture() -> None:
    env = ContinuousEnv(walk("A .\n\n. .", start="1,1", noise=0.0), render_mode="rgb_array")
    env.reset(seed=0)
    for action in (1, 2):
        env.step(action)
    assert (centre(env.render()) > 54).all()


def test_rendering_without_a_mode_shows_nothing_and_says_so() -> None:
    env = ContinuousEnv("continuous/line/ab")
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="shows nothing"):
        assert env.render() is None
