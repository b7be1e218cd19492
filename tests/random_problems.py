"""Random problems for property tests: small, but with everything that can go wrong in them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from qrmax import Edge, Problem, QRMaxWarning, RewardMachine, TabularMDP

NON_NEGATIVE = (0.0, 0.0, 0.0, 1.0, 0.25, 1000.0)
ANY_SIGN = (0.0, 0.0, 1.0, -1.0, 0.5, -100.0)


@st.composite
def problems(draw: st.DrawFn, rewards: tuple[float, ...] = ANY_SIGN) -> Problem:
    """A process with repeated successors, padding and terminal states, and any kind of machine."""
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
        coordinates=np.arange(n_states)[:, None] // draw(st.sampled_from([1, 2])),
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
    if draw(st.booleans()):
        edges = with_chances(edges, rng.choice([1.0, 0.8, 0.3], len(edges)))
    success = {state for state in ends if rng.random() < 0.7}
    labels = [frozenset(), *(frozenset({name}) for name in names)]
    label = rng.integers(0, len(labels), n_states)
    at_start = {name for s in np.flatnonzero(mdp.start) for name in labels[label[s]]}
    starts_by_chance = any(
        e.source == "q0" and e.probability < 1.0 and e.guard.holds(at_start) for e in edges
    )
    machine = RewardMachine(
        edges,
        initial="q0",
        states=states,
        success=success,
        failure=ends - success,
        undefined=draw(st.sampled_from(["stay", "stay", "fail"])),
        consume_initial=draw(st.booleans()) and not starts_by_chance,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QRMaxWarning)  # a random task may well be impossible
        return Problem(mdp, machine, labels, label)


def with_chances(edges: Sequence[Edge], chances: Sequence[float]) -> list[Edge]:
    """The same edges, each with its chance, shared out among the alternatives of one event."""
    alternatives = Counter((edge.source, edge.guard) for edge in edges)
    return [
        Edge(e.source, e.guard, e.target, e.reward, chance / alternatives[e.source, e.guard])
        for e, chance in zip(edges, chances, strict=True)
    ]


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
