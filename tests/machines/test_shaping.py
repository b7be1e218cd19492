"""Potential-based reward shaping preserves optimal policies."""

from __future__ import annotations

import numpy as np
import pytest

import qrmax
from coffee_task import coffee_task
from qrmax.errors import ParameterError, SizeError
from qrmax.logic.guards import Guard
from qrmax.machines import shaping
from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.shaping import potentials
from qrmax.machines.task_files import task_names
from qrmax.planning import reference

GAMMA = 0.9

TASKS = {
    "a sequence": RewardMachine.from_ltlf("F(coffee & X F office)"),
    "paid again and again": RewardMachine.from_ltlf("F(coffee & last)", 0.5, pay="each"),
    "with penalties": RewardMachine.from_ltlf({"F office": 1.0, "F mail": -2.0}),
    "with chance": RewardMachine(
        [
            Edge("go", "coffee", "has", probability=0.5),
            Edge("go", "coffee", "spilt", -1, probability=0.2),
            Edge("has", "office", "done", 1.0),
        ],
        initial="go",
        success=["done"],
        failure=["spilt"],
    ),
    "failing": RewardMachine(
        [Edge("go", "!mail & !office", "go"), Edge("go", "office", "done", 1.0)],
        initial="go",
        success=["done"],
        undefined="fail",
    ),
}


def test_potentials_are_the_values_of_someone_who_chooses_the_edges() -> None:
    task = RewardMachine.from_ltlf("F(a & X F b)", 2.0)
    assert potentials(task, 0.5) == {"q0": 1.0, "q1": 2.0, "satisfied": 0.0}
    again = RewardMachine.from_ltlf("F(a & last)", pay="each")
    assert potentials(again, 0.5) == pytest.approx({"q0": 2.0, "q1": 2.0})


def test_progress_costs_nothing_and_dawdling_does() -> None:
    shaped = RewardMachine.from_ltlf("F(a & X F b)", 2.0).shaped(0.5)
    assert shaped.run([{"a"}, {"b"}]).rewards == (0.0, 0.0)
    assert shaped.run([set(), {"a"}, set()]).rewards == (-0.5, 0.0, -1.0)
    assert shaped.run([{"a"}, {"b"}]).success


@pytest.mark.parametrize("name", TASKS)
def test_values_shrink_by_the_potential_and_the_best_actions_are_the_same(name: str) -> None:
    world, task = qrmax.make("office/map1/exp1"), TASKS[name]
    shaped = task.shaped(GAMMA, world_ends="decoration")
    assert shaped.states == task.states
    plain, paid = (
        qrmax.Problem(world.mdp, machine, world.labels, world.label) for machine in (task, shaped)
    )
    value, shaped_value = reference.solve(plain, GAMMA), reference.solve(paid, GAMMA)
    potential = potentials(task, GAMMA)
    going_on = ~plain.done()
    shift = np.array([potential[state] for state in task.states])
    assert (shift > 0).any()
    assert np.allclose((value - shift)[going_on], shaped_value[going_on], atol=1e-9)
    worth = reference.action_values(plain, value, GAMMA)
    shaped_worth = reference.action_values(paid, shaped_value, GAMMA)
    best = worth >= worth.max(axis=2, keepdims=True) - 1e-8
    shaped_best = shaped_worth >= shaped_worth.max(axis=2, keepdims=True) - 1e-8
    assert (best == shaped_best)[going_on].all()


def test_a_discount_outside_its_range_is_refused() -> None:
    with pytest.raises(ParameterError, match="gamma is 1"):
        coffee_task().shaped(1.0)


def test_a_shaped_machine_knows_what_it_was_made_of_and_says_so_in_its_name() -> None:
    task = coffee_task(name="bring")
    shaped = task.shaped(0.5, world_ends="hole")
    assert shaped.shaping is not None
    assert shaped.shaping.unshaped is task
    assert (shaped.shaping.gamma, shaped.shaping.world_ends) == (0.5, Guard.parse("hole"))
    assert shaped.shaping.potential == potentials(task, 0.5)
    assert shaped.name == "bring (shaped)"
    assert task.shaping is None


def test_shaping_a_shaped_machine_begins_with_the_plain_one() -> None:
    task = coffee_task(name="bring")
    again = task.shaped(0.9, world_ends="mud").shaped(0.5)
    assert again == task.shaped(0.5)
    assert again.shaping == task.shaped(0.5).shaping


@pytest.mark.parametrize("gamma", [0.3, 0.5, 0.9, 0.95, 0.99])
def test_a_reward_is_zero_and_not_nearly_zero(gamma: float) -> None:
    for name in task_names():
        task = qrmax.load_task(name)
        paid = [edge.reward for edge in task.shaped(gamma).edges]
        assert not [reward for reward in paid if 0.0 < abs(reward) < 1e-6], name
        assert 0.0 in paid or not any(potentials(task, gamma).values()), name


def test_two_ways_that_are_equally_good_both_cost_nothing() -> None:
    task = RewardMachine(
        [
            Edge("go", "a", "done", 0.1),
            Edge("go", "b", "on", 0.1 - 0.9 * 0.5),  # 0.9 * 0.5 more than this is not quite 0.1
            Edge("on", "a", "done", 0.5),
        ],
        initial="go",
        success=["done"],
    ).shaped(0.9)
    assert task.run([{"a"}]).rewards == (0.0,)
    assert task.run([{"b"}, {"a"}]).rewards == (0.0, 0.0)


def test_rewards_of_any_size_are_shaped_alike() -> None:
    for size in (1e-150, 1e-9, 1e9, 1e150):
        paid = RewardMachine.from_ltlf({"F(a & X F b)": size, "F c": -3 * size}).shaped(0.9)
        whole = RewardMachine.from_ltlf({"F(a & X F b)": 1.0, "F c": -3.0}).shaped(0.9)
        found = [edge.reward / size for edge in paid.edges]
        assert found == pytest.approx([edge.reward for edge in whole.edges], rel=1e-9, abs=0.0)


def test_potentials_that_take_too_long_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shaping, "MAX_UPDATES", 1000)
    again = RewardMachine.from_ltlf("F(a & last)", pay="each")
    with pytest.raises(SizeError, match=r"gamma is 0\.999.* 1000 updates"):
        again.shaped(0.999)
    coffee_task().shaped(0.999)  # pays once: that is settled at once
