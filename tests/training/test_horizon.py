"""Episodes of H steps by the agent's own clock, and what is learned in them."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import numpy as np
import pytest

import qrmax
from gym_worlds import Room, cliff, in_order, lake, successes
from qrmax.agents.episodic.episodic_agent import EpisodicAgent
from qrmax.agents.episodic.published_baselines import PublishedBaseline
from qrmax.agents.registry import agent_class
from qrmax.errors import ParameterError
from qrmax.seeding import Stream, stream
from qrmax.training.environment import EnvPlayer
from qrmax.training.run import finish, make_session
from small_problems import payday, riverswim
from small_runs import WITH_A_HORIZON, corridor, session_of

# on purpose: the world may end an episode before the agent does
pytestmark = pytest.mark.filterwarnings("ignore:horizon is .*:qrmax.QRMaxWarning")

every_name = pytest.mark.parametrize("name", WITH_A_HORIZON)
STATIONARY = [n for n in WITH_A_HORIZON if issubclass(agent_class(n), PublishedBaseline)]
"""Those that recommend one policy for all stages, by a model that knows no end."""

every_staged = pytest.mark.parametrize("name", [n for n in WITH_A_HORIZON if n not in STATIONARY])
BUDGET: dict[str, Any] = {"stop": "budget", "evaluate_every": 10**6}


# --- the clock


def numbers_drawn(used: Stream, seed: int, name: str, most: int) -> int:
    """How many numbers a stream has given since its beginning."""
    fresh, position = stream(seed, name), used.position()
    for count in range(most):
        if fresh.position() == position:
            return count
        fresh.random()
    raise AssertionError


@every_name
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("limit", "horizon", "episodes"), [(None, 10, 11), (10, 10, 11), (40, 10, 11), (4, 10, 27)]
)
def test_the_world_is_reset_after_so_many_steps(
    name: str, compiled: bool, limit: int | None, horizon: int, episodes: int
) -> None:
    """In 105 steps; the river goes on for ever, and takes one number for a step or a reset."""
    run = qrmax.train(
        name, riverswim(limit), horizon=horizon, max_steps=105, compiled=compiled, **BUDGET
    )
    drawn = numbers_drawn(session_of(run).streams["world"], 0, "world", 200)
    assert drawn == 105 + episodes
    assert run.agent.stage == (1 if limit == 4 else 5)


class Diary(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Notes how long each episode is."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.lengths: list[int] = []

    def reset(self, **options: Any) -> Any:
        self.lengths.append(0)
        return super().reset(**options)

    def step(self, action: Any) -> Any:
        self.lengths[-1] += 1
        return super().step(action)


@every_name
@pytest.mark.parametrize(("limit", "length"), [(50, 7), (7, 7), (8, 7), (6, 6), (1, 1)])
def test_an_environment_is_reset_after_so_many_steps(name: str, limit: int, length: int) -> None:
    diary = Diary(gymnasium.wrappers.TimeLimit(Room("discrete"), limit))
    env = qrmax.TaskWrapper(diary, in_order("never"), labels=lambda *_: ())
    run = qrmax.train(name, env, horizon=7, max_steps=100, evaluate_every=50)
    whole, left = divmod(100, length)
    assert diary.lengths == [length] * whole + [left] * (left > 0)
    assert [(row.step, row.success, row.start_value) for row in run.curve] == [
        (50, 0.0, 0.0),
        (100, 0.0, 0.0),
    ]


@every_name
def test_an_episode_that_was_cut_off_makes_nothing_an_end(name: str) -> None:
    runs = [
        qrmax.train(name, riverswim(limit), horizon=horizon, max_steps=500, compiled=c, **BUDGET)
        for limit, horizon in ((3, 20), (20, 3), (None, 5))
        for c in (True, False)
    ]
    env = qrmax.TaskWrapper(
        gymnasium.wrappers.TimeLimit(Room("discrete"), 5), in_order("never"), labels=lambda *_: ()
    )
    for run in [*runs, qrmax.train(name, env, horizon=9, max_steps=300)]:
        assert isinstance(run.agent, EpisodicAgent)
        assert not run.agent.done.any()


@every_staged
def test_an_end_is_one(name: str) -> None:
    run = qrmax.train(name, payday(), horizon=4, max_steps=400, **BUDGET)
    assert isinstance(run.agent, EpisodicAgent)
    assert run.agent.done.ravel().tolist() == [False, True]
    assert run.recommendation[:, 0, 0].tolist() == [0, 0, 0, 1]
    assert run.evaluation is not None
    assert run.evaluation.start_value == 5.0


# --- settings and results


@every_name
def test_the_range_of_rewards_is_that_of_the_problem(name: str) -> None:
    for problem, lowest, highest in [
        (corridor(), 0.0, 1.0),
        (corridor(bonus=0.25), 0.0, 1.25),
        (corridor(bonus=-0.5), -0.5, 1.0),
    ]:
        config: Any = qrmax.train(name, problem, max_steps=5, horizon=5).agent.config
        assert (config.r_min, config.r_max) == (lowest, highest)
    told: Any = qrmax.train(name, corridor(), max_steps=5, r_min=-3.0, r_max=7.0).agent.config
    assert (told.r_min, told.r_max) == (-3.0, 7.0)


@every_name
def test_the_range_of_rewards_of_an_environment_is_that_of_its_task(name: str) -> None:
    config: Any = qrmax.train(name, lake(reward=5.0), max_steps=5).agent.config
    assert (config.r_min, config.r_max) == (0.0, 5.0)
    config = qrmax.train(name, lake(reward=-5.0), max_steps=5).agent.config
    assert (config.r_min, config.r_max) == (-5.0, 1.0)


@every_staged
def test_the_policy_is_that_of_the_first_stage(name: str) -> None:
    run = qrmax.train(name, payday(), horizon=3, max_steps=300, **BUDGET)
    assert run.recommendation.shape == (3, 2, 1)
    assert np.array_equal(run.policy, run.recommendation[0])
    assert np.array_equal(run.policy, run.agent.policy())
    assert not np.array_equal(run.policy, run.recommendation[2])
    assert run.act({"state": 0, "task": 0}) == run.policy[0, 0]
    assert run.gap == 0.0


@every_staged
def test_what_is_recommended_is_renewed_when_it_was_trained_on(name: str) -> None:
    run = qrmax.train(name, payday(), horizon=3, max_steps=1, **BUDGET)
    before = run.recommendation
    after = run.resume(300).recommendation
    assert not np.array_equal(before, after)


# --- learning


@every_staged
@pytest.mark.parametrize("seed", range(3))
def test_the_river_is_learned(name: str, seed: int) -> None:
    options = {"seed": seed, "max_steps": 50_000, "evaluate_every": 500}
    run = qrmax.train(name, riverswim(), horizon=30, **options)
    assert run.reason == "exact"
    assert run.gap is not None
    assert run.gap <= 0.05


@pytest.mark.parametrize("name", ["ucbvi-h", "ucbvi-b-rm", "psrl-rm"])  # a river takes all less
def test_an_office_is_learned(name: str) -> None:
    run = qrmax.train(name, qrmax.make("office/map0/exp0"), horizon=50, evaluate_every=10_000)
    assert run.reason == "exact"
    assert run.gap is not None
    assert run.gap <= 0.05


@every_staged
def test_a_lake_is_learned(name: str) -> None:
    env = lake()
    run = qrmax.train(name, env, horizon=25, gamma=0.9, max_steps=6000, evaluate_every=1000)
    assert successes(run, env, 5) == 5
    assert run.curve[-1].success is not None
    assert run.curve[-1].success > 0.0  # it may still explore


@every_name
def test_a_cliff_is_walked_along(name: str) -> None:
    env = cliff()
    run = qrmax.train(name, env, horizon=30, r_min=-100.0, max_steps=800, evaluate_every=200)
    assert len(run.curve) == 4
    assert all(-100.0 * 30 <= row.start_value <= 50.0 for row in run.curve)
    seen, info = env.reset(seed=0)
    assert env.action_space.contains(run.act(seen, info))


@every_name
def test_a_policy_with_stages_is_played_stage_by_stage(name: str) -> None:
    run = qrmax.train(name, lake(), horizon=20, max_steps=300, seed=1)
    observation = {"state": 0, "task": 0}
    played = [run.act(observation, stage=stage) for stage in range(20)]
    assert played == run.recommendation[:, 0, 0].tolist()
    assert run.act(observation) == played[0]
    for stage in (-1, 20):
        with pytest.raises(ParameterError, match=f"stage is {stage}; allowed: 0 to 19"):
            run.act(observation, stage=stage)


def test_episodes_that_agent_and_world_end_at_once_are_counted_once() -> None:
    room = gymnasium.wrappers.TimeLimit(Room("discrete"), 7)
    env = qrmax.TaskWrapper(room, in_order("never"), labels=lambda *_: ())
    session = make_session("psrl", env, horizon=7, max_steps=70, evaluate_every=1000)
    finish(session)
    assert isinstance(session.domain.task, EnvPlayer)
    assert len(session.domain.task.finished) == 10


def test_a_horizon_longer_than_episodes_are_is_warned_of() -> None:
    with pytest.warns(qrmax.QRMaxWarning, match="plans beyond the end of episodes; give horizon=9"):
        make_session("psrl", riverswim(limit=9), horizon=10)


def test_a_horizon_within_which_nothing_is_paid_is_warned_of() -> None:
    with pytest.warns(qrmax.QRMaxWarning, match="has a reward within 20 steps"):
        qrmax.train("psrl", qrmax.make("office/map0/exp0"), horizon=20, max_steps=3000)


def test_rewards_below_r_min_are_warned_of_once() -> None:
    with pytest.warns(qrmax.QRMaxWarning) as caught:
        qrmax.train("psrl", cliff(), horizon=30, max_steps=300)
    below = [str(warning.message) for warning in caught if "below r_min" in str(warning.message)]
    assert len(below) == 1
    assert re.fullmatch(  # a step, or a fall if that is the first
        r"a step had a reward of (-1|-100), below r_min = 0, and may be clipped to that; "
        r"give r_min=\1 or less",
        below[0],
    )


def test_a_plan_that_no_memory_holds_is_refused() -> None:
    with pytest.raises(ParameterError, match="GB of memory; give a smaller one"):
        make_session("psrl", qrmax.make("office/map3/exp5"), horizon=10**9)
