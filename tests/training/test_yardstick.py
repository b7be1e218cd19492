"""One yardstick for all learners: a gamma of the stopping rule, in the world's own episodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qrmax
from gym_worlds import lake
from qrmax.errors import ParameterError
from qrmax.planning.policy_evaluation import evaluate, nominal_reward
from qrmax.seeding import stream
from qrmax.training.exact_evaluator import ExactEvaluator
from qrmax.training.run import make_session
from qrmax.training.stopping import (
    Budget,
    Exact,
    Objective,
    Stays,
    Welch,
    own_objective,
    rule_as_data,
)
from random_problems import problems
from small_runs import corridor, fetching, never_fetching

SHORT = 7  # the nominal length of the corridor: a single slip is too much


def any_staged(problem: qrmax.Problem, stages: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape = (stages, problem.n_states, problem.n_task_states)
    return rng.integers(0, problem.n_actions, shape).astype(np.int32)


# --- a policy with stages, in longer episodes


@given(data=st.data())
def test_a_policy_with_stages_begins_again_after_its_last_one(data: st.DataObject) -> None:
    """As one that has been written out for the whole episode."""
    problem = data.draw(problems())
    limit, stages = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 5))
    problem.max_episode_steps = limit
    policy = any_staged(problem, stages, data.draw(st.integers(0, 99)))
    written_out = np.concatenate([policy] * limit)[:limit]
    assert evaluate(problem, policy, 0.9, repeat_stages=True) == evaluate(problem, written_out, 0.9)
    assert nominal_reward(problem, policy, repeat_stages=True) == nominal_reward(
        problem, written_out
    )


def test_sampled_returns_of_a_policy_with_stages_agree_with_its_value() -> None:
    problem = corridor(bonus=0.1)
    evaluator, policy = ExactEvaluator(problem, 0.9), any_staged(problem, 4, 0)
    returns = evaluator.returns(policy, 20_000, stream(1, "evaluation"))
    error = returns.std(ddof=1) / np.sqrt(len(returns))
    assert abs(returns.mean() - evaluator.evaluate(policy).start_value) < 4.5 * error


def test_without_a_limit_it_is_followed_until_the_discount_is_negligible() -> None:
    endless, policy = corridor(limit=None), np.stack([fetching(corridor())] * 3)
    found = evaluate(endless, policy, 0.9, repeat_stages=True)
    stationary = evaluate(endless, policy[0], 0.9)
    assert found.start_value == pytest.approx(stationary.start_value, rel=1e-9)
    assert evaluate(endless, policy, 0.9).success == 0.0  # three steps are not enough


def test_without_a_horizon_stages_are_compared_with_the_stationary_optimum() -> None:
    evaluator = ExactEvaluator(corridor(), 0.9)
    best, worst = fetching(corridor()), never_fetching(corridor())
    for stages in (1, 4, SHORT):
        assert evaluator.gap(np.stack([best] * stages)) == pytest.approx(0.0, abs=1e-12)
        assert evaluator.is_near(np.stack([best] * stages), 1e-9)
        assert evaluator.is_nominal(np.stack([best] * stages))
        assert not evaluator.is_near(np.stack([worst] * stages), 0.9)
        assert not evaluator.is_nominal(np.stack([worst] * stages))
    assert evaluator.stationary(np.stack([best, worst])) == evaluator.evaluate(best)


# --- the objective of a rule


def test_a_rule_has_the_objective_of_the_learner_or_one_of_its_own() -> None:
    psrl = make_session("psrl", corridor(), horizon=20).agent.config
    assert own_objective(psrl) == Exact().objective(psrl) == Objective(1.0, 20)
    assert Exact(gamma=0.9).objective(psrl) == Objective(0.9, None)
    with pytest.raises(ParameterError, match=r"gamma is 1.0"):
        Exact(gamma=1.0)
    assert "gamma" not in rule_as_data(Exact())  # as it was before there was one
    assert rule_as_data(Welch(gamma=0.5))["gamma"] == 0.5


def test_what_is_good_for_a_short_horizon_is_not_good_enough_for_the_yardstick() -> None:
    """In 7 steps the best that can be done is to succeed if nothing slips."""
    options = {"horizon": SHORT, "max_steps": 4000, "evaluate_every": 100, "seed": 1}
    own = qrmax.train("ucbvi-b", corridor(), stop=Exact(), **options)
    assert own.reason == "exact"
    assert own.own_gap is own.own_steps is None  # there is but one objective
    assert {point.own_gap for point in own.curve} == {None}
    run = qrmax.train("ucbvi-b", corridor(), stop=Exact(gamma=0.9), **options)
    assert run.own_steps == own.steps
    assert run.reason == "budget"
    assert run.own_gap is not None
    assert run.gap is not None
    assert run.own_gap <= 0.05 < run.gap
    assert run.evaluation == evaluate(corridor(), run.recommendation, 0.9, repeat_stages=True)
    assert run.best is not None
    assert run.best.start_value == pytest.approx(qrmax.solve(corridor(), 0.9).start_value, rel=1e-3)
    [row] = [point for point in run.curve if point.step == own.steps]
    assert row.own_gap is not None
    assert row.own_gap <= 0.05 < (row.gap or 0.0)


def test_a_yardstick_that_is_the_learners_own_objective_changes_nothing() -> None:
    one = qrmax.train("qrmax", corridor(), t_env=3, seed=1)
    other = qrmax.train("qrmax", corridor(), t_env=3, seed=1, stop=Exact(gamma=0.9))
    assert (one.steps, one.gap, one.curve) == (other.steps, other.gap, other.curve)
    assert other.own_gap is None


def test_a_run_that_is_resumed_remembers_when_its_own_objective_was_met(tmp_path: Path) -> None:
    options = {"horizon": SHORT, "evaluate_every": 100, "seed": 1, "stop": Exact(gamma=0.9)}
    whole = qrmax.train("ucbvi-b", corridor(), max_steps=4000, **options)
    assert whole.own_steps is not None
    for until in (whole.own_steps, whole.own_steps + 100):  # in the middle of its three checks
        part = qrmax.train("ucbvi-b", corridor(), max_steps=until, **options)
        assert part.own_steps is None
        part.save(tmp_path / "part.run")
        rest = qrmax.load(tmp_path / "part.run").resume(4000)
        assert (rest.own_steps, rest.curve) == (whole.own_steps, whole.curve)


def test_evaluators_of_another_objective_are_refused() -> None:
    problem = corridor()
    wrong, right = ExactEvaluator(problem, 1.0, 20), ExactEvaluator(problem, 0.9)
    options = {"horizon": 20, "stop": Exact(gamma=0.9)}
    with pytest.raises(ParameterError, match="gamma 1 and horizon 20; needed"):
        make_session("psrl", problem, evaluator=wrong, **options)
    with pytest.raises(ParameterError, match=r"gamma 0.9 and horizon None; needed"):
        make_session("psrl", problem, own_evaluator=right, **options)
    session = make_session("psrl", problem, evaluator=right, own_evaluator=wrong, **options)
    assert (session.evaluator, session.own_evaluator) == (right, wrong)


# --- environments


@pytest.mark.parametrize(("gamma", "longest"), [(None, 2.0), (0.9, 100.0)])
def test_on_an_environment_the_yardstick_is_the_environments_own_episodes(
    gamma: float | None, longest: float
) -> None:
    options = {"horizon": 2, "max_steps": 400, "evaluate_every": 200, "progress": False}
    run = qrmax.train("psrl-rm", lake(), stop=Budget(gamma=gamma), **options)
    lengths = [point.length or 0.0 for point in run.curve]
    assert max(lengths) <= longest
    assert (max(lengths) > 2.0) == (gamma is not None)
    assert run.own_gap is None


def test_a_rule_to_the_end_of_the_budget_is_one_to_the_end_by_own_objectives_as_well() -> None:
    options = {"gamma": 0.6, "seed": 3, "evaluate_every": 20, "max_steps": 1500}
    own_steps = set()
    for within in (0.05, 0.5, 0.99):
        rule = Stays(within=within, gamma=0.9)
        run = qrmax.train("q-learning", corridor(), stop=rule, epsilon=0.4, **options)
        last = max((row.step for row in run.curve if row.own_gap > within), default=0)
        assert run.own_steps == (last + 20 if last < run.trained else None)
        first = min((row.step for row in run.curve if row.own_gap <= within), default=0)
        own_steps.add(run.own_steps not in (None, first))
    assert True in own_steps  # else the first check would do
