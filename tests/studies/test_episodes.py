"""Studies of worlds with real positions, which count episodes."""

from __future__ import annotations

import re
from pathlib import Path

import polars
import pytest

import qrmax
from command_line import run
from qrmax.errors import StoreError, StudyError
from qrmax.report.study_table import study_table
from qrmax.studies.store import Store
from qrmax.studies.study import Study
from tiny_study import parsed, write_tiny

ROW_STUDY = """
problems = [{ name = "continuous/office", map = "row.txt", task = "fetch.toml" }]
agents = [
  { agent = "bucket-qrmax", grid = 8, t_env = 6 },
  { agent = "bucket-qrmax", label = "slow", grid = 8, t_env = 10_000 },
]
seeds = 2
gamma = 0.95
max_episodes = 40
max_steps = 10_000
evaluate_every = 50
stop = { rule = "success", episodes = 50 }

[world]
max_episode_steps = 60
slip = 0.1  # says nothing to a world with real positions
"""


def row(folder: Path, text: str) -> Study:
    write_tiny(folder)
    return parsed(folder, text)


def test_a_study_counts_episodes_and_says_so(tmp_path: Path) -> None:
    study = row(tmp_path, ROW_STUDY)
    done = qrmax.sweep(study, folder=tmp_path / "results", workers=1)
    assert (done.done, done.failed) == (4, 0)
    found = qrmax.results(tmp_path / "results")
    seeing = found.filter(polars.col("label") == "bucket-qrmax")
    slow = found.filter(polars.col("label") == "slow")
    assert seeing["reached"].all()
    assert (seeing["episodes"] < 40).all()
    assert not slow["reached"].any()
    assert (slow["episodes"] >= 40).all()
    assert (slow["trained"] < 10_000).all()
    page = study_table(study, tmp_path / "results").markdown()
    assert "episodes: mean ± standard deviation" in page
    assert ">= 40 (2 of 2)" in page
    assert re.search(r"Policies were evaluated every [\d,]+ steps; episodes are counted", page)
    assert f"{seeing['episodes'].mean():,.0f} ±" in page


def test_a_run_that_is_broken_off_comes_to_the_same(tmp_path: Path) -> None:
    study = row(tmp_path, ROW_STUDY)
    qrmax.sweep(study, folder=tmp_path / "whole", workers=1)
    qrmax.sweep(study, folder=tmp_path / "parts", workers=1, checkpoint_every=1e-6)
    columns = ["id", "steps", "episodes", "success", "start_value"]
    whole, parts = (qrmax.results(tmp_path / name) for name in ("whole", "parts"))
    assert whole.select(columns).equals(parts.select(columns))


def test_a_budget_of_steps_that_ends_first_is_no_number_of_episodes(tmp_path: Path) -> None:
    study = row(tmp_path, ROW_STUDY.replace("max_steps = 10_000", "max_steps = 600"))
    qrmax.sweep(study, folder=tmp_path / "results", workers=1, only={"agent": "slow"})
    with pytest.raises(StoreError, match="2 runs took all 600 steps before 40 episodes"):
        study_table(study, tmp_path / "results")
    qrmax.sweep(study, folder=tmp_path / "results", workers=1)
    page = study_table(study, tmp_path / "results").markdown()
    assert "2 runs took all 600 steps before 40 episodes" in page
    assert ", slow: 2 missing" in page
    assert ">=" not in page


def test_curves_count_episodes(tmp_path: Path) -> None:
    study = row(tmp_path, ROW_STUDY)
    qrmax.sweep(study, folder=tmp_path / "results", workers=1, only={"seed": "0"})
    for curve in (tmp_path / "results").rglob("curve.parquet"):
        episodes = polars.read_parquet(curve)["episodes"].to_list()
        assert episodes == sorted(episodes)
        assert episodes[-1] > 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("max_episodes = 40", "max_episodes = 0", "max_episodes is 0"),
        ('"continuous/office"', '"continuous/line/ab"', "continuous/line/ab"),
        ('{ name = "continuous/office", map', '"continuous/lane/ab", { map', "continuous/line/ab"),
        ("slip = 0.1", "steep = 0.1", "did you mean 'step'"),
        ('"success", episodes', '"exact", within = 0.1 } # ', "are evaluated by sampling"),
        ('agent = "bucket-qrmax", grid', 'agent = "bucket-rmax", griddy', "'grid'"),
    ],
)
def test_mistakes_are_told_before_anything_is_run(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(StudyError, match=message):
        row(tmp_path, ROW_STUDY.replace(old, new))


def test_runs_that_count_steps_keep_their_ids() -> None:
    """Results that exist are not run again because there is something new to say elsewhere."""
    study = qrmax.load_study("paper/table4", protocol="as-published")
    assert next(iter(study.runs())).id == "634b0927ceffdbaa"


def test_a_folder_knows_its_study_again(tmp_path: Path) -> None:
    study = row(tmp_path, ROW_STUDY)
    qrmax.sweep(study, folder=tmp_path / "results", workers=1, only={"seed": "0"})
    assert Store(tmp_path / "results").study() == study


@pytest.mark.parametrize(("max_steps", "warned"), [(2399, True), (2400, False)])
def test_a_plan_says_where_steps_may_end_before_the_episodes_do(
    tmp_path: Path, max_steps: int, warned: bool
) -> None:
    write_tiny(tmp_path)
    text = ROW_STUDY.replace("max_steps = 10_000", f"max_steps = {max_steps}")
    (tmp_path / "row.toml").write_text(text)
    planned = run("plan", "row.toml", cwd=tmp_path)
    assert planned.returncode == 0
    assert ("40 episodes may take 2,400 steps" in planned.stderr) is warned
