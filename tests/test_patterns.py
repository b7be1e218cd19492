"""Patterns against what they say in words, over every short trace."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby, product
from typing import Any

import gymnasium
import pytest

import qrmax
from qrmax import patterns
from qrmax.errors import FormulaError, ParameterError
from qrmax.logic.formula import Formula

Trace = list[frozenset[str]]
NAMES = ("a", "b", "c")


def traces(names: str, longest: int) -> list[Trace]:
    """Every trace of up to so many labels over these names."""
    labels = [
        frozenset(name for name, true in zip(names, chosen, strict=True) if true)
        for chosen in product((False, True), repeat=len(names))
    ]
    return [[*trace] for length in range(longest + 1) for trace in product(labels, repeat=length)]


SHORT = traces("ab", 4)  # 341
WIDE = traces("abc", 3)  # 585
LONG = traces("a", 8)  # 511


def places(trace: Trace, name: str) -> list[int]:
    return [i for i, label in enumerate(trace) if name in label]


def visits(trace: Trace, name: str) -> int:
    return sum(there for there, _ in groupby(name in label for label in trace))


ORACLES: dict[str, tuple[Formula, Callable[[Trace], bool], list[Trace]]] = {
    "reach": (patterns.reach("a"), lambda t: bool(places(t, "a")), SHORT),
    "in order": (
        patterns.in_order(*NAMES),
        lambda t: any(
            i <= j <= k for i in places(t, "a") for j in places(t, "b") for k in places(t, "c")
        ),
        WIDE,
    ),
    "in strict order": (
        patterns.in_order(*NAMES, strict=True),
        lambda t: any(
            i < j < k for i in places(t, "a") for j in places(t, "b") for k in places(t, "c")
        ),
        WIDE,
    ),
    "in any order": (
        patterns.any_order(*NAMES),
        lambda t: all(places(t, name) for name in NAMES),
        WIDE,
    ),
    "never before": (
        patterns.never_before("b", "a"),
        lambda t: all(any(i <= j for i in places(t, "a")) for j in places(t, "b")),
        SHORT,
    ),
    "avoid": (patterns.avoid("a"), lambda t: not places(t, "a"), SHORT),
    "avoid both": (
        patterns.avoid("a", "b"),
        lambda t: not places(t, "a") and not places(t, "b"),
        SHORT,
    ),
    "avoid until": (
        patterns.avoid_until("a", "b"),
        lambda t: any(all(i >= j for i in places(t, "a")) for j in places(t, "b")),
        SHORT,
    ),
    "always": (patterns.always("a"), lambda t: len(places(t, "a")) == len(t), SHORT),
    "respond": (
        patterns.respond("a", "b"),
        lambda t: all(any(j >= i for j in places(t, "b")) for i in places(t, "a")),
        SHORT,
    ),
    "at least": (patterns.at_least(3, "a"), lambda t: len(places(t, "a")) >= 3, LONG),
    "at least, separately": (
        patterns.at_least(3, "a", separate=True),
        lambda t: visits(t, "a") >= 3,
        LONG,
    ),
    "at most": (patterns.at_most(2, "a"), lambda t: len(places(t, "a")) <= 2, LONG),
    "at most, separately": (
        patterns.at_most(2, "a", separate=True),
        lambda t: visits(t, "a") <= 2,
        LONG,
    ),
    "exactly": (patterns.exactly(2, "a"), lambda t: len(places(t, "a")) == 2, LONG),
    "joined": (
        patterns.reach("a") & ~patterns.reach("b") | patterns.always("b"),
        lambda t: (bool(places(t, "a")) and not places(t, "b")) or len(places(t, "b")) == len(t),
        SHORT,
    ),
    "of a condition": (
        patterns.in_order(qrmax.Guard.parse("a & !b"), "c"),
        lambda t: any(
            i <= k for i in places(t, "a") if i not in places(t, "b") for k in places(t, "c")
        ),
        WIDE,
    ),
}


@pytest.mark.parametrize(("formula", "oracle", "over"), ORACLES.values(), ids=ORACLES.keys())
def test_a_pattern_holds_for_exactly_the_traces_that_its_words_say(
    formula: Formula, oracle: Callable[[Trace], bool], over: list[Trace]
) -> None:
    dfa = qrmax.compile_formula(formula)
    wrong = [trace for trace in over if dfa.accepts(trace) is not oracle(trace)]
    assert wrong == []
    assert Formula.parse(str(formula)) == formula  # what is printed says the same


def test_a_pattern_is_a_task_wherever_one_is_asked_for() -> None:
    task = patterns.in_order("coffee", "office") & patterns.avoid("decoration")
    text = "F(coffee & F office) & G !decoration"
    assert str(task) == text
    assert qrmax.load_task(task) == qrmax.load_task(text)
    assert qrmax.RewardMachine.from_ltlf(task).equivalent(qrmax.load_task(text))
    assert qrmax.make("office/map1", task=task).name == f"office/map1/{text}"
    lake = gymnasium.make("FrozenLake-v1")
    env = qrmax.TaskWrapper(lake, task, labels=lambda *_: ())
    assert env.machine == qrmax.load_task(text)
    assert qrmax.train("qrmax", env, max_steps=50).trained == 50


def test_names_that_a_formula_would_read_otherwise_are_quoted() -> None:
    dfa = qrmax.compile_formula(patterns.in_order("F", "hot coffee", "last"))
    assert dfa.accepts([{"F"}, {"hot coffee"}, {"last"}])
    assert not dfa.accepts([{"F"}, {"hot coffee"}, set()])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: patterns.avoid("a | b"),
            r"not the name of a proposition; a condition is qrmax.Guard",
        ),
        (lambda: patterns.reach(3), "an event is 3; allowed: the name"),  # type: ignore[arg-type]
        (lambda: patterns.reach(""), "an event is ''"),
        (patterns.in_order, "no event is given"),
        (patterns.avoid, "no event is given"),
        (lambda: patterns.at_least(0, "a"), "times is 0"),
        (lambda: patterns.at_least(2000, "a"), "times is 2000; allowed: 1 to 1000"),
        (lambda: patterns.at_most(-1, "a"), "times is -1"),
        (lambda: patterns.reach(Formula.parse("O a", "ppltl")), "formula of ppltl"),
    ],
)
def test_what_is_no_event_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


def test_formulas_join_formulas_of_their_own_logic_only() -> None:
    with pytest.raises(FormulaError, match="one logic, not ltlf and ppltl"):
        _ = patterns.reach("a") & Formula.parse("O a", "ppltl")
    with pytest.raises(FormulaError, match="'F b' is not one"):
        _ = patterns.reach("a") | "F b"  # type: ignore[operator]
