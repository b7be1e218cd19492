"""Stopping rules: what passes, and that what is known to be bad does not."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

import qrmax
from qrmax.errors import ParameterError, UnknownNameError
from qrmax.seeding import stream
from qrmax.training.exact_evaluator import ExactEvaluator, relative_gap
from qrmax.training.stopping import (
    RULES,
    Budget,
    Exact,
    Nominal,
    StoppingRule,
    Welch,
    as_rule,
    rule_as_data,
)
from qrmax.training.welch import merged, moments, p_value, welch_p_value
from qrmax.worlds.office import WORLD as OFFICE
from random_problems import ANY_SIGN, NON_NEGATIVE, problems, random_policy
from small_runs import corridor, fetching, never_fetching


@cache
def evaluator_of(name: str) -> ExactEvaluator:
    return ExactEvaluator(qrmax.make(name), 0.9)


def never_delivering(evaluator: ExactEvaluator) -> np.ndarray:
    """The optimal policy, but for the task's last step, where it takes the worst action."""
    policy = evaluator.solution.policy.copy()
    table = evaluator.problem.table
    ends_well = table.success[table.next_state].any(axis=(1, 2))
    policy[:, ends_well] = evaluator.solution.q[:, ends_well].argmin(axis=2)
    return policy


def passes(
    rule: StoppingRule, policy: np.ndarray, evaluator: ExactEvaluator, seed: int = 0
) -> bool:
    return rule.passes(policy, evaluator, stream(seed, "evaluation"))


# --- policies that are known to be good and to be bad


@pytest.mark.parametrize("name", OFFICE.problem_names())
@pytest.mark.parametrize("rule", [Exact(), Exact(within=0.0), Nominal()])
def test_the_optimal_policy_passes(rule: StoppingRule, name: str) -> None:
    evaluator = evaluator_of(name)
    assert passes(rule, evaluator.solution.policy, evaluator)


@pytest.mark.parametrize("name", OFFICE.problem_names())
@pytest.mark.parametrize("rule", [Exact(), Exact(within=0.9), Nominal()])
def test_a_policy_that_never_delivers_does_not_pass(rule: StoppingRule, name: str) -> None:
    evaluator = evaluator_of(name)
    policy = never_delivering(evaluator)
    assert evaluator.evaluate(policy).success < 0.05
    assert not passes(rule, policy, evaluator)


@pytest.mark.parametrize("name", OFFICE.problem_names())
def test_a_policy_that_always_does_the_same_does_not_pass(name: str) -> None:
    evaluator = evaluator_of(name)
    for action in range(4):
        assert not passes(Exact(), np.full_like(evaluator.solution.policy, action), evaluator)


def test_nothing_passes_where_the_budget_decides() -> None:
    evaluator = ExactEvaluator(corridor(), 0.9)
    assert not passes(Budget(), evaluator.solution.policy, evaluator)


def test_exact_draws_the_line_where_it_is_told_to() -> None:
    problem = corridor()
    evaluator = ExactEvaluator(problem, 0.9)
    policy = evaluator.solution.policy.copy()
    policy[1, 0] = 1 - policy[1, 0]  # dawdles before the key
    gap = evaluator.gap(policy)
    assert 0.05 < gap < 0.95
    assert passes(Exact(within=gap), policy, evaluator)
    assert not passes(Exact(within=np.nextafter(gap, 0.0)), policy, evaluator)


@given(data=st.data())
def test_exact_decides_as_the_gap_does_on_any_problem(data: st.DataObject) -> None:
    """However early it is certain of it."""
    problem = data.draw(problems(data.draw(st.sampled_from([NON_NEGATIVE, ANY_SIGN, (0.0,)]))))
    problem.max_episode_steps = data.draw(st.sampled_from([None, 1, 5, 60]))
    evaluator = ExactEvaluator(problem, data.draw(st.sampled_from([0.5, 0.9])))
    seed, share = data.draw(st.integers(0, 999)), data.draw(st.sampled_from([0.0, 0.2, 1.0]))
    changed = np.random.default_rng(seed).random(evaluator.solution.policy.shape) < share
    policy = np.where(changed, random_policy(problem, seed), evaluator.solution.policy)
    value = qrmax.evaluate(problem, policy, evaluator.gamma).start_value
    gap = relative_gap(value, evaluator.best)
    for within in (0.0, 0.05, 0.5, gap, np.nextafter(gap, 0.0), gap - 1e-6, gap + 1e-6):
        if 0.0 <= within < 1.0:
            assert passes(Exact(within=float(within)), policy, evaluator) == (gap <= within)


def test_nominal_wants_the_length_of_the_optimal_run_and_nothing_else() -> None:
    problem = corridor(start=2)
    evaluator = ExactEvaluator(problem, 0.9)
    policy = fetching(problem)
    assert evaluator.shortest == evaluator.nominal_length(policy) == 2 + 5
    policy[4:, 0] = 1  # is never there without a slip
    assert passes(Nominal(), policy, evaluator)
    policy[2, 0] = 1
    assert evaluator.nominal_length(policy) is None
    assert not passes(Nominal(), policy, evaluator)


def test_nominal_does_not_pass_a_run_that_succeeds_but_is_longer() -> None:
    """One way to the goal is direct, the other goes round; both succeed for certain."""
    mdp = qrmax.TabularMDP(
        [[[2], [1]], [[2], [2]], [[2], [2]]], np.ones((3, 2, 1)), terminal=[False] * 3
    )
    task = qrmax.RewardMachine(
        [qrmax.Edge("go", "goal", "there", 1.0)], initial="go", success=["there"]
    )
    evaluator = ExactEvaluator(qrmax.Problem(mdp, task, [(), ("goal",)], [0, 0, 1]), 0.9)
    direct, round_about = np.zeros((3, 2), dtype=int), np.ones((3, 2), dtype=int)
    assert [evaluator.nominal_length(policy) for policy in (direct, round_about)] == [1, 2]
    assert passes(Nominal(), direct, evaluator)
    assert not passes(Nominal(), round_about, evaluator)


def test_nominal_passes_nothing_where_no_run_succeeds() -> None:
    problem = corridor()
    task = qrmax.RewardMachine(
        [qrmax.Edge("a", "key", "b"), qrmax.Edge("b", "door", "a", 1.0)], initial="a"
    )
    endless = qrmax.Problem(problem.mdp, task, problem.labels, problem.label, max_episode_steps=50)
    evaluator = ExactEvaluator(endless, 0.9)
    assert evaluator.shortest is None
    assert not passes(Nominal(), evaluator.solution.policy, evaluator)
    assert passes(Exact(), evaluator.solution.policy, evaluator)


# --- the sampled test


def test_welch_with_few_episodes_passes_what_never_delivers_and_with_many_does_not() -> None:
    """The reason why it is not the default: a reward that is rare is not seen in few episodes."""
    evaluator = evaluator_of("office/map2/exp5")
    policy = never_delivering(evaluator)
    best = evaluator.evaluate(evaluator.solution.policy)
    assert evaluator.evaluate(policy).success < 0.05 < best.success < 0.6
    few = [passes(Welch(episodes=5), policy, evaluator, seed) for seed in range(20)]
    many = [passes(Welch(episodes=10_000), policy, evaluator, seed) for seed in range(3)]
    assert sum(few) > 10
    assert not any(many)


def test_welch_samples_both_policies_independently() -> None:
    """Of two samples of the same policy one in ten looks different, at a level of 0.1."""
    evaluator = ExactEvaluator(corridor(slip=0.3), 0.9)
    policy = evaluator.solution.policy
    share = np.mean([passes(Welch(episodes=100), policy, evaluator, seed) for seed in range(400)])
    assert abs(share - 0.9) < 4 * np.sqrt(0.9 * 0.1 / 400)


def test_welch_samples_anew_at_each_check() -> None:
    evaluator = ExactEvaluator(corridor(slip=0.3), 0.9)
    chance = stream(0, "evaluation")
    policy = evaluator.solution.policy
    verdicts = {Welch(episodes=50).passes(policy, evaluator, chance) for _ in range(100)}
    assert verdicts == {True, False}


def test_welch_where_nothing_is_left_to_chance_tells_equal_from_different() -> None:
    problem = corridor(slip=0.0)
    evaluator = ExactEvaluator(problem, 0.9)
    assert passes(Welch(episodes=10), fetching(problem), evaluator)
    assert not passes(Welch(episodes=10), never_fetching(problem), evaluator)


SAMPLE = st.lists(st.floats(-100.0, 100.0), min_size=2, max_size=30)


def dawdling(problem: qrmax.Problem) -> np.ndarray:
    """The policy that fetches and delivers, but walks back once on the way."""
    policy = fetching(problem)
    policy[3, 1] = 0
    return policy


def checks_until_passed(rule: Welch, policy: np.ndarray, *, remember: bool, seed: int) -> int:
    """The number of checks of an unchanged policy up to the first that passes; at most 60."""
    evaluator, chance, memory = SLIPPERY, stream(seed, "evaluation"), {}
    for number in range(1, 61):
        if rule.check(policy, evaluator, chance, memory):
            return number
        if not remember:
            memory.clear()
    return 61


SLIPPERY = ExactEvaluator(corridor(slip=0.3, limit=None), 0.9)


def test_an_unchanged_policy_that_differs_does_not_pass_because_it_is_tested_often() -> None:
    policy, rule = dawdling(SLIPPERY.problem), Welch(episodes=25)
    assert 0.2 < SLIPPERY.gap(policy) < 0.7
    anew = [checks_until_passed(rule, policy, remember=False, seed=seed) for seed in range(30)]
    added = [checks_until_passed(rule, policy, remember=True, seed=seed) for seed in range(30)]
    assert sum(first <= 1 for first in anew) == sum(first <= 1 for first in added) < 15
    assert all(first <= 60 for first in anew)  # by accident, sooner or later
    assert sum(first > 60 for first in added) > 10


def test_an_unchanged_policy_that_is_optimal_passes_though_its_first_test_failed() -> None:
    rule, policy = Welch(episodes=40), SLIPPERY.solution.policy
    first = [checks_until_passed(rule, policy, remember=True, seed=seed) for seed in range(60)]
    assert any(number > 1 for number in first)
    assert all(number <= 60 for number in first)


def test_a_changed_policy_is_tested_on_samples_of_its_own() -> None:
    rule, memory = Welch(episodes=40), {}
    chance, policies = stream(0, "evaluation"), (SLIPPERY.solution.policy, dawdling(corridor()))
    for number, policy in enumerate((*policies, *policies)):
        rule.check(policy, SLIPPERY, chance, memory)
        assert memory["ours"][0] == memory["best"][0] == 40, number
    rule.check(policies[1], SLIPPERY, chance, memory)
    assert memory["ours"][0] == memory["best"][0] == 80


def test_an_unchanged_policy_that_clearly_differs_is_not_sampled_again() -> None:
    rule, memory, chance = Welch(episodes=200), {}, stream(0, "evaluation")
    bad = never_fetching(SLIPPERY.problem)
    assert not rule.check(bad, SLIPPERY, chance, memory)
    before, kept = chance.position(), dict(memory)
    assert not rule.check(bad, SLIPPERY, chance, memory)
    assert (chance.position(), memory) == (before, kept)


def test_a_run_that_is_resumed_remembers_the_samples_of_its_policy(tmp_path: Path) -> None:
    options = {"t_env": 3, "evaluate_every": 50, "seed": 3, "stop": Welch(episodes=30, in_a_row=9)}
    whole = qrmax.train("qrmax", SLIPPERY.problem, max_steps=2000, **options)
    part = qrmax.train("qrmax", SLIPPERY.problem, max_steps=1000, **options)
    part.save(tmp_path / "part.run")
    rest = qrmax.load(tmp_path / "part.run").resume(2000)
    assert (rest.steps, rest.curve) == (whole.steps, whole.curve)
    assert rest._session.progress.memory == whole._session.progress.memory != {}


@pytest.mark.parametrize(
    "memory",
    [
        {"policy": "a"},
        {"policy": 1, "ours": [2, 0.0, 0.0, 0.0, 0.0], "best": [2, 0.0, 0.0, 0.0, 0.0]},
        {"policy": "a", "ours": [2, 0.0, 0.0, 0.0, 0.0], "best": [2, 0.0, -1.0, 0.0, 0.0]},
        {"policy": "a", "ours": [1, 0.0, 0.0, 0.0, 0.0], "best": [2, 0.0, 0.0, 0.0, 0.0]},
        {"policy": "a", "ours": [2, 3.0, 0.0, 0.0, 1.0], "best": [2, 0.0, 0.0, 0.0, 0.0]},
        {"policy": "a", "ours": [2, "0", 0.0, 0.0, 1.0], "best": None},
        {"policy": "a", "ours": [2, 0.0, float("inf"), 0.0, 1.0], "best": [2, 0.0, 0.0, 0.0, 0.0]},
    ],
)
def test_a_memory_that_no_samples_can_have_left_is_refused(memory: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=r"keeps no|inconsistent moments"):
        Welch().check_memory(memory)
    with pytest.raises(ParameterError, match="keeps nothing"):
        Exact().check_memory(memory)


@given(first=SAMPLE, second=SAMPLE, third=SAMPLE)
def test_merged_moments_are_those_of_the_whole_sample(
    first: list[float], second: list[float], third: list[float]
) -> None:
    whole, parts = (
        moments(np.array(first + second)),
        merged(*map(moments, map(np.array, (first, second)))),
    )
    assert parts[::3] == whole[::3]
    assert parts.mean == pytest.approx(whole.mean, rel=1e-9, abs=1e-9)
    assert parts.deviations == pytest.approx(whole.deviations, rel=1e-9, abs=1e-9)
    assert parts.is_constant == whole.is_constant
    assume(min(np.ptp(first + second), np.ptp(third)) > 1e-3)
    expected = stats.ttest_ind(first + second, third, equal_var=False).pvalue
    assert p_value(parts, moments(np.array(third))) == pytest.approx(expected, rel=1e-6, abs=1e-300)


@given(first=SAMPLE, second=SAMPLE)
def test_the_p_value_is_that_of_scipy(first: list[float], second: list[float]) -> None:
    one, other = np.array(first), np.array(second)
    assume(min(np.ptp(one), np.ptp(other)) > 1e-3)  # else SciPy warns of what it cannot compute
    expected = stats.ttest_ind(one, other, equal_var=False).pvalue
    assert welch_p_value(one, other) == pytest.approx(expected, rel=1e-9, abs=1e-300)
    assert welch_p_value(one, other) == pytest.approx(welch_p_value(other, one), rel=1e-12)


@given(
    seed=st.integers(0, 2**32 - 1),
    shift=st.floats(-2.0, 2.0),
    sizes=st.tuples(*[st.integers(2, 400)] * 2),
)
def test_the_p_value_of_normal_samples_is_that_of_scipy(
    seed: int, shift: float, sizes: tuple[int, int]
) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.normal(0.0, 1.0, sizes[0]), rng.normal(shift, 3.0, sizes[1])
    expected = stats.ttest_ind(one, other, equal_var=False).pvalue
    assert welch_p_value(one, other) == pytest.approx(expected, rel=1e-9)


@pytest.mark.filterwarnings("ignore:Precision loss")  # SciPy's word for a sample without variance
def test_the_p_value_where_one_sample_does_not_vary_is_that_of_scipy() -> None:
    one, other = np.full(9, 0.25), np.array([0.0, 0.25, 1.0, 0.5, 0.125])
    expected = stats.ttest_ind(one, other, equal_var=False).pvalue
    assert welch_p_value(one, other) == pytest.approx(expected, rel=1e-12)


@given(
    value=st.floats(-1000.0, 1000.0),
    sizes=st.tuples(st.integers(2, 200), st.integers(2, 200)),
    apart=st.sampled_from([0.0, 1e-6, 1.0, -30.0]),
)
def test_samples_that_do_not_vary_are_equal_or_are_not(
    value: float, sizes: tuple[int, int], apart: float
) -> None:
    one, other = np.full(sizes[0], value), np.full(sizes[1], value + apart)
    assert welch_p_value(one, other) == (1.0 if one[0] == other[0] else 0.0)


@pytest.mark.parametrize("unit", [1e-200, 1e-9, 1e9, 1e200])
def test_the_p_value_does_not_depend_on_the_unit(unit: float) -> None:
    """Long tasks are discounted to very little."""
    rng = np.random.default_rng(0)
    one, other = rng.random(20), rng.random(30) + 0.2
    expected = welch_p_value(one, other)
    assert 0.001 < expected < 0.9
    assert welch_p_value(one * unit, other * unit) == pytest.approx(expected, rel=1e-9)


# --- rules as data


@pytest.mark.parametrize(
    "rule",
    [Exact(), Exact(within=0.2, in_a_row=7), Nominal(in_a_row=1), Welch(episodes=50), Budget()],
)
def test_a_rule_can_be_made_again_from_its_data(rule: StoppingRule) -> None:
    assert as_rule(**rule_as_data(rule)) == rule
    assert type(as_rule(rule.name)) is type(rule) is RULES[rule.name]


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (Exact, {"within": 1.0}, "within is 1.0"),
        (Exact, {"within": -0.1}, "within is -0.1"),
        (Exact, {"in_a_row": 0}, "in_a_row is 0"),
        (Nominal, {"in_a_row": 1.5}, "in_a_row is 1.5"),
        (Welch, {"episodes": 1}, "needs at least 2"),
        (Welch, {"episodes": 0}, "episodes is 0"),
        (Welch, {"alpha": 0.0}, "alpha is 0.0"),
        (Welch, {"in_a_row": 0}, "in_a_row is 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    kind: type[StoppingRule], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        kind(**settings)


def test_an_unknown_setting_of_a_rule_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'within'") as caught:
        as_rule("exact", witin=0.1)
    assert "known: gamma, in_a_row, within" in str(caught.value)
