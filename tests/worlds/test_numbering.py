import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from qrmax.errors import ParameterError
from qrmax.worlds.numbering import Numbering

SIMPLE = st.one_of(
    st.builds(
        lambda n, start: spaces.Discrete(n, start=start), st.integers(1, 5), st.integers(-3, 3)
    ),
    st.builds(
        lambda sizes: spaces.MultiDiscrete(sizes),
        st.lists(st.integers(1, 4), min_size=1, max_size=3),
    ),
    st.builds(lambda n: spaces.MultiBinary(n), st.integers(1, 4)),
)
FINITE = st.recursive(
    SIMPLE,
    lambda parts: st.one_of(
        st.builds(spaces.Tuple, st.lists(parts, min_size=1, max_size=2)),
        st.builds(
            lambda some: spaces.Dict({str(i): p for i, p in enumerate(some)}),
            st.lists(parts, min_size=1, max_size=2),
        ),
    ),
    max_leaves=4,
)


@given(FINITE, st.integers(0, 2**31 - 2))
def test_numbers_and_elements_are_one_to_one(space: spaces.Space, seed: int) -> None:
    numbering = Numbering(space)
    space.seed(seed)
    element = space.sample()
    number = numbering.number(element)
    assert 0 <= number < numbering.size
    assert space.contains(numbering.element(number))
    assert numbering.number(numbering.element(number)) == number
    other = seed % numbering.size
    assert numbering.number(numbering.element(other)) == other


def test_every_number_up_to_the_size_is_used() -> None:
    space = spaces.Tuple([spaces.Discrete(3, start=-1), spaces.MultiDiscrete([2, 2])])
    numbering = Numbering(space)
    elements = [(a, np.array([b, c])) for a in (-1, 0, 1) for b in (0, 1) for c in (0, 1)]
    assert [numbering.number(element) for element in elements] == list(range(12))


def test_vectors_are_refused_with_the_remedy() -> None:
    with pytest.raises(ParameterError, match="TransformObservation"):
        Numbering(spaces.Box(0.0, 1.0, (2,)))
    with pytest.raises(ParameterError, match="a Box space, which no table can hold"):
        Numbering(spaces.Dict({"where": spaces.Discrete(3), "speed": spaces.Box(0.0, 1.0, ())}))


def test_more_than_tables_can_hold_is_refused() -> None:
    with pytest.raises(ParameterError, match="at most 2147483647"):
        Numbering(spaces.MultiDiscrete([100_000, 100_000]))


@pytest.mark.parametrize("element", [3, -1, 10**6])
def test_what_is_not_in_the_space_is_refused(element: int) -> None:
    with pytest.raises(ParameterError, match="is not in Discrete"):
        Numbering(spaces.Discrete(3)).number(element)
