"""Problems of shaped tasks: what judges them, and worlds that end where labels do not say so."""

from __future__ import annotations

import numpy as np
import pytest

import qrmax
from planes import walk
from qrmax.errors import QRMaxWarning
from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine
from small_problems import errand, fetch_and_leave


def two_rooms(labels: list[set[str]], *, world_ends: str) -> qrmax.Problem:
    """Stay in state 0, or go to 1, the goal, or to 2, where the world ends the episode."""
    task = RewardMachine([Edge("go", "goal", "there", 1.0)], initial="go", success=["there"])
    mdp = qrmax.TabularMDP([[[0], [1], [2]]] * 3, np.ones((3, 3, 1)), terminal=[False, False, True])
    return qrmax.Problem(mdp, task.shaped(0.9, world_ends=world_ends), labels, [0, 1, 2])


# --- what judges


def test_a_problem_of_a_shaped_task_is_judged_by_the_plain_one() -> None:
    task = qrmax.load_task("exp3")
    plain = qrmax.make("office/map1", task=task)
    shaped = qrmax.make("office/map1", task=task.shaped(0.9, world_ends="decoration"))
    assert (plain.name, shaped.name) == ("office/map1/exp3", "office/map1/exp3 (shaped)")
    evaluated = shaped.unshaped
    assert evaluated.machine is task
    assert evaluated.name == plain.name
    assert evaluated.mdp is shaped.mdp
    policy = qrmax.solve(shaped).policy
    assert qrmax.evaluate(evaluated, policy) == qrmax.evaluate(plain, policy)
    assert qrmax.evaluate(evaluated, policy).start_value == pytest.approx(
        qrmax.solve(plain).start_value
    )


def test_a_problem_of_a_plain_task_is_judged_by_itself() -> None:
    problem = errand()
    assert problem.unshaped is problem
    plane = walk(". A")
    assert plane.unshaped is plane


def test_what_judges_a_nominal_problem_is_nominal_too() -> None:
    problem = errand(slip=0.3, machine=fetch_and_leave().shaped(0.9))
    assert problem.unshaped.mdp is problem.mdp
    evaluated = problem.nominal().unshaped
    assert evaluated.machine.shaping is None
    assert evaluated.mdp.prob.min() == 1.0


def test_a_plane_with_a_shaped_task_is_judged_by_the_plain_one() -> None:
    task = walk(". A").machine
    shaped = walk(". A", task.shaped(0.9))
    assert shaped.unshaped.machine is task
    assert shaped.unshaped.table.reward.max() == 1.0
    assert shaped.name == shaped.unshaped.name + " (shaped)"


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("office/map4", "map4/exp6"),
        ("river-swim", "river-swim/patrol"),
        ("warehouse", "warehouse/deliver"),
        ("continuous/line", "continuous/ab"),
    ],
)
def test_a_shaped_task_has_the_problem_named_like_the_plain_one_and_shaped(
    name: str, task: str
) -> None:
    machine = qrmax.load_task(task)
    plain = qrmax.make(name, task=machine)
    ends = "decoration" if name.startswith("office") else "false"
    shaped = qrmax.make(name, task=machine.shaped(0.9, world_ends=ends))
    assert shaped.name == plain.name + " (shaped)"
    assert shaped.unshaped.name == plain.name


# --- where the world ends


@pytest.mark.parametrize("name", ["office/map1", "continuous/office/map1"])
def test_an_end_of_the_world_that_a_shaped_task_is_not_told_of_is_warned_of(name: str) -> None:
    task = qrmax.load_task("exp3")
    advice = r"at {decoration}, where .*\(shaped\)' ends.*shaped\(0.9, world_ends='decoration'\)"
    with pytest.warns(QRMaxWarning, match=advice):
        qrmax.make(name, task=task.shaped(0.9))
    qrmax.make(name, task=task.shaped(0.9, world_ends="decoration"))
    qrmax.make(name, task=task)
    qrmax.make(name, task=task.shaped(0.9), decorations_terminate=False)


@pytest.mark.parametrize("name", ["office/map1", "continuous/office/map1"])
def test_an_end_of_the_world_that_is_none_is_warned_of(name: str) -> None:
    shaped = qrmax.load_task("exp3").shaped(0.9, world_ends="decoration | coffee")
    with pytest.warns(QRMaxWarning, match=r"it holds at {coffee}.*world_ends='decoration'\)"):
        qrmax.make(name, task=shaped)
    with pytest.warns(QRMaxWarning, match=r"it holds at {coffee}, {decoration}.*shaped\(0.9\)"):
        qrmax.make(name, task=shaped, decorations_terminate=False)


def test_an_end_of_the_world_where_the_task_is_over_anyway_needs_no_telling() -> None:
    leave = RewardMachine([Edge("go", "exit", "out", 1.0)], initial="go", success=["out"])
    with pytest.warns(QRMaxWarning, match="it does not hold at {exit}"):
        errand(exit_ends_world=True, machine=fetch_and_leave().shaped(0.9))  # or without the key
    errand(exit_ends_world=True, machine=leave.shaped(0.9))


def test_an_end_of_the_world_that_is_never_entered_needs_no_telling() -> None:
    task = RewardMachine([Edge("go", "goal", "there", 1.0)], initial="go", success=["there"])
    mdp = qrmax.TabularMDP(
        [[[1, 2]], [[1, 1]], [[2, 2]]],
        [[[1.0, 0.0]], [[1.0, 0.0]], [[1.0, 0.0]]],  # 2 is padding only
        terminal=[False, False, True],
    )
    qrmax.Problem(mdp, task.shaped(0.9), [(), ("goal",), ("hole",)], [0, 1, 2])


def test_an_end_that_labels_cannot_tell_needs_a_proposition_of_its_own() -> None:
    with pytest.warns(QRMaxWarning, match="at {}, where .* give the end a proposition of its own"):
        two_rooms([set(), {"goal"}, set()], world_ends="false")
    two_rooms([set(), {"goal"}, {"hole"}], world_ends="hole")


def test_the_guard_to_give_has_names_that_hold_at_ends_only() -> None:
    labels = [{"dark"}, {"goal"}, {"dark", "deep hole"}]
    with pytest.warns(QRMaxWarning, match="""world_ends='"deep hole"'"""):
        two_rooms(labels, world_ends="false")
    two_rooms(labels, world_ends='"deep hole"')
