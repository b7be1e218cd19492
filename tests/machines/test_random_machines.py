"""Reward machines with chance in them: what a label can do, how it is drawn, what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from coffee_task import coffee_task, pick_up
from qrmax.errors import TaskError
from qrmax.machines.edges import Edge, Outcome
from qrmax.machines.machine_table import RANDOM_START
from qrmax.machines.reward_machine import MachineStep, RewardMachine

COFFEE = frozenset({"coffee"})


def machine(*edges: Edge, **changes: Any) -> RewardMachine:
    return RewardMachine(edges, **{"initial": "s", **changes})


def half(target: str, reward: float = 0.0, guard: str = "a") -> Edge:
    return Edge("s", guard, target, reward, probability=0.5)


def test_what_is_missing_to_1_leaves_the_machine_where_it_is_without_pay() -> None:
    done, stayed = pick_up(0.8).outcomes("start", COFFEE)
    assert done == Outcome(0.8, "has_coffee", 1.0)
    assert stayed == Outcome(pytest.approx(0.2), "start", 0.0)


def test_what_is_missing_stays_also_where_undefined_labels_fail() -> None:
    task = pick_up(0.8, undefined="fail")
    assert [outcome.state for outcome in task.outcomes("start", COFFEE)] == ["has_coffee", "start"]
    assert task.outcomes("start", ()) == (Outcome(1.0, "failed", 0.0),)


def test_edges_with_the_same_guard_are_alternatives_however_it_is_written() -> None:
    task = machine(half("t", 1.0, "a & b"), Edge("s", "c", "u"), half("s", 2.0, "(a)&b"))
    assert task.outcomes("s", {"a", "b"}) == (Outcome(0.5, "t", 1.0), Outcome(0.5, "s", 2.0))
    assert task.outcomes("s", {"c"}) == (Outcome(1.0, "u", 0.0),)


def test_one_target_may_pay_at_random() -> None:
    task = machine(half("t", 1.0), half("t", 5.0))
    assert task.outcomes("s", {"a"}) == (Outcome(0.5, "t", 1.0), Outcome(0.5, "t", 5.0))


def test_the_first_guard_that_holds_wins_as_in_a_certain_machine() -> None:
    task = machine(half("t"), Edge("s", "a | b", "u"), half("v"))
    assert {outcome.state for outcome in task.outcomes("s", {"a"})} == {"t", "v"}
    assert task.outcomes("s", {"b"}) == (Outcome(1.0, "u", 0.0),)


def test_alternatives_of_a_certain_edge_are_shadowed() -> None:
    for later in (1.0, 0.5):
        task = machine(Edge("s", "a", "t", 1.0), Edge("s", "a", "u", 2.0, later))
        assert task.outcomes("s", {"a"}) == (Outcome(1.0, "t", 1.0),)
        assert not task.is_stochastic


def test_a_machine_is_random_where_some_event_has_several_outcomes() -> None:
    assert pick_up(0.8).is_stochastic
    assert machine(half("t"), half("u")).is_stochastic
    assert not pick_up(1.0).is_stochastic
    assert not coffee_task().is_stochastic
    assert not machine().is_stochastic


@pytest.mark.parametrize("chances", [[1 / 3] * 3, [0.1, 0.2, 0.7], [0.5, 0.5 - 1e-10], [0.1] * 10])
def test_probabilities_that_miss_1_by_rounding_add_up_to_1(chances: list[float]) -> None:
    task = machine(*(Edge("s", "a", f"t{i}", 0.0, p) for i, p in enumerate(chances)))
    outcomes = task.outcomes("s", {"a"})
    assert "s" not in {outcome.state for outcome in outcomes}
    assert math.fsum(outcome.probability for outcome in outcomes) == pytest.approx(1.0, abs=1e-15)


def test_an_edge_that_is_certain_but_for_rounding_is_certain() -> None:
    task = machine(Edge("s", "a", "t", 0.0, 1.0 - 1e-12))
    assert task.outcomes("s", {"a"}) == (Outcome(1.0, "t", 0.0),)
    assert not task.is_stochastic


def test_every_outcome_can_be_reached() -> None:
    task = machine(half("t"), half("u"), Edge("u", "b", "v", probability=0.1), states=[*"stuvw"])
    assert task.reachable() == {*"stuv"}


def test_outcomes_are_drawn_as_often_as_they_should_be() -> None:
    task = machine(Edge("s", "a", "t", 1.0, 0.5), Edge("s", "a", "t", 5.0, 0.2))
    rng, samples = np.random.default_rng(3), 20_000
    steps = [task.step("s", {"a"}, rng) for _ in range(samples)]
    for chance, state, reward in task.outcomes("s", {"a"}):
        share = steps.count(MachineStep(state, reward)) / samples
        assert abs(share - chance) < 5 * math.sqrt(chance * (1 - chance) / samples)


def test_a_certain_event_leaves_the_generator_alone() -> None:
    rng = np.random.default_rng(3)
    task = pick_up(0.8)
    task.step("start", (), rng)
    task.step("has_coffee", COFFEE, rng)
    assert rng.random() == np.random.default_rng(3).random()


def test_a_random_event_takes_one_number_from_the_generator() -> None:
    rng, same = np.random.default_rng(3), np.random.default_rng(3)
    pick_up(0.8).step("start", COFFEE, rng)
    same.random()
    assert rng.random() == same.random()


def test_a_run_is_the_same_for_the_same_seed_and_another_for_others() -> None:
    def run(seed: int) -> tuple[str, ...]:
        return pick_up(0.5).run([COFFEE] * 10, np.random.default_rng(seed)).states

    assert run(4) == run(4)
    assert len({run(seed) for seed in range(20)}) > 1


def test_a_random_event_without_a_generator_says_what_to_give() -> None:
    for call in (lambda: pick_up().step("start", COFFEE), lambda: pick_up().run([(), COFFEE])):
        with pytest.raises(TaskError, match=r"from 'start' on \{coffee\} is stochastic; .*rng="):
            call()


def test_a_random_machine_needs_no_generator_where_nothing_is_random() -> None:
    assert pick_up().step("start", {"tea"}) == MachineStep("start", 0.0)
    assert pick_up().run([(), ()]).state == "start"


def test_reset_refuses_to_read_a_start_by_chance() -> None:
    with pytest.raises(
        TaskError, match=r"start has the label \{coffee\}.*set consume_initial = false"
    ):
        pick_up().reset(COFFEE)
    assert pick_up().reset(()) == "start"
    assert pick_up(consume_initial=False).reset(COFFEE) == "start"


def test_the_table_has_an_outcome_axis_padded_with_staying() -> None:
    table = pick_up(0.75).table([frozenset(), COFFEE])
    assert table.prob.tolist() == [[[1.0, 0.0], [0.75, 0.25]], [[1.0, 0.0], [1.0, 0.0]]]
    assert table.next_state.tolist() == [[[0, 0], [1, 0]], [[1, 1], [1, 1]]]
    assert table.reward.tolist() == [[[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]
    assert table.initial.tolist() == [0, RANDOM_START]


@pytest.mark.parametrize("chance", [0, -0.1, 1.0000001, math.nan, math.inf, "often", None, 10**400])
def test_a_probability_is_a_number_above_0_and_at_most_1(chance: Any) -> None:
    with pytest.raises(TaskError, match=r"the probability of 's' -> 't' is .*above 0, at most 1"):
        Edge("s", "a", "t", 0.0, chance)


@pytest.mark.parametrize(
    ("chances", "total"), [([0.6, 0.6], "1.2"), ([0.5, 1.0], "1.5"), ([0.5, 0.5, 2e-9], "1.000000")]
)
def test_probabilities_that_sum_to_more_than_1_are_refused_with_state_guard_and_sum(
    chances: list[float], total: str
) -> None:
    edges = [Edge("s", "a & b", f"t{i}", 0.0, p) for i, p in enumerate(chances)]
    with pytest.raises(TaskError) as caught:
        machine(*edges, name="mine")
    message = str(caught.value)
    assert message.startswith("mine: ")
    assert "edges of 's' when 'a & b' sum to " + total in message
    assert not message.endswith("sum to 1; allowed: at most 1")


def test_alternatives_do_not_overlap_for_a_strict_machine_but_other_edges_do() -> None:
    assert machine(half("t"), half("u"), strict=True).is_stochastic
    for rival in (Edge("s", "a | b", "v"), half("v", guard="a & b")):
        with pytest.raises(TaskError, match="strict, but two edges of 's' overlap"):
            machine(half("t"), rival, strict=True)
    with pytest.raises(TaskError, match="strict, but two edges of 's' overlap"):
        machine(Edge("s", "a", "t"), half("u"), strict=True)


def test_an_edge_shows_and_compares_its_probability() -> None:
    assert repr(half("t", 2)) == "Edge('s' -> 't' when 'a', reward 2, probability 0.5)"
    assert "probability" not in repr(Edge("s", "a", "t", 2, 1))
    assert half("t") != Edge("s", "a", "t")
    assert pick_up(0.8) == pick_up(0.8)
    assert pick_up(0.8) != pick_up(0.7)


def test_the_table_for_people_has_a_column_of_probabilities_where_some_is_below_1() -> None:
    lines = str(machine(Edge("s", "a", "t", 1.0, 0.25), Edge("t", "a", "s"))).split("\n")
    assert lines[2:6] == [
        "from  when  to  reward  probability",
        "----  ----  --  ------  -----------",
        "s     a     t   1       0.25",
        "t     a     s   0       1",
    ]
    assert "probability" not in str(coffee_task())
