"""Training on Gymnasium environments with tasks of one's own."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import qrmax
from gym_worlds import Loop, cliff, in_order, lake, room, successes, taxi
from qrmax.errors import CheckpointError, ParameterError
from qrmax.training.checkpoint import load_session
from qrmax.training.exact_evaluator import relative_gap
from small_runs import assert_same_arrays, corridor, fetching, session_of

AGENTS = ["q-learning", "qrm", "rmax", "rmax-rm", "qrmax", "qrmax-rm"]
PLANNING = AGENTS[2:]
UP = 3  # FrozenLake's


def learned(name: str, env: Any, *, planning: dict[str, Any], other: dict[str, Any]) -> qrmax.Run:
    """A run with settings that suit the kind of agent."""
    return qrmax.train(name, env, stop="budget", **(planning if name in PLANNING else other))


# --- environments of Gymnasium's are learned


@pytest.mark.parametrize("name", AGENTS)
def test_a_lake_that_does_not_slip_is_learned(name: str) -> None:
    env = lake()
    run = learned(
        name, env, planning={"t_env": 1, "max_steps": 1500}, other={"alpha": 0.3, "max_steps": 6000}
    )
    assert successes(run, env, 1) == 1
    seen, _ = env.reset(seed=0)
    for _ in range(3):
        seen, *_ = env.step(run.act(seen))
    assert seen["state"] == 3  # the shortest way there
    assert run.problem is run.best is run.gap is None
    assert run.evaluation.success == 1.0


@pytest.mark.parametrize("name", AGENTS)
def test_a_slippery_lake_is_learned(name: str) -> None:
    env = lake(is_slippery=True)
    steps = 50_000 if name == "rmax" else 20_000
    run = learned(
        name,
        env,
        planning={"t_env": 30, "gamma": 0.99, "max_steps": steps},
        other={"gamma": 0.99, "max_steps": steps},
    )
    assert successes(run, env, 50) >= 45


@pytest.mark.parametrize("name", AGENTS)
def test_a_walk_along_the_cliff_is_learned(name: str) -> None:
    env = cliff()
    run = learned(
        name,
        env,
        planning={"t_env": 1, "gamma": 0.95, "max_steps": 4000},
        other={"gamma": 0.95, "alpha": 0.3, "q0": 50.0, "max_steps": 20_000},
    )
    assert successes(run, env, 1) == 1


@pytest.mark.filterwarnings("ignore:the greedy policy is not evaluated")  # labels look at the env
@pytest.mark.parametrize("name", AGENTS)
def test_a_taxi_is_driven(name: str) -> None:
    env = taxi()
    run = learned(
        name,
        env,
        planning={"t_env": 1, "gamma": 0.95, "max_steps": 20_000},
        other={"gamma": 0.95, "alpha": 0.5, "q0": 20.0, "max_steps": 60_000},
    )
    assert successes(run, env, 30) == 30


@pytest.mark.parametrize("kind", ["discrete", "multidiscrete", "tuple", "dict"])
@pytest.mark.parametrize("name", ["q-learning", "rmax", "qrmax-rm"])
def test_observations_of_every_finite_kind_are_learned_from(name: str, kind: str) -> None:
    """Actions are numbered from 1 on here."""
    env = room(kind)
    run = learned(
        name, env, planning={"t_env": 1, "max_steps": 800}, other={"alpha": 0.5, "max_steps": 4000}
    )
    seen, _ = env.reset(seed=0)
    over, length = False, 0
    while not over:
        action = run.act(seen)
        assert 1 <= action <= 4
        seen, _, ended, cut, info = env.step(action)
        over, length = ended or cut, length + 1
    assert info["success"]
    assert length == 2 + 4


def test_the_same_is_learned_whatever_the_observation_looks_like() -> None:
    runs = [
        qrmax.train("qrmax", room(kind, noise=0.2), seed=3, t_env=5, max_steps=1500)
        for kind in ("discrete", "multidiscrete", "tuple")
    ]
    for run in runs[1:]:
        assert_same_arrays(run.agent.snapshot(), runs[0].agent.snapshot())
        assert run.curve == runs[0].curve


def test_wrappers_may_lie_over_the_task() -> None:
    env = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.wrappers.TimeLimit(lake(), 40))
    run = qrmax.train("qrmax", env, t_env=1, max_steps=1500)
    assert successes(run, env, 1) == 1
    assert repr(run) == "Run('qrmax' on 'FrozenLake-v1', seed 0: 1500 steps, budget)"


# --- labels of whole steps


@pytest.mark.parametrize("name", AGENTS)
def test_labels_of_steps_are_learned_where_the_state_reached_settles_them(name: str) -> None:
    corners = {0: {"home"}, 3: {"corner"}}
    env = qrmax.TaskWrapper(
        gymnasium.make("FrozenLake-v1", is_slippery=False),
        in_order("corner", "home", reward=5.0),
        transition_labels=lambda _before, _action, after, _info: corners.get(after, ()),
    )
    run = learned(
        name, env, planning={"t_env": 1, "max_steps": 1500}, other={"alpha": 0.3, "max_steps": 6000}
    )
    assert successes(run, env, 1) == 1


@pytest.mark.parametrize("name", AGENTS)
def test_labels_of_steps_are_learned_where_it_matters_where_the_step_came_from(name: str) -> None:
    def labels(before: int, action: int, after: int, _: Any) -> set[str]:
        return {"came_up"} if (before, action, after) == (4, UP, 0) else set()

    env = qrmax.TaskWrapper(
        gymnasium.make("FrozenLake-v1", is_slippery=False),
        in_order("came_up", reward=5.0),
        transition_labels=labels,
    )
    run = learned(
        name, env, planning={"t_env": 2, "max_steps": 3000}, other={"alpha": 0.3, "max_steps": 6000}
    )
    assert successes(run, env, 1) == 1


@pytest.mark.parametrize("name", ["qrmax", "qrmax-rm"])
def test_where_labels_belong_to_steps_the_action_depends_on_what_was_read(name: str) -> None:
    env = qrmax.TaskWrapper(
        gymnasium.make("FrozenLake-v1", is_slippery=False),
        in_order("moved"),
        transition_labels=lambda before, _, after, __: {"moved"} if before != after else set(),
    )
    run = qrmax.train(name, env, max_steps=50, t_env=1)
    assert run.policy.shape == (2 * 16, 2)  # each observation with and without "moved"
    seen, info = env.reset(seed=0)
    assert run.act(seen, info) in range(4)
    with pytest.raises(ParameterError, match="give both"):
        run.act(seen)


class Dearer(qrmax.TaskWrapper):
    """A wrapper of one's own: each step costs 1 more."""

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        info = {**info, "r_env": info["r_env"] - 1.0}
        return observation, reward - 1.0, terminated, truncated, info


@pytest.mark.filterwarnings("ignore::qrmax.QRMaxWarning")
@pytest.mark.parametrize("name", ["q-learning", "qrm", "qrmax", "qrmax-rm"])
def test_a_task_is_learned_alike_with_or_without_a_layer_over_it(name: str) -> None:
    """Without one, `TaskWrapper.advance` is asked in place of `step`."""
    options: dict[str, Any] = {"seed": 5, "max_steps": 1500, "stop": "budget"}
    plain = qrmax.train(name, lake(is_slippery=True), **options)
    layered = qrmax.train(name, gymnasium.Wrapper(lake(is_slippery=True)), **options)
    assert_same_arrays(session_of(plain).agent.snapshot(), session_of(layered).agent.snapshot())
    assert plain.episodes == layered.episodes


def test_a_step_of_ones_own_is_not_passed_by() -> None:
    env = lake()
    dearer = Dearer(env.env, env.machine, env.labelling.function)
    run = qrmax.train("q-learning", dearer, max_steps=200, stop="budget", q0=0.0)
    assert session_of(run).agent.q.min() < -0.5


def test_too_many_propositions_for_labels_of_steps_are_refused() -> None:
    names = [f"p{number}" for number in range(9)]
    env = qrmax.TaskWrapper(
        gymnasium.make("FrozenLake-v1"), in_order(*names), transition_labels=lambda *_: set()
    )
    with pytest.raises(ParameterError, match="names 9 propositions"):
        qrmax.train("qrmax", env, max_steps=10)
    assert qrmax.train("rmax", env, max_steps=10).trained == 10


# --- rewards and ends keep their meaning


def test_what_the_world_pays_and_what_the_task_pays_are_learned_apart() -> None:
    run = qrmax.train("qrmax", lake(), seed=1, t_env=1, max_steps=1500)
    paid_by_world = np.argwhere(run.agent.env.counts.rho)
    paid_by_task = np.argwhere(run.agent.task.counts.rho)
    assert paid_by_world.tolist() == [[14, 2]]  # right, from the cell before the lake's own goal
    assert run.agent.env.estimate(14, 2).reward == 1.0
    assert paid_by_task.tolist() == [[1, 0]]  # home, having been in the corner
    assert run.agent.task.estimate(1, 0).reward == 5.0


def loop(*, limit: int = 1, **options: Any) -> qrmax.TaskWrapper:
    env = gymnasium.wrappers.TimeLimit(Loop(**options), limit)
    return qrmax.TaskWrapper(env, in_order("never"), labels=lambda *_: ())


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize(("terminates", "value"), [(False, 2.0), (True, 1.0)])
def test_an_end_is_worth_nothing_more_but_a_truncation_is(
    name: str, terminates: bool, value: float
) -> None:
    """Every episode has one step, which pays 1: with gamma 0.5 a world that goes on is worth 2."""
    run = learned(
        name,
        loop(terminates=terminates),
        planning={"gamma": 0.5, "t_env": 3, "tolerance": 1e-10, "max_steps": 100},
        other={"gamma": 0.5, "alpha": 1.0, "q0": 0.0, "max_steps": 100},
    )
    assert run.agent.q[0, 0, 0] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        *AGENTS[:2],
        *(
            pytest.param(
                name,
                marks=pytest.mark.xfail(
                    strict=True,
                    raises=AssertionError,
                    reason="takes the state in which an episode has ended for an end at any time",
                ),
            )
            for name in PLANNING
        ),
    ],
)
def test_an_end_that_looks_like_any_other_state_is_learned(name: str) -> None:
    """As in Blackjack, where one stops without the cards changing."""
    run = learned(
        name,
        loop(terminates=True, end=0),
        planning={"gamma": 0.5, "t_env": 3, "max_steps": 100},
        other={"gamma": 0.5, "alpha": 1.0, "q0": 0.0, "max_steps": 100},
    )
    assert run.agent.q[0, 0, 0] == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["qrm", "rmax-rm", "qrmax-rm"])
def test_where_the_world_ends_it_ends_for_every_task_state(name: str) -> None:
    run = qrmax.train(name, lake(), max_steps=1500, **({"t_env": 1} if name in PLANNING else {}))
    into_a_hole = run.agent.q[4, :2, 2]
    if name in PLANNING:
        assert not into_a_hole.any()
    else:
        assert into_a_hole[0] == into_a_hole[1] < 1.5  # on its way down from 2


# --- what is told


def test_a_row_of_the_curve_is_about_rollouts_of_the_greedy_policy() -> None:
    run = qrmax.train("qrmax", loop(limit=3), gamma=0.5, max_steps=100, evaluate_every=30)
    assert [row[:8] for row in run.curve] == [
        (step, 1.0 + 0.5 + 0.25, None, 0.0, None, step // 3, 3.0, 3.0) for step in (30, 60, 90)
    ]
    assert all(row.length_low == row.length == row.length_high for row in run.curve)
    assert all(row.success_low == 0.0 < row.success_high < 0.3 for row in run.curve)


def test_success_is_that_of_the_greedy_policy_not_of_exploration() -> None:
    run = qrmax.train("q-learning", lake(), epsilon=0.9, max_steps=10_000)
    assert run.reason == "reaches"
    assert run.curve[-1].success == 1.0 > 0.5  # at random, next to none reach the goal
    assert run.curve[-1].start_value == pytest.approx(5.0 * 0.9**5)


def test_a_reward_above_r_max_warns_once() -> None:
    message = r"a step had a reward of 3, .* give r_max=3 or more"
    with pytest.warns(qrmax.QRMaxWarning, match=message) as told:
        run = qrmax.train("qrmax", loop(pays=3.0), max_steps=500)
    assert len(told) == 1
    assert told[0].filename == __file__
    run.resume(600)  # a second warning would be an error
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        qrmax.train("qrmax", loop(pays=3.0), r_max=3.0, max_steps=500)
        qrmax.train("qrmax", loop(pays=3.0), v_max=30.0, max_steps=500)
        qrmax.train("q-learning", loop(pays=3.0), max_steps=500)


def test_r_max_is_by_default_what_the_task_pays_and_at_least_1() -> None:
    assert qrmax.train("qrmax", lake(reward=5.0), max_steps=5).agent.config.r_max == 5.0
    assert qrmax.train("qrmax", lake(reward=0.2), max_steps=5).agent.config.r_max == 1.0


# --- seeds


@pytest.mark.parametrize("name", AGENTS)
def test_seeds_reproduce_and_differ(name: str) -> None:
    options = {"max_steps": 600, "evaluate_every": 100}
    first, again, other = (
        qrmax.train(name, lake(is_slippery=True), seed=seed, **options) for seed in (5, 5, 6)
    )
    assert_same_arrays(first.agent.snapshot(), again.agent.snapshot())
    assert first.curve == again.curve != other.curve


def test_an_environment_that_was_used_before_gives_the_same_run() -> None:
    env = lake(is_slippery=True)
    first, again = (qrmax.train("qrmax", env, seed=5, max_steps=600) for _ in range(2))
    assert_same_arrays(first.agent.snapshot(), again.agent.snapshot())
    assert first.curve == again.curve


# --- our own worlds as environments


@pytest.mark.parametrize("name", ["rmax-rm", "qrmax"])
def test_an_office_from_gymnasium_is_learned_to_the_same_optimum(name: str) -> None:
    problem = qrmax.make("office/map1/exp1")
    env = gymnasium.make("qrmax/Office-map1-exp1-v0")
    run = qrmax.train(name, env, seed=2, t_env=30, max_steps=40_000)
    best = qrmax.evaluate(problem, qrmax.solve(problem).policy).start_value
    assert relative_gap(qrmax.evaluate(problem, run.policy).start_value, best) < 0.05
    assert run.problem is None


@pytest.mark.parametrize("name", AGENTS)
def test_a_problem_played_as_an_environment_is_learned(name: str) -> None:
    problem = corridor()
    run = learned(
        name,
        qrmax.ProblemEnv(problem),
        planning={"t_env": 30, "max_steps": 4000},
        other={"max_steps": 10_000},
    )
    assert (
        relative_gap(
            qrmax.evaluate(problem, run.policy).start_value,
            qrmax.evaluate(problem, fetching(problem)).start_value,
        )
        < 0.05
    )


def test_a_random_task_is_learned_on_an_environment() -> None:
    problem = corridor(chance=0.3)
    run = qrmax.train("qrmax", qrmax.ProblemEnv(problem), t_env=30, t_task=60, max_steps=20_000)
    key = run.agent.task.estimate(0, 0)
    assert dict(zip(key.outcomes.tolist(), key.prob, strict=True))[1] == pytest.approx(0.3, abs=0.2)
    assert np.array_equal(run.policy[1:5, :2], fetching(problem)[1:5, :2])


# --- going on, and files


def test_playing_the_environment_oneself_between_two_runs_does_no_harm() -> None:
    """A room without noise: each action always leads to the same place."""
    env = room()
    run = qrmax.train("qrmax", env, t_env=10, max_steps=5)
    for until in range(10, 400, 5):
        successes(run, env, 1)
        run = run.resume(until)
    assert run.trained == 395
    assert (run.agent.env.counts.outcome[..., 1:] == -1).all()


def test_training_on_learns_on() -> None:
    env = lake()
    run = qrmax.train("qrmax", env, t_env=1, max_steps=20)
    assert successes(run, env, 1) == 0
    assert successes(run.resume(1500), env, 1) == 1


@pytest.mark.parametrize("name", AGENTS)
def test_a_run_on_an_environment_is_loaded_with_it_and_learns_on(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run"
    early = learned(
        name, lake(), planning={"t_env": 1, "max_steps": 30}, other={"alpha": 0.3, "max_steps": 30}
    )
    early.save(path)
    env = lake()
    run = qrmax.load(path, env=env)
    assert_same_arrays(run.agent.snapshot(), early.agent.snapshot())
    assert (run.trained, run.reason, run.curve) == (30, "budget", early.curve)
    assert session_of(run).domain.task.labels == session_of(early).domain.task.labels
    assert successes(run.resume(6000), env, 1) == 1


def test_an_environment_goes_on_with_other_numbers_after_each_break(tmp_path: Path) -> None:
    """Else every break would begin with the same episode again."""
    path, env = tmp_path / "run", lake(is_slippery=True)
    qrmax.train("qrmax", env, max_steps=1).save(path)
    seeds = []
    for until in (2, 3, 4):
        run = qrmax.load(path, env=env).resume(until)
        seeds.append(env.unwrapped.np_random_seed)
        run.save(path)
    assert len(set(seeds)) == 3


def test_labels_as_mappings_to_booleans_are_learned_from_like_sets() -> None:
    def there_and_back(labels: Any) -> qrmax.Run:
        env = gymnasium.make("FrozenLake-v1", is_slippery=False)
        wrapped = qrmax.TaskWrapper(env, "F(corner & F home)", labels=labels)
        return qrmax.train("qrmax", wrapped, t_env=1, max_steps=600, evaluate_every=100)

    names = {0: {"home"}, 3: {"corner"}}
    sets = there_and_back(lambda seen, _: names.get(int(seen), ()))
    flags = there_and_back(lambda seen, _: {"home": seen == 0, "corner": seen == 3})
    assert flags.curve == sets.curve
    assert flags.curve[0].success < 1.0
    assert flags.evaluate(1).length.mean == 6.0


def test_a_session_on_an_environment_cannot_be_loaded_without_it(tmp_path: Path) -> None:
    path = tmp_path / "run"
    qrmax.train("qrmax", lake(), max_steps=50).save(path)
    with pytest.raises(CheckpointError) as caught:
        load_session(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "'FrozenLake-v1'" in str(caught.value)
    assert "qrmax.load(path, env=...)" in str(caught.value)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: lake(map_name="8x8"), "other sizes"),
        (cliff, "another task"),
        (lambda: lake(reward=6.0), "another task"),
        (lambda: gymnasium.make("FrozenLake-v1"), "has no task"),
        (lambda: gymnasium.make_vec("FrozenLake-v1", num_envs=2), "has no task"),
        (corridor, "has no task"),
    ],
    ids=["larger", "cliff", "other reward", "no task", "vector", "problem"],
)
def test_another_environment_is_refused(other: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / "run"
    qrmax.train("qrmax", lake(), max_steps=50).save(path)
    with pytest.raises(ParameterError, match=words):
        qrmax.load(path, env=other())


# --- real observations


@pytest.mark.parametrize("agent", ["bucket-qrmax", "bucket-qrmax-rm", "bucket-rmax"])
def test_our_worlds_with_real_positions_are_played_as_environments(agent: str) -> None:
    env = gymnasium.make("qrmax/ContinuousLine-ab-v0")
    run = qrmax.train(agent, env, seed=1, grid=20, t_env=3, max_steps=4000)
    assert run.curve[-1].success == 1.0
    assert run.reason == "reaches"
    assert run.episodes == run.curve[0].episodes > 20
    observation, info = env.reset(seed=3)
    assert run.act(observation, info) == 0  # right


def test_agents_with_tables_say_who_takes_a_box() -> None:
    with pytest.raises(ParameterError, match="such as 'bucket-qrmax'"):
        qrmax.train("qrmax", gymnasium.make("qrmax/ContinuousLine-ab-v0"), max_steps=10)


def test_agents_that_take_a_box_say_who_takes_numbers() -> None:
    with pytest.raises(ParameterError, match=r"needs a Box of numbers.*such as 'qrmax'"):
        qrmax.train("bucket-qrmax", lake(), max_steps=10)


@pytest.mark.filterwarnings("error::qrmax.QRMaxWarning")
def test_a_run_that_has_met_its_rule_warns_of_nothing_when_resumed(tmp_path: Path) -> None:
    """No step is taken, so that no label has been read since it was loaded."""
    run = qrmax.train("qrmax-rm", lake(), t_env=1, seed=1, r_max=5.0)
    assert run.reason == "reaches"
    run.save(tmp_path / "met.run")
    resumed = qrmax.load(tmp_path / "met.run", env=lake()).resume(run.trained + 5000)
    assert resumed.trained == run.trained >= 1000
