"""The linear system of a policy: elimination and the Krylov method give the same values."""

from __future__ import annotations

import numpy as np
import pytest

import qrmax
from qrmax.planning import policy_systems
from qrmax.planning.models import Model, model_of
from qrmax.planning.policy_systems import evaluate_layer
from small_problems import no_task


def mixing(n: int) -> Model:
    """A random chain, which mixes in a few steps; rewards of both signs."""
    rng = np.random.default_rng(0)
    mdp = qrmax.TabularMDP(
        rng.integers(0, n, (n, 1, 3)), rng.dirichlet(np.ones(3), (n, 1)), rng.normal(size=(n, 1, 3))
    )
    return model_of(qrmax.Problem(mdp, no_task(), [()], [0] * n))


def values(model: Model, gamma: float) -> np.ndarray:
    value, policy = np.zeros(model.done.shape), np.zeros(model.done.shape, dtype=np.int32)
    assert evaluate_layer(model, value, policy, model.layers[0], gamma)
    return value


@pytest.mark.parametrize("gamma", [0.9, 0.99999])
def test_both_methods_give_the_same_values(monkeypatch: pytest.MonkeyPatch, gamma: float) -> None:
    model = mixing(500)
    eliminated = values(model, gamma)
    monkeypatch.setattr(policy_systems, "LARGE", 0)
    monkeypatch.setattr(policy_systems, "TOO_LARGE", 0)  # so nothing is eliminated
    iterated = values(model, gamma)
    np.testing.assert_allclose(iterated, eliminated, rtol=0, atol=1e-9 * np.abs(eliminated).max())


def test_what_never_meets_a_reward_has_the_value_zero_also_without_a_discount() -> None:
    """State 0 ends up in 2 or in the closed pair 3, 4, which would make the system singular."""
    succ = [[[1, 3]], [[2, 2]], [[2, 2]], [[4, 4]], [[3, 3]]]
    reward = np.zeros((5, 1, 2))
    reward[1] = 2.0
    mdp = qrmax.TabularMDP(
        succ, np.full((5, 1, 2), 0.5), reward, terminal=[False, False, True, False, False]
    )
    model = model_of(qrmax.Problem(mdp, no_task(), [()], [0] * 5))
    assert values(model, 1.0)[0].tolist() == [1.0, 2.0, 0.0, 0.0, 0.0]


def test_a_system_that_is_too_large_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    model = mixing(50)
    monkeypatch.setattr(policy_systems, "LARGE", 0)
    monkeypatch.setattr(policy_systems, "TOO_LARGE", 0)
    monkeypatch.setattr(policy_systems, "KRYLOV_STEPS", 1)
    value, policy = np.full(model.done.shape, 7.0), np.zeros(model.done.shape, dtype=np.int32)
    assert not evaluate_layer(model, value, policy, model.layers[0], 0.9)
    assert (value == 7.0).all()
