"""Tables of medians, and of learners relative to one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import qrmax
from qrmax.errors import ParameterError
from qrmax.report.median_table import median_table, relative_table
from qrmax.report.study_table import study_layout
from qrmax.report.study_tables import make_study_table
from qrmax.report.tables import Layout, Table, make_table
from qrmax.studies.group_statistics import summarize_group
from qrmax.studies.ratio_statistics import compare
from qrmax.studies.statistics import Steps, summarize

MAP1, MAP2, BUDGET = "office/map1/exp1", "office/map2/exp1", 2_000_000

Rows = list[dict[str, Any]]


def runs(label: str, steps: tuple[int | None, ...], problem: str = MAP1) -> Rows:
    """Runs with seeds from 0 on; None for one that hit its budget."""
    same = {"problem": problem, "label": label, "status": "done", "max_steps": BUDGET}
    same |= {"version": "0.1.0", "commit": None}
    return [
        {**same, "seed": seed, "reached": s is not None, "steps": s or BUDGET}
        for seed, s in enumerate(steps)
    ]


def table(rows: Rows, **layout: Any) -> Table:
    names = {
        "problems": tuple(dict.fromkeys(row["problem"] for row in rows)),
        "labels": tuple(dict.fromkeys(row["label"] for row in rows)),
    }
    made = Layout(title="Steps", **names, **layout)
    return make_table(pl.DataFrame(rows, infer_schema_length=None), made)


SLOW, FAST = (4000, 8000, 6000, 2000), (100, 300, 200, None)


def test_a_cell_is_the_median_with_quartiles_and_what_hit_the_budget() -> None:
    rows = runs("slow", SLOW) + runs("fast", FAST)
    shown = median_table(table(rows, information={"slow": "q observed"}).findings)
    assert shown.rows[0] == (
        "map1 exp1",
        "5,000 [2,000 to 6,000]",
        "250 [100 to 300]; 1 of 4 at budget",
    )
    assert shown.rows[-1] == ("at budget", "0 of 4", "1 of 4")
    fast = next(record for record in shown.records if record["label"] == "fast")
    assert (fast["median"], fast["most"], fast["censored"]) == (250.0, np.inf, 1)
    assert "Information on the task: q observed: slow." in shown.markdown()


def test_a_median_at_the_budget_is_a_bound() -> None:
    shown = median_table(table(runs("fast", (100, None, None))).findings)
    assert shown.rows[0][1] == ">= 2,000,000 [100 to >= 2,000,000]; 2 of 3 at budget"


def test_speedups_are_geometric_means_of_ratios_of_medians() -> None:
    rows = runs("slow", (800,) * 3) + runs("fast", (100,) * 3)
    rows += runs("slow", (400,) * 3, MAP2) + runs("fast", (200,) * 3, MAP2)
    shown = relative_table(table(rows).findings, "slow")
    assert shown.rows == (("fast", "4.00 [4.00 to 4.00]", "1.00 [1.00 to 1.00]"),)
    both = relative_table(table(rows).findings, "fast")
    assert both.rows[0][1] == "0.25 [0.25 to 0.25]"


def test_what_hit_the_budget_makes_a_speedup_a_bound_and_is_counted() -> None:
    rows = runs("slow", (None, None)) + runs("fast", (1000, 1000))
    rows += runs("slow", (1000,) * 2, MAP2) + runs("fast", (1000,) * 2, MAP2)
    lower = relative_table(table(rows).findings, "slow").rows[0][1]
    assert lower.startswith(">= 44.72 [")
    assert lower.endswith("at budget 1 and 0 of 2 problems")
    assert relative_table(table(rows).findings, "fast").rows[0][1].startswith("<= 0.02 [")


def test_problems_are_resampled_if_there_is_one_run_on_each() -> None:
    ours = [Steps((100,), 0, 1000), Steps((100,), 0, 1000)]
    theirs = [Steps((100,), 0, 1000), Steps((400,), 0, 1000)]
    alone = compare(ours, theirs)
    assert alone.over_problems
    assert alone.speedup == pytest.approx((2.0, 1.0, 4.0))
    assert alone.improvement == pytest.approx((0.75, 0.5, 1.0))
    twice = compare([Steps((100, 100), 0, 1000)] * 2, [Steps((100, 400), 0, 1000)] * 2)
    assert not twice.over_problems
    assert twice.speedup.low < twice.speedup.value < twice.speedup.high


def test_an_unknown_learner_to_compare_with_is_refused() -> None:
    with pytest.raises(ParameterError, match="relative_to is 'other'; allowed: 'slow'"):
        relative_table(table(runs("slow", SLOW)).findings, "other")


def test_lower_ends_are_those_of_the_evaluations_before() -> None:
    """Checks every 100 steps up to 1,000, then every 200, every 400, ..."""
    steps = Steps((500, 500, 4000, 4000), 0, 10_000, resolution=100, dense=10)
    assert steps.earliest().tolist() == [400.0, 400.0, 3600.0, 3600.0]
    found = summarize(steps)
    assert found.median.low == found.iqm.low == 400.0
    assert found.mean_interval is not None
    assert found.mean_interval.low == 400.0
    group = summarize_group([Steps((4000, 4000), 0, 10_000, resolution=100, dense=10)])
    assert group.interval == (3600.0, 4000.0)


def test_the_study_of_samples_says_who_is_told_what() -> None:
    study = qrmax.load_study("samples/office")
    assert len(study.problems) == 17
    assert study.training["dense_checks"] == 80
    information = study_layout(study).information
    assert information["qr-eb-rm"] == information["psrl-rm"] == "machine known"
    assert information["qr-eb, labels"] == "q and labels observed"
    assert information["qr-eb"] == information["qrmax"] == "q observed"


def test_problems_of_a_generator_are_named_by_a_range_of_seeds() -> None:
    study = qrmax.Study(problems=["random-mdp/3-5"], agents=["qr-ucb"], seeds=1)
    assert study.problems == ("random-mdp/3", "random-mdp/4", "random-mdp/5")
    with pytest.raises(qrmax.errors.StudyError, match="'random-mdp/5-3' has 0 seeds"):
        qrmax.Study(problems=["random-mdp/5-3"], agents=["qr-ucb"], seeds=1)


def test_medians_are_the_default_for_steps_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    from qrmax.report import study_tables

    shown = table(runs("slow", SLOW))
    monkeypatch.setattr(study_tables, "study_table", lambda *_: shown)
    study = qrmax.load_study("samples/sensitivity")
    assert make_study_table(study, "").markdown().startswith("# Steps: medians")
    assert make_study_table(study, "", "steps") is shown
    with pytest.raises(ParameterError, match="by is 'map'"):
        make_study_table(study, "", "median", by="map")
    with pytest.raises(ParameterError, match="relative_to is for the measures 'median'"):
        make_study_table(study, "", "steps", relative_to="slow")
