"""Coordinates of states: where they come from, what keeps them, and which agents are given them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import qrmax
from qrmax.agents.q_learning import QLearning
from qrmax.errors import AgentError, CheckpointError, ModelError, ParameterError
from qrmax.problems.step_labels import split_by_label
from qrmax.testing import check_agent
from qrmax.training import checkpoint

SUCC, PROB = [[[1]], [[0]]], [[[1.0]], [[1.0]]]


class Walker(qrmax.Agent):
    """Acts at random, and knows where it is."""

    needs_coordinates = True

    def __init__(self, *given: Any, coordinates: np.ndarray) -> None:
        super().__init__(*given, coordinates=coordinates)
        self.place = coordinates[0].copy()

    def act(self, s: int, q: int) -> int:  # noqa: ARG002
        return int(self.rng.random() * self.sizes.actions)

    def update(self, s: int, q: int, a: int, step: qrmax.Step) -> None:  # noqa: ARG002
        self.place = self.coordinates[step.s].copy()

    def policy(self) -> np.ndarray:
        return np.zeros(self.sizes[:2], dtype=int)


@pytest.mark.small_enough_without_jit
@pytest.mark.parametrize(
    ("name", "state", "place"),
    [
        ("office/map1/exp1", 86, [2, 7]),
        ("office/map3/exp5", 15 * 14 + 3, [3, 14]),
        ("frozen-lake/ab", 47, [7, 4]),
        ("warehouse/deliver", 9, [4, 1]),
    ],
)
def test_the_states_of_grid_worlds_have_column_and_row(
    name: str, state: int, place: list[int]
) -> None:
    found = qrmax.make(name).coordinates
    assert found is not None
    assert found[state].tolist() == place
    assert not found.flags.writeable


@pytest.mark.small_enough_without_jit
def test_states_split_by_labels_keep_their_coordinates() -> None:
    problem = qrmax.make("river-swim/patrol", size=4)
    assert problem.coordinates is not None
    assert sorted({*problem.coordinates[:, 0].tolist()}) == [0, 1, 2, 3]
    mdp = qrmax.TabularMDP([[[1]], [[1]]], PROB, coordinates=[[5, 6], [7, 8]])
    split = split_by_label(mdp, label=[[[1]], [[0]]], start=0)
    assert split.mdp.coordinates.tolist() == [[5, 6], [7, 8], [7, 8]]


@pytest.mark.small_enough_without_jit
def test_a_problem_without_coordinates_has_none_and_its_nominal_form_keeps_them() -> None:
    assert qrmax.make("random-mdp/0").coordinates is None
    problem = qrmax.make("office/map1/exp1")
    assert np.array_equal(problem.nominal().coordinates, problem.coordinates)
    dense = qrmax.TabularMDP.from_dense(np.ones((2, 1, 2)) / 2, coordinates=[[0.5], [1]])
    assert dense.coordinates.tolist() == [[0.5], [1.0]]


@pytest.mark.small_enough_without_jit
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([[0, 0]], r"shape \(1, 2\); needed: \(2, d\)"),
        ([0, 1], r"shape \(2,\); needed: \(2, d\)"),
        (np.empty((2, 0)), r"shape \(2, 0\)"),
        ([[0, 0], [1]], "ragged; every state needs as many"),
        ([[0, 0], [1, np.nan]], r"are \[1.0, nan\] at state 1; allowed: finite"),
        ([[np.inf], [1]], "at state 0"),
        ([["a"], ["b"]], "hold <U1; needed: numbers"),
        ([[True], [False]], "hold bool"),
    ],
)
def test_coordinates_that_make_no_sense_are_refused(given: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        qrmax.TabularMDP(SUCC, PROB, coordinates=given)


def test_coordinates_are_in_the_file_of_a_run_and_reach_the_agent(tmp_path: Path) -> None:
    problem = qrmax.make("office/map1/exp1")
    run = qrmax.train(Walker, problem, seed=1, max_steps=40, evaluate_every=100)
    run.save(tmp_path / "run")
    loaded = qrmax.load(tmp_path / "run")
    assert np.array_equal(loaded.problem.coordinates, problem.coordinates)
    assert loaded.agent.coordinates is loaded.problem.coordinates
    whole = qrmax.train(Walker, problem, seed=1, max_steps=90, evaluate_every=100)
    assert loaded.resume(90).agent.place.tolist() == whole.agent.place.tolist()
    assert "coordinates" not in whole.agent.snapshot()


def test_a_file_with_impossible_coordinates_is_refused() -> None:
    problem = qrmax.make("office/map1/exp1")
    session = qrmax.train(Walker, problem, max_steps=10, evaluate_every=100)._session
    wrong = np.array(problem.coordinates)
    wrong[3] = np.nan
    session.domain.posed.mdp.coordinates = wrong
    with pytest.raises(CheckpointError, match="at state 3; allowed: finite"):
        checkpoint.from_bytes(checkpoint.to_bytes(session), "a run")


def test_an_agent_that_needs_coordinates_says_so_where_there_are_none() -> None:
    with pytest.raises(ParameterError, match=r"'walker' needs coordinates .*TabularMDP\(\.\.\., c"):
        qrmax.train(Walker, qrmax.make("random-mdp/0"))


def test_an_agent_that_needs_coordinates_passes_the_conformance_suite() -> None:
    class Placed(QLearning):
        needs_coordinates = True

        def __init__(self, *given: Any, coordinates: np.ndarray) -> None:
            super().__init__(*given)
            self.coordinates = coordinates

    check_agent(Placed)


def test_an_agent_that_declares_the_need_must_take_them() -> None:
    class Deaf(Walker):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given, coordinates=np.zeros((1, 1)))

    with pytest.raises(AgentError, match=r"coordinates=\.\.\.\): got an unexpected keyword"):
        qrmax.train(Deaf, "office/map1/exp1")


# --- environments


def lake(**changes: Any) -> qrmax.TaskWrapper:
    names = {0: {"home"}, 3: {"edge"}}
    given: dict[str, Any] = {"labels": names, "coordinates": lambda seen: divmod(seen, 4)}
    env = gymnasium.make("FrozenLake-v1")
    return qrmax.TaskWrapper(env, "F(edge & F home)", **{**given, **changes})


def test_an_environment_has_coordinates_by_a_function_of_the_observation(tmp_path: Path) -> None:
    run = qrmax.train(Walker, lake(), max_steps=30, stop="budget", evaluate_every=1000)
    assert run.agent.coordinates.tolist() == [[s // 4, s % 4] for s in range(16)]
    run.save(tmp_path / "run")
    assert np.array_equal(qrmax.load(tmp_path / "run").agent.coordinates, run.agent.coordinates)
    assert qrmax.load(tmp_path / "run", env=lake()).resume(40).trained == 40
    with pytest.raises(ParameterError, match="it has other coordinates"):
        qrmax.load(tmp_path / "run", env=lake(coordinates=lambda seen: (seen, 0)))


def test_states_that_include_a_label_have_the_coordinates_of_their_observation() -> None:
    class Factored(Walker):
        factored = True

    steps = {"labels": None, "transition_labels": lambda *_: ()}
    run = qrmax.train(Factored, lake(**steps), max_steps=5, stop="budget", evaluate_every=1000)
    assert run.agent.sizes.states == 4 * 16
    assert run.agent.coordinates[16 + 7].tolist() == [1, 3]


def test_our_own_worlds_as_environments_have_those_of_the_problem() -> None:
    env = gymnasium.make("qrmax/Office-map1-exp1-v0")
    run = qrmax.train(Walker, env, max_steps=5, stop="budget", evaluate_every=1000)
    assert np.array_equal(run.agent.coordinates, env.unwrapped.problem.coordinates)


def test_the_exact_problem_of_an_environment_keeps_its_coordinates() -> None:
    problem = qrmax.Problem.from_gymnasium(lake())
    assert problem.coordinates[7].tolist() == [1, 3]
    plain = gymnasium.make("FrozenLake-v1")
    arguments = {"task": "F edge", "labels": {3: {"edge"}}, "coordinates": lambda seen: seen}
    assert qrmax.Problem.from_gymnasium(plain, **arguments).coordinates[9].tolist() == [9]
    with pytest.raises(ParameterError, match="has a task already"):
        qrmax.Problem.from_gymnasium(lake(), coordinates=lambda seen: seen)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (7, "coordinates are 7; needed: a function"),
        (lambda: (), r"is called as <lambda>\(observation\): too many"),
    ],
)
def test_a_function_that_is_none_is_refused(given: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        lake(coordinates=given)
