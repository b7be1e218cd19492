import warnings
from collections import Counter
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import assume, given, settings

import qrmax
from qrmax.draw import draw
from qrmax.errors import ParameterError, UnknownNameError
from qrmax.worlds.gymnasium import OfficeEnv, ProblemEnv
from qrmax.worlds.office import WORLD as OFFICE
from random_problems import problems

SAMPLES = 4000


@pytest.mark.parametrize("mode", [None, "ansi", "rgb_array"])
@pytest.mark.parametrize("name", ["map0-exp0", "map1-exp5", "map4-exp6"])
def test_gymnasiums_own_checker_has_nothing_to_say(name: str, mode: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(f"qrmax/Office-{name}-v0", render_mode=mode)
        check_env(env.unwrapped)


def test_every_problem_of_the_paper_is_registered() -> None:
    for name in OFFICE.problem_names():
        _, map_name, task = name.split("/")
        spec = gymnasium.spec(f"qrmax/Office-{map_name}-{task}-v0")
        assert spec.max_episode_steps == 1000


def test_following_the_optimal_policy_is_worth_what_planning_says() -> None:
    env = gymnasium.make("qrmax/Office-map1-exp1-v0")
    world = env.unwrapped
    assert isinstance(world, ProblemEnv)
    policy = qrmax.solve(world.problem).policy
    exact = qrmax.evaluate(world.problem, policy)
    successes, lengths = 0, []
    for episode in range(SAMPLES):
        seen, info = env.reset(seed=episode)
        length, ended, cut = 0, False, False
        while not ended and not cut:
            length += 1
            seen, reward, ended, cut, info = env.step(policy[seen["state"], seen["task"]])
            assert reward == info["r_env"] + info["r_task"]
        successes += info["success"]
        lengths += [length] if info["success"] else []
    deviation = np.sqrt(exact.success * (1 - exact.success) / SAMPLES)
    assert abs(successes / SAMPLES - exact.success) < 5 * deviation
    assert np.mean(lengths) == pytest.approx(exact.mean_length, rel=0.05)


@given(problems())
@settings(max_examples=8)
def test_transition_frequencies_agree_with_the_model(problem: qrmax.Problem) -> None:
    assume(problem.start()[~problem.done()].any())
    env = ProblemEnv(problem)
    env.reset(seed=1)
    product, n_q = problem.product(), problem.n_task_states
    for pair in np.flatnonzero(~product.terminal)[:2]:
        for action in range(problem.n_actions):
            seen = np.zeros(product.n_states)
            for _ in range(SAMPLES):
                env.state, env.task = divmod(int(pair), n_q)
                observation, *_ = env.step(action)
                seen[observation["state"] * n_q + observation["task"]] += 1
            expected = np.zeros(product.n_states)
            np.add.at(expected, product.succ[pair, action], product.prob[pair, action])
            assert (seen[expected == 0] == 0).all()
            expected = np.minimum(expected, 1.0)  # it was a sum
            deviation = np.sqrt(expected * (1 - expected) / SAMPLES)
            assert (np.abs(seen / SAMPLES - expected) <= 5 * deviation + 1e-12).all()


def test_the_same_seed_gives_the_same_episode() -> None:
    def episode(seed: int) -> list[int]:
        env = gymnasium.make("qrmax/Office-map2-exp1-v0")
        env.reset(seed=seed)
        return [int(env.step(move % 4)[0]["state"]) for move in range(10)]

    assert episode(3) == episode(3)
    assert len({tuple(episode(seed)) for seed in range(5)}) > 1


def test_a_world_is_cut_off_at_its_limit_and_says_so() -> None:
    env = gymnasium.make("qrmax/Office-map0-exp0-v0", max_episode_steps=3)
    env.reset(seed=0)
    outcomes = [env.step(0)[2:4] for _ in range(3)]
    assert outcomes == [(False, False), (False, False), (False, True)]


def test_a_world_made_directly_is_cut_off_where_its_problem_says() -> None:
    env = OfficeEnv("map0", "exp0", max_episode_steps=3)
    for _ in range(2):
        env.reset(seed=0)
        assert [env.step(0)[3] for _ in range(3)] == [False, False, True]


def test_a_map_and_a_task_of_ones_own_have_an_id(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text("start: 0,0\n\n. c O\n")
    env = gymnasium.make("qrmax/Office-v0", map=tmp_path / "my.txt", task="exp1", slip=0.0)
    env.reset(seed=0)
    env.step(1)
    assert env.step(1)[1:3] == (1.0, True)


def test_a_misspelt_option_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'slip'"):
        gymnasium.make("qrmax/Office-map1-exp1-v0", slipp=0.1)


def test_info_splits_the_reward_and_names_what_is_true() -> None:
    env = OfficeEnv("map1", "exp1", slip=0.0, decoration_penalty=7.0)
    env.reset(seed=0)
    env.step(1)
    _, reward, ended, _, info = env.step(1)
    assert (reward, ended) == (-7.0, True)
    assert (info["r_env"], info["r_task"], info["label"]) == (-7.0, 0.0, ("decoration",))
    assert (info["success"], info["world_ended"]) == (False, True)
    assert env.step(1)[1:3] == (0.0, True)  # it is over, and stays so


def test_the_text_picture_shows_the_walker_and_the_task() -> None:
    env = OfficeEnv("map1", "exp1", render_mode="ansi", slip=0.0)
    env.reset(seed=0)
    env.step(1)
    assert env.render().split("\n")[14] == ". A . @ * . . * . . D ."
    assert "task state: start  (moved right)" in env.render()


def test_the_colour_picture_shows_the_walker_where_it_is() -> None:
    env = OfficeEnv("map1", "exp1", render_mode="rgb_array", slip=0.0)
    env.reset(seed=0)
    before = env.render()
    env.step(1)
    after = env.render()
    assert before.shape == (9 * 32 + 1, 12 * 32 + 1, 3)
    assert before.dtype == np.uint8
    moved = np.argwhere((before != after).any(axis=2)) // 32
    assert {tuple(cell) for cell in moved.tolist()} == {(7, 2), (7, 3)}


@pytest.mark.parametrize("action", [-1, 4, "up", 1.5])
def test_an_action_that_does_not_exist_is_refused(action: object) -> None:
    env = OfficeEnv("map1", "exp1")
    env.reset(seed=0)
    with pytest.raises(ParameterError, match="allowed: 0 to 3"):
        env.step(action)


def test_an_unknown_render_mode_is_refused() -> None:
    with pytest.raises(ParameterError, match="render_mode"):
        OfficeEnv("map1", "exp1", render_mode="human")


def gamble(width: int = 1) -> qrmax.Problem:
    """A world that goes on, and a task that pays 1, 5 or nothing each time, and ends with 0.1."""
    edges = [
        qrmax.Edge("play", "true", "play", 1.0, probability=0.4),
        qrmax.Edge("play", "true", "play", 5.0, probability=0.2),
        qrmax.Edge("play", "true", "over", probability=0.1),
    ]
    machine = qrmax.RewardMachine(
        edges, initial="play", success=["over"], consume_initial=False, name="gamble"
    )
    world = qrmax.TabularMDP([[[*range(width)]]] * width, [[[1 / width] * width]] * width)
    return qrmax.Problem(world, machine, [()], [0] * width)


def test_a_random_machine_pays_and_moves_as_often_as_it_should() -> None:
    env = ProblemEnv(gamble())
    env.reset(seed=2)
    seen = Counter[tuple[int, float]]()
    for _ in range(SAMPLES):
        env.task = 0
        observation, reward, ended, _, info = env.step(0)
        assert (reward, ended) == (info["r_task"], info["success"])
        seen[int(observation["task"]), reward] += 1
    for outcome, chance in {(0, 1.0): 0.4, (0, 5.0): 0.2, (1, 0.0): 0.1, (0, 0.0): 0.3}.items():
        deviation = np.sqrt(chance * (1 - chance) / SAMPLES)
        assert abs(seen[outcome] / SAMPLES - chance) < 5 * deviation
    assert seen.total() == SAMPLES


def test_the_same_seed_gives_the_same_episode_also_where_the_task_is_random() -> None:
    env = ProblemEnv(gamble(width=5))

    def episode(seed: int) -> list[tuple[int, float]]:
        env.reset(seed=seed)
        steps = [env.step(0) for _ in range(10)]
        return [(int(observation["state"]), reward) for observation, reward, *_ in steps]

    assert episode(3) == episode(3)
    assert len({tuple(episode(seed)) for seed in range(5)}) > 1


def test_the_world_draws_first_and_the_machine_only_where_it_is_random() -> None:
    problem = gamble(width=5)
    quiet = qrmax.Problem(problem.mdp, qrmax.RewardMachine([], initial="s"), [()], [0] * 5)
    for part, is_random in ((problem, True), (quiet, False)):
        env, rng = ProblemEnv(part), np.random.default_rng(11)
        env.reset(seed=11)
        rng.random()  # for the start
        for _ in range(20):
            env.task = 0
            observation, reward, *_ = env.step(0)
            assert observation["state"] == draw([0.2] * 5, rng.random())
            if is_random:
                assert reward == (1.0, 5.0, 0.0, 0.0)[draw([0.4, 0.2, 0.1, 0.3], rng.random())]


def test_episodes_of_a_random_task_are_worth_what_evaluation_says() -> None:
    problem = gamble()
    env, samples = ProblemEnv(problem), 1000
    totals = np.zeros(samples)
    for episode in range(samples):
        env.reset(seed=episode)
        for step in range(40):
            totals[episode] += 0.9**step * env.step(0)[1]
    exact = qrmax.evaluate(problem, np.zeros((1, 2), dtype=int), max_episode_steps=40)
    assert exact.start_value > 5.0
    assert abs(totals.mean() - exact.start_value) < 5 * totals.std() / np.sqrt(samples)
