"""Empirical models with bonuses, and posterior sampling (compiled).

    estimate        means of what was observed, plus an exploration bonus
    draw_posterior  p ~ Dirichlet(counts + prior), r ~ Beta(1 + successes, 1 + failures)

Only successors that were observed get a probability of their own; the probability of all others
together is sampled exactly, too, and is the `rest` of a belief.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from qrmax.planning.compilation import compiled, inner

if TYPE_CHECKING:  # numba does not read annotations
    from collections.abc import Callable

    from qrmax.empirical.successors import Seen
    from qrmax.planning.arrays import Belief, BoolArray, FloatArray, IntArray

    Bits = np.uint64

_compiled, _inner = compiled, inner
_bits = cast("Callable[[Any], int]", np.uint64)

_LAYERS = 128
_TINY = 1e-300  # far below, 1 / total would overflow
_TAIL = 3.442619855899  # start of the tail of the normal distribution, for 128 layers
_AREA = 9.91256303526217e-3  # of each layer


def _ziggurat() -> tuple[FloatArray, FloatArray]:
    """The half width of each layer, and the density there; the lowest first, which has the tail."""
    width = [_AREA / np.exp(-0.5 * _TAIL**2), _TAIL]
    while len(width) < _LAYERS:
        density = np.exp(-0.5 * width[-1] ** 2) + _AREA / width[-1]
        width.append(np.sqrt(-2.0 * np.log(density)))
    half = np.array([*width, 0.0])
    return half, np.exp(-0.5 * half**2)


_WIDTH, _HEIGHT = _ziggurat()


class Worth(NamedTuple):
    """The scale of the summed rewards."""

    lowest: float  # the reward that counts as 0
    span: float  # from there to the reward that counts as 1
    unknown: float  # the reward of a state-action pair that was never tried


class Bonus(NamedTuple):
    """The exploration bonus by visit count n: flat + slope v_h + spread sqrt(Var)."""

    flat: FloatArray  # [n]
    slope: FloatArray  # [n]
    spread: FloatArray  # [n]


class Prior(NamedTuple):
    """The prior distribution of transitions and rewards."""

    strength: float  # pseudo-counts of all successors together
    optimistic: bool  # they are those of one more successor, of value v_max; else of all states
    lowest: float  # the reward that counts as 0
    span: float  # from there to the reward that counts as 1
    draws: int  # models sampled at once


@_compiled
def list_successors(seen: Seen, belief: Belief) -> None:
    """Copy the successors that were observed into a belief."""
    for x in range(seen.listed.size):
        belief.listed[x] = seen.listed[x]
        for k in range(seen.listed[x]):
            belief.succ[x, k] = seen.outcome[x, k]


@_compiled
def estimate(
    seen: Seen,
    worth: Worth,
    bonus: Bonus,
    settled: IntArray,
    belief: Belief,
    changed: BoolArray,
) -> bool:
    """The empirical model plus a bonus that shrinks with the visit count.

    `settled[x, a]` is the visit count that the belief was computed from: only pairs visited since
    are computed again, and `changed[x]` becomes true for these.
    Returns whether the bonus is known for every count; if not, extend it and call this again.
    """
    n, rho, listed, _, tau = seen
    lowest, span, unknown = worth
    weight, reward = belief.weight, belief.reward
    complete = True
    for x in range(listed.size):
        for a in range(n.shape[1]):
            tried = n[x, a]
            if tried == settled[x, a]:
                continue
            if tried >= bonus.flat.size:
                complete = False
                continue
            settled[x, a] = tried
            changed[x] = True
            reward[x, a] = lowest + span * (rho[x, a] / tried) if tried > 0 else unknown
            belief.flat[x, a] = bonus.flat[tried]
            belief.slope[x, a] = bonus.slope[tried]
            belief.spread[x, a] = bonus.spread[tried]
            for k in range(listed[x]):
                weight[x, k, a] = tau[x, a, k] / tried if tried > 0 else 0.0
    return complete


@_compiled
def draw_posterior(seen: Seen, prior: Prior, state: Bits, belief: Belief) -> None:
    """Sample each pair (x, a) from the posterior, once or several times; `rho` counts successes."""
    n, rho, listed, _, tau = seen
    strength, optimistic, lowest, span, draws = prior
    weight, rest, reward = belief.weight, belief.rest, belief.reward
    n_x, n_actions = n.shape
    each = 0.0 if optimistic else strength / n_x  # the pseudo-count of a successor that was seen
    for x in range(n_x):
        for a in range(n_actions):
            if n[x, a] == 0:
                if not optimistic:  # else its reward is infinite, and stays so
                    for o in range(a, draws * n_actions, n_actions):
                        rest[x, o] = 1.0 / n_x
                        share, state = uniform(state)
                        reward[x, o] = lowest + span * share
                continue
            seen_to_follow = 0
            for k in range(listed[x]):
                if tau[x, a, k] > 0:
                    seen_to_follow += 1
                    middle = tau[x, a, k] + each - 1.0 / 3.0
                    spread = 1.0 / np.sqrt(9.0 * middle)  # the same for all draws
                    for o in range(a, draws * n_actions, n_actions):
                        weight[x, k, o], state = _gamma_around(middle, spread, state)
            others = n_x - seen_to_follow
            for o in range(a, draws * n_actions, n_actions):
                left = 0.0
                if optimistic or others > 0:
                    left, state = gamma(strength if optimistic else each * others, state)
                total = left
                for k in range(listed[x]):
                    total += weight[x, k, o]
                if total < _TINY:  # a tiny prior, and no observation
                    total = left = 1.0
                scale, taken_out = 1.0 / total, 0.0
                rest[x, o] = left * scale
                if (
                    not optimistic
                ):  # it weighs the sum over all states: those seen are taken out of it
                    rest[x, o] /= max(others, 1)
                    taken_out = rest[x, o]
                for k in range(listed[x]):
                    if tau[x, a, k] > 0:
                        weight[x, k, o] = weight[x, k, o] * scale - taken_out
                share, state = beta(rho[x, a], n[x, a] - rho[x, a], state)
                reward[x, o] = lowest + span * share


# --- random numbers: every draw takes the state of a random sequence, and returns the next one


@_inner
def next_bits(state: Bits) -> tuple[Bits, Bits]:
    """64 random bits (SplitMix64 of Steele, Lea and Flood)."""
    state += _bits(0x9E3779B97F4A7C15)
    bits = (state ^ (state >> _bits(30))) * _bits(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> _bits(27))) * _bits(0x94D049BB133111EB)
    return bits ^ (bits >> _bits(31)), state


@_inner
def _as_number(bits: Bits) -> float:
    """A number in (0, 1) from the first 52 bits."""
    return (np.float64(bits >> _bits(12)) + 0.5) * 2.0**-52


@_compiled
def uniform(state: Bits) -> tuple[float, Bits]:
    """A draw from (0, 1)."""
    bits, state = next_bits(state)
    return _as_number(bits), state


@_compiled
def normal(state: Bits) -> tuple[float, Bits]:
    """A draw from N(0, 1): Marsaglia and Tsang's ziggurat, in 128 layers of equal area."""
    while True:
        bits, state = next_bits(state)
        layer = bits & _bits(_LAYERS - 1)
        x = (2.0 * _as_number(bits) - 1.0) * _WIDTH[layer]
        if abs(x) < _WIDTH[layer + _bits(1)]:
            return x, state
        u, state = uniform(state)
        if layer == 0:  # the tail beyond the widest layer
            beyond = -np.log(u) / _TAIL
            u, state = uniform(state)
            while -2.0 * np.log(u) < beyond * beyond:
                u, state = uniform(state)
                beyond = -np.log(u) / _TAIL
                u, state = uniform(state)
            return (_TAIL + beyond if x > 0.0 else -_TAIL - beyond), state
        low, high = _HEIGHT[layer], _HEIGHT[layer + _bits(1)]
        if low + u * (high - low) < np.exp(-0.5 * x * x):
            return x, state


@_compiled
def gamma(shape: float, state: Bits) -> tuple[float, Bits]:
    """A draw from Gamma(shape, 1) (Marsaglia and Tsang, 2000)."""
    boost = 1.0
    if shape < 1.0:
        u, state = uniform(state)
        boost = u ** (1.0 / shape)
        shape += 1.0
    middle = shape - 1.0 / 3.0
    x, state = _gamma_around(middle, 1.0 / np.sqrt(9.0 * middle), state)
    return boost * x, state


@_inner
def _gamma_around(middle: float, spread: float, state: Bits) -> tuple[float, Bits]:
    """`gamma` for shapes from 1 on: `middle` is shape - 1/3, `spread` is 1 / sqrt(9 middle)."""
    while True:
        x, state = normal(state)
        root = 1.0 + spread * x
        if root > 0.0:
            u, state = uniform(state)
            cube = root * root * root
            if u < 1.0 - 0.0331 * x * x * x * x:  # mostly avoids the logarithms
                return middle * cube, state
            if np.log(u) < 0.5 * x * x + middle * (1.0 - cube + np.log(cube)):
                return middle * cube, state


@_compiled
def beta(successes: float, failures: float, state: Bits) -> tuple[float, Bits]:
    """A draw from Beta(1 + successes, 1 + failures)."""
    if successes == 0.0 or failures == 0.0:
        u, state = uniform(state)
        power = np.log(u) / (1.0 + successes + failures)
        return (-np.expm1(power) if successes == 0.0 else np.exp(power)), state
    first, state = gamma(1.0 + successes, state)
    second, state = gamma(1.0 + failures, state)
    return first / (first + second), state
