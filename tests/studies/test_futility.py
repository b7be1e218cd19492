"""Cells that are given up: which runs there are, whatever the workers and interruptions."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import qrmax
from command_line import run
from qrmax.errors import StudyError
from qrmax.report.study_tables import make_study_table
from qrmax.studies.futility import Futility
from qrmax.studies.results import status
from qrmax.studies.store import Store
from qrmax.studies.study import Study
from qrmax.studies.sweep import Begun, Finished, GivenUp
from small_studies import assert_same_results
from tiny_study import agents, parsed, write_tiny

# one learner that cannot get there in 300 steps, one that always does, and one that may
TEXT = (
    agents(
        '{ agent = "qrmax", t_env = 200 }, { agent = "qrmax-rm", t_env = 2 },'
        ' { agent = "q-learning", q0 = 0.0 }'
    )
    .replace("seeds = 2", "seeds = 5\ngive_up_after = 2")
    .replace("600", "300")
)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study, swept with one worker."""
    folder = tmp_path_factory.mktemp("futile")
    qrmax.sweep(write_tiny(folder, TEXT), workers=1, folder=folder / "results", progress=False)
    return folder


def seeds_run(folder: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in qrmax.results(folder / "results").iter_rows(named=True):
        found.setdefault(row["label"], []).append(row["seed"])
    return found


def test_a_cell_whose_first_seeds_all_hit_the_budget_has_no_others(swept: Path) -> None:
    ran = seeds_run(swept)
    assert ran["qrmax"] == [0, 1]
    assert ran["qrmax-rm"] == [0, 1, 2, 3, 4]


def test_it_is_the_same_with_any_number_of_workers(swept: Path, tmp_path: Path) -> None:
    events: list[Any] = []
    path = write_tiny(tmp_path, TEXT)
    options: dict[str, Any] = {"folder": tmp_path / "results", "progress": False}
    summary = qrmax.sweep(path, workers=3, on_event=events.append, **options)
    assert_same_results(tmp_path / "results", swept / "results")
    given_up = [event for event in events if isinstance(event, GivenUp)]
    assert GivenUp("office/row/fetch", "qrmax", 3) in given_up
    assert summary.given_up == sum(event.runs for event in given_up)
    assert summary.done + summary.given_up == 15
    assert summary.left == summary.failed == 0
    for event in given_up:  # only once it is known
        done = [e.run.cell.label for e in events[: events.index(event)] if isinstance(e, Finished)]
        assert done.count(event.label) == 2


@pytest.mark.parametrize("missing", [0, 1], ids=["a later sweep", "one of the first is gone"])
def test_a_sweep_that_is_resumed_gives_up_the_same(
    missing: int, swept: Path, tmp_path: Path
) -> None:
    shutil.copytree(swept, tmp_path, dirs_exist_ok=True)
    runs = [*qrmax.load_study(tmp_path / "tiny.toml").runs()]
    for each in runs[:missing]:
        shutil.rmtree(tmp_path / "results/runs" / each.id)
    events: list[Any] = []
    summary = qrmax.sweep(
        tmp_path / "tiny.toml", workers=2, folder=tmp_path / "results", on_event=events.append
    )
    assert summary.given_up >= 3
    assert isinstance(events[0], Begun)
    assert sum(isinstance(event, Finished) for event in events) == missing
    assert_same_results(tmp_path / "results", swept / "results")


def test_it_makes_no_difference_to_the_ids_of_runs(tmp_path: Path) -> None:
    study = parsed(write_tiny(tmp_path, TEXT).parent, TEXT)
    assert study.give_up_after == 2
    plain = parsed(tmp_path, TEXT.replace("give_up_after = 2", ""))
    assert plain.give_up_after is None
    assert [each.id for each in study.runs()] == [each.id for each in plain.runs()]
    assert Study.of(study.as_data()) == study
    assert "give_up_after" not in plain.as_data()


def test_a_failed_run_decides_nothing(tmp_path: Path) -> None:
    """The others wait until it has been run."""
    study = qrmax.load_study(write_tiny(tmp_path, TEXT)).only(agent=["qrmax"])
    broken = tuple(replace(cell, settings={**cell.settings, "t_env": -1}) for cell in study.cells)
    options: dict[str, Any] = {"workers": 1, "folder": tmp_path / "results", "progress": False}
    summary = qrmax.sweep(study.changed(cells=broken), **options)
    assert summary[1:] == (0, 2, 3, 0)


def test_one_success_among_the_first_is_enough_to_run_the_rest(tmp_path: Path) -> None:
    study = parsed(write_tiny(tmp_path, TEXT).parent, TEXT).only(agent=["qrmax"])
    first, second, third, *_ = study.runs()
    futility = Futility(study)
    assert [futility.verdict(each) for each in (first, second, third)] == ["run", "run", "wait"]
    futility.note(first, {"reached": False})
    assert futility.verdict(third) == "wait"
    futility.note(second, {"reached": True, "steps": 100})
    assert futility.verdict(third) == "run"
    futility.note(second, {"reached": False})
    assert futility.verdict(third) == "leave out"


@pytest.mark.parametrize("count", [None, 5, 9])
def test_without_it_or_with_too_few_seeds_all_are_run(count: int | None, tmp_path: Path) -> None:
    study = parsed(write_tiny(tmp_path, TEXT).parent, TEXT).changed(give_up_after=count)
    futility = Futility(study)
    for each in study.runs():
        futility.note(each, {"reached": False})
        assert futility.verdict(each) == "run"


def test_runs_that_are_stopped_by_their_budget_alone_are_not_given_up(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    text = TEXT + '[protocols.long]\nstop = "budget"\n'
    study = parsed(tmp_path, text.replace("give_up_after = 2", ""), "long").changed(give_up_after=2)
    futility = Futility(study)
    for each in study.runs():
        futility.note(each, {"reached": False})
        assert futility.verdict(each) == "run"
    with pytest.raises(StudyError, match="give_up_after: contradicts the stopping rule 'budget'"):
        parsed(tmp_path, text, "long")
    with pytest.raises(StudyError, match="give_up_after is 0"):
        parsed(tmp_path, TEXT.replace("give_up_after = 2", "give_up_after = 0"))


def test_seeds_that_agree_are_enough_as_well(tmp_path: Path) -> None:
    study = parsed(write_tiny(tmp_path, TEXT).parent, TEXT).only(agent=["qrmax-rm"])
    first, second, third, *_ = study.runs()
    for within, steps, verdict, why in (
        (0.2, (120, 100), "leave out", "agreed"),
        (0.2, (121, 100), "run", None),
        (0.2, (None, 100), "run", None),
        (0.2, (None, None), "leave out", "futile"),
        (None, (100, 100), "run", None),
    ):
        futility = Futility(study.changed(agree_within=within))
        for each, taken in zip((first, second), steps, strict=True):
            reached = taken is not None
            futility.note(each, {"reached": reached, "steps": 300 if taken is None else taken})
            if each is first:
                waits = within is not None or not reached
                assert futility.verdict(third) == ("wait" if waits else "run")
        assert (futility.verdict(third), futility.decision(third)) == (verdict, why)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT.replace("give_up_after = 2", "agree_within = 0.5"), "needs give_up_after"),
        (TEXT + "agree_within = 0.0\n", "agree_within is 0"),
        (TEXT + "agree_within = 0.5\nmax_episodes = 10\n", "max_episodes counts episodes"),
        (TEXT + "agree_within = true\n", "is True; needed: a number"),
    ],
)
def test_agreement_that_cannot_be_told_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(StudyError, match=expected):
        parsed(write_tiny(tmp_path, text).parent, text)


def test_a_sweep_and_its_table_leave_out_seeds_that_agree(tmp_path: Path) -> None:
    text = TEXT.replace("give_up_after = 2", "give_up_after = 2\nagree_within = 1.0")
    study = parsed(write_tiny(tmp_path, text).parent, text).only(agent=["qrmax-rm"])
    assert Study.of(study.as_data()) == study
    events: list[Any] = []
    options: dict[str, Any] = {"folder": tmp_path / "results", "progress": False}
    summary = qrmax.sweep(study, workers=2, on_event=events.append, **options)
    assert [event for event in events if isinstance(event, GivenUp)] == [
        GivenUp("office/row/fetch", "qrmax-rm", 3, "agreed")
    ]
    assert (summary.done, summary.left, summary.given_up) == (2, 0, 3)
    page = make_study_table(study, tmp_path / "results").markdown()
    assert "; n = 2 |" in page
    assert "agree_within = 1: nor are they if all of these meet the rule" in page
    assert "not run" not in page.partition("|")[2]
    shown = run("status", "results", cwd=tmp_path).stdout
    assert "hit their budget, or agree (give_up_after = 2, agree_within = 1)" in " ".join(
        shown.split()
    )


def test_status_plan_and_table_say_what_was_not_run(swept: Path) -> None:
    study = Store(swept / "results").study()
    found = status(swept / "results")
    counts = {cell.label: (cell.done, cell.left, cell.given_up) for cell in found.cells}
    assert counts["qrmax"] == (2, 0, 3)
    assert counts["qrmax-rm"] == (5, 0, 0)
    shown = run("status", "results", cwd=swept).stdout
    assert " 2* " in shown
    assert "not run: the first 2 seeds there hit their budget (give_up_after = 2)" in shown
    planned = run("plan", "tiny.toml", "-o", "results", "--workers", "1", cwd=swept).stdout
    assert "nothing left to run" in planned
    assert "2 seeds of an agent on a problem, if none of them meets the rule" in planned
    page = make_study_table(study, swept / "results").markdown()
    assert ">= 300 (2 of 2); 3 not run" in page
    assert "if the first 2 seeds of a cell all hit the budget, the rest are not run" in page
    again = run("sweep", "tiny.toml", "-o", "results", "--workers", "1", "--quiet", cwd=swept)
    assert "not run (give_up_after = 2)" in again.stdout


def test_the_papers_long_tables_give_up_after_three_seeds() -> None:
    for name in ("paper/table1", "paper/table6"):
        assert qrmax.load_study(name).give_up_after == 3
        assert qrmax.load_study(name).agree_within is None
        assert qrmax.load_study(name, "as-published").agree_within == 0.2
    for protocol, count in (("exact", None), ("as-described", 3)):
        assert qrmax.load_study("smoke", protocol).give_up_after == count
