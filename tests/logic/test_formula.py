"""Formulas: parsing, printing, and errors that point at the column."""

from __future__ import annotations

import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulas import random_tree, write
from qrmax.errors import FormulaError, ParameterError, QRMaxError
from qrmax.logic.formula import LOGICS, MAX_TOKENS, Formula


def error_of(text: str, logic: str) -> str:
    with pytest.raises(FormulaError) as caught:
        Formula.parse(text, logic)
    return str(caught.value)


@pytest.mark.parametrize(
    ("logic", "text", "printed"),
    [
        ("ltlf", "F(a&F(b))", "F(a & F b)"),
        ("ltlf", "((G((!(a)))))", "G !a"),
        ("ltlf", "N a", "WX a"),
        ("ltlf", "WX X(a) -> b", "WX X a -> b"),
        ("ltlf", "a U (b U c)", "a U b U c"),
        ("ltlf", "(a U b) U c", "(a U b) U c"),
        ("ltlf", "a & b U c | d", "a & b U c | d"),
        ("ltlf", "(a -> b) -> c", "(a -> b) -> c"),
        ("ltlf", "a => b <=> ~c && d || e", "a -> b <-> !c & d | e"),
        ("ltlf", "Fa & X_1 & O & Y", "Fa & X_1 & O & Y"),
        ("ltlf", '"F" & "hot coffee" & "coffee"', '"F" & "hot coffee" & coffee'),
        ("ltlf", "F(a & last)", "F(a & last)"),
        ("ldlf", "<(a;b)*>end", "<(a ; b)*>end"),
        ("ldlf", "[true*](a -> <b?;true>tt)", "[true*](a -> <b? ; true>tt)"),
        ("ldlf", "<((a&!b)+c)*>last", "<(a & !b + c)*>last"),
        ("ldlf", "<<a>tt?;(!b)*>F", "<(<a>tt)? ; (!b)*>F"),
        ("ldlf", "<a -> b>(c & d)", "<a -> b>(c & d)"),
        ("ppltl", "H(a -> Y O b) & (c S !d)", "H(a -> Y O b) & c S !d"),
        ("ppltl", "WY X", "WY X"),
    ],
)
def test_a_formula_prints_with_only_the_brackets_it_needs(
    logic: str, text: str, printed: str
) -> None:
    formula = Formula.parse(text, logic)
    assert str(formula) == printed
    assert Formula.parse(printed, logic) == formula
    assert repr(formula) == f"Formula.parse({printed!r}, {logic!r})"


@pytest.mark.parametrize("logic", LOGICS)
def test_a_printed_formula_reads_back_as_an_equal_formula(logic: str) -> None:
    rng = Random(7)
    for _ in range(300):
        formula = Formula.parse(write(random_tree(logic, 5, rng)), logic)
        assert Formula.parse(str(formula), logic) == formula


def test_propositions_come_in_the_order_of_the_text_without_quotes() -> None:
    formula = Formula.parse('F(B & "hot coffee") & G !(A | B) & last')
    assert formula.propositions == ("B", "hot coffee", "A")


@pytest.mark.parametrize(
    ("logic", "text", "column", "words"),
    [
        ("ltlf", "", 1, "ends where a proposition"),
        ("ltlf", "F", 2, "ends where"),
        ("ltlf", "a U", 4, "ends where"),
        ("ltlf", "F(a & )", 7, "unexpected ')', expected a proposition, F, G, N, WX, X"),
        ("ltlf", "a b", 3, "unexpected 'b', expected & -> <-> M R U W | or the end"),
        ("ltlf", "(a b", 4, "U W | ) or the end"),
        ("ltlf", "a U U b", 5, "unexpected 'U'"),
        ("ltlf", "(a", 1, "'(' without its ')'"),
        ("ltlf", "a)", 2, "')' without its '('"),
        ("ltlf", "a $ b", 3, "unexpected '$'"),
        ("ltlf", "<a>tt", 1, "unexpected '<'"),
        ("ltlf", "a S b", 3, "unexpected 'S'"),
        ("ltlf", 'F "coffee', 3, "without its partner"),
        ("ltlf", 'F ""', 3, "without its partner"),
        ("ltlf", "2nd", 1, "unexpected '2'"),
        ("ldlf", "<a tt", 4, "unexpected 'tt'"),
        ("ldlf", "<a", 1, "'<' without its '>'"),
        ("ldlf", "[a>tt", 3, "expected ']' for the '[' at column 1"),
        ("ldlf", "<a>", 4, "ends where"),
        ("ldlf", "a;b", 1, "a path, but a formula is expected"),
        ("ldlf", "<tt>a", 1, "'<' applies to paths, not to a formula; write (formula)? for a test"),
        ("ldlf", "<a & b*>tt", 4, "'&' applies to formulas, not to a path"),
        ("ldlf", "<(a;b) & c>tt", 8, "'&' applies to formulas"),
        ("ldlf", "<a;<b>tt>tt", 3, "';' applies to paths"),
        ("ldlf", "<end*>tt", 5, "'*' applies to paths"),
        ("ldlf", "<a*?>tt", 4, "'?' applies to formulas"),
        ("ldlf", "[a](b;c)", 1, "'[]' applies to formulas"),
        ("ppltl", "a U b", 3, "unexpected 'U'"),
    ],
)
def test_an_error_shows_the_column_and_what_is_expected(
    logic: str, text: str, column: int, words: str
) -> None:
    head, shown, caret = error_of(text, logic).split("\n")
    assert head.startswith(f"formula, column {column}: ")
    assert words in head
    assert shown == f"  {text}"
    assert caret == " " * (2 + column - 1) + "^"


def test_in_a_formula_of_several_lines_the_line_is_shown() -> None:
    assert error_of("F a &\n  G $", "ltlf").startswith("formula, line 2, column 5: ")


def test_an_unknown_logic_and_what_is_no_text_are_refused() -> None:
    with pytest.raises(ParameterError, match="'ltlf', 'ldlf', 'ppltl'"):
        Formula.parse("a", "ltl")
    with pytest.raises(FormulaError, match="not 7"):
        Formula.parse(7)  # type: ignore[arg-type]
    with pytest.raises(FormulaError, match=r"Formula\.parse"):
        Formula("ltlf", "a")  # type: ignore[arg-type]
    assert issubclass(FormulaError, QRMaxError)
    assert issubclass(FormulaError, ValueError)


@pytest.mark.parametrize(
    ("logic", "text"),
    [
        ("ltlf", "(" * 10_000 + "a" + ")" * 10_000),
        ("ltlf", "!" * (MAX_TOKENS - 1) + "a"),
        ("ltlf", "F(" * 10_000 + "a" + ")" * 10_000),
        ("ldlf", "<" + "(" * 10_000 + "a" + ")*" * 10_000 + ">tt"),
        ("ldlf", "<(" * 5_000 + "a" + ")?>tt" * 5_000),
        ("ppltl", "a S (" * 10_000 + "a" + ")" * 10_000),
    ],
)
def test_deep_nesting_is_read_and_printed(logic: str, text: str) -> None:
    started = time.process_time()
    formula = Formula.parse(text, logic)
    assert Formula.parse(str(formula), logic) == formula
    assert time.process_time() - started < 5.0


@pytest.mark.parametrize("piece", ["a & ", "(", "!", "F ", "<", "a;", '"', "$", " "])
@pytest.mark.parametrize("logic", LOGICS)
def test_a_megabyte_is_refused_at_once_with_a_place(logic: str, piece: str) -> None:
    started = time.process_time()
    assert "column " in error_of(piece * (1_000_000 // len(piece)), logic)
    assert time.process_time() - started < 5.0


def test_a_name_of_a_megabyte_is_a_name_but_not_repeated_in_messages() -> None:
    name = "a" * 1_000_000
    assert Formula.parse(name).propositions == (name,)
    assert len(error_of(f"a {name}", "ltlf")) < 1000


@given(
    st.text()
    | st.text(alphabet='abFGXUWRM!&|()<>[];+*?- "\n')
    | st.lists(
        st.sampled_from(["a", "b", "(", ")", "<", ">", "[", "]", "!", "&", "|", "->", "<->"])
        | st.sampled_from([";", "+", "*", "?", "X", "F", "U", "last", "tt", "end", "Y", "S", '"F"'])
    ).map(" ".join),
    st.sampled_from(LOGICS),
)
def test_any_text_is_a_formula_or_an_error_with_a_column(text: str, logic: str) -> None:
    try:
        formula = Formula.parse(text, logic)
    except FormulaError as error:
        message = str(error)
    else:
        message = "column none"
        assert Formula.parse(str(formula), logic) == formula
    assert "column " in message
