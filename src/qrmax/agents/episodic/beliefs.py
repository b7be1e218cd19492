"""What to believe of the world, given what was seen of it; compiled, since every episode asks.

    estimate    what happened so far is what happens
    posterior   p ~ Dirichlet(counts + prior), r ~ Beta(1 + paid, 1 + not paid), drawn

Only successors that were seen get a probability of their own; the probability of all others
together is drawn exactly, too, and is the `rest` of a belief.
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
_TINY = 1e-300  # 1 / total would overflow for what is far below
_TAIL = 3.442619855899  # where the tail of the normal distribution begins, for so many layers
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
    """What rewards mean that were added up."""

    lowest: float  # the reward where nothing was counted
    span: float  # how much more it is where 1 was
    unknown: float  # the reward of what was never tried


class Bonus(NamedTuple):
    """What is added to what was tried n times: flat + slope v_h + spread sqrt(Var)."""

    flat: FloatArray  # [n]
    slope: FloatArray  # [n]
    spread: FloatArray  # [n]


class Prior(NamedTuple):
    """What is believed before anything is seen."""

    strength: float  # pseudo-counts of all successors together
    hopeful: bool  # they are those of one more successor, else of all that there are
    lowest: float  # the reward where nothing is paid
    span: float  # how much more the reward is where it is paid
    draws: int  # models at once


@_compiled
def list_successors(seen: Seen, belief: Belief) -> None:
    """Take over which successors there are."""
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
    """What happened so far is what happens, with a bonus.

    `settled[x, a]` is the n that the belief is of: only what was tried since is looked at again,
    and `changed[x]` becomes true there.
    Returns whether the bonus is known for every n; if not, it is to be made known, and this called
    again.
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
    """A draw for each pair (x, a), or several: `rho` counts how often it was paid."""
    n, rho, listed, _, tau = seen
    strength, hopeful, lowest, span, draws = prior
    weight, rest, reward = belief.weight, belief.rest, belief.reward
    n_x, n_actions = n.shape
    each = 0.0 if hopeful else strength / n_x  # the pseudo-count of a successor that was seen
    for x in range(n_x):
        for a in range(n_actions):
            if hopeful and n[x, a] == 0:
                continue  # its reward is infinite, and stays so
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
                if hopeful or others > 0:
                    left, state = gamma(strength if hopeful else each * others, state)
                total = left
                for k in range(listed[x]):
                    total += weight[x, k, o]
                if total < _TINY:  # a tiny prior, and nothing seen
                    total = left = 1.0
                scale, taken_out = 1.0 / total, 0.0
                rest[x, o] = left * scale
                if not hopeful:  # it weighs the sum over all states: those seen are taken out of it
                    rest[x, o] /= max(others, 1)
                    taken_out = rest[x, o]
                for k in range(listed[x]):
                    if tau[x, a, k] > 0:
                        weight[x, k, o] = weight[x, k, o] * scale - taken_out
                paid, state = beta(rho[x, a], n[x, a] - rho[x, a], state)
                reward[x, o] = lowest + span * paid


# --- chance: every draw takes the state of a random sequence, and returns the next one with it


@_inner
def _next_bits(state: Bits) -> tuple[Bits, Bits]:
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
    bits, state = _next_bits(state)
    return _as_number(bits), state


@_compiled
def normal(state: Bits) -> tuple[float, Bits]:
    """A draw from N(0, 1): Marsaglia and Tsang's ziggurat, in 128 layers of equal area."""
    while True:
        bits, state = _next_bits(state)
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
            if u < 1.0 - 0.0331 * x * x * x * x:  # mostly spares the logarithms
                return middle * cube, state
            if np.log(u) < 0.5 * x * x + middle * (1.0 - cube + np.log(cube)):
                return middle * cube, state


@_compiled
def beta(paid: float, unpaid: float, state: Bits) -> tuple[float, Bits]:
    """A draw from Beta(1 + paid, 1 + unpaid)."""
    if paid == 0.0 or unpaid == 0.0:
        u, state = uniform(state)
        power = np.log(u) / (1.0 + paid + unpaid)
        return (-np.expm1(power) if paid == 0.0 else np.exp(power)), state
    first, state = gamma(1.0 + paid, state)
    second, state = gamma(1.0 + unpaid, state)
    return first / (first + second), state
