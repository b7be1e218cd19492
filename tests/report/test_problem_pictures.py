"""Pictures of problems, solutions and runs: what is drawn is what was computed."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import qrmax
from qrmax.errors import ParameterError, UnknownNameError
from qrmax.pictures.colour_scale import LEVELS, ColourScale, level_colour
from qrmax.pictures.composition import below, beside, in_grid
from qrmax.pictures.drawing import Picture, Point, Shape, Text
from qrmax.report.ground import MOST_NODES, ground_of, plane_ground
from qrmax.report.run_picture import KNOWN, TRIED, UNTRIED
from qrmax.report.state_panels import machine_panels
from qrmax.training.run import Run

GOLDEN = Path(__file__).parents[1] / "data" / "pictures"


def texts(picture: Picture) -> list[str]:
    return [item.text for item in picture.items if isinstance(item, Text)]


def of_kind(picture: Picture, kind: str) -> list[Shape]:
    return [item for item in picture.items if isinstance(item, Shape) and item.kind == kind]


def rectangles(shape: Shape) -> list[Point]:
    """The upper left corners of the rectangles of a shape."""
    return [part.points[0] for part in shape.outline if part.command == "M"]


@pytest.fixture(scope="module")
def tiny() -> qrmax.Problem:
    """Three places in a row, labelled at both ends."""
    p = np.zeros((3, 2, 3))
    p[[0, 1, 2], 0, [0, 0, 1]] = p[[0, 1, 2], 1, [1, 2, 2]] = 1.0
    task = qrmax.RewardMachine.from_ltlf("F(far & F home)")
    mdp = qrmax.TabularMDP.from_dense(p, coordinates=[[0], [1], [2]])
    return qrmax.Problem(mdp, task, [{"home"}, set(), {"far"}], [0, 1, 2], name="tiny")


@pytest.fixture(scope="module")
def run() -> Run:
    return qrmax.train("qrmax", "office/map1/exp1", seed=7, max_steps=4000)


def test_values_of_many_magnitudes_are_told_apart_on_a_logarithmic_scale() -> None:
    values = [10.0**-power for power in range(8)]
    scale = ColourScale.of([*values, 0.0, math.nan])
    levels = scale.levels(values).tolist()
    assert scale.logarithmic
    assert levels[0] == LEVELS - 1
    assert levels[-1] == 0
    assert np.diff(levels).tolist() == pytest.approx([-(LEVELS - 1) / 7] * 7, abs=1)
    assert scale.levels([0.0, math.nan, -1.0]).tolist() == [-1, -1, -1]


@pytest.mark.parametrize("values", [[-2.0, 5.0], [3.0, 4.0]])
def test_values_of_both_signs_or_alike_have_a_linear_scale(values: list[float]) -> None:
    scale = ColourScale.of(values)
    assert not scale.logarithmic
    low, high = min(0.0, *values), max(values)
    assert scale.levels([low, (low + high) / 2, high]).tolist() == [0, 16, LEVELS - 1]


def test_colours_are_darker_for_larger_numbers_so_that_grey_print_shows_them() -> None:
    def luminance(colour: str) -> float:
        parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        red, green, blue = (part**2.2 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    found = [luminance(level_colour(level)) for level in range(LEVELS)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 10 * found[-1]


def test_pictures_are_arranged_without_overlap() -> None:
    one = Picture("one", -5.0, -5.0, 30.0, 20.0, (Text(Point(0.0, 0.0), "x"),))
    for arranged in (beside(one, one, title="t"), below(one, one, title="t", gap=3.0)):
        first, second = (item.at for item in arranged.items if isinstance(item, Text))
        assert second.x - first.x >= 30.0 or second.y - first.y >= 20.0
    grid = in_grid([one] * 5, 2, title="t", gap=4.0)
    assert (grid.width, grid.height) == (64.0, 68.0)
    assert len({item.at for item in grid.items if isinstance(item, Text)}) == 5


def test_every_state_has_the_colour_of_its_value_in_each_panel() -> None:
    problem = qrmax.make("office/map1/exp1")
    solution = qrmax.solve(problem)
    picture = solution.draw(states=["has_coffee"])
    shown = {
        corner: shape.look.fill
        for shape in of_kind(picture, "value")
        for corner in rectangles(shape)
    }
    ground = ground_of(problem)
    q = problem.machine.index("has_coffee")
    own = ColourScale.of(np.where(problem.done(), np.nan, solution.value)[:, [q]])
    assert own.logarithmic
    origin = min(shown, key=lambda at: (at.y, at.x))  # of state 0
    for s in np.flatnonzero(~problem.done()[:, q]).tolist():
        middle = ground.places[s].middle
        at = Point(origin.x + middle.x - 20.0, origin.y + middle.y - 20.0)
        assert shown[at] == own.colour(solution.value[s, q])
    assert len(shown) == int((~problem.done()[:, q]).sum())


def test_arrows_point_along_the_actions_of_the_policy(tiny: qrmax.Problem) -> None:
    ground = ground_of(tiny)
    assert ground.ways[:, 0].tolist() == [[-1.0, 0.0]] * 3  # into the wall, too
    assert ground.ways[:, 1].tolist() == [[1.0, 0.0]] * 3
    picture = qrmax.solve(tiny).draw("policy")
    heads = [shape for shape in of_kind(picture, "arrow") if shape.look.fill != "none"]
    assert sum(part.command == "Z" for shape in heads for part in shape.outline) == 6


def test_a_panel_for_each_machine_state_that_goes_on_and_can_be_reached() -> None:
    problem = qrmax.make("office/map1/exp5")
    names = [name for _, name, _ in machine_panels(problem.machine, problem.labels)]
    assert len(names) == 8
    assert "delivered" not in names
    shown = texts(qrmax.solve(problem).draw())
    assert all(name in shown for name in names)
    assert texts(qrmax.solve(problem).draw(states=["start"]))[2] == "start"
    with pytest.raises(UnknownNameError, match="unknown machine state 'strat'"):
        qrmax.solve(problem).draw(states=["strat"])
    with pytest.raises(ParameterError, match="nothing to draw"):
        qrmax.solve(problem).draw(states=["delivered"])


def test_states_without_coordinates_are_a_graph_with_all_transitions() -> None:
    problem = qrmax.make("random-mdp/3")
    picture = problem.draw(machine=False)
    mdp = problem.mdp
    links = {
        (s, int(t))
        for s in range(mdp.n_states)
        for a in range(mdp.n_actions)
        for t, p in zip(mdp.succ[s, a], mdp.prob[s, a], strict=True)
        if p > 0 and t != s and not mdp.terminal[s]
    }
    assert len(of_kind(picture, "link")) == len(links)
    assert len(of_kind(picture, "terminal")) == int(mdp.terminal.sum())
    shapes = [item for item in picture.items if isinstance(item, Shape)]
    points = [point for shape in shapes for part in shape.outline for point in part.points]
    assert all(picture.left <= p.x <= picture.left + picture.width for p in points)


def test_a_graph_of_too_many_states_is_refused_with_advice() -> None:
    n = MOST_NODES + 1
    mdp = qrmax.TabularMDP([[[s]] for s in range(n)], [[[1.0]]] * n)
    problem = qrmax.Problem(mdp, qrmax.load_task("exp1"), [{"coffee"}, {"office"}], [0] * n)
    with pytest.raises(ParameterError, match="give coordinates"):
        problem.draw()


def test_states_with_the_same_coordinates_share_a_cell_without_overlap() -> None:
    ground = ground_of(qrmax.make("river-swim/patrol"))
    boxes = [(p.middle.x - p.width / 2, p.middle.x + p.width / 2) for p in ground.places]
    for (_, end), (begin, _) in pairwise(sorted(boxes)):
        assert end <= begin + 1e-9
    assert ground.width == pytest.approx(sum(b - a for a, b in boxes))


def test_the_field_of_a_continuous_problem_has_the_values_of_its_solution() -> None:
    problem = qrmax.make("continuous/line/ab")
    solution = qrmax.solve_continuous(problem, 0.95, per_cell=8)
    ground, grid = plane_ground(problem), solution.grid
    values = solution.q[:, 0].max(axis=1).reshape(20, -1)  # [cell, point], at the start
    expected = [np.interp(x % 1.0, grid.x, values[int(x)]) for x in ground.at[:, 0].tolist()]
    scale = ColourScale.of(expected)
    picture = solution.draw("values", states=["start"])
    shapes = of_kind(picture, "value")
    origin = min(point.x for shape in shapes for point in rectangles(shape))
    for place, value in zip(ground.places, expected, strict=True):
        fills = {shape.look.fill for shape in shapes if covers(shape, origin + place.middle.x)}
        assert fills == {scale.colour(value)}


def covers(shape: Shape, x: float) -> bool:
    corners = [part.points[0].x for part in shape.outline if part.points]
    boxes = zip(corners[::4], corners[1::4], strict=True)
    return any(left <= x <= right for left, right in boxes)


def test_known_pairs_are_those_with_enough_visits(run: Run) -> None:
    counts = run.agent.visits()
    assert counts is not None
    assert counts.n.shape == (108, 4)
    inner = ~run.problem.mdp.terminal  # type: ignore[union-attr]
    picture = run.draw("known")
    expected = {
        KNOWN: int((counts.n[inner] >= 39).sum()),
        TRIED: int(((counts.n[inner] > 0) & (counts.n[inner] < 39)).sum()),
        UNTRIED: int((counts.n[inner] == 0).sum()),
    }
    for kind, (colour, number) in zip(("known", "tried", "untried"), expected.items(), strict=True):
        [shape] = of_kind(picture, kind)
        assert shape.look.fill == colour
        assert sum(part.command == "Z" for part in shape.outline) == number


@pytest.mark.parametrize("agent", ["rmax", "psrl", "qr-ucb"])
def test_agents_that_count_say_so_in_the_shape_of_what_they_learn(agent: str) -> None:
    given = {"horizon": 20} if agent == "psrl" else {}
    found = qrmax.train(agent, "river-swim/patrol", max_steps=500, stop="budget", **given)
    counts = found.agent.visits()
    assert counts is not None
    joint = (10, 2, 2) if agent in ("rmax", "psrl") else (10, 2)
    assert counts.n.shape == joint
    assert 0 < counts.n.sum() <= 500
    assert found.draw("visits").title.endswith("visits")


def test_a_learner_without_counts_or_buckets_says_what_can_be_drawn() -> None:
    found = qrmax.train("q-learning", "river-swim/patrol", max_steps=200, stop="budget")
    for show in ("visits", "known"):
        with pytest.raises(ParameterError, match="counts no visits"):
            found.draw(show)
    with pytest.raises(ParameterError, match="no buckets"):
        found.draw("buckets")
    assert found.draw("policy")


def test_every_bucket_in_sight_is_an_area_of_the_picture() -> None:
    found = qrmax.train(
        "bucket-qrmax", "continuous/line/ab", max_steps=2000, stop="budget", grid=10, t_env=2
    )
    areas = of_kind(found.draw("buckets"), "bucket")
    assert len(areas) == len(found.agent.buckets)  # type: ignore[attr-defined]
    assert found.draw("both")
    assert found.draw("visits")


def test_machines_show_their_current_state_and_automata_what_they_accept() -> None:
    machine = qrmax.load_task("exp1")
    [box] = of_kind(machine.draw("has_coffee"), "current")
    names = [item for item in machine.draw().items if isinstance(item, Text)]
    [name] = [item for item in names if item.text == "has_coffee"]
    xs = [point.x for part in box.outline for point in part.points]
    assert min(xs) < name.at.x < max(xs)
    assert not of_kind(machine.draw(), "current")
    with pytest.raises(UnknownNameError, match="machine state"):
        machine.draw("coffee")
    dfa = qrmax.compile_formula("F(coffee & F office)")
    assert len(of_kind(dfa.draw(), "accepting ring")) == len(dfa.accepting)


def test_notebooks_show_problems_machines_automata_solutions_and_runs(run: Run) -> None:
    problem = run.problem
    assert problem is not None
    machine = problem.machine
    shown = [problem, machine, qrmax.compile_formula("F coffee"), qrmax.solve(problem), run]  # type: ignore[arg-type]
    shown.append(qrmax.make("continuous/line/ab"))
    shown.append(qrmax.solve_horizon(problem, 20))  # type: ignore[arg-type]
    for thing in shown:
        svg = thing._repr_svg_()  # type: ignore[attr-defined]
        assert ElementTree.fromstring(svg).tag.endswith("svg")


@pytest.mark.parametrize("name", ["problem", "solution"])
def test_the_picture_of_a_small_problem_is_as_it_was(name: str, tiny: qrmax.Problem) -> None:
    picture = tiny.draw() if name == "problem" else qrmax.solve(tiny).draw()
    assert picture.svg() == (GOLDEN / f"tiny-{name}.svg").read_text(encoding="utf-8")
