"""Tables: what cells say, that budgets are never averaged, and the three forms."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from typing import Any

import polars as pl
import pytest

from qrmax.errors import ParameterError
from qrmax.report.layout import Place
from qrmax.report.tables import Layout, Table, make_table

BUDGET = 2_000_000
MAP1, MAP2 = "office/map1/exp1", "office/map2/exp1"

Rows = list[dict[str, Any]]


def runs(
    label: str = "rmax", steps: tuple[int | None, ...] = (), problem: str = MAP1, **other: Any
) -> Rows:
    """Runs with seeds from 0 on; None for one that hit its budget."""
    common = {
        "problem": problem,
        "agent": "rmax",
        "label": label,
        "status": "done",
        "max_steps": BUDGET,
        "version": "0.1.0",
        "commit": "abc1234",
    }
    return [
        {**common, "seed": seed, "reached": s is not None, "steps": s or BUDGET, **other}
        for seed, s in enumerate(steps)
    ]


def failed(seed: int, label: str = "rmax", problem: str = MAP1) -> Rows:
    run = runs(label, (None,), problem)[0]
    return [{**run, "seed": seed, "status": "failed", "reached": None, "steps": None}]


def table(rows: Rows, **layout: Any) -> Table:
    """Of all problems and labels in the rows, unless said otherwise."""
    known = {
        "title": "Steps",
        "problems": tuple(dict.fromkeys(row["problem"] for row in rows)),
        "labels": tuple(dict.fromkeys(row["label"] for row in rows)),
    }
    return make_table(pl.DataFrame(rows, infer_schema_length=None), Layout(**(known | layout)))


def grid(page: str, number: int = 0) -> list[list[str]]:
    """The cells of one of the tables of a page, without the line below the head."""
    found = re.findall(r"(?:^\|.*\|\n)+", page, flags=re.MULTILINE)[number]
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in found.splitlines()]
    return [[cell.strip() for cell in line] for line in lines[:1] + lines[2:]]


def cell(rows: Rows) -> str:
    """What the table says of the first learner on the first problem."""
    return grid(table(rows).markdown())[1][1]


def as_frame(made: Table) -> pl.DataFrame:
    return pl.read_csv(io.StringIO(made.csv()))


FULL: dict[str, Any] = {
    "about": "Slips in training.",
    "command": "qrmax study run mine",
    "seeds": (0, 1, 2),
    "reference": {(MAP1, "rmax"): 1000.0, (MAP2, "rmax"): 1000.0, (MAP1, "qrmax"): 2000.0},
    "optimum": {MAP1: (21.1, 0.6687)},
    "optimum_reference": {MAP1: (21.08, 0.6676), MAP2: (52.46, 0.5469)},
    "compare": True,
}
EVERYTHING = [
    *runs("rmax", (1030, 1040, 1050)),
    *runs("qrmax", (500, None, 700)),
    *runs("rmax", (1100, 1200, 1300), MAP2),
    *runs("qrmax", (None, None, None), MAP2),
]


# --- what a cell says


def test_a_cell_has_mean_and_standard_deviation() -> None:
    assert cell(runs(steps=(36_000, 38_000, 40_000))) == "38,000 ± 2,000"


def test_one_run_has_no_standard_deviation() -> None:
    assert cell(runs(steps=(36_000,))) == "36,000"


def test_runs_at_the_budget_are_counted_and_not_averaged() -> None:
    text = cell(runs(steps=(83_000, 84_000, 85_000, None, None)))
    assert text == "84,000 ± 1,000, and 2 of 5 >= 2,000,000"


def test_where_all_runs_hit_the_budget_there_is_no_mean() -> None:
    assert cell(runs(steps=(None, None, None))) == ">= 2,000,000 (3 of 3)"


def test_the_steps_of_a_run_at_the_budget_are_not_looked_at() -> None:
    rows = runs(steps=(100, None, 300))
    elsewhere = [{**row, "steps": row["steps"] if row["reached"] else 7} for row in rows]
    assert table(elsewhere).markdown() == table(rows).markdown()
    assert table(elsewhere).csv() == table(rows).csv()


def test_a_failed_run_is_not_in_the_mean_and_is_named() -> None:
    rows = [*runs(steps=(100, 200)), *failed(seed=2)]
    assert cell(rows) == "150 ± 71; n = 2 of 3"
    page = table(rows).markdown()
    assert "- map1 exp1, rmax: 1 failed\n" in page
    assert "3 runs each, or n if a cell has fewer" in page


def test_runs_that_were_given_up_are_neither_missed_nor_counted() -> None:
    rows = [*runs("rmax", (None, None, None)), *runs("qrmax", (400, None, None, 600))]
    seeds = tuple(range(5))
    made = table(rows, seeds=seeds, give_up_after=3)
    page = made.markdown()
    assert grid(page)[1][1] == f">= {BUDGET:,} (3 of 3); 2 not run"
    assert "n = 4 of 5" in grid(page)[1][2]  # it goes on: one of its first three got there
    assert "give_up_after = 3: if the first 3 seeds of a cell all hit the budget" in page
    assert "- map1 exp1, qrmax: 1 missing" in page
    assert "rmax: 2" not in page
    assert as_frame(made)["not_run"].to_list() == [2, 0]
    assert as_frame(made)["median"].to_list()[0] == float("inf")
    odds = grid(page, 2)
    assert odds[1][0] == "rmax"
    assert odds[1][2].startswith("0.25 ")  # ties with those at the budget, loses to the others
    before = table(rows, seeds=seeds).markdown()
    assert "not run" not in before
    assert "- map1 exp1, rmax: 2 missing" in before


@pytest.mark.parametrize(
    "steps", [(None, None), (None, 500, None)], ids=["not yet decided", "one has got there"]
)
def test_runs_are_missing_unless_all_of_the_first_have_hit_the_budget(steps: Any) -> None:
    page = table(runs("rmax", steps), seeds=tuple(range(5)), give_up_after=3).markdown()
    assert f"{5 - len(steps)} missing" in page
    assert "not run" not in page


def test_the_page_of_a_sampled_test_tells_how_many_runs_passed_by_accident() -> None:
    policies = [(0.01, 0.9), (0.2, 0.5), (0.9, 0.0), (None, 0.0), (0.9, 0.0)]  # gap, success
    rows = runs("rmax", (100, 200, 300, 400, None))
    rows = [{**row, "gap": g, "success": s} for row, (g, s) in zip(rows, policies, strict=True)]
    page = table(rows, tests_samples=True).markdown()
    assert "Of the 4 runs that met it, 3 have a policy" in page
    assert "2 of them one that never succeeds." in page
    assert "that met it" not in table(rows).markdown()


def test_a_run_that_others_have_is_missed() -> None:
    rows = [*runs("rmax", (100, 200, 300)), *runs("qrmax", (None, None))]
    page = table(rows).markdown()
    assert grid(page)[1] == ["map1 exp1", "200 ± 100", ">= 2,000,000 (2 of 2); n = 2 of 3"]
    assert "- map1 exp1, qrmax: 1 missing\n" in page


def test_seeds_that_no_cell_has_yet_are_missed_too() -> None:
    page = table(runs("rmax", (100, 200)), seeds=(0, 1, 2, 3)).markdown()
    assert "150 ± 71; n = 2 of 4" in page
    assert "- map1 exp1, rmax: 2 missing\n" in page


def test_a_cell_without_any_run_says_so() -> None:
    rows = [*runs("rmax", (100, 200)), *failed(0, "qrmax"), *runs("qrm", (100, 200), MAP2)]
    page = table(rows).markdown()
    assert grid(page)[1] == ["map1 exp1", "150 ± 71", "n = 0 of 2", "n = 0 of 2"]
    assert "- map1 exp1, qrmax: 1 failed, 1 missing\n" in page
    assert ["map1 exp1", "qrmax", "0", "—", "—", "—"] in grid(page, 1)


def test_nothing_is_said_of_gaps_and_budgets_where_there_are_none() -> None:
    page = table(runs(steps=(100, 200))).markdown()
    assert "Not all runs" not in page
    assert ">=" not in page
    assert "2 runs each.\n" in page


# --- the resolution of the measurement

EVERY_1000: dict[str, Any] = {"evaluate_every": 1000}


def test_a_spread_that_the_checks_cannot_resolve_is_not_shown_as_zero() -> None:
    assert cell(runs(steps=(3000, 3000, 3000), **EVERY_1000)) == "3,000 ± <1,000"
    assert cell(runs(steps=(3000, 4000, 5000), **EVERY_1000)) == "4,000 ± 1,000"
    assert cell(runs(steps=(3000, 3000, 3000), evaluate_every=1)) == "3,000 ± 0"


def test_intervals_reach_down_to_the_check_before() -> None:
    rows = runs(steps=(3000, 3000, 3000), **EVERY_1000)
    spread = grid(table(rows).markdown(), 1)
    assert spread[1][4:] == ["3,000 [2,000 to 3,000]"] * 2
    assert "{[}2,000 to 3,000]" in table(rows).latex()
    numbers = as_frame(table(rows)).row(0, named=True)
    assert (numbers["resolution"], numbers["mean"], numbers["mean_low"]) == (1000, 3000.0, 2000.0)


def test_the_table_says_how_far_apart_the_checks_were() -> None:
    rows = [*runs("rmax", (3000,), **EVERY_1000), *runs("qrm", (3000,), evaluate_every=500)]
    for text in (table(rows[:1]).markdown(), table(rows[:1]).latex()):
        assert "policies were evaluated every 1,000 steps" in text
    assert "evaluated every 500 or 1,000 steps" in table(rows).markdown()
    assert "evaluated every" not in table(runs(steps=(3000,))).markdown()


# --- the page


def test_every_line_of_a_markdown_table_has_as_many_cells() -> None:
    rows = [*EVERYTHING, *runs("a|b", (1, 2))]
    page = table(rows, **FULL).markdown()
    for number, width in enumerate((2 + 3 + 2, 6, 1 + 3)):
        found = re.findall(r"(?:^\|.*\|\n)+", page, flags=re.MULTILINE)[number]
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in found.splitlines()} == {width + 1}
    assert "a\\|b" in page


def test_the_reference_stands_below_our_numbers_and_how_far_off_they_are_below_that() -> None:
    some = "600 ± 141, and 1 of 3 >= 2,000,000"
    assert grid(table(EVERYTHING, **FULL).markdown()) == [
        ["problem", "", "rmax", "qrmax", "VI length", "VI success"],
        ["map1 exp1", "ours", "1,040 ± 10", some, "21.10", "66.87 %"],
        ["", "paper", "1,000", "2,000", "21.08", "66.76 %"],
        ["", "off by", "+4.0 %", "", "", ""],
        ["map2 exp1", "ours", "1,200 ± 100", ">= 2,000,000 (3 of 3)", "—", "—"],
        ["", "paper", "1,000", "—", "52.46", "54.69 %"],
        ["", "off by", "+20.0 %", "", "", ""],
        ["within 5 %", "", "1 of 2", "0 of 1", "", ""],
    ]


def test_without_comparison_nothing_is_said_of_distance() -> None:
    page = table(EVERYTHING, **(FULL | {"compare": False})).markdown()
    assert [row[1] for row in grid(page)] == ["", "ours", "paper", "ours", "paper"]


def test_without_a_reference_there_is_one_row_for_each_problem() -> None:
    page = table(EVERYTHING, compare=True).markdown()
    assert [row[:2] for row in grid(page)] == [
        ["problem", "rmax"],
        ["map1 exp1", "1,040 ± 10"],
        ["map2 exp1", "1,200 ± 100"],
    ]


def test_where_only_the_optimum_has_a_reference_it_is_shown_and_no_distance() -> None:
    made = table(runs(steps=(1, 2)), optimum_reference={MAP1: (21.08, 0.6676)}, compare=True)
    assert [row[1:] for row in grid(made.markdown())] == [
        ["", "rmax", "VI length", "VI success"],
        ["ours", "2 ± 1", "—", "—"],
        ["paper", "—", "21.08", "66.76 %"],
    ]


@pytest.mark.parametrize(("mean", "close"), [(950, 1), (1050, 1), (949, 0), (1051, 0)])
def test_within_five_percent_is_five_percent_of_the_reference(mean: int, close: int) -> None:
    made = table(runs(steps=(mean,)), reference={(MAP1, "rmax"): 1000.0}, compare=True)
    assert grid(made.markdown())[-1] == ["within 5 %", "", f"{close} of 1"]


def test_rows_and_columns_come_in_the_order_of_the_layout_and_no_others() -> None:
    page = table(EVERYTHING, problems=(MAP2,), labels=("qrmax", "rmax")).markdown()
    assert grid(page) == [
        ["problem", "qrmax", "rmax"],
        ["map2 exp1", ">= 2,000,000 (3 of 3)", "1,200 ± 100"],
    ]


def test_the_page_says_what_it_was_made_by() -> None:
    title, about, origin = table(EVERYTHING, **FULL).markdown().split("\n\n")[:3]
    assert (title, about) == ("# Steps", "Slips in training.")
    assert origin == (
        "Made by `qrmax study run mine` with qrmax 0.1.0 at commit abc1234; seeds 0 to 2; steps: "
        "mean ± standard deviation of runs that met the stopping rule, 3 runs each. Runs that "
        "hit their budget are not in the mean; `>=` precedes the budget."
    )


def test_several_versions_and_commits_are_all_named_and_unknown_ones_are_not() -> None:
    rows = [
        *runs("rmax", (1,)),
        *runs("qrmax", (1,), version="0.2.0", commit="def5678"),
        *runs("qrm", (1,), commit=None),
    ]
    assert "Made with qrmax 0.1.0 and 0.2.0 at commits abc1234 and def5678; steps: mean" in (
        table(rows).markdown()
    )
    assert "Made with qrmax 0.1.0; steps: mean" in table(runs(steps=(1,), commit=None)).markdown()


def test_the_spread_shows_infinity_where_runs_at_the_budget_decide() -> None:
    rows = [*runs("rmax", (100, 100, 100, 100, None)), *runs("qrm", (100, None, None, None, None))]
    spread = grid(table(rows).markdown(), 1)
    assert spread[0] == ["problem", "learner", "n", "at budget", "median [95 %]", "IQM [95 %]"]
    assert spread[1][:4] == ["map1 exp1", "rmax", "5", "1"]
    assert spread[1][5] == "100 [100 to ∞]"
    assert spread[2][4] == "∞ [100 to ∞]"


def test_the_odds_of_two_learners_add_up_to_one() -> None:
    rows = [*runs("rmax", (100, 200)), *runs("qrmax", (200, None)), *runs("qrm", (1, 2))]
    odds = grid(table(rows).markdown(), 2)
    assert odds[0] == ["", "rmax", "qrmax", "qrm"]
    assert odds[1] == ["rmax", "", "0.88 [0.50 to 1.00]", "0.00 [0.00 to 0.00]"]
    assert odds[2] == ["qrmax", "0.12 [0.00 to 0.50]", "", "0.00 [0.00 to 0.00]"]
    assert odds[3] == ["qrm", "1.00 [1.00 to 1.00]", "1.00 [1.00 to 1.00]", ""]


def test_the_odds_are_over_the_problems_that_both_have_runs_on() -> None:
    rows = [*runs("rmax", (1, 2)), *runs("rmax", (1, 2), MAP2), *runs("qrmax", (3, 4), MAP2)]
    page = table([*rows, *runs("qrm", (5, None), MAP1, max_steps=100)]).markdown()
    assert "averaged over 2 problems" in page
    odds = grid(page, 2)
    assert odds[1] == ["rmax", "", "1.00 [1.00 to 1.00], 1 problem", "—"]  # other budgets in qrm


def test_one_learner_is_compared_with_nobody() -> None:
    assert "Probability of improvement" not in table(runs(steps=(1, 2))).markdown()


# --- LaTeX


def latex_rows(made: Table) -> list[list[str]]:
    """The cells of a tabular, with their commands."""
    lines = [line for line in made.latex().splitlines() if line.endswith(r"\\")]
    return [[c.strip() for c in re.split(r"(?<!\\)&", line.removesuffix(r"\\"))] for line in lines]


def test_latex_has_the_shape_of_the_paper() -> None:
    made = table(EVERYTHING, **FULL)
    lines = made.latex().splitlines()
    assert lines[:2] == [r"\begin{tabular}{lllrrrr}", r"\toprule"]
    assert (lines[-3], lines[-1]) == (r"\bottomrule", r"\end{tabular}")
    head, *body, last, (note,) = latex_rows(made)
    assert len(head) == len(last) == 7 - 1  # the first spans two columns
    assert {len(row) for row in body} == {7}
    assert body[0][:4] == ["map1", "exp1", "ours", r"1,040 $\pm$ 10"]
    assert body[0][4] == r"600 $\pm$ 141, and 1 of 3 $\geq$ 2,000,000"
    assert body[1][2:4] == [r"{\scriptsize 95 \%}", r"{\scriptsize {[}1,030 to 1,050]}"]
    assert body[1][4:] == [r"{\scriptsize median 700 {[}500 to $\infty$]}", "", ""]
    assert body[2][:4] == ["", "", r"{\scriptsize paper}", r"{\scriptsize 1,000}"]
    assert body[4][:4] == ["map2", "exp1", "ours", r"\textbf{1,200 $\pm$ 100}"]
    assert body[6][4] == r"{\scriptsize ---}"
    assert last[0] == r"\multicolumn{2}{l}{within 5 \%}"
    assert note.startswith(r"\multicolumn{7}{p{0.95\linewidth}}{\footnotesize Steps: mean $\pm$ ")
    assert "Bold: the smallest mean and those whose interval overlaps with its own." in note


def test_latex_leaves_space_between_maps_and_nowhere_else() -> None:
    tasks = [f"office/{m}/{t}" for m in ("map1", "map2", "map3") for t in ("exp1", "exp2")]
    lines = table([row for p in tasks for row in runs(steps=(1,), problem=p)]).latex().splitlines()
    firsts = [line.split(" & ")[0] for line in lines if not line.startswith(" & ")]
    space = r"\addlinespace"
    assert firsts[4:-3] == ["map1", "map1", space, "map2", "map2", space, "map3", "map3"]


def bold(rows: Rows) -> list[bool]:
    """Which learners are shown as the quickest."""
    return [cell.startswith(r"\textbf") for cell in latex_rows(table(rows))[1][2:]]


def test_the_smallest_mean_is_bold() -> None:
    rows = [*runs("rmax", (100, 200)), *runs("qrmax", (50, 60)), *runs("qrm", (70, 70))]
    assert bold(rows) == [False, True, False]


def test_equals_are_equal_where_the_best_is_bold() -> None:
    rows = [*runs("rmax", (300, 310)), *runs("qrmax", (50, 60)), *runs("qrm", (50, 60))]
    assert bold(rows) == [False, True, True]
    assert bold(rows[2:]) == [False, False]  # bold for all would say nothing


def test_what_cannot_be_told_apart_from_the_best_is_bold_too() -> None:
    rows = [*runs("rmax", (50, 90)), *runs("qrmax", (60, 110)), *runs("qrm", (300, 310))]
    assert bold(rows) == [True, True, False]
    assert "Bold: the smallest mean and those whose interval overlaps" in table(rows).latex()
    assert "Bold" not in table(rows[:4]).latex()


def test_checks_too_far_apart_to_tell_learners_apart_leave_both_bold() -> None:
    rows = [*runs("rmax", (3000, 3000)), *runs("qrmax", (3500, 3500)), *runs("qrm", (9000, 9000))]
    assert bold(rows) == [True, False, False]
    assert bold([{**row, "evaluate_every": 500} for row in rows]) == [True, True, False]


def test_one_run_is_no_proof_of_being_the_best() -> None:
    rows = [*runs("rmax", (50,)), *runs("qrmax", (100, 110)), *runs("qrm", (300, 310))]
    assert bold(rows) == [False, False, False]
    rows = [*runs("rmax", (500,)), *runs("qrmax", (100, 110)), *runs("qrm", (300, 310))]
    assert bold(rows) == [False, True, False]


def test_a_mean_of_some_runs_never_beats_one_of_all() -> None:
    rows = [*runs("rmax", (100, 200)), *runs("qrmax", (50, None, None, None, None, None))]
    assert bold(rows) == [True, False]


def test_nothing_is_bold_where_runs_that_were_cut_off_might_be_quicker_on_average() -> None:
    rows = [*runs("rmax", (900, 900)), *runs("qrmax", (50, None), max_steps=1000)]
    assert bold(rows) == [False, False]
    assert bold(runs("rmax", (None, None))) == [False]


def test_special_characters_are_escaped_in_latex() -> None:
    rows = runs(r"v_max 10% & #1 {$x^2~\y}", (1,), "a_b/[c]/*d|<")
    text = table(rows).latex()
    assert r"\textbf{v\_max 10\% \& \#1 \{\$x\textasciicircum{}2\textasciitilde{}" in text
    assert r"\textbackslash{}y\}}" in text
    assert "\n{[}c] & {*}d$|$$<$ & " in text


def test_braces_and_dollars_in_latex_are_balanced() -> None:
    rows = [*EVERYTHING, *runs("%{_$", (1, 2, None))]
    text = table(rows, **FULL).latex()
    plain = re.sub(r"\\[\\{}$]", "", text)
    assert plain.count("{") == plain.count("}") > 0
    assert all(line.count("$") % 2 == 0 for line in plain.splitlines())


def test_a_number_below_zero_has_a_minus_in_latex() -> None:
    made = table(runs(steps=(900,)), reference={(MAP1, "rmax"): 1000.0}, compare=True)
    assert r"{\scriptsize $-$10.0 \%}" in made.latex()


# --- CSV


def test_csv_comes_back_through_polars_as_numbers() -> None:
    frame = as_frame(table([{**row, "evaluate_every": 1} for row in EVERYTHING], **FULL))
    assert ",".join(frame.columns) == (
        "problem,label,n,failed,censored,budget,resolution,mean,std,mean_low,mean_high,median,median_low,"
        "median_high,iqm,iqm_low,iqm_high,reference,off_by"
    )
    assert all(frame[name].dtype.is_numeric() for name in frame.columns[2:])
    assert frame.select("problem", "label").rows() == [
        (MAP1, "rmax"),
        (MAP1, "qrmax"),
        (MAP2, "rmax"),
        (MAP2, "qrmax"),
    ]
    rmax, qrmax, _, never = frame.iter_rows(named=True)
    assert (rmax["n"], rmax["censored"], rmax["budget"]) == (3, 0, BUDGET)
    assert (rmax["mean"], rmax["std"], rmax["reference"]) == (1040.0, 10.0, 1000.0)
    assert rmax["off_by"] == pytest.approx(0.04)
    assert 1030.0 <= rmax["mean_low"] < rmax["mean"] < rmax["mean_high"] <= 1050.0
    assert (qrmax["mean"], qrmax["mean_low"], qrmax["off_by"]) == (600.0, None, None)
    assert (qrmax["median"], qrmax["iqm"]) == (700.0, float("inf"))
    assert (never["mean"], never["median_low"], never["reference"]) == (None, float("inf"), None)


def test_csv_of_a_cell_without_runs_has_counts_and_nothing_else() -> None:
    frame = as_frame(table([*runs("rmax", (1, 2)), *failed(0, "qrmax")]))
    empty = frame.row(1, named=True)
    assert (empty["n"], empty["failed"], empty["censored"]) == (0, 1, 0)
    assert all(empty[name] is None for name in frame.columns[5:])


def test_csv_keeps_labels_with_commas_together() -> None:
    assert as_frame(table(runs('rmax, v_max "1"', (1,))))["label"].to_list() == ['rmax, v_max "1"']


# --- layouts, and what is refused


@pytest.mark.parametrize(
    ("problems", "expected"),
    [
        (("office/map1/exp1",), [Place("map1", "exp1")]),
        (("a/m/t", "b/m/t"), [Place("a m", "t"), Place("b m", "t")]),
        (("corridor", "office/m/t"), [Place("", "corridor"), Place("office m", "t")]),
        (("mine",), [Place("", "mine")]),
    ],
)
def test_the_world_is_left_out_of_names_where_all_share_it(
    problems: tuple[str, ...], expected: list[Place]
) -> None:
    layout = Layout(title="", problems=problems, labels=("rmax",))
    assert [layout.place(problem) for problem in problems] == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"problems": ()}, "problems of a table: none"),
        ({"labels": ("a", "a")}, "labels of a table: a, a"),
        ({"reference": {(MAP1, "rmax"): 0.0}}, "the reference of rmax on office/map1/exp1 is 0.0"),
    ],
)
def test_layouts_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Layout(**({"title": "", "problems": (MAP1,), "labels": ("rmax",)} | settings))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (runs(steps=(1,)) * 2, "rmax on office/map1/exp1, seed 0: there are two such runs"),
        (
            [*runs(steps=(1, 2))[1:], *runs(steps=(1,), max_steps=5)],
            "seed 0: a budget of 5 steps, while seed 1 has 2000000",
        ),
        (runs(steps=(1,), status="lost"), "the status of rmax on .*, seed 0, is 'lost'"),
        ([*runs(steps=(1,)), *runs(steps=(1, 2), reached=None)[1:]], "seed 1: done, but without"),
    ],
)
def test_results_that_contradict_themselves_are_refused(rows: Rows, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        table(rows)


def test_results_of_other_problems_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"none of the 2 runs is of its problems \(nowhere\)"):
        table(runs(steps=(1, 2)), problems=("nowhere",))


def test_columns_that_are_lacking_are_named() -> None:
    frame = pl.DataFrame(runs(steps=(1,))).drop("seed", "reached")
    with pytest.raises(ParameterError, match="results lack the columns seed, reached; needed: "):
        make_table(frame, Layout(title="", problems=(MAP1,), labels=("rmax",)))


def test_polars_is_not_loaded_before_there_are_results() -> None:
    program = "import sys, qrmax.report.tables; print('polars' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert shown.stdout.split() == [b"False"]


def test_where_the_budget_was_hit_the_last_success_can_be_shown() -> None:
    rows = [*runs("rmax", (None, None)), *runs("qrmax", (500, 600))]
    for row, share in zip(rows, (0.2, 0.4, 1.0, 1.0), strict=True):
        row["success"] = share
    page = table(rows, shows_success=True).markdown()
    assert "## Success of runs that hit the budget" in page
    assert grid(page, 1) == [["problem", "rmax", "qrmax"], ["map1 exp1", "30 % (20 to 40)", ""]]
    assert "## Success" not in table(rows).markdown()
    assert "## Success" not in table(rows[2:], shows_success=True).markdown()
