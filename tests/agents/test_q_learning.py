"""Q-learning and QRM, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import qrmax
from learners import trial
from qrmax import Edge, Problem, RewardMachine
from qrmax.problems.simulator import Step
from small_problems import LEFT, RIGHT, errand

pytestmark = pytest.mark.small_enough_without_jit

GO, HAS_KEY, OUT = range(3)
NOTHING, KEY, EXIT = range(3)  # labels
TOLD = {"alpha": 0.5, "gamma": 0.9, "q0": 2.0, "epsilon": 0.0}


def step_into(
    s: int,
    q: int,
    label: int,
    *,
    r_env: float = 0.0,
    r_task: float = 0.0,
    by: str = "",
    cut: bool = False,
) -> Step:
    """A step, ended `by` the machine, the world, both or neither."""
    return Step(s, q, label, r_env, r_task, by != "", cut, by in ("world", "both"))


def after(name: str, problem: Problem, s: int, q: int, a: int, step: Step) -> np.ndarray:
    """The table after one lesson."""
    agent = trial(name, problem, **TOLD).agent
    agent.update(s, q, a, step)
    return agent.q


def test_q_learning_moves_one_value_towards_its_target() -> None:
    table = after(
        "q-learning", errand(), 1, GO, LEFT, step_into(0, HAS_KEY, KEY, r_env=-0.5, r_task=0.25)
    )
    assert table[1, GO, LEFT] == 2.0 + 0.5 * (-0.5 + 0.25 + 0.9 * 2.0 - 2.0)
    table[1, GO, LEFT] = 2.0
    assert (table == 2.0).all()


@pytest.mark.parametrize("by", ["machine", "world", "both"])
def test_q_learning_expects_nothing_after_the_end(by: str) -> None:
    table = after(
        "q-learning", errand(), 2, HAS_KEY, RIGHT, step_into(3, OUT, EXIT, r_task=1.0, by=by)
    )
    assert table[2, HAS_KEY, RIGHT] == 2.0 + 0.5 * (1.0 - 2.0)


@pytest.mark.parametrize("name", ["q-learning", "qrm"])
def test_a_step_that_is_cut_off_promises_as_much_as_any(name: str) -> None:
    step = step_into(2, HAS_KEY, NOTHING)
    usual = after(name, errand(), 1, HAS_KEY, RIGHT, step)
    cut = after(name, errand(), 1, HAS_KEY, RIGHT, step._replace(truncated=True))
    assert usual.tolist() == cut.tolist()
    assert usual[1, HAS_KEY, RIGHT] == 2.0 + 0.5 * (1.8 - 2.0)


def test_q_learning_takes_the_best_of_what_follows() -> None:
    agent = trial("q-learning", errand(), **TOLD).agent
    agent.q[0, HAS_KEY] = [1.0, 5.0]
    agent.update(1, GO, LEFT, step_into(0, HAS_KEY, KEY))
    assert agent.q[1, GO, LEFT] == 2.0 + 0.5 * (0.9 * 5.0 - 2.0)


def test_qrm_learns_for_every_machine_state_that_is_not_terminal() -> None:
    table = after("qrm", errand(), 1, GO, LEFT, step_into(0, HAS_KEY, KEY, r_env=-0.5))
    expected = 2.0 + 0.5 * (-0.5 + 0.9 * 2.0 - 2.0)
    assert table[1, :, LEFT].tolist() == [expected, expected, 2.0]


def test_qrm_ends_only_where_the_machine_would_have() -> None:
    """At the exit with the key it is over; without, it would have gone on."""
    table = after(
        "qrm", errand(), 2, HAS_KEY, RIGHT, step_into(3, OUT, EXIT, r_task=1.0, by="machine")
    )
    assert table[2, HAS_KEY, RIGHT] == 2.0 + 0.5 * (1.0 - 2.0)
    assert table[2, GO, RIGHT] == 2.0 + 0.5 * (1.8 - 2.0)


@pytest.mark.parametrize(("q", "q_next", "by"), [(GO, GO, "world"), (HAS_KEY, OUT, "both")])
def test_where_the_world_ends_it_ends_for_every_machine_state(q: int, q_next: int, by: str) -> None:
    pays = 1.0 if q == HAS_KEY else 0.0
    step = step_into(3, q_next, EXIT, r_task=pays, by=by)
    table = after("qrm", errand(exit_ends_world=True), 2, q, RIGHT, step)
    assert table[2, GO, RIGHT] == 2.0 + 0.5 * (0.0 - 2.0)
    assert table[2, HAS_KEY, RIGHT] == 2.0 + 0.5 * (1.0 - 2.0)


def test_qrm_never_hopes_for_more_behind_the_end_of_the_world() -> None:
    """Leaving with the key must not make leaving without it look good."""
    agent = trial("qrm", errand(exit_ends_world=True), epsilon=0.1).rush(3000).agent
    assert agent.q[2, GO, RIGHT] == pytest.approx(0.0, abs=1e-3)
    assert agent.q[2, GO, LEFT] == pytest.approx(0.9**4, rel=0.01)


@pytest.mark.parametrize("name", ["q-learning", "qrm"])
def test_first_values_that_are_whole_numbers_are_numbers_like_others(name: str) -> None:
    tables = [trial(name, errand(), q0=q0).rush(2000).agent.q for q0 in (2, 2.0)]
    assert tables[0].dtype == np.float64
    assert np.array_equal(*tables)


@pytest.mark.parametrize(("epsilon", "share"), [(0.0, 0.0), (0.3, 0.15), (1.0, 0.5)])
def test_epsilon_is_how_often_any_action_is_taken(epsilon: float, share: float) -> None:
    agent = trial("q-learning", errand(), epsilon=epsilon).agent
    agent.q[1, GO, LEFT] = 3.0
    other = np.mean([agent.act(1, GO) == RIGHT for _ in range(4000)])
    assert other == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 4000) + 1e-12)


def test_a_random_machine_is_learned_by_its_mean() -> None:
    """Each try pays 1 with 0.25, and costs nothing: Q = 0.25 (1 + 0) + 0.75 gamma Q."""
    machine = RewardMachine(
        [Edge("go", "key", "has_key", 1.0, probability=0.25)], initial="go", success=["has_key"]
    )
    problem = errand(machine=machine)
    agent = trial("q-learning", problem, alpha=0.01).rush(40_000).agent
    assert agent.q[0, 0, LEFT] == pytest.approx(0.25 / (1 - 0.75 * 0.9), rel=0.1)


def test_an_environment_says_who_ended_the_episode() -> None:
    """The same errand, played through Gymnasium."""
    problem = errand(exit_ends_world=True)
    run = qrmax.train("qrm", qrmax.ProblemEnv(problem), max_steps=3000)
    assert run.agent.q[2, GO, RIGHT] == pytest.approx(0.0, abs=1e-3)
    assert run.agent.q[2, GO, LEFT] == pytest.approx(0.9**4, rel=0.01)
