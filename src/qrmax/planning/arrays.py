"""The arrays that planning kernels take and share.

Tables are `[q, s]` with the world state last: the successors of a state are near it in memory, and
one machine state is solved at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]


class EnvModel(NamedTuple):
    """The world factor. The reward of a pair (s, a) that is not known is infinite.

    `head` and `link` chain the predecessors of each state, so that new ones can be added in place:
    edge (s, a, k) has the number (s |A| + a) K + k; `head[s']` is the last edge into s', and `link`
    of an edge is the one before it. Two edges from the same s into s' are linked once.
    """

    succ: IntArray  # [s, a, k]
    prob: FloatArray  # [s, a, k]
    reward: FloatArray  # [s, a], the mean
    head: IntArray  # [s]
    link: IntArray  # [edge]


class TaskModel(NamedTuple):
    """The machine factor. The reward of a pair (q, label) that is not known is infinite."""

    label: IntArray  # [s]
    next_state: IntArray  # [q, label, j]
    prob: FloatArray  # [q, label, j]
    reward: FloatArray  # [q, label], the mean


class Likeliest(NamedTuple):
    """The most likely outcomes."""

    env: IntArray  # [s, a], the world state reached
    task: IntArray  # [q, label], the machine state reached
    q: int  # where an episode starts
    s: int


class Block(NamedTuple):
    """The Bellman equation of one machine state, its world states renumbered.

    v[i] = max over choices a of constant[i, a] + sum_k weight[i, a, k] v[target[i, a, k]]
    """

    constant: FloatArray  # [i, a]
    target: IntArray  # [i, a, k]
    weight: FloatArray  # [i, a, k]


class Chain(NamedTuple):
    """Markov chain of a policy: the reachable pairs (q, s), numbered in order of discovery.

    Pair i leads to `target[e]` with probability `weight[e]`, for e from `ends[i - 1]` to `ends[i]`;
    otherwise the episode ends there.
    """

    number: IntArray  # [q, s], -1 if not discovered yet
    pair: IntArray  # [i], q |S| + s
    ends: NDArray[np.int64]  # [i]
    reward: FloatArray  # [i], the expected reward of a step from here
    worth: FloatArray  # [i], the expected value of the successor pairs
    stay: FloatArray  # [i], the probability that the episode continues
    target: IntArray  # [e]
    weight: FloatArray  # [e]


class Worklist(NamedTuple):
    """Pairs (q, s) queued for a backup: a ring buffer of world states for each machine state."""

    ring: IntArray  # [q, s]
    first: IntArray  # [q]
    length: IntArray  # [q]
    waiting: BoolArray  # [q, s]


class Order(NamedTuple):
    """The machine states in the order of solving, and their predecessors."""

    states: IntArray  # layer by layer, last first
    ends: IntArray  # where each layer ends in `states`
    feeders: IntArray  # the machine states that can lead to 0, then those that can to 1, ...
    feeder_ends: IntArray  # [q]: where the feeders of q end


class Tables(NamedTuple):
    """The value tables being computed, and the terminal pairs."""

    value: FloatArray  # [q, s], V
    gain: FloatArray  # [q, s], G
    done: BoolArray  # [q, s], the episode is over there and V is 0


class Exploration(NamedTuple):
    """Exploration bonuses, and optimistic values of unknown state-action pairs.

    A backup of (s, q, a) adds both bonuses once its model is known; until then it yields `unknown`.
    """

    env_bonus: FloatArray  # [s, a], in every machine state
    bonus: FloatArray  # [q, s, a]
    unknown: FloatArray  # [q, s, a]


class Rules(NamedTuple):
    """Discount factor, tolerance and limits of the computation."""

    gamma: float  # discount factor
    tolerance: float  # smaller changes, relative to the value, are not propagated
    optimistic: float  # the result of a backup that needs an unknown estimate
    signed: bool  # whether rewards of both signs occur


class Belief(NamedTuple):
    """Model of the world to plan with: one, or several of which the most optimistic is assumed.

    An option is an action together with one of the models, o = b |A| + a: with several models, the
    maximum is over actions and models at once. The number of options is padded to fill the SIMD
    lanes; the reward of padding is minus infinity. The reward of an unvisited option is infinite.
    """

    succ: IntArray  # [x, k], the observed successors of any action
    listed: IntArray  # [x], the number of successors
    weight: FloatArray  # [x, k, o]
    rest: FloatArray  # [x, o]
    reward: FloatArray  # [x, o]
    flat: FloatArray  # [x, o]
    slope: FloatArray  # [x, o]
    spread: FloatArray  # [x, o]


class Stages(NamedTuple):
    """The stages of an episode and their values."""

    gamma: float
    v_max: FloatArray  # [h]
    optimistic_prior: bool  # whether unobserved successors have the value v_max
    ahead: FloatArray  # [h, y, x], G_h
    beyond: FloatArray  # [h, y]


class Rows(NamedTuple):
    """A model of the world with a confidence set around every transition row.

    The actions of a state share one list of successors. The `base` value of a state-action pair is
    an exploration bonus or 0, infinite if the pair is not known, and minus infinity if it must not
    be taken. The kind of confidence set, `ball`, is one of `confidence_sets.py`. `head` and `link`
    are chains of predecessors as in `EnvModel`; the edge from s to its k-th successor has the
    number s K + k.
    """

    succ: IntArray  # [s, k]
    listed: IntArray  # [s], the number of successors
    prob: FloatArray  # [s, a, k]
    reward: FloatArray  # [s, a, k], the mean
    base: FloatArray  # [s, a]
    radius: FloatArray  # [s, a], of the confidence set; 0: the row is certain
    head: IntArray  # [s]
    link: IntArray  # [edge]
    ball: int | None  # the kind of confidence set
