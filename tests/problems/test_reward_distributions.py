"""Edges that pay this or that: written as a list in a file, sampled, solved and learned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import qrmax

TASK = """
initial = "start"
success = ["got"]
edges = [{ from = "start", when = "coffee", to = "got", reward = [[1.0, 0.5], [5.0, 0.25]] }]
"""
SAMPLES = 4000


@pytest.fixture(name="problem")
def _problem(tmp_path: Path) -> qrmax.Problem:
    (tmp_path / "map.txt").write_text("start: 0,0\n\n. c\n")
    (tmp_path / "task.toml").write_text(TASK)
    made: qrmax.Problem = qrmax.make(map=tmp_path / "map.txt", task=tmp_path / "task.toml", slip=0)
    return made


def test_the_optimum_counts_what_is_paid_on_average(problem: qrmax.Problem) -> None:
    mean, again = 1.0 * 0.5 + 5.0 * 0.25, 0.25
    exact = mean / (1 - 0.9 * again)
    assert qrmax.solve(problem).start_value == pytest.approx(exact)


def test_a_world_pays_as_often_as_the_file_says(problem: qrmax.Problem) -> None:
    env = qrmax.ProblemEnv(problem)
    env.reset(seed=7)
    paid = []
    for _ in range(SAMPLES):
        env.reset()
        paid.append(env.step(1)[1])
    shares = [np.mean(np.array(paid) == reward) for reward in (1.0, 5.0, 0.0)]
    assert shares == pytest.approx([0.5, 0.25, 0.25], abs=0.04)


def test_it_is_learned_with_more_samples_of_the_task(problem: qrmax.Problem) -> None:
    run = qrmax.train("qrmax", problem, seed=7, t_env=5, t_task=400, max_steps=20_000)
    start = problem.mdp.start.argmax()
    assert run.agent.q[start, 0].max() == pytest.approx(qrmax.solve(problem).start_value, rel=0.1)
