"""Runs of other tools beside a study's own: `[[others]]`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import qrmax
from qrmax.errors import StudyError
from qrmax.report.curve_plot import draw_curves, learning_curves
from qrmax.report.study_table import study_table
from qrmax.studies.other_runs import first_reached
from qrmax.studies.study import Study
from tiny_study import GOOD, parsed, write_tiny

STOP = 'stop = { rule = "reaches", success = 0.5, in_a_row = 2 }\n'
OTHERS = """
[[others]]
label = "PPO"
problem = "office/row/fetch"
files = "ppo/*.monitor.csv"
tool = "SB3"
"""


def write_monitor(folder: Path, seed: int, first_success: int) -> None:
    """A monitor file of twelve episodes with 50 steps each."""
    (folder / "ppo").mkdir(exist_ok=True)
    rows = [f"{n / 10},50,{n},{n >= first_success}" for n in range(12)]
    text = "\n".join(['#{"t_start": 0.0, "env_id": "x"}', "r,l,t,is_success", *rows]) + "\n"
    (folder / "ppo" / f"{seed}.monitor.csv").write_text(text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("others")
    write_tiny(folder)
    for seed, first in enumerate((6, 8)):
        write_monitor(folder, seed, first)
    (folder / "words.csv").write_text("step,success\n3,often\n")
    return folder


@pytest.fixture(scope="module")
def study(folder: Path) -> Study:
    return parsed(folder, GOOD + STOP + OTHERS)


@pytest.fixture(scope="module")
def swept(study: Study, folder: Path) -> Path:
    qrmax.sweep(study, folder=folder / "out", workers=1, progress=False)
    return folder / "out"


def test_they_are_part_of_the_study_but_of_no_run_id(folder: Path, study: Study) -> None:
    [others] = study.others
    assert (others.marked, others.problem) == ("PPO (SB3)", "office/row/fetch")
    assert [run.path for run in others.runs] == ["ppo/0.monitor.csv", "ppo/1.monitor.csv"]
    assert [point.step for point in others.runs[0].curve] == [100, 200, 300, 400, 500, 600]
    assert Study.of(json.loads(json.dumps(study.as_data()))) == study
    alone = parsed(folder, GOOD + STOP)
    assert [run.id for run in alone.runs()] == [run.id for run in study.runs()]


def test_they_stand_in_the_table_marked_by_their_tool(study: Study, swept: Path) -> None:
    assert [first_reached(run, study.training) for run in study.others[0].runs] == [400, 500]
    lines = study_table(study, swept).markdown().splitlines()
    [line] = [line for line in lines if "PPO (SB3)" in line]
    assert (
        "| 2 | — | 1 [1 to 1] | 1.05 [1.05 to 1.05] | 2 of 2, after 450 [400 to 500] steps |"
        in line
    )


def test_they_stand_in_the_curves(study: Study, swept: Path) -> None:
    found = qrmax.curves(swept)
    assert found.filter(label="PPO (SB3)")["tool"].unique().to_list() == ["SB3"]
    assert found.filter(label="qrmax")["tool"].null_count() == len(found.filter(label="qrmax"))
    lines = learning_curves(study, swept)
    assert lines["office/row/fetch", "PPO (SB3)"].middle[-1] == 1.0
    assert b"PPO (SB3)" in draw_curves(study, swept)
    assert learning_curves(study, swept, "return")["office/row/fetch", "PPO (SB3)"].high[-1] > 1.0


# --- what the tools did not log

RETURNS = OTHERS.replace("PPO", "DQN").replace("ppo/*.monitor", "returns").replace("SB3", "CSV")


@pytest.fixture(scope="module")
def both(folder: Path, swept: Path) -> Study:  # noqa: ARG001 (its runs are those of `swept`)
    """A study with a tool that logged returns alone."""
    (folder / "returns.csv").write_text("seed,step,return\n0,100,0.5\n0,200,1.5\n1,100,0.5\n")
    return parsed(folder, GOOD + STOP + OTHERS + RETURNS)


def test_the_column_of_the_threshold_is_there_if_no_run_has_reached_it(
    folder: Path, tmp_path: Path
) -> None:
    study = parsed(folder, GOOD + STOP.replace("0.5", "1.0").replace("= 2", "= 6") + OTHERS)
    qrmax.sweep(study, folder=tmp_path, workers=1, progress=False, only={"seed": 0})
    page = study_table(study, tmp_path).markdown()
    assert "| return [95 %] | threshold reached |" in page
    assert "| PPO (SB3) | 2 | — | 1 [1 to 1] | 1.05 [1.05 to 1.05] | 0 of 2 |" in page
    budget = parsed(folder, GOOD + 'stop = "budget"\n' + OTHERS)
    qrmax.sweep(budget, folder=tmp_path, workers=1, progress=False, only={"seed": 0})
    assert "threshold reached" not in study_table(budget, tmp_path).markdown()


def test_a_page_says_which_tools_logged_no_success(both: Study, swept: Path) -> None:
    page = study_table(both, swept).markdown()
    assert "| DQN (CSV) | 2 | — | — | 1 [0.5 to 1.5] | — |" in page
    assert page.count("No success rate was logged by DQN (CSV) on row fetch.") == 1
    assert "No return was logged" not in page
    table = page.index("| DQN (CSV) |")
    assert table < page.index("No success rate was logged") < page.index("## Spread")


def test_a_rule_that_cannot_be_judged_for_a_tool_gives_no_count(
    folder: Path, tmp_path: Path
) -> None:
    study = parsed(folder, GOOD + 'stop = "exact"\n' + OTHERS)
    qrmax.sweep(study, folder=tmp_path, workers=1, progress=False)
    [line] = [x for x in study_table(study, tmp_path).markdown().splitlines() if "(SB3)" in x]
    assert line.endswith("| 1.05 [1.05 to 1.05] | — |")


def test_the_csv_has_the_final_policies_of_all(both: Study, swept: Path) -> None:
    rows = [*csv.DictReader(study_table(both, swept).csv().splitlines())]
    ours, ppo, dqn = rows
    assert [row["label"] for row in rows] == ["qrmax", "PPO (SB3)", "DQN (CSV)"]
    assert (ours["n"], ours["success"], ours["reached"]) == ("2", "0.0", "0")
    assert (ppo["n"], ppo["success"], ppo["reached"]) == ("2", "1.0", "2")
    assert (ppo["mean"], ppo["censored"], ppo["median"]) == ("450.0", "0", "")
    assert (dqn["success"], dqn["reached"], dqn["mean"], dqn["censored"]) == ("", "", "", "")
    assert (dqn["episode_return"], dqn["episode_return_high"]) == ("1.0", "1.5")


def test_a_picture_warns_of_tools_that_it_leaves_out(both: Study, swept: Path) -> None:
    with pytest.warns(qrmax.QRMaxWarning, match=r"DQN \(CSV\): no line .* logged no success"):
        assert b"DQN" not in draw_curves(both, swept)
    assert b"DQN (CSV)" in draw_curves(both, swept, measure="return")


# --- what is wrong


def test_a_wrong_problem_does_not_hide_a_missing_file(folder: Path) -> None:
    text = OTHERS.replace("fetch", "fetsch").replace("ppo/", "dqn/")
    with pytest.raises(StudyError, match="there is no such file") as caught:
        parsed(folder, GOOD + text)
    assert "others[0].problem: unknown problem" in str(caught.value)


BAD = {
    "another problem": (OTHERS.replace("fetch", "fetsch"), "others[0].problem", "did you mean"),
    "no file": (OTHERS.replace("ppo/", "dqn/"), "others[0]", "there is no such file"),
    "no label": (OTHERS.replace('label = "PPO"', ""), "others[0].label", "is missing"),
    "an unknown key": (OTHERS + "seed = 3\n", "others[0].seed", "unknown key 'seed'"),
    "twice": (OTHERS + OTHERS, "others[1]", "there are two 'PPO (SB3)'"),
    "words": (OTHERS.replace("ppo/*.monitor", "words"), "others[0]", "success is 'often'"),
    "a number": (OTHERS.replace('"ppo/*.monitor.csv"', "3"), "others[0]", "files is 3"),
    "no tables": ("others = [3]\n", "others[0]", "is 3; needed: a table"),
}


@pytest.mark.parametrize(("text", "place", "words"), BAD.values(), ids=list(BAD))
def test_a_mistake_is_told_with_its_place(folder: Path, text: str, place: str, words: str) -> None:
    with pytest.raises(StudyError) as caught:
        parsed(folder, GOOD + text)
    assert str(caught.value).startswith(f"{folder / 'tiny.toml'}, {place}: ")
    assert words in str(caught.value)
