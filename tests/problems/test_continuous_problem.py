"""Playing a continuous problem: what is drawn, read, paid and ended."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import qrmax
from gym_worlds import in_order
from planes import plane_of, walk
from qrmax.errors import ModelError, ParameterError, QRMaxWarning, TaskError
from qrmax.problems.continuous_problem import ContinuousProblem, PlaneSimulator, check_continuous
from qrmax.problems.plane import DOWN, NEAR, RIGHT, gaussian
from qrmax.problems.simulator import AGE
from qrmax.seeding import stream

SAMPLES = 4000
ON, BACK = 0, 1  # the moves on a line


class Dictated:
    """A source of chance that says what it is told, and counts."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)

    def random(self) -> float:
        return self.numbers.pop(0)


def player(problem: ContinuousProblem, chance: Any = None) -> PlaneSimulator:
    rng = stream(1, "world") if chance is None else chance
    simulator = PlaneSimulator(problem, rng, lambda seen, label: (tuple(seen), label))
    simulator.reset()
    return simulator


def lottery(chance: float = 0.8) -> qrmax.RewardMachine:
    """A succeeds with a chance, and pays 5 then."""
    edges = [qrmax.Edge("go", "A", "there", 5.0, probability=chance)]
    return qrmax.RewardMachine(edges, initial="go", success=["there"], name="lottery")


def test_a_step_draws_two_numbers_and_one_more_where_the_machine_is_random() -> None:
    problem = walk(". A .", lottery(), noise=0.1, step=1.0)
    chance = Dictated(0.0, 0.3, 0.6, 0.79, 0.2, 0.5)
    simulator = player(problem, chance)
    assert len(chance.numbers) == 5  # one for the start
    step = simulator.step(ON)
    assert (step.label, step.q, step.r_task) == (1, 1, 5.0)
    assert simulator.position[0] == 1.5 + 0.1 * gaussian(0.3, 0.6)[0]
    assert len(chance.numbers) == 2
    simulator = player(problem, Dictated(0.0, 0.3, 0.6, 0.81, 0.1, 0.5))
    assert simulator.step(ON).q == 0  # it failed
    assert simulator.step(ON).label == 0  # nothing to draw for there
    assert simulator.rng.numbers == []


def test_the_machine_is_as_random_as_it_says() -> None:
    simulator = player(walk(". A .", lottery(0.3), noise=0.1, step=1.0))
    seen: Counter[float] = Counter()
    for _ in range(SAMPLES):
        simulator.reset()
        seen[simulator.step(ON).r_task] += 1
    assert seen[5.0] / SAMPLES == pytest.approx(0.3, abs=0.03)


def test_a_learner_perceives_the_position_in_its_own_units_and_the_label() -> None:
    simulator = player(qrmax.make("continuous/line/ab", noise=0.0))
    assert simulator.s == ((0.025,), 0)
    for _ in range(13):
        step = simulator.step(ON)
    assert step.s == ((pytest.approx(0.35),), 1)  # where A begins
    assert simulator.observation().tolist() == pytest.approx([0.35])


def test_a_line_is_observed_as_one_number_and_a_plane_as_two() -> None:
    line, lake = qrmax.make("continuous/line/ab"), qrmax.make("continuous/frozen-lake/abc")
    assert (line.observations.low.tolist(), line.observations.high.tolist()) == ([0.0], [1.0])
    assert (lake.observations.low.tolist(), lake.observations.high.tolist()) == ([0, 0], [10, 10])
    assert player(lake).s == ((5.5, 0.5), 0)


def test_the_start_is_in_the_middle_of_its_cell_and_is_read() -> None:
    problem = walk(". . .\n\n. A B", in_order("A", "B"), start="1,1")
    assert (problem.start_position, problem.start_task_state) == ((1.5, 1.5), 1)
    simulator = player(problem)
    assert (simulator.position.tolist(), simulator.q) == ([1.5, 1.5], 1)


def test_a_machine_that_does_not_consume_the_start_does_not_read_it() -> None:
    task = qrmax.RewardMachine(
        [qrmax.Edge("go", "A", "there")], initial="go", success=["there"], consume_initial=False
    )
    assert player(walk("A . .", task)).q == 0


def test_an_episode_ends_in_a_hole_and_the_world_has_ended_it() -> None:
    simulator = player(walk(". H A", noise=0.0, step=1.0))
    step = simulator.step(ON)
    assert (step.terminated, step.world_ended, step.truncated) == (True, True, False)
    assert simulator.over


def test_an_episode_ends_with_the_task_and_the_world_has_not_ended_it() -> None:
    simulator = player(walk(". A .", noise=0.0, step=1.0))
    step = simulator.step(ON)
    assert (step.terminated, step.world_ended, step.r_task) == (True, False, 1.0)


def test_a_hole_that_is_only_crossed_does_not_count() -> None:
    step = player(walk(". H A", noise=0.0, step=2.0)).step(ON)
    assert (step.label, step.r_task, step.world_ended) == (1, 1.0, False)


def test_a_decoration_costs_what_it_should_and_ends_the_episode_or_not() -> None:
    for ends in (True, False):
        simulator = player(
            walk(
                ". * A",
                noise=0.0,
                step=1.0,
                decoration_penalty=7.0,
                decorations_terminate=ends,
            )
        )
        step = simulator.step(ON)
        assert (step.r_env, step.r_task, step.terminated) == (-7.0, 0.0, ends)
    assert simulator.step(ON).r_task == 1.0


def test_an_episode_is_cut_off_at_its_limit_and_begins_anew() -> None:
    simulator = player(walk(". . A", max_episode_steps=3))
    for episode in (1, 2):
        assert simulator.episodes == episode
        assert [simulator.step(BACK).truncated for _ in range(3)] == [False, False, True]
        assert simulator.over
        simulator.reset()
        assert simulator.state[AGE] == 0
    assert not any(player(walk(". . A", max_episode_steps=None)).step(BACK).truncated for _ in "12")


def test_the_noise_of_a_move_has_the_deviation_that_was_asked_for() -> None:
    picture = "\n\n".join([". . . . . . . . A"] * 9)
    simulator = player(walk(picture, start="4,4", noise=0.2, step=1.0))
    ends = []
    for _ in range(SAMPLES):
        simulator.reset()
        simulator.step(DOWN)
        ends.append(simulator.position.copy())
    error = 5 * 0.2 / np.sqrt(SAMPLES)
    np.testing.assert_allclose(np.mean(ends, axis=0), [4.5, 5.5], atol=error)
    np.testing.assert_allclose(np.cov(np.array(ends).T), np.eye(2) * 0.04, atol=error)


@pytest.mark.parametrize("columns", [20, 100])
def test_observations_become_the_positions_that_they_were_made_of(columns: int) -> None:
    """Also at the borders of cells: 43 * 0.05 / 0.05 is less than 43, before a wall, not behind."""
    from qrmax.source import Source
    from qrmax.worlds.grid import parse_map

    row = " ".join([*"." * (columns - 1), "A"])
    grid = parse_map(Source("my.txt", f"start: 0,0\n\n{row}"))
    problem = qrmax.make("continuous/line", map=grid, task=in_order("A"))
    border = np.arange(columns, dtype=float)
    for at in (border, border + 1.0 - NEAR, border + 0.37):
        seen = (at * problem.plane.scale)[:, None]
        x, y = problem.positions(seen).T
        np.testing.assert_allclose(x, at, atol=1e-12)
        np.testing.assert_array_equal(np.floor(x), border)
        assert (y == 0.5).all()


def test_positions_of_a_plane_have_both_coordinates() -> None:
    problem = qrmax.make("continuous/corridor/abc")
    seen = np.array([[0.5, 0.25], [0.0, 0.9]])
    np.testing.assert_allclose(problem.positions(seen), [[20.0, 2.5], [0.0, 9.0]])


def test_an_observation_outside_the_plane_is_one_at_its_border() -> None:
    """The highest observation that Gymnasium's space allows, say."""
    problem = qrmax.make("continuous/corridor/abc")
    seen = np.array([[1.0, 1.0], [-0.1, 2.0]])
    np.testing.assert_array_equal(problem.positions(seen), [[40 - NEAR, 10 - NEAR], [0, 10 - NEAR]])


def test_the_label_of_an_observation_is_that_of_its_cell() -> None:
    line, lake = qrmax.make("continuous/line/ab"), qrmax.make("continuous/frozen-lake/abc")
    named = [line.labels[line.label_of([x])] for x in (0.0, 0.35, 0.45, 0.6, 1.0)]
    assert named == [set(), {"A"}, set(), {"B"}, set()]
    assert lake.labels[lake.label_of([4.5, 4.5])] == {"A"}
    assert lake.labels[lake.label_of([10.0, 7.5])] == {"hole"}


def test_play_goes_on_from_any_place_in_the_plane() -> None:
    simulator = player(qrmax.make("continuous/frozen-lake/abc", noise=0.0))
    simulator.stand([3.5, 4.5])
    assert simulator.place == 43
    assert simulator.step(RIGHT).q == 1
    for outside in ([10.0, 1.0], [-0.1, 1.0], [1.0, np.nan]):
        with pytest.raises(ModelError, match="not in a plane of 10 x 10 cells"):
            simulator.stand(outside)


def made(**change: Any) -> ContinuousProblem:
    given: dict[str, Any] = {
        "plane": plane_of(np.zeros((1, 3, 2), dtype=bool)),
        "machine": in_order("A"),
        "labels": [(), ("A",)],
        "label": [0, 0, 1],
        "terminal": [False, False, False],
        "start": 0,
        "name": "mine",
    }
    return ContinuousProblem(**(given | change))


def test_a_problem_says_what_it_is() -> None:
    problem = made()
    assert repr(problem) == "ContinuousProblem('mine': 3 x 1 cells x 2 task states, 4 actions)"
    assert problem.done().tolist() == [[False, True]] * 3
    assert problem.reward_range() == (0.0, 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": [0, 1]}, r"label has shape \(2,\).* each of 3 cells"),
        ({"label": [0, 0, 2]}, "label is 2 at cell 2; allowed: 0 to 1"),
        ({"label": [0, -1, 0]}, "label is -1 at cell 1"),
        ({"terminal": [False]}, r"terminal has shape \(1,\)"),
        ({"start": 3}, "start is cell 3; allowed: 0 to 2"),
        ({"start": -1}, "start is cell -1"),
        ({"start": 2}, "every episode is over before it begins"),
        ({"terminal": [True, False, False]}, "every episode is over before it begins"),
        ({"plane": plane_of(np.zeros((1, 3, 2), dtype=bool))._replace(columns=2)}, "form a plane"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        made(**change)


def test_a_limit_that_is_none_is_refused() -> None:
    with pytest.raises(ParameterError, match="max_episode_steps is 0"):
        made(max_episode_steps=0)


def test_a_start_that_would_be_left_to_chance_is_refused() -> None:
    with pytest.raises(TaskError, match="stochastic"):
        made(machine=lottery(), start=2)


def test_a_proposition_that_is_nowhere_true_is_warned_of() -> None:
    with pytest.warns(QRMaxWarning, match="names 'B', which 'mine' does not have"):
        made(machine=in_order("A", "B"))


@pytest.mark.parametrize("given", ["continuous/line/ab", None, 3])
def test_what_is_no_continuous_problem_is_refused(given: object) -> None:
    with pytest.raises(ParameterError, match=r"needed: a ContinuousProblem.*qrmax\.make"):
        check_continuous(given)


def test_moves_are_those_of_the_map() -> None:
    simulator = player(walk(". .\n\n. A", noise=0.0, step=1.0))
    simulator.step(RIGHT)
    assert simulator.position.tolist() == [1.5, 0.5]
    assert simulator.step(DOWN).terminated
