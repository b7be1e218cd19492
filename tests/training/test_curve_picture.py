"""`run.plot`, and the learning curve as a table."""

from __future__ import annotations

from pathlib import Path

import polars
import pytest
from matplotlib.figure import Figure

import qrmax
from gym_worlds import lake
from qrmax.errors import ParameterError, SourceError
from small_runs import corridor

BEGINS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture(scope="module")
def run() -> qrmax.Run:
    return qrmax.train(
        "qrmax", corridor(), t_env=9, max_steps=4000, evaluate_every=100, compiled=False
    )


def test_a_figure_shows_the_rows_of_the_curve_and_the_optimum(run: qrmax.Run) -> None:
    figure = run.plot()
    assert isinstance(figure, Figure)
    left, right = figure.axes
    drawn = left.lines[0].get_xydata().tolist()
    assert drawn == [[point.step, point.start_value] for point in run.curve]
    assert right.lines[0].get_ydata().tolist() == [point.success for point in run.curve]
    assert run.best is not None
    assert run.best.start_value in left.lines[-1].get_ydata()
    assert run.reason == "exact"
    assert left.lines[1].get_xdata() == [run.steps, run.steps]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".PNG"])
def test_the_suffix_says_what_is_written(run: qrmax.Run, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"curve{suffix}"
    run.plot(path)
    assert path.read_bytes().startswith(BEGINS[suffix.lower()])


def test_a_notebook_shows_it(run: qrmax.Run) -> None:
    assert run.plot()._repr_png_().startswith(BEGINS[".png"])  # type: ignore[attr-defined]


def test_what_cannot_be_drawn_or_written_is_refused(run: qrmax.Run, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"curve.gif: a picture's name ends in .png, .svg"):
        run.plot(tmp_path / "curve.gif")
    with pytest.raises(SourceError, match="cannot be written"):
        run.plot(tmp_path / "none" / "curve.png")
    with pytest.raises(ParameterError, match="has no learning curve"):
        qrmax.train("qrmax", corridor(), max_steps=10, compiled=False).plot()
    assert [*tmp_path.iterdir()] == []


def test_the_curve_of_an_environment_is_drawn_without_an_optimum(tmp_path: Path) -> None:
    run = qrmax.train("qrmax", lake(), t_env=1, max_steps=600, evaluate_every=100, stop="budget")
    run.plot(tmp_path / "lake.png")
    panels = run.plot().axes
    assert [len(panel.lines) for panel in panels] == [1, 1]
    assert [len(panel.collections) for panel in panels] == [1, 1]  # confidence intervals


def test_a_curve_is_a_table_of_polars(run: qrmax.Run) -> None:
    table = polars.DataFrame(run.curve)
    assert table.columns[:4] == ["step", "start_value", "gap", "success"]
    assert table.rows() == [tuple(point) for point in run.curve]
    env = qrmax.train("qrmax", lake(), t_env=1, max_steps=300, evaluate_every=100)
    rolled = polars.DataFrame(env.curve)
    assert rolled["gap"].to_list() == [None] * len(rolled)
    assert rolled["length"].null_count() == 0
