"""Runs that spend their budget without success, and what they are told."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import pytest

import qrmax
from gym_worlds import in_order, room
from planes import walk
from qrmax.errors import QRMaxWarning
from qrmax.training.remedies import failure, remedies
from qrmax.training.run import make_session


def mountain_car(*, top: str = "top") -> qrmax.TaskWrapper:
    """Gymnasium's MountainCar: swing far to the left, then go to the top on the right."""

    def labels(seen: Any, _: Any) -> set[str]:
        return {"left"} if seen[0] < -0.9 else {top} if seen[0] >= 0.5 else set()

    env = gymnasium.make("MountainCar-v0")
    return qrmax.TaskWrapper(env, in_order("left", "top"), labels, env_reward=False)


def cart_pole() -> qrmax.TaskWrapper:
    """Gymnasium's CartPole: roll to the left, then to the right; nothing else is ever true."""
    sides = gymnasium.make("CartPole-v1")
    return qrmax.TaskWrapper(
        sides,
        in_order("left", "right"),
        labels=lambda seen, _: {"lft"} if seen[0] < -0.1 else {"right"} if seen[0] > 0.1 else (),
        env_reward=False,
    )


def told(agent: str, problem: Any, **options: Any) -> str:
    """What the one warning of a run says."""
    with pytest.warns(QRMaxWarning) as warned:
        qrmax.train(agent, problem, **options)
    assert len(warned) == 1
    return str(warned[0].message)


def test_a_box_environment_with_default_settings_is_told_of_grids_and_samples() -> None:
    text = told("bucket-qrmax", mountain_car(), max_steps=5_000)
    assert text.startswith(
        "'bucket-qrmax' has used its 5,000 steps on 'MountainCar-v0': none of the 25 "
        "training episodes succeeded. To try:\n"
    )
    advice = [line for line in text.splitlines() if line.startswith("  - ")]
    for remedy in ("'top', which the task names, was never true", "25 of 200 steps", "grid=10,"):
        assert any(remedy in line for line in advice)
    for remedy in ("t_env=9 rather than 39", "'bucket-qrmax-rm'", "max_steps=50000"):
        assert any(remedy in line for line in advice)


def test_a_label_that_is_misspelt_is_named_first() -> None:
    text = told("bucket-qrmax-rm", cart_pole(), max_steps=5_000, grid=3, t_env=2)
    first = text.splitlines()[1]
    assert "  - the labelling function: 'left', which the task names, was never true" in first
    assert "true at some time: lft, right" in first
    assert "reached the task states 'start'; " in text
    assert "a finer grid, grid=6: cells should be smaller" in text
    assert "-rm' is told" not in text  # it is


def test_a_tabular_run_is_judged_by_its_final_policy() -> None:
    problem = qrmax.make("office/map3/exp5")
    text = told("q-learning", problem, max_steps=100_000, evaluate_every=50_000)
    assert "its policy does not succeed, and the optimal one does in 6.3 %" in text
    for remedy in ("RewardMachine.shaped", "'qrm' is given", "max_steps=1000000"):
        assert remedy in text
    assert "run.watch" not in text


def test_a_run_with_real_positions_is_told_of_a_grid_that_fits_the_map() -> None:
    room = walk(". . .\n\n. . A", max_episode_steps=30)  # which going up alone does not reach
    session = make_session("bucket-qrmax", room, max_steps=100_000)
    session.progress.step = 100_000  # and nothing was learned in them
    assert failure(session) == "its policy does not succeed"
    assert not session.evaluator.is_solved  # that would take long, and nobody has asked for it
    assert session.evaluator.best_success == pytest.approx(1.0)
    assert failure(session).endswith(", and the optimal one does in 100.0 % of episodes")
    assert any("grid=6, a uniform grid of 6 cells a side" in text for text in remedies(session))
    office = make_session("bucket-qrmax", qrmax.make("continuous/office/map1/exp1"))
    assert any("grid=36, " in text for text in remedies(office))  # 12 x 9 cells


@pytest.mark.parametrize(
    "options",
    [
        {"problem": room(), "max_steps": 10_000, "t_env": 1},  # succeeds
        {"problem": mountain_car(top="top"), "max_steps": 999},  # too short to tell
        {"problem": qrmax.make("office/map3/exp5"), "max_steps": 5_000},
    ],
    ids=["success", "short environment", "short problem"],
)
def test_runs_that_succeed_or_were_hardly_begun_are_told_nothing(options: dict[str, Any]) -> None:
    box = options["max_steps"] == 999
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        qrmax.train("bucket-qrmax" if box else "qrmax", **options)
