"""Agents that plan for episodes of H steps by backward induction: counts, clock, recommendation.

Before each episode they form a model of the world, by bonuses or by posterior sampling,
plan all H steps with it (`plan_episode`), and follow that plan to the end:

    Q_h(x, a) = r(x, a) + sum_x' p(x' | x, a) V_h+1(x')     V_H = 0, and 0 once terminated

Episodes are H steps by the agent's own clock, after which the world is reset. The model is of pairs
x = (s, q) or, for agents that know the machine, of world states x = s: then one sample serves in
every machine state, and V is looked up in the machine state reached.

The policy that they recommend is another: greedy on the empirical model, without bonus or sampling,
with value 0 for state-action pairs that were never tried. It depends on the stage; `policy()` is
that of stage 0.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmax.agents import step_loops
from qrmax.agents.base import (
    AgentConfig,
    AnySimulator,
    FastForwardResult,
    ModelCoverage,
    RewardBounds,
    Sizes,
    Tabular,
    VisitCounts,
    as_transition,
)
from qrmax.agents.episodic import beliefs
from qrmax.agents.episodic.episode_plan import EpisodePlan
from qrmax.agents.experience import Experience
from qrmax.empirical.successors import Seen, Successors
from qrmax.errors import ModelError, check_count, check_range
from qrmax.planning.arrays import BoolArray, FloatArray, IntArray, TaskModel
from qrmax.planning.finite_horizon import (
    NO_LIMIT,
    make_stages,
    stage_values,
)
from qrmax.problems.simulator import Step
from qrmax.seeding import Stream


@dataclass(frozen=True, kw_only=True, slots=True)
class FiniteHorizonConfig(AgentConfig):
    """Settings of the agents that plan for episodes of H steps."""

    from_rewards = ("r_min", "r_max")

    gamma: float = 1.0  # discount factor
    horizon: int = 150  # H, the steps of an episode
    r_min: float = 0.0  # the smallest reward of a step, or 0
    r_max: float = 1.0  # the largest reward of a step, or 0

    def __post_init__(self) -> None:
        check_range("gamma", self.gamma, above=0.0, at_most=1.0)
        check_count("horizon", self.horizon)
        check_range("r_min", self.r_min, above=-1e200, at_most=0.0)  # once terminated, it is 0
        check_range("r_max", self.r_max, at_least=0.0, below=1e200)

    @property
    def episode_horizon(self) -> int:
        """H."""
        return self.horizon

    @property
    def reward_bounds(self) -> RewardBounds:
        """Rewards are between `r_min` and `r_max`."""
        return RewardBounds(self.r_min, self.r_max)

    @property
    def r_span(self) -> float:
        """The largest difference between two rewards."""
        return self.r_max - self.r_min


class EpisodicAgent(Tabular):
    """An agent that plans each episode anew: its counts, its clock, and what it recommends."""

    config: FiniteHorizonConfig

    has_horizon = True
    quick_settings = MappingProxyType({"horizon": 10})
    optimistic_prior: bool = True  # whether unseen successors have the value v_max
    models: int = 1  # that it plans with at once
    binarize_rewards: bool = False  # whether rewards are counted as 0 or 1

    def __init__(
        self,
        sizes: Sizes,
        config: FiniteHorizonConfig,
        rng: Stream,
        experience: Experience,
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        states, task_states, actions = sizes
        self.joint = not self.knows_machine
        n_x, n_y = (states * task_states, 1) if self.joint else (states, task_states)
        self.seen = Successors(n_x, actions)
        self.task = _no_machine(n_x) if self.joint else _unread_machine(n_x, n_y)
        self.done: BoolArray = np.zeros((n_y, n_x), dtype=bool)  # seen to end the episode
        self.starts: BoolArray = np.zeros((n_y, n_x), dtype=bool)
        self._best: EpisodePlan | None = None  # the recommended policy, planned on demand
        self.stage = 0  # steps taken in this episode

    # --- an episode

    def begin_episode(self, s: int, q: int) -> None:
        """Plan the episode that starts in (s, q)."""
        place = self.place(s, q)
        if not self.starts[place]:
            self.starts[place] = True
            self._meet_something_new()
        self.plan_episode()
        self.stage = 0

    @abstractmethod
    def plan_episode(self) -> None:
        """Plan all stages with what was observed so far."""

    def update(self, s: int, q: int, a: int, step: Step) -> None:
        """Learn from one transition."""
        (_, x), (y_next, x_next) = self.place(s, q), self.place(step.s, step.q)
        reward = self.counted(step.r_env + step.r_task if self.joint else step.r_env)
        if self.seen.record(x, a, x_next, reward):
            self._meet_something_new()
        for p, p_next, r_task, terminated in self.experience(q, step):
            if not self.joint:
                y_next = p_next
                self.task.next_state[p, x_next] = p_next
                self.task.reward[p, x_next] = r_task
            if terminated and not self.done[y_next, x_next]:  # never on truncation
                self.done[y_next, x_next] = True
                self._meet_something_new()
        self.stage += 1

    def _meet_something_new(self) -> None:
        if self._best is not None:
            self._best.outdated = True

    @property
    def episode_over(self) -> bool:
        """Whether all H steps have been taken."""
        return self.stage >= self.config.horizon

    def counted(self, reward: float) -> float:
        """The reward to sum up: itself or, if binarized, a Bernoulli sample of its share."""
        if not self.binarize_rewards:
            return reward
        lowest, span = self.config.r_min, self.config.r_span
        share = (reward - lowest) / span if span > 0.0 else 0.0
        if 0.0 < share < 1.0:
            return float(self.rng.random() < share)
        return float(share >= 1.0)

    def place(self, s: int, q: int) -> tuple[int, int]:
        """The index of (s, q) in tables `[y, x]`."""
        return (0, s * self.sizes.task_states + q) if self.joint else (q, s)

    def fast_forward(self, simulator: AnySimulator, limit: int) -> FastForwardResult:
        """Take compiled steps, episode after episode, up to one that reaches something new."""
        counting = step_loops.EpisodeCounting(
            *self.seen.arrays,
            self.joint,
            self.binarize_rewards,
            self.config.r_min,
            self.config.r_span,
        )
        steps = 0
        while steps < limit:
            if simulator.over:
                simulator.reset()
                self.begin_episode(simulator.s, simulator.q)
            taken = self.follow(simulator, counting, limit - steps)
            steps += taken.steps
            self.stage += taken.steps
            if taken.unlearned:
                self.stage -= 1
                return FastForwardResult(steps, as_transition(taken, simulator))
            if self.episode_over and not simulator.over:
                simulator.cut()
        return FastForwardResult(steps, None)

    @abstractmethod
    def follow(
        self, simulator: AnySimulator, counting: step_loops.EpisodeCounting, limit: int
    ) -> step_loops.Taken:
        """Take compiled steps of this episode, at most up to its end."""

    # --- the result

    def recommendation(self) -> IntArray:
        """The greedy policy on the empirical model, `[h, s, q]`."""
        plan, (states, task_states, _) = self._plan_the_best(), self.sizes
        if self.joint:
            return plan.choice.reshape(-1, states, task_states).copy()
        return plan.choice.transpose(0, 2, 1).copy()

    def policy(self) -> IntArray:
        """The recommended policy at stage 0, `[s, q]`: the first of equally good actions."""
        return np.array(self.recommendation()[0])

    @property
    def q(self) -> FloatArray:
        """The action values at stage 0 on the empirical model, `[s, q, a]`."""
        plan, table = self._plan_the_best(), np.zeros(self.sizes)
        for s in range(self.sizes.states):
            for q in range(self.sizes.task_states):
                place = self.place(s, q)
                if not self.done[place]:
                    stage_values(plan.belief, plan.stages, 0, *place, table[s, q])
        return table

    def _plan_the_best(self) -> EpisodePlan:
        """A plan that is greedy on the empirical model."""
        seen, config = self.seen.arrays, self.config
        if self._best is None:
            stages = make_stages(
                config.horizon, config.gamma, NO_LIMIT, self.done.shape, optimistic_prior=True
            )
            self._best = EpisodePlan(seen, stages, everywhere=True, chooses=True)
        lowest, span = (config.r_min, config.r_span) if self.binarize_rewards else (0.0, 1.0)
        no_bonus = beliefs.Bonus(*np.zeros((3, int(seen.n.max()) + 1)))
        self._best.look_around(seen, self.task, self.done, self.starts)
        self._best.estimate(seen, beliefs.Worth(lowest, span, 0.0), no_bonus)
        self._best.renew(self.task)
        return self._best

    def known(self) -> ModelCoverage:
        """The state-action pairs that have been tried, of all there are."""
        n = self.seen.arrays.n
        return ModelCoverage(pairs=int((n > 0).sum()), of=n.size)

    def visits(self) -> VisitCounts:
        """The visits of state-action pairs."""
        states, _, actions = self.sizes
        shape = self.sizes if self.joint else (states, actions)
        return VisitCounts(self.seen.arrays.n.reshape(shape), 1)

    @property
    def samples(self) -> int:
        """The number of steps counted, which is all of them."""
        return int(self.seen.arrays.n.sum(dtype=np.int64))

    # --- saving

    def _restore_episode(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over counts and clock."""
        self.seen.restore(Seen(*(arrays[f"seen.{name}"].copy() for name in Seen._fields)))
        self._check_paid(self.seen.arrays)
        stage = int(arrays["episode.stage"][0])
        if not 0 <= stage <= self.config.horizon:
            raise ModelError(f"the episode is at stage {stage} of {self.config.horizon}")
        self.done[:] = arrays["episode.done"]
        self.starts[:] = arrays["episode.starts"]
        self.stage = stage
        if self._best is not None:
            self._best.outdated = True
            self._best.settled[:] = -1

    def _task_arrays(self) -> dict[str, NDArray[Any]]:
        """The machine's transitions and rewards, as far as they have been read."""
        return {"next_state": self.task.next_state, "reward": self.task.reward}

    def _restore_task(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over the machine's transitions and rewards."""
        next_state = arrays["task.next_state"]
        if not ((next_state >= 0) & (next_state < len(self.done))).all():
            raise ModelError(f"a machine state is not one of 0 to {len(self.done) - 1}")
        self.task.next_state[:] = next_state
        self.task.reward[:] = arrays["task.reward"]

    def _check_paid(self, seen: Seen) -> None:
        """Refuse counts without a Beta posterior: sampling from it would never end."""
        if self.binarize_rewards and not ((seen.rho >= 0.0) & (seen.rho <= seen.n)).all():
            raise ModelError("a state-action pair has more binary rewards of 1 than visits")

    def _episode_arrays(self) -> dict[str, NDArray[Any]]:
        """The clock, and what is known to begin and to end an episode."""
        return {"stage": np.array([self.stage]), "done": self.done, "starts": self.starts}


def named_arrays(parts: Mapping[str, Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Copies of the arrays of all parts, by `part.name`."""
    return {
        f"{part}.{name}": array.copy()
        for part, arrays in parts.items()
        for name, array in arrays.items()
    }


def _no_machine(n_x: int) -> TaskModel:
    """A machine of one state and without rewards, for agents that do not know the machine."""
    return TaskModel(
        label=np.zeros(n_x, dtype=np.int32),
        next_state=np.zeros((1, 1, 1), dtype=np.int32),
        prob=np.ones((1, 1, 1)),
        reward=np.zeros((1, 1)),
    )


def _unread_machine(n_states: int, n_task_states: int) -> TaskModel:
    """The machine by the world state reached; until that is visited, it stays, with reward 0."""
    stay = np.arange(n_task_states, dtype=np.int32)[:, None, None]
    return TaskModel(
        label=np.arange(n_states, dtype=np.int32),
        next_state=np.repeat(stay, n_states, axis=1),
        prob=np.ones((n_task_states, n_states, 1)),
        reward=np.zeros((n_task_states, n_states)),
    )
