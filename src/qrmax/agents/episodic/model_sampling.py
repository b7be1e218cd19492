"""Exact posterior sampling of models, with every unobserved successor on its own (compiled).

    p(. | x, a) ~ Dirichlet(counts + prior / |X| each)     uniform prior, over all states x
    p(. | x, a) ~ Dirichlet(counts, prior)                 optimistic prior, one more successor
    r(x, a)     ~ r_min + r_span Beta(1 + successes, 1 + failures)
             or ~ r_min + r_span N(sum / (1 + n), 1 / (1 + n))

(`beliefs.draw_posterior` draws the unobserved successors of the uniform prior together, and spreads
them evenly: their expected value is the same, its variance is not.)

Of m unobserved successors with c pseudo-counts each, nearly all have next to no probability. They
are drawn in size-biased order, so that the few that matter come first: each is any of those that
are left, with equal chance, and takes a share Beta(1 + c, (m - 1) c) of what is left, m then being
one less. Drawing ends when less than 1e-12 is left, which is spread evenly.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qrmax.agents.episodic.beliefs import beta, gamma, next_bits, normal, uniform
from qrmax.errors import ParameterError
from qrmax.planning.compilation import compiled, inner
from qrmax.planning.stage_tables import SampledModels

if TYPE_CHECKING:  # numba does not read annotations
    from numpy.typing import NDArray

    from qrmax.agents.episodic.beliefs import Bits
    from qrmax.empirical.successors import Seen
    from qrmax.planning.arrays import FloatArray

    BitsArray = NDArray[np.uint64]

_compiled, _inner = compiled, inner

LEFT = 1e-12
"""The probability of unobserved successors that is not drawn."""


class Posterior(NamedTuple):
    """The prior distribution of transitions and rewards, and the number of draws."""

    strength: float  # pseudo-counts of all successors together
    optimistic: bool  # they are those of one more successor; else of all states
    gaussian: bool  # rewards are normal with variance r_span^2; else binary
    lowest: float  # the reward that counts as 0
    span: float  # from there to the reward that counts as 1
    draws: int  # models sampled at once


def make_models(n_x: int, n_options: int, n_succ: int, posterior: Posterior) -> SampledModels:
    """Allocate models with `n_succ` observed successors, and room for those that are not."""
    room = n_succ
    if not posterior.optimistic:  # drawn: Poisson with this mean, or fewer
        mean = posterior.strength * -math.log(LEFT)
        room += min(n_x, math.ceil(mean + 10.0 * math.sqrt(mean)) + 20)
    try:
        return SampledModels(
            succ=np.zeros((n_x, n_options, room), dtype=np.int32),
            weight=np.zeros((n_x, n_options, room)),
            listed=np.zeros((n_x, n_options), dtype=np.int32),
            rest=np.zeros((n_x, n_options)),
            reward=np.zeros((n_x, n_options)),
        )
    except MemoryError as error:
        raise ParameterError(
            f"models of {n_x} states and {n_options} options with {room} successors each take "
            f"{n_x * n_options * room * 12 / 1e9:,.0f} GB of memory; give fewer samples"
        ) from error


@_compiled
def begin_models(
    seen: Seen, posterior: Posterior, state: Bits, models: SampledModels, resume: BitsArray
) -> None:
    """Sample the observed successors and the reward of each pair (x, a), once or several times.

    `rest` becomes the probability of all unobserved successors; `draw_on` draws them one by one,
    from a random sequence of their own for every option (`resume[x, o]`).
    """
    n, rho, seen_listed, outcome, tau = seen
    strength, optimistic, gaussian, lowest, span, _ = posterior
    succ, weight, listed, rest, reward = models
    n_x, n_actions = n.shape
    each = 0.0 if optimistic else strength / n_x
    for x in range(n_x):
        for o in range(reward.shape[1]):
            a = o % n_actions
            count, total, left = 0, 0.0, 1.0
            for k in range(seen_listed[x]):
                if tau[x, a, k] > 0:
                    succ[x, o, count] = outcome[x, k]
                    weight[x, o, count], state = gamma(tau[x, a, k] + each, state)
                    total += weight[x, o, count]
                    count += 1
            if count > 0:
                left = 0.0
                if optimistic or n_x > count:
                    shape = strength if optimistic else each * (n_x - count)
                    left, state = gamma(shape, state)
                total += left
                for k in range(count):
                    weight[x, o, k] /= total
                left /= total
            listed[x, o], rest[x, o] = count, left
            if gaussian:
                noise, state = normal(state)
                sum_of_shares = (rho[x, a] - n[x, a] * lowest) / span if span > 0.0 else 0.0
                share = sum_of_shares / (1 + n[x, a]) + noise / np.sqrt(1.0 + n[x, a])
            else:
                share, state = beta(rho[x, a], n[x, a] - rho[x, a], state)
            reward[x, o] = lowest + span * share
            resume[x, o], state = next_bits(state)


@_compiled
def draw_on(
    models: SampledModels,
    resume: BitsArray,
    each: float,
    ahead: FloatArray,
    most: float,
    floor: float,
    drawn_for: NDArray[np.int64],
    x: int,
    o: int,
) -> float:
    """Draw unobserved successors of an option, until all are known or its value is below a floor.

    Returns the least upper bound of its value: `ahead[y]` is the value of going to y, at most
    `most`. `each` is the pseudo-count of one successor; `drawn_for` has room for a mark at every y.
    """
    succ, weight, listed, rest, reward = models
    n_x, n_options = reward.shape
    number, count, left, state = x * n_options + o, listed[x, o], rest[x, o], resume[x, o]
    worth = reward[x, o]
    for k in range(count):
        drawn_for[succ[x, o, k]] = number
        worth += weight[x, o, k] * ahead[succ[x, o, k]]
    others = n_x - count
    while others > 0 and left > LEFT and count < succ.shape[2] and worth + left * most >= floor:
        u, state = uniform(state)
        y = int(u * n_x)
        if drawn_for[y] == number:
            continue
        drawn_for[y] = number
        others -= 1
        remains = 0.0
        if others > 0:
            remains, state = _remains(each, each * others, state)
        succ[x, o, count] = y
        weight[x, o, count] = left * (1.0 - remains)
        left *= remains
        worth += weight[x, o, count] * ahead[y]
        count += 1
    listed[x, o], rest[x, o], resume[x, o] = count, left, state
    bound: float = worth + left * most
    return bound


@_inner
def _remains(each: float, others: float, state: Bits) -> tuple[float, Bits]:
    """A draw from Beta(others, 1 + each), what one of the successors leaves to the others.

    For small pseudo-counts, by rejection from Beta(others, 1), whose inverse is a power.
    """
    if each > 1.0:
        ours, state = gamma(1.0 + each, state)
        theirs, state = gamma(others, state)
        return theirs / (ours + theirs), state
    while True:
        u, state = uniform(state)
        remains = u ** (1.0 / others)
        u, state = uniform(state)
        taken = 1.0 - remains
        if u * taken < taken - each * remains or u < taken**each:  # x^c >= 1 - c (1 / x - 1)
            return remains, state
