"""Labels of steps: the split process is worth what the one with labels of steps is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qrmax
from qrmax.errors import ModelError
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.problem import Problem
from qrmax.problems.step_labels import split_by_label

GAMMA = 0.9
LABELS = [set(), {"a"}, {"b"}]
TASK = qrmax.RewardMachine(
    [
        qrmax.Edge("s", "a", "t", 1.0),
        qrmax.Edge("t", "b", "s", 2.0, probability=0.5),
        qrmax.Edge("t", "a", "end", -1.0),
    ],
    initial="s",
    failure=["end"],
)


def worth(mdp: TabularMDP, label: np.ndarray) -> float:
    """The optimum by its definition: pairs (s, q), and the label of the step in between."""
    table = TASK.table([frozenset(each) for each in LABELS])
    value = np.zeros((mdp.n_states, len(TASK.states)))
    for _ in range(400):
        new = np.zeros_like(value)
        for s in range(mdp.n_states):
            for q in range(len(TASK.states)):
                if mdp.terminal[s] or table.terminal[q]:
                    continue
                returns = []
                for a in range(mdp.n_actions):
                    total = 0.0
                    for k, p in enumerate(mdp.prob[s, a]):
                        read, after = label[s, a, k], mdp.succ[s, a, k]
                        ahead = (
                            table.reward[q, read] + GAMMA * value[after, table.next_state[q, read]]
                        )
                        total += p * (mdp.reward[s, a, k] + table.prob[q, read] @ ahead)
                    returns.append(total)
                new[s, q] = max(returns)
        value = new
    return float(mdp.start @ value[:, 0])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_the_split_problem_is_worth_what_the_one_with_labels_of_steps_is(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (3, 2, 2)
    prob = rng.random(shape) * (rng.random(shape) < 0.8)
    prob[..., 0] += prob.sum(axis=-1) == 0
    mdp = TabularMDP(
        rng.integers(0, 3, shape),
        prob / prob.sum(axis=-1, keepdims=True),
        rng.choice([0.0, 1.0], shape),
        terminal=rng.random(3) < 0.2,
        start=np.array([0.5, 0.5, 0.0]),
    )
    label = rng.integers(0, 3, shape)
    problem = Problem.with_step_labels(mdp, TASK, LABELS, label)
    assert problem.n_states <= 3 * 3
    assert qrmax.solve(problem, gamma=GAMMA).start_value == pytest.approx(worth(mdp, label))


def test_labels_of_states_need_no_splitting() -> None:
    problem = qrmax.make("office/map1/exp1")
    steps = problem.label[problem.mdp.succ]
    split = split_by_label(problem.mdp, steps, start=int(problem.label[problem.mdp.start > 0][0]))
    reached = np.unique(split.origin)
    assert len(reached) == len(split.origin)
    np.testing.assert_array_equal(split.label, problem.label[split.origin])


@pytest.mark.parametrize("label", [[[[0]]], [[[-1]], [[0]]], [[[0.5]], [[0.5]]]])
def test_labels_of_another_shape_are_refused(label: list[list[list[float]]]) -> None:
    mdp = TabularMDP(succ=[[[1]], [[1]]], prob=[[[1.0]], [[1.0]]])
    with pytest.raises(ModelError, match=r"for each entry of succ, \(2, 1, 1\)"):
        split_by_label(mdp, label, start=0)
