"""Reward machines made from formulas: their rewards, and when episodes end."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

import qrmax
from formulas import LABELS, Trace, random_trace, random_tree, write
from qrmax.errors import FormulaError, ParameterError, SizeError, TaskError, UnknownNameError
from qrmax.logic.compiler import compile_formula
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import format_task, parse_task
from qrmax.planning import reference
from qrmax.source import Source

SAFE_DELIVERY = "F(coffee & F office) & G !hole"


def paid(formulas: dict[str, float], trace: Trace, pay: str) -> list[float]:
    """The reward of each step, by the automata of the formulas and nothing else."""
    rewards = [0.0] * len(trace)
    for text, reward in formulas.items():
        dfa = compile_formula(text)
        times = [t for t in range(len(trace)) if dfa.accepts(trace[: t + 1])]
        for time in times[:1] if pay == "once" else times:
            rewards[time] += reward
    return rewards


def test_a_task_in_logic_pays_when_it_is_satisfied_and_ends_there() -> None:
    task = RewardMachine.from_ltlf(SAFE_DELIVERY, reward=2.0)
    run = task.run([{"coffee"}, set(), {"office"}])
    assert (run.rewards, run.success) == ((0.0, 0.0, 2.0), True)
    assert task.success == {"satisfied"}
    assert task.failure == {"violated"}
    assert [str(edge.guard) for edge in task.edges if edge.source == "q1"] == [
        "hole",
        "office & !hole",
    ]


def test_a_failure_that_cannot_be_made_good_ends_the_episode_unless_told_not_to() -> None:
    trace: Trace = [frozenset({"coffee"}), frozenset({"hole"}), frozenset({"office"})]
    run = RewardMachine.from_ltlf(SAFE_DELIVERY).run(trace)
    assert (run.failure, run.reward, run.states[2]) == (True, 0.0, "violated")
    goes_on = RewardMachine.from_ltlf(SAFE_DELIVERY, end_on_failure=False)
    assert goes_on.failure == frozenset()
    assert goes_on.run(trace).reward == 0.0
    assert not goes_on.run(trace).failure


def test_a_success_goes_on_where_it_is_told_to() -> None:
    formulas = {"F goal": 1.0, "F hole": -1.0}
    task = RewardMachine.from_ltlf(formulas, end_on_success=False)
    assert task.success == frozenset()
    assert task.run([{"goal"}, {"hole"}, {"goal"}]).rewards == (1.0, -1.0, 0.0)
    ends = RewardMachine.from_ltlf(formulas)
    assert ends.run([{"goal"}, {"hole"}]).rewards == (1.0, 0.0)
    assert ends.run([{"hole"}, {"goal"}]).rewards == (-1.0, 1.0)
    assert ends.run([{"hole"}, {"goal"}]).success


@pytest.mark.parametrize("pay", ["once", "each"])
def test_a_machine_without_ends_pays_what_its_formulas_say(pay: str) -> None:
    rng = Random(8)
    for _ in range(60):
        formulas = {
            write(random_tree("ltlf", 3, rng)): 1.0,
            write(random_tree("ltlf", 3, rng)): -0.5,
        }
        try:
            task = RewardMachine.from_ltlf(
                formulas, pay=pay, end_on_success=False, end_on_failure=False
            )
        except TaskError:  # nothing to gain
            continue
        for _ in range(10):
            trace = random_trace(rng)
            assert list(task.run(trace).rewards) == paid(formulas, trace, pay)


def test_ends_come_only_where_nothing_more_is_to_gain() -> None:
    rng = Random(9)
    short = [list(labels) for size in range(1, 4) for labels in product(LABELS[::3], repeat=size)]
    for _ in range(40):
        formulas = {
            write(random_tree("ltlf", 3, rng)): 1.0,
            write(random_tree("ltlf", 3, rng)): 3.0,
        }
        try:
            ends = RewardMachine.from_ltlf(formulas)
        except TaskError:
            continue
        for trace in short:
            assert list(ends.run(trace).rewards) == paid(formulas, trace, "once")


def test_a_reward_for_each_step_is_paid_as_long_as_the_formula_holds() -> None:
    task = RewardMachine.from_ltlf("F(a & last)", 0.5, pay="each")
    assert task.run([{"a"}, {"a"}, set(), {"a"}]).rewards == (0.5, 0.5, 0.0, 0.5)
    assert task.terminal == frozenset()


def test_penalties_alone_end_when_nothing_more_can_be_lost() -> None:
    task = RewardMachine.from_ltlf("F hole", -1.0)
    assert task.run([set(), {"hole"}]).rewards == (0.0, -1.0)
    assert task.failure == {"violated"}
    assert task.success == frozenset()


def test_the_start_label_is_read_without_pay() -> None:
    task = RewardMachine.from_ltlf("F(a & F b)")
    assert task.reset({"a"}) == "q1"
    assert task.reset({"a", "b"}) == "satisfied"
    later = RewardMachine.from_ltlf("F(a & F b)", consume_initial=False)
    assert later.reset({"a", "b"}) == "q0"


def test_all_logics_make_the_same_machine_of_the_same_task() -> None:
    ahead = RewardMachine.from_ltlf("F(a & X F b)")
    assert RewardMachine.from_ldlf("<true*;a;true*;b>tt") == ahead
    assert RewardMachine.from_dfa(compile_formula("F(a & X F b)")) == ahead
    back = RewardMachine.from_ppltl("O(b & Y O a)")
    assert back.to_dfa().equivalent(ahead.to_dfa())


def test_a_machine_from_logic_survives_a_file_even_with_odd_names() -> None:
    task = RewardMachine.from_ltlf('F("hot coffee" & F "true")', name="odd")
    assert parse_task(Source("odd.toml", format_task(task))) == task


@pytest.mark.parametrize("task", ["exp1", "exp4"])
def test_the_formula_of_a_built_in_task_pays_as_the_task_does(task: str) -> None:
    built_in = qrmax.load_task(task)
    machine = RewardMachine.from_dfa(built_in.to_dfa())
    names = sorted(built_in.propositions)
    rng = Random(4)
    for _ in range(100):
        trace = [{name for name in names if rng.random() < 0.4} for _ in range(8)]
        assert machine.run(trace).rewards == built_in.run(trace).rewards


def test_the_world_is_solved_alike_with_the_task_said_in_logic() -> None:
    problem = qrmax.make("office/map1/exp1")
    task = RewardMachine.from_ltlf("F(coffee & X F office)")
    said = qrmax.Problem(problem.mdp, task, problem.labels, problem.label)
    values = [reference.solve(which, gamma=0.9) for which in (problem, said)]
    assert np.allclose(values[0][:, :2], values[1][:, :2], rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("F a & G !a",), TaskError, "no trace satisfies 'F a & G !a'"),
        (({"F a": 1.0, "false": 2.0},), TaskError, "no trace satisfies 'false'"),
        (({},), TaskError, "no formula is given"),
        (("F a", 0.0), ParameterError, "reward is 0.0; allowed: finite numbers other than 0"),
        (("F a", float("nan")), ParameterError, "reward is nan"),
        (("F a", True), ParameterError, "reward is True"),
        (({"F a": "much"},), ParameterError, "reward is 'much'"),
        (("F (",), FormulaError, "column 4"),
        ((5,), FormulaError, "not 5"),
    ],
)
def test_tasks_that_make_no_sense_are_refused(
    arguments: tuple[object, ...], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        RewardMachine.from_ltlf(*arguments)  # type: ignore[arg-type]


def test_options_outside_their_range_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'end_on_failure'"):
        RewardMachine.from_ltlf("F a", end_on_fail=False)  # type: ignore[call-arg]
    with pytest.raises(SizeError, match="needs an automaton of more than 3 states"):
        RewardMachine.from_ltlf("F a & F b", max_states=3)
    with pytest.raises(
        SizeError, match="the product of all formulas needs an automaton of more than 3 states"
    ):
        RewardMachine.from_ltlf({"F a": 1.0, "F b": 1.0}, max_states=3)
    with pytest.raises(ParameterError, match="pay is 'twice'; allowed: 'once', 'each'"):
        RewardMachine.from_ltlf("F a", pay="twice")
    with pytest.raises(ParameterError, match="end_on_failure is 1; allowed: True, False"):
        RewardMachine.from_ltlf("F a", end_on_failure=1)  # type: ignore[typeddict-item]
