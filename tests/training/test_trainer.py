"""The loop: when the policy is checked, when training stops, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import qrmax
from gym_worlds import lake
from qrmax.errors import ModelError, ParameterError
from qrmax.seeding import Stream
from qrmax.training.exact_evaluator import ExactEvaluator, relative_gap
from qrmax.training.run import finish, make_session
from qrmax.training.stopping import Budget, Exact, Nominal, Stays, StoppingRule, Welch
from qrmax.training.trainer import Evaluated, Event, Progressed, Stopped
from random_problems import problems
from small_runs import LEARNERS, Learner, assert_same_run, corridor, every_learner

EVERY = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Foretold(StoppingRule):
    """A rule of one's own: its verdicts are fixed beforehand."""

    name = "foretold"
    verdicts: Iterator[bool]

    def passes(self, policy: np.ndarray, evaluator: ExactEvaluator, chance: Stream) -> bool:  # noqa: ARG002
        return next(self.verdicts)


def events_of(**options: object) -> tuple[qrmax.Run, list[Event]]:
    events: list[Event] = []
    run = qrmax.train("q-learning", corridor(), on_event=events.append, **options)
    return run, events


# --- stopping


@pytest.mark.small_enough_without_jit
@pytest.mark.parametrize(
    ("verdicts", "in_a_row", "steps", "trained"),
    [
        ("1", 1, 1, 1),
        ("01", 1, 2, 2),
        ("111", 3, 1, 3),
        ("0111", 3, 2, 4),
        ("0110111", 3, 5, 7),
        ("1011", 2, 3, 4),
        ("110110110111", 3, 10, 12),
    ],
)
def test_the_step_reported_is_the_first_of_the_checks_passed_in_a_row(
    verdicts: str, in_a_row: int, steps: int, trained: int
) -> None:
    rule = Foretold(in_a_row=in_a_row, verdicts=iter([v == "1" for v in verdicts]))
    run, events = events_of(stop=rule, evaluate_every=EVERY, max_steps=10_000)
    assert (run.steps, run.trained, run.reason) == (steps * EVERY, trained * EVERY, "foretold")
    assert [e.passed for e in events if isinstance(e, Evaluated)] == [v == "1" for v in verdicts]


@pytest.mark.small_enough_without_jit
def test_a_streak_that_the_budget_cuts_short_does_not_count() -> None:
    rule = Foretold(in_a_row=3, verdicts=iter([False, True, True, True]))
    run, events = events_of(stop=rule, evaluate_every=EVERY, max_steps=3 * EVERY)
    assert (run.steps, run.trained, run.reason) == (3 * EVERY, 3 * EVERY, "budget")
    assert events[-1] == Stopped("budget", 3 * EVERY)
    run = run.resume(10_000)
    assert (run.steps, run.trained, run.reason) == (2 * EVERY, 4 * EVERY, "foretold")


@dataclass(frozen=True, kw_only=True, slots=True)
class ForetoldToTheEnd(Foretold):
    """The same, decided at the end of the budget."""

    name = "foretold-to-the-end"
    takes_budget = True


@pytest.mark.small_enough_without_jit
@pytest.mark.parametrize(
    ("verdicts", "in_a_row", "first"),
    [
        ("1111", 1, 1),
        ("0111", 1, 2),
        ("1101", 1, 4),
        ("1110", 1, None),
        ("0000", 1, None),
        ("1011", 2, 3),
        ("1101", 2, None),
    ],
)
def test_a_rule_to_the_end_takes_the_budget_and_reports_the_first_check_of_the_last_streak(
    verdicts: str, in_a_row: int, first: int | None
) -> None:
    rule = ForetoldToTheEnd(in_a_row=in_a_row, verdicts=iter([v == "1" for v in verdicts]))
    run, events = events_of(stop=rule, evaluate_every=EVERY, max_steps=4 * EVERY + 7)
    reason = "budget" if first is None else rule.name
    steps = run.trained if first is None else first * EVERY
    assert (run.steps, run.trained, run.reason) == (steps, 4 * EVERY + 7, reason)
    assert events[-1] == Stopped(reason, steps)


@pytest.mark.small_enough_without_jit
def test_a_run_to_the_end_of_all_its_episodes_is_judged_by_its_last_check() -> None:
    rule = ForetoldToTheEnd(in_a_row=1, verdicts=iter([False, *[True] * 999]))
    run, _ = events_of(stop=rule, evaluate_every=EVERY, max_steps=10_000, max_episodes=5)
    assert (run.steps, run.reason) == (2 * EVERY, rule.name)
    assert run.trained < 10_000


@pytest.mark.small_enough_without_jit
def test_a_run_to_the_end_can_be_resumed_and_may_then_no_longer_hold() -> None:
    rule = ForetoldToTheEnd(in_a_row=1, verdicts=iter([False, True, True, False, True]))
    run, _ = events_of(stop=rule, evaluate_every=EVERY, max_steps=3 * EVERY)
    assert (run.steps, run.reason) == (2 * EVERY, rule.name)
    assert (run.resume(4 * EVERY).steps, run.reason) == (4 * EVERY, "budget")
    assert (run.resume(5 * EVERY).steps, run.reason) == (5 * EVERY, rule.name)


def test_what_stays_is_what_the_curve_says_and_what_a_break_does_not_change() -> None:
    """The curve of a run to its budget has all checks: which of them is the first for good?"""
    options = {"seed": 3, "evaluate_every": 20, "max_steps": 120 * 20}
    learner = LEARNERS["q-learning"]
    whole = learner.train(corridor(), stop="budget", **options)
    for within in (0.05, 0.5, 0.99):
        run = learner.train(corridor(), stop=Stays(within=within), **options)
        bad = [row.step for row in whole.curve if row.gap > within]
        last = max(bad, default=0)
        expected = (last + 20, "stays") if last < run.trained else (run.trained, "budget")
        assert (run.steps, run.reason) == expected
        assert run.curve == whole.curve
        parts = learner.train(corridor(), stop=Stays(within=within), **{**options, "max_steps": 7})
        assert_same_run(parts.resume(run.steps - 1).resume(run.trained), run)
    assert {run.reason for run in (run, whole)} == {"stays", "budget"}


def test_a_long_run_that_stays_has_a_curve_of_as_few_rows_as_any_and_the_step_it_reports() -> None:
    run, events = events_of(stop=Stays(within=0.99), evaluate_every=2, max_steps=2 * 1100)
    passed = [event.step for event in events if isinstance(event, Evaluated) and event.passed]
    assert len(passed) > 500
    assert run.reason == "stays"
    assert run.steps in {row.step for row in run.curve}
    assert len(run.curve) < 400


@every_learner
@pytest.mark.parametrize("max_steps", [1, EVERY - 1, EVERY, 3 * EVERY + 7])
def test_a_run_that_spends_its_budget_says_so(learner: Learner, max_steps: int) -> None:
    run = learner.train(corridor(), stop="budget", max_steps=max_steps, evaluate_every=EVERY)
    assert (run.steps, run.trained, run.reason) == (max_steps, max_steps, "budget")
    assert [row.step for row in run.curve] == list(range(EVERY, max_steps + 1, EVERY))


@every_learner
def test_a_run_stops_once_its_policy_is_within_reach_of_the_optimum(learner: Learner) -> None:
    more = {"t_env": 40} if "t_env" in learner.settings else {}  # what slips do is to be known
    run = learner.train(corridor(), seed=3, evaluate_every=EVERY, max_steps=20_000, **more)
    good = [row.gap <= 0.05 for row in run.curve]
    assert run.reason == "exact"
    assert good[-3:] == [True] * 3
    assert not any(all(good[i : i + 3]) for i in range(len(good) - 3))
    assert run.steps == run.curve[-3].step
    assert run.trained == run.curve[-1].step
    assert run.gap <= 0.05


def test_an_optimum_that_takes_longer_than_the_budget_is_not_claimed() -> None:
    run = qrmax.train("q-learning", qrmax.make("office/map1/exp1"), max_steps=3000)
    assert (run.steps, run.reason) == (3000, "budget")
    assert run.gap > 0.05


# --- the learning curve


@pytest.mark.parametrize("gamma", [0.9, 0.6])
def test_each_row_of_the_curve_is_what_evaluating_the_policy_gives(gamma: float) -> None:
    problem = corridor(bonus=0.01)
    session = make_session(
        "qrmax", problem, t_env=3, gamma=gamma, stop="budget", max_steps=600, evaluate_every=20
    )
    best = qrmax.evaluate(problem, qrmax.solve(problem, gamma).policy, gamma).start_value
    rows = 0
    for event in session.events():
        if isinstance(event, Evaluated):
            evaluated = qrmax.evaluate(problem, session.agent.policy(), gamma)
            assert event.point is not None
            assert event.point.step == event.step == session.progress.step
            assert event.point.start_value == evaluated.start_value
            assert event.point.success == evaluated.success
            assert event.point.nominal_length == evaluated.nominal_length
            assert event.point.gap == relative_gap(evaluated.start_value, best)
            rows += 1
    assert rows == 30
    assert len({row.start_value for row in session.curve}) >= 3  # it has learned something


def test_a_long_curve_has_fewer_and_fewer_rows() -> None:
    run, events = events_of(stop=Budget(), evaluate_every=2, max_steps=2 * 1100)
    checks = [row.step // 2 for row in run.curve]
    assert checks == [
        *range(1, 129),
        *range(130, 257, 2),
        *range(260, 513, 4),
        *range(520, 1025, 8),
        *range(1040, 1101, 16),
    ]
    told = [event for event in events if isinstance(event, Evaluated)]
    assert len(told) == 1100  # checked all the same
    assert tuple(event.point for event in told if event.point is not None) == run.curve


@pytest.mark.parametrize("rule", [Exact(in_a_row=5000), Nominal(in_a_row=5000)])
def test_every_check_that_is_passed_has_a_row(rule: StoppingRule) -> None:
    events: list[Event] = []
    run = qrmax.train(
        *("qrmax", corridor()),
        t_env=3,
        stop=rule,
        evaluate_every=2,
        max_steps=2 * 600,
        on_event=events.append,
    )
    passed = {event.step for event in events if isinstance(event, Evaluated) and event.passed}
    assert len([step for step in passed if step > 2 * 300]) > 100
    assert passed <= {row.step for row in run.curve}


# --- events


def test_events_come_in_order_with_one_for_each_stretch_and_check() -> None:
    _, events = events_of(stop="budget", evaluate_every=120_000, max_steps=190_000)
    assert [event if not isinstance(event, Evaluated) else event.step for event in events] == [
        Progressed(50_000),
        Progressed(100_000),
        120_000,
        Progressed(170_000),
        Stopped("budget", 190_000),
    ]


@pytest.mark.small_enough_without_jit
def test_without_compilation_there_are_more_events_of_progress() -> None:
    _, events = events_of(stop="budget", evaluate_every=700, max_steps=1400, compiled=False)
    assert [event if not isinstance(event, Evaluated) else event.step for event in events] == [
        Progressed(500),
        700,
        Progressed(1200),
        1400,
        Stopped("budget", 1400),
    ]


@pytest.mark.small_enough_without_jit
def test_the_last_event_tells_why_and_when() -> None:
    run, events = events_of(seed=1, evaluate_every=EVERY, max_steps=20_000)
    assert events[-1] == Stopped(run.reason, run.steps) == Stopped("exact", run.steps)
    assert sum(isinstance(event, Stopped) for event in events) == 1
    steps = [event.step for event in events if not isinstance(event, Stopped)]
    assert steps == sorted(set(steps))


# --- two speeds, one meaning


@every_learner
@pytest.mark.parametrize("problem", [corridor(), corridor(bonus=0.1, limit=None, slip=0.3)])
def test_compiled_or_not_is_the_same_run(learner: Learner, problem: qrmax.Problem) -> None:
    compiled, plain = (
        learner.train(
            problem, seed=5, max_steps=1500, evaluate_every=100, stop="budget", compiled=compiled
        )
        for compiled in (True, False)
    )
    assert_same_run(compiled, plain)
    assert len(set(compiled.curve)) > 1


@pytest.mark.filterwarnings("ignore::qrmax.QRMaxWarning")  # any problem may be an impossible one
@pytest.mark.parametrize(
    "name", ["q-learning", "rmax", "qrmax", "qrmax-published", "ucbvi-b", "psrl", "opsrl"]
)
@settings(max_examples=15)
@given(problem=problems(), seed=st.integers(0, 99), limit=st.sampled_from([None, 1, 7]))
def test_compiled_or_not_is_the_same_run_on_any_problem(
    name: str, problem: qrmax.Problem, seed: int, limit: int | None
) -> None:
    problem.max_episode_steps = limit
    options = {"seed": seed, "max_steps": 200, "evaluate_every": 33, "stop": "budget"}
    try:
        compiled = LEARNERS[name].train(problem, **options)
    except ModelError:  # every episode is over before it begins
        assume(False)
    assert_same_run(compiled, LEARNERS[name].train(problem, compiled=False, **options))


@every_learner
def test_seeds_reproduce_and_differ(learner: Learner) -> None:
    options = {"max_steps": 400, "evaluate_every": 100, "stop": "budget"}
    first, again, other = (learner.train(corridor(), seed=s, **options) for s in (8, 8, 9))
    assert_same_run(first, again)
    assert any(
        (a != b).any()
        for a, b in zip(
            first.agent.snapshot().values(), other.agent.snapshot().values(), strict=True
        )
        if a.shape == b.shape
    )


# --- one evaluator for many runs


@pytest.mark.parametrize("rule", [Exact(), Nominal(), Welch(episodes=20)])
def test_runs_that_share_a_evaluator_are_the_same_to_the_last_bit(rule: StoppingRule) -> None:
    """Whatever the evaluator has seen before."""
    problem = corridor()
    evaluators = {horizon: ExactEvaluator(problem, 0.9, horizon) for horizon in (None, 20)}
    for learner in LEARNERS.values():
        evaluator = evaluators[learner.settings.get("horizon")]
        for seed in (3, 4):
            options = {**learner.settings, "seed": seed, "max_steps": 2000, "evaluate_every": EVERY}
            session = make_session(learner.name, problem, stop=rule, evaluator=evaluator, **options)
            assert session.evaluator is evaluator
            alone = learner.train(problem, stop=rule, **options)
            assert_same_run(finish(session), alone)


def test_a_shared_evaluator_solves_the_problem_once(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = []

    def solve(problem: qrmax.Problem, gamma: float) -> qrmax.Solution:
        solved.append(problem)
        return qrmax.solve(problem, gamma)

    monkeypatch.setattr("qrmax.training.exact_evaluator.solve", solve)
    problem = corridor()
    evaluator = ExactEvaluator(problem, 0.9)
    for seed in range(3):
        for judge in (evaluator, None):
            finish(make_session("qrm", problem, seed=seed, max_steps=1000, evaluator=judge))
    assert len(solved) == 1 + 3


@pytest.mark.parametrize(
    ("problem", "gamma"), [(corridor(), 0.9), (corridor(length=9), 0.9), (None, 0.8)]
)
def test_an_evaluator_of_another_problem_or_gamma_is_refused(
    problem: qrmax.Problem | None, gamma: float
) -> None:
    ours = corridor()
    other = ExactEvaluator(problem or ours, gamma)
    with pytest.raises(ParameterError, match=f"evaluator is for 'corridor' with gamma {gamma}"):
        make_session("qrmax", ours, evaluator=other)


def test_an_environment_has_no_evaluator() -> None:
    with pytest.raises(ParameterError, match="evaluator is for 'corridor'"):
        make_session("qrmax", lake(), evaluator=ExactEvaluator(corridor(), 0.9))
