"""What the agents that plan share: optimism, known pairs, and a plan that is always up to date."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from learners import PLANNING, Variant, trial
from qrmax.model.simulator import Step
from small_problems import LEFT, RIGHT, errand

pytestmark = pytest.mark.small_enough_without_jit


@pytest.mark.parametrize("variant", PLANNING, ids=str)
def test_an_end_that_comes_as_a_surprise_is_planned_with_at_once(variant: Variant) -> None:
    """Gymnasium environments may end an episode where it went on before."""
    agent = trial(variant, errand(), t_env=1, v_max=10.0).agent
    for s, a in product((1, 2), (LEFT, RIGHT)):  # both lead to the right here
        for _ in range(2):  # the published code wants a triple tried after its parts are known
            agent.update(s, 1, a, Step(s + 1, 1, 0, 0.0, 0.0, False, False, False))
    np.testing.assert_allclose(agent.q[1:3, 1].T, [[8.1, 9.0], [8.1, 9.0]])
    end = Step(3, 1, 0, 0.0, 0.0, terminated=True, truncated=False, world_ended=True)
    agent.update(2, 1, RIGHT, end)
    np.testing.assert_array_equal(agent.q[1:3, 1], 0.0)
