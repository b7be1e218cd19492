import numpy as np
import pytest
from hypothesis import given

import qrmax
from qrmax.errors import ModelError, ParameterError
from random_problems import problems


def test_the_product_has_a_state_for_each_pair() -> None:
    problem = qrmax.make("office/map1/exp5")
    assert problem.product().n_states == 108 * 9


@given(problems())
def test_the_product_moves_and_pays_as_its_two_parts_do(problem: qrmax.Problem) -> None:
    product, n_q = problem.product(), problem.n_task_states
    for s, a, k in np.ndindex(problem.mdp.succ.shape):
        target = problem.mdp.succ[s, a, k]
        label = problem.labels[problem.label[target]]
        for q, name in enumerate(problem.machine.states):
            step = problem.machine.step(name, label)
            pair = s * n_q + q
            assert product.succ[pair, a, k] == target * n_q + problem.machine.index(step.state)
            assert product.reward[pair, a, k] == problem.mdp.reward[s, a, k] + step.reward
            assert product.prob[pair, a, k] == problem.mdp.prob[s, a, k]
            done = problem.mdp.terminal[s] or name in problem.machine.terminal
            assert product.terminal[pair] == done


@given(problems())
def test_an_episode_starts_where_the_machine_has_read_the_start(problem: qrmax.Problem) -> None:
    start = problem.start()
    np.testing.assert_allclose(start.sum(axis=1), problem.mdp.start)
    for s, q in np.argwhere(start):
        label = problem.labels[problem.label[s]]
        assert problem.machine.states[q] == problem.machine.reset(label)


@pytest.mark.parametrize(
    ("label", "message"),
    [([0], "one whole number"), ([0.0, 1.0], "whole number"), ([0, 2], "label is 2 at state 1")],
)
def test_a_labelling_that_does_not_fit_is_refused(label: list[float], message: str) -> None:
    mdp = qrmax.TabularMDP([[[0]], [[1]]], [[[1.0]], [[1.0]]])
    machine = qrmax.RewardMachine([], initial="q")
    with pytest.raises(ModelError, match=message):
        qrmax.Problem(mdp, machine, [set(), {"a"}], label)


def test_a_limit_of_no_steps_is_refused() -> None:
    mdp = qrmax.TabularMDP([[[0]]], [[[1.0]]])
    with pytest.raises(ParameterError, match="max_episode_steps is 0"):
        qrmax.Problem(mdp, qrmax.RewardMachine([], initial="q"), [set()], [0], max_episode_steps=0)
