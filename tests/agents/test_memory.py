"""Memory is linear in |S||Q||A|: a world of sixteen times the size takes sixteen times as much."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from learners import Variant, trial
from qrmax import Edge, Problem, RewardMachine, TabularMDP

TASK_STATES = 9
BYTES = {
    "q-learning": 24,
    "qrmax": 60,
    "qr-ucb": 90,
    "rmax": 240,
    "ucbvi-b": 360,
    "ucbvi-b-rm": 140,
    "psrl": 360,
}
"""For each (s, q, a), at most, at any time: tables, counters, the plan, the world, a snapshot.
Plans of 20 stages take 40 of them, and as much again in a snapshot."""


def plain(size: int) -> Problem:
    """An open square with eight places to visit in order, near its upper left corner."""
    y, x = np.divmod(np.arange(size * size), size)
    cells = [(np.maximum(y - 1, 0), x), (y, np.minimum(x + 1, size - 1))]
    cells += [(np.minimum(y + 1, size - 1), x), (y, np.maximum(x - 1, 0))]
    succ = np.stack([row * size + column for row, column in cells], axis=1)[:, :, None]
    label = np.zeros(size * size, dtype=int)
    label[[place * (size + 1) for place in range(1, TASK_STATES)]] = range(1, TASK_STATES)
    machine = RewardMachine(
        [Edge(f"{i}", f"p{i}", f"{i + 1}", float(i == 7)) for i in range(TASK_STATES - 1)],
        initial="0",
        success=[f"{TASK_STATES - 1}"],
    )
    labels = [(), *([f"p{i}"] for i in range(TASK_STATES - 1))]
    mdp = TabularMDP(succ, np.ones(succ.shape))
    return Problem(mdp, machine, labels, label, max_episode_steps=500)


def peak(name: str, problem: Problem) -> float:
    """The most bytes at any time of a run and of keeping what it learned, for each (s, q, a)."""
    entries = problem.n_states * problem.n_task_states * problem.n_actions
    tracemalloc.start()
    try:
        quick = Variant(name).has_horizon or Variant(name).revises
        steps = 400 if quick else 8_000  # to plan all is not quick
        trial(Variant(name), problem, t_env=2).rush(steps).agent.snapshot()
        return tracemalloc.get_traced_memory()[1] / entries
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", BYTES)
def test_bytes_for_each_triple_do_not_grow_with_the_world(name: str) -> None:
    trial(Variant(name), plain(20), t_env=2).rush(200)  # compilation is not counted
    assert plain(20).n_task_states == TASK_STATES
    for size in (50, 120):
        assert peak(name, plain(size)) < BYTES[name]
