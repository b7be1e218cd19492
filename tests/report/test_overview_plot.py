"""Overview figures: the numbers behind the marks, and what the pictures show of them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import polars
import pytest

import qrmax
from command_line import run
from qrmax.cli import plot_command as offered
from qrmax.errors import ParameterError
from qrmax.report.mark_drawing import LOWER_BOUND, legend_columns, look
from qrmax.report.marks import MEASURES, Mark, marks_of
from qrmax.report.overview_plot import BUDGET, OPTIMUM, draw_overview
from qrmax.report.setting_plot import draw_setting, height_of_bounds, lowered, variants_of
from qrmax.studies.fixed_budget import measured_at
from qrmax.studies.study import Study
from tiny_study import agents, parsed, write_tiny

# one learner that gets there, one that has too few steps for it, and three variants of a third
FIVE = agents(
    '{ agent = "qrmax", t_env = 3 }, { agent = "q-learning", alpha = 0.001 }, '
    '{ agent = "qrmax-rm", label = "2 samples", t_env = 2 }, '
    '{ agent = "qrmax-rm", label = "4 samples", t_env = 4 }, '
    '{ agent = "qrmax-rm", label = "8 samples", t_env = 8 }'
).replace("seeds = 2", "seeds = 3")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Path]:
    folder = tmp_path_factory.mktemp("overview")
    write_tiny(folder, FIVE)
    study = parsed(folder, FIVE)
    qrmax.sweep(study, folder=folder / "results", workers=1)
    return study, folder / "results"


def texts(picture: bytes) -> set[str]:
    tree = ElementTree.fromstring(picture.decode())
    return {"".join(each.itertext()) for each in tree.iter() if each.tag.endswith("text")}


def test_a_mark_is_the_mean_and_the_standard_deviation(swept: tuple[Study, Path]) -> None:
    study, folder = swept
    [problem] = study.problems
    mark = marks_of(study, folder, "steps")[problem, "qrmax"]
    steps = qrmax.results(folder).filter(label="qrmax")["steps"]
    mean, std = steps.mean(), steps.std()
    assert isinstance(mean, float)
    assert isinstance(std, float)
    assert (mark.value, mark.is_bound) == (mean, False)
    assert (mark.low, mark.high) == pytest.approx((mean - std, mean + std))


def test_runs_at_the_budget_make_a_mark_a_lower_bound(swept: tuple[Study, Path]) -> None:
    study, folder = swept
    [problem] = study.problems
    mark = marks_of(study, folder, "steps")[problem, "q-learning"]
    runs = qrmax.results(folder).filter(label="q-learning")
    assert not runs["reached"].all()
    assert mark.is_bound
    assert mark.value == runs["steps"].mean()  # which is the budget for those


def test_success_and_gap_have_intervals(swept: tuple[Study, Path]) -> None:
    study, folder = swept
    [problem] = study.problems
    for at in (None, 200):
        mark = marks_of(study, folder, "success", at)[problem, "qrmax"]
        values = measured_at(study, folder, "success", at)[problem, "qrmax"].values
        assert mark.value == pytest.approx(values.mean())
        assert mark.low <= mark.value <= mark.high
    gap = marks_of(study, folder, "gap")[problem, "q-learning"]
    assert gap.value == qrmax.results(folder).filter(label="q-learning")["gap"].mean()


def test_the_overview_names_what_it_shows(swept: tuple[Study, Path]) -> None:
    study, _ = swept
    found = texts(draw_overview(*swept))
    assert {*study.agents, "training steps to the stopping rule", BUDGET, LOWER_BOUND} <= found
    found = texts(draw_overview(*swept, measure="success", at=300))
    assert {"success of the greedy policy after 300 steps", OPTIMUM} <= found
    assert BUDGET not in found
    found = texts(draw_overview(*swept, measure="gap"))
    assert "gap of the final policy, relative to the optimum" in found


def test_learners_differ_in_shape_and_colour() -> None:
    looks = [tuple(look(number).values()) for number in range(20)]
    assert len({*looks}) == len(looks)
    shapes = [look(number)["marker"] for number in range(8)]
    assert len({*shapes}) == len(shapes)  # legible without colour


def test_a_legend_is_no_wider_than_the_picture() -> None:
    names = ["q-learning", "a learner with a name that is longer than most", "rmax"]
    assert [legend_columns(names, width) for width in (12.0, 5.8, 2.0)] == [3, 2, 1]
    four = ["qrmax", "q-learning", "budget of a run", LOWER_BOUND]
    assert legend_columns(four, 5.0) == 2  # in three columns, two of four names would be alone


def test_variants_lie_on_the_line_of_their_agent(swept: tuple[Study, Path]) -> None:
    study, _ = swept
    found = variants_of(study.cells, "t_env")
    assert [(each.line, each.value, each.label) for each in found] == [
        ("qrmax-rm", 2.0, "2 samples"),
        ("qrmax-rm", 4.0, "4 samples"),
        ("qrmax-rm", 8.0, "8 samples"),
    ]


def test_lines_of_one_agent_are_told_apart_by_its_other_settings() -> None:
    entries = [
        {"agent": "qrmax", "label": f"{n}, {m}", "t_env": n, "t_task": m}
        for n in (5, 10)
        for m in (1, 2)
    ]
    study = qrmax.Study(["office/map1/exp1"], entries)
    found = variants_of(study.cells, "t_env")
    assert [(each.line, each.value) for each in found] == [
        ("qrmax, t_task 1", 5.0),
        ("qrmax, t_task 1", 10.0),
        ("qrmax, t_task 2", 5.0),
        ("qrmax, t_task 2", 10.0),
    ]


def test_the_picture_of_a_setting_names_what_it_shows(swept: tuple[Study, Path]) -> None:
    found = texts(draw_setting(*swept, "t_env"))
    words = {"t_env", "training steps", "final gap to the optimum", "qrmax-rm"}
    assert words <= found
    assert "q-learning" not in found
    assert "final success" in texts(draw_setting(*swept, "t_env", measures=["success"]))


def test_lower_bounds_do_not_dwarf_what_is_known() -> None:
    known = Mark(100.0, 90.0, 110.0, runs=(90.0, 110.0))
    bound = Mark(5000.0, 5000.0, 5000.0, is_bound=True, runs=(200.0,))
    top = height_of_bounds([known, bound])
    assert 200.0 < top < 300.0  # above all runs that got there
    assert lowered(bound, top).value == top
    assert lowered(known, 50.0) == known
    assert (
        lowered(bound, height_of_bounds([bound._replace(runs=())])) == bound
    )  # nothing else is known


def test_settings_in_which_no_agents_differ_are_refused(swept: tuple[Study, Path]) -> None:
    with pytest.raises(ParameterError, match="differ in this setting alone; allowed: t_env"):
        draw_setting(*swept, "t_task")


def test_what_cannot_be_drawn_is_refused(swept: tuple[Study, Path]) -> None:
    with pytest.raises(ParameterError, match="measure is 'speed'; allowed: 'steps', 'success'"):
        draw_overview(*swept, measure="speed")
    with pytest.raises(ParameterError, match="format is 'gif'"):
        draw_setting(*swept, "t_env", "gif")


def test_the_same_results_make_the_same_file(swept: tuple[Study, Path]) -> None:
    assert draw_overview(*swept) == draw_overview(*swept)
    assert draw_setting(*swept, "t_env") == draw_setting(*swept, "t_env")


def test_the_command_writes_the_pictures(swept: tuple[Study, Path], tmp_path: Path) -> None:
    assert (*MEASURES, offered.IMPROVEMENT) == offered.MEASURES
    study, folder = swept
    for kind, magic in {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}.items():
        done = run("plot", str(folder), "-o", f"steps.{kind}", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "")
        assert (tmp_path / f"steps.{kind}").read_bytes().startswith(magic)
    assert (tmp_path / "steps.svg").read_bytes() == draw_overview(study, folder)
    done = run("plot", str(folder), "--against", "t_env", "-o", "t_env.svg", cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "t_env.svg").read_bytes() == draw_setting(study, folder, "t_env")
    done = run("plot", str(folder), "--at", "300", "-o", "at.svg", cwd=tmp_path)
    assert "success of the greedy policy after 300 steps" in texts(
        (tmp_path / "at.svg").read_bytes()
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--measure", "steps", "--measure", "gap"], "repeated with --against only"),
        (["--log"], "--log is for --against"),
        (["--at", "300", "--measure", "steps"], "--at is for --measure success or gap"),
        (["--against", "t_task"], "--against is 't_task', but no two entries"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    swept: tuple[Study, Path], tmp_path: Path, options: list[str], message: str
) -> None:
    done = run("plot", str(swept[1]), *options, "-o", "picture.svg", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "picture.svg").exists()


def test_the_study_of_sensitivity_varies_t_env_alone() -> None:
    study = qrmax.load_study("paper/sensitivity")
    for problem in study.problems:
        cells = [cell for cell in study.cells if cell.problem.label == problem]
        found = polars.DataFrame(variants_of(cells, "t_env"))
        assert found["line"].unique(maintain_order=True).to_list() == ["qrmax", "qrmax-rm"]
        assert found["value"].to_list() == [5.0, 10.0, 20.0, 39.0, 80.0] * 2
