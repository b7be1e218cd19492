"""Tables of groups of problems, of success, of time and of bounds: each by one command."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars
import pytest

import qrmax
from command_line import run
from qrmax.cli import table_command as offered
from qrmax.errors import ParameterError
from qrmax.report.bound_table import known_after
from qrmax.report.group_table import group_table
from qrmax.report.layout import Layout
from qrmax.report.study_table import study_layout
from qrmax.report.study_tables import MEASURES, make_study_table
from qrmax.report.tables import make_table
from qrmax.studies.fixed_budget import measured_at
from qrmax.studies.problem_groups import PARTS, groups_of
from qrmax.studies.study import Study
from qrmax.theory import Goal, Sizes, qrmax_bound
from tiny_study import parsed, problems, write_tiny

TWO = (
    problems(
        '{ map = "row.txt", task = "fetch.toml", label = "dry" }, '
        '{ map = "row.txt", task = "fetch.toml", label = "wet", slip = 0.4 }'
    )
    .replace('"qrmax"', '{ agent = "qrmax", t_env = 3 }, "q-learning"')
    .replace("seeds = 2", "seeds = 3")
) + '[groups]\nall = ["*"]\ndry = ["dry"]\n'

# the paper's table 3: mean and standard deviation over the tasks of maps 1, 2 and 3
TABLE_3 = {
    "q-learning": ((484528, 457245), (977552, 946899), (1819687, 2080127)),
    "rmax": ((136622, 91486), (307805, 246020), (567680, 582237)),
    "qrmax": ((31316, 4073), (69494, 12854), (116237, 25001)),
    "qrm": ((137263, 59580), (282943, 90035), (479702, 236923)),
    "rmax-rm": ((26776, 3199), (60058, 11165), (97639, 26300)),
    "qrmax-rm": ((7312, 2774), (16240, 7990), (25222, 8385)),
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Path]:
    folder = tmp_path_factory.mktemp("tables")
    write_tiny(folder, TWO)
    study = parsed(folder, TWO)
    qrmax.sweep(study, folder=folder / "results", workers=1)
    return study, folder / "results"


def records(text: str) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(text))]


def made_up(layout: Layout, steps: Mapping[tuple[str, str], tuple[int | None, ...]]) -> str:
    """The groups `all` of these steps; None is a run that hit its budget of 1000."""
    rows = [
        {
            "problem": problem,
            "label": label,
            "seed": seed,
            "status": "done",
            "reached": taken is not None,
            "steps": 1000 if taken is None else taken,
            "max_steps": 1000,
            "version": "0.1.0",
            "commit": None,
        }
        for (problem, label), runs in steps.items()
        for seed, taken in enumerate(runs)
    ]
    findings = make_table(polars.DataFrame(rows), layout).findings
    return group_table(findings, {"all": layout.problems}, "map").markdown()


LAYOUT = Layout(title="Steps", problems=("office/a/one", "office/a/two"), labels=("qrmax",))


def test_the_papers_table_of_maps_comes_out_of_its_table_of_problems() -> None:
    study = qrmax.load_study("paper/table4", "as-published").only(seed=["0", "1"])
    rows = [
        {
            "problem": problem,
            "label": label,
            "seed": seed,
            "status": "done",
            "reached": True,
            "steps": int(study.reference[problem][label]),
            "max_steps": study.max_steps,
            "version": "0.1.0",
            "commit": None,
        }
        for problem in study.problems
        for label in study.agents
        for seed in (0, 1)
    ]
    findings = make_table(polars.DataFrame(rows), study_layout(study)).findings
    table = group_table(findings, groups_of(study, "map"), "map")
    assert table.head == ("learner", "", "map1", "map2", "map3")
    ours = {row[0]: row[2:] for row in table.rows if row[1] == "ours"}
    paper = [row[2:] for row in table.rows if row[1] == "paper"]
    expected = {
        label: tuple(f"{mean:,} ± {std:,}" for mean, std in cells)
        for label, cells in TABLE_3.items()
    }
    assert ours == expected
    assert paper == [*expected.values()]
    assert {row[2:] for row in table.rows if row[1] == "off by"} == {("+0.0 %",) * 3}


def test_runs_at_the_budget_make_a_mean_a_lower_bound() -> None:
    cells = {("office/a/one", "qrmax"): (100, 300), ("office/a/two", "qrmax"): (400, None)}
    page = made_up(LAYOUT, cells)
    assert "| qrmax | ours | >= 450 (1 of 4 at budget) |" in page
    assert "`>=` precedes a lower bound" in page
    cells["office/a/two", "qrmax"] = (400, 400)
    page = made_up(LAYOUT, cells)
    assert "| qrmax | ours | 300 ± 141 |" in page
    assert ">=" not in page


def test_missing_runs_and_problems_are_counted() -> None:
    layout = Layout(title="Steps", problems=LAYOUT.problems, labels=("qrmax",), seeds=(0, 1, 2))
    page = made_up(layout, {("office/a/one", "qrmax"): (100, 300)})
    assert "200; n = 2 of 6; 1 of 2 problems" in page


def test_groups_are_those_of_the_study(swept: tuple[Study, Path]) -> None:
    table = make_study_table(*swept, by="group")
    found = records(table.csv())
    assert [(row["group"], row["label"]) for row in found] == [
        (group, label) for group in ("all", "dry") for label in ("qrmax", "q-learning")
    ]
    runs = qrmax.results(swept[1]).filter(label="qrmax")
    means = [runs.filter(problem=name)["steps"].mean() for name in ("dry", "wet")]
    assert float(found[0]["at_least"]) == pytest.approx(statistics.fmean(means))
    assert found[2]["problems"] == "1"


def test_success_is_that_of_the_last_evaluation_by_then(swept: tuple[Study, Path]) -> None:
    study, folder = swept
    for at in (100, 250, 600):
        found = measured_at(study, folder, "success", at)
        for (problem, label), rates in found.items():
            points = qrmax.curves(folder).filter(problem=problem, label=label)
            expected = [
                each.filter(polars.col("step") <= at)["success"][-1]
                for each in points.partition_by("seed")
            ]
            assert sorted(rates.values.tolist()) == sorted(expected)
            assert rates.left_out == 0
    late, end = measured_at(study, folder, "success", 600), measured_at(study, folder, "success")
    assert all(np.array_equal(late[key].values, end[key].values) for key in late)


def test_the_table_of_success_has_intervals(swept: tuple[Study, Path]) -> None:
    table = make_study_table(*swept, "success", at=200)
    [row] = [
        row for row in records(table.csv()) if (row["problem"], row["label"]) == ("wet", "qrmax")
    ]
    values = measured_at(*swept, "success", 200)["wet", "qrmax"].values
    assert float(row["success"]) == pytest.approx(values.mean())
    assert float(row["success_low"]) <= values.mean() <= float(row["success_high"])
    assert "success after 200 steps" in table.markdown()
    assert f"at commit {qrmax.results(swept[1])['commit'][0]}; seeds" in table.markdown()
    grouped = make_study_table(*swept, "success", at=200, by="group")
    assert "| learner | all | dry |" in grouped.markdown()


def test_the_gap_is_that_of_the_last_policies(swept: tuple[Study, Path]) -> None:
    study, folder = swept
    rows = records(make_study_table(study, folder, "gap").csv())
    assert len(rows) == len(study.problems) * len(study.agents)
    for row in rows:
        runs = qrmax.results(folder).filter(problem=row["problem"], label=row["label"])
        assert float(row["gap"]) == pytest.approx(statistics.fmean(runs["gap"]))
        assert float(row["gap_low"]) <= float(row["gap"]) <= float(row["gap_high"])


def test_cells_with_fewer_runs_than_seeds_say_so(tmp_path: Path) -> None:
    write_tiny(tmp_path, TWO)
    study = parsed(tmp_path, TWO)
    seed = {"agent": "qrmax", "problem": "wet", "seed": str(study.seeds[0])}
    qrmax.sweep(study, folder=tmp_path / "results", workers=1, only=seed)
    table = make_study_table(study, tmp_path / "results", "success").markdown()
    assert table.count(f"; n = 1 of {len(study.seeds)}") == 1


def test_runs_that_ended_before_are_left_out_and_counted(tmp_path: Path) -> None:
    text = TWO.replace("max_steps = 600", 'max_steps = 600\nmax_episodes = 5\nstop = "budget"')
    write_tiny(tmp_path, text)
    study = parsed(tmp_path, text)
    qrmax.sweep(study, folder=tmp_path / "results", workers=1, only={"agent": "q-learning"})
    found = measured_at(study, tmp_path / "results", "success", 600)
    ends = (
        qrmax.curves(tmp_path / "results").group_by("problem", "seed").agg(polars.col("step").max())
    )
    early = (ends["step"] <= 500).sum()
    assert early > 0
    assert sum(rates.left_out for rates in found.values()) == early
    assert "left out" in make_study_table(study, tmp_path / "results", "success").markdown()


def test_tasks_without_success_have_no_success_rate(tmp_path: Path) -> None:
    study = qrmax.Study(["river-swim/patrol"], ["qrmax"], max_steps=1000, stop="budget")
    qrmax.sweep(study, folder=tmp_path / "results", workers=1)
    with pytest.raises(ParameterError, match="needed: a task with a success state"):
        make_study_table(study, tmp_path / "results", "success")


@pytest.mark.parametrize(
    ("at", "message"),
    [(50, "at is 50, but the first evaluation was after 100"), (601, "at most 600 steps")],
)
def test_steps_without_evaluations_are_refused(
    swept: tuple[Study, Path], at: int, message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        make_study_table(*swept, "success", at=at)


def test_times_are_medians_of_what_runs_recorded(swept: tuple[Study, Path]) -> None:
    table = make_study_table(*swept, "time")
    runs = qrmax.results(swept[1])
    for row in records(table.csv()):
        of_cell = runs.filter(problem=row["problem"], label=row["label"])
        assert float(row["seconds_per_run"]) == of_cell["learning_seconds"].median()
        per_step = [1e6 * s / n for s, n in of_cell.select("learning_seconds", "trained").rows()]
        assert float(row["microseconds_per_step"]) == pytest.approx(statistics.median(per_step))
        assert float(row["cpu_seconds_per_run"]) == of_cell["cpu_seconds"].median()
        assert int(row["censored"]) == (~of_cell["reached"]).sum()
    total = runs["cpu_seconds"].sum()
    assert f"Together the {len(runs)} runs took {total / 60:.3g} CPU minutes." in table.markdown()
    assert "| s per run | µs per step |" in table.markdown()
    everything = records(make_study_table(*swept, "time", by="group").csv())
    assert [row["n"] for row in everything] == ["6", "6", "3", "3"]


def test_bounds_stand_beside_the_steps(swept: tuple[Study, Path]) -> None:
    study, folder = swept
    table = make_study_table(study, folder, "bound", epsilon=0.2, delta=0.1)
    rows = {(row["problem"], row["label"]): row for row in records(table.csv())}
    sizes = Sizes(states=4, actions=4, task_states=3)
    bound = qrmax_bound(sizes, Goal(epsilon=0.2, delta=0.1, gamma=0.9))
    found = rows["dry", "qrmax"]
    assert int(found["bound_weissman"]) == bound.steps
    assert int(found["known_model"]) == 16 * 3 + 12 * 1
    mean = qrmax.results(folder).filter(problem="dry", label="qrmax")["steps"].mean()
    assert isinstance(mean, float)
    assert int(found["bound_over_steps"]) == int(bound.steps / mean)
    assert rows["dry", "q-learning"]["bound_weissman"] == ""
    assert "not 0.2-optimal, with probability 0.9" in table.markdown()
    assert "the paper has no bound for the learner" in table.markdown()


@pytest.mark.parametrize(
    ("agent", "samples"),
    [
        ("rmax", 108 * 3 * 4 * 39),
        ("rmax-rm", 108 * 4 * 39),  # each sample serves all three states of the machine
        ("qrmax", 108 * 4 * 39 + 108 * 3),
        ("qrmax-rm", 108 * 4 * 39 + 108),
        ("qrmax-rm-published", 108 * 4 * 13 + 108),  # and counts three times
    ],
)
def test_a_machine_that_is_given_needs_no_samples_for_each_of_its_states(
    agent: str, samples: int
) -> None:
    study = qrmax.Study(["office/map1/exp1"], [agent])
    assert known_after(study.cells[0], Sizes(states=108, actions=4, task_states=3)) == samples


def test_rewards_below_zero_have_no_bound_that_holds(tmp_path: Path) -> None:
    text = TWO.replace(", slip = 0.4", ", decoration_penalty = 5.0")
    write_tiny(tmp_path, text)
    (tmp_path / "row.txt").write_text("start: 1,0\n\nc . . O *\n")
    study = parsed(tmp_path, text).only(agent=["qrmax"])
    qrmax.sweep(study, folder=tmp_path / "results", workers=1)
    assert (
        "negative ones of wet" in make_study_table(study, tmp_path / "results", "bound").markdown()
    )


def test_the_command_offers_all_tables(swept: tuple[Study, Path], tmp_path: Path) -> None:
    assert offered.MEASURES == MEASURES
    assert offered.PARTS == PARTS
    folder = str(swept[1])
    for options, words in {
        ("--by", "group"): ", by group",
        ("--at", "300"): "success after 300 steps",
        ("--measure", "success", "--by", "map"): "success at the end of training, by map",
        ("--measure", "time"): "wall-clock time",
        ("--measure", "bound", "--epsilon", "0.3"): "not 0.3-optimal",
    }.items():
        done = run("table", folder, *options)
        assert done.returncode == 0, done.stderr
        assert words in done.stdout
        for kind in ("tex", "csv"):
            assert run("table", folder, *options, "-o", f"t.{kind}", cwd=tmp_path).returncode == 0
        assert r"\begin{tabular}" in (tmp_path / "t.tex").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--at", "300", "--measure", "time"],
            "--at is for --measure success or gap, not for time.",
        ),
        (["--measure", "bound", "--by", "map"], "each problem has its own bound."),
        (["--epsilon", "0.2"], "--epsilon is for --measure bound."),
        (["--epsilon", "0.2", "--measure", "time"], "is for --measure bound, not for time."),
        (["--at", "7"], "--at is 7, but the first evaluation was after 100 steps; give --at 100"),
        (["--by", "colour"], "'colour' is not one of 'world', 'map', 'task', 'group'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    swept: tuple[Study, Path], options: list[str], message: str
) -> None:
    done = run("table", str(swept[1]), *options)
    assert done.returncode == 2
    assert message in done.stderr
