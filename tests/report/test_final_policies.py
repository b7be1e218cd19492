"""The last policies on the page of a study."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import qrmax
from command_line import run_at_a_terminal
from qrmax.report.study_table import study_table
from qrmax.report.tables import Layout, Table, make_table

RIVER, OFFICE = "river-swim/patrol", "office/map0/exp0"
CLIFF = {
    "env": "CliffWalking-v1",
    "task": "F goal",
    "labels": {"47": ["goal"]},
    "label": "cliff",
}


def swept(folder: Path, *problems: object, **keys: object) -> Table:
    """The table of a small study."""
    given = {"agents": ["qrmax", "q-learning"], "seeds": 2, "max_steps": 400, **keys}
    study = qrmax.Study(problems, evaluate_every=100, **given)  # type: ignore[arg-type]
    qrmax.sweep(study, folder=folder, workers=1, progress=False)
    return study_table(study, folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("budget")


@pytest.fixture(scope="module")
def budget(folder: Path) -> Table:
    """A study whose runs are stopped by their budget alone."""
    return swept(folder, RIVER, OFFICE, stop="budget")


def test_there_are_no_steps_if_no_rule_can_be_met(budget: Table) -> None:
    page = budget.markdown()
    for word in (">=", "∞", "## Spread", "## Probability", "Steps are", "met the stopping rule"):
        assert word not in page
    assert "training is stopped by its budget alone, 2 runs each." in page
    assert "| problem | learner | n | gap [95 %] | success [95 %] |\n" in page
    assert "evaluated exactly on tabular problems: means" in page
    assert "The gap is that to the optimum" in page
    latex = budget.latex()
    assert r"\textbf{gap {[}95 \%]}" in latex
    assert r"\geq" not in latex
    [first, *_] = csv.DictReader(budget.csv().splitlines())
    assert 0.0 <= float(first["gap_low"]) <= float(first["gap"]) <= float(first["gap_high"])


def test_a_task_without_success_states_has_no_success_rate(budget: Table, folder: Path) -> None:
    page = budget.markdown()
    [line] = [x for x in page.splitlines() if x.startswith("| river-swim patrol | qrmax |")]
    assert line.endswith("| — |")
    [line] = [x for x in page.splitlines() if x.startswith("| office map0 exp0 | qrmax |")]
    assert not line.endswith("| — |")
    assert "No success rate on river-swim patrol: the task has no success state." in page
    success = qrmax.results(folder).filter(problem=RIVER)["success"]
    assert success.null_count() == len(success) == 4
    shown = run_at_a_terminal("results", str(folder))
    assert "—: the task has no success state." in " ".join(shown.split())
    assert "0.0 %  " not in shown.split("office")[0]


def test_the_page_says_how_each_kind_of_problem_is_evaluated(tmp_path: Path) -> None:
    page = swept(tmp_path, CLIFF, OFFICE, agents=["qrmax"], seeds=1).markdown()
    assert "by 100 rollouts on environments, exactly on tabular problems: means" in page
    assert "## Spread" in page


def test_steps_to_the_threshold_have_lower_ends_that_are_lowered() -> None:
    import polars

    rows = {"seed": [0, 1, 2], "steps": [3000] * 3, "reached": [True] * 3}
    same = {"problem": "a", "label": "qrmax", "status": "done", "max_steps": 9000}
    same |= {"evaluate_every": 1000, "version": None, "commit": None}
    frame = polars.DataFrame(rows).with_columns(**{k: polars.lit(v) for k, v in same.items()})
    layout = Layout(
        title="", problems=("a",), labels=("qrmax",), shows_final=True, thresholds=("a",)
    )
    page = make_table(frame, layout).markdown()
    assert "| 3 of 3, after 3,000 [2,000 to 3,000] steps |" in page
