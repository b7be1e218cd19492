"""Compilation of formulas: the automaton accepts the formula's language and is minimal."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulas import LABELS, Trace, holds, random_trace, random_tree, write
from qrmax.errors import ParameterError, QRMaxError, SizeError
from qrmax.logic.compiler import compile_formula
from qrmax.logic.dfa import DFA
from qrmax.logic.formula import LOGICS

FORMULAS = 2000
TRACES = 8


def states_told_apart(dfa: DFA) -> bool:
    """Whether every two states differ for some trace: the table-filling algorithm."""
    step = {(q, label): dfa.step(q, label) for q in dfa.states for label in LABELS}
    pairs = list(combinations(dfa.states, 2))
    told = {pair for pair in pairs if len({*pair} & dfa.accepting) == 1}
    grows = True
    while grows:
        found = {
            (p, q)
            for p, q in pairs
            if any(tuple(sorted((step[p, at], step[q, at]))) in told for at in LABELS)
        }
        grows = not found <= told
        told |= found
    return len(told) == len(pairs)


def in_order(count: int) -> str:
    text = f"F a{count - 1}"
    for number in reversed(range(count - 1)):
        text = f"F(a{number} & {text})"
    return text


def in_any_order(count: int, once: str = "F") -> str:
    return " & ".join(f"{once} a{number}" for number in range(count))


@pytest.mark.parametrize("logic", LOGICS)
def test_random_formulas_accept_the_traces_that_they_hold_for(logic: str) -> None:
    rng = Random(2025)
    for _ in range(FORMULAS):
        tree = random_tree(logic, rng.randint(3, 5), rng)
        dfa = compile_formula(write(tree), logic)
        for _ in range(TRACES):
            trace = random_trace(rng)
            assert dfa.accepts(trace) is holds(tree, trace, logic), (write(tree), trace)


@pytest.mark.parametrize(
    "text",
    ["<((a*;b)*;c)*>end", "<(((a + b*)*;(c?;a)*)*)*>end", "[((a*)*;(<b*>c)?)*]<(a*;b)*>last"],
)
def test_stars_within_stars_agree_with_their_definition_on_all_short_traces(text: str) -> None:
    trees = {
        "<((a*;b)*;c)*>end": ("<>", ("*", (";", ("*", (";", ("*", "a"), "b")), "c")), "end"),
        "<(((a + b*)*;(c?;a)*)*)*>end": (
            "<>",
            ("*", ("*", (";", ("*", ("+", "a", ("*", "b"))), ("*", (";", ("?", "c"), "a"))))),
            "end",
        ),
        "[((a*)*;(<b*>c)?)*]<(a*;b)*>last": (
            "[]",
            ("*", (";", ("*", ("*", "a")), ("?", ("<>", ("*", "b"), "c")))),
            ("<>", ("*", (";", ("*", "a"), "b")), "last"),
        ),
    }
    dfa = compile_formula(text, "ldlf")
    traces: list[Trace] = [[]]
    for trace in traces:
        assert dfa.accepts(trace) is holds(trees[text], trace, "ldlf"), trace
        if len(trace) < 3:
            traces += [[*trace, label] for label in LABELS]


@pytest.mark.parametrize("logic", LOGICS)
def test_no_two_states_of_a_compiled_formula_are_the_same(logic: str) -> None:
    rng = Random(3)
    sizes = []
    for _ in range(150):
        dfa = compile_formula(write(random_tree(logic, 4, rng)), logic)
        if len(dfa.states) <= 30:
            assert states_told_apart(dfa)
            sizes.append(len(dfa.states))
    assert max(sizes) > 8


@pytest.mark.parametrize(
    ("logic", "text", "accepted"),
    [
        ("ltlf", "a", False),
        ("ltlf", "!a", True),
        ("ltlf", "true", True),
        ("ltlf", "X true", False),
        ("ltlf", "WX false", True),
        ("ltlf", "F true", False),
        ("ltlf", "G false", True),
        ("ltlf", "true U true", False),
        ("ltlf", "false R false", True),
        ("ltlf", "false W false", True),
        ("ltlf", "true M true", False),
        ("ltlf", "last", False),
        ("ldlf", "end", True),
        ("ldlf", "last", False),
        ("ldlf", "a", False),
        ("ldlf", "<true>tt", False),
        ("ldlf", "[true]ff", True),
        ("ldlf", "<a*>tt", True),
        ("ldlf", "<(a?)*>tt", True),
        ("ldlf", "<a?>tt", False),
        ("ppltl", "a", False),
        ("ppltl", "Y true", False),
        ("ppltl", "WY false", True),
        ("ppltl", "O true", False),
        ("ppltl", "H false", True),
        ("ppltl", "true S true", False),
    ],
)
def test_the_empty_trace_has_no_label_and_nothing_ahead_or_behind(
    logic: str, text: str, accepted: bool
) -> None:
    assert compile_formula(text, logic).accepts([]) is accepted


@pytest.mark.parametrize(
    ("logic", "left", "right"),
    [
        ("ltlf", "!X {f}", "WX !{f}"),
        ("ltlf", "!F {f}", "G !{f}"),
        ("ltlf", "F {f}", "true U {f}"),
        ("ltlf", "!({f} U {g})", "!{f} R !{g}"),
        ("ltlf", "!({f} W {g})", "!{f} M !{g}"),
        ("ltlf", "{f} W {g}", "({f} U {g}) | G {f}"),
        ("ltlf", "{f} M {g}", "({f} R {g}) & F {f}"),
        ("ltlf", "{f} U {g}", "({g} | {f} & X({f} U {g})) & F true"),
        ("ltlf", "!({f} & {g})", "!{f} | !{g}"),
        ("ltlf", "{f} -> {g}", "!{f} | {g}"),
        ("ltlf", "{f} <-> {g}", "({f} -> {g}) & ({g} -> {f})"),
        ("ldlf", "!<a;b*>{f}", "[a;b*]!{f}"),
        ("ldlf", "<(a + b);c>{f}", "<a><c>{f} | <b><c>{f}"),
        ("ldlf", "<(a;b)*>{f}", "{f} | <a;b><(a;b)*>{f}"),
        ("ldlf", "<{f}?>{g}", "{f} & {g}"),
        ("ldlf", "[{f}?]{g}", "{f} -> {g}"),
        ("ldlf", "!({f} | {g})", "!{f} & !{g}"),
        ("ldlf", "end", "[true]ff"),
        ("ldlf", "last", "<true>end"),
        ("ppltl", "!Y {f}", "WY !{f}"),
        ("ppltl", "!O {f}", "H !{f}"),
        ("ppltl", "{f} S {g}", "({g} | {f} & Y({f} S {g})) & O true"),
        ("ppltl", "!({f} & {g})", "!{f} | !{g}"),
    ],
)
def test_laws_of_the_logics_hold_for_random_formulas(logic: str, left: str, right: str) -> None:
    rng = Random(11)
    for _ in range(10):
        f, g = (f"({write(random_tree(logic, 3, rng))})" for _ in range(2))
        one, other = (compile_formula(side.format(f=f, g=g), logic) for side in (left, right))
        assert one.counterexample(other) is None, (f, g)


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("true", 1),
        ("false", 1),
        ("F a", 2),
        ("G a", 2),
        ("a", 3),
        ("X a", 4),
        ("F(a & F b)", 3),
        ("F(a & last)", 2),
        (in_order(20), 21),
        (in_any_order(10), 1024),
    ],
)
def test_the_number_of_states_is_what_it_should_be(text: str, states: int) -> None:
    assert len(compile_formula(text).states) == states


def test_the_same_task_in_three_logics_is_the_same_automaton() -> None:
    ahead = compile_formula("F(a & X F b)")
    path = compile_formula("<true*;a;true*;b>tt", "ldlf")
    back = compile_formula("O(b & Y O a)", "ppltl")
    assert ahead == path
    assert ahead.equivalent(back)


def test_states_are_numbered_breadth_first_whatever_the_hash_seed() -> None:
    dfa = compile_formula("F(a & F(b & F c)) & G !d")
    seen = [0]
    for state in seen:
        seen += [target for target in dfa.successors(state) if target not in seen]
    assert set(seen) == set(dfa.states)
    script = (
        "import qrmax; d = qrmax.compile_formula('F(a & F b) & (G(c -> F d) | X e)');"
        "print(d.acceptor)"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1


def test_threads_do_not_disturb_one_another() -> None:
    rng = Random(5)
    texts = [write(random_tree("ltlf", 5, rng)) for _ in range(60)]
    alone = [compile_formula(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(compile_formula, texts * 2)) == alone * 2


def test_names_may_be_capitals_or_quoted() -> None:
    dfa = compile_formula('F(A & F "hot coffee") & G !"F"')
    assert dfa.propositions == ("A", "hot coffee", "F")
    assert dfa.accepts([{"A"}, {"hot coffee"}])
    assert not dfa.accepts([{"A"}, {"F"}, {"hot coffee"}])


@pytest.mark.parametrize(
    ("logic", "text"),
    [
        ("ltlf", in_any_order(14)),
        ("ltlf", "F(a & " + "X " * 30 + "last)"),
        ("ppltl", in_any_order(14, "O")),
        ("ppltl", "O(a & " + "Y " * 30 + "b)"),
        ("ldlf", "<true*;a" + ";true" * 30 + ">end"),
    ],
)
def test_a_formula_that_explodes_stops_at_the_limit(logic: str, text: str) -> None:
    started = time.process_time()
    with pytest.raises(SizeError, match="max_states is 500: raise it"):
        compile_formula(text, logic, max_states=500)
    assert time.process_time() - started < 5.0


def test_the_limit_can_be_raised_and_must_be_a_number() -> None:
    with pytest.raises(SizeError, match="an automaton of more than 16 states"):
        compile_formula("X " * 20 + "a", max_states=16)
    assert len(compile_formula("X " * 20 + "a", max_states=23).states) == 23
    with pytest.raises(ParameterError, match="max_states is 0"):
        compile_formula("a", max_states=0)
    with pytest.raises(ParameterError, match="backend is 'spot'"):
        compile_formula("a", backend="spot")
    with pytest.raises(ParameterError, match="logic is 'ltl'"):
        compile_formula("a", "ltl")


@pytest.mark.parametrize(
    ("logic", "text"),
    [
        ("ltlf", "(" * 10_000 + "a" + ")" * 10_000),
        ("ltlf", "!" * 20_001 + "a"),
        ("ltlf", "X " * 3_000 + "a"),
        ("ltlf", " & ".join(f"a{number}" for number in range(5_000))),
        ("ldlf", "<" + "(" * 5_000 + "a" + ")*" * 5_000 + ">tt"),
        ("ldlf", "<a>" * 3_000 + "tt"),
        ("ldlf", "<(" * 3_000 + "a" + ")?>tt" * 3_000),
        ("ppltl", "O " * 5_000 + "a"),
    ],
)
def test_deep_formulas_compile(logic: str, text: str) -> None:
    started = time.process_time()
    assert isinstance(compile_formula(text, logic), DFA)
    assert time.process_time() - started < 10.0


@given(
    st.lists(
        st.sampled_from(["a", "b", "c", "(", ")", "!", "&", "|", "->", "<->", "last", "true"])
        | st.sampled_from(["X", "WX", "F", "G", "U", "R", "W", "M", "Y", "S", "O", "H"])
        | st.sampled_from(["<a*>", "[b;c]", "<", ">", "*", "?", ";", "+", "tt", "end"]),
        max_size=25,
    ).map(" ".join),
    st.sampled_from(LOGICS),
)
def test_any_text_is_compiled_or_refused(text: str, logic: str) -> None:
    try:
        dfa = compile_formula(text, logic, max_states=300)
    except QRMaxError:
        return
    assert dfa.accepts([]) in (True, False)
