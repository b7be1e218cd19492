"""Runs on environments, loaded without them: they act, and can be looked at."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import qrmax
from box_worlds import PICTURES, classic, picture, screen
from damage import assert_refused, setting, write_changed
from gym_worlds import lake, room
from qrmax.errors import ParameterError
from qrmax.worlds.spaces import as_space, describe
from small_runs import assert_same_arrays, session_of


def step_lake() -> qrmax.TaskWrapper:
    """FrozenLake, with labels of steps."""
    return qrmax.TaskWrapper(
        gymnasium.make("FrozenLake-v1"),
        "F(moved & X F !moved)",
        transition_labels=lambda before, _, after, __: {"moved": before != after},
    )


WORLDS: dict[str, tuple[Callable[[], Any], str, dict[str, Any]]] = {
    "lake": (lambda: lake(is_slippery=True), "qrmax", {"t_env": 2}),
    "steps": (step_lake, "qrmax", {"t_env": 2}),
    "dict": (lambda: room("dict", 0.2), "qrm", {}),
    "tuple": (lambda: room("tuple", 0.2), "psrl", {"horizon": 20}),
    "cart": (lambda: classic("CartPole-v1"), "bucket-qrmax", {"grid": 4, "event_aware": True}),
    "screen": (lambda: screen(PICTURES, picture), "bucket-rmax", {}),
}


@pytest.mark.parametrize(("world", "agent", "settings"), WORLDS.values(), ids=WORLDS.keys())
def test_a_run_without_its_environment_acts_as_with_it(
    world: Callable[[], Any], agent: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    env = world()
    run = qrmax.train(agent, env, seed=2, max_steps=400, evaluate_every=100, **settings)
    run.save(tmp_path / "some.run")
    alone = qrmax.load(tmp_path / "some.run")
    assert (alone.curve, alone.steps, alone.task_name) == (run.curve, run.steps, run.task_name)
    assert (alone.policy == run.policy).all()
    moments = list(run.watch(seed=3))
    for stage, moment in enumerate(moments[:-1]):
        told = (moment.observation, moment.info)
        assert alone.act(*told, stage=stage) == run.act(*told, stage=stage)
    alone.save(tmp_path / "again.run")
    again = qrmax.load(tmp_path / "again.run", env=world())
    assert_same_arrays(again.agent.snapshot(), run.agent.snapshot())
    assert again.resume(450).trained == 450


def test_what_needs_the_environment_says_so(tmp_path: Path) -> None:
    qrmax.train("qrmax", lake(), max_steps=50).save(tmp_path / "lake.run")
    run = qrmax.load(tmp_path / "lake.run")
    for attempt in (lambda: run.resume(80), run.watch, run.evaluate):
        with pytest.raises(ParameterError, match=r"'FrozenLake-v1'.*qrmax.load\(path, env=...\)"):
            attempt()
    assert session_of(run).training.max_steps == 50
    assert run.evaluate(3, env=lake()).episodes == 3
    assert next(run.watch(lake(), seed=1)).action is None


def test_acting_changes_nothing_even_on_labels_that_training_has_not_met() -> None:
    env = classic("CartPole-v1")
    run = qrmax.train("bucket-qrmax", env, max_steps=1, grid=3, event_aware=True)
    before = list(session_of(run).domain.task.labels)
    new = next(name for name in ("left", "right") if {name} not in before)
    seen = {"state": np.zeros(4), "task": 0}
    assert run.act(seen, {"label": {new: True}}) == 0
    assert session_of(run).domain.task.labels == before


@pytest.mark.parametrize(
    "spoilt",
    [
        {"kind": "Discrete", "n": 10**30, "start": 0},
        {"kind": "Discrete", "n": 5, "start": 0},
        {"kind": "MultiBinary", "shape": [10**12]},
        {"kind": "Box", "low": 0, "high": 1, "shape": [10**9], "dtype": "float64"},
        {"kind": "Tuple", "parts": [[0]]},
        {"kind": "Nothing"},
        [],
        None,
    ],
    ids=str,
)
def test_spaces_that_make_no_sense_are_refused(spoilt: Any, tmp_path: Path) -> None:
    path = tmp_path / "lake.run"
    qrmax.train("qrmax", lake(), max_steps=50).save(path)
    write_changed(path, setting("task", "spaces", "state")(spoilt))
    assert_refused(path)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(7, start=-2),
        spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[1, 0], [0, -1]]),
        spaces.MultiBinary([2, 3]),
        spaces.Box(np.array([-1.5, -np.inf], np.float32), np.array([0.1, np.inf], np.float32)),
        spaces.Box(0, 255, (4, 8, 3), np.uint8),
        spaces.Tuple([spaces.Discrete(2), spaces.MultiBinary(3)]),
        spaces.Dict([("z", spaces.Discrete(2)), ("a", spaces.Tuple([spaces.Discrete(3)]))]),
    ],
    ids=str,
)
def test_a_space_survives_being_described(space: Any) -> None:
    described = json.loads(json.dumps(describe(space)))
    assert as_space(described) == space
    assert describe(spaces.Tuple([space, spaces.Text(3)])) is None
