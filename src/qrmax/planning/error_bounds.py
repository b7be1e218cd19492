"""Rigorous bounds on the error of values, from their Bellman residuals.

Let rho(x) bound the residual |T V - V|(x), the rounding of its own computation included. If u >= 0
satisfies u >= rho + max_a gamma P_a u, then |V - V*| <= u, since T is monotone: T (V + u) <= V + u
and T (V - u) >= V - u. Two families of such u need no further system to be solved; `m` is the
largest sum of probabilities of a pair (1 up to rounding):

    constant      u = max rho / (1 - gamma m)
    powers of V   u = max (rho / w) w / (1 - lambda),  w = V^beta,  0 < beta < 1

The second one, for rewards that are not negative, bounds small values relative to themselves: then
gamma P_a V <= V + rho <= (1 + theta) V, and w is concave in V, so by Jensen's inequality
gamma P_a w <= lambda w with lambda = (gamma m)^(1 - beta) (1 + theta)^beta. The relative error of
V(x) is at most about e log(max V / V(x)) / (1 - gamma) times the relative residual. The same holds
of -V for one policy whose rewards are never positive.

With gamma = 1 and the policy fixed, for the probability of success h = b + P h, and its length
w = h + P w, with rho_h <= tau_h h, rho_w <= tau_w w and M = max w / h (the longest mean time to
success from anywhere),

    |h - h*| <= tau_h sigma w,   |w - w*| <= (tau_w + tau_h sigma) sigma M w,
    sigma = 1 / (1 - tau_h - tau_w M)

because u = sigma w has u - P u >= h, and M u has M u - P M u >= M h >= w.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qrmax.planning import kernels
from qrmax.planning.arrays import BoolArray, FloatArray, IntArray
from qrmax.planning.models import Model
from qrmax.planning.residuals import EPS, residual, rounding

_FLOOR = 1e-280  # added to values: what is smaller may be missing from them
_SLACK = 1.0 + 1e-6  # covers the rounding of the bounds themselves
_POWERS = 0.5 ** np.arange(1, 12)  # 1 - beta
_LEFT = 1e-17  # more than what is left of an episode when `kernels.follow` stops, relative


@dataclass(frozen=True, slots=True)
class ErrorBound:
    """The most by which an evaluation can be off, rounding included."""

    start_value: float
    success: float
    mean_length: float | None  # None if there is no success


def value_error(
    model: Model, value: FloatArray, gamma: float, policy: IntArray = kernels.ANY_ACTION
) -> FloatArray:
    """A bound on |V - V*|, or on |V - V^pi| of a policy, `[q, s]`; infinite if gamma m >= 1."""
    scale = model.scale
    one_sign = scale.lowest >= 0.0 or (policy.size > 0 and scale.highest <= 0.0)
    rho, mass = residual(model, value, gamma, policy)
    rho += rounding(model) * (np.abs(value) + mass)
    if not one_sign:  # mean rewards may have lost what cancelled in them
        rho += rounding(model) * 2.0 * scale.reward
    contraction = gamma * scale.mass
    if contraction >= 1.0:
        return np.full_like(rho, np.inf)
    bound = np.full_like(rho, rho.max() / (1.0 - contraction))
    if one_sign:
        size = np.abs(value) + _FLOOR
        theta = float((rho / size).max())
        for power in _POWERS:
            factor = contraction**power * (1.0 + theta) ** (1.0 - power)
            if factor < 1.0:
                weight = size ** (1.0 - power)
                np.minimum(bound, float((rho / weight).max()) / (1.0 - factor) * weight, out=bound)
        bound += _FLOOR
    return np.where(model.done, 0.0, _SLACK * bound)


def success_error(
    counting: Model, chance: FloatArray, timing: Model, lengths: FloatArray, policy: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds on the error of h and w of a policy, `[q, s]`."""
    can = chance > _FLOOR
    if not can.any():
        return np.zeros_like(chance), np.zeros_like(chance)
    tau_h = _relative(counting, chance, policy, can)
    tau_w = _relative(timing, lengths, policy, can)
    longest = float((lengths[can] / chance[can]).max())
    left = 1.0 - tau_h - tau_w * longest
    if left <= 0.0:
        return np.where(can, 1.0, 0.0), np.where(can, np.inf, 0.0)
    sigma = _SLACK / left
    h_error = np.minimum(1.0, tau_h * sigma * lengths)
    return h_error, (tau_w + tau_h * sigma) * sigma * longest * lengths


def from_start(start: FloatArray, value: FloatArray, error: FloatArray) -> float:
    """A bound on the error of sum start V, given one on that of V."""
    used = start > 0.0
    summing = 2.0 * EPS * np.count_nonzero(used) * float((start * np.abs(value))[used].sum())
    return float((start * error)[used].sum() * _SLACK + summing)


def length_error(success: float, lengths: float, off: float, lengths_off: float) -> float | None:
    """A bound on the error of lengths / success, given those of both."""
    if success <= 0.0:
        return None
    if off >= success:
        return math.inf
    return float((lengths_off + lengths / success * off) / (success - off) * _SLACK)


def staged_error(model: Model, value: FloatArray, gamma: float, horizon: int) -> float:
    """The most that rounding can change in any value of backward induction; V at the first stage.

    Without negative rewards no value of a later stage, and so no mass, is larger than that.
    """
    _, n_actions, n_succ = model.env.succ.shape
    terms = int(n_actions * n_succ + model.task.next_state.shape[2]) + 8
    stages = _discounted_steps(gamma, horizon) * model.scale.mass**horizon
    largest = 2.0 * model.scale.reward * (stages + 1.0)
    if model.scale.lowest >= 0.0:
        largest = min(largest, 2.0 * float(value.max()))
    return terms * EPS * largest * stages * _SLACK


def _discounted_steps(gamma: float, steps: int) -> float:
    return float(steps) if gamma == 1.0 else (1.0 - gamma**steps) / (1.0 - gamma)


def followed_error(
    model: Model, gamma: float, limit: int, success: float, lengths: float
) -> ErrorBound:
    """The rounding of propagating the start distribution along a policy for `limit` steps.

    With t steps, each mass on a pair is off by at most t delta, relative, and by a negligible rest
    if the loop stopped early.
    """
    pairs = np.count_nonzero(~model.done)
    delta = (pairs + model.env.succ.shape[2] * model.task.next_state.shape[2] + 8) * EPS + _LEFT
    delta *= model.scale.mass**limit
    horizon = _discounted_steps(gamma, limit)
    reward = 2.0 * model.scale.reward
    off = min(1.0, delta * (lengths + success))
    lengths_off = delta * (limit + 1.0) * (lengths + success)
    return ErrorBound(
        start_value=float(delta * horizon * (horizon + 1.0) * reward * _SLACK),
        success=float(off),
        mean_length=length_error(success, lengths, off, lengths_off),
    )


def _relative(model: Model, value: FloatArray, policy: IntArray, where: BoolArray) -> float:
    """The largest residual relative to the value, its rounding included."""
    rho, mass = residual(model, value, 1.0, policy)
    rho += rounding(model) * (value + mass)
    return float((rho[where] / value[where]).max())
