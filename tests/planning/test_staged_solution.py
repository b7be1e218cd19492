import pytest

import qrmax
from qrmax.planning.staged_solution import solve_horizon

pytestmark = pytest.mark.small_enough_without_jit


def test_a_machine_with_one_state_and_one_label_may_pay():
    stay_or_go = qrmax.TabularMDP([[[0], [1]], [[0], [1]]], [[[1.0], [1.0]]] * 2)
    every_step = qrmax.RewardMachine([qrmax.Edge("on", "true", "on", 1.0)], initial="on")
    problem = qrmax.Problem(stay_or_go, every_step, [()], [0, 0])
    assert solve_horizon(problem, 3).start_value == 3.0
