"""Office worlds by name, by map and task, and by the objects themselves."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qrmax
from qrmax.errors import MapError, ParameterError, QRMaxError, QRMaxWarning, UnknownNameError
from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import load_task, save_task
from qrmax.problems.problem import Problem
from qrmax.worlds.catalog import make
from qrmax.worlds.grid import load_map
from qrmax.worlds.office import WORLD as OFFICE

UP, RIGHT, DOWN, LEFT = range(4)


def same(one: Problem, other: Problem) -> bool:
    """Whether two problems have the same world, labels and task."""
    arrays = ("succ", "prob", "reward", "terminal", "start")
    return (
        all(np.array_equal(getattr(one.mdp, a), getattr(other.mdp, a)) for a in arrays)
        and one.machine == other.machine
        and one.labels == other.labels
        and np.array_equal(one.label, other.label)
        and one.max_episode_steps == other.max_episode_steps
    )


def message_of(error: type[Exception], *args: Any, **options: Any) -> str:
    with pytest.raises(error) as caught:
        make(*args, **options)
    return str(caught.value)


def test_there_are_thirty_five_problems_and_each_can_be_made() -> None:
    names = OFFICE.problem_names()
    assert len(names) == len(set(names)) == 35
    for name in names:
        problem = make(name)
        assert problem.name == name
        assert problem.max_episode_steps == 1000
        assert problem.n_actions == 4


@pytest.mark.parametrize(
    ("name", "states", "task_states"),
    [
        ("office/map0/exp0", 100, 4),
        ("office/map1/exp1", 108, 3),
        ("office/map1/exp5", 108, 9),
        ("office/map1/exp6", 108, 10),
        ("office/map2/exp3", 144, 5),
        ("office/map4/exp6", 225, 4),
    ],
)
def test_a_problem_has_the_size_of_its_map_and_task(
    name: str, states: int, task_states: int
) -> None:
    problem = make(name)
    assert (problem.n_states, problem.n_task_states) == (states, task_states)


def test_a_problem_is_the_same_by_name_by_parts_by_path_and_by_object(tmp_path: Path) -> None:
    by_name = make("office/map1/exp5")
    assert qrmax.make is make
    save_task(load_task("exp5"), tmp_path / "mine.toml")
    for map_, task in [
        ("map1", "exp5"),
        (load_map("map1"), load_task("exp5")),
        ("map1", tmp_path / "mine.toml"),
        (load_map("map1"), str(tmp_path / "mine.toml")),
    ]:
        assert same(make(map=map_, task=task), by_name)
    assert same(make("office", map="map1", task="exp5"), by_name)
    assert same(make("office/map1", task="exp5"), by_name)
    assert not same(make("office/map1/exp5", slip=0.1), by_name)
    assert not same(make("office/map1/exp4"), by_name)


def test_exp6_on_map4_is_the_good_coffee_task_and_elsewhere_the_long_one() -> None:
    good_coffee = [{"good_coffee"}, {"office"}]
    assert make("office/map4/exp6").machine.run(good_coffee).reward == 1000.0
    assert make(map="map4", task="exp6").machine.run(good_coffee).reward == 1000.0
    long = make("office/map1/exp6").machine
    assert long.run(good_coffee).reward == 0.0
    assert len(long.states) == 10
    assert make("office/map4/exp6").name == "office/map4/exp6"


def test_the_task_of_map4_can_be_given_to_another_map_by_its_full_name() -> None:
    with pytest.warns(QRMaxWarning, match="'good_coffee'"):
        problem = make("office/map1/map4/exp6")
    assert problem.machine == load_task("map4/exp6")


def moves(problem: Problem, cell: tuple[int, int], action: int) -> dict[int, float]:
    state = cell[1] * {100: 10, 108: 12}[problem.n_states] + cell[0]
    pairs = zip(problem.mdp.succ[state, action], problem.mdp.prob[state, action], strict=True)
    return {int(s): float(p) for s, p in pairs if p}


def test_map0_slips_in_any_direction_and_the_others_perpendicular_by_default() -> None:
    third = 0.2 / 3
    anywhere = {45: 0.8, 56: third, 65: third, 54: third}
    assert moves(make("office/map0/exp0"), (5, 5), UP) == pytest.approx(anywhere)
    assert moves(make("office/map0/exp0", slips="perpendicular"), (5, 5), UP) == pytest.approx(
        {45: 0.8, 56: 0.1, 54: 0.1}
    )
    assert moves(make("office/map1/exp1"), (1, 7), UP) == pytest.approx({73: 0.8, 86: 0.1, 84: 0.1})
    assert len(moves(make("office/map1/exp1", slips="any"), (1, 7), UP)) == 4


def test_the_options_reach_the_world() -> None:
    name = "office/map1/exp1"
    assert make(name).mdp.terminal.sum() == 6
    assert not make(name, decorations_terminate=False).mdp.terminal.any()
    assert make(name).mdp.reward.min() == 0.0
    assert make(name, decoration_penalty=100).mdp.reward.min() == -100.0
    assert make(name, slip=0).mdp.prob[:, :, 0].min() == 1.0
    assert moves(make(name), (0, 8), DOWN) == {96: 1.0}
    assert len(moves(make(name, blocked_moves_slip=True), (0, 8), DOWN)) > 1
    assert make(name, max_episode_steps=None).max_episode_steps is None
    assert make(name, max_episode_steps=7).max_episode_steps == 7


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "ofice/map1/exp5"}, ["unknown world", "did you mean 'office/map1/exp5'?"]),
        ({"name": "office/mapp1/exp5"}, ["unknown map 'mapp1'", "did you mean 'map1'?"]),
        ({"name": "office/map1/exp55"}, ["unknown task 'exp55'", "did you mean 'exp5'?"]),
        ({"map": "mpa3", "task": "exp1"}, ["unknown map 'mpa3'", "did you mean 'map3'?"]),
        ({"map": "map1", "task": "epx3"}, ["unknown task 'epx3'", "did you mean 'exp3'?"]),
        (
            {"name": "office/map1/exp1", "slipp": 0.1},
            ["unknown option 'slipp'", "did you mean 'slip'?"],
        ),
        ({"name": "office/map1/exp1", "gamma": 0.9}, ["unknown option 'gamma'"]),
        ({"name": ""}, ["unknown world ''"]),
    ],
)
def test_an_unknown_name_suggests_the_nearest(arguments: dict[str, Any], words: list[str]) -> None:
    message = message_of(UnknownNameError, **arguments)
    for word in words:
        assert word in message
    assert "known: " in message


@pytest.mark.parametrize("name", ["office//exp1", "office/map1/"])
def test_an_empty_part_of_a_name_is_called_unknown_or_missing(name: str) -> None:
    message = message_of(QRMaxError, name)
    assert "unknown" in message or "needs" in message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "no map is given: give the whole name, such as 'office/map0/exp0', or map="),
        ({"name": "office"}, "'office' names no map"),
        ({"name": "office/map1"}, "'office/map1' names no task"),
        ({"map": "map1"}, "no task is given"),
        ({"task": "exp1"}, "no map is given"),
    ],
)
def test_what_is_missing_is_named(arguments: dict[str, Any], words: str) -> None:
    message = message_of(ParameterError, **arguments)
    assert words in message
    assert re.search(r"office/map\d/exp0", message)


@pytest.mark.parametrize(
    "parts", [{"map": "map2"}, {"task": "exp2"}, {"map": "map1"}, {"map": ""}, {"task": ""}]
)
def test_a_name_and_a_part_that_it_already_names_contradict(parts: dict[str, str]) -> None:
    message = message_of(ParameterError, "office/map1/exp1", **parts)
    assert "'office/map1/exp1'" in message
    assert "contradict" in message
    own, name = ("map", "office") if "map" in parts else ("task", "office/map1")
    assert f"with a {own} of your own the name is {name!r}" in message
    assert make(name, **{"map": "map1", "task": "exp1"} if own == "map" else {"task": "exp1"})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("slip", value) for value in (-0.1, 1.1, math.nan, math.inf, "0.2", None, True, [0.2])),
        *(("slips", value) for value in ("sideways", "", 5, ["any"])),
        *(("decoration_penalty", value) for value in (math.nan, math.inf, "100", None)),
        *(("decorations_terminate", value) for value in (1, "yes", None)),
        *(("blocked_moves_slip", value) for value in (0, "no", None)),
        *(("max_episode_steps", value) for value in (0, -1, 1.0, True, "10", math.nan)),
    ],
)
def test_an_option_of_a_wrong_type_or_range_is_named_with_what_is_allowed(
    option: str, value: Any
) -> None:
    message = message_of(ParameterError, "office/map1/exp1", **{option: value})
    assert message.startswith(f"{option} is {value!r}; allowed: ")


@pytest.mark.parametrize(
    "arguments",
    [
        {"map": 5, "task": "exp1"},
        {"map": "map1", "task": 5},
        {"map": "map1", "task": ["exp1"]},
        {"map": b"map1", "task": "exp1"},
        {"name": 5},
    ],
)
def test_a_map_task_or_name_of_a_wrong_type_is_refused_in_our_words(
    arguments: dict[str, Any],
) -> None:
    assert message_of(QRMaxError, **arguments)


@pytest.mark.parametrize(
    ("option", "value"),
    [("slip", np.float32(0.25)), ("max_episode_steps", np.int64(50)), ("slip", np.float64(0.25))],
)
def test_numbers_of_numpy_are_numbers(option: str, value: Any) -> None:
    assert make("office/map1/exp1", **{option: value}).n_states == 108


def test_a_proposition_that_the_map_lacks_is_warned_of_with_those_it_has() -> None:
    task = RewardMachine([Edge("s", "tea & !office", "t")], initial="s", name="tea_time")
    with pytest.warns(QRMaxWarning) as caught:
        make(map="map0", task=task)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "task 'tea_time' names 'tea', which 'office/map0/tea_time' does not have" in message
    assert "there are: A, B, C, D, E, coffee, mail, office" in message


def test_a_warning_points_at_the_line_that_called_make() -> None:
    task = RewardMachine([Edge("s", "tea", "t")], initial="s")
    with pytest.warns(QRMaxWarning) as caught:
        make(map="map0", task=task)
    assert caught[0].filename == __file__


def test_a_task_whose_propositions_are_all_there_gives_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make("office/map1/exp5")


def test_a_map_that_starts_on_a_decoration_is_refused_unless_decorations_stay(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("start: 0,0\n\n* c O\n")
    with pytest.raises(MapError, match="mine: the start is a decoration"):
        make(map=path, task="exp1")
    assert make(map=path, task="exp1", decorations_terminate=False).name == "office/mine/exp1"
