from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings

from coffee_task import pick_up
from qrmax import Edge, Problem, RewardMachine, TabularMDP
from qrmax.errors import ModelError, QRMaxWarning
from qrmax.problems.simulator import AGE, OVER, Simulator
from qrmax.seeding import stream
from random_problems import problems
from small_problems import LEFT, RIGHT, errand

SAMPLES = 4000


class Dictated:
    """A source of chance that says what it is told, and counts."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)

    def random(self) -> float:
        return self.numbers.pop(0)


def shop(start: object = 0, **changes: object) -> Problem:
    """Two streets and a shop with coffee; either action may lead anywhere."""
    prob = [[[0.5, 0.2, 0.3], [1.0, 0.0, 0.0]]] * 3
    succ = [[[0, 1, 2], [2, 0, 0]]] * 3
    reward = [[[0.0, 1.0, -1.0], [5.0, 0.0, 0.0]]] * 3
    mdp = TabularMDP(succ, prob, reward, start=start)
    return Problem(mdp, pick_up(0.8), [(), ["coffee"]], [0, 0, 1], **changes)


def test_a_step_draws_for_the_world_first_and_then_for_the_machine() -> None:
    simulator = Simulator(shop(), Dictated(0.0, 0.75, 0.79))
    simulator.reset()
    step = simulator.step(0)  # 0.75 is beyond 0.5 and 0.2; 0.79 is below 0.8
    assert (step.s, step.q, step.label) == (2, 1, 1)
    assert (step.r_env, step.r_task) == (-1.0, 1.0)
    assert (step.terminated, step.truncated, step.world_ended) == (True, False, False)
    assert simulator.rng.numbers == []


def test_the_machine_draws_only_where_it_has_several_outcomes() -> None:
    chance = Dictated(0.0, 0.1, 0.6, 0.99, 0.81)
    simulator = Simulator(shop(), chance)
    simulator.reset()
    assert simulator.step(0).s == 0  # no coffee there
    assert simulator.step(0).s == 1
    assert len(chance.numbers) == 2
    step = simulator.step(0)
    assert (step.s, step.q, step.r_task, step.terminated) == (2, 0, 0.0, False)  # it failed
    assert chance.numbers == []


def test_a_certain_step_draws_one_number_all_the_same() -> None:
    """So that the chance of the world does not depend on where it is certain."""
    simulator = Simulator(errand(), Dictated(0.3, 0.4, 0.5))
    simulator.reset()
    simulator.step(LEFT)
    simulator.step(RIGHT)
    assert simulator.rng.numbers == []


def test_frequencies_are_those_of_the_problem() -> None:
    simulator = Simulator(shop(start=[0.25, 0.75, 0.0]), stream(1, "world"))
    starts: Counter[int] = Counter()
    seen: Counter[tuple[int, int]] = Counter()
    for _ in range(SAMPLES):
        simulator.reset()
        starts[simulator.s] += 1
        step = simulator.step(0)
        seen[step.s, step.q] += 1
    assert starts[0] / SAMPLES == pytest.approx(0.25, abs=0.03)
    assert starts[2] == 0
    expected = {(0, 0): 0.5, (1, 0): 0.2, (2, 1): 0.3 * 0.8, (2, 0): 0.3 * 0.2}
    assert seen.keys() == expected.keys()
    for pair, share in expected.items():
        assert seen[pair] / SAMPLES == pytest.approx(share, abs=0.03)


def test_starts_that_are_over_are_never_drawn() -> None:
    """By the machine, which reads the start, and by the world; the others keep their shares."""
    machine = RewardMachine([Edge("go", "goal", "there")], initial="go", success=["there"])
    mdp = TabularMDP(
        [[[s]] for s in range(4)],
        np.ones((4, 1, 1)),
        terminal=[False, False, True, False],
        start=[0.1, 0.3, 0.4, 0.2],
    )
    problem = Problem(mdp, machine, [(), ["goal"]], [0, 1, 0, 0])
    simulator = Simulator(problem, stream(1, "world"))
    starts: Counter[int] = Counter()
    for _ in range(SAMPLES):
        simulator.reset()
        assert not simulator.over
        starts[simulator.s] += 1
    assert starts.keys() == {0, 3}
    assert starts[0] / SAMPLES == pytest.approx(1 / 3, abs=0.03)


def test_a_problem_whose_every_episode_is_over_at_once_is_refused() -> None:
    machine = RewardMachine([Edge("go", "goal", "there")], initial="go", success=["there"])
    mdp = TabularMDP([[[0]]], [[[1.0]]])
    with pytest.warns(QRMaxWarning, match="over before the first step"):
        problem = Problem(mdp, machine, [["goal"]], [0])
    with pytest.raises(ModelError, match="every episode is over before it begins"):
        Simulator(problem, stream(1, "world"))


def test_the_machine_reads_the_start() -> None:
    simulator = Simulator(errand(start=0), stream(1, "world"))
    simulator.reset()
    assert (simulator.s, simulator.q) == (0, 1)  # it has the key


def test_an_episode_is_cut_off_at_its_limit_and_begins_anew() -> None:
    simulator = Simulator(errand(limit=3), stream(1, "world"))
    assert simulator.over  # nothing has begun
    for _ in range(2):
        simulator.reset()
        cut = [simulator.step(RIGHT).truncated for _ in range(3)]
        assert cut == [False, False, True]
        assert simulator.over
    assert simulator.state[AGE] == 3
    simulator.reset()
    assert simulator.state[[AGE, OVER]].tolist() == [0, 0]


def test_what_ends_at_the_limit_is_both_ended_and_cut_off() -> None:
    simulator = Simulator(errand(start=0, limit=3), stream(1, "world"))
    simulator.reset()
    steps = [simulator.step(RIGHT) for _ in range(3)]
    assert [step[5:7] for step in steps] == [(False, False), (False, False), (True, True)]
    assert steps[-1].r_task == 1.0


@pytest.mark.parametrize("ends_world", [False, True])
@pytest.mark.parametrize("start", [0, 2], ids=["with the key", "without"])
def test_it_says_whether_the_world_or_the_machine_has_ended(ends_world: bool, start: int) -> None:
    simulator = Simulator(errand(start=start, exit_ends_world=ends_world), stream(1, "world"))
    simulator.reset()
    for _ in range(3 - start):
        step = simulator.step(RIGHT)
    assert step.terminated == (ends_world or start == 0)
    assert step.world_ended == ends_world


def test_without_a_limit_nothing_is_ever_cut_off() -> None:
    simulator = Simulator(errand(), stream(1, "world"))
    simulator.reset()
    assert not any(simulator.step(RIGHT).truncated for _ in range(100))


@given(problems())
@settings(max_examples=30)
def test_all_problems_are_arrays_of_one_kind(problem: Problem) -> None:
    """So that one compilation, of several seconds, serves them all."""
    assume(problem.start()[~problem.done()].any())
    assert kinds(problem) == kinds(errand())


def kinds(problem: Problem) -> list[object]:
    arrays = Simulator(problem, stream(1, "world")).world[:-1]
    return [(a.dtype, a.ndim, a.flags.c_contiguous, a.flags.writeable) for a in arrays]
