"""Runs on shaped tasks: learned from what is paid on the way, judged by the plain task."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import qrmax
from planes import walk
from qrmax.errors import ParameterError, QRMaxWarning
from qrmax.seeding import stream
from qrmax.training.exact_evaluator import ExactEvaluator
from qrmax.training.plane_evaluator import PlaneEvaluator
from qrmax.training.run import make_session
from small_problems import errand, fetch_and_leave
from small_runs import assert_same_run, session_of

GAMMA = 0.9
FETCH = fetch_and_leave()


def plain() -> qrmax.Problem:
    return errand(slip=0.1, limit=50)


def shaped() -> qrmax.Problem:
    return errand(slip=0.1, limit=50, machine=FETCH.shaped(GAMMA))


def test_a_policy_is_as_far_from_the_optimum_as_on_the_plain_task() -> None:
    rng = np.random.default_rng(7)
    ours, theirs = ExactEvaluator(shaped(), GAMMA), ExactEvaluator(plain(), GAMMA)
    assert ours.best == pytest.approx(theirs.best)
    for _ in range(20):
        policy = rng.integers(0, 2, (4, 3), dtype=np.int32)
        assert ours.evaluate(policy) == theirs.evaluate(policy)
        assert ours.gap(policy) == pytest.approx(theirs.gap(policy))
        assert ours.is_near(policy, 0.05) == theirs.is_near(policy, 0.05)
        assert ours.is_nominal(policy) == theirs.is_nominal(policy)
        found = [each.returns(policy, 20, stream(7, "evaluation")) for each in (ours, theirs)]
        assert np.array_equal(*found)


def test_an_agent_that_has_learned_nothing_does_not_stop_at_once() -> None:
    task = qrmax.load_task("exp3").shaped(GAMMA, world_ends="decoration")
    problem = qrmax.make("office/map1", task=task)
    run = qrmax.train("q-learning", problem, seed=0, max_steps=4000)
    assert run.reason == "budget"
    assert run.evaluation is not None
    assert run.evaluation == qrmax.evaluate(qrmax.make("office/map1/exp3"), run.policy)
    assert run.evaluation.success == 0.0
    assert run.gap == 1.0
    assert all((row.start_value, row.gap) == (0.0, 1.0) for row in run.curve)


@pytest.mark.parametrize("agent", ["q-learning", "qrmax"])
def test_a_run_that_has_learned_the_task_stops_as_on_the_plain_one(agent: str) -> None:
    run = qrmax.train(agent, shaped(), seed=7, evaluate_every=50, max_steps=50_000)
    assert run.reason == "exact"
    assert run.gap is not None
    assert run.gap <= 0.05
    assert run.evaluation == qrmax.evaluate(plain(), run.policy)


def test_the_agent_learns_from_what_is_paid_on_the_way() -> None:
    run = qrmax.train("qrmax", shaped(), seed=7, max_steps=5000, stop="budget", t_env=20)
    assert run.problem is not None
    assert run.problem.machine.shaping is not None
    assert run.agent.q.max() <= 0.0  # the plain task pays 1


def test_a_policy_with_stages_is_judged_by_the_plain_task_in_every_way() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QRMaxWarning)
        run = qrmax.train("ucbvi-b", shaped(), seed=7, horizon=20, gamma=GAMMA, max_steps=2000)
    found, whole = run.evaluation, run.stationary_evaluation
    assert found is not None
    assert whole is not None
    assert found == qrmax.evaluate(plain(), run.recommendation, GAMMA)
    assert whole == qrmax.evaluate(plain(), run.policy, GAMMA, 20)
    assert found.start_value > 0.0 < whole.start_value


def test_a_loaded_run_is_judged_by_the_plain_task_too(tmp_path: Path) -> None:
    options = {"seed": 7, "evaluate_every": 50, "stop": "budget"}
    run = qrmax.train("q-learning", shaped(), max_steps=500, **options)
    run.save(tmp_path / "run")
    loaded = qrmax.load(tmp_path / "run")
    assert loaded.problem is not None
    assert loaded.problem.machine == run.problem.machine
    assert loaded.problem.name == run.problem.name
    assert loaded.evaluation == run.evaluation
    assert loaded.gap == run.gap
    whole = qrmax.train("q-learning", shaped(), max_steps=1000, **options)
    assert_same_run(loaded.resume(1000), whole)


def test_runs_on_a_shaped_problem_can_share_a_evaluator() -> None:
    problem = shaped()
    evaluator = ExactEvaluator(problem, GAMMA)
    session = make_session("qrmax", problem, evaluator=evaluator)
    assert session.evaluator is evaluator
    assert session.domain.task is problem
    with pytest.raises(ParameterError, match="the very problem of the run"):
        make_session("qrmax", problem, evaluator=ExactEvaluator(problem.unshaped, GAMMA))


def test_where_states_are_positions_the_plain_task_judges_too(tmp_path: Path) -> None:
    picture = ". . A"
    task = walk(picture).machine
    problem = walk(picture, task.shaped(GAMMA))
    evaluator, other = PlaneEvaluator(problem, GAMMA), PlaneEvaluator(walk(picture), GAMMA)
    assert evaluator.best == pytest.approx(other.best)
    assert evaluator.best > 0.0
    run = qrmax.train("bucket-qrmax", problem, seed=7, max_steps=2000, t_env=5)
    evaluated = session_of(run).evaluator
    assert isinstance(evaluated, PlaneEvaluator)
    assert run.evaluation is not None
    assert run.evaluation.start_value == pytest.approx(other.best, rel=0.3)
    run.save(tmp_path / "run")
    assert qrmax.load(tmp_path / "run").evaluation == run.evaluation


def test_another_discount_than_that_of_the_shaping_is_warned_of() -> None:
    with pytest.warns(QRMaxWarning, match=r"shaped with gamma 0\.9, .* plans with 0\.8: .* same"):
        qrmax.train("q-learning", shaped(), gamma=0.8, max_steps=10)
    qrmax.train("q-learning", plain(), gamma=0.8, max_steps=10)
