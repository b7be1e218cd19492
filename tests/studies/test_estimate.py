"""How long the rest of a study takes: by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from qrmax.studies.estimate import Pace, estimate, kind_of
from qrmax.studies.store import Store
from qrmax.studies.study import RunSpec, Study
from tiny_study import agents, parsed, write_tiny


@pytest.fixture
def study(tmp_path: Path) -> Study:
    write_tiny(tmp_path)
    return parsed(tmp_path, agents('"qrmax", "rmax"').replace("seeds = 2", "seeds = 4"))


def runs(study: Study, label: str) -> list[RunSpec]:
    return [run for run in study.runs() if run.cell.label == label]


def test_nothing_seen_is_nothing_known(study: Study) -> None:
    pace = Pace()
    for run in study.runs():
        pace.expect(run)
    assert pace.seconds_left(1) is None
    assert pace.mean(("x", "y")) is None
    assert not pace.knows(kind_of(runs(study, "rmax")[0]))


def test_a_run_takes_as_long_as_the_others_of_its_kind(study: Study) -> None:
    pace, (first, second, *others) = Pace(), runs(study, "qrmax")
    pace.note(first, 2.0)
    pace.note(second, 4.0)
    for run in others:
        pace.expect(run)
    assert pace.mean(kind_of(first)) == 3.0
    assert pace.seconds_left(1) == 2 * 3.0
    assert pace.seconds_left(4) == 2 * 3.0 / 4


def test_a_run_of_a_kind_not_seen_takes_as_long_as_any(study: Study) -> None:
    pace, ours, theirs = Pace(), runs(study, "qrmax"), runs(study, "rmax")
    pace.note(ours[0], 1.0)
    pace.note(ours[1], 5.0)
    for run in (ours[2], *theirs):
        pace.expect(run)
    assert pace.seconds_left(1) == 5 * 3.0
    pace.note(theirs[0], 11.0)  # now it has been seen
    pace.left[kind_of(theirs[0])] -= 1
    assert pace.seconds_left(1) == 3.0 + 3 * 11.0
    assert pace.mean(("neither", "nor")) == (1.0 + 5.0 + 11.0) / 3


def test_looking_at_a_kind_does_not_make_it_known(study: Study) -> None:
    pace, kind = Pace(), kind_of(runs(study, "rmax")[0])
    assert pace.mean(kind) is None
    assert not pace.knows(kind)
    assert pace.seconds_left(1) is None


def test_an_estimate_is_of_what_is_left_by_what_is_done(study: Study, tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    with store.lock():
        for run, seconds in zip(study.runs(), (3.0, 10.0, 5.0, 20.0), strict=False):
            timing = {"learning": 0.0, "total": seconds}
            origin = {"qrmax": "0", "commit": None}
            store.write_outcome(run, {}, b"curve", timing=timing, origin=origin)
    found = estimate(study, store, workers=2)
    assert found.seconds == (2 * 4.0 + 2 * 15.0) / 2  # two of each kind are left
    assert not found.at_most
    assert found.largest.label == "rmax"  # a table of all pairs of states
    assert found.worker_bytes > 10e6 > found.table_bytes > 0


def test_an_estimate_without_any_run_is_at_most_the_budget(study: Study, tmp_path: Path) -> None:
    found = estimate(study.only(agent=["qrmax"]), Store(tmp_path / "nothing"), workers=1)
    assert found.at_most
    assert 0.0 < found.seconds < 60.0
