"""The evaluator of episodes of H steps, and the rules that ask it."""

from __future__ import annotations

import numpy as np
import pytest

import qrmax
from qrmax.errors import ParameterError
from qrmax.planning.staged_solution import StagedSolution, solve_horizon
from qrmax.seeding import stream
from qrmax.training.exact_evaluator import ExactEvaluator
from qrmax.training.run import make_session
from qrmax.training.stopping import Exact, Nominal, StoppingRule, Welch
from small_problems import payday, riverswim
from small_runs import LEFT, RIGHT, corridor, fetching, never_fetching


def passes(
    rule: StoppingRule, policy: np.ndarray, evaluator: ExactEvaluator, seed: int = 0
) -> bool:
    return rule.passes(policy, evaluator, stream(seed, "evaluation"))


def held(policy: np.ndarray, stages: int) -> np.ndarray:
    return np.stack([policy] * stages)


# --- what it judges against


def test_the_optimum_is_that_of_the_horizon() -> None:
    evaluator = ExactEvaluator(payday(), 1.0, 3)
    assert isinstance(evaluator.solution, StagedSolution)
    assert evaluator.best == 4.0
    always_work = np.zeros((3, 2, 1), dtype=int)
    assert evaluator.gap(always_work) == pytest.approx(0.25)
    assert evaluator.gap(evaluator.solution.policy) == 0.0


@pytest.mark.filterwarnings("ignore:no policy .*:qrmax.QRMaxWarning")  # 5 steps are too few
@pytest.mark.parametrize(("horizon", "steps"), [(5, 5), (12, 12), (13, 12), (500, 12)])
def test_the_optimum_respects_the_limit_of_the_problem(horizon: int, steps: int) -> None:
    problem = corridor(limit=12)
    evaluator = ExactEvaluator(problem, 0.9, horizon)
    assert len(evaluator.solution.policy) == steps
    assert evaluator.best == pytest.approx(solve_horizon(problem, steps, 0.9).start_value)


def test_without_a_horizon_it_is_as_it_was() -> None:
    evaluator = ExactEvaluator(corridor(), 0.9)
    assert isinstance(evaluator.solution, qrmax.Solution)
    assert evaluator.solution.policy.ndim == 2


def test_stages_are_judged_by_their_order() -> None:
    evaluator = ExactEvaluator(payday(), 1.0, 3)
    work_then_leave = evaluator.solution.policy
    leave_then_work = np.ascontiguousarray(work_then_leave[::-1])
    assert evaluator.evaluate(work_then_leave).start_value == 4.0
    assert evaluator.evaluate(leave_then_work).start_value == 2.0
    assert evaluator.is_near(work_then_leave, 0.0)
    assert not evaluator.is_near(leave_then_work, 0.49)
    assert evaluator.is_near(leave_then_work, 0.5)
    point = evaluator.point(7, leave_then_work)
    assert (point.step, point.start_value, point.gap) == (7, 2.0, 0.5)


# --- sampled returns


@pytest.mark.parametrize("gamma", [0.9, 1.0])
@pytest.mark.parametrize("limit", [None, 9])
@pytest.mark.parametrize("horizon", [8, 15])
def test_sampled_returns_agree_with_the_exact_value(
    gamma: float, limit: int | None, horizon: int
) -> None:
    problem = corridor(bonus=0.1, limit=limit)
    evaluator = ExactEvaluator(problem, gamma, horizon)
    rng = np.random.default_rng(0)
    anything = rng.integers(0, 2, (horizon, problem.n_states, problem.n_task_states))
    for policy in (evaluator.solution.policy, anything.astype(np.int32)):
        returns = evaluator.returns(policy, 20_000, stream(1, "evaluation"))
        error = returns.std(ddof=1) / np.sqrt(len(returns))
        distance = abs(returns.mean() - evaluator.evaluate(policy).start_value)
        assert distance < 4.5 * error + 1e-12


# --- the rules


@pytest.mark.parametrize("rule", [Exact(), Exact(within=0.0), Nominal(), Welch(episodes=2000)])
@pytest.mark.parametrize("gamma", [0.9, 1.0])
def test_the_optimal_policy_passes_and_one_that_never_delivers_does_not(
    rule: StoppingRule, gamma: float
) -> None:
    problem = corridor()
    evaluator = ExactEvaluator(problem, gamma, 20)
    assert passes(rule, evaluator.solution.policy, evaluator)
    assert not passes(rule, held(never_fetching(problem), 20), evaluator)


def test_without_discount_nominal_wants_success_and_not_speed() -> None:
    """One step aside first, and back; or in the middle of the way."""
    problem = corridor(slip=0.1, limit=None)
    late = held(fetching(problem), 30)
    late[0], late[1] = RIGHT, LEFT
    for gamma, passed in ((1.0, True), (0.9, False)):
        evaluator = ExactEvaluator(problem, gamma, 30)
        assert evaluator.nominal_length(held(fetching(problem), 30)) == 7
        assert evaluator.nominal_length(late) == 9
        assert passes(Nominal(), late, evaluator) is passed
        assert passes(Nominal(), held(fetching(problem), 30), evaluator)
        assert not passes(Nominal(), held(fetching(problem), 6), evaluator)


def test_welch_tells_policies_apart_that_differ_in_one_stage() -> None:
    evaluator = ExactEvaluator(payday(), 1.0, 3)
    same = evaluator.solution.policy
    other = same.copy()
    other[2] = 0
    assert passes(Welch(episodes=10), same, evaluator)
    assert not passes(Welch(episodes=10), other, evaluator)


def test_welch_with_few_episodes_knows_no_better_but_with_many_does() -> None:
    problem = riverswim()
    evaluator = ExactEvaluator(problem, 1.0, 30)
    better = evaluator.solution.policy
    worse = better.copy()
    worse[15:] = LEFT
    assert evaluator.gap(worse) > 0.3
    assert passes(Welch(episodes=2000), better, evaluator)
    assert not passes(Welch(episodes=2000), worse, evaluator)


# --- sharing one


def test_a_evaluator_of_another_horizon_is_refused() -> None:
    problem = corridor()
    for horizon in (None, 21):
        with pytest.raises(ParameterError, match=f"horizon {horizon}; .*and horizon 20"):
            make_session(
                "ucbvi-b",
                problem,
                horizon=20,
                gamma=0.9,
                evaluator=ExactEvaluator(problem, 0.9, horizon),
            )
    with pytest.raises(ParameterError, match=r"horizon 20; .*and horizon None"):
        make_session("qrmax", problem, evaluator=ExactEvaluator(problem, 0.9, 20))


def test_without_discount_a_nominal_run_is_to_pay_as_much_as_the_best() -> None:
    """On map4 regular coffee is a success as well, and pays a thousandth of the good one."""
    problem = qrmax.make("office/map4/exp6", slip=0.0)
    evaluator = ExactEvaluator(problem, 1.0, 150)
    good = evaluator.solution.policy
    edges = problem.machine.edges
    regular = qrmax.RewardMachine(  # as if there were no good coffee
        [edge for edge in edges if "has_good_coffee" not in (edge.source, edge.target)],
        initial="start",
        success=["delivered"],
        states=problem.machine.states,
    )
    other = qrmax.Problem(
        problem.mdp, regular, problem.labels, problem.label, max_episode_steps=1000
    )
    modest = qrmax.solve_horizon(other, 150).policy
    assert evaluator.nominal_length(good) is not None
    assert evaluator.nominal_length(modest) is not None
    assert passes(Nominal(), good, evaluator)
    assert not passes(Nominal(), modest, evaluator)
