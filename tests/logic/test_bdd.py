"""Decision diagrams: operations, canonicity, and irredundant sums of products."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmax.errors import GuardError, SizeError
from qrmax.logic.bdd import FALSE, TRUE, Diagrams
from qrmax.logic.guards import Guard
from qrmax.logic.isop import cubes_of, diagram_of, guard_of

SIZE = 4
INPUTS = list(product((False, True), repeat=SIZE))

# A truth table: the value of the function for each input.
TABLES = st.lists(st.booleans(), min_size=2**SIZE, max_size=2**SIZE)


def build(table: list[bool], diagrams: Diagrams) -> int:
    """The function with this truth table, as a sum of products."""
    function = FALSE
    for bits, value in zip(INPUTS, table, strict=True):
        if value:
            term = TRUE
            for variable, bit in enumerate(bits):
                literal = diagrams.variable(variable)
                term = diagrams.conj(term, literal if bit else diagrams.negate(literal))
            function = diagrams.disj(function, term)
    return function


def table_of(function: int, diagrams: Diagrams) -> list[bool]:
    return [diagrams.follow(function, bits.__getitem__) == TRUE for bits in INPUTS]


def terms_hold(terms: list[tuple[tuple[int, bool], ...]], bits: tuple[bool, ...]) -> bool:
    return any(all(bits[variable] is value for variable, value in term) for term in terms)


@given(TABLES, TABLES, TABLES)
def test_operations_agree_with_the_truth_tables(
    tests: list[bool], thens: list[bool], others: list[bool]
) -> None:
    d = Diagrams()
    f, g, h = (build(table, d) for table in (tests, thens, others))
    rows = list(zip(tests, thens, others, strict=True))
    assert table_of(d.ite(f, g, h), d) == [b if a else c for a, b, c in rows]
    assert table_of(d.conj(f, g), d) == [a and b for a, b, _ in rows]
    assert table_of(d.disj(f, g), d) == [a or b for a, b, _ in rows]
    assert table_of(d.negate(f), d) == [not a for a in tests]


@given(TABLES, TABLES)
def test_equal_functions_are_one_node_and_others_are_not(
    left: list[bool], right: list[bool]
) -> None:
    d = Diagrams()
    f, g = build(left, d), build(right, d)
    assert (f == g) is (left == right)
    assert d.negate(d.conj(f, g)) == d.disj(d.negate(f), d.negate(g))
    assert d.negate(d.negate(f)) == f


def test_leaves_hold_other_numbers_than_false_and_true() -> None:
    d = Diagrams()
    function = d.ite(d.variable(0), d.leaf(0), d.leaf(1))
    ends = [d.low[d.follow(function, lambda _, bit=bit: bit)] for bit in (True, False)]
    assert ends == [0, 1]
    assert {d.leaf(0), d.leaf(1)}.isdisjoint({FALSE, TRUE})
    assert d.leaf(7) == d.leaf(7)


def test_ten_thousand_variables_do_not_overflow_the_stack() -> None:
    d = Diagrams()
    all_true, any_false = TRUE, FALSE
    for variable in reversed(range(10_000)):
        all_true = d.conj(d.variable(variable), all_true)
        any_false = d.disj(d.negate(d.variable(variable)), any_false)
    assert d.negate(all_true) == any_false
    assert d.conj(all_true, any_false) == FALSE
    assert cubes_of(all_true, d) == [tuple((variable, True) for variable in range(10_000))]


def test_diagrams_that_grow_too_large_are_refused_with_the_limit() -> None:
    d = Diagrams(max_nodes=100)
    with pytest.raises(SizeError, match="more than 100 nodes"):
        [d.variable(variable) for variable in range(200)]


@given(TABLES)
def test_the_terms_of_a_function_say_the_same_and_none_can_be_left_out(table: list[bool]) -> None:
    d = Diagrams()
    terms = cubes_of(build(table, d), d)
    assert [terms_hold(terms, bits) for bits in INPUTS] == table
    for index, term in enumerate(terms):
        others = terms[:index] + terms[index + 1 :]
        assert [terms_hold(others, bits) for bits in INPUTS] != table
        for literal in term:
            wider = tuple(other for other in term if other != literal)
            assert [terms_hold([*others, wider], bits) for bits in INPUTS] != table


@given(TABLES)
def test_a_function_as_a_guard_is_read_back_as_the_same_function(table: list[bool]) -> None:
    d = Diagrams()
    names = ["a", "hot coffee", "true", "F"]
    guard = guard_of(build(table, d), d, names)
    numbers = {name: number for number, name in enumerate(names)}
    assert diagram_of(Guard.parse(str(guard)), d, numbers) == build(table, d)
    assert [
        guard.holds({name for name, bit in zip(names, bits, strict=True) if bit}) for bits in INPUTS
    ] == table


def test_a_guard_with_too_many_terms_is_refused() -> None:
    d = Diagrams()
    odd = FALSE
    for variable in range(20):
        odd = d.ite(d.variable(variable), d.negate(odd), odd)
    with pytest.raises(GuardError, match="more than 10000"):
        guard_of(odd, d, [f"p{number}" for number in range(20)])
