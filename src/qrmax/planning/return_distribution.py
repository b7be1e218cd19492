"""The exact distribution of a policy's returns, where rewards are paid at the end of an episode.

Then the return of an episode is decided by its last step: by when it ends, and by what that step
pays. The start distribution is propagated along the policy, and what ends is collected:

    P(ends at t, paying r) = sum over transitions of reward r that end the episode, of
                             P(alive in x before step t) P(transition | x, pi_t(x))

Episodes drawn from this are as good as played ones, and take a thousandth of the time. With a
reward before the end, returns depend on whole trajectories: there is no such distribution here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qrmax.planning.arrays import BoolArray, FloatArray, IntArray
from qrmax.planning.compilation import compiled

if TYPE_CHECKING:
    from qrmax.problems.problem import Problem
    from qrmax.seeding import Stream

MOST_REWARDS = 100  # different ones, beyond which episodes are sooner played than told apart
EARLY_REWARD = -1.0
UNSEEN = 2.0**-60  # a probability that random numbers of 53 bits do not tell from 0


@dataclass(frozen=True, slots=True)
class ReturnDistribution:
    """The returns that an episode may have, and the probabilities that it has at most those."""

    values: FloatArray  # in no order, some of them equal
    cumulative: FloatArray  # [i], the probability of the values up to i; the last is 1

    def sample(self, episodes: int, chance: Stream) -> FloatArray:
        """The returns of independent episodes."""
        drawn = np.searchsorted(self.cumulative, chance.take(episodes), side="right")
        return self.values[drawn]


def return_distribution(
    problem: Problem, policy: IntArray, gamma: float, limit: int
) -> ReturnDistribution | None:
    """The distribution of discounted returns in episodes of at most `limit` steps.

    None if a reward may come before the end of an episode. The policy is `[h, s, q]` and restarts
    after its last stage.
    """
    mdp, table = problem.mdp, problem.table
    world_pays, world_kind = np.unique(mdp.reward, return_inverse=True)
    task_pays, task_kind = np.unique(table.reward, return_inverse=True)
    pays = (world_pays[:, None] + task_pays[None, :]).ravel()
    if len(pays) > MOST_REWARDS:
        return None
    ended = np.zeros((limit, len(pays)))
    left = _collect_ends(
        mdp.succ,
        mdp.prob,
        world_kind.reshape(mdp.reward.shape).astype(np.int32) * np.int32(len(task_pays)),
        problem.label,
        table.next_state,
        table.prob,
        task_kind.reshape(table.reward.shape).astype(np.int32),
        pays,
        problem.done(),
        policy,
        problem.start(),
        ended,
    )
    if left == EARLY_REWARD:
        return None
    discount = np.cumprod(np.concatenate([[1.0], np.full(limit - 1, gamma)]))
    values = np.append((discount[:, None] * pays).ravel(), 0.0)
    chances = np.append(ended.ravel(), left)
    possible = chances > 0.0
    cumulative = np.minimum(np.cumsum(chances[possible]), 1.0)
    cumulative[-1] = 1.0  # but for rounding
    return ReturnDistribution(values[possible], cumulative)


@compiled
def _collect_ends(
    succ: IntArray,
    prob: FloatArray,
    world_kind: IntArray,
    label: IntArray,
    next_state: IntArray,
    task_prob: FloatArray,
    task_kind: IntArray,
    pays: FloatArray,
    done: BoolArray,
    policy: IntArray,
    start: FloatArray,
    ended: FloatArray,
) -> float:
    """Fill `ended[t, kind of reward]`; returns the probability of no step that ends an episode.

    Then the limit does, or it was over at the start. If there is a reward before the end, returns
    EARLY_REWARD at once. Only pairs that are reached are visited: lists of them take turns, as the
    tables of their probabilities do.
    """
    n_s, n_q = done.shape
    here, there = start.copy(), np.zeros((n_s, n_q))
    pairs, found = np.empty(n_s * n_q, dtype=np.int32), np.empty(n_s * n_q, dtype=np.int32)
    n_pairs, over, alive = 0, 0.0, 0.0
    for s in range(n_s):
        for q in range(n_q):
            if done[s, q]:
                over += here[s, q]
            elif here[s, q] > 0.0:
                pairs[n_pairs] = s * n_q + q
                n_pairs += 1
    for t in range(ended.shape[0]):
        n_found, alive = 0, 0.0
        for i in range(n_pairs):
            s, q = divmod(pairs[i], n_q)
            mass = here[s, q]
            here[s, q] = 0.0
            a = policy[t % policy.shape[0], s, q]
            for k in range(succ.shape[2]):
                p = mass * prob[s, a, k]
                if p == 0.0:
                    continue
                s_next = succ[s, a, k]
                for j in range(next_state.shape[2]):
                    p_next = p * task_prob[q, label[s_next], j]
                    if p_next == 0.0:
                        continue
                    q_next = next_state[q, label[s_next], j]
                    kind = world_kind[s, a, k] + task_kind[q, label[s_next], j]
                    if done[s_next, q_next]:
                        ended[t, kind] += p_next
                    elif pays[kind] != 0.0:
                        return EARLY_REWARD
                    else:
                        if there[s_next, q_next] == 0.0:
                            found[n_found] = s_next * n_q + q_next
                            n_found += 1
                        there[s_next, q_next] += p_next
                        alive += p_next
        here, there, pairs, found, n_pairs = there, here, found, pairs, n_found
        if alive < UNSEEN:
            return over
    return over + alive
