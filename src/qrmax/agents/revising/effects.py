"""A law of displacements, the same for all states, and what is open or shut (compiled).

    d_j              the displacements that states share; d_0 = 0 (`displacements.py`)
    b*(a)            the nominal displacement of action a: the likeliest of K_0[a, 1], K_0[a, 2] ...
    K_0[a, j]        the probability that a attempts d_j where d_b* is open
    K_1[a, j]        the same where d_b* is shut
    o(s, j)          the posterior probability that d_j is open in s; o(s, 0) = 1

An attempt at a displacement that is shut leads from s to s, and one that leads to no state is shut:

    p(d_j | s, a) = sum_i w_i K_i[a, j] o_i(s, j)      j > 0;  the rest is p(d_0 | s, a)
    w_0 = o(s, b*), w_1 = 1 - w_0;  o_0(s, b*) = 1, o_1(s, b*) = 0, and o_i = o elsewhere

What was observed once is open. For all else, the own evidence of s is

    l(s, j) = sum_ax tau(s, a, x) log((p(x | s, a, j open) + e) / (p(x | s, a, j shut) + e))

with e = 0.01 and the other displacements as they are believed; two rounds. The prior is that edges
can mostly be crossed both ways: with r the probability that the way back, from s + d_j, is open,
by its own evidence,

    logit o(s, j) = l(s, j) + logit(r P(open | back open) + (1 - r) P(open | back shut))

where the two, and the share of open edges, are frequencies among the edges that are decided.
K is fitted by expectation maximisation, one step at a time, over rows as far as they are believed.

Each row is one of two, by Bayes factors:

    free      Dirichlet(alpha / m) on the successors that were seen, as in `transition_rows.py`
    by law    Dirichlet(beta p),  beta that of a grid which maximises the marginal likelihood

The prior weight of the law is the mean responsibility of the rows with three samples or more and,
in equal shares, those of the other actions of the same state that were tried.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qrmax.agents.revising.transition_rows import successors_seen
from qrmax.planning.compilation import compiled, inner

if TYPE_CHECKING:  # numba does not read annotations
    from qrmax.empirical.successors import Seen
    from qrmax.planning.arrays import BoolArray, FloatArray, IntArray, Rows

_compiled, _inner = compiled, inner

BETAS: FloatArray = np.array([10.0, 30.0, 100.0, 300.0, 1000.0, 10000.0])
"""The grid of beta: a law that is looser than the first is none."""

CROSSED = 100.0  # the evidence of an edge that was crossed
MOST_EVIDENCE = 50.0  # of one that was not
DECIDED = 3.0
DOUBT = 0.01  # an edge that is less likely to be open than this is taken for shut
_TINY = 0.01  # e
_ROUNDS = 2
_JUDGED = 3  # samples from which on a row counts for the prior weight
LEAST_SAMPLES = 3.0  # of an action, before there is a law for it
_PRIOR_OPEN, _PRIOR_SHUT = 1.0, 2.0  # samples' worth of the priors of K_0 and K_1


class Law(NamedTuple):
    """Parameters that are fitted to the whole world."""

    share: FloatArray  # K, [i, a, j]
    samples: FloatArray  # [i, a]: expected number of samples
    reversal: FloatArray  # [3]: the probability of open; if the way back is; if it is shut
    trust: FloatArray  # [1]: mean responsibility of the law
    beta: FloatArray  # [1]


class Ground(NamedTuple):
    """Successors by displacement, and what is known of the ways there."""

    to: IntArray  # [s, j]: a state, or -1
    slot: IntArray  # [s, j]: its place in the successor list of s, or -1
    back: IntArray  # [j]: the displacement back, or -1
    edge: FloatArray  # l, [s, j]


class EffectRule(NamedTuple):
    """Rules by which rows are made."""

    alpha: float  # of the evidence for free rows
    shrinkage: float  # the same, or 0: free rows are frequencies
    threshold: int  # samples before a pair with a free row counts as known
    fewer: int  # the same if its row is by law
    squared_scale: float  # c^2
    means: bool  # rows to recommend by, not to explore with


class Totals(NamedTuple):
    """Sums over the world, for the next law."""

    share: FloatArray  # [i, a, j]
    edges: FloatArray  # [own, back]: numbers of edges; 0 shut, 1 open, 2 undecided
    trust: FloatArray  # [2]: the sum of responsibilities, and the number of rows
    evidence: FloatArray  # [beta]


class Room(NamedTuple):
    """Buffers."""

    opened: FloatArray  # [j]
    row: FloatArray  # [j]
    other: FloatArray  # [j]
    law: FloatArray  # [a, k]: rows by law
    odds: FloatArray  # [a]
    trust: FloatArray  # [a]
    nominal: IntArray  # [a]


@_inner
def _make_room(law: Law, width: int) -> Room:
    actions, size = law.share.shape[1], law.share.shape[2]
    room = Room(
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty((actions, width)),
        np.empty(actions),
        np.empty(actions),
        np.empty(actions, dtype=np.int32),
    )
    for a in range(actions):
        best = 0
        for j in range(1, size):
            if best == 0 or law.share[0, a, j] > law.share[0, a, best]:
                best = j
        room.nominal[a] = best if law.samples[0, a] >= LEAST_SAMPLES else -1
        if best == 0:
            room.nominal[a] = -1
    return room


@_inner
def _logit(p: float) -> float:
    return math.log(p / (1.0 - p))


@_inner
def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


@_inner
def _believe_edges(ground: Ground, law: Law, s: int, opened: FloatArray) -> None:
    """o(s, .) into `opened`."""
    to, _, back, edge = ground
    usual, if_open, if_shut = law.reversal[0], law.reversal[1], law.reversal[2]
    opened[0] = 1.0
    for j in range(1, opened.size):
        x = to[s, j]
        if x < 0:
            opened[j] = 0.0
        elif edge[s, j] == CROSSED:
            opened[j] = 1.0
        else:
            prior = usual
            if back[j] >= 0:
                r = _sigmoid(_logit(usual) + edge[x, back[j]])
                prior = r * if_open + (1.0 - r) * if_shut
            opened[j] = _sigmoid(_logit(prior) + edge[s, j])


@_inner
def _predict(law: Law, a: int, nominal: int, opened: FloatArray, row: FloatArray) -> None:
    """p(d_j | s, a) into `row`."""
    share, first = law.share, opened[nominal]
    rest = 1.0
    for j in range(1, row.size):
        if j == nominal:
            row[j] = first * share[0, a, j]
        else:
            row[j] = opened[j] * (first * share[0, a, j] + (1.0 - first) * share[1, a, j])
        rest -= row[j]
    row[0] = max(rest, 0.0)


@_inner
def _judge_edges(seen: Seen, ground: Ground, law: Law, s: int, room: Room) -> bool:
    """l(s, .) by what was observed in s; returns whether it has changed."""
    n, tau = seen.n, seen.tau
    _, slot, _, edge = ground
    opened, row, other, nominal = room.opened, room.row, room.other, room.nominal
    actions, changed = n.shape[1], False
    for j in range(1, opened.size):
        if edge[s, j] == CROSSED or slot[s, j] < 0:
            continue
        for a in range(actions):
            if tau[s, a, slot[s, j]] > 0:
                edge[s, j] = CROSSED
                changed = True
    for _ in range(_ROUNDS):
        _believe_edges(ground, law, s, opened)
        for j in range(1, opened.size):
            if edge[s, j] == CROSSED or slot[s, j] < 0:
                continue
            total, kept = 0.0, opened[j]
            for a in range(actions):
                if n[s, a] == 0 or nominal[a] < 0:
                    continue
                opened[j] = 1.0
                _predict(law, a, nominal[a], opened, row)
                opened[j] = 0.0
                _predict(law, a, nominal[a], opened, other)
                for i in range(opened.size):
                    if slot[s, i] >= 0 and tau[s, a, slot[s, i]] > 0:
                        times = tau[s, a, slot[s, i]]
                        total += times * math.log((row[i] + _TINY) / (other[i] + _TINY))
            opened[j] = kept
            total = min(MOST_EVIDENCE, max(-MOST_EVIDENCE, total))
            changed = changed or total != edge[s, j]
            edge[s, j] = total
    return changed


@_inner
def _log_free(seen: Seen, alpha: float, s: int, a: int, support: int) -> float:
    """The log marginal likelihood of a row's counts, if the row is free."""
    total = math.lgamma(alpha) - math.lgamma(alpha + seen.n[s, a])
    each = alpha / max(support, 1)
    for k in range(seen.listed[s]):
        if seen.tau[s, a, k] > 0:
            total += math.lgamma(seen.tau[s, a, k] + each) - math.lgamma(each)
    return total


@_inner
def _log_by_law(seen: Seen, beta: float, s: int, a: int, p: FloatArray) -> float:
    """The same if the row is by law; minus infinity if that excludes what was observed."""
    total = math.lgamma(beta) - math.lgamma(beta + seen.n[s, a])
    for k in range(seen.listed[s]):
        if seen.tau[s, a, k] > 0:
            if p[k] <= 0.0:
                return -np.inf
            total += math.lgamma(seen.tau[s, a, k] + beta * p[k]) - math.lgamma(beta * p[k])
    return total


@_inner
def _trust_rows(
    seen: Seen, ground: Ground, law: Law, alpha: float, s: int, support: int, room: Room
) -> None:
    """Rows by law, with o(s, .) as in `room.opened`, and their posterior weights."""
    n, listed, slot = seen.n, seen.listed, ground.slot
    odds, trust = room.odds, room.trust
    common = law.trust[0]
    for a in range(n.shape[1]):
        odds[a] = -np.inf
        for k in range(listed[s]):
            room.law[a, k] = 0.0
        if room.nominal[a] >= 0:
            _predict(law, a, room.nominal[a], room.opened, room.row)
            for j in range(room.row.size):
                if slot[s, j] >= 0:
                    room.law[a, slot[s, j]] = room.row[j]
            odds[a] = 0.0
            if n[s, a] > 0:
                odds[a] = _log_by_law(seen, law.beta[0], s, a, room.law[a])
                odds[a] -= _log_free(seen, alpha, s, a, support)
        trust[a] = _sigmoid(_logit(common) + odds[a]) if odds[a] > -np.inf else 0.0
    for a in range(n.shape[1]):
        total, others = common, 1.0
        for b in range(n.shape[1]):
            if b != a and n[s, b] > 0 and room.nominal[b] >= 0:
                total += trust[b]
                others += 1.0
        prior = min(max(total / others, 1e-6), 1.0 - 1e-6)
        room.odds[a] = _logit(prior) + odds[a] if odds[a] > -np.inf else -np.inf
    for a in range(n.shape[1]):
        trust[a] = _sigmoid(room.odds[a]) if room.odds[a] > -np.inf else 0.0


@_inner
def _decided(edge: float) -> int:
    return 1 if edge >= DECIDED else 0 if edge <= -DECIDED else 2


@_compiled
def add_up(seen: Seen, ground: Ground, law: Law, alpha: float, totals: Totals) -> None:
    """The expectation step, over all states that were left: sums into `totals`, which are 0."""
    n, tau = seen.n, seen.tau
    to, slot, back, edge = ground
    room = _make_room(law, tau.shape[2])
    opened = room.opened
    for s in range(n.shape[0]):
        visits = 0
        for a in range(n.shape[1]):
            visits += n[s, a]
        if visits == 0:
            continue
        for j in range(1, opened.size):
            if to[s, j] >= 0:
                way_back = edge[to[s, j], back[j]] if back[j] >= 0 else 0.0
                totals.edges[_decided(edge[s, j]), _decided(way_back)] += 1.0
        support = successors_seen(tau, s, seen.listed[s])
        _believe_edges(ground, law, s, opened)
        _trust_rows(seen, ground, law, alpha, s, support, room)
        for a in range(n.shape[1]):
            if n[s, a] == 0:
                continue
            weight, first, nominal = 1.0, 1.0, room.nominal[a]
            if nominal >= 0:
                weight, first = room.trust[a], opened[nominal]
                if n[s, a] >= _JUDGED:
                    totals.trust[0] += weight
                    totals.trust[1] += 1.0
                if weight > 0.0:
                    for i in range(totals.evidence.size):
                        found = _log_by_law(seen, BETAS[i], s, a, room.law[a])
                        totals.evidence[i] += weight * found
            for i in range(2):
                part = weight * (first if i == 0 else 1.0 - first)
                if part == 0.0:
                    continue
                whole = 0.0  # the probability of a stay
                for j in range(opened.size):
                    shut = 1.0 if j == 0 else 1.0 - opened[j]
                    if j == nominal:
                        shut = float(i)
                    room.row[j] = shut * law.share[i, a, j]
                    whole += room.row[j]
                for j in range(1, opened.size):
                    if slot[s, j] >= 0:
                        totals.share[i, a, j] += part * tau[s, a, slot[s, j]]
                stays = tau[s, a, slot[s, 0]] if slot[s, 0] >= 0 else 0
                if stays > 0:
                    for j in range(opened.size):
                        at = room.row[j] / whole if whole > 0.0 else 1.0 if j == 0 else 0.0
                        totals.share[i, a, j] += part * stays * at


def make_law(actions: int) -> Law:
    """The law before anything was observed: there are no displacements."""
    return Law(
        share=np.ones((2, actions, 1)),
        samples=np.zeros((2, actions)),
        reversal=np.array([0.8, 0.9, 0.1]),
        trust=np.array([2.0 / 3.0]),
        beta=np.array([30.0]),
    )


def widened(law: Law, size: int) -> Law:
    """The law for more displacements, which have probability 0 so far."""
    share = np.zeros((*law.share.shape[:2], size))
    share[:, :, : law.share.shape[2]] = law.share
    return law._replace(share=share)


def fit_law(seen: Seen, ground: Ground, law: Law, alpha: float) -> Law:
    """One step of expectation maximisation."""
    size = law.share.shape[2]
    totals = Totals(np.zeros_like(law.share), np.zeros((3, 3)), np.zeros(2), np.zeros(len(BETAS)))
    add_up(seen, ground, law, alpha, totals)
    samples = totals.share.sum(axis=2)
    first = (totals.share[0] + _PRIOR_OPEN / size) / (samples[0] + _PRIOR_OPEN)[:, None]
    second = (totals.share[1] + _PRIOR_SHUT * first) / (samples[1] + _PRIOR_SHUT)[:, None]
    edges = totals.edges
    shut, opened = edges[0].sum(), edges[1].sum()
    return Law(
        share=np.stack([first, second]),
        samples=samples,
        reversal=np.array(
            [
                (opened + 4.0) / (opened + shut + 5.0),
                (edges[1, 1] + 9.0) / (edges[1, 1] + edges[0, 1] + 10.0),
                (edges[1, 0] + 1.0) / (edges[1, 0] + edges[0, 0] + 10.0),
            ]
        ),
        trust=(totals.trust[:1] + 2.0) / (totals.trust[1] + 3.0),
        beta=BETAS[[totals.evidence.argmax()]],
    )


@_inner
def _reward(seen: Seen, ground: Ground, s: int, a: int, k: int) -> float:
    """R(s, a, x): its own mean, that of all actions, or that of arrivals in x from elsewhere."""
    rho, tau = seen.rho, seen.tau
    if tau[s, a, k] > 0:
        return float(rho[s, a, k] / tau[s, a, k])
    total, times = 0.0, 0
    for b in range(tau.shape[1]):
        total += rho[s, b, k]
        times += tau[s, b, k]
    if times > 0:
        return float(total / times)
    x = seen.outcome[s, k]
    for j in range(ground.back.size):
        y = ground.to[x, ground.back[j]] if ground.back[j] >= 0 else -1
        if y >= 0 and ground.slot[y, j] >= 0:
            for b in range(tau.shape[1]):
                total += rho[y, b, ground.slot[y, j]]
                times += tau[y, b, ground.slot[y, j]]
    return float(total / times) if times > 0 else 0.0


@_compiled
def fill_rows_by_law(
    seen: Seen,
    ground: Ground,
    law: Law,
    rule: EffectRule,
    counted: IntArray,
    rows: Rows,
    marked: BoolArray,
    changed: IntArray,
) -> int:
    """Judge the edges of states with a visit count other than `counted`, then estimate their rows.

    The rows of the states around them are estimated again where the prior of their edges has
    changed. Returns the number of states with changes, which are listed in `changed`.
    """
    n, _, listed, _, tau = seen
    to, slot, back, edge = ground
    alpha, shrinkage, threshold, fewer, squared_scale, means = rule
    room = _make_room(law, tau.shape[2])
    opened, trust, actions, beta = room.opened, room.trust, n.shape[1], law.beta[0]
    for s in range(n.shape[0]):
        marked[s] = False
    for s in range(n.shape[0]):
        stale = False
        for a in range(actions):
            stale = stale or n[s, a] != counted[s, a]
            counted[s, a] = n[s, a]
        if stale and listed[s] > 0:
            marked[s] = True
            if _judge_edges(seen, ground, law, s, room):
                for j in range(1, opened.size):
                    if to[s, j] >= 0 and listed[to[s, j]] > 0:
                        marked[to[s, j]] = True
    found = 0
    for s in range(n.shape[0]):
        if not marked[s]:
            continue
        support = successors_seen(tau, s, listed[s])
        _believe_edges(ground, law, s, opened)
        _trust_rows(seen, ground, law, alpha, s, support, room)
        for j in range(1, opened.size):
            if opened[j] < DOUBT:
                opened[j] = 0.0
        for a in range(actions):
            visits, nominal, w = n[s, a], room.nominal[a], trust[a]
            spread = 0.0
            for k in range(listed[s]):
                room.law[a, k] = 0.0
            if w > 0.0:
                kept = opened[nominal]
                if means:
                    crossed_back = (
                        to[s, nominal] >= 0
                        and back[nominal] >= 0
                        and edge[to[s, nominal], back[nominal]] == CROSSED
                    )
                    if kept < 1.0 and not crossed_back:
                        opened[nominal] = 0.0
                elif kept > 0.0:
                    opened[nominal] = 1.0
                _predict(law, a, nominal, opened, room.row)
                for j in range(opened.size):
                    if slot[s, j] >= 0:
                        room.law[a, slot[s, j]] = room.row[j]
                of_law = law.samples[0 if opened[nominal] > 0.5 else 1, a]
                spread = w * (1.0 / (visits + beta) + 1.0 / (of_law + 1.0))
                opened[nominal] = kept
            whole = 0.0
            for k in range(listed[s]):
                p = w * (tau[s, a, k] + beta * room.law[a, k]) / (visits + beta)
                if visits > 0:
                    at = 0
                    for b in range(actions):
                        at += tau[s, b, k]
                    if at > 0:
                        p += (1.0 - w) * (tau[s, a, k] + shrinkage / support) / (visits + shrinkage)
                rows.prob[s, a, k] = p
                rows.reward[s, a, k] = _reward(seen, ground, s, a, k)
                whole += p
            for k in range(listed[s]):
                rows.prob[s, a, k] = rows.prob[s, a, k] / whole if whole > 0.0 else 0.0
            rows.radius[s, a] = squared_scale * (spread + (1.0 - w) / max(visits, 1))
            if means:
                rows.base[s, a] = 0.0 if w >= 0.5 or visits > 0 else -np.inf
            else:
                needed = fewer if w >= 0.5 else threshold
                rows.base[s, a] = 0.0 if visits >= needed and whole > 0.0 else np.inf
        changed[found] = s
        found += 1
    return found
