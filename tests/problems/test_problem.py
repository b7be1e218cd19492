from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given

import qrmax
from coffee_task import pick_up
from qrmax.errors import GuardError, ModelError, ParameterError, TaskError
from random_problems import problems


def test_the_product_has_a_state_for_each_pair() -> None:
    problem = qrmax.make("office/map1/exp5")
    assert problem.product().n_states == 108 * 9


@given(problems())
def test_the_product_moves_and_pays_as_its_two_parts_do(problem: qrmax.Problem) -> None:
    product, n_q = problem.product(), problem.n_task_states
    mdp, machine = problem.mdp, problem.machine
    width = problem.table.prob.shape[2]
    for s, a, k in np.ndindex(mdp.succ.shape):
        target = mdp.succ[s, a, k]
        label = problem.labels[problem.label[target]]
        for q, name in enumerate(machine.states):
            pair = s * n_q + q
            outcomes = machine.outcomes(name, label)
            for j, (chance, state, reward) in enumerate(outcomes):
                place = (pair, a, k * width + j)
                assert product.succ[place] == target * n_q + machine.index(state)
                assert product.reward[place] == mdp.reward[s, a, k] + reward
                assert product.prob[place] == mdp.prob[s, a, k] * chance
            padding = product.prob[pair, a, k * width + len(outcomes) : (k + 1) * width]
            assert not padding.any()
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


def two_rooms() -> qrmax.TabularMDP:
    return qrmax.TabularMDP([[[1]], [[1]]], [[[1.0]], [[1.0]]])


def go_home(goal: str = "there") -> qrmax.RewardMachine:
    edges = [qrmax.Edge("go", "home", "there", 1.0)]
    return qrmax.RewardMachine(edges, initial="go", success=[goal])


def test_a_label_given_as_text_is_refused_rather_than_read_letter_by_letter() -> None:
    with pytest.raises(GuardError, match="a label is a set"):
        qrmax.Problem(two_rooms(), go_home(), ["", "home"], [0, 1])


def test_labels_may_be_mappings_to_booleans() -> None:
    labels = [{"home": False}, {"home": True}]
    assert qrmax.Problem(two_rooms(), go_home(), labels, [0, 1]).labels == (set(), {"home"})
    with pytest.raises(GuardError, match=r"labels\[1\] says that 'home' is 0.5"):
        qrmax.Problem(two_rooms(), go_home(), [set(), {"home": 0.5}], [0, 1])


def test_a_proposition_in_no_label_is_warned_of() -> None:
    with pytest.warns(qrmax.QRMaxWarning, match="names 'home', which 'problem' does not have"):
        qrmax.Problem(two_rooms(), go_home(), [set(), {"hom"}], [0, 1])


def test_a_proposition_that_is_misspelt_is_warned_of_with_the_nearest() -> None:
    with pytest.warns(qrmax.QRMaxWarning, match=r"there are: hom; did you mean 'hom'\?$"):
        qrmax.Problem(two_rooms(), go_home(), [set(), {"hom"}], [0, 1])
    with pytest.warns(qrmax.QRMaxWarning, match=r"there are: office$"):
        qrmax.Problem(two_rooms(), go_home(), [set(), {"office"}], [0, 1])


def test_a_success_that_no_edge_leads_to_is_warned_of() -> None:
    with pytest.warns(qrmax.QRMaxWarning, match="can never succeed: no edge leads to 'ther'"):
        qrmax.Problem(two_rooms(), go_home("ther"), [set(), {"home"}], [0, 1])


def test_parts_in_the_wrong_order_are_named() -> None:
    with pytest.raises(ModelError, match="RewardMachine and a TabularMDP; needed"):
        qrmax.Problem(go_home(), two_rooms(), [set()], [0, 0])  # type: ignore[arg-type]


@pytest.mark.parametrize("use", [qrmax.solve, lambda p: qrmax.evaluate(p, [])])
def test_a_name_in_place_of_a_problem_is_refused(use: Callable[[str], object]) -> None:
    with pytest.raises(ParameterError, match=r"needed: a Problem, such as qrmax\.make"):
        use("office/map1/exp1")


def test_a_start_that_would_be_read_by_chance_is_refused() -> None:
    def problem(start: int, **changes: bool) -> qrmax.Problem:
        mdp = qrmax.TabularMDP([[[1]], [[1]]], [[[1.0]], [[1.0]]], start=start)
        return qrmax.Problem(mdp, pick_up(0.8, **changes), [set(), {"coffee"}], [0, 1])

    with pytest.raises(TaskError, match=r"label \{coffee\}.*consume_initial = false, or change"):
        problem(start=1)
    assert problem(start=1, consume_initial=False).start().tolist() == [[0, 0], [1, 0]]
    assert problem(start=0).start().tolist() == [[1, 0], [0, 0]]  # coffee is elsewhere


def test_the_product_of_a_random_machine_has_a_successor_for_each_outcome() -> None:
    problem = qrmax.Problem(two_rooms(), pick_up(0.75), [set(), {"coffee"}], [0, 1])
    product = problem.product()
    street = 0  # the pair (0, start); pair (1, start) is 2, pair (1, has_coffee) is 3
    assert product.succ[street, 0].tolist() == [3, 2]
    assert product.prob[street, 0].tolist() == [0.75, 0.25]
    assert product.reward[street, 0].tolist() == [1.0, 0.0]
