"""UCBVI: its bonuses, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from learners import trial
from qrmax import Problem
from qrmax.agents.base import Sizes
from qrmax.agents.episodic.finite_horizon_agent import FiniteHorizon
from qrmax.agents.episodic.ucbvi import UCBVI
from qrmax.agents.registry import make_agent, make_config
from qrmax.planning.finite_horizon import stage_values
from qrmax.problems.simulator import Step
from qrmax.seeding import stream
from random_problems import NON_NEGATIVE, problems
from small_problems import RIGHT, errand

pytestmark = pytest.mark.small_enough_without_jit

START, END, BEYOND = range(3)
TRIED, UNTRIED = 0, 1
KINDS = ["ucbvi-sb", "ucbvi-b", "ucbvi-h"]


def pupil(name: str, **settings: Any) -> UCBVI:
    """Of a world with three states and two actions, in episodes of three steps."""
    config = make_config(name, {"horizon": 3, **settings})
    agent = make_agent(name, Sizes(3, 1, 2), config, stream(7, "agent"), None)
    assert isinstance(agent, UCBVI)
    return agent


def teach(
    agent: FiniteHorizon, s_next: int, *, times: int = 1, reward: float = 0.0, **end: bool
) -> None:
    """The action that is tried leads from the start there."""
    ends = {"terminated": False, "truncated": False} | end
    for _ in range(times):
        agent.update(START, 0, TRIED, Step(s_next, 0, 0, reward, 0.0, world_ended=False, **ends))


def plan(agent: FiniteHorizon, s: int = START, q: int = 0, start: int = START) -> np.ndarray:
    """The values that a new episode is planned with, `[h, a]`."""
    agent.begin_episode(start, 0)
    table = np.empty((agent.config.horizon, agent.sizes.actions))
    for h, row in enumerate(table):
        stage_values(agent.plan.belief, agent.plan.stages, h, *agent.place(s, q), row)
    return table


# --- the bonuses


@pytest.mark.parametrize(
    ("name", "settings", "values"),
    [
        # Tried n = 4 times: half of them ended it, half led to where nothing is known, which is
        # worth v_1 = 2, v_2 = 1 and in the end 0. So the mean is 1, 1/2, 0; its variance 1, 1/4, 0.
        ("ucbvi-sb", {}, [1 + 1 / 2 + 3 / 4, 1 / 2 + 1 / 2 + 2 / 4, 0 + 1 / 2 + 1 / 4]),
        ("ucbvi-b", {}, [1 + 1 / 2 + 3 / 4, 1 / 2 + 1 / 4 + 2 / 4, 0 + 0 + 1 / 4]),
        ("ucbvi-h", {}, [1 + 3 / 4, 1 / 2 + 2 / 4, 0 + 1 / 4]),
        # Half of it: of the simplified one, the second part does not depend on the scale.
        ("ucbvi-sb", {"bonus_scale": 0.5}, [1 + 1 / 4 + 3 / 4, 1 + 1 / 4, 1 / 4 + 1 / 4]),
        ("ucbvi-b", {"bonus_scale": 0.5}, [1 + 5 / 8, 1 / 2 + 3 / 8, 1 / 8]),
        ("ucbvi-h", {"bonus_scale": 0.5}, [1 + 3 / 8, 1 / 2 + 1 / 4, 1 / 8]),
        # With gamma = 1/2, v is 7/4, 3/2, 1; what follows is worth half of that: 3/4, 1/2, 0.
        ("ucbvi-sb", {"gamma": 0.5}, [3 / 8 + 1 / 2 + 7 / 16, 1 / 4 + 1 / 2 + 3 / 8, 3 / 4]),
        ("ucbvi-b", {"gamma": 0.5}, [3 / 8 + 3 / 16 + 7 / 16, 1 / 4 + 1 / 8 + 3 / 8, 1 / 4]),
        ("ucbvi-h", {"gamma": 0.5}, [3 / 8 + 7 / 16, 1 / 4 + 3 / 8, 1 / 4]),
        # With a span of 2, v is 6, 4, 2: what is unknown, and its deviation, are worth twice.
        ("ucbvi-sb", {"r_max": 2.0}, [2 + 1 / 2 + 6 / 4, 1 + 1 / 2 + 4 / 4, 1 / 2 + 2 / 4]),
        ("ucbvi-b", {"r_min": -1.0}, [2 + 1 + 6 / 4, 1 + 1 / 2 + 4 / 4, 2 / 4]),
        ("ucbvi-h", {"r_max": 2.0}, [2 + 6 / 4, 1 + 4 / 4, 2 / 4]),
        ("ucbvi-h", {"bonus_scale": 0.0}, [1, 1 / 2, 0]),
    ],
)
def test_the_bonus_by_hand(name: str, settings: dict[str, float], values: list[float]) -> None:
    agent = pupil(name, **settings)
    teach(agent, END, times=2, terminated=True)
    teach(agent, BEYOND, times=2)
    assert plan(agent)[:, TRIED] == pytest.approx(values)


@pytest.mark.parametrize("name", KINDS)
def test_the_bonus_shrinks_at_every_stage_with_every_try(name: str) -> None:
    """Though an episode visits the start at one stage only."""
    agent = pupil(name)
    before = np.full(3, np.inf)
    for n in range(1, 40):
        teach(agent, END, terminated=True)
        values = plan(agent)[:, TRIED]
        parts = {
            "ucbvi-sb": n**-0.5 + agent.plan.stages.v_max / n,
            "ucbvi-b": agent.plan.stages.v_max / n,
        }
        expected = parts.get(name, agent.plan.stages.v_max / (2 * n**0.5))
        assert values == pytest.approx(np.minimum(expected, agent.plan.stages.v_max))
        assert (values <= before).all()
        before = values


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ucbvi-sb", [-1 + 6, -1 + 4, -1 + 2]),  # 1 + v_h would be more than v_h
        ("ucbvi-b", [-1 + 6, -1 + 4, -1 + 2]),
        ("ucbvi-h", [-1 + 3, -1 + 2, -1 + 1]),
    ],
)
def test_the_bonus_is_capped_before_it_is_added(name: str, values: list[float]) -> None:
    agent = pupil(name, r_min=-1.0)
    teach(agent, END, reward=-1.0, terminated=True)
    assert plan(agent)[:, TRIED] == pytest.approx(values)


@pytest.mark.parametrize("name", ["ucbvi-sb", "ucbvi-b"])
def test_a_scale_beyond_reason_is_capped_too(name: str) -> None:
    agent = pupil(name, r_min=-1.0, bonus_scale=100.0)
    teach(agent, END, times=4, reward=-1.0, terminated=True)
    assert plan(agent)[:, TRIED] == pytest.approx([5, 3, 1])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ucbvi-sb", [1 + 1 / 2 + 3 / 4, 2.0, 1.0]),  # not 1 + 1/2 + 2/4 = 2, nor 1 + 3/4
        ("ucbvi-b", [1 + 3 / 4, 1 + 2 / 4, 1.0]),
        ("ucbvi-h", [1 + 3 / 4, 1 + 2 / 4, 1.0]),
    ],
)
def test_no_value_is_more_than_the_rest_of_the_episode_can_bring(
    name: str, values: list[float]
) -> None:
    agent = pupil(name)
    teach(agent, END, times=4, reward=1.0, terminated=True)
    assert plan(agent)[:, TRIED] == pytest.approx(values)


# --- what is not known, and what is over


@pytest.mark.parametrize("name", KINDS)
def test_what_was_never_tried_is_worth_all_that_can_be(name: str) -> None:
    agent = pupil(name)
    teach(agent, BEYOND)
    assert plan(agent)[:, UNTRIED].tolist() == [3.0, 2.0, 1.0]
    assert plan(agent, BEYOND).tolist() == [[3.0, 3.0], [2.0, 2.0], [1.0, 1.0]]


@pytest.mark.parametrize("name", KINDS)
def test_an_end_is_worth_nothing_and_a_truncation_is_no_end(name: str) -> None:
    ended, cut = pupil(name, bonus_scale=0.1), pupil(name, bonus_scale=0.1)
    teach(ended, END, times=100, terminated=True)
    teach(cut, END, times=100, truncated=True)
    bonus = plan(ended)[:, TRIED]
    assert (bonus < 0.05).all()
    assert plan(cut)[:, TRIED] == pytest.approx(np.add(bonus, [2.0, 1.0, 0.0]))


@pytest.mark.parametrize("name", KINDS)
def test_the_recommended_policy_has_no_bonus_and_no_hope(name: str) -> None:
    agent = pupil(name)
    teach(agent, BEYOND, times=2, reward=0.25)
    teach(agent, END, times=2, terminated=True)
    assert agent.q[START, 0].tolist() == [0.125, 0.0]
    assert agent.recommendation().shape == (3, 3, 1)
    assert (agent.recommendation() == TRIED).all()
    worse = pupil(name, r_min=-1.0)
    teach(worse, END, times=4, reward=-1.0, terminated=True)
    assert (worse.recommendation()[:, START, 0] == UNTRIED).all()  # it is worth 0 to stay ignorant


# --- many tries


@pytest.mark.parametrize("name", KINDS)
def test_the_bonus_goes_on_beyond_the_table_that_it_is_kept_in(name: str) -> None:
    agent, prepared = pupil(name), pupil(name)
    assert len(agent._bonus.flat) == 1024
    prepared._bonus = prepared._bonus_up_to(8192)
    for n in (1022, 1, 1, 1, 2000, 3000):
        for each in (agent, prepared):
            teach(each, END, times=n, terminated=True)
            plan(each)
        for one, other in zip(agent.plan.belief, prepared.plan.belief, strict=True):
            np.testing.assert_array_equal(one, other)
    n, v = 6025, np.array([3.0, 2.0, 1.0])
    expected = {"ucbvi-sb": n**-0.5 + v / n, "ucbvi-b": v / n, "ucbvi-h": v / (2 * n**0.5)}[name]
    assert plan(agent)[:, TRIED] == pytest.approx(expected)


def test_more_successors_than_there_was_room_for_are_planned_with() -> None:
    config = make_config("ucbvi-h", {"horizon": 3, "bonus_scale": 0.0})
    agent = make_agent("ucbvi-h", Sizes(21, 1, 2), config, stream(7, "agent"), None)
    assert isinstance(agent, FiniteHorizon)
    for s_next in range(20):
        over = s_next % 2 == 0
        teach(agent, s_next + 1, terminated=over)
        ended = s_next // 2 + 1
        unknown = (s_next + 1 - ended) / (s_next + 1)
        assert plan(agent)[:, TRIED] == pytest.approx([2 * unknown, unknown, 0.0])


# --- knowing the machine


def test_one_that_knows_the_machine_learns_from_a_step_for_every_task_state() -> None:
    """Four times to the exit without the key: with it, that would have paid, and ended it."""
    agents = [
        trial(name, errand(), horizon=3, gamma=1.0).agent for name in ("ucbvi-b-rm", "ucbvi-b")
    ]
    for agent in agents:
        for _ in range(4):
            agent.update(2, 0, RIGHT, Step(3, 0, 2, 0.0, 0.0, False, False, world_ended=False))
    knowing, blind = agents
    assert isinstance(knowing, FiniteHorizon)
    assert isinstance(blind, FiniteHorizon)
    assert knowing.seen.arrays.n.shape == (4, 2)
    assert blind.seen.arrays.n.shape == (4 * 3, 2)
    assert knowing.seen.arrays.n[2].tolist() == [0, 4]
    go, has_key = 0, 1
    for agent in (knowing, blind):  # without the key: v_h+1 is ahead, for certain
        values = plan(agent, 2, go, start=2)[:, RIGHT]
        assert values == pytest.approx([2 + 3 / 4, 1 + 2 / 4, 1 / 4])
    assert plan(blind, 2, has_key, start=2)[:, RIGHT].tolist() == [3.0, 2.0, 1.0]
    assert knowing.q[2, has_key].tolist() == [0.0, 1.0]
    values = plan(knowing, 2, has_key, start=2)[:, RIGHT]
    assert values == pytest.approx([1 + 3 / 4, 1 + 2 / 4, 1.0])


@pytest.mark.parametrize("name", [*KINDS, "ucbvi-b-rm"])
@given(problem=problems(NON_NEGATIVE), seed=st.integers(0, 1000))
@settings(max_examples=20)
def test_a_plan_that_is_kept_up_is_one_made_from_scratch(
    name: str, problem: Problem, seed: int
) -> None:
    """Only what can lead to a change is planned for anew, and nothing else would change."""
    assume(problem.start()[~problem.done()].any() and not problem.machine.is_stochastic)
    kept_up, anew = (trial(name, problem, seed=seed, horizon=6) for _ in range(2))
    for _ in range(60):
        assert isinstance(anew.agent, FiniteHorizon)
        anew.agent.plan.outdated = True
        anew.agent.plan.settled[:] = -1
        kept_up.play(1)
        anew.play(1)
    assert kept_up.state() == anew.state()
