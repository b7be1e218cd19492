"""DFAs: traces, products, equivalence, and readable guards."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

import qrmax
from formulas import LABELS, Trace, random_tree, write
from qrmax.errors import GuardError, ParameterError, TaskError
from qrmax.logic.compiler import compile_formula
from qrmax.logic.dfa import DFA
from qrmax.logic.transitions import Acceptor, Transitions, state_ref
from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import load_task, save_task

SHORT_TRACES: list[Trace] = [list(t) for size in range(4) for t in product(LABELS, repeat=size)]

# The tasks of the paper as formulas. A machine reads one label at a time, so what comes next comes
# strictly later; where coffee and mail are at the same place, its first edge takes the coffee.
_DELIVERY = """
    F((coffee & X F(mail & X F office)) | (mail & !coffee & X F(coffee & X F office)))
"""
TASKS = {
    "exp0": "F(mail & X F(coffee & X F office))",
    "exp1": "F(coffee & X F office)",
    "exp2": "F(mail & X F office)",
    "exp3": _DELIVERY,
    "exp4": "F(A & X F(B & X F(C & X F D)))",
    "exp5": f"F(A & X F(B & X F(C & X F(D & X {_DELIVERY}))))",
    "exp6": f"F(A & X F(B & X F(C & X F(D & X F(E & X {_DELIVERY})))))",
}


def random_dfas(count: int, seed: int) -> list[DFA]:
    """Of formulas whose propositions come up in any order, so that their diagrams differ."""
    rng = Random(seed)
    return [compile_formula(write(random_tree("ltlf", 4, rng))) for _ in range(count)]


@pytest.mark.parametrize("task", TASKS)
def test_the_tasks_of_the_paper_are_these_formulas(task: str) -> None:
    machine = load_task(task).to_dfa()
    formula = compile_formula(TASKS[task])
    assert formula.equivalent(machine)
    assert len(formula.states) == len(machine.states) == len(load_task(task).states)
    assert not formula.equivalent(compile_formula(TASKS[task].replace("X", "", 1)))


def test_complement_and_products_accept_what_they_should() -> None:
    dfas = random_dfas(40, seed=1)
    for left, right in zip(dfas[::2], dfas[1::2], strict=True):
        both, either, differ = left & right, left | right, left.product(right, bool.__ne__)
        for trace in SHORT_TRACES[:200]:
            a, b = left.accepts(trace), right.accepts(trace)
            assert (~left).accepts(trace) is not a
            assert left.complement().accepts(trace) is not a
            assert both.accepts(trace) is (a and b)
            assert either.accepts(trace) is (a or b)
            assert differ.accepts(trace) is (a != b)


def test_de_morgan_holds_for_automata() -> None:
    dfas = random_dfas(20, seed=2)
    for left, right in zip(dfas[::2], dfas[1::2], strict=True):
        assert (~(left & right)).equivalent(~left | ~right)
        assert left.equivalent(~~left)
        assert (left & ~left).is_empty
        assert (~(left | ~left)).is_empty


def test_a_counterexample_is_a_shortest_trace_that_tells_the_two_apart() -> None:
    dfas = random_dfas(40, seed=3)
    late = [compile_formula("a & X b"), compile_formula("X X(a & b & c)")]
    pairs = [*zip(dfas[::2], dfas[1::2], strict=True), *((d, d | e) for d in dfas for e in late)]
    lengths = set()
    for left, right in pairs:
        told_apart = [t for t in SHORT_TRACES if left.accepts(t) != right.accepts(t)]
        found = left.counterexample(right)
        assert left.equivalent(right) is (found is None)
        if told_apart:
            assert found is not None
            assert left.accepts(found) != right.accepts(found)
            assert len(found) == len(told_apart[0])
            lengths.add(len(found))
    assert lengths == {0, 1, 2, 3}


def test_a_witness_is_a_shortest_accepted_trace() -> None:
    assert compile_formula("X X (a & !b)").witness() == [set(), set(), {"a"}]
    assert compile_formula("true").witness() == []
    assert compile_formula("F a & G !a").witness() is None
    assert compile_formula("F a & G !a").is_empty
    assert not compile_formula("G a").is_empty


def test_guards_of_a_state_are_disjoint_and_together_cover_every_label() -> None:
    for dfa in random_dfas(40, seed=4):
        for state in dfa.states:
            edges = dfa.edges(state)
            for label in LABELS:
                (taken,) = (edge for edge in edges if edge.guard.holds(label))
                assert taken.source == state
                assert taken.target == dfa.step(state, label)


def test_an_automaton_prints_as_a_table_of_guards() -> None:
    dfa = compile_formula("F(a & b) & G !c")
    assert str(dfa).splitlines() == [
        "from  when               to",
        "----  -----------------  --",
        "0     !a & !c | !b & !c  0",
        "0     c                  1",
        "0     a & b & !c         2",
        "1     true               1",
        "2     c                  1",
        "2     !c                 2",
        "",
        "accepting: 2",
    ]
    assert repr(dfa) == "DFA(3 states over a, b, c)"
    assert repr(compile_formula("true")) == "DFA(1 state over no propositions)"


def test_minimising_merges_what_cannot_be_told_apart_and_drops_the_unreachable() -> None:
    # two accepting states that do the same, a third that nothing leads to
    nodes = Transitions(
        var=[0],
        low=[state_ref(0)],
        high=[state_ref(2)],
        root=[0, state_ref(2), state_ref(1), state_ref(3)],
    )
    dfa = DFA(["a"], Acceptor(nodes, [False, True, True, True]))
    assert len(dfa.states) == 4
    assert dfa.minimise() == compile_formula("F a")


def test_automata_over_other_propositions_are_compared_over_all_of_them() -> None:
    left, right = compile_formula("F a"), compile_formula("F(b | a)")
    assert left.counterexample(right) == [{"b"}]
    assert (left & compile_formula("F b")).propositions == ("a", "b")
    same = compile_formula("F(a & b & c)"), compile_formula("F(c & b & a)")
    assert same[0].equivalent(same[1])


def test_labels_may_hold_more_than_the_automaton_asks_for_but_are_no_text() -> None:
    dfa = compile_formula("F a")
    assert dfa.accepts([{"x", "a"}, ["y"]])
    assert not dfa.accepts([{"a": False}])
    with pytest.raises(GuardError, match="a label is a set"):
        dfa.accepts(["a"])
    with pytest.raises(TaskError, match="no state 7; states: 0 to 1"):
        dfa.step(7, {"a"})


def test_edges_make_an_automaton_as_they_make_a_machine() -> None:
    edges = [Edge("go", "a & !b", "on"), Edge("go", "a", "back"), Edge("on", "b", "done")]
    dfa = DFA.from_edges(edges, initial="go", accepting=["done"])
    machine = RewardMachine(edges, initial="go", success=["done"])
    for trace in SHORT_TRACES:
        assert dfa.accepts(trace) is machine.run(trace).success
    with pytest.raises(TaskError, match="is stochastic"):
        DFA.from_edges([Edge("go", "a", "done", probability=0.5)], initial="go", accepting=[])


def test_a_machine_that_fails_where_no_edge_matches_has_that_in_its_automaton() -> None:
    edges = [Edge("go", "a", "on"), Edge("on", "b", "done")]
    machine = RewardMachine(edges, initial="go", success=["done"], undefined="fail")
    for trace in SHORT_TRACES:
        assert machine.to_dfa().accepts(trace) is machine.run(trace).success


def test_equal_automata_are_equal_and_have_equal_hashes() -> None:
    one, same = qrmax.compile_formula("F(a | b)"), qrmax.compile_formula("F a | F b")
    assert one == same
    assert hash(one) == hash(same)
    assert one != qrmax.compile_formula("F(a & b)")
    assert isinstance(one, qrmax.DFA)


def test_what_is_no_automaton_cannot_be_compared_with_one() -> None:
    dfa = compile_formula("F a")
    with pytest.raises(ParameterError, match="'F a' is not a DFA"):
        dfa.equivalent("F a")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="makes one of a DFA"):
        save_task(dfa, "a.toml")  # type: ignore[arg-type]
