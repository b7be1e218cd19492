"""Runs of agents with buckets: whole or broken off, on planes and on environments."""

from __future__ import annotations

import importlib.util
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

import qrmax
from box_worlds import CLASSIC, PICTURES, InABox, Screen, classic, picture, screen
from bucket_trials import BUCKET_AGENTS, bucket_trial, chancy, side_trip
from gym_worlds import in_order, lake, successes
from qrmax.agents import step_loops
from qrmax.errors import CheckpointError, ObservationError, ParameterError
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.seeding import stream
from qrmax.training import checkpoint
from qrmax.training.plane_evaluator import PlaneEvaluator
from qrmax.training.warm_up import needs_compiling, warm_up
from small_runs import assert_same_arrays, assert_same_run, session_of

LAKE = "continuous/frozen-lake/abc"
LIVELY = {"step": 0.9, "noise": 0.2, "decoration_penalty": 0.3, "max_episode_steps": 50}
NEVER = 10**9  # checks compare with an optimum, which takes long to find

every_agent = pytest.mark.parametrize("name", BUCKET_AGENTS)


def trained(name: str, problem: Any, max_steps: int, **options: Any) -> qrmax.Run:
    options = {"t_env": 3, "evaluate_every": NEVER, "stop": "budget", **options}
    return qrmax.train(name, problem, max_steps=max_steps, **options)


def kept(run: qrmax.Run, env: Any = None) -> qrmax.Run:
    """The run that comes back from a file."""
    data = checkpoint.to_bytes(session_of(run))
    return qrmax.Run(checkpoint.from_bytes(data, "a run", env))


def assert_same(one: qrmax.Run, other: qrmax.Run) -> None:
    """The same run to the last bit, and in the same place."""
    assert_same_run(one, other)
    ours, theirs = session_of(one).player, session_of(other).player
    assert ours.state.tolist() == theirs.state.tolist()
    assert ours.position.tolist() == theirs.position.tolist()
    assert ours.s == theirs.s
    assert one.episodes == other.episodes


# --- broken off and gone on with

PROBLEMS: list[ContinuousProblem] = [
    qrmax.make(LAKE, **LIVELY),
    side_trip(),
    qrmax.make("continuous/bottleneck/abc", step=0.1, max_episode_steps=60),
    qrmax.make("continuous/office/map1/exp5", step=1.5, noise=0.2, decoration_penalty=1.0),
    qrmax.make(LAKE, rotation=-50.0, sensor_noise=0.4, **LIVELY),
]


@every_agent
@given(
    problem=st.sampled_from(PROBLEMS),
    breaks=st.lists(st.integers(1, 399), max_size=4, unique=True).map(sorted),
    compiled=st.booleans(),
    buckets=st.sampled_from([{}, {"grid": 9}, {"grid": 9, "event_aware": True}, {"bits": 16}]),
    rewards=st.sampled_from([{}, {"t_env_reward": 1}, {"t_env_reward": 5}]),
)
@settings(max_examples=12)
def test_a_run_broken_off_and_resumed_is_one_that_was_not(
    name: str,
    problem: ContinuousProblem,
    breaks: list[int],
    compiled: bool,
    buckets: dict[str, Any],
    rewards: dict[str, int],
) -> None:
    options = {"compiled": compiled, **buckets, **rewards}
    whole = trained(name, problem, 400, **options)
    run = trained(name, problem, [*breaks, 400][0], **options)
    for until in [*breaks[1:], 400] if breaks else []:
        loaded = kept(run)
        assert_same(loaded, run)
        run = loaded.resume(until)
    assert_same(run, whole)
    assert_same(kept(run), whole)


@every_agent
def test_both_speeds_make_the_same_run(name: str) -> None:
    fast, slow = (
        trained(name, PROBLEMS[0], 900, grid=14, compiled=compiled) for compiled in (True, False)
    )
    assert_same(fast, slow)
    assert len(fast.agent.buckets) > 64


def test_a_random_task_is_gone_on_with() -> None:
    problem = qrmax.make("continuous/frozen-lake", task=chancy("A", "B"), **LIVELY)
    whole = trained("bucket-qrmax", problem, 600, t_task=5, seed=3)
    assert_same(kept(trained("bucket-qrmax", problem, 250, t_task=5, seed=3)).resume(600), whole)
    assert (whole.agent.task.counts.outcome[..., 1:] >= 0).any()  # both outcomes were seen


def test_a_file_of_a_run_makes_it_again(tmp_path: Path) -> None:
    run = trained("bucket-qrmax", PROBLEMS[0], 500)
    run.save(tmp_path / "run")
    assert_same(qrmax.load(tmp_path / "run"), run)
    assert_same(qrmax.load(tmp_path / "run").resume(700), run.resume(700))


def test_going_on_needs_room_for_it() -> None:
    line = qrmax.make("continuous/line/ab")
    run = trained("bucket-qrmax", line, 5000, max_episodes=5, evaluate_every=100)
    assert run.episodes >= 5
    assert run.trained < 5000
    with pytest.raises(ParameterError, match="max_episodes is 5; give more to resume"):
        run.resume(max_steps=9000)
    longer = run.resume(max_episodes=20)
    whole = trained("bucket-qrmax", line, 5000, max_episodes=20, evaluate_every=100)
    assert_same(longer, whole)


def test_tables_have_a_row_for_each_bucket_and_no_more() -> None:
    run = trained("bucket-qrmax", PROBLEMS[0], 500, grid=9)
    found = len(run.agent.buckets)
    assert 0 < found < run.agent.sizes.states
    assert run.policy.shape == (found, 4)
    assert run.agent.q.shape == (found, 4, 4)


@pytest.mark.parametrize("task", [4, -1, 0.5, "start", None, [0]])
def test_a_task_state_that_is_none_is_told(task: Any) -> None:
    run = trained("bucket-qrmax", PROBLEMS[0], 100)
    for fine in (3, np.int64(3), np.array(3)):
        assert run.act({"state": [0.5, 0.5], "task": fine}) in range(4)
    with pytest.raises(ParameterError, match=r'observation\["task"\] is .*; allowed: 0 to 3'):
        run.act({"state": [0.5, 0.5], "task": task})


def test_watching_a_plane_takes_an_environment_of_planes() -> None:
    run = trained("bucket-qrmax", PROBLEMS[0], 100)
    with pytest.raises(ParameterError, match=r"qrmax\.ContinuousEnv\(problem\)"):
        run.watch()
    assert [*run.watch(qrmax.ContinuousEnv(PROBLEMS[0]), seed=1)]


# --- learning


@every_agent
@pytest.mark.parametrize(
    ("problem", "grid", "steps", "least"),
    [(side_trip(), 20, 5000, 0.95), (qrmax.make(LAKE, max_episode_steps=300), 10, 60_000, 0.6)],
    ids=["line", "lake"],
)
def test_a_plane_is_learned(
    name: str, problem: ContinuousProblem, grid: int, steps: int, least: float
) -> None:
    options = {"t_env": 10, "gamma": 0.95, "event_aware": True}
    run = trained(name, problem, steps, grid=grid, **options)
    evaluator = PlaneEvaluator(problem, 0.95)
    before = bucket_trial(name, problem, grid=grid, **options).agent.recommendation()
    assert evaluator.success(before, 200, stream(7, "evaluation")) == 0.0
    assert evaluator.success(run.recommendation, 200, stream(7, "evaluation")) >= least


# --- one bucket for each state


def renumbered(problem: qrmax.Problem, run: qrmax.Run) -> qrmax.Problem:
    """The same problem, its states numbered as they have turned up in a run."""
    found = [run.agent.buckets.find([s + 0.5], 0) for s in range(problem.n_states)]
    unseen = iter(range(sum(number is not None for number in found), problem.n_states))
    number = np.array([next(unseen) if n is None else n for n in found])
    back, mdp = np.argsort(number), problem.mdp
    return qrmax.Problem(
        qrmax.TabularMDP(
            number[mdp.succ][back],
            mdp.prob[back],
            mdp.reward[back],
            terminal=mdp.terminal[back],
            start=mdp.start[back],
        ),
        problem.machine,
        problem.labels,
        problem.label[back],
        max_episode_steps=problem.max_episode_steps,
    )


@pytest.mark.parametrize("name", ["qrmax", "qrmax-rm", "rmax"])
def test_with_one_bucket_for_each_state_a_run_is_that_of_the_discrete_agent(name: str) -> None:
    problem = qrmax.make("office/map1/exp1")
    options = {"t_env": 3, "max_steps": 2000, "evaluate_every": 200}
    bucketed = qrmax.train(f"bucket-{name}", InABox(problem), grid=problem.n_states, **options)
    plain = qrmax.train(name, qrmax.ProblemEnv(renumbered(problem, bucketed)), **options)
    found = len(bucketed.policy)
    np.testing.assert_array_equal(plain.policy[:found], bucketed.policy)
    np.testing.assert_array_equal(plain.agent.q[:found], bucketed.agent.q[:found])
    for key, counter in plain.agent.counters.items():
        ours, theirs = counter.counts, bucketed.agent.counters[key].counts
        room = tuple(slice(length) for length in ours.n.shape)
        assert all(np.array_equal(a, b[room]) for a, b in zip(ours, theirs, strict=True))
    assert plain.curve == bucketed.curve
    assert (plain.steps, plain.episodes) == (bucketed.steps, bucketed.episodes)
    assert plain.agent.rng.position() == bucketed.agent.rng.position()


# --- environments of Gymnasium's


def _needs(name: str) -> Any:
    there = name != "LunarLander-v3" or importlib.util.find_spec("Box2D") is not None
    marks = [] if there else [pytest.mark.skip(reason="box2d is not installed")]
    return pytest.param(name, marks=marks)


@every_agent
@pytest.mark.parametrize("env", [_needs(name) for name in CLASSIC])
def test_an_environment_is_gone_on_with_after_an_episode(name: str, env: str) -> None:
    """In the middle of one it cannot be: a file does not hold an environment."""
    options = {"t_env": 2, "event_aware": True}
    first = classic(env)
    whole = trained(name, first, 300, **options)
    until = max(end for end in first.ends if end <= 200)
    part = trained(name, classic(env), until, **options)
    run = kept(part, classic(env))
    assert_same_arrays(run.agent.snapshot(), part.agent.snapshot())
    run = run.resume(300)
    assert_same_arrays(run.agent.snapshot(), whole.agent.snapshot())
    assert run.agent.rng.position() == whole.agent.rng.position()
    assert run.episodes == whole.episodes == len(first.ends) + (first.ends[-1] < 300)
    assert session_of(run).domain.task.labels == session_of(whole).domain.task.labels
    assert len(run.agent.buckets) > 5
    seen, info = first.reset()
    assert first.action_space.contains(run.act(seen, info))


@pytest.mark.parametrize("buckets", [{}, {"grid": 3}], ids=["SimHash", "grid"])
def test_a_screen_is_learned_from(buckets: dict[str, int]) -> None:
    env = screen(PICTURES, picture)
    run = trained("bucket-qrmax", env, 500, t_env=1, **buckets)
    assert len(run.agent.buckets) == 8  # one for each place of the dot
    assert successes(run, env, 1) == 1


def test_observations_in_single_precision_and_rows_are_learned_from() -> None:
    def show(at: int, _: int) -> np.ndarray:
        return np.full((2, 3), at / 8.0, dtype=np.float32)

    env = screen(spaces.Box(0.0, 1.0, (2, 3), np.float32), show)
    run = trained("bucket-rmax", env, 600, t_env=1, grid=8)
    assert successes(run, env, 1) == 1


def test_observations_without_bounds_are_squashed() -> None:
    def show(at: int, _: int) -> np.ndarray:
        return np.array([at - 3.5, 1e30 * (at - 3.5)])

    env = screen(spaces.Box(-np.inf, np.inf, (2,)), show)
    run = trained("bucket-qrmax", env, 800, t_env=1, grid=40)
    assert len(run.agent.buckets) == 8
    assert successes(run, env, 1) == 1


# --- what is no observation


def breaking(bad: Any, after: int = 20) -> qrmax.TaskWrapper:
    """Shows something else in the middle of an episode."""

    def show(at: int, time: int) -> Any:
        return bad if time == after else np.array([at, 0.0, 1.0], dtype=np.float32)

    return screen(spaces.Box(-10.0, 10.0, (3,), np.float32), show)


@every_agent
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([0.0, 0.0, np.nan], "has nan in dimension 2"),
        ([0.0, -np.inf, 0.0], "has -inf in dimension 1"),
        ([0.0, 0.0], "has 2 numbers; needed: 3"),
        ([[0.0, 0.0, 0.0]], r"has the shape \(1, 3\); needed: \(3,\)"),
        ("up", "is not a vector of 3 numbers"),
        (None, "needed: 3"),
    ],
)
def test_what_is_no_observation_stops_the_run(name: str, bad: Any, message: str) -> None:
    with pytest.raises(ObservationError, match=message):
        trained(name, breaking(bad), 100)


def test_nothing_is_learned_from_what_is_no_observation() -> None:
    env = breaking([0.0, 0.0, np.nan])
    run = trained("bucket-qrmax", env, 20 - 1)
    known = len(run.agent.buckets)
    seen, info = env.reset()
    seen["state"] = np.array([np.nan, 0.0, 0.0])
    with pytest.raises(ObservationError, match="nan in dimension 0"):
        run.act(seen, info)
    assert len(run.agent.buckets) == known


@pytest.mark.parametrize(
    ("low", "high", "kind", "message"),
    [
        (0.0, 0.0, np.float32, "dimension 0 is bounded by 0 and 0"),
        (0, 1, np.bool_, "needs a Box of numbers"),
    ],
)
def test_a_box_that_bounds_nothing_is_refused(
    low: float, high: float, kind: Any, message: str
) -> None:
    env = screen(spaces.Box(low, high, (2,), kind), lambda *_: np.zeros(2, dtype=kind))
    with pytest.raises(ParameterError, match=message):
        trained("bucket-qrmax", env, 10)


# --- what does not go together


@pytest.mark.parametrize("name", ["qrmax", "q-learning", "ucbvi-b"])
def test_an_agent_for_numbered_states_names_those_for_a_plane(name: str) -> None:
    options = {"horizon": 10} if name == "ucbvi-b" else {}
    with pytest.raises(ParameterError, match=r"discrete states.*there are: .*bucket-qrmax"):
        qrmax.train(name, qrmax.make("continuous/line/ab"), **options)


@every_agent
def test_an_agent_with_buckets_names_those_for_numbered_states(name: str) -> None:
    with pytest.raises(ParameterError, match=r"real-valued observations.*there are: .*qrmax"):
        qrmax.train(name, qrmax.make("office/map1/exp1"))
    for env in (lake(), qrmax.ProblemEnv(qrmax.make("office/map1/exp1"))):
        with pytest.raises(ParameterError, match=r"Discrete.*needs a Box.*'qrmax'"):
            qrmax.train(name, env, max_steps=10)


def test_an_agent_for_numbered_states_on_a_box_names_those_with_buckets() -> None:
    with pytest.raises(ParameterError, match=r"a Box space.*'bucket-qrmax'"):
        qrmax.train("qrmax", classic("CartPole-v1"), max_steps=10)


@pytest.mark.parametrize("rule", ["exact", "nominal", "welch"])
def test_rules_that_need_what_is_exact_name_those_that_do_not(rule: str) -> None:
    with pytest.raises(ParameterError, match=f"stop is '{rule}'.*'success', 'reaches', 'budget'"):
        qrmax.train("bucket-qrmax", qrmax.make("continuous/line/ab"), stop=rule)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: classic("MountainCar-v0"), "other sizes|other observations"),
        (lambda: screen(spaces.Box(0, 250, (4, 8, 3), np.uint8), picture), "other observations"),
        (lambda: screen(spaces.Box(0, 255, (4, 8), np.uint8), picture), "other observations"),
        (
            lambda: qrmax.TaskWrapper(
                Screen(PICTURES, picture), in_order("left"), labels=lambda *_: ()
            ),
            "another task",
        ),
    ],
)
def test_another_environment_is_refused(other: Any, message: str) -> None:
    run = trained("bucket-qrmax", screen(PICTURES, picture), 30)
    with pytest.raises(ParameterError, match=message):
        kept(run, other())
    with pytest.raises(CheckpointError, match=r"give it in Python: qrmax.load\(path, env=...\)"):
        kept(run)


# --- what to do


def test_the_action_is_that_of_the_bucket_and_leaves_no_trace() -> None:
    run = trained("bucket-qrmax", PROBLEMS[0], 600, grid=9)
    before = run.agent.snapshot()
    rng = np.random.default_rng(0)
    actions = set()
    for observation in rng.uniform(-1.0, 11.0, (60, 2)):
        for q in range(3):
            bucket = run.agent.buckets.find(observation, 0)
            action = run.act({"state": observation, "task": q})
            assert action == (0 if bucket is None else run.policy[bucket, q])
            actions.add(action)
    assert actions == {0, 1, 2, 3}
    assert_same_arrays(run.agent.snapshot(), before)


def test_where_buckets_are_event_aware_the_label_is_that_of_the_position() -> None:
    problem = qrmax.make(LAKE)
    assert problem.labels[problem.label_of([4.5, 4.5])] == {"A"}
    borders = [[10.0, 4.5], [-3.0, 4.5], [4.5, 99.0]]
    inside = [[9.9, 4.5], [0.0, 4.5], [4.5, 9.9]]
    assert [problem.label_of(x) for x in borders] == [problem.label_of(x) for x in inside]
    hole = problem.label_of([0.5, 7.5])
    assert problem.labels[hole] == {"hole"}
    assert problem.label_of([10.0, 6.5]) != hole  # the row below begins with one
    assert problem.label_of([-0.1, 7.5]) == hole


def test_where_buckets_are_event_aware_an_environment_has_to_tell_the_label() -> None:
    env = classic("CartPole-v1")
    seen, info = env.reset()
    aware, unaware = (trained("bucket-qrmax", env, 50, event_aware=flag) for flag in (True, False))
    with pytest.raises(ParameterError, match=r"event_aware.*run.act\(observation, info\)"):
        aware.act(seen)
    assert aware.act(seen, info) in (0, 1)
    assert unaware.act(seen) == unaware.act(seen, info)


def test_two_seeds_have_other_hyperplanes() -> None:
    one, other, again = (trained("bucket-qrmax", PROBLEMS[0], 5, seed=seed) for seed in (1, 2, 1))
    rows = [run.agent.buckets.projection.rows for run in (one, other, again)]
    assert not np.array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(rows[0], rows[2])


def test_more_functions_make_more_buckets() -> None:
    found = [
        len(trained("bucket-qrmax", PROBLEMS[0], 3000, functions=functions).agent.buckets)
        for functions in (1, 2, 8)
    ]
    assert all(few < more for few, more in pairwise(found))


# --- compiling ahead


@every_agent
def test_what_a_run_needs_is_compiled_ahead(name: str) -> None:
    warm_up(name)
    assert not needs_compiling(name)


@pytest.mark.skipif(not hasattr(step_loops.explore, "signatures"), reason="nothing is compiled")
def test_one_compilation_serves_all_worlds_agents_and_files() -> None:
    warm_up("bucket-qrmax")
    before = len(step_loops.explore.signatures), len(step_loops.sample_returns.signatures)
    for problem in PROBLEMS:
        for name, buckets in zip(
            BUCKET_AGENTS, ({}, {"grid": 5}, {"event_aware": True}), strict=True
        ):
            run = kept(trained(name, problem, 50, **buckets)).resume(100)
        PlaneEvaluator(problem, 0.9).success(run.recommendation, 5, stream(7, "evaluation"))
    assert (len(step_loops.explore.signatures), len(step_loops.sample_returns.signatures)) == before
