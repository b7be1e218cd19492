"""`run.evaluate`: rollouts with confidence intervals, in an environment of their own."""

from __future__ import annotations

import copy
import math
from functools import partial
from typing import Any

import gymnasium
import pytest

import qrmax
from box_worlds import classic
from gym_worlds import Loop, Room, in_order, lake, room, taxi
from qrmax.errors import ParameterError
from qrmax.training.rollouts import mean_of, success_rate
from qrmax.worlds.another import another
from small_runs import corridor, session_of


@pytest.fixture(scope="module")
def corridor_run() -> qrmax.Run:
    return qrmax.train("qrmax", corridor(slip=0.3), t_env=5, max_steps=3000, compiled=False)


def test_the_exact_values_of_a_problem_lie_within_the_intervals(corridor_run: qrmax.Run) -> None:
    found, exact = corridor_run.evaluate(2000, seed=5), corridor_run.evaluation
    assert exact is not None
    assert found.success.low < exact.success < found.success.high
    assert found.discounted_return.low < exact.start_value < found.discounted_return.high
    assert found.episode_return.mean == found.success.mean  # only the door pays, once
    assert 7 < found.length.mean < 30
    assert found.length.high - found.length.low < 2


def test_intervals_hold_the_truth_in_about_95_of_100_cases(corridor_run: qrmax.Run) -> None:
    exact = corridor_run.evaluation
    assert exact is not None
    found = [corridor_run.evaluate(40, seed=seed) for seed in range(50)]
    truths = {"discounted_return": exact.start_value, "success": exact.success}
    for name, truth in truths.items():
        estimates = [getattr(rollouts, name) for rollouts in found]
        assert sum(estimate.low <= truth <= estimate.high for estimate in estimates) >= 44


def test_the_same_seed_gives_the_same_episodes(corridor_run: qrmax.Run) -> None:
    assert corridor_run.evaluate(20, seed=1) == corridor_run.evaluate(20, seed=1)
    assert corridor_run.evaluate(20, seed=1) != corridor_run.evaluate(20, seed=2)
    assert corridor_run.evaluate(20) == corridor_run.evaluate(20, seed=corridor_run.seed)


def test_policies_with_stages_play_as_many_steps_as_they_have() -> None:
    problem = corridor(slip=0.4, limit=None)
    settings: dict[str, Any] = {"horizon": 7, "max_steps": 1000, "compiled": False}
    run = qrmax.train("ucbvi-b", problem, stop="budget", **settings)
    found, exact = run.evaluate(1000), run.evaluation
    assert exact is not None
    assert found.length.mean <= 7
    assert found.discounted_return.low < exact.start_value < found.discounted_return.high


def test_real_positions_are_played_too() -> None:
    problem = qrmax.make("continuous/line/ab")
    run = qrmax.train("bucket-qrmax", problem, t_env=2, max_steps=4000, grid=20, compiled=False)
    found, sampled = run.evaluate(300), run.evaluation
    assert sampled is not None
    assert found.success.low - 0.01 <= sampled.success <= found.success.high + 0.01


def state_of(env: Any) -> Any:
    return env.unwrapped.s, env.unwrapped.np_random.bit_generator.state, env.unwrapped.lastaction


def test_training_and_its_random_stream_are_left_alone() -> None:
    env, other = lake(is_slippery=True), lake(is_slippery=True)
    run = qrmax.train("qrmax", env, seed=1, t_env=2, max_steps=777)
    undisturbed = qrmax.train("qrmax", other, seed=1, t_env=2, max_steps=777)
    before = copy.deepcopy(state_of(env))
    labels = list(session_of(run).domain.task.labels)
    assert run.evaluate(50).episodes == 50
    assert state_of(env) == before
    assert session_of(run).domain.task.labels == labels
    assert run.resume(1500).curve == undisturbed.resume(1500).curve


def test_no_second_window_is_opened() -> None:
    env = lake(render_mode="human")
    assert env.spec is not None
    assert "render_mode" not in another(env).spec.kwargs
    assert env.spec.kwargs["render_mode"] == "human"
    assert another(lake(render_mode="ansi")).spec.kwargs["render_mode"] == "ansi"


class Unrecorded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A wrapper that Gymnasium cannot make again."""

    def __init__(self, env: Any, secret: Any) -> None:
        super().__init__(env)
        self.secret = secret


def test_an_environment_without_a_spec_is_copied() -> None:
    run = qrmax.train("qrmax", room(noise=0.2), t_env=3, max_steps=1000)
    found = run.evaluate(100)
    assert found.success.mean > 0.9
    env = Unrecorded(lake(), secret=1)
    assert qrmax.train("qrmax", env, t_env=1, max_steps=1500).evaluate(5).success.mean == 1.0
    steady = classic("CartPole-v1")
    run = qrmax.train("bucket-qrmax", steady, max_steps=100, grid=3)
    taken = steady.steps
    run.evaluate(3)
    assert steady.steps == taken


def test_what_can_neither_be_made_again_nor_copied_is_asked_for() -> None:
    env = Unrecorded(lake(), secret=(part for part in ()))  # generators cannot be copied
    with pytest.warns(qrmax.QRMaxWarning, match=r"no second instance .* neither be made again"):
        run = qrmax.train("qrmax", env, t_env=1, max_steps=1500)
    with pytest.raises(
        ParameterError, match=r"neither be made again .* run.evaluate\(episodes, env"
    ):
        run.evaluate(5)
    assert run.evaluate(5, env=lake()).success.mean == 1.0


class Labeller:
    """Labels by looking at an environment it keeps."""

    def __init__(self, env: Any) -> None:
        self.kept = env

    def __call__(self, seen: Any, info: Any) -> Any:  # noqa: ARG002
        return {"first": self.kept.unwrapped.at == (0, 0)}

    def method(self, seen: Any, info: Any) -> Any:
        return self(seen, info)


def look(env: Any, seen: Any, info: Any) -> Any:  # noqa: ARG001
    return {"first": env.unwrapped.at == (0, 0)}


@pytest.mark.parametrize("how", ["closure", "object", "partial"])
def test_a_labelling_function_that_looks_at_the_environment_itself_is_refused(how: str) -> None:
    env = gymnasium.wrappers.TimeLimit(Room("discrete"), 20)
    labels: Any = {
        "closure": lambda *_: {"first": env.unwrapped.at == (0, 0)},
        "object": Labeller(env),
        "partial": partial(look, env),
    }[how]
    run = qrmax.train(
        "qrmax", qrmax.TaskWrapper(env, in_order("first"), labels=labels), max_steps=50
    )
    with pytest.raises(ParameterError, match="the labelling function looks at"):
        run.evaluate(5)


def test_the_taxi_that_is_only_asked_to_decode_needs_an_env_of_its_own_too() -> None:
    run = qrmax.train("qrmax", taxi(), max_steps=50)
    with pytest.raises(ParameterError, match="looks at 'env'"):
        run.evaluate(2)
    with pytest.warns(qrmax.QRMaxWarning, match="2 of 2 episodes had not ended after 10 steps"):
        assert run.evaluate(2, env=taxi(), max_steps=10).length.mean == 10


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: gymnasium.make("FrozenLake-v1"), "has no task"),
        (room, "as states of the world"),
        (lambda: 7, "'7' is not an environment"),
        (lambda: lake(map_name="8x8"), "64 as states of the world, and the run was .* with 16"),
    ],
)
def test_another_kind_of_environment_is_refused(other: Any, message: str) -> None:
    run = qrmax.train("qrmax", lake(), max_steps=50)
    with pytest.raises(ParameterError, match=message):
        run.evaluate(2, env=other())


@pytest.mark.parametrize("wrong", [{"episodes": 0}, {"seed": -1}, {"max_steps": 0}])
def test_arguments_that_make_no_sense_are_refused(
    corridor_run: qrmax.Run, wrong: dict[str, Any]
) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        corridor_run.evaluate(**wrong)


def test_an_endless_episode_is_cut_with_a_warning() -> None:
    env = qrmax.TaskWrapper(Loop(), in_order("never"), labels=lambda *_: ())
    run = qrmax.train("qrmax", env, max_steps=50)
    with pytest.warns(qrmax.QRMaxWarning, match="had not ended after 30 steps"):
        found = run.evaluate(3, max_steps=30)
    assert found.episode_return.mean == 30.0
    assert found.discounted_return.mean == pytest.approx((1 - 0.9**30) / (1 - 0.9))


def test_intervals_are_those_of_the_textbook() -> None:
    assert success_rate(8, 10) == pytest.approx((0.8, 0.4901625, 0.9433178), abs=1e-6)
    assert success_rate(0, 50).low == 0.0
    assert success_rate(50, 50).high == 1.0
    assert mean_of([1.0, 2.0, 3.0]) == pytest.approx((2.0, -0.4841377, 4.4841377), abs=1e-6)
    assert mean_of([0.1] * 7) == (0.1, 0.1, 0.1)
    alone = mean_of([3.0])
    assert (alone.mean, alone.low, alone.high) == (3.0, -math.inf, math.inf)
