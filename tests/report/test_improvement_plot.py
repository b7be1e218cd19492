"""Probability of improvement: the numbers, against counting by hand, and the pictures."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qrmax
from command_line import run
from qrmax.report.improvement_plot import draw_improvement
from qrmax.report.study_tables import make_study_table
from qrmax.studies.ratio_statistics import compare
from qrmax.studies.statistics import Steps
from qrmax.studies.study import Study
from tiny_study import agents, parsed, write_tiny

BUDGET = 9
THREE = agents(
    '{ agent = "qrmax", t_env = 3 }, { agent = "q-learning", alpha = 0.001 }, '
    '{ agent = "q-learning", label = "slower", alpha = 0.0005 }'
).replace("seeds = 2", "seeds = 3")

samples = st.lists(st.one_of(st.none(), st.integers(1, BUDGET)), min_size=1, max_size=5)


def steps_of(runs: list[int | None]) -> Steps:
    """Runs of a budget of 9 steps; None for one that hit it."""
    reached = tuple(n for n in runs if n is not None)
    return Steps(reached, len(runs) - len(reached), BUDGET)


def by_hand(runs: list[tuple[list[int | None], list[int | None]]], undecided: Fraction) -> Fraction:
    """Agarwal et al.'s probability in whole numbers; `undecided` is the score of such a pair."""
    total = Fraction(0)
    for ours, theirs in runs:
        points = Fraction(0)
        for x in ours:
            for y in theirs:
                if x is None and y is None:
                    points += undecided
                elif x == y:
                    points += Fraction(1, 2)
                elif y is None or (x is not None and x < y):
                    points += 1
        total += points / (len(ours) * len(theirs))
    return total / len(runs)


@given(runs=st.lists(st.tuples(samples, samples), min_size=1, max_size=3))
def test_the_probability_and_its_bounds_are_those_of_counting_pairs(
    runs: list[tuple[list[int | None], list[int | None]]],
) -> None:
    found = compare([steps_of(ours) for ours, _ in runs], [steps_of(other) for _, other in runs])
    value = found.improvement.value
    assert value == pytest.approx(float(by_hand(runs, Fraction(1, 2))))
    assert value - found.undecided / 2 == pytest.approx(float(by_hand(runs, Fraction(0))))
    assert value + found.undecided / 2 == pytest.approx(float(by_hand(runs, Fraction(1))))


def test_an_interval_covers_the_probability_as_often_as_it_says() -> None:
    """On 40 draws of 24 problems, with a learner that needs fewer steps on 70 % of them."""
    chance, covered = np.random.default_rng(5), 0
    for _ in range(40):
        wins = chance.random(24) < 0.7
        ours = [Steps((1 if won else 3,), 0, BUDGET) for won in wins]
        found = compare(ours, [Steps((2,), 0, BUDGET)] * 24).improvement
        covered += found.low <= 0.7 <= found.high
    assert 34 <= covered <= 40


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Path]:
    folder = tmp_path_factory.mktemp("improvement")
    write_tiny(folder, THREE)
    study = parsed(folder, THREE)
    qrmax.sweep(study, folder=folder / "results", workers=1)
    return study, folder / "results"


def test_a_table_has_the_likeliest_first_and_says_what_is_undecided(
    swept: tuple[Study, Path],
) -> None:
    shown = make_study_table(*swept, "improvement", relative_to="q-learning").markdown()
    rows = [row for row in shown.splitlines() if row.startswith(("| qrmax", "| slower"))]
    assert rows == [
        "| qrmax | 1.00 [1.00 to 1.00] | 1 |",
        "| slower | 0.50 [0.50 to 0.50], undecided 100 % | 1 |",
    ]
    assert "Two runs at the budget are undecided" in shown
    record = make_study_table(*swept, "improvement").csv().splitlines()[1]  # beside the first
    assert record.startswith("all problems,q-learning,")


def test_a_picture_has_a_row_for_each_other_learner(swept: tuple[Study, Path]) -> None:
    picture = draw_improvement(*swept, "q-learning", by="world")
    tree = ElementTree.fromstring(picture.decode())
    texts = {"".join(each.itertext()) for each in tree.iter() if each.tag.endswith("text")}
    assert {"qrmax", "slower", "P(fewer steps than q-learning)"} <= texts
    assert "q-learning" not in texts


def test_the_command_draws_it_and_refuses_what_does_not_go_together(
    swept: tuple[Study, Path], tmp_path: Path
) -> None:
    _, folder = swept
    done = run("plot", str(folder), "--measure", "improvement", "-o", "p.svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"P(fewer steps than qrmax)" in (tmp_path / "p.svg").read_bytes()
    for wrong in (
        ("--relative-to", "qrmax"),
        ("--measure", "steps", "--by", "map"),
        ("--measure", "improvement", "--against", "t_env"),
        ("--measure", "improvement", "--relative-to", "nobody"),
    ):
        refused = run("plot", str(folder), *wrong, "-o", "no.svg", cwd=tmp_path)
        assert refused.returncode == 2, refused.stderr
        assert not (tmp_path / "no.svg").exists()
