"""The models that agents have learned, solved by the reference."""

from __future__ import annotations

import numpy as np

from learners import Trial
from qrmax import TabularMDP
from qrmax.empirical.counts import Counter
from qrmax.planning import reference


class Estimated:
    """The model that an agent has learned, in the form that the reference solver takes."""

    def __init__(self, env: Counter, task: Counter, done: np.ndarray) -> None:
        self.n_states, self.n_task_states = done.shape
        self.mdp = TabularMDP(*estimates(env))
        next_state, prob, reward = estimates(task)
        self.table = (next_state, prob, reward)
        self.label = np.arange(self.n_states)
        self._done = done

    def done(self) -> np.ndarray:
        return self._done


def estimates(counter: Counter) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The outcomes of each pair, their probabilities and the mean reward; anything if unknown."""
    n, outcome, tau, rho = counter.counts
    nothing = (n == 0)[:, :, None] & (np.arange(outcome.shape[2]) == 0)
    moves, rewards = (
        np.clip(n, 1, most) for most in (counter.for_transitions, counter.for_rewards)
    )
    prob = (tau + nothing) / moves[:, :, None]
    paid = rho / rewards
    return np.maximum(outcome, 0), prob, np.broadcast_to(paid[:, :, None], prob.shape)


def no_machine(n_pairs: int) -> Counter:
    """A machine of one state, which does nothing: pairs are all there is."""
    counter = Counter(1, n_pairs, threshold=1, outcomes=1)
    for pair in range(n_pairs):
        counter.record(0, pair, 0, 0.0)
    return counter


def known(counter: Counter) -> np.ndarray:
    return counter.counts.n >= counter.threshold


def check_plan(tried: Trial, done: np.ndarray, tolerance: float) -> None:
    """The agent's values are those of its counts, solved by the reference."""
    agent = tried.agent
    config = agent.config
    if "pair" in agent.counters:
        env, task = agent.counters["pair"], no_machine(done.size)
        done = done.reshape(-1, 1)
    else:
        env, task = agent.counters["env"], agent.counters["task"]
    expected = reference.solve_optimistic(
        Estimated(env, task, done), config.gamma, known(env), known(task), config.optimistic
    )
    size = max(config.optimistic, np.abs(expected).max(), 200.0)
    np.testing.assert_allclose(agent.planner.value, expected, rtol=0.0, atol=tolerance * size)
