"""Planning on uniformly sampled buckets: the policy that they allow, whatever the exploration.

A learner samples the states that it visits, a few times only, and is optimistic about unknown
pairs. Here the same equations get uniform samples from all over a plane, and unknown pairs have the
value 0. The value of the greedy policy then depends on the buckets alone: if it is low, no
threshold helps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qrmax.agents.buckets.buckets import Buckets
from qrmax.agents.buckets.in_buckets import BucketPolicy
from qrmax.analysis.bucket_diagnosis import scatter
from qrmax.planning.incremental import IncrementalPlanner
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.plane import moves

Numbers = NDArray[np.int64]
TOLERANCE = 1e-6


class _Moves(NamedTuple):
    """One transition from each sampled position, as arrays."""

    bucket: Numbers
    cell: Numbers  # arrived in
    to: Numbers  # the bucket of that


def plan_on_buckets(
    problem: ContinuousProblem,
    buckets: Buckets,
    gamma: float,
    rng: np.random.Generator,
    samples: int = 100_000,
) -> BucketPolicy:
    """Plan with uniform samples of each action; new buckets get a number.

    >>> import qrmax
    >>> from qrmax.agents.buckets.simhash import uniform_grid
    >>> line = qrmax.make("continuous/line/ab")
    >>> buckets = Buckets(line.observations, uniform_grid(1, cells=20))
    >>> plan_on_buckets(line, buckets, 0.95, np.random.default_rng(7), samples=2000).table.shape
    (20, 3)
    """
    sampled = [_sample(problem, buckets, a, samples, rng) for a in range(problem.n_actions)]
    sizes = (len(buckets), problem.n_task_states, problem.n_actions)
    planner = IncrementalPlanner(*sizes, gamma=gamma, optimistic=0.0, tolerance=TOLERANCE)
    for a, made in enumerate(sampled):
        paid = problem.plane.reward[made.cell]
        for b, of_b in _groups(made.bucket):
            succ, prob = _shares(made.to[of_b])
            planner.learn_env(b, a, succ, prob, float(paid[of_b].mean()))
    cells = np.concatenate([made.cell for made in sampled])
    for b, of_b in _groups(np.concatenate([made.to for made in sampled])):
        _learn_task(planner, problem, b, cells[of_b])
    planner.replan()
    return BucketPolicy(planner.greedy(), buckets)


def _sample(
    problem: ContinuousProblem, buckets: Buckets, a: int, samples: int, rng: np.random.Generator
) -> _Moves:
    """Take an action once from each of `samples` positions."""
    seen = scatter(problem, samples, rng)
    x, y = problem.positions(seen.observations).T
    noise = rng.standard_normal((2, samples))
    x, y, cell = moves(problem.plane, x, y, np.full(samples, a), *noise)
    arrived = problem.observe(np.stack([x, y], axis=1))
    return _Moves(
        bucket=buckets.number_all(seen.observations, seen.labels),
        cell=cell,
        to=buckets.number_all(arrived, problem.label[cell]),
    )


def _learn_task(
    planner: IncrementalPlanner, problem: ContinuousProblem, b: int, cells: Numbers
) -> None:
    """Enter the machine's transition on arriving in a bucket, which may hold several labels."""
    labels, share = _shares(problem.label[cells])
    table, ends = problem.table, problem.done()
    for q in range(problem.n_task_states):
        prob = share[:, None] * table.prob[q, labels]
        next_state, of_state = np.unique(table.next_state[q, labels], return_inverse=True)
        chances = np.zeros(len(next_state))
        np.add.at(chances, of_state.ravel(), prob.ravel())
        planner.learn_task(q, b, next_state, chances, float((prob * table.reward[q, labels]).sum()))
        if ends[cells, q].any():  # as for the agents
            planner.finish(b, q)


def _groups(numbers: Numbers) -> list[tuple[int, Numbers]]:
    """The distinct numbers, each with its indices."""
    order = np.argsort(numbers, kind="stable")
    found, first = np.unique(numbers[order], return_index=True)
    return list(zip(found.tolist(), np.split(order, first[1:]), strict=True))


def _shares(values: NDArray[np.integer]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The distinct values, and the relative frequency of each."""
    found, counts = np.unique(values, return_counts=True)
    return found.astype(np.int32), counts / len(values)
