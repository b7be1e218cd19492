"""The worlds with real positions: their regions, rules and names."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qrmax
from gym_worlds import in_order
from qrmax.errors import MapError, ParameterError, QRMaxError, QRMaxWarning, UnknownNameError
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.plane import LEFT, RIGHT, cell_of
from qrmax.worlds.catalog import all_names, is_continuous
from qrmax.worlds.continuous import ContinuousOptions
from qrmax.worlds.office import WORLD as OFFICE
from qrmax.worlds.random_office import WORLD as RANDOM_OFFICE


def true_at(problem: ContinuousProblem, *position: float) -> set[str]:
    """What is true at a position, in the units of the world."""
    x, y = problem.positions(np.array([position]))[0].tolist()
    return set(problem.labels[problem.label[cell_of(problem.plane, x, y)]])


@pytest.mark.parametrize(
    "name",
    [name for name in all_names() if is_continuous(name) and "random" not in name]
    + ["continuous/random-office/0", "continuous/random-office/1099"],
)
def test_every_name_makes_the_problem_of_that_name(name: str) -> None:
    problem = qrmax.make(name)
    assert isinstance(problem, ContinuousProblem)
    assert problem.name == name
    assert problem.max_episode_steps == 1000
    assert is_continuous(name)


def test_the_names_are_the_offices_random_ones_and_four_worlds_more() -> None:
    offices = {
        f"continuous/{name}" for name in (*OFFICE.problem_names(), *RANDOM_OFFICE.problem_names())
    }
    others = {"frozen-lake/abc", "line/ab", "corridor/abc", "bottleneck/abc"}
    found = {name for name in all_names() if is_continuous(name)}
    assert found == offices | {f"continuous/{name}" for name in others}


REGIONS = {"A": (0.35, 0.45), "B": (0.55, 0.65), "C": (0.75, 0.85)}
INSIDE = 1e-6


@pytest.mark.parametrize("world", ["line/ab", "corridor/abc", "bottleneck/abc"])
def test_regions_are_where_they_are_published(world: str) -> None:
    problem = qrmax.make(f"continuous/{world}")
    line = world == "line/ab"
    for x in np.linspace(0.0, 1.0 - INSIDE, 997):
        here = {name for name, (low, high) in REGIONS.items() if low <= x < high}
        if line:
            assert true_at(problem, x) == here - {"C"}
        else:
            assert true_at(problem, x, 0.5) == here
    if not line:
        for y in np.linspace(0.0, 1.0 - INSIDE, 499):
            assert true_at(problem, 0.6, y) == ({"B"} if 0.30 <= y < 0.70 else set())


@pytest.mark.parametrize(("name", "region"), list(REGIONS.items()))
def test_regions_begin_and_end_at_their_borders(name: str, region: tuple[float, float]) -> None:
    low, high = region
    problem = qrmax.make("continuous/corridor/abc")
    assert true_at(problem, low, 0.5) == true_at(problem, high - INSIDE, 0.5) == {name}
    assert true_at(problem, low - INSIDE, 0.5) == true_at(problem, high, 0.5) == set()


def test_the_bottleneck_is_open_where_it_should_be() -> None:
    problem = qrmax.make("continuous/bottleneck/abc")
    wall = problem.plane.wall

    def closed(x: float, y: float, side: int) -> bool:
        return bool(wall[cell_of(problem.plane, x / 0.025, y / 0.1), side])

    for y in np.arange(0.05, 1.0, 0.1):
        shut = not 0.40 <= y < 0.60
        assert closed(0.475 - INSIDE, y, RIGHT) == shut
        assert closed(0.525 + INSIDE, y, LEFT) == shut
        assert not closed(0.46, y, LEFT)
    assert not qrmax.make("continuous/corridor/abc").plane.wall[:, [RIGHT, LEFT]].all(axis=1).any()


def test_moves_of_the_published_worlds_are_as_long_as_published() -> None:
    line = qrmax.make("continuous/line/ab").plane
    np.testing.assert_allclose(line.direction[:, 0] * 0.05, [0.025, -0.025])
    np.testing.assert_allclose(line.noise * 0.05, [0.005, 0.0])
    for world in ("corridor", "bottleneck"):
        plane = qrmax.make(f"continuous/{world}/abc").plane
        metres = plane.direction * plane.scale
        np.testing.assert_allclose(np.abs(metres).sum(axis=1), 0.025)
        np.testing.assert_allclose(plane.noise * plane.scale, 0.005)
    for name in ("frozen-lake/abc", "office/map1/exp1"):
        plane = qrmax.make(f"continuous/{name}").plane
        np.testing.assert_allclose(np.abs(plane.direction).sum(axis=1), 0.65)
        np.testing.assert_allclose(plane.noise, 0.05)


def test_the_frozen_lake_is_as_published() -> None:
    problem = qrmax.make("continuous/frozen-lake/abc")
    assert problem.start_position == (5.5, 0.5)
    goals = {"A": (4, 4), "B": (0, 0), "C": (4, 8)}
    for name, (x, y) in goals.items():
        assert true_at(problem, x + 0.5, y + 0.5) == {name}
    holes = {(3, 2), (4, 2), *((x, 7) for x in range(10) if x != 7)}
    ends = {(int(cell) % 10, int(cell) // 10) for cell in np.flatnonzero(problem.terminal)}
    assert ends == holes
    assert all(true_at(problem, x + 0.5, y + 0.5) == {"hole"} for x, y in holes)


def test_an_office_has_the_walls_and_decorations_of_its_map() -> None:
    problem, grid = qrmax.make("continuous/office/map1/exp5"), qrmax.load_map("map1")
    cells = np.arange(grid.n_states)
    np.testing.assert_array_equal(problem.plane.wall, grid.targets() == cells[:, None])
    np.testing.assert_array_equal(problem.terminal, grid.cells("*"))
    assert problem.start == grid.start_state


def test_the_task_of_an_office_is_that_of_its_map() -> None:
    problem = qrmax.make("continuous/office/map4/exp6")
    assert problem.machine == qrmax.load_task("map4/exp6") != qrmax.load_task("exp6")


def test_a_map_and_a_task_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "my.txt"
    path.write_text("start: 0,0\n\n. c .\n\n. . O\n")
    problem = qrmax.make("continuous/office", map=path, task="exp1")
    assert problem.name == "continuous/office/my/exp1"
    assert qrmax.make("continuous/office", map=str(path), task="exp1").name == problem.name
    assert true_at(problem, 1.5, 0.5) == {"coffee"}
    task = in_order("coffee", name="only")
    grid = qrmax.load_map(path)
    assert qrmax.make("continuous/office", map=grid, task=task).name == "continuous/office/my/only"


def test_the_other_worlds_take_ones_own_map_and_task_as_well(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("start: 1,0\n\n. . A . B .\n")
    problem = qrmax.make("continuous/line/ab", map=tmp_path / "long.txt")
    assert problem.name == "continuous/line/long/ab"
    assert true_at(problem, 0.12) == {"A"}
    task = in_order("A", name="mine")
    assert qrmax.make("continuous/line", task=task).name == "continuous/line/mine"
    (tmp_path / "own.toml").write_text(
        'initial = "go"\nsuccess = ["end"]\nedges = [{from = "go", when = "A", to = "end"}]\n'
    )
    assert qrmax.make("continuous/line", task=tmp_path / "own.toml").machine.name == "own"


def test_a_name_is_kept_whatever_a_map_is_called(tmp_path: Path) -> None:
    for name in ("office", "continuous", "exp1"):
        (tmp_path / f"{name}.txt").write_text("start: 0,0\n\n. c O\n")
        problem = qrmax.make("continuous/office", map=tmp_path / f"{name}.txt", task="exp1")
        assert problem.name == f"continuous/office/{name}/exp1"


def test_a_map_of_one_row_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "row.txt").write_text("start: 0,0\n\n. c O\n")
    problem = qrmax.make("continuous/office", map=tmp_path / "row.txt", task="exp1")
    assert (problem.n_actions, problem.observations.dimension) == (2, 1)
    assert problem.plane.direction[:, 0].tolist() == [0.65, -0.65]
    assert not problem.plane.direction[:, 1].any()
    assert problem.plane.noise.tolist() == [0.05, 0.0]


def test_options_change_the_rules() -> None:
    problem = qrmax.make(
        "continuous/office/map1/exp1",
        step=0.5,
        noise=0.0,
        decoration_penalty=3.0,
        decorations_terminate=False,
        max_episode_steps=None,
    )
    assert np.abs(problem.plane.direction).max() == 0.5
    assert not problem.plane.noise.any()
    decorated = qrmax.load_map("map1").cells("*")
    np.testing.assert_array_equal(problem.plane.reward, np.where(decorated, -3.0, 0.0))
    assert not problem.terminal.any()
    assert problem.max_episode_steps is None
    assert problem.reward_range() == (-3.0, 1.0)


def test_holes_count_as_decorations() -> None:
    lake = qrmax.make("continuous/frozen-lake/abc", decoration_penalty=-2.0)
    np.testing.assert_array_equal(lake.plane.reward, np.where(lake.terminal, -2.0, 0.0))
    assert lake.terminal.sum() == 11
    thick = qrmax.make("continuous/frozen-lake/abc", decorations_terminate=False)
    assert not thick.terminal.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": 0.0}, "step is 0.0; allowed: numbers above 0.0"),
        ({"step": -1}, "step is -1"),
        ({"step": "far"}, "step is 'far'"),
        ({"step": float("inf")}, "step is inf"),
        ({"noise": -0.1}, "noise is -0.1; allowed: numbers at least 0.0"),
        ({"noise": float("nan")}, "noise is nan"),
        ({"noise": True}, "noise is True"),
        ({"decoration_penalty": float("nan")}, "decoration_penalty is nan"),
        ({"decorations_terminate": 1}, "decorations_terminate is 1; allowed: True, False"),
        ({"max_episode_steps": 0}, "max_episode_steps is 0"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        qrmax.make("continuous/line/ab", **options)
    with pytest.raises(ParameterError, match=message):
        ContinuousOptions(**options)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("continuous", {}, "unknown problem 'continuous'"),
        ("continuous/", {}, "unknown problem"),
        ("continuous/lin/ab", {}, "did you mean 'continuous/line/ab'"),
        ("continuous/line/ab/", {}, "did you mean 'continuous/line/ab'"),
        ("continuous/line/abd", {}, "did you mean 'continuous/line/ab'"),
        ("continuous/office//exp1", {}, "unknown problem 'continuous/office//exp1'"),
        ("continuous/office/map9/exp1", {}, "unknown map 'map9'"),
        ("continuous/office/map1/exp9", {}, "unknown task 'exp9'"),
        ("continuous/office/map1/exp1/more", {}, "unknown task 'exp1/more'"),
        ("continuous/frozen-lake/abc", {"map": "frozenlake"}, "did you mean 'frozen-lake'"),
        ("continuous/line/ab", {"nois": 0.1}, "did you mean 'noise'"),
        ("continuous/line/ab", {"slip": 0.1}, "unknown option 'slip'"),
    ],
)
def test_unknown_names_suggest_the_nearest(
    name: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UnknownNameError, match=message):
        qrmax.make(name, **arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("continuous/line/ab", {"task": "ab"}, "'continuous/line/ab' and task=... contradict"),
        ("continuous/line/ab", {"task": "ab"}, "the name is 'continuous/line'"),
        ("continuous/office/map1", {"map": "map2"}, "'continuous/office/map1' and map=... contra"),
        ("continuous/office/map1", {"map": "map2"}, "the name is 'continuous/office'"),
        (
            "continuous/office/map1",
            {},
            "names no task: give the whole name, such as 'continuous/office/map1/exp0'",
        ),
        ("continuous/office", {}, "names no map"),
        ("continuous/line", {}, "names no task: give the whole name, 'continuous/line/ab'"),
        ("continuous/office", {"map": 3, "task": "exp1"}, "map is 3"),
        ("continuous/line", {"task": 3}, "task is 3"),
    ],
)
def test_what_does_not_go_together_is_said(
    name: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        qrmax.make(name, **arguments)


def test_a_map_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("start: 0,0\n\n. ? A\n")
    with pytest.raises(MapError, match="unknown tile"):
        qrmax.make("continuous/line/ab", map=tmp_path / "bad.txt")


words = st.sampled_from(["continuous", "office", "line", "map1", "exp1", "ab", "", "*", ".."])


@given(st.lists(words | st.text(max_size=6), max_size=5))
def test_whatever_name_is_given_a_problem_comes_out_or_an_error_of_ours(parts: list[str]) -> None:
    name = "/".join(["continuous", *parts])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QRMaxWarning)  # coffee on a line: legal, if hopeless
        try:
            problem = qrmax.make(name)
        except QRMaxError:
            return
    assert isinstance(problem, ContinuousProblem)


# --- sensors and random maps


@pytest.mark.parametrize("rotation", [30.0, 90.0, -135.0])
def test_the_optimum_does_not_depend_on_how_the_plane_is_turned(rotation: float) -> None:
    plain, turned = (
        qrmax.make("continuous/corridor/abc", rotation=angle, step=0.1) for angle in (0.0, rotation)
    )
    best = [qrmax.solve_continuous(each, gamma=0.9, per_cell=2) for each in (plain, turned)]
    assert best[0].start_value == best[1].start_value > 0.0
    middles = np.stack(np.meshgrid(np.arange(40.0) + 0.5, np.arange(10.0) + 0.5), axis=-1)
    q = np.zeros(400, dtype=int)
    acts = [
        each.actions(problem.observe(middles.reshape(-1, 2)), q)
        for each, problem in zip(best, (plain, turned), strict=True)
    ]
    assert (acts[0] == acts[1]).mean() > 0.95  # values of equally good actions differ by rounding
    assert len(set(acts[0].tolist())) > 1


def test_turned_axes_are_those_of_a_turned_map() -> None:
    problem = qrmax.make("continuous/frozen-lake/abc", rotation=30.0)
    cos, sin = np.cos(np.pi / 6), np.sin(np.pi / 6)
    seen = problem.observe(np.array([[4.5, 0.5]]))[0]
    np.testing.assert_allclose(seen, [4.5 * cos - 0.5 * sin, 4.5 * sin + 0.5 * cos])
    np.testing.assert_allclose(problem.observations.low, [-10 * sin, 0.0], atol=1e-12)
    np.testing.assert_allclose(problem.observations.high, [10 * cos, 10 * (cos + sin)])
    assert true_at(problem, *problem.observe(np.array([[4.5, 4.5]]))[0]) == {"A"}


def test_a_line_cannot_be_turned() -> None:
    with pytest.raises(QRMaxError, match="rotation is 30; a line has only 0"):
        qrmax.make("continuous/line/ab", rotation=30.0)
    assert qrmax.make("continuous/line/ab", sensor_noise=0.1).sensor_noise == 0.1


@pytest.mark.parametrize("option", ["rotation", "sensor_noise"])
@pytest.mark.parametrize("value", [float("nan"), -1000.0, "much"])
def test_a_sensor_that_cannot_be_is_refused(option: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=option):
        qrmax.make("continuous/frozen-lake/abc", **{option: value})


def test_a_random_map_is_that_of_the_tabular_world_with_its_task() -> None:
    for seed in (0, 7, 1000):
        plane = qrmax.make_continuous(f"continuous/random-office/{seed}")
        cells = qrmax.make(f"random-office/{seed}")
        assert plane.machine == cells.machine
        np.testing.assert_array_equal(plane.terminal, cells.mdp.terminal)
        assert [plane.labels[i] for i in plane.label] == [cells.labels[i] for i in cells.label]
    wide = qrmax.make_continuous("continuous/random-office/3", width=20, height=5)
    assert (wide.plane.columns, wide.n_cells) == (20, 100)
    own = qrmax.make_continuous("continuous/random-office/3", task=in_order("C", name="own"))
    assert own.name == "continuous/random-office/3/own"
