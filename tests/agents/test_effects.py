"""The law of displacements: found where it holds, left alone where it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import qrmax
from learners import trial
from qrmax import Edge, Problem, RewardMachine, TabularMDP
from qrmax.agents.revising.displacements import NOWHERE, Displacements
from qrmax.agents.revising.effects import CROSSED
from qrmax.agents.revising.qr_effects import QREffects
from qrmax.empirical.successors import Successors
from qrmax.errors import ModelError
from qrmax.source import Source
from qrmax.worlds.grid import grid_mdp, parse_map
from small_problems import errand, no_task

UP, RIGHT, DOWN, LEFT = range(4)
SLIP = 0.2

ROOMS = """
start: 0,0

. . .|. . c

. . . . . .

. . .|. . m
- - - - - -
. . .|. . .

. . . . . .
"""
"""Two rooms with a door, and two below that cannot be reached."""


def task() -> RewardMachine:
    edges = [Edge("go", "coffee", "has"), Edge("has", "mail", "out", 1.0)]
    return RewardMachine(edges, initial="go", success=["out"])


def rooms(*, change: Callable[[np.ndarray, np.ndarray], None] | None = None) -> Problem:
    """The rooms; `change` may edit successors and probabilities."""
    grid = parse_map(Source("rooms", ROOMS.strip() + "\n"))
    mdp = grid_mdp(
        grid,
        slip=SLIP,
        slips="perpendicular",
        blocked_moves_slip=False,
        decoration_penalty=0.0,
        decorations_terminate=True,
    )
    if change is not None:
        succ, prob = mdp.succ.copy(), mdp.prob.copy()
        change(succ, prob)
        mdp = TabularMDP(succ, prob, start=mdp.start, coordinates=mdp.coordinates)
    return Problem(mdp, task(), grid.labels(), grid.label(), max_episode_steps=200)


def learned(problem: Problem, steps: int, name: str = "qr-effects-rm", seed: int = 3) -> QREffects:
    agent = trial(name, problem, seed=seed).rush(steps).agent
    assert isinstance(agent, QREffects)
    return agent


def true_row(problem: Problem, s: int, a: int) -> np.ndarray:
    row = np.zeros(problem.n_states)
    np.add.at(row, problem.mdp.succ[s, a], problem.mdp.prob[s, a])
    return row


def mean_row(agent: QREffects, s: int, a: int) -> np.ndarray:
    agent.policy()
    assert agent._best is not None
    rows, row = agent._best.rows, np.zeros(agent.sizes.states)
    size = rows.listed[s]
    np.add.at(row, rows.succ[s, :size], rows.prob[s, a, :size])
    return row


# --- displacements


def test_displacements_lead_to_states_by_their_coordinates() -> None:
    """A hexagonal lattice, in units that binary numbers cannot hold exactly."""
    places = [(x + 0.5 * y, 0.1 * y / 3) for y in range(4) for x in range(5)]
    shared = Displacements(np.array(places))
    shared.share(0, 1)
    shared.share(0, 5)
    shared.share(12, 6)
    assert shared.to[6].tolist() == [6, 7, 11, 0]
    assert shared.to[19].tolist() == [19, NOWHERE, NOWHERE, 13]
    assert shared.back.tolist() == [0, -1, -1, -1]
    shared.share(8, 7)
    assert shared.back.tolist() == [0, 4, -1, -1, 1]


def test_a_displacement_is_shared_once_it_was_seen_from_two_states() -> None:
    seen, shared = Successors(9, 1, by_successor=True), Displacements(np.arange(9.0)[:, None])
    seen.record(0, 0, 1, 0.0)
    seen.record(4, 0, 8, 0.0)
    assert not shared.share_common(seen.arrays)
    seen.record(1, 0, 2, 0.0)
    assert shared.share_common(seen.arrays)
    assert shared.examples.tolist() == [[0, 0], [0, 1]]


def test_states_with_the_same_coordinates_are_told_apart_by_their_rank() -> None:
    shared = Displacements(np.array([[0.0], [0.0], [1.0], [1.0]]))
    shared.share(0, 2)
    assert shared.to[:, 1].tolist() == [2, 3, NOWHERE, NOWHERE]


# --- the law


def test_the_law_of_a_world_with_slips_is_found_and_predicts_pairs_that_were_never_tried() -> None:
    problem = rooms()
    agent = learned(problem, 1500)
    step = problem.mdp.coordinates[agent.displacements.examples]
    moves = (step[:, 1] - step[:, 0]).tolist()
    for a, move in enumerate([[0, -1], [1, 0], [0, 1], [-1, 0]]):
        if agent.law.samples[0, a] >= 100:
            assert agent.law.share[0, a, moves.index(move)] == pytest.approx(1.0 - SLIP, abs=0.1)
    assert (agent.law.samples[0] >= 100).sum() >= 3
    assert agent.law.trust[0] > 0.9
    n = agent.seen.arrays.n
    errors = [
        np.abs(mean_row(agent, int(s), int(a)) - true_row(problem, int(s), int(a))).sum()
        for s, a in np.argwhere(n == 0)
        if n[s].sum() > 0 and agent.law.samples[0, a] >= 100
        if problem.mdp.succ[s, a, 0] != s  # walls show when they are tried
    ]
    assert len(errors) > 0
    assert max(errors) < 0.3


def test_states_behind_walls_are_given_up_soon() -> None:
    """They would be worth v_max for ever; each wall in their way takes some tries."""
    problem = rooms()
    agent = learned(problem, 1500)
    below = np.arange(18, 30)
    assert not agent.seen.arrays.n[below].any()
    assert agent.planner.tables.value[:2, :18].max() <= 1.0
    down = [mean for s in range(18) if (mean := mean_row(agent, s, DOWN)[below].sum()) > 0.0]
    assert not down


def test_an_edge_that_was_crossed_is_open_and_its_way_back_is_believed_to_be() -> None:
    problem = rooms()
    agent = learned(problem, 1500)
    edge, ground = agent.ground.edge, agent.ground
    times = agent.seen.arrays.tau.sum(axis=1)
    for s, j in np.argwhere(edge == CROSSED):
        assert times[s, ground.slot[s, j]] > 0
    assert agent.law.reversal[1] > 0.9 > 0.5 > agent.law.reversal[2]


# --- where it does not hold


def permute(succ: np.ndarray, prob: np.ndarray) -> None:
    """Other actions in every state."""
    rng = np.random.default_rng(5)
    for s in range(len(succ)):
        order = rng.permutation(4)
        succ[s], prob[s] = succ[s, order], prob[s, order]


def teleport(succ: np.ndarray, prob: np.ndarray) -> None:  # noqa: ARG001
    """One action of one state leads far away."""
    succ[0, RIGHT] = 17


def test_permuted_actions_have_the_rows_of_qr_ucb() -> None:
    problem = rooms(change=permute)
    agent = learned(problem, 4000)
    assert agent.law.trust[0] < 0.3
    tau, n = agent.seen.arrays.tau, agent.seen.arrays.n
    off = []
    for s, a in np.argwhere(n >= 20):
        size = agent.seen.arrays.listed[s]
        seen = tau[s].sum(axis=0)[:size] > 0
        free = (tau[s, a, :size] + agent.alpha / seen.sum()) / (n[s, a] + agent.alpha) * seen
        off.append(np.abs(agent.planner.rows.prob[s, a, :size] - free).sum())
    assert np.median(off) < 0.05
    solution = qrmax.solve(problem)
    value = qrmax.evaluate(problem, agent.policy(), 0.9).start_value
    assert value == pytest.approx(solution.start_value, rel=0.05)


def test_a_teleport_is_learned_once_it_was_tried() -> None:
    problem = rooms(change=teleport)
    agent = trial("qr-effects-rm", problem, seed=3)
    agent.rush(600)
    for _ in range(3):
        while agent.simulator.s != 0 or agent.simulator.over:
            agent.step()
        agent.step(RIGHT)
    assert isinstance(agent.agent, QREffects)
    assert mean_row(agent.agent, 0, RIGHT)[17] > 0.5


def test_rewards_of_actions_are_tried_everywhere() -> None:
    """Rewards that depend on more than the state reached are not told by the law."""
    problem = errand(cells=12, limit=30)
    agent = learned(problem, 100)
    assert agent.paid_by_arrival
    reward = np.zeros((12, 2, 1))
    reward[7, 0] = 1.0
    move = np.arange(12)[:, None] + [-1, 1]
    mdp = TabularMDP(
        np.clip(move, 0, 11)[:, :, None],
        np.ones((12, 2, 1)),
        reward,
        start=6,
        coordinates=np.arange(12)[:, None],
    )
    paid = Problem(mdp, no_task(), [()], [0] * 12, max_episode_steps=20)
    agent = learned(paid, 1500)
    assert not agent.paid_by_arrival
    assert (agent.seen.arrays.n[1:11] >= agent.config.t_min).all()
    assert agent.policy()[6:8, 0].tolist() == [1, 0]


# --- saving


def holding(value: float) -> Callable[[np.ndarray], Any]:
    def change(array: np.ndarray) -> np.ndarray:
        array.flat[0] = value
        return array

    return change


@pytest.mark.small_enough_without_jit
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("share", holding(0.9)),
        ("share", lambda array: array[:, :, :1]),
        ("samples", holding(-1.0)),
        ("samples", holding(np.nan)),
        ("reversal", holding(1.0)),
        ("trust", holding(0.0)),
        ("beta", holding(7.0)),
        ("edge", holding(np.inf)),
        ("edge", lambda array: array[:1]),
        ("edge", lambda array: np.full_like(array, CROSSED)),
        ("displacements", holding(99)),
        ("displacements", holding(1)),
        ("displacements", lambda array: np.repeat(array, 2, axis=0)),
    ],
)
def test_effects_that_no_run_leads_to_are_refused(
    name: str, change: Callable[[np.ndarray], Any]
) -> None:
    problem = errand(slip=0.2, limit=15)
    arrays = trial("qr-effects", problem).rush(150).agent.snapshot()
    arrays[f"effects.{name}"] = change(arrays[f"effects.{name}"])
    with pytest.raises(ModelError):
        trial("qr-effects", problem).agent.restore(arrays)
