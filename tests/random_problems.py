"""Random problems for property tests: small, but with everything that can go wrong in them."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import strategies as st

from qrmax import Edge, Problem, QRMaxWarning, RewardMachine, TabularMDP

NON_NEGATIVE = (0.0, 0.0, 0.0, 1.0, 0.25, 1000.0)
ANY_SIGN = (0.0, 0.0, 1.0, -1.0, 0.5, -100.0)


@st.composite
def problems(draw: st.DrawFn, rewards: tuple[float, ...] = ANY_SIGN) -> Problem:
    """A random process with repeated successors, padding, terminal states, and a random machine."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_states, n_actions, width, n_q, n_labels = (
        draw(st.integers(low, high)) for low, high in ((1, 7), (1, 3), (1, 3), (1, 4), (1, 3))
    )
    terminal_share = draw(st.sampled_from([0.0, 0.2]))
    terminal = rng.random(n_states) < terminal_share
    mdp = TabularMDP(
        rng.integers(0, n_states, (n_states, n_actions, width)),
        _probabilities(rng, (n_states, n_actions, width)),
        rng.choice(rewards, (n_states, n_actions, width)) * draw(st.sampled_from([0.0, 1.0])),
        terminal=terminal,
        start=_probabilities(rng, (n_states,)),
    )
    names = [f"p{i}" for i in range(n_labels)]
    states = [f"q{i}" for i in range(n_q)]
    ends = {state for state in states[1:] if rng.random() < 0.3}
    edges = [
        Edge(source, str(rng.choice(names)), str(rng.choice(states)), float(rng.choice(rewards)))
        for source in states
        if source not in ends
        for _ in range(int(rng.integers(0, 3)))
    ]
    success = {state for state in ends if rng.random() < 0.7}
    machine = RewardMachine(
        edges,
        initial="q0",
        states=states,
        success=success,
        failure=ends - success,
        undefined=draw(st.sampled_from(["stay", "stay", "fail"])),
        consume_initial=draw(st.booleans()),
    )
    labels = [frozenset(), *(frozenset({name}) for name in names)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QRMaxWarning)  # a random task may well be impossible
        return Problem(mdp, machine, labels, rng.integers(0, len(labels), n_states))


def size_of(problem: Problem, value: np.ndarray) -> float:
    """What an error is measured by: rounding is as large as the rewards, even where they cancel."""
    rewards = np.abs(problem.mdp.reward).max() + np.abs(problem.table.reward).max()
    return float(np.abs(value).max() + rewards)


def random_policy(problem: Problem, seed: int) -> np.ndarray:
    """An action for each pair."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, problem.n_actions, (problem.n_states, problem.n_task_states))


def _probabilities(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Distributions along the last axis, with zeros in them."""
    mass = rng.random(shape) * (rng.random(shape) < 0.7)
    mass[..., 0] += mass.sum(axis=-1) == 0
    return mass / mass.sum(axis=-1, keepdims=True)
