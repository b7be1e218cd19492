"""The actuator prior: found where it holds, left alone where it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from learners import trial
from qrmax.agents.revising.actuators import (
    Actuators,
    RowRule,
    fill_rows,
    fit_actuators,
    make_actuators,
)
from qrmax.agents.revising.qr_eb import QREB
from qrmax.empirical.successors import Successors
from qrmax.errors import ModelError
from qrmax.planning.arrays import Rows
from qrmax.planning.row_planner import RowPlanner
from small_problems import errand

pytestmark = pytest.mark.small_enough_without_jit

STATES, ACTIONS = 60, 4
TRUE = 0.8 * np.eye(ACTIONS) + 0.1 * (
    np.roll(np.eye(ACTIONS), 1, 1) + np.roll(np.eye(ACTIONS), -1, 1)
)
ALPHA = 1.0


def nominal(s: int, b: int) -> int:
    """The successors of a torus: four different ones."""
    return (s + (1, 7, -1, -7)[b]) % STATES


def observed(rows_of: Callable[[int, int], np.ndarray], each: int, states: int) -> Successors:
    """Samples of all actions of the first states, by `rows_of(s, a)` over nominal successors."""
    seen, rng = Successors(STATES, ACTIONS, by_successor=True), np.random.default_rng(4)
    for s in range(states):
        for a in range(ACTIONS):
            for b in rng.choice(ACTIONS, each, p=rows_of(s, a)):
                seen.record(s, a, nominal(s, int(b)), 0.0)
    return seen


def fitted(seen: Successors, steps: int = 12) -> Actuators:
    found = make_actuators(ACTIONS)
    for _ in range(steps):
        after = Actuators(*(np.empty_like(part) for part in found))
        fit_actuators(seen.arrays, ALPHA, found, after)
        found = after
    return found


def rows_with(seen: Successors, actuators: Actuators, *, doubts: bool = True) -> Rows:
    planner = RowPlanner(seen.arrays, 1, gamma=0.9, optimistic=10.0, tolerance=1e-5)
    counted = np.full((STATES, ACTIONS), -1, dtype=np.int32)
    rule = RowRule(ALPHA, ALPHA, 2, 4.0, doubts)
    fill_rows(seen.arrays, actuators, rule, counted, planner.rows, np.empty(STATES, dtype=np.int32))
    return planner.rows


def by_matrix(s: int, a: int) -> np.ndarray:  # noqa: ARG001 (the same everywhere)
    return TRUE[a]


def test_the_matrix_of_a_world_with_slips_is_found() -> None:
    found = fitted(observed(by_matrix, 20, STATES))
    np.testing.assert_allclose(found.matrix, TRUE, atol=0.05)
    assert found.weight[0] < 0.2
    assert found.kappa[1] < 0.1  # no two actions lead to the same state


def test_rows_without_structure_are_free() -> None:
    rng = np.random.default_rng(5)
    own = rng.dirichlet(np.full(ACTIONS, 0.3), (STATES, ACTIONS))
    found = fitted(observed(lambda s, a: own[s, a], 20, STATES))
    assert found.weight[0] > 0.8


def test_a_few_samples_are_enough_where_the_structure_holds() -> None:
    known = fitted(observed(by_matrix, 20, STATES))
    few = observed(by_matrix, 4, STATES)
    rows, tau = rows_with(few, known), few.arrays.tau
    errors = {"structured": 0.0, "counts": 0.0}
    for s, a in np.ndindex(STATES, ACTIONS):
        places = few.arrays.outcome[s, : few.arrays.listed[s]].tolist()
        for b in range(ACTIONS):
            k = places.index(nominal(s, b)) if nominal(s, b) in places else None
            structured, counts = (0.0, 0.0) if k is None else (rows.prob[s, a, k], tau[s, a, k] / 4)
            errors["structured"] += abs(structured - TRUE[a, b])
            errors["counts"] += abs(counts - TRUE[a, b])
    assert errors["structured"] < 0.5 * errors["counts"]
    np.testing.assert_allclose(rows.prob.sum(axis=2), 1.0)


def test_an_action_whose_samples_all_look_like_slips_is_tried_again() -> None:
    known = fitted(observed(by_matrix, 20, STATES))
    seen = Successors(STATES, ACTIONS, by_successor=True)
    for b in range(1, ACTIONS):
        for _ in range(8):
            seen.record(0, b, nominal(0, b), 0.0)
    for _ in range(2):
        seen.record(0, 0, nominal(0, 1), 0.0)  # as action 1 does, and 0 by a slip
    assert rows_with(seen, known).base[0].tolist() == [np.inf, 0.0, 0.0, 0.0]
    assert rows_with(seen, known, doubts=False).base[0, 0] == 0.0
    for _ in range(2):
        seen.record(0, 0, nominal(0, 1), 0.0)
    assert rows_with(seen, known).base[0, 0] == 0.0


def holding(value: float) -> Callable[[np.ndarray], Any]:
    def change(array: np.ndarray) -> np.ndarray:
        array.flat[0] = value
        return array

    return change


@pytest.mark.parametrize("name", Actuators._fields)
@pytest.mark.parametrize(
    "change", [holding(np.nan), holding(-0.1), holding(1.5), lambda array: array[:1]]
)
def test_actuators_that_no_run_leads_to_are_refused(
    name: str, change: Callable[[np.ndarray], Any]
) -> None:
    problem = errand(slip=0.2, limit=15)
    agent = trial("qr-eb", problem).rush(150).agent
    assert isinstance(agent, QREB)
    arrays = agent.snapshot()
    arrays[f"actuators.{name}"] = change(arrays[f"actuators.{name}"])
    with pytest.raises(ModelError, match=f"actuators.{name}"):
        trial("qr-eb", problem).agent.restore(arrays)
