"""Evaluations that become rarer: the same for a run that is interrupted, and never far apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import qrmax
from qrmax.errors import ParameterError
from qrmax.training.check_schedule import check_before, is_check, next_check
from qrmax.training.trainer import Evaluated, Event
from small_problems import errand


@given(every=st.integers(1, 9), dense=st.none() | st.integers(1, 20), at=st.integers(0, 900))
def test_the_next_check_and_the_one_before_are_neighbours(
    every: int, dense: int | None, at: int
) -> None:
    following = next_check(at, every, dense)
    assert following > at
    assert is_check(following, every, dense)
    assert not any(is_check(step, every, dense) for step in range(at + 1, following))
    before = check_before(following, every, dense)
    assert before <= at
    assert before == 0 or is_check(before, every, dense)
    assert following - before <= max(every, 2 * following / (dense or following))


def test_a_run_that_is_interrupted_has_the_same_checks(tmp_path: Path) -> None:
    events: list[Event] = []
    told = {"stop": "budget", "evaluate_every": 10, "dense_checks": 4, "progress": False}
    whole = qrmax.train("qrmax", errand(), max_steps=200, on_event=events.append, **told)
    assert [row.step for row in whole.curve] == [10, 20, 30, 40, 60, 80, 120, 160]
    assert [event.step for event in events if isinstance(event, Evaluated)] == [
        row.step for row in whole.curve
    ]
    part = qrmax.train("qrmax", errand(), max_steps=93, **told)
    part.save(tmp_path / "run")
    again = qrmax.load(tmp_path / "run")
    again.resume(max_steps=200)
    assert again.curve == whole.curve


def test_a_schedule_needs_a_number_of_evaluations() -> None:
    with pytest.raises(ParameterError, match="dense_checks is 0; allowed"):
        qrmax.train("qrmax", errand(), max_steps=20, dense_checks=0)
