"""Saving without a word: attributes of an agent as named arrays, and back."""

from __future__ import annotations

from collections import defaultdict, deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qrmax
from qrmax.agents.saving import TEXT, to_arrays, update_from_arrays
from qrmax.errors import AgentError, ModelError
from small_runs import assert_same_run, corridor

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(
            st.text() | st.integers() | st.tuples(st.integers(), st.integers()), inner
        )
    ),
    max_leaves=8,
)


def again(value: Any, before: Any = None) -> Any:
    attributes = {"x": before}
    update_from_arrays(attributes, to_arrays({"x": value}, "it"))
    return attributes["x"]


@given(plain)
def test_what_is_plain_comes_back_as_it_was(value: Any) -> None:
    found = again(value)
    assert found == value
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.array(3),
        np.zeros((0, 2), dtype=np.int8),
        np.array([True, False]),
        np.array([1.5 + 2j]),
        np.array([np.nan, np.inf]),
    ],
)
def test_arrays_come_back_bit_for_bit_and_are_copies(array: Any) -> None:
    kept = to_arrays({"x": array}, "it")
    found = again(array)
    assert (found.dtype, found.shape, found.tobytes()) == (
        array.dtype,
        array.shape,
        array.tobytes(),
    )
    array[...] = 0
    assert kept["x"] is not array
    nested = again({(1, 2): [array, np.float32(0.1)]}, {})
    assert nested[1, 2][0].dtype == array.dtype
    assert nested[1, 2][1] == np.float32(0.1)
    assert type(nested[1, 2][1]) is np.float32


def test_dicts_and_deques_are_filled_in_place() -> None:
    before: Any = defaultdict(lambda: np.zeros(2))
    found = again({(0, 1): np.ones(2)}, before)
    assert found is before
    assert found[0, 1].tolist() == [1.0, 1.0]
    assert found[5, 5].tolist() == [0.0, 0.0]  # the factory is still there
    queue: Any = deque([9], maxlen=2)
    assert again(deque([1, 2, 3]), queue) is queue
    assert queue == deque([2, 3], maxlen=2)


@pytest.mark.parametrize(
    "value", [object(), lambda: 0, np.random.default_rng(0), np.array(["a"]), [object()], {1: int}]
)
def test_what_cannot_be_saved_is_named(value: Any) -> None:
    with pytest.raises(AgentError) as caught:
        to_arrays({"good": 1, "table": value, "other": object()}, "agent 'mine'")
    for words in ("agent 'mine' cannot be saved: other is of type", "table", "not_saved"):
        assert words in str(caught.value)
    assert "good" not in str(caught.value)


@pytest.mark.parametrize(
    ("before", "value"),
    [
        (np.zeros(3), np.zeros(3, dtype=np.float32)),
        (np.zeros(3), np.zeros((3, 1))),
        (np.zeros(3), [0.0] * 3),
        (1, "1"),
        ({}, []),
        ([], ()),
        (deque(), {}),
    ],
)
def test_a_value_of_another_kind_is_refused(before: Any, value: Any) -> None:
    with pytest.raises(ModelError, match="attribute 'x' was saved as"):
        again(value, before)


@pytest.mark.parametrize(
    "text", [b"{", b'{"x": ["array", "y"]}', b'{"x": ["evil", 1]}', b"[]", b"\xff"]
)
def test_a_text_that_makes_no_sense_is_refused(text: bytes) -> None:
    with pytest.raises(ModelError, match="inconsistent saved attributes"):
        update_from_arrays({}, {TEXT: np.frombuffer(text, dtype=np.uint8)})


class Counting(qrmax.Agent):
    """Counts visits in a dict, and keeps an attribute that need not be saved."""

    not_saved = ("rule",)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.visits: dict[tuple[int, int], int] = {}
        self.rule = lambda s: s % 2

    def act(self, s: int, q: int) -> int:
        return int(self.visits.get((s, q), 0) + self.rng.random() * 2) % 2

    def update(self, s: int, q: int, a: int, step: Any) -> None:  # noqa: ARG002
        self.visits[s, q] = self.visits.get((s, q), 0) + 1

    def policy(self) -> Any:
        return np.zeros(self.sizes[:2], dtype=int)


class Unsavable(Counting):
    """Forgets to say so."""

    not_saved = ()


def test_an_agent_is_saved_and_resumed_without_a_word_about_it(tmp_path: Path) -> None:
    told: dict[str, Any] = {"stop": "budget", "evaluate_every": 50}
    whole = qrmax.train(Counting, corridor(), max_steps=250, **told)
    qrmax.train(Counting, corridor(), max_steps=120, **told).save(tmp_path / "x.run")
    resumed = qrmax.load(tmp_path / "x.run").resume(250)
    assert resumed.agent.visits == whole.agent.visits
    assert_same_run(resumed, whole)


def test_an_agent_that_cannot_be_saved_says_why_and_writes_nothing(tmp_path: Path) -> None:
    run = qrmax.train(Unsavable, corridor(), max_steps=50, stop="budget")
    with pytest.raises(AgentError, match="'unsavable' cannot be saved: rule is of type"):
        run.save(tmp_path / "x.run")
    assert not list(tmp_path.iterdir())
