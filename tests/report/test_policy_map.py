"""Policies on maps in characters: what is in a cell stays visible, and panels share the width."""

from __future__ import annotations

import re

import numpy as np
import pytest

import qrmax
from qrmax.errors import ParameterError
from qrmax.report.policy_map import map_lines, moves_on_map
from qrmax.source import Source
from qrmax.worlds.grid import parse_map
from qrmax.worlds.map_catalog import any_map

ANSI = re.compile(r"\x1b\[[\d;]*m")


def always(problem: qrmax.Problem, move: int = 1) -> np.ndarray:
    return np.full((problem.n_states, problem.n_task_states), move, dtype=np.int32)


@pytest.fixture(scope="module")
def problem() -> qrmax.Problem:
    return qrmax.make("office/map1/exp1")


def test_a_cell_shows_what_is_there_beside_the_move() -> None:
    grid = parse_map(Source("my.txt", "start: 0,0\n\n. c|*\n-\n# . O"))
    moves = np.array([1, 2, -1, 0, 4, -1], dtype=np.int32)
    assert [line.text for line in map_lines(grid, moves)] == [
        "+--------+",
        "|@> cv|* |",
        "|---  |  |",
        "|##  o O |",
        "+--------+",
    ]


def test_every_place_is_still_on_the_map(problem: qrmax.Problem) -> None:
    shown = moves_on_map(problem, always(problem), width=40)
    (first, *_) = re.findall(r"^\+-+\+\n(.*?)\n\+-+\+$", shown, re.MULTILINE | re.DOTALL)
    grid = qrmax.load_map("map1")
    for tile in "cmOABCDE*":
        assert first.count(tile) == sum(row.count(tile) for row in grid.rows)
    assert first.count("@") == 1


@pytest.mark.parametrize(("width", "abreast"), [(40, 1), (79, 2), (80, 2), (120, 2)])
def test_panels_stand_side_by_side_where_they_fit(
    problem: qrmax.Problem, width: int, abreast: int
) -> None:
    lines = moves_on_map(problem, always(problem), width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].count("task state") == abreast
    assert sum(line.count("task state") for line in lines) == 2


def test_panels_say_what_leads_on_and_the_legend_what_signs_mean(problem: qrmax.Problem) -> None:
    shown = moves_on_map(problem, always(problem), width=80)
    assert "next: coffee -> has_coffee" in shown
    assert "next: office -> delivered" in shown
    legend = shown.splitlines()[-1]
    assert legend.startswith("@ start,  * decoration,  c coffee,")
    assert "o wait" not in legend
    warehouse = qrmax.make("warehouse/deliver")
    assert "o wait" in moves_on_map(warehouse, always(warehouse, 4), width=80).splitlines()[-1]


def test_states_that_the_map_does_not_lead_to_are_left_out() -> None:
    task = qrmax.RewardMachine.from_ltlf("F(A & B & F C) | F D")
    problem = qrmax.make(map="map1", task=task)
    shown = moves_on_map(problem, always(problem), width=80)
    assert shown.count("task state ") == 1 + shown.count("left out")
    assert "left out: 1 task state unreachable" in shown


def test_a_wide_map_without_walls_is_drawn_closer() -> None:
    corridor = any_map("corridor")
    moves = np.ones(corridor.n_states, dtype=np.int32)
    assert {len(line.text) for line in map_lines(corridor, moves, 80)} == {80}
    assert {len(line.text) for line in map_lines(corridor, moves, 121)} == {121}


def test_a_map_wider_than_the_terminal_is_cut_into_bands() -> None:
    grid = qrmax.load_map("map3")
    moves = np.ones(grid.n_states, dtype=np.int32)
    lines = [line.text for line in map_lines(grid, moves, 40)]
    assert max(map(len, lines)) <= 40
    heads = [line for line in lines if line.startswith("columns")]
    assert heads == ["columns 0 to 12", "columns 13 to 14"]
    assert "".join(lines).count(">") == grid.n_states
    assert "".join(lines).count("@") == 1


def test_colours_change_nothing_but_the_colour(
    problem: qrmax.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = moves_on_map(problem, always(problem), width=80, colour=False)
    colourful = moves_on_map(problem, always(problem), width=80, colour=True)
    assert plain == ANSI.sub("", colourful) != colourful
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert moves_on_map(problem, always(problem), width=80) == plain
    monkeypatch.delenv("NO_COLOR")
    assert moves_on_map(problem, always(problem), width=80) == colourful


def test_where_there_is_no_map_there_is_an_error() -> None:
    problem = qrmax.make("river-swim/patrol")
    with pytest.raises(ParameterError, match="has no map to show a policy on"):
        moves_on_map(problem, always(problem))
