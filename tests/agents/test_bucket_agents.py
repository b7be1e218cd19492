"""The agents with buckets: at both speeds, beside the discrete agents, and by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import qrmax
from amounts import amount
from bucket_trials import BUCKET_AGENTS, PlaneTrial, bucket_trial, chancy, side_trip
from learned_models import check_plan
from learners import live_task_states
from qrmax import Problem, seeding
from qrmax.agents.base import Sizes
from qrmax.agents.buckets.buckets import FIRST
from qrmax.agents.experience import Counterfactual, Observed
from qrmax.agents.model_based import ModelBased
from qrmax.agents.registry import agent_class, make_agent, make_config
from qrmax.errors import ParameterError
from qrmax.problems.continuous_problem import ContinuousProblem, PlaneSimulator
from qrmax.problems.observations import Observations
from qrmax.problems.simulator import Simulator, Step
from qrmax.seeding import stream, stream_at
from qrmax.training.plane_evaluator import PlaneEvaluator
from random_problems import problems

small = pytest.mark.small_enough_without_jit
every_agent = pytest.mark.parametrize("name", BUCKET_AGENTS)
every_stranger = pytest.mark.parametrize("name", ["bucket-qrmax", "bucket-rmax"])  # to the machine

LAKE = "continuous/frozen-lake/abc"
PLACES: dict[str, dict[str, Any]] = {  # steps so long that something happens soon
    "continuous/line/ab": {"step": 0.08, "noise": 0.03},
    "continuous/corridor/abc": {"step": 0.1, "noise": 0.03},
    "continuous/bottleneck/abc": {"step": 0.1, "noise": 0.05},
    LAKE: {"step": 0.9, "noise": 0.2},
    "continuous/office/map0/exp0": {"step": 0.9},
    "continuous/office/map1/exp5": {"step": 1.5, "noise": 0.2},
    "continuous/office/map1/exp1": {"step": 0.9, "rotation": 30.0, "sensor_noise": 0.3},
    "continuous/line/ab ": {"step": 0.08, "sensor_noise": 0.01},
}
LIVELY = [
    side_trip(),
    *(
        qrmax.make(name.strip(), decoration_penalty=0.3, max_episode_steps=40, **options)
        for name, options in PLACES.items()
    ),
]
CHANCY = [
    qrmax.make("continuous/line", task=chancy("A", "B"), step=0.08, max_episode_steps=40),
    qrmax.make("continuous/frozen-lake", task=chancy("A", "B"), step=0.9, max_episode_steps=40),
]


def is_random(problem: ContinuousProblem) -> bool:
    return problem.machine.is_stochastic


# --- two speeds

told = st.fixed_dictionaries(
    {
        "gamma": st.sampled_from([0.5, 0.9]),
        "t_env": st.integers(1, 4),
        "t_env_reward": st.sampled_from([None, 1, 6]),
        "t_task": st.integers(1, 3),
        "t_task_reward": st.sampled_from([None, 1, 5]),
        "v_max": st.sampled_from([None, 0.0, 3.0]),
        "tolerance": st.sampled_from([1e-5, 1e-12]),
        "functions": st.sampled_from([1, 4]),
        "bits": st.sampled_from([1, 8]),
        "offset": st.sampled_from([0.0, 1.0]),
        "grid": st.sampled_from([None, None, 1, 4, 12]),
        "event_aware": st.booleans(),
    }
)


@every_agent
@given(
    problem=st.sampled_from(LIVELY + CHANCY),
    told=told,
    steps=st.integers(1, 150),
    chunks=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    block=st.sampled_from([9, 64, 8192]),
    seed=st.integers(0, 99),
)
@settings(max_examples=40)
def test_the_compiled_loop_does_what_the_methods_say(
    name: str,
    problem: ContinuousProblem,
    told: dict[str, Any],
    steps: int,
    chunks: list[int],
    block: int,
    seed: int,
) -> None:
    assume(not (agent_class(name).knows_machine and is_random(problem)))
    slow = bucket_trial(name, problem, seed=seed, **told).play(steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seeding, "BLOCK", block)  # numbers run out at other places
        fast = bucket_trial(name, problem, seed=seed, **told).rush(steps, chunks)
    assert fast.state() == slow.state()


@every_agent
@pytest.mark.parametrize("rewards", [{}, {"t_env_reward": 1, "t_task_reward": 4}])
def test_the_loops_agree_while_tables_grow(name: str, rewards: dict[str, int]) -> None:
    problem = qrmax.make(LAKE, step=0.9, noise=0.2, decoration_penalty=0.3)
    options = {"grid": 14, "t_env": 3, "t_task": 2, "gamma": 0.9, "event_aware": True, **rewards}
    slow = bucket_trial(name, problem, **options).play(1500)
    fast = bucket_trial(name, problem, **options).rush(1500)
    assert fast.state() == slow.state()
    assert len(fast.agent.buckets) > 2 * FIRST  # doubled twice at least


@small
@pytest.mark.parametrize("seed", [0, 1, 4])
def test_what_would_have_ended_the_episode_ends_it_at_both_speeds(seed: int) -> None:
    """A bucket entered with another label than before: B without A, in a bucket that is known."""
    slow, fast = (
        bucket_trial("bucket-qrmax-rm", side_trip(), seed=seed, t_env=4, grid=4) for _ in range(2)
    )
    assert fast.rush(200).state() == slow.play(200).state()
    assert slow.agent.planner.tables.done.any()


@small
@every_agent
def test_sampled_episodes_are_those_that_the_policy_plays(name: str) -> None:
    problem = qrmax.make(LAKE, step=0.9, noise=0.2, decoration_penalty=0.3, max_episode_steps=30)
    tried = bucket_trial(name, problem, t_env=3, grid=7, gamma=0.9).rush(300)
    policy, gamma = tried.agent.recommendation(), 0.9
    found = PlaneEvaluator(problem, gamma).play(policy, 40, stream(3, "evaluation"))
    player = PlaneSimulator(problem, stream(3, "evaluation"), lambda *_: 0)
    for row in found.tolist():
        player.reset()
        total, discount = 0.0, 1.0
        while not player.over:
            label = int(problem.label[player.place])
            step = player.step(policy.action(player.observation(), label, player.q))
            total, discount = total + discount * (step.r_env + step.r_task), discount * gamma
        assert row == [total, problem.table.success[player.q], player.state[2]]
    assert len(set(found[:, 2])) > 1


@small
def test_a_policy_that_is_older_than_a_bucket_does_the_first_thing_there() -> None:
    problem = qrmax.make(LAKE, step=0.9, noise=0.2, max_episode_steps=100)
    tried = bucket_trial("bucket-qrmax", problem, t_env=3, grid=20).rush(20)
    policy = tried.agent.recommendation()
    tried.rush(3000)
    assert len(tried.agent.buckets) > len(policy.table)
    PlaneEvaluator(problem, 0.9).play(policy, 20, stream(3, "evaluation"))
    newest = tried.agent.buckets.snapshot()["keys"][-1]
    middle = [(int(newest[1]) % 32 + 0.5) / 2.0, (int(newest[1]) // 32 + 0.5) / 2.0]
    assert tried.agent.buckets.find(middle, 0) == len(tried.agent.buckets) - 1
    assert policy.action(middle, 0, 0) == 0


# --- one bucket for each state


def play_beside(name: str, problem: Problem, steps: int, **told: Any) -> list[ModelBased]:
    """The discrete agent and the one with buckets, each told what the other is.

    To the discrete one states are numbered in the order in which they turn up.
    """
    sizes = Sizes(problem.n_states, problem.n_task_states, problem.n_actions)
    own = {"grid": problem.n_states}
    box = Observations([0.0], [problem.n_states])
    plain = make_agent(name, sizes, make_config(name, told), stream(7, "agent"), problem)
    config = make_config(f"bucket-{name}", told | own)
    bucketed = make_agent(f"bucket-{name}", sizes, config, stream(7, "agent"), problem, box)
    world = Simulator(problem, stream(7, "world"))
    order: dict[int, int] = {}

    def seen() -> int:
        number = order.setdefault(world.s, len(order))
        assert bucketed.perceive([world.s + 0.5], int(problem.label[world.s])) == number
        return number

    for _ in range(steps):
        if world.over:
            world.reset()
            bucketed.begin_episode(seen(), world.q)
        s, q = seen(), world.q
        a = plain.act(s, q)
        assert bucketed.act(s, q) == a
        step = world.step(a)
        step = step._replace(s=seen())
        plain.update(s, q, a, step)
        bucketed.update(s, q, a, step)
    assert isinstance(plain, ModelBased)
    assert isinstance(bucketed, ModelBased)
    return [plain, bucketed]


def assert_same_but_for_room(plain: ModelBased, bucketed: ModelBased) -> None:
    """The same counts and values to the last bit, and nothing beyond."""
    for name, counter in plain.counters.items():
        room = tuple(slice(length) for length in counter.counts.n.shape)
        for ours, theirs in zip(counter.counts, bucketed.counters[name].counts, strict=True):
            np.testing.assert_array_equal(ours, theirs[room])
        assert counter.counts.n.sum() == bucketed.counters[name].counts.n.sum()
    found = len(bucketed.q)
    assert 0 < found <= plain.sizes.states
    np.testing.assert_array_equal(plain.q[:found], bucketed.q)
    np.testing.assert_array_equal(plain.policy()[:found], bucketed.policy())
    assert (plain.q[found:] == plain.config.optimistic).all()
    assert plain.rng.position() == bucketed.rng.position()
    assert plain.known().pairs == bucketed.known().pairs


@small
@pytest.mark.parametrize("name", ["qrmax", "qrmax-rm", "rmax"])
@given(
    problem=problems(),
    t_env=st.integers(1, 3),
    t_task=st.integers(1, 2),
    tolerance=st.sampled_from([1e-5, 1e-13]),
)
@settings(max_examples=amount(15, plain=6))
def test_with_one_bucket_for_each_state_it_is_the_discrete_agent(
    name: str, problem: Problem, t_env: int, t_task: int, tolerance: float
) -> None:
    assume(problem.start()[~problem.done()].any())
    assume(not (agent_class(name).knows_machine and problem.machine.is_stochastic))
    told = {"t_env": t_env, "tolerance": tolerance, "gamma": 0.8}
    told |= {"t_task": t_task} if name != "rmax" else {}
    assert_same_but_for_room(*play_beside(name, problem, 60, **told))


@pytest.mark.parametrize("name", ["qrmax", "qrmax-rm", "rmax"])
def test_so_it_is_in_an_office_where_tables_grow(name: str) -> None:
    problem = qrmax.make("office/map1/exp1", slip=0.2)
    plain, bucketed = play_beside(name, problem, 1500, t_env=3, gamma=0.9)
    assert_same_but_for_room(plain, bucketed)
    assert len(bucketed.buckets) > FIRST


# --- planning


@every_agent
@pytest.mark.parametrize(
    "rewards", [{}, {"t_env_reward": 1, "t_task_reward": 3}, {"t_env_reward": 4}], ids=str
)
@pytest.mark.parametrize("problem", [side_trip(), LIVELY[4], CHANCY[1]], ids=lambda p: p.name)
def test_the_plan_is_that_of_the_counts(
    name: str, problem: ContinuousProblem, rewards: dict[str, int]
) -> None:
    """BucketVI: the fixed point of the paper's backup, by the reference solver."""
    if agent_class(name).knows_machine and is_random(problem):
        pytest.skip("agents that know the machine refuse a random one")
    options = {"gamma": 0.7, "t_env": 2, "t_task": 2, "v_max": 10.0, "tolerance": 1e-13, "grid": 7}
    tried = bucket_trial(name, problem, **options, **rewards)
    ends = problem.done()  # [cell, q]
    done = np.zeros((FIRST, problem.n_task_states), dtype=bool)  # where episodes were seen to end
    checked = 0
    for _ in range(400):
        before = tried.agent.known().pairs
        tried.play(1)
        b, cell, reached = tried.simulator.s, tried.simulator.place, [tried.simulator.q]
        if agent_class(name).knows_machine:
            live = live_task_states(problem)
            reached += problem.table.next_state[live, problem.label[cell], 0].tolist()
        done[b, reached] |= ends[cell, reached]
        if tried.agent.known().pairs != before and checked < 15:
            check_plan(tried, done, 1e-9)
            checked += 1
    check_plan(tried, done, 1e-9)
    assert tried.agent.known().pairs > 12


def line_agent(**told: Any) -> ModelBased:
    """An agent on a line of ten buckets, one of which it has seen: that of 0.05 is bucket 0."""
    config = make_config("bucket-qrmax", {"grid": 10, "gamma": 0.5, "v_max": 8.0, **told})
    box = Observations([0.0], [1.0])
    agent = make_agent("bucket-qrmax", Sizes(0, 2, 2), config, stream(7, "agent"), None, box)
    assert agent.perceive([0.05], 0) == 0
    agent.begin_episode(0, 0)
    return agent


def arrive(agent: ModelBased, x: float, r_env: float, r_task: float, *, a: int = 1) -> None:
    """From bucket 0, in machine state 0, to where x is; the machine moves where x is above 0.5."""
    b = agent.perceive([x], 0)
    agent.update(0, 0, a, Step(b, int(x > 0.5), 0, r_env, r_task, False, False, False))


@small
@pytest.mark.parametrize(
    ("t_env", "t_env_reward", "t_task", "t_task_reward", "needed"),
    [
        (3, None, 1, None, 3),
        (1, 4, 1, 1, 4),
        (4, 1, 1, 1, 4),
        (1, 1, 5, None, 5),
        (1, 1, 2, 6, 6),
        (2, 3, 4, 5, 5),
    ],
)
def test_a_triple_is_known_once_all_four_counts_are_reached(
    t_env: int, t_env_reward: int | None, t_task: int, t_task_reward: int | None, needed: int
) -> None:
    agent = line_agent(
        t_env=t_env, t_env_reward=t_env_reward, t_task=t_task, t_task_reward=t_task_reward
    )
    for sample in range(1, needed + 1):
        assert agent.q[0, 0].tolist() == [8.0, 8.0]
        arrive(agent, 0.95, r_env=1.0, r_task=2.0)
        known = agent.q[0, 0, 1] != 8.0
        assert known == (sample == needed)
    assert agent.q[0, 0].tolist() == [8.0, 1.0 + 2.0 + 0.5 * 8.0]
    assert agent.q[0, 1].tolist() == [8.0, 8.0]  # nothing is known of machine state 1


@small
def test_each_count_ends_at_its_own_threshold() -> None:
    """By hand: of three tries two count for where they lead, and all three for what they pay."""
    agent = line_agent(t_env=2, t_env_reward=3, t_task=2, t_task_reward=1)
    arrive(agent, 0.95, r_env=1.0, r_task=0.25)
    arrive(agent, 0.35, r_env=0.0, r_task=0.5)
    arrive(agent, 0.75, r_env=0.5, r_task=100.0)  # a move too many
    arrive(agent, 0.95, r_env=9.0, r_task=7.0)  # a reward too many; the machine is known there
    assert agent.q[0, 0, 1] == 8.0
    arrive(agent, 0.35, r_env=9.0, r_task=7.0)  # and here
    r_env = (1.0 + 0.0 + 0.5) / 3
    gains = 0.25 + 0.5 * 8.0, 0.5 + 0.5 * 8.0
    assert agent.q[0, 0, 1] == r_env + sum(gains) / 2 == 4.875
    assert agent.task.counts.n[0, :4].tolist() == [0, 2, 2, 1]  # 0.75 was entered once
    assert agent.env.counts.n[0].tolist() == [0, 3]


@small
def test_for_bucket_rmax_two_counts_are_all_there_are() -> None:
    config = make_config(
        "bucket-rmax", {"grid": 10, "gamma": 0.5, "v_max": 8.0, "t_env": 1, "t_env_reward": 2}
    )
    box = Observations([0.0], [1.0])
    agent = make_agent("bucket-rmax", Sizes(0, 2, 2), config, stream(7, "agent"), None, box)
    agent.begin_episode(agent.perceive([0.05], 0), 0)
    arrive(agent, 0.95, r_env=1.0, r_task=2.0)
    assert agent.q[0, 0].tolist() == [8.0, 8.0]
    arrive(agent, 0.35, r_env=0.0, r_task=0.5)  # its move is one too many
    assert agent.q[0, 0].tolist() == [8.0, (3.0 + 0.5) / 2 + 0.5 * 8.0]


# --- what every agent must do


@every_agent
@pytest.mark.parametrize("loop", [PlaneTrial.play, PlaneTrial.rush])
def test_the_same_seed_does_the_same_and_another_seed_does_not(name: str, loop: Any) -> None:
    first, again, other = (
        loop(bucket_trial(name, LIVELY[4], seed=seed, t_env=3), 150).state() for seed in (5, 5, 6)
    )
    assert first == again
    assert first["world"] != other["world"]
    assert first["buckets.rows"] != other["buckets.rows"]


@every_agent
@pytest.mark.parametrize("steps", [1, 60, 400])
@pytest.mark.parametrize("grid", [None, 20])
def test_a_restored_agent_goes_on_bit_for_bit_from_the_middle_of_an_episode(
    name: str, steps: int, grid: int | None
) -> None:
    problem, options = LIVELY[4], {"t_env": 3, "grid": grid, "event_aware": True}
    original = bucket_trial(name, problem, **options).play(steps)
    kept = original.agent.snapshot()
    bytes_kept = {key: array.tobytes() for key, array in kept.items()}
    copy = bucket_trial(name, problem, seed=99, **options)
    copy.agent.make_room_for(kept)
    copy.agent.restore(kept)
    copy.agent.rng = stream_at(original.agent.rng.position())
    copy.simulator.rng = stream_at(original.simulator.rng.position())
    copy.simulator.state[:] = original.simulator.state
    copy.simulator.stand(original.simulator.position)
    assert copy.state() == original.state()
    assert original.play(200).state() == copy.rush(200, chunks=[7]).state()
    assert {key: array.tobytes() for key, array in kept.items()} == bytes_kept  # no views


@every_agent
def test_what_is_known_is_counted_for_the_buckets_there_are(name: str) -> None:
    problem = LIVELY[4]
    tried = bucket_trial(name, problem, t_env=2, grid=6)
    assert tried.agent.known() == (0, 0)
    before = 0
    for _ in range(6):
        known = tried.rush(100).agent.known()
        found, q, a = len(tried.agent.buckets), problem.n_task_states, problem.n_actions
        assert known.of == (found * q * a if name == "bucket-rmax" else found * (q + a))
        assert before <= known.pairs <= known.of
        before = known.pairs
    assert before > 20


@small
@every_agent
def test_the_policy_is_the_first_of_the_equally_good_by_buckets(name: str) -> None:
    tried = bucket_trial(name, LIVELY[4], t_env=2, grid=6).rush(300)
    policy = tried.agent.recommendation()
    np.testing.assert_array_equal(policy.table, tried.agent.q.argmax(axis=2))
    observation = tried.simulator.observation()
    label = int(tried.simulator.world.label[tried.simulator.place])
    here = tried.agent.buckets.find(observation, label)
    assert policy.action(observation, label, 1) == policy.table[here, 1]


@every_agent
def test_only_agents_that_know_the_machine_are_given_it(name: str) -> None:
    kind = Counterfactual if name.endswith("-rm") else Observed
    assert type(bucket_trial(name, LIVELY[1]).agent.experience) is kind


@every_stranger
def test_an_agent_that_does_not_know_the_machine_works_without_one(name: str) -> None:
    problem = LIVELY[1]
    config = make_config(name, {"t_env": 2})
    agent = make_agent(name, Sizes(0, 3, 2), config, stream(7, "agent"), None, problem.observations)
    world = PlaneSimulator(problem, stream(7, "world"), agent.perceive)
    blind = PlaneTrial(agent, world).play(100)
    assert blind.state() == bucket_trial(name, problem, t_env=2).play(100).state()


def test_agents_that_know_the_machine_refuse_a_random_one() -> None:
    with pytest.raises(ParameterError, match=r"stochastic reward machine.*use 'qrmax'"):
        bucket_trial("bucket-qrmax-rm", CHANCY[0])
