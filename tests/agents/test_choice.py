"""Ties: which of the best actions is taken."""

from __future__ import annotations

import numpy as np
import pytest

from learners import VARIANTS, Variant, trial
from qrmax.agents.choice import among_best, one_of
from qrmax.agents.step_loops import _choose, first_best
from qrmax.problems.simulator import Step
from qrmax.seeding import Stream, stream
from small_problems import LEFT, RIGHT, errand

pytestmark = pytest.mark.small_enough_without_jit

DRAWS = 3000


def shares(values: list[float], slack: float = 0.0) -> np.ndarray:
    """How often each action is taken."""
    rng = stream(3, "ties")
    taken = [among_best(values, slack, rng) for _ in range(DRAWS)]
    return np.bincount(taken, minlength=len(values)) / DRAWS


def draws(rng: Stream, of: Stream) -> int:
    """How many numbers `of` has given, beside a fresh `rng` of the same name."""
    target, count = of.position(), 0
    while rng.position() != target:
        rng.random()
        count += 1
    return count


@pytest.mark.parametrize(
    ("values", "best"),
    [
        ([1.0, 1.0, 1.0, 1.0], [0, 1, 2, 3]),
        ([1.0, 0.5, 1.0, 1.0], [0, 2, 3]),
        ([-2.0, -1.0, -1.0], [1, 2]),
        ([0.0, 0.0, -1e-300], [0, 1]),
        ([1.0, np.nextafter(1.0, 2.0)], [1]),
        ([5.0], [0]),
    ],
)
def test_each_of_the_best_is_taken_equally_often(values: list[float], best: list[int]) -> None:
    found = shares(values)
    expected = np.zeros(len(values))
    expected[best] = 1 / len(best)
    chi_square = sum((found[a] - expected[a]) ** 2 / expected[a] for a in best) * DRAWS
    assert chi_square < 16.3  # exceeded by chance once in a thousand times, with three to spare
    assert found[expected == 0.0].sum() == 0.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_is_within_the_slack_is_equal(sign: float) -> None:
    least = sign * 100.0 - 0.01 * 100.0  # relative to the size of the best
    assert (shares([sign * 100.0, least, np.nextafter(least, -1e9)], 0.01) > 0).tolist() == [
        True,
        True,
        False,
    ]


def test_a_number_is_drawn_only_where_there_is_a_choice() -> None:
    rng = stream(3, "ties")
    among_best([1.0, 2.0], 0.0, rng)
    assert draws(stream(3, "ties"), rng) == 0
    among_best([2.0, 2.0], 0.0, rng)
    assert draws(stream(3, "ties"), rng) == 1


@pytest.mark.parametrize(
    "values",
    [[1.0, 1.0, 1.0], [0.0, 2.0, 2.0], [3.0, 2.0, 3.0], [0.0, 1.0, 0.5], [-1.0, -1.0], [4.0]],
)
@pytest.mark.parametrize("variant", [v for v in VARIANTS if v.plans], ids=str)
def test_compiled_choice_is_that_of_the_agent(variant: Variant, values: list[float]) -> None:
    agent = trial(variant, errand()).agent
    rng, row = stream(7, "agent"), np.array(values)
    rng.refill(200)
    for _ in range(100):
        slack, first = agent.config.slack, agent.first_wins
        assert one_of(agent.greedy_actions(values), agent.rng) == _choose(
            row, slack, first, rng.block, rng.at
        )
    assert rng.position() == agent.rng.position()


@pytest.mark.parametrize("name", ["rmax", "rmax-rm", "qrmax", "qrmax-rm"])
@pytest.mark.parametrize(("tolerance", "taken"), [(1e-5, {LEFT, RIGHT}), (1e-7, {LEFT})])
def test_what_planning_cannot_tell_apart_is_equal(
    name: str, tolerance: float, taken: set[int]
) -> None:
    """Slack is 2 tolerance / (1 - gamma): 20 times the tolerance."""
    agent = trial(name, errand(), t_env=1, tolerance=tolerance).agent
    for a, pays in ((LEFT, 1.0), (RIGHT, 1.0 - 1e-5)):
        agent.update(1, 0, a, Step(3, 2, 2, pays, 0.0, True, False, True))
    assert {agent.act(1, 0) for _ in range(40)} == taken


@pytest.mark.parametrize("name", ["rmax", "rmax-rm", "qrmax", "qrmax-rm"])
def test_published_ties_are_for_the_first_unless_all_are_equal(name: str) -> None:
    agent = trial(Variant(f"{name}-published"), errand()).agent
    assert agent.greedy_actions([0.5, 1.0, 1.0]) == [1]
    assert agent.greedy_actions([1.0, 1.0, 1.0]) == [0, 1, 2]
    assert agent.greedy_actions([1.0, 1.0 - 1e-9, 1.0]) == [0]


def test_the_first_best_of_a_table() -> None:
    table = np.array([[[1.0, 1.0, 0.0]], [[0.0, 2.0, 2.0]], [[-1.0, -2.0, -1.0]]])
    assert first_best(table).tolist() == [[0], [1], [0]]
