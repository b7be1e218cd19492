"""Dense linear systems and exact policy iteration, in extended precision: the oracle of planning.

Batches of problems of one shape are solved together. A linear system is solved in double precision
and refined by its residual in extended precision, so that its error is far below what is tested.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from qrmax import Edge, Problem, QRMaxWarning, RewardMachine, TabularMDP

GAMMAS = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
KINDS = ("random", "periodic", "slow")


class Chains(NamedTuple):
    """The products of some problems, dense."""

    prob: np.ndarray  # [i, x, a, y], 0 out of x where the episode is done
    reward: np.ndarray  # [i, x, a]


def random_machine(rng: np.random.Generator) -> RewardMachine:
    """Edges on `a` and `b`, some of them random, with cycles and now and then an end."""
    n_q = int(rng.integers(1, 4))
    states = [f"q{i}" for i in range(n_q)]
    ends = [states[-1]] if n_q > 1 and rng.random() < 0.4 else []
    edges = []
    for source in states:
        for guard in ("a", "b"):
            if source in ends or rng.random() < 0.3:
                continue
            targets, reward = rng.choice(states, 2), random_rewards(rng, 2)
            if rng.random() < 0.4:
                shares = (0.3, 0.5)
                edges += [
                    Edge(source, guard, str(t), float(r), p)
                    for t, r, p in zip(targets, reward, shares, strict=True)
                ]
            else:
                edges.append(Edge(source, guard, str(targets[0]), float(reward[0])))
    return RewardMachine(edges, initial="q0", states=states, success=ends, consume_initial=False)


def random_rewards(rng: np.random.Generator, shape: int | tuple[int, ...]) -> np.ndarray:
    """Rewards of 1e-8 to 1e8, of both signs or of one, or the same everywhere, or mostly zero."""
    size = 10.0 ** rng.uniform(-8, 8, shape)
    kind = rng.integers(5)
    if kind == 0:
        size = np.full(shape, 10.0 ** rng.uniform(-8, 8))
    if kind == 1:
        size = size * (rng.random(shape) < 0.3)
    sign = (rng.choice([-1.0, 1.0], shape), 1.0, -1.0)[rng.integers(3)]
    return np.asarray(size * sign)


def random_problem(
    rng: np.random.Generator, kind: str, machine: RewardMachine, n: int, n_actions: int
) -> Problem:
    """A process of one kind with this machine."""
    if kind == "periodic":
        succ = np.stack([rng.permutation(n) for _ in range(n_actions)], axis=1)[:, :, None]
        prob = np.ones(succ.shape)
    else:
        succ = rng.integers(0, n, (n, n_actions, 2))
        prob = rng.dirichlet([1.0, 1.0], (n, n_actions))
    if kind == "slow":  # states are left with a probability of 1e-1 to 1e-7
        leaves = 10.0 ** rng.uniform(-7, -1, (n, n_actions))
        succ[:, :, 0] = np.arange(n)[:, None]
        prob = np.stack([1.0 - leaves, leaves], axis=2)
    mdp = TabularMDP(
        succ,
        prob,
        random_rewards(rng, succ.shape),
        terminal=rng.random(n) < rng.choice([0.0, 0.2]),
        start=rng.dirichlet(np.ones(n)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QRMaxWarning)  # a random task may be impossible
        return Problem(mdp, machine, [(), ("a",), ("b",)], rng.integers(0, 3, n))


def chains(problems: list[Problem]) -> Chains:
    """The products of problems of one shape."""
    found = [_dense(problem) for problem in problems]
    return Chains(np.stack([prob for prob, _ in found]), np.stack([reward for _, reward in found]))


def _dense(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    product = problem.product()
    n, n_actions, _ = product.succ.shape
    dense = np.zeros((n, n_actions, n), np.longdouble)
    live = ~product.terminal
    rows = np.arange(n)[:, None, None], np.arange(n_actions)[None, :, None], product.succ
    np.add.at(dense, rows, product.prob.astype(np.longdouble))
    reward = (product.prob.astype(np.longdouble) * product.reward).sum(axis=2)
    return dense * live[:, None, None], reward * live[:, None]


def solve_linear(matrix: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Solve `matrix[i] x[i] = constant[i]` to extended precision."""
    rough = matrix.astype(np.float64)
    found = np.zeros_like(constant)
    for _ in range(4):
        rest = constant - (matrix * found[:, None, :]).sum(axis=2)
        found += np.linalg.solve(rough, rest.astype(np.float64)[:, :, None])[:, :, 0]
    return found


def policy_values(chain: Chains, policy: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """V of policies `[i, x]`."""
    prob = np.take_along_axis(chain.prob, policy[:, :, None, None], axis=2)[:, :, 0]
    reward = np.take_along_axis(chain.reward, policy[:, :, None], axis=2)[:, :, 0]
    return solve_linear(np.eye(prob.shape[1]) - gamma[:, None, None] * prob, reward)


def optimal_values(chain: Chains, gamma: np.ndarray) -> np.ndarray:
    """V of the optimal policies `[i, x]`, by Howard's policy iteration."""
    policy = np.zeros(chain.reward.shape[:2], int)
    for _ in range(100):
        value = policy_values(chain, policy, gamma)
        future = (chain.prob * value[:, None, None, :]).sum(axis=3)
        action_values = chain.reward + gamma[:, None, None] * future
        now = np.take_along_axis(action_values, policy[:, :, None], axis=2)[:, :, 0]
        noise = 1e-17 * np.abs(np.stack([action_values, chain.reward])).max(axis=(0, 2, 3))
        better = action_values.max(axis=2) > now + noise[:, None]
        if not better.any():
            return value
        policy = np.where(better, action_values.argmax(axis=2), policy)
    raise AssertionError("policy iteration did not end")


def success_and_lengths(
    chain: Chains, policy: np.ndarray, goal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The probability of success and the mean of (length x success) of policies, `[i, x]`."""
    prob = np.take_along_axis(chain.prob, policy[:, :, None, None], axis=2)[:, :, 0]
    reaches = goal.copy()
    for _ in range(goal.shape[1]):
        reaches |= ((prob > 0) & reaches[:, None, :]).any(axis=2)
    inner = reaches & ~goal
    inside = prob * (inner[:, :, None] & inner[:, None, :])
    system = np.eye(prob.shape[1]) - inside
    won = (prob * goal[:, None, :]).sum(axis=2) * inner
    chance = solve_linear(system, won)
    return chance + goal, solve_linear(system, chance)


def followed(
    chain: Chains, policy: np.ndarray, goal: np.ndarray, start: np.ndarray, gamma: float, limit: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The value, the success and the mean of (length x success) of `limit` steps, `[i]`."""
    prob = np.take_along_axis(chain.prob, policy[:, :, None, None], axis=2)[:, :, 0]
    reward = np.take_along_axis(chain.reward, policy[:, :, None], axis=2)[:, :, 0]
    mass = start.astype(np.longdouble)
    value, success, lengths = np.zeros((3, len(start)), np.longdouble)
    success += (mass * goal).sum(axis=1)
    for step in range(1, limit + 1):
        value += np.longdouble(gamma) ** (step - 1) * (mass * reward).sum(axis=1)
        mass = (mass[:, :, None] * prob).sum(axis=1)
        won = (mass * goal).sum(axis=1)
        success += won
        lengths += step * won
    return value, success, lengths


def staged_values(chain: Chains, gamma: float, horizon: int) -> np.ndarray:
    """V of the first of so many stages, `[i, x]`."""
    value = np.zeros(chain.reward.shape[:2], np.longdouble)
    for _ in range(horizon):
        future = (chain.prob * value[:, None, None, :]).sum(axis=3)
        value = (chain.reward + np.longdouble(gamma) * future).max(axis=2)
    return value
