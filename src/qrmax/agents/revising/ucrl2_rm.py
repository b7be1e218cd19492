"""UCRL2-RM (Bourel, Jonsson, Maillard and Talebi, 2023): average reward, known machine.

    ucrl2-rm-l   |p - P(. | s, a)|_1 <= c sqrt(2 (1 + 1/n) ln(sqrt(n + 1) (2^O - 2) / d) / n)
    ucrl2-rm-b   |p(z) - P(z | s, a)| <= sqrt(2 B p(z) (1 - p(z)) / n) + B / (3 n)   for every z
                 B = eta ln(ln(max(e, n)) ln(eta max(e, n)) / (d ln^2 eta)),  eta = 1.12

    d = delta / (2 O A), with O world states and A actions; n is the visit count of (s, a)

It plans by extended value iteration over (q, s) (`planning/extended_value_iteration.py`), and again
before a step on which the action to take has been taken as often since the last plan as before it.
`radius_scale` is c; in `-b`, the ends of an interval are moved towards P(z) by that factor. 0.5 and
0.1, the defaults, are those of published experiments with these learners; 1 is the paper's.

Assumes: knows the machine, its rewards and which of its states end the episode. What is not in the
paper, which has no episodes, and whose labels are known beforehand:

- The end of an episode is a transition to a start, with the frequencies of the starts so far; being
  cut off by a limit of steps is not modelled.
- A world state that was never reached pays r_max on arrival, in the best state of the machine.
- Rewards of the world are means, without an interval; the paper's are those of the machine alone.
- `support = "all"`, the paper's: mass may move to any state. With `"seen"` it moves to successors
  seen from s under any action.
- Extended value iteration stops when the span of a change is below r_max / (100 + sqrt(t)), or
  after 200 sweeps, since not all pairs can be reached from all others.

The policy recommended is greedy on the empirical model and discounted, as that of all agents here:
the optimistic policy would explore, and is for another objective. An average reward asks for the
shortest way to the next episode, however it ends; so exploration and judgement differ in aim. The
discounted learner with L1 balls is `qr-mbie-rm`.

Formulas are those of the authors' public code, which has d as above in both; the paper's own d for
`-b` could not be confirmed. That code uses the *ends* of the intervals of `-b` as their radii, so
that they never shrink: curves made with it are not comparable to this.

Only observed, on `random-office` and `random-mdp`, seeds 20 to 24, one run of 30,000 steps each: of
10 runs, those within 5 % of the optimum for good, and the median of the steps in thousands,

    ucrl2-rm-l    c 0.1: 10, 3     c 0.5: 10, 4    c 1: 9, 8
    ucrl2-rm-b    c 0.1: 8, 7                      c 1: 10, 4
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.agents import step_loops
from qrmax.agents.base import AnySimulator, FastForwardResult, Sizes, as_transition
from qrmax.agents.experience import Experience
from qrmax.agents.revising.empirical_rows import ALL, SEEN, EmpiricalRows, RadiusConfig
from qrmax.agents.revising.mbie import log_subsets
from qrmax.empirical.counts import FOR_EVER
from qrmax.errors import ModelError
from qrmax.planning.arrays import FloatArray, IntArray
from qrmax.planning.extended_value_iteration import TransitionSets, extended_value_iteration
from qrmax.planning.snapshot_checks import MAX_VALUE
from qrmax.seeding import Stream

ETA = 1.12
SWEEPS = 200  # of extended value iteration, at most


@dataclass(frozen=True, kw_only=True, slots=True)
class UCRL2RMConfig(RadiusConfig):
    """Settings of UCRL2-RM."""

    support: str = ALL  # where mass may move: to successors that were seen, or to all states


@dataclass(frozen=True, kw_only=True, slots=True)
class UCRL2RMBConfig(UCRL2RMConfig):
    """Settings of UCRL2-RM-B."""

    radius_scale: float = 0.1  # c


class UCRL2RM(EmpiricalRows):
    """UCRL2-RM with any confidence sets."""

    knows_machine = True
    Config = UCRL2RMConfig
    config: UCRL2RMConfig

    loop = staticmethod(step_loops.follow_policy)
    beside_loop = ("plan", "make_sets")
    in_loop = frozenset({"act", "begin_episode"})
    kernels = (extended_value_iteration,)

    def __init__(
        self, sizes: Sizes, config: UCRL2RMConfig, rng: Stream, experience: Experience
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        pairs = (sizes.task_states, sizes.states)
        self.bias = np.zeros(pairs)  # u, [q, s]
        self.following = step_loops.Plan(
            policy=np.zeros(pairs, dtype=np.int32),
            planned=np.zeros((sizes.states, sizes.actions), dtype=np.int32),
            starts=np.zeros(pairs, dtype=np.int32),
        )

    # --- an episode

    def begin_episode(self, s: int, q: int) -> None:
        """Count the start."""
        self.following.starts[q, s] += 1

    def act(self, s: int, q: int) -> int:
        """Follow the plan, or the next one if the visits of its action have doubled."""
        if self.is_due(s, q):
            self.plan()
        return int(self.following.policy[q, s])

    def is_due(self, s: int, q: int) -> bool:
        """Whether the action to take has been taken as often since the last plan as before it."""
        policy, planned, _ = self.following
        a = policy[q, s]
        before = int(planned[s, a])
        return int(self.seen.arrays.n[s, a]) - before >= max(1, before)

    def plan(self) -> None:
        """Extended value iteration with the sets of now."""
        policy, planned, starts = self.following
        planned[:] = self.seen.arrays.n
        unit = float(self.config.r_max)
        extended_value_iteration(
            self.seen.arrays,
            self.planner.task,
            self.planner.tables.done,
            starts / max(1, int(starts.sum())),
            self.make_sets(),
            unit,
            unit / (100.0 + math.sqrt(self.t)),
            SWEEPS,
            self.bias,
            policy,
        )

    @abstractmethod
    def make_sets(self) -> TransitionSets:
        """The confidence sets of now."""

    def next_due(self, t: int) -> int:  # noqa: ARG002
        """Never: plans are made by visits."""
        return FOR_EVER

    def estimate(self) -> int:
        """Nothing: rows are made with each plan."""
        return 0

    def bonus(self, n: IntArray) -> FloatArray | float:  # noqa: ARG002
        """None."""
        return 0.0

    def radius(self, n: IntArray, listed: IntArray) -> FloatArray | float:  # noqa: ARG002
        """None: the planner of discounted values has the machine alone."""
        return 0.0

    def fast_forward(self, simulator: AnySimulator, limit: int) -> FastForwardResult:
        """Take compiled steps, plan after plan, up to one that reaches something new."""
        self._best = None
        steps = 0
        while steps < limit:
            if not simulator.over and self.is_due(simulator.s, simulator.q):
                self.plan()
            taken = step_loops.follow_policy(
                simulator.world,
                simulator.state,
                self.following,
                self.planner.tables.done,
                self.row_counting(),
                *self.numbers(simulator),
                limit - steps,
            )
            steps += taken.steps
            self.t += taken.steps
            if taken.unlearned:
                self.t -= 1
                return FastForwardResult(steps, as_transition(taken, simulator))
        return FastForwardResult(steps, None)

    # --- saving

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Counts and machine, and the plan that is followed."""
        plan = {f"plan.{name}": array.copy() for name, array in self.following._asdict().items()}
        return super().snapshot() | plan | {"plan.bias": self.bias.copy()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over counts, machine and plan."""
        super().restore(arrays)
        plan = step_loops.Plan(*(arrays[f"plan.{name}"] for name in step_loops.Plan._fields))
        for name, new, old in zip(plan._fields, plan, self.following, strict=True):
            if new.shape != old.shape or not (new >= 0).all():
                raise ModelError(f"plan.{name}: not counts or actions of shape {old.shape}")
        if not (plan.policy < self.sizes.actions).all():
            raise ModelError(f"plan.policy: an action is not below {self.sizes.actions}")
        if not (plan.planned <= self.seen.arrays.n).all():
            raise ModelError("plan.planned: more visits than there are")
        if not (np.abs(arrays["plan.bias"]) <= MAX_VALUE).all():
            raise ModelError("plan.bias: not a number, or infinite")
        for new, old in zip(plan, self.following, strict=True):
            old[:] = new
        self.bias[:] = arrays["plan.bias"]


class UCRL2RML(UCRL2RM):
    """UCRL2-RM-L: knows the machine; average reward, L1 balls around transition rows."""

    name = "ucrl2-rm-l"

    def make_sets(self) -> TransitionSets:
        """L1 balls whose radius holds at all times."""
        n, anywhere = self.seen.arrays.n, self.config.support != SEEN
        outcomes = np.array([self.sizes.states]) if anywhere else self.seen.arrays.listed[:, None]
        share = float(self.config.delta) / (2.0 * n.size)
        radius = float(self.config.radius_scale) * laplace_radius(n, outcomes, share)
        nothing = np.zeros((0, 0, 0))
        return TransitionSets(radius, nothing, nothing, np.zeros((0, 0)), False, anywhere)


class UCRL2RMB(UCRL2RM):
    """UCRL2-RM-B: knows the machine; average reward, an interval for each probability."""

    name = "ucrl2-rm-b"
    Config = UCRL2RMBConfig

    def make_sets(self) -> TransitionSets:
        """Intervals by Bernstein's inequality."""
        n, _, _, _, tau = self.seen.arrays
        c, share = float(self.config.radius_scale), float(self.config.delta) / (2.0 * n.size)
        p = tau / np.maximum(n, 1)[:, :, None]
        low, high = bernstein_interval(p, n[:, :, None], share)
        low, high = p + c * (low - p), p + c * (high - p)
        free = c * bernstein_interval(np.zeros(n.shape), n, share)[1]
        anywhere = self.config.support != SEEN
        return TransitionSets(np.zeros((0, 0)), low, high, free, True, anywhere)


def laplace_radius(n: IntArray, m: IntArray, share: float) -> FloatArray:
    """The L1 radius of n samples with m outcomes, at all times at once; 0 without a choice.

    >>> laplace_radius(np.array([1, 100]), np.array([5]), 0.001).round(3)
    array([6.529, 0.505])
    """
    tries = np.maximum(n, 1)
    log = 0.5 * np.log(tries + 1.0) + log_subsets(m) - math.log(share)
    found: FloatArray = np.sqrt(np.maximum(2.0 * (1.0 + 1.0 / tries) * log / tries, 0.0))
    return found


def bernstein_interval(p: FloatArray, n: IntArray, share: float) -> tuple[FloatArray, FloatArray]:
    """The ends of {x: |p - x| <= sqrt(2 B x (1 - x) / n) + B / (3 n)}, which are roots.

    >>> low, high = bernstein_interval(np.array([0.0, 0.5]), np.array([1000, 1000]), 0.001)
    >>> low.round(3), high.round(3)
    (array([0.   , 0.404]), array([0.043, 0.596]))
    """
    tries = np.maximum(n, 1).astype(np.float64)
    spent = np.maximum(np.e, tries)
    log = np.log(spent) * np.log(ETA * spent) / (share * math.log(ETA) ** 2)
    bound = ETA * np.log(log)  # B
    wide, apart = 2.0 * bound / tries, bound / (3.0 * tries)
    ends = []
    for centre, sign in ((np.maximum(p - apart, 0.0), -1.0), (np.minimum(p + apart, 1.0), 1.0)):
        root = np.sqrt(wide**2 + 4.0 * wide * centre * (1.0 - centre))
        ends.append((2.0 * centre + wide + sign * root) / (2.0 * (1.0 + wide)))
    return np.maximum(ends[0], 0.0), np.minimum(ends[1], 1.0)
