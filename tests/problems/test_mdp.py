import numpy as np
import pytest

from qrmax import TabularMDP
from qrmax.errors import ModelError

SUCC = [[[0, 1]], [[1, 0]]]
PROB = [[[0.5, 0.5]], [[1.0, 0.0]]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"succ": [[0, 1]]}, "succ has shape"),
        ({"succ": [[[0, 1]], [[1]]]}, "ragged.*pad"),
        ({"succ": [[[0.0, 1.0]], [[1.0, 0.0]]]}, "whole numbers"),
        ({"succ": [[[0, 2]], [[1, 0]]]}, "succ is 2 at state 0, action 0, successor 1; allowed: 0"),
        ({"succ": [[[0, -1]], [[1, 0]]]}, "outside 0 to"),
        ({"prob": [[[0.5, 0.5]]]}, "prob has shape"),
        ({"prob": [[[0.5, 0.4]], [[1.0, 0.0]]]}, "the sum of prob is 0.9 at state 0, action 0"),
        ({"prob": [[[1.5, -0.5]], [[1.0, 0.0]]]}, "prob is 1.5 at state 0, action 0, successor 0"),
        ({"prob": [[[0.5, np.nan]], [[1.0, 0.0]]]}, "prob is nan at state 0"),
        ({"reward": [[[np.inf, 0]], [[0, 0]]]}, "reward is inf at state 0"),
        ({"terminal": [0, 1]}, "terminal"),
        ({"terminal": [True]}, "terminal"),
        ({"start": 2}, "start is state 2; allowed: 0 to 1"),
        ({"start": [0.5, 0.4]}, "sum to 0.9"),
        ({"start": [1.5, -0.5]}, "probabilities"),
        ({"start": [1.0]}, "start has shape"),
    ],
)
def test_arrays_that_are_no_process_are_refused_by_place(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        TabularMDP(**{"succ": SUCC, "prob": PROB, **changes})  # type: ignore[arg-type]


def test_terminal_states_need_no_successors() -> None:
    mdp = TabularMDP(SUCC, [[[0.5, 0.5]], [[0.0, 0.0]]], terminal=[False, True])
    assert mdp.terminal.tolist() == [False, True]


def test_the_arrays_cannot_be_changed_afterwards() -> None:
    with pytest.raises(ValueError, match="read-only"):
        TabularMDP(SUCC, PROB).prob[0, 0, 0] = 1.0


def test_the_callers_own_arrays_stay_writable() -> None:
    prob = np.array(PROB)
    TabularMDP(SUCC, prob)
    prob[0, 0] = [1.0, 0.0]


def test_a_dense_matrix_becomes_successor_lists() -> None:
    dense = np.array([[[0.25, 0.0, 0.75]], [[0.0, 1.0, 0.0]], [[0.5, 0.5, 0.0]]])
    reward = np.arange(9.0).reshape(3, 1, 3)
    mdp = TabularMDP.from_dense(dense, reward, start=1)
    rebuilt = np.zeros_like(dense)
    for s, a, k in np.ndindex(mdp.succ.shape):
        rebuilt[s, a, mdp.succ[s, a, k]] += mdp.prob[s, a, k]
    np.testing.assert_array_equal(rebuilt, dense)
    np.testing.assert_allclose(mdp.expected_reward(), (dense * reward).sum(axis=2))


def test_the_nominal_outcome_adds_up_what_is_listed_twice() -> None:
    mdp = TabularMDP([[[0, 1, 1]], [[1, 0, 0]]], [[[0.4, 0.3, 0.3]], [[0.4, 0.4, 0.2]]])
    assert mdp.nominal().succ.tolist() == [[[1]], [[0]]]
    assert mdp.nominal().prob.tolist() == [[[1.0]], [[1.0]]]


def test_more_successors_than_can_be_numbered_are_refused() -> None:
    endless = np.broadcast_to(np.int32(0), (2**30, 1, 3))  # takes no memory
    with pytest.raises(ModelError, match="3221225472 entries; at most 2147483647"):
        TabularMDP(endless, endless)
