"""Grid worlds: the five maps and the physics of moving."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qrmax.errors import MapError, ParameterError
from qrmax.problems.mdp import TabularMDP
from qrmax.source import Source
from qrmax.worlds.grid import GridMap, grid_mdp, load_map, map_names, parse_map, slippery_moves

UP, RIGHT, DOWN, LEFT = range(4)
ROOMS = [*"ABCDE"]

SMALL = "start: 0,0\n\n. .|c\n- \n. # *\n\nm . O"  # 3 x 3: walls right of (1,0) and below (0,0)


def small(header: str = "start: 0,0", picture: str = SMALL.split("\n\n", 1)[1]) -> GridMap:
    return parse_map(Source("small.txt", f"{header}\n\n{picture}"))


def walk(grid: GridMap, **changes: Any) -> TabularMDP:
    rules = {
        "slip": 0.0,
        "slips": grid.slips,
        "blocked_moves_slip": False,
        "decoration_penalty": 0.0,
        "decorations_terminate": True,
    }
    return grid_mdp(grid, **{**rules, **changes})


def outcomes(mdp: TabularMDP, state: int, action: int) -> dict[int, float]:
    """The probability of each state reached; equal ones count together."""
    found: dict[int, float] = {}
    for state_, share in zip(mdp.succ[state, action], mdp.prob[state, action], strict=True):
        found[int(state_)] = found.get(int(state_), 0.0) + float(share)
    return {state_: share for state_, share in found.items() if share}


def test_the_built_in_maps_are_those_of_the_paper() -> None:
    assert map_names() == ["map0", "map1", "map2", "map3", "map4"]


@pytest.mark.parametrize(
    ("name", "size", "start", "propositions"),
    [
        ("map0", (10, 10), (0, 0), ["coffee", "mail", "office", *ROOMS]),
        ("map1", (12, 9), (2, 7), ["coffee", "decoration", "mail", "office", *ROOMS]),
        ("map2", (12, 12), (2, 7), ["coffee", "decoration", "mail", "office", *ROOMS]),
        ("map3", (15, 15), (2, 7), ["coffee", "decoration", "mail", "office", *ROOMS]),
        (
            "map4",
            (15, 15),
            (2, 7),
            ["coffee", "decoration", "good_coffee", "mail", "office", *ROOMS],
        ),
    ],
)
def test_a_built_in_map_has_its_size_start_and_propositions(
    name: str, size: tuple[int, int], start: tuple[int, int], propositions: list[str]
) -> None:
    grid = load_map(name)
    assert (grid.width, grid.height) == size
    assert grid.start == start
    assert grid.propositions == set(propositions)
    assert grid.n_states == size[0] * size[1]
    assert grid.start_state == start[1] * size[0] + start[0]
    assert repr(grid) == f"GridMap({name!r}: {size[0]} columns x {size[1]} rows)"


@pytest.mark.parametrize(
    ("name", "tile", "cells"),
    [
        ("map0", "c", [(0, 0)]),
        ("map1", "c", [(3, 2), (8, 6)]),
        ("map1", "O", [(4, 4)]),
        ("map1", "*", [(4, 1), (7, 1), (1, 4), (10, 4), (4, 7), (7, 7)]),
        ("map2", "O", [(1, 4)]),
        ("map2", "c", [(3, 3), (3, 5)]),
        ("map3", "m", [(3, 4)]),
        ("map4", "g", [(14, 0)]),
        ("map4", "c", [(5, 9)]),
    ],
)
def test_a_built_in_map_has_its_tiles_where_the_paper_has_them(
    name: str, tile: str, cells: list[tuple[int, int]]
) -> None:
    grid = load_map(name)
    found = [divmod(int(state), grid.width)[::-1] for state in np.flatnonzero(grid.cells(tile))]
    assert found == cells
    numbers = {int(n) for n in grid.label()[grid.cells(tile)]}
    assert [grid.labels()[n] for n in numbers] == [frozenset({grid.tiles[tile]})]


@pytest.mark.parametrize(
    ("name", "upright", "level", "decorations"),
    [
        ("map0", 0, 0, 0),
        ("map1", 21, 18, 6),
        ("map2", 27, 26, 17),
        ("map3", 37, 42, 33),
        ("map4", 37, 41, 38),
    ],
)
def test_a_built_in_map_has_as_many_walls_and_decorations_as_its_picture(
    name: str, upright: int, level: int, decorations: int
) -> None:
    grid = load_map(name)
    assert (grid.wall_right.sum(), grid.wall_below.sum()) == (upright, level)
    assert grid.cells("*").sum() == decorations


@pytest.mark.parametrize(
    ("name", "cell", "action", "is_open"),
    [
        ("map0", (0, 0), RIGHT, True),
        ("map1", (2, 0), RIGHT, False),
        ("map1", (2, 1), RIGHT, True),
        ("map1", (0, 2), DOWN, False),
        ("map1", (1, 2), DOWN, True),
        ("map1", (4, 5), DOWN, False),
        ("map2", (5, 3), RIGHT, True),
        ("map2", (11, 2), DOWN, True),
        ("map3", (11, 1), RIGHT, False),
        ("map4", (5, 10), RIGHT, False),
    ],
)
def test_walls_block_both_ways_and_gaps_open_both_ways(
    name: str, cell: tuple[int, int], action: int, is_open: bool
) -> None:
    grid = load_map(name)
    here = cell[1] * grid.width + cell[0]
    there = here + (1 if action == RIGHT else grid.width)
    targets = grid.targets()
    assert targets[here, action] == (there if is_open else here)
    assert targets[there, (action + 2) % 4] == (here if is_open else there)


@pytest.mark.parametrize("name", ["map0", "map1", "map2", "map3", "map4"])
def test_every_cell_of_a_built_in_map_can_be_reached(name: str) -> None:
    targets = load_map(name).targets()
    reached = {load_map(name).start_state}
    while (more := reached | {int(s) for s in targets[[*reached]].flat}) != reached:
        reached = more
    assert len(reached) == len(targets)


def test_moves_lead_to_the_neighbour_and_stay_at_borders_walls_and_solid_cells() -> None:
    targets = small().targets()  # states: 0 1 2 / 3 4 5 / 6 7 8; 4 is solid
    assert targets[0].tolist() == [0, 1, 0, 0]  # border, open, wall, border
    assert targets[1].tolist() == [1, 1, 1, 0]  # border, wall, solid, open
    assert targets[2].tolist() == [2, 2, 5, 2]
    assert targets[3].tolist() == [3, 3, 6, 3]  # the wall of 0 seen from below; solid
    assert targets[4].tolist() == [4, 4, 4, 4]  # nobody gets out of a solid cell
    assert targets[7].tolist() == [7, 8, 7, 6]


def test_labels_number_what_is_true_in_each_cell() -> None:
    grid = small()
    assert grid.labels()[0] == frozenset()
    names = [sorted(grid.labels()[n]) for n in grid.label()]
    assert names == [[], [], ["coffee"], [], [], ["decoration"], ["mail"], [], ["office"]]


OPEN = ". . .\n\n. . .\n\n. . ."  # the middle is state 4, its neighbours 1, 5, 7, 3


@pytest.mark.parametrize(
    ("slips", "expected"),
    [
        ("perpendicular", {1: 0.7, 3: 0.15, 5: 0.15}),
        ("any", {1: 0.7, 3: 0.1, 5: 0.1, 7: 0.1}),
    ],
)
def test_a_slipping_move_goes_where_the_rule_says(slips: str, expected: dict[int, float]) -> None:
    mdp = walk(small(picture=OPEN), slip=0.3, slips=slips)
    assert outcomes(mdp, 4, UP) == pytest.approx(expected)
    turned = {{1: 5, 5: 7, 7: 3, 3: 1}[state]: share for state, share in expected.items()}
    assert outcomes(mdp, 4, RIGHT) == pytest.approx(turned)


def test_a_slip_into_a_wall_stays() -> None:
    mdp = walk(small(picture=OPEN), slip=0.2)
    assert outcomes(mdp, 3, UP) == pytest.approx({0: 0.8, 4: 0.1, 3: 0.1})


def test_a_blocked_move_waits_or_slips_as_told() -> None:
    grid = small(picture=OPEN)
    assert outcomes(walk(grid, slip=0.2), 1, UP) == {1: 1.0}
    slipping = walk(grid, slip=0.2, blocked_moves_slip=True)
    assert outcomes(slipping, 1, UP) == pytest.approx({1: 0.8, 0: 0.1, 2: 0.1})


def test_slip_zero_never_and_slip_one_always_slips() -> None:
    grid = small(picture=OPEN)
    assert outcomes(walk(grid, slip=0.0), 4, DOWN) == {7: 1.0}
    assert outcomes(walk(grid, slip=1.0), 4, DOWN) == pytest.approx({3: 0.5, 5: 0.5})


def test_decorations_end_the_episode_and_cost_the_penalty_whatever_its_sign() -> None:
    grid = small()
    assert np.flatnonzero(walk(grid).terminal).tolist() == [5]
    assert not walk(grid, decorations_terminate=False).terminal.any()
    assert not walk(grid).reward.any()
    for penalty in (100.0, -100.0):
        mdp = walk(grid, decoration_penalty=penalty)
        assert mdp.reward[2, DOWN, 0] == -100.0
        assert mdp.reward[2, UP, 0] == 0.0
        assert (mdp.reward[mdp.succ != 5] == 0.0).all()


def test_a_tile_of_ones_own_that_means_decoration_is_one() -> None:
    grid = small("start: 0,0\ntiles: x=decoration", ". x")
    assert walk(grid).terminal.tolist() == [False, True]


def test_an_episode_cannot_start_where_it_ends() -> None:
    grid = small(picture="* .")
    with pytest.raises(MapError, match=r"small: the start is a decoration"):
        walk(grid)
    assert walk(grid, decorations_terminate=False).start.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("slip", [-0.1, 1.1, float("nan"), True, "0.2", None])
def test_slip_is_a_probability(slip: Any) -> None:
    with pytest.raises(ParameterError, match=r"slip is .*at least 0\.0, at most 1\.0"):
        walk(small(), slip=slip)


def test_slips_is_one_of_two_words() -> None:
    with pytest.raises(ParameterError, match="slips is 'sideways'; allowed: 'perpendicular'"):
        slippery_moves(small().targets(), slip=0.1, slips="sideways", blocked_moves_slip=False)


@given(st.sampled_from(map_names()), st.floats(0, 1), st.sampled_from(["perpendicular", "any"]))
@settings(max_examples=25)
def test_probabilities_sum_to_one_and_moves_reach_only_neighbours(
    name: str, slip: float, slips: str
) -> None:
    grid = load_map(name)
    for blocked in (False, True):
        succ, prob = slippery_moves(
            grid.targets(), slip=slip, slips=slips, blocked_moves_slip=blocked
        )
        assert np.allclose(prob.sum(axis=2), 1.0)
        assert (prob >= 0).all()
        (y, x), (y2, x2) = (divmod(s, grid.width) for s in (np.arange(len(succ)), succ))
        assert (abs(y2 - y[:, None, None]) + abs(x2 - x[:, None, None]) <= 1).all()
