"""Learning curves: the numbers behind the lines, and what the picture shows of them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars
import pytest

import qrmax
from command_line import run
from qrmax.cli import curves_command as offered
from qrmax.cli.output import PICTURES
from qrmax.errors import ParameterError, StoreError
from qrmax.pictures.drawing import FORMATS
from qrmax.report.curve_plot import (
    LEGEND,
    MEASURES,
    PANEL,
    SPREADS,
    default_measure,
    draw_curves,
    learning_curves,
    line_of,
    wrapped_label,
)
from qrmax.studies.foreign_runs import ForeignPoint, ForeignRun
from qrmax.studies.other_runs import OtherRuns
from qrmax.studies.study import Study
from qrmax.training import curve_picture
from qrmax.training.point import Point
from tiny_study import agents, parsed, write_tiny

TWO = agents('{ agent = "qrmax", t_env = 3 }, "q-learning"').replace("seeds = 2", "seeds = 3")
LABELS = ("qrmax", "q-learning")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Path]:
    folder = tmp_path_factory.mktemp("curves")
    write_tiny(folder, TWO)
    study = parsed(folder, TWO)
    qrmax.sweep(study, folder=folder / "results", workers=1)
    return study, folder / "results"


def test_the_rows_are_the_points_of_every_run(swept: tuple[Study, Path]) -> None:
    _, folder = swept
    found = qrmax.curves(folder)
    of_run = ["problem", "agent", "label", "seed", "reached"]
    assert found.columns == [*of_run, *Point._fields, "tool"]
    runs = qrmax.results(folder)
    for run_ in runs.iter_rows(named=True):
        points = found.filter(label=run_["label"], seed=run_["seed"])
        assert points["step"].max() == run_["trained"]
        assert points["reached"].unique().to_list() == [run_["reached"]]
        if run_["reached"]:
            assert run_["steps"] in points["step"]
    assert found["seed"].unique().sort().to_list() == [0, 1, 2]


def test_a_line_is_the_median_of_what_the_runs_had_reached_by_then(
    swept: tuple[Study, Path],
) -> None:
    study, folder = swept
    found = qrmax.curves(folder)
    lines = learning_curves(study, folder)
    assert [label for _, label in lines] == [*LABELS]
    for (_, label), line in lines.items():
        of_label = found.filter(label=label)
        first = of_label.group_by("seed").agg(polars.col("step").min())["step"].max()
        assert first <= line.at[0] < first + 10
        assert line.at[-1] == of_label["step"].max()
        for at, low, middle, high in zip(*line, strict=True):
            by_then = [
                1.0 - run_.filter(polars.col("step") <= at)["gap"][-1]
                for run_ in of_label.partition_by("seed")
            ]
            expected = np.quantile(by_then, (0.25, 0.5, 0.75))
            np.testing.assert_allclose((low, middle, high), expected)
    assert lines[study.problems[0], "qrmax"].middle[-1] == pytest.approx(1.0, abs=0.06)


def test_a_line_can_be_the_mean_with_the_standard_deviation(swept: tuple[Study, Path]) -> None:
    seeds, steps, values = [0, 0, 1, 1], [100, 200, 100, 200], [0.25, 1.0, 0.75, 1.0]
    points = polars.DataFrame({"seed": seeds, "x": steps, "y": values})
    line = line_of(points, 200, "std")
    std = np.std([0.25, 0.75], ddof=1)
    assert (line.low[0], line.middle[0], line.high[0]) == (0.5 - std, 0.5, 0.5 + std)
    assert (line.low[-1], line.middle[-1], line.high[-1]) == (1.0, 1.0, 1.0)
    assert line_of(points.filter(seed=0), 200, "std").high[0] == 0.25  # one run has no spread
    for line in learning_curves(*swept, "value", "std").values():
        np.testing.assert_allclose(line.middle, (line.low + line.high) / 2)


def test_nominal_runs_have_success_and_steps_to_the_goal(swept: tuple[Study, Path]) -> None:
    study, folder = swept
    key = (study.problems[0], "qrmax")
    success = learning_curves(study, folder, "nominal-success", "std")[key]
    length = learning_curves(study, folder, "nominal-length", "std")[key]
    found = qrmax.curves(folder).filter(label="qrmax")
    first = found.group_by("seed").first()["nominal_length"]
    assert success.middle[0] == first.is_not_null().mean()
    assert length.middle[0] == first.fill_null(1000).mean()  # the limit, if it is not reached
    assert success.middle[-1] == 1.0
    assert length.middle[-1] == 4.0  # one step to the coffee, three to the office
    picture = draw_curves(*swept, measure="nominal-length", spread="std").decode()
    for line in ("steps to the goal of the nominal run", "(limit if not reached)"):
        assert line in picture


def test_without_nominal_runs_there_is_nothing_to_draw(tmp_path: Path) -> None:
    text = agents('{ agent = "bucket-qrmax", grid = 2 }').replace(
        '{ map = "row.txt", task = "fetch.toml" }', '"continuous/line/ab"'
    )
    text += 'stop = "budget"\n'
    study = parsed(tmp_path, text)
    qrmax.sweep(study, folder=tmp_path / "results", workers=1, only={"seed": "0"})
    with pytest.raises(ParameterError, match="no nominal run of 'tiny' reaches its goal"):
        draw_curves(study, tmp_path / "results", measure="nominal-success")


def test_the_picture_names_what_it_shows(swept: tuple[Study, Path]) -> None:
    picture = draw_curves(*swept).decode()
    words = [*LABELS, swept[0].problems[0], "steps", "value of the greedy policy / optimum"]
    texts = {
        "".join(e.itertext()) for e in ElementTree.fromstring(picture).iter() if "text" in e.tag
    }
    assert {*words} <= texts
    assert "success of the greedy policy" in draw_curves(*swept, measure="success").decode()
    assert draw_curves(*swept, logarithmic=True).decode() != picture


def test_numbers_of_steps_are_short_enough_to_stand_side_by_side(tmp_path: Path) -> None:
    text = TWO.replace("max_steps = 600", 'max_steps = 30_000\nstop = "budget"')
    write_tiny(tmp_path, text)
    study = parsed(tmp_path, text)
    qrmax.sweep(study, folder=tmp_path / "results", workers=1, only={"seed": "0"})
    picture = draw_curves(study, tmp_path / "results").decode()
    assert re.search(r">\d+k</text>", picture)
    assert not re.search(r">\d+000</text>", picture)


def test_the_same_curves_make_the_same_file(swept: tuple[Study, Path]) -> None:
    assert draw_curves(*swept) == draw_curves(*swept)
    assert not re.search(r"\d\d:\d\d", draw_curves(*swept).decode())  # no date


@pytest.mark.parametrize(("kind", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_there_are_other_formats(swept: tuple[Study, Path], kind: str, magic: bytes) -> None:
    picture = draw_curves(*swept, kind)
    assert picture.startswith(magic)
    assert b"/Type3" not in picture  # fonts that publishers refuse


def test_what_is_judged_by_success_shows_success() -> None:
    assert default_measure(qrmax.load_study("paper/bucket")) == "success"
    assert default_measure(qrmax.load_study("paper/table6")) == "value"


def test_the_command_offers_all_that_can_be_drawn() -> None:
    assert (*MEASURES,) == offered.MEASURES
    assert offered.SPREADS == SPREADS
    assert PICTURES == FORMATS


def test_what_cannot_be_drawn_is_refused(swept: tuple[Study, Path], tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="measure is 'speed'; allowed: 'value', 'gap'"):
        draw_curves(*swept, measure="speed")
    with pytest.raises(ParameterError, match="spread is 'range'; allowed: 'quartiles', 'std'"):
        draw_curves(*swept, spread="range")
    with pytest.raises(ParameterError, match="format is 'gif'; allowed: 'svg', 'png', 'pdf'"):
        draw_curves(*swept, "gif")
    write_tiny(tmp_path)
    study = parsed(tmp_path, agents('"qrmax"'))
    qrmax.sweep(study, folder=tmp_path / "none", workers=1, only={"seed": "0"})
    for record in (tmp_path / "none" / "runs").iterdir():
        (record / "run.json").unlink()
    with pytest.raises(StoreError, match="no complete runs yet"):
        draw_curves(study, tmp_path / "none")


def curves(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run("curves", *arguments, cwd=cwd)


def test_the_command_writes_the_picture(swept: tuple[Study, Path], tmp_path: Path) -> None:
    study, folder = swept
    done = curves(str(folder), "-o", "picture.svg", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "picture.svg").read_bytes() == draw_curves(study, folder)
    for wrong, message in {"picture": "has no suffix", "picture.gif": ".svg, .png, .pdf."}.items():
        done = curves(str(folder), "-o", wrong, cwd=tmp_path)
        assert done.returncode == 2
        assert message in done.stderr
    assert curves("smoke", "-o", "picture.svg", cwd=tmp_path).returncode == 2  # not swept yet


def test_the_legend_is_no_wider_than_the_picture(
    swept: tuple[Study, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    study, folder = swept
    long = "PPO (Stable-Baselines3)"
    runs = tuple(ForeignRun("x.csv", n, (ForeignPoint(100, 1.0, 1.0),)) for n in range(2))
    others = [
        OtherRuns(name, study.problems[0], "Stable-Baselines3", runs) for name in ("PPO", "A")
    ]
    figures: list[Figure] = []
    monkeypatch.setattr(curve_picture, "picture_of", lambda figure, _: figures.append(figure))
    draw_curves(study.changed(others=tuple(others)), folder, "png", measure="success")
    [figure] = figures
    [legend] = figure.legends
    assert long in [text.get_text() for text in legend.get_texts()]
    figure.draw_without_rendering()
    box = legend.get_window_extent()
    assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1


@pytest.mark.parametrize("measure", MEASURES)
def test_the_label_of_a_measure_fits_beside_one_row_of_panels(measure: str) -> None:
    from matplotlib.figure import Figure

    height = PANEL[1] + LEGEND
    figure = Figure(figsize=(PANEL[0], height))
    label = figure.supylabel(wrapped_label(MEASURES[measure], height), fontsize="medium")
    assert label.get_window_extent().height <= height * figure.dpi


def test_a_part_of_a_study_is_shown_from_the_results_of_the_whole(
    swept: tuple[Study, Path], tmp_path: Path
) -> None:
    _, folder = swept
    part = write_tiny(tmp_path, TWO.replace(', "q-learning"', ""))
    for command in (["table"], ["curves", "-o", str(tmp_path / "part.svg")]):
        shown = run(command[0], str(part), "--results", str(folder), *command[1:])
        assert shown.returncode == 0, shown.stderr
    assert "q-learning" not in run("table", str(part), "--results", str(folder)).stdout
    assert "q-learning" not in (tmp_path / "part.svg").read_text()


def test_results_with_other_settings_are_refused(swept: tuple[Study, Path], tmp_path: Path) -> None:
    _, folder = swept
    other = write_tiny(tmp_path, TWO.replace("t_env = 3", "t_env = 4"))
    shown = run("curves", str(other), "--results", str(folder), "-o", str(tmp_path / "no.svg"))
    assert shown.returncode == 2
    assert "have other settings" in shown.stderr
    assert not (tmp_path / "no.svg").exists()


def test_the_regret_of_a_run_is_the_sum_of_the_gaps_of_what_it_recommended(tmp_path: Path) -> None:
    """Step by step, from the curve: the policy of a check counts until the next one."""
    write_tiny(tmp_path, TWO)
    study = parsed(tmp_path, TWO + 'stop = { rule = "budget" }')
    qrmax.sweep(study, folder=tmp_path / "results", workers=1)
    found = qrmax.curves(tmp_path / "results")
    for logarithmic in (False, True):
        lines = learning_curves(study, tmp_path / "results", "regret", logarithmic=logarithmic)
        for (_, label), line in lines.items():
            sums = []
            for seed in range(3):
                run_ = found.filter(label=label, seed=seed).sort("step")
                steps, gaps = run_["step"].to_list(), run_["gap"].to_list()
                regret, gap = 0.0, 1.0
                for step in range(1, int(line.at[-1]) + 1):
                    regret += gap
                    if step in steps:
                        gap = gaps[steps.index(step)]
                sums.append(regret)
            assert line.middle[-1] == pytest.approx(np.median(sums))
            assert (np.diff(line.middle) >= 0.0).all()


def test_regret_is_refused_of_runs_that_end_early(swept: tuple[Study, Path]) -> None:
    with pytest.raises(ParameterError, match="regret, but runs end by the rule 'exact'"):
        learning_curves(*swept, "regret")


def test_points_of_a_logarithmic_axis_are_at_equal_ratios(swept: tuple[Study, Path]) -> None:
    study, folder = swept
    for line in learning_curves(study, folder, "gap", logarithmic=True).values():
        ratios = line.at[1:] / line.at[:-1]
        assert ratios == pytest.approx(ratios[0])
        assert line.at[0] == 100.0  # the first check
    assert b"<svg" in draw_curves(study, folder, measure="gap", logarithmic=True)
