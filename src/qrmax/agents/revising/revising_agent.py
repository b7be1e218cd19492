"""Agents that learn the two factors apart and revise their estimates for ever.

    n, tau, rho    by (s, a), of the world: counts that go on, with one successor list per state
    n, tau, rho    by (q, s'), of the machine: known after `t_task` samples, one if it is given

With `task_by` = "label" those of the machine are by (q, label): see `arrivals.py`. A `joint` agent
has pairs (s, q) for states of the world, numbered s |Q| + q, whose transitions have all rewards,
and a machine of one state that pays nothing: the product, with the same methods.

A state-action pair is unknown, and has the value v_max, while n < t_min(t) (`replanning.py`). The
others have a transition row (`transition_rows.py`), which a subclass estimates or samples. The
agent plans with these rows (`planning/confidence_sets.py`) and acts greedily; ties are broken at
random.

It replans on news: a state has a new successor, a pair becomes known, a known pair has a new
successor or twice as many samples as before, the machine does something new, an episode ends in a
new pair (s, q). It replans by the clock as well, when alpha is estimated again.

The policy that it recommends is greedy on the mean model, without optimism: rows are posterior
means of all pairs that were tried, other actions are excluded, and arrivals (q, s') that were never
observed are worth 0.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qrmax.agents import step_loops
from qrmax.agents.arrivals import LABEL, STATE, TASK_BY, Arrivals
from qrmax.agents.base import (
    AgentConfig,
    AnySimulator,
    FastForwardResult,
    ModelCoverage,
    Sizes,
    Tabular,
    VisitCounts,
    as_transition,
)
from qrmax.agents.choice import among_best
from qrmax.agents.experience import Experience, TaskStep
from qrmax.agents.optimism import Optimism
from qrmax.agents.revising.replanning import next_due, threshold_at
from qrmax.agents.revising.transition_rows import (
    ALPHAS,
    FIRST_ALPHA,
    estimate_rows,
    likeliest_alpha,
)
from qrmax.empirical.counts import FOR_EVER, Counts
from qrmax.empirical.successors import Seen, Successors
from qrmax.errors import ModelError, check_choice, check_count
from qrmax.planning.arrays import FloatArray, IntArray, Rows
from qrmax.planning.confidence_sets import CHI_SQUARE, settle_rows
from qrmax.planning.finite_horizon import NO_LIMIT
from qrmax.planning.row_planner import RowPlanner
from qrmax.problems.simulator import Step
from qrmax.seeding import Stream

NOT_COUNTED = -1

MEAN, OPTIMISTIC = RECOMMENDED = ("mean", "optimistic")
"""The models on which the recommended policy may be greedy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowConfig(Optimism, AgentConfig):
    """Settings of the agents with transition rows that are revised for ever."""

    from_rewards = ("r_max",)

    t_min: int = 3  # samples before a state-action pair counts as known, at first
    t_task: int = 1  # samples before (q, s') counts as known
    r_max: float = 1.0  # the largest reward of a step
    v_max: float | None = None  # value of unknown pairs; None: r_max / (1 - gamma)
    tolerance: float = 1e-5  # changes below this, relative to the value, are not planned with

    def __post_init__(self) -> None:
        AgentConfig.__post_init__(self)
        check_count("t_min", self.t_min)
        check_count("t_task", self.t_task)
        self.check_optimism()

    @property
    def trusts_one_sample(self) -> bool:
        """Whether the machine is assumed to be deterministic."""
        return self.t_task == 1

    @property
    def grows_from(self) -> int:
        """The steps after which `t_min` is one more, and each time they double; 0: never."""
        return 0

    @property
    def freezes_after(self) -> int:
        """The samples of a state-action pair after which no more of it count."""
        return FOR_EVER

    @property
    def recommends_optimistically(self) -> bool:
        """Whether the recommended policy is greedy on the optimistic model."""
        return False


@dataclass(frozen=True, kw_only=True, slots=True)
class RevisingConfig(RowConfig):
    """Settings of the agents whose threshold grows, with parts that can be switched off."""

    newer: ClassVar[tuple[str, ...]] = ("task_by", "freeze_after", "recommend")

    growth: int = 10_000  # steps after which t_min is one more, and each time they double; 0: never
    freeze_after: int = 0  # samples of a state-action pair after which no more count; 0: all do
    recommend: str = MEAN  # the policy to be judged by: greedy on the mean or optimistic model
    task_by: str = STATE  # what the machine's samples are counted by: state or label

    def __post_init__(self) -> None:
        RowConfig.__post_init__(self)
        check_count("growth", self.growth, at_least=0)
        check_count("freeze_after", self.freeze_after, at_least=0)
        check_choice("recommend", self.recommend, RECOMMENDED)
        check_choice("task_by", self.task_by, TASK_BY)

    @property
    def reads_labels(self) -> bool:
        """Whether it learns from labels."""
        return self.task_by == LABEL

    @property
    def grows_from(self) -> int:
        """The steps after which `t_min` is one more, and each time they double; 0: never."""
        return self.growth

    @property
    def freezes_after(self) -> int:
        """The samples of a state-action pair after which no more of it count."""
        return self.freeze_after or FOR_EVER

    @property
    def recommends_optimistically(self) -> bool:
        """Whether the recommended policy is greedy on the optimistic model."""
        return self.recommend == OPTIMISTIC


class RevisingAgent(Tabular):
    """An agent with counts of both factors that go on, rows to plan with, and a clock."""

    config: RowConfig

    factored = True
    joint: ClassVar[bool] = False  # whether it learns a model of pairs (s, q)
    alphas: ClassVar[FloatArray] = ALPHAS  # to choose from
    first_alpha: ClassVar[float] = FIRST_ALPHA
    loop: ClassVar[Callable[..., Any]] = staticmethod(step_loops.explore_rows)
    beside_loop: ClassVar[tuple[str, ...]] = (  # called when it replans
        *("estimate", "retune", "next_due", "fill_means", "shrinkage"),
        *("watched", "expect"),
    )
    kernels: ClassVar[tuple[Callable[..., Any], ...]] = (settle_rows,)
    quick_settings = MappingProxyType({"t_min": 2})

    def __init__(
        self, sizes: Sizes, config: RowConfig, rng: Stream, experience: Experience
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        self.model_sizes = Sizes(sizes.states * sizes.task_states, 1, sizes.actions)
        self.model_sizes = self.model_sizes if self.joint else sizes
        states, task_states, actions = self.model_sizes
        self.seen = Successors(states, actions, by_successor=True)
        self.sure = self.joint or self.knows_machine  # of the machine after one sample
        self.arrivals = Arrivals(
            states,
            task_states,
            threshold=1 if self.sure else FOR_EVER,
            by_label=config.reads_labels,
        )
        self.task = self.arrivals.task
        self.t_task = 1 if self.sure else config.t_task
        self.planner = self._make_planner(config.optimistic)
        self.counted = np.zeros((states, actions), dtype=np.int32)  # n of the rows planned with
        self.alpha = self.first_alpha
        self.t = 0  # steps
        self.freeze_after = config.freezes_after
        self.threshold = self._threshold_at(0)
        self.due = self.next_due(0)
        self._changed = np.empty(states, dtype=np.int32)
        self._best: RowPlanner | None = None  # the plan on the mean model, made on demand

    def _make_planner(self, optimistic: float, initial: float | None = None) -> RowPlanner:
        return RowPlanner(
            self.seen.arrays,
            self.model_sizes.task_states,
            gamma=self.config.gamma,
            optimistic=optimistic,
            tolerance=self.config.tolerance,
            initial=initial,
            ball=self.ball,
        )

    @property
    def ball(self) -> int | None:
        """The kind of confidence set around a row."""
        return CHI_SQUARE

    def place(self, s: int, q: int) -> tuple[int, int]:
        """The world state and the machine state that (s, q) is in the model."""
        return (s * self.sizes.task_states + q, 0) if self.joint else (s, q)

    # --- an episode

    def act(self, s: int, q: int) -> int:
        """Act greedily; ties are broken uniformly at random."""
        values = self.planner.q_at(*self.place(s, q))
        return among_best(values.tolist(), self.config.slack, self.rng)

    def update(self, s: int, q: int, a: int, step: Step) -> None:
        """Learn from one transition."""
        self._best = None
        self.t += 1
        (x, _), (x_next, _) = self.place(s, q), self.place(step.s, step.q)
        if self.joint:
            news = self._count(x, a, x_next, step.r_env + step.r_task)
            task_steps: Sequence[TaskStep] = (TaskStep(0, 0, 0.0, step.terminated),)
        else:
            news = self._count(x, a, x_next, step.r_env)
            news = self.arrivals.enter(self.planner, x_next, step.label) or news
            task_steps = self.experience(q, step)
        news = self._learn_task(x_next, task_steps, world_ended=step.world_ended) or news
        if self.t >= self.due:
            self.due = self.next_due(self.t)
            self.threshold = self._threshold_at(self.t)
            self.retune()
            news = True
        if news:
            self.expect(s, step.s)
            changed = self.estimate()
            self.planner.revise(self._changed[:changed])
            self.planner.replan()

    def _threshold_at(self, t: int) -> int:
        """The samples before a state-action pair counts as known, after t steps."""
        return min(threshold_at(t, self.config.t_min, self.config.grows_from), self.freeze_after)

    def next_due(self, t: int) -> int:
        """The time of the next timed replanning."""
        return next_due(t, self.config.grows_from)

    def retune(self) -> None:
        """Estimate alpha again, and every row with it: the threshold may have grown, too."""
        self.alpha = likeliest_alpha(self.seen.arrays)
        self.counted[:] = NOT_COUNTED

    @property
    def shrinkage(self) -> float:
        """The strength by which rows are shrunk towards the successors of all actions."""
        return self.alpha

    @property
    def watched(self) -> int:
        """The samples of a pair after which every new successor of it is news."""
        return self.threshold

    def expect(self, s: int, x: int) -> None:
        """List what may happen in s and x, which was not observed; called on news."""

    @abstractmethod
    def estimate(self) -> int:
        """Bring the rows up to date; returns the number of states that are listed as changed."""

    def _count(self, s: int, a: int, x: int, reward: float) -> bool:
        """Count a transition of the world; returns whether to replan."""
        if self.seen.arrays.n[s, a] >= self.freeze_after:
            return False
        is_new = self.seen.record(s, a, x, reward)
        seen = self.seen.arrays
        if is_new:  # every row of s gets one more entry
            self.planner.list_successors(seen, s)
            self.counted[s] = NOT_COUNTED
            return True
        n = int(seen.n[s, a])
        k = seen.outcome[s].tolist().index(x)
        news = n == self.threshold
        if not news and n > self.watched:
            news = bool(seen.tau[s, a, k] == 1 or n & (n - 1) == 0)
        if news:
            self.counted[s, a] = NOT_COUNTED
        return news

    def _learn_task(self, s: int, task_steps: Sequence[TaskStep], *, world_ended: bool) -> bool:
        """Learn the machine's transitions on arriving in s; returns whether to replan."""
        news, arrivals, planner = False, self.arrivals, self.planner
        place = arrivals.place.item(s)
        for q, q_next, r_task, terminated in task_steps:
            if not self.task.is_known(q, place):
                surprise = not planner.is_as_estimated(q, s, q_next, r_task)
                self.task.record(q, place, q_next, r_task)
                n = int(self.task.counts.n[q, place])
                first = self._times_observed(q, place, q_next) == 1
                if surprise and n >= self.t_task and (n == self.t_task or first or not n & (n - 1)):
                    arrivals.learn(planner, q, s)
                    news = True
            if terminated and arrivals.finish(planner, s, q_next, world_ended=world_ended):
                news = True  # never on truncation
        return news

    def _times_observed(self, q: int, place: int, q_next: int) -> int:
        """The number of times that the machine moved from q to q_next on arriving there."""
        _, outcome, tau, _ = self.task.counts
        return int(tau[q, place, outcome[q, place].tolist().index(q_next)])

    def fast_forward(self, simulator: AnySimulator, limit: int) -> FastForwardResult:
        """Take compiled steps, up to one after which it replans."""
        self._best = None
        planner = self.planner
        taken = step_loops.explore_rows(
            simulator.world,
            simulator.state,
            planner.rows,
            planner.tables,
            planner.task,
            self.row_counting(),
            *self.numbers(simulator),
            limit,
            self.due - self.t,
        )
        self.t += taken.steps
        if not taken.unlearned:
            return FastForwardResult(taken.steps, None)
        self.t -= 1
        return FastForwardResult(taken.steps, as_transition(taken, simulator))

    def row_counting(self) -> step_loops.RowCounting:
        """The counters for the compiled loop."""
        return step_loops.RowCounting(
            *self.seen.arrays,
            *self.task.counts,
            self.arrivals.place,
            threshold=self.threshold,
            freeze_after=self.freeze_after,
            watched=self.watched,
            t_task=self.t_task,
            counterfactual=self.sure,
            joint=self.joint,
            optimistic=self.planner.rules.optimistic,
            slack=self.config.slack,
        )

    # --- the result

    def policy(self) -> IntArray:
        """The greedy policy by `q`, `[s, q]`: the first of equally good actions."""
        return np.asarray(self.q.argmax(axis=2), dtype=np.int32)

    @property
    def q(self) -> FloatArray:
        """The action values on the model that is recommended from, `[s, q, a]`.

        On the mean model minus infinity for actions that must not be recommended, 0 if none may be.
        """
        if self.config.recommends_optimistically:
            return self.planner.q.reshape(self.sizes)
        if self._best is None:
            self._best = self._plan_on_means()
        table = self._best.q.copy()
        table[(self._best.rows.base == -np.inf).all(axis=1)] = 0.0
        return table.reshape(self.sizes)

    def _plan_on_means(self) -> RowPlanner:
        """A plan on the posterior means."""
        learned = self.planner
        plan = self._make_planner(NO_LIMIT, initial=0.0)
        plan.rows.base[:] = -np.inf
        self.fill_means(np.zeros_like(self.counted), plan.rows)
        plan.adopt(learned.task, learned.tables.done, learned.moves)
        plan.solve()
        return plan

    def fill_means(self, counted: IntArray, rows: Rows) -> None:
        """The posterior means of all pairs that may be recommended: those that were tried."""
        estimate_rows(self.seen.arrays, self.shrinkage, 1, 0.0, counted, rows, self._changed)

    def known(self) -> ModelCoverage:
        """The state-action pairs with `t_min` samples or more, of all there are."""
        n = self.seen.arrays.n
        return ModelCoverage(pairs=int((n >= self._threshold_at(0)).sum()), of=n.size)

    def visits(self) -> VisitCounts:
        """The visits of state-action pairs."""
        states, _, actions = self.sizes
        shape = self.sizes if self.joint else (states, actions)
        return VisitCounts(self.seen.arrays.n.reshape(shape), self._threshold_at(0))

    @property
    def samples(self) -> int:
        """The number of steps counted: all of them, unless counts freeze."""
        return int(self.seen.arrays.n.sum(dtype=np.int64))

    # --- saving

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Counts, rows, plan and clock."""
        parts: dict[str, Mapping[str, NDArray[Any]]] = {
            "seen": self.seen.arrays._asdict(),
            "task": self.task.counts._asdict(),
            "planner": self.planner.snapshot(),
            "clock": {"t": np.array([self.t]), "due": np.array([self.due])},
            "rows": {"counted": self.counted, "alpha": np.array([self.alpha])},
        }
        return {
            f"{part}.{name}": array.copy()
            for part, arrays in parts.items()
            for name, array in arrays.items()
        } | self.arrivals.snapshot()

    def make_room_for(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Grow to as many labels as in a snapshot, and to successor lists of the same length."""
        self.arrivals.make_room_for(arrays)
        rho = arrays["seen.rho"]
        if rho.ndim == 3 and rho.shape[:2] == self.seen.arrays.n.shape:
            self.seen.widen(rho.shape[2])
            self.planner.widen(self.seen.arrays)

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over counts, rows, plan and clock."""
        self.seen.restore(Seen(*(arrays[f"seen.{name}"].copy() for name in Seen._fields)))
        self.arrivals.restore(arrays)
        self.task.restore(Counts(*(arrays[f"task.{name}"].copy() for name in Counts._fields)))
        prefix = "planner."
        self.planner.restore(
            self.seen.arrays,
            {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)},
        )
        counted = arrays["rows.counted"]
        if not ((counted >= NOT_COUNTED) & (counted <= self.seen.arrays.n)).all():
            raise ModelError("rows.counted: more samples than visits")
        self.alpha = float(arrays["rows.alpha"][0])
        if self.alpha not in self.alphas:
            raise ModelError(f"rows.alpha is {self.alpha}; allowed: {self.alphas.tolist()}")
        t, due = int(arrays["clock.t"][0]), int(arrays["clock.due"][0])
        uncounted = t - self.samples
        fits = uncounted == 0 or (uncounted > 0 and self.freeze_after < FOR_EVER)
        if not fits or not t < due <= self.next_due(t):
            raise ModelError(f"clock: {t} steps of {self.samples} counted, planning at {due}")
        if (self.seen.arrays.n > self.freeze_after).any():
            raise ModelError(f"seen.n: more than {self.freeze_after} samples, which are all")
        self.t, self.due = t, due
        self.threshold = self._threshold_at(t)
        self.counted[:] = counted
        self._best = None
