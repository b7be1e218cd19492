import copy
import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import qrmax
from qrmax.errors import ParameterError
from qrmax.planning import reference
from random_problems import problems, random_policy, size_of
from small_problems import errand

pytestmark = pytest.mark.small_enough_without_jit

TABLE4 = [
    *csv.DictReader((Path(__file__).parents[1] / "data" / "table4_vi.csv").read_text().splitlines())
]
SOLVED_LOOSELY_IN_THE_PAPER = {("map2", "exp4"), ("map2", "exp5")}


@pytest.mark.parametrize("row", TABLE4, ids=lambda row: f"{row['map']}-{row['task']}")
def test_the_value_iteration_columns_of_table_4_come_out(row: dict[str, str]) -> None:
    problem = qrmax.make(f"office/{row['map']}/{row['task']}")
    result = qrmax.evaluate(problem, qrmax.solve(problem).policy)
    assert result.mean_length is not None
    assert result.mean_length == pytest.approx(float(row["vi_mean_length"]), rel=0.045)
    if (row["map"], row["task"]) not in SOLVED_LOOSELY_IN_THE_PAPER:
        assert 100 * result.success == pytest.approx(float(row["vi_success_percent"]), abs=1.5)


@pytest.mark.parametrize(
    ("name", "length"),
    [("office/map1/exp5", 55), ("office/map4/exp6", 57), ("office/map0/exp0", 45)],
)
def test_the_nominal_plans_have_the_printed_lengths(name: str, length: int) -> None:
    problem = qrmax.make(name)
    assert qrmax.evaluate(problem, qrmax.solve(problem).policy).nominal_length == length
    nominal = problem.nominal()
    assert qrmax.evaluate(nominal, qrmax.solve(nominal).policy).mean_length == length


def coin() -> qrmax.Problem:
    """Each step succeeds with 1/4, fails with 1/4, else goes on."""
    mdp = qrmax.TabularMDP([[[1, 2, 0]]] * 3, [[[0.25, 0.25, 0.5]]] * 3, start=0)
    edges = [qrmax.Edge("play", "head", "won", 1.0), qrmax.Edge("play", "tail", "lost", -1.0)]
    machine = qrmax.RewardMachine(edges, initial="play", success=["won"], failure=["lost"])
    return qrmax.Problem(mdp, machine, [set(), {"head"}, {"tail"}], [0, 1, 2])


def test_a_game_of_chance_without_a_limit() -> None:
    result = qrmax.evaluate(coin(), np.zeros((3, 3), dtype=int), gamma=0.8)
    assert result.start_value == pytest.approx(0.0, abs=1e-12)
    assert result.success == pytest.approx(0.5)
    assert result.mean_length == pytest.approx(2.0)
    assert result.nominal_length is None  # the most likely outcome is to go on for ever


def test_a_game_of_chance_cut_off_after_two_steps() -> None:
    result = qrmax.evaluate(coin(), np.zeros((3, 3), dtype=int), max_episode_steps=2)
    assert result.success == pytest.approx(0.25 + 0.125)
    assert result.mean_length == pytest.approx((0.25 * 1 + 0.125 * 2) / 0.375)


@pytest.mark.parametrize("chance", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("cycle", [1, 2, 3])
def test_success_that_is_long_in_coming_is_still_counted_in_full(cycle: int, chance: float) -> None:
    """Round and round, with a small chance each step to succeed, and the same to fail."""
    here = np.arange(cycle)
    succ = np.stack([np.full(cycle, cycle), np.full(cycle, cycle + 1), (here + 1) % cycle], axis=1)
    succ = np.vstack([succ, [[cycle] * 3, [cycle + 1] * 3]])[:, None, :]
    prob = np.tile([chance, chance, 1 - 2 * chance], (cycle + 2, 1, 1))
    edges = [qrmax.Edge("play", "head", "won"), qrmax.Edge("play", "tail", "lost")]
    machine = qrmax.RewardMachine(edges, initial="play", success=["won"], failure=["lost"])
    label = [*[0] * cycle, 1, 2]
    problem = qrmax.Problem(qrmax.TabularMDP(succ, prob), machine, [(), ["head"], ["tail"]], label)
    result = qrmax.evaluate(problem, np.zeros((cycle + 2, 3), dtype=int))
    assert result.success == pytest.approx(0.5, rel=1e-6)
    assert result.mean_length == pytest.approx(1 / (2 * chance), rel=1e-6)


@pytest.mark.parametrize("slip", [0.0, 0.1])
def test_success_is_waited_for_where_discounting_has_left_nothing_of_its_reward(
    slip: float,
) -> None:
    problem = errand(cells=60, limit=500, slip=slip)
    result = qrmax.evaluate(problem, qrmax.solve(problem, 0.1).policy, 0.1)
    assert result.success == pytest.approx(1.0)
    assert result.mean_length == pytest.approx(60 / (1 - slip))
    assert result.nominal_length == 60


def test_a_probability_of_success_is_never_above_one() -> None:
    problem = qrmax.make("office/map0/exp0")  # the sum over episode lengths is 1 + 3e-15
    policy = qrmax.solve(problem).policy
    assert qrmax.evaluate(problem, policy).success == 1.0
    staged = np.stack([policy] * 400)
    assert 1.0 - 1e-9 < qrmax.evaluate(problem, staged).success <= 1.0


def test_a_policy_that_never_arrives_has_no_mean_length() -> None:
    problem = qrmax.make("office/map1/exp1")
    for limit in (1000, None):
        stuck = qrmax.evaluate(problem, np.zeros((108, 3), dtype=int), max_episode_steps=limit)
        assert stuck == qrmax.Evaluation(0.0, 0.0, None, None)


def test_the_limit_is_that_of_the_problem_unless_one_is_given() -> None:
    problem = qrmax.make("office/map1/exp1", max_episode_steps=20)
    policy = qrmax.solve(problem).policy
    short = qrmax.evaluate(problem, policy)
    assert short == qrmax.evaluate(problem, policy, 0.9, 20)
    assert short.success < qrmax.evaluate(problem, policy, max_episode_steps=None).success


@given(problems(), st.sampled_from([0.3, 0.9, 0.97]))
def test_the_optimal_policy_is_worth_the_optimal_value(
    problem: qrmax.Problem, gamma: float
) -> None:
    solution = qrmax.solve(problem, gamma)
    result = qrmax.evaluate(problem, solution.policy, gamma, max_episode_steps=None)
    scale = size_of(problem, solution.value)
    assert result.start_value == pytest.approx(solution.start_value, rel=1e-9, abs=1e-9 * scale)


@given(problems(), st.integers(0, 1000), st.sampled_from([None, 1, 2, 7, 40]))
def test_evaluation_equals_the_reference(
    problem: qrmax.Problem, seed: int, limit: int | None
) -> None:
    policy = random_policy(problem, seed)
    result = qrmax.evaluate(problem, policy, 0.9, max_episode_steps=limit)
    value, success, lengths = reference.evaluate(problem, policy, 0.9, limit)
    scale = size_of(problem, np.zeros(1))
    assert result.start_value == pytest.approx(value, rel=1e-9, abs=1e-9 * scale)
    assert result.success == pytest.approx(success, rel=1e-9, abs=1e-15)
    if success > 0:
        assert result.mean_length == pytest.approx(lengths / success, rel=1e-8)
    else:
        assert result.mean_length is None


def with_the_likeliest_machine(problem: qrmax.Problem) -> qrmax.Problem:
    """The same problem where the machine's most likely outcome always happens too."""
    table = problem.table
    best = table.prob.argmax(axis=2)[:, :, None]
    likeliest = copy.copy(problem)
    likeliest.table = table._replace(
        next_state=np.take_along_axis(table.next_state, best, axis=2),
        prob=np.ones(best.shape),
        reward=np.take_along_axis(table.reward, best, axis=2),
    )
    return likeliest


@given(problems(), st.integers(0, 1000))
def test_the_nominal_length_is_the_length_on_the_nominal_problem(
    problem: qrmax.Problem, seed: int
) -> None:
    starts = np.sort(problem.mdp.start)
    assume(len(starts) == 1 or starts[-1] - starts[-2] > 1e-6)  # no tie for the likeliest start
    policy = random_policy(problem, seed)
    certain = with_the_likeliest_machine(problem.nominal())
    nominal = qrmax.evaluate(certain, policy, max_episode_steps=None)
    length = qrmax.evaluate(problem, policy, max_episode_steps=None).nominal_length
    assert length == (None if nominal.mean_length is None else round(nominal.mean_length))


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.zeros((3, 108), dtype=int), "shape"),
        (np.zeros((108, 3)), "float64"),
        (np.full((108, 3), 4), "policy is 4 at state 0, task state 0; allowed: 0 to 3"),
    ],
)
def test_a_policy_of_the_wrong_form_is_refused(policy: np.ndarray, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        qrmax.evaluate(qrmax.make("office/map1/exp1"), policy)


@pytest.mark.parametrize("limit", [0, -1, 2.5, True])
def test_a_limit_that_is_no_number_of_steps_is_refused(limit: int) -> None:
    problem = qrmax.make("office/map1/exp1")
    with pytest.raises(ParameterError, match="max_episode_steps"):
        qrmax.evaluate(problem, np.zeros((108, 3), dtype=int), max_episode_steps=limit)
