"""Guards: evaluation, printing, and errors that point at the column."""

from __future__ import annotations

import time
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmax.errors import GuardError, QRMaxError
from qrmax.logic import guards
from qrmax.logic.guards import MAX_TOKENS, Guard, is_proposition

NAMES = ("coffee", "mail", "_x1", "truely")
LABELS = [frozenset(c) for size in range(len(NAMES) + 1) for c in combinations(NAMES, size)]

# A guard as a tree, written and evaluated here without the library: a name, "true", "false",
# ("!", tree) or (operator, tree, tree).
Tree = str | tuple

TREES = st.recursive(
    st.sampled_from([*NAMES, "true", "false"]),
    lambda trees: (
        st.tuples(st.just("!"), trees) | st.tuples(st.sampled_from(["&", "|"]), trees, trees)
    ),
    max_leaves=12,
)


def evaluate(tree: Tree, label: frozenset[str]) -> bool:
    if isinstance(tree, str):
        return tree == "true" or tree in label
    if tree[0] == "!":
        return not evaluate(tree[1], label)
    left, right = evaluate(tree[1], label), evaluate(tree[2], label)
    return (left and right) if tree[0] == "&" else (left or right)


def write(tree: Tree) -> str:
    if isinstance(tree, str):
        return tree
    if tree[0] == "!":
        return f"!({write(tree[1])})"
    return f"({write(tree[1])}){tree[0]}({write(tree[2])})"


def truth_table(guard: Guard) -> list[bool]:
    return [guard.holds(label) for label in LABELS]


def error_of(text: str) -> str:
    with pytest.raises(GuardError) as caught:
        Guard.parse(text)
    return str(caught.value)


def test_a_name_holds_where_it_is_true_and_nowhere_else() -> None:
    guard = Guard.parse("coffee")
    assert guard.holds({"coffee"})
    assert guard.holds(["mail", "coffee"])
    assert not guard.holds({"mail"})
    assert not guard.holds(())


def test_propositions_are_the_names_without_the_constants() -> None:
    guard = Guard.parse("a & !b | true & (false | a)")
    assert guard.propositions == {"a", "b"}


def test_true_and_false_are_constants_even_where_a_label_names_them() -> None:
    assert Guard.parse("true").holds(())
    assert not Guard.parse("false").holds(())
    assert not Guard.parse("false").holds({"false", "true"})


@pytest.mark.parametrize("name", ["True", "TRUE", "truely", "falsehood", "_true"])
def test_only_the_exact_words_true_and_false_are_constants(name: str) -> None:
    assert Guard.parse(name).propositions == {name}
    assert not Guard.parse(name).holds(())


def test_a_name_in_quotes_may_be_any_text_and_prints_in_quotes_only_where_it_must() -> None:
    guard = Guard.parse('"hot coffee" & !"true" | "mail"')
    assert guard.propositions == {"hot coffee", "true", "mail"}
    assert guard.holds({"hot coffee"})
    assert not guard.holds({"hot coffee", "true"})
    assert str(guard) == '"hot coffee" & !"true" | mail'
    assert Guard.parse(str(guard)) == guard
    assert guard.overlap(Guard.parse('"true"')) is not None
    assert "unexpected '\"'" in error_of('coffee & "mail')


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("a | b & c", "a | (b & c)"),
        ("a & b | c", "(a & b) | c"),
        ("!a & b", "(!a) & b"),
        ("!a | b", "(!a) | b"),
        ("!!a", "a"),
        ("! ( a | b )", "(!a) & (!b)"),
        (" a\t&\u00a0b\n", "a & b"),
    ],
)
def test_not_binds_tighter_than_and_than_or(text: str, means: str) -> None:
    labels = [frozenset(c) for size in range(4) for c in combinations("abc", size)]
    left, right = Guard.parse(text), Guard.parse(means)
    assert [left.holds(label) for label in labels] == [right.holds(label) for label in labels]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("((a))", "a"),
        ("(a&b)|c", "a & b | c"),
        ("a&(b|c)", "a & (b | c)"),
        ("!(a&b)", "!(a & b)"),
        ("!(!(a))", "!!a"),
        ("(a|b)&!(true)", "(a | b) & !true"),
    ],
)
def test_a_guard_prints_with_only_the_brackets_it_needs(text: str, printed: str) -> None:
    assert str(Guard.parse(text)) == printed
    assert repr(Guard.parse(text)) == f"Guard.parse({printed!r})"


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", 1, "ends where"),
        ("   ", 4, "ends where"),
        ("coffee &", 9, "ends where"),
        ("!", 2, "ends where"),
        ("coffee & )", 10, "unexpected ')'"),
        ("()", 2, "unexpected ')'"),
        ("| mail", 1, "unexpected '|'"),
        ("a & & b", 5, "unexpected '&'"),
        ("coffee mail", 8, "unexpected 'mail'"),
        ("coffee (mail)", 8, "unexpected '('"),
        ("coffee ! mail", 8, "unexpected '!'"),
        ("coffee)", 7, "without its '('"),
        ("(coffee", 1, "without its ')'"),
        ("a & (b | (c)", 5, "without its ')'"),
        ("coffee $ mail", 8, "unexpected '$'"),
        ("2nd", 1, "unexpected '2'"),
        ("caf\u00e9", 4, "unexpected"),
        ("a && b", 4, "unexpected '&'"),
    ],
)
def test_an_error_names_the_column_and_the_caret_stands_under_it(
    text: str, column: int, words: str
) -> None:
    head, shown, caret = error_of(text).split("\n")
    assert head.startswith(f"guard, column {column}: ")
    assert words in head
    assert shown == f"  {text}"
    assert caret == " " * (2 + column - 1) + "^"


def test_in_a_long_guard_the_excerpt_is_cut_and_the_caret_still_fits() -> None:
    text = "a & " * 500 + "$ & " + "b & " * 500 + "b"
    head, shown, caret = error_of(text).split("\n")
    assert "column 2001:" in head
    assert len(shown) < 100
    assert caret.endswith("^")
    assert shown[len(caret) - 1] == "$"


@pytest.mark.parametrize("text", ["coffee &\n  mail & $", "coffee\n$", "coffee $\n & mail"])
def test_in_a_guard_of_several_lines_the_caret_stands_under_the_character(text: str) -> None:
    *_, shown, caret = error_of(text).split("\n")
    assert caret.strip() == "^"
    assert shown[len(caret) - 1 : len(caret)] == "$"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 4999 + "a" + ")" * 4999,
        "!" * (MAX_TOKENS - 1) + "a",
        "!(" * 3333 + "a" + ")" * 3333,
        "a|(" * 2499 + "a" + ")" * 2499,
    ],
)
def test_nesting_as_deep_as_the_length_allows_parses_prints_and_evaluates(text: str) -> None:
    started = time.process_time()
    guard = Guard.parse(text)
    negations = text.count("!")
    assert guard.holds({"a"}) is (negations % 2 == 0)
    assert guard.overlap(guard) is not None
    assert str(guard).count("!") == negations
    assert time.process_time() - started < 2.0


def test_a_guard_longer_than_allowed_is_refused_with_the_limit() -> None:
    assert Guard.parse("!" * (MAX_TOKENS - 1) + "a").propositions == {"a"}
    assert "more than 10000" in error_of("!" * MAX_TOKENS + "a")


def test_guards_too_hard_to_compare_are_refused_rather_than_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seven pigeons in six holes: no label fits, but only trying them all tells."""
    monkeypatch.setattr(guards, "MAX_TRIALS", 4_000)
    holes = [" | ".join(f"p{i}_{j}" for j in range(6)) for i in range(7)]
    crowds = [f"!(p{a}_{j} & p{b}_{j})" for j in range(6) for a in range(7) for b in range(a)]
    guard = Guard.parse(" & ".join([*(f"({hole})" for hole in holes), *crowds]))
    started = time.process_time()
    with pytest.raises(GuardError, match="trials"):
        guard.overlap(Guard.parse("true"))
    assert time.process_time() - started < 30.0


def test_the_longest_guard_without_spaces_can_be_read_back_from_its_print() -> None:
    guard = Guard.parse("&".join("a" * 5000))
    assert Guard.parse(str(guard)) == guard


@pytest.mark.parametrize("text", ["a & (b & c)", "a | (b | c)", "a & ((b & c) & d)"])
def test_brackets_to_the_right_survive_printing(text: str) -> None:
    guard = Guard.parse(text)
    assert Guard.parse(str(guard)) == guard


@given(TREES)
def test_a_guard_has_the_truth_table_of_its_tree(tree: Tree) -> None:
    assert truth_table(Guard.parse(write(tree))) == [evaluate(tree, label) for label in LABELS]


@given(TREES)
def test_a_printed_guard_reads_back_with_the_same_truth_table(tree: Tree) -> None:
    guard = Guard.parse(write(tree))
    again = Guard.parse(str(guard))
    assert truth_table(again) == truth_table(guard)
    assert str(again) == str(guard)


@given(TREES)
def test_a_printed_guard_reads_back_as_an_equal_guard(tree: Tree) -> None:
    guard = Guard.parse(write(tree))
    assert Guard.parse(str(guard)) == guard


@given(TREES, TREES)
def test_overlap_finds_a_common_label_exactly_where_brute_force_does(
    left: Tree, right: Tree
) -> None:
    exists = any(evaluate(left, label) and evaluate(right, label) for label in LABELS)
    witness = Guard.parse(write(left)).overlap(Guard.parse(write(right)))
    assert (witness is not None) is exists
    if witness is not None:
        assert evaluate(left, witness)
        assert evaluate(right, witness)


def test_overlap_of_many_names_does_not_enumerate_every_label() -> None:
    names = [f"p{i}" for i in range(200)]
    started = time.process_time()
    all_true, none_true = Guard.parse("&".join(names)), Guard.parse(f"!({'|'.join(names)})")
    assert all_true.overlap(all_true) == frozenset(names)
    assert all_true.overlap(none_true) is None
    assert time.process_time() - started < 2.0


@given(st.text() | st.text(alphabet="ab!&|() \n\ttrue"))
def test_any_text_is_a_guard_or_a_guard_error(text: str) -> None:
    try:
        guard = Guard.parse(text)
    except GuardError:
        return
    assert guard.holds(()) in (True, False)


def test_a_guard_error_is_one_of_ours_and_a_value_error() -> None:
    assert issubclass(GuardError, QRMaxError)
    assert issubclass(GuardError, ValueError)


def test_a_guard_made_of_text_says_how_to_read_it() -> None:
    with pytest.raises(GuardError, match=r"Guard\.parse"):
        Guard("coffee")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["a", "!a & b", "a & (b | !c)", "true", "!(a | b) & c"])
def test_an_example_is_a_label_for_which_the_guard_holds(text: str) -> None:
    example = Guard.parse(text).example()
    assert example is not None
    assert Guard.parse(text).holds(example)
    assert Guard.parse(f"({text}) & !({text})").example() is None


@pytest.mark.parametrize("label", [(), ("a",), ("b",), ("a", "b")])
def test_but_not_holds_where_one_guard_does_and_the_other_does_not(label: tuple[str, ...]) -> None:
    for one, other in (("a", "b"), ("true", "a | b"), ("a | b", "a & b"), ("true", "true")):
        both = Guard.parse(one).but_not(Guard.parse(other))
        assert both.holds(label) == (
            Guard.parse(one).holds(label) and not Guard.parse(other).holds(label)
        )
        assert Guard.parse(str(both)) == both


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("coffee", True),
        ("true", True),
        ("a b", True),
        ("", False),
        ('a "b"', False),
        ("a\n", False),
    ],
)
def test_what_a_guard_can_name(text: str, verdict: bool) -> None:
    assert is_proposition(text) is verdict
