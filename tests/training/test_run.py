"""`qrmax.train`: what it accepts and refuses, and the run that it returns."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest

import qrmax
from qrmax.errors import ParameterError, UnknownNameError
from qrmax.planning.staged_solution import solve_horizon
from qrmax.training.stopping import Budget, Exact, Welch
from small_runs import (
    Learner,
    assert_same_run,
    corridor,
    every_learner,
    fetch_task,
    session_of,
)

QUICK = {"max_steps": 300, "evaluate_every": 100}


# --- settings


@every_learner
def test_gamma_is_a_setting_of_the_agent_and_of_every_evaluation(learner: Learner) -> None:
    run = learner.train(corridor(bonus=0.2), gamma=0.5, stop="budget", **QUICK)
    assert run.agent.config.gamma == 0.5
    evaluated = qrmax.evaluate(run.problem, run.recommendation, 0.5)
    assert run.evaluation == evaluated
    assert run.curve[-1].start_value == evaluated.start_value
    assert evaluated.start_value != qrmax.evaluate(run.problem, run.recommendation, 0.9).start_value


@pytest.mark.parametrize("suffix", ["", "-published"])
@pytest.mark.parametrize("name", ["rmax", "rmax-rm", "qrmax", "qrmax-rm"])
def test_r_max_is_by_default_the_most_that_a_step_pays(name: str, suffix: str) -> None:
    for problem, highest in [
        (qrmax.make("office/map4/exp6"), 1000.0),
        (qrmax.make("office/map1/exp5"), 1.0),
        (corridor(bonus=0.25), 1.25),
    ]:
        run = qrmax.train(name + suffix, problem, max_steps=10)
        assert run.agent.config.r_max == highest


def test_r_max_is_never_negative() -> None:
    problem = corridor(bonus=-3.0)
    machine = qrmax.RewardMachine(
        [qrmax.Edge("start", "key | door", "done", -5.0)], initial="start", success=["done"]
    )
    costly = qrmax.Problem(problem.mdp, machine, problem.labels, problem.label)
    assert qrmax.train("qrmax", costly, max_steps=10).agent.config.r_max == 0.0


@pytest.mark.parametrize("compiled", [True, False])
def test_an_r_max_that_is_too_small_warns_of_it_once_and_is_taken(compiled: bool) -> None:
    with pytest.warns(
        qrmax.QRMaxWarning, match=r"r_max is 0.5, but the largest reward .* is 1:"
    ) as told:
        run = qrmax.train(
            "qrmax", corridor(), r_max=0.5, t_env=3, max_steps=2000, compiled=compiled
        )
    assert run.agent.config.r_max == 0.5
    assert run.evaluation.success > 0.5  # so that 1 has been paid
    assert len(told) == 1
    assert told[0].filename == __file__  # it points to whoever called


@pytest.mark.parametrize("settings", [{"r_max": 1.0}, {"r_max": 0.5, "v_max": 10.0}, {}])
@pytest.mark.parametrize("compiled", [True, False])
def test_an_r_max_that_is_large_enough_or_does_not_matter_is_no_reason_to_warn(
    settings: dict[str, float], compiled: bool
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = qrmax.train(
            "qrmax", corridor(), t_env=3, max_steps=2000, compiled=compiled, **settings
        )
    assert run.evaluation.success > 0.5  # so that 1 has been paid


@pytest.mark.parametrize("stop", ["exact", Exact(), None])
def test_a_rule_is_given_by_its_name_or_as_itself(stop: Any) -> None:
    run = qrmax.train("qrm", corridor(), stop=stop, evaluate_every=100, max_steps=20_000)
    assert run.reason == "exact"
    assert session_of(run).training.stop == Exact()


def test_a_rule_of_its_own_settings_is_followed() -> None:
    strict, loose = (
        qrmax.train(
            "q-learning",
            corridor(),
            stop=Exact(within=within, in_a_row=1),
            evaluate_every=10,
            max_steps=50_000,
        )
        for within in (0.0, 0.9)
    )
    assert loose.steps < strict.steps
    assert strict.gap == 0.0
    assert 0.0 < loose.gap <= 0.9


# --- what a run tells


def test_what_a_run_says_of_itself() -> None:
    run = qrmax.train("qrmax", corridor(), seed=4, t_env=3, stop="budget", **QUICK)
    assert repr(run) == "Run('qrmax' on 'corridor', seed 4: 300 steps, budget)"
    assert run.seed == 4
    assert run.problem.name == "corridor"
    assert 0.0 < run.seconds < 60.0


@every_learner
def test_a_run_knows_its_policy_and_what_it_brings(learner: Learner) -> None:
    problem = corridor()
    run = learner.train(problem, max_steps=3000, evaluate_every=100, stop="budget")
    assert run.policy.shape == (problem.n_states, problem.n_task_states)
    assert np.array_equal(run.policy, run.agent.policy())
    assert np.array_equal(run.policy, run.agent.q.argmax(axis=2))
    horizon = learner.settings.get("horizon")
    solution = solve_horizon(problem, horizon, 0.9) if horizon else qrmax.solve(problem)
    best = qrmax.evaluate(problem, solution.policy).start_value
    assert run.evaluation == qrmax.evaluate(problem, run.recommendation)
    assert np.array_equal(run.recommendation[0] if horizon else run.recommendation, run.policy)
    assert run.gap == pytest.approx(1 - run.evaluation.start_value / best, abs=1e-12)
    for s in range(problem.n_states):
        for q in range(problem.n_task_states):
            assert run.act({"state": np.int64(s), "task": q}) == run.policy[s, q]


# --- going on


@every_learner
def test_training_on_is_the_same_as_not_having_stopped(learner: Learner) -> None:
    options = {"seed": 2, "evaluate_every": 100, "stop": "budget"}
    whole = learner.train(corridor(), max_steps=1000, **options)
    parts = learner.train(corridor(), max_steps=1, **options)
    for until in (2, 99, 100, 101, 550, 1000):
        parts = parts.resume(until)
        assert (parts.trained, parts.reason) == (until, "budget")
    assert_same_run(whole, parts)


def test_a_run_that_was_gone_on_with_tells_of_its_new_policy() -> None:
    problem = qrmax.make("office/map1/exp1")
    run = qrmax.train("qrmax-rm", problem, max_steps=1000)
    assert run.gap == 1.0
    longer = run.resume(200_000)
    for seen in (run, longer):
        assert seen.reason == "exact"
        assert np.array_equal(seen.policy, seen.agent.policy())
        assert seen.gap == longer.curve[-1].gap <= 0.05


def test_a_run_whose_rule_was_met_has_nothing_more_to_do() -> None:
    run = qrmax.train("qrm", corridor(), evaluate_every=100, max_steps=20_000)
    before = run.agent.snapshot()["qt"], run.trained, run.steps
    events: list[Any] = []
    again = run.resume(50_000, on_event=events.append)
    assert [type(event).__name__ for event in events] == ["Stopped"]
    assert (again.trained, again.steps, again.reason) == (*before[1:], "exact")
    assert np.array_equal(again.agent.snapshot()["qt"], before[0])


def test_a_run_without_steps_left_cannot_be_resumed() -> None:
    run = qrmax.train("qrm", corridor(), stop="budget", max_steps=500)
    for more in (None, 500, 300):
        with pytest.raises(ParameterError, match="has taken 500 steps"):
            run.resume(more)
    with pytest.raises(ParameterError, match="max_steps is 0"):
        run.resume(0)
    assert run.resume(600).trained == 600


# --- what is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_steps": 0}, "max_steps is 0; allowed: whole numbers from 1"),
        ({"max_steps": 10.5}, "max_steps is 10.5"),
        ({"max_steps": True}, "max_steps is True"),
        ({"evaluate_every": 0}, "evaluate_every is 0"),
        ({"evaluate_every": -1000}, "evaluate_every is -1000"),
        ({"seed": -1}, "seed is -1; allowed: whole numbers from 0 on"),
        ({"seed": 1.0}, "seed is 1.0"),
        ({"seed": "7"}, "seed is '7'"),
        ({"compiled": 1}, "compiled is 1; allowed: True, False"),
        ({"gamma": 1.0}, "gamma is 1.0"),
        ({"gamma": "0.9"}, "gamma is '0.9'"),
        ({"t_env": 0}, "t_env is 0"),
        ({"r_max": -1.0}, "r_max is -1.0"),
        ({"r_max": float("nan")}, "r_max is nan"),
    ],
)
def test_an_argument_out_of_range_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        qrmax.train("qrmax", corridor(), **arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("agent", "arguments", "words"),
    [
        ("qrmax", {"stop": "exakt"}, ("stopping rule 'exakt'", "did you mean 'exact'?", "welch")),
        ("qrmax", {"stop": 3}, ("stopping rule '3'", "known: budget, exact")),
        ("qrmax", {"stop": ["exact"]}, ("stopping rule", "known: budget, exact")),
        ("qrmax", {"t_E": 3}, ("setting of qrmax 't_E'", "did you mean 't_env'?")),
        ("q-learning", {"t_env": 3}, ("setting of q-learning 't_env'", "known: alpha, epsilon")),
        ("qrmx", {}, ("agent 'qrmx'", "did you mean 'qrmax'?", "rmax-rm")),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(
    agent: str, arguments: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(UnknownNameError) as caught:
        qrmax.train(agent, corridor(), **arguments)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("problem", [None, 3, corridor().mdp, fetch_task()])
@pytest.mark.parametrize("stop", [None, "exact", "budget"])
def test_what_is_no_problem_is_answered_with_how_to_get_one(problem: Any, stop: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        qrmax.train("qrmax", problem, stop=stop)
    assert "needed: a Problem, such as qrmax.make('office/map1/exp5')" in str(caught.value)
    assert "TaskWrapper" in str(caught.value)


def wrapped(env: gymnasium.Env[Any, Any]) -> qrmax.TaskWrapper:
    return qrmax.TaskWrapper(env, fetch_task(), labels=lambda *_: ())


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda: gymnasium.make("FrozenLake-v1"), "qrmax.TaskWrapper(env, "),
        (lambda: gymnasium.make_vec("FrozenLake-v1", num_envs=2), "that gymnasium.make makes"),
        (lambda: wrapped(gymnasium.make("CartPole-v1")), "TransformObservation"),
        (
            lambda: wrapped(
                gymnasium.wrappers.TransformAction(
                    gymnasium.make("FrozenLake-v1"), int, gymnasium.spaces.Box(0, 1)
                )
            ),
            "so that its action space is Discrete",
        ),
    ],
    ids=["no task", "vector", "box observations", "box actions"],
)
def test_an_environment_that_cannot_be_played_is_answered_with_the_remedy(
    make: Any, remedy: str
) -> None:
    with pytest.raises(ParameterError) as caught:
        qrmax.train("qrmax", make(), max_steps=100)
    assert remedy in str(caught.value)


@pytest.mark.parametrize("stop", ["exact", "nominal", "welch", Exact(), Welch(episodes=5)])
def test_an_environment_has_no_optimum_to_stop_at(stop: Any) -> None:
    with pytest.raises(ParameterError, match="no known optimum to compare with"):
        qrmax.train("qrmax", wrapped(gymnasium.make("FrozenLake-v1")), stop=stop)
    run = qrmax.train("qrmax", wrapped(gymnasium.make("FrozenLake-v1")), stop=Budget(), max_steps=5)
    assert run.reason == "budget"


@pytest.mark.parametrize("name", ["qrm", "rmax-rm", "qrmax-rm"])
def test_a_random_machine_is_refused_where_the_agent_takes_it_for_certain(name: str) -> None:
    with pytest.raises(ParameterError, match="use 'qrmax' with t_task above 1"):
        qrmax.train(name, corridor(chance=0.5))
