"""QR-Max (the paper's Algorithm 1): R-Max that learns the world and the machine apart.

    tau_E, rho_E, n_E   by (s, a):    where actions lead, what the world pays
    tau_Q, rho_Q, n_Q   by (q, s'):   what the machine does on arriving in s', what it pays
    t_E, t_Q            `t_env`, `t_task`: samples before a pair counts as known
    QT                  the optimistic Q-table, R_max / (1 - gamma) where something is not known

What is learned about the world in one machine state serves in all of them. The backup

    Q(s, q, a) = sum_s' R_E + sum_s' P_E(s' | s, a) (R_Q(q, s') + gamma sum_q' P_Q V(s', q'))

is done where (s, a) is known and (q, s') is, for every s' that was seen to follow. With `t_task`
above 1 the machine's transitions and rewards may be random. With `task_by` = "label" the machine's
counts are by (q, label), not by (q, s'): see `arrivals.py`.

Assumes: sees the machine's state and what it pays; does not know the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from qrmax.agents import step_loops
from qrmax.agents.arrivals import LABEL, STATE, TASK_BY, Arrivals
from qrmax.agents.base import Sizes
from qrmax.agents.experience import Experience, TaskStep
from qrmax.agents.model_based import ModelBased, ModelBasedConfig
from qrmax.empirical.counts import Counter
from qrmax.errors import check_choice, check_count
from qrmax.planning.incremental import IncrementalPlanner
from qrmax.problems.simulator import Step
from qrmax.seeding import Stream


@dataclass(frozen=True, kw_only=True, slots=True)
class FactoredConfig(ModelBasedConfig):
    """Settings of QR-Max in all its forms."""

    t_task: int = 1  # samples before (q, s') counts as known

    def __post_init__(self) -> None:
        ModelBasedConfig.__post_init__(self)
        check_count("t_task", self.t_task)

    @property
    def by_label(self) -> bool:
        """Whether the machine's transitions are counted by (q, label), instead of (q, s')."""
        return False

    @property
    def trusts_one_sample(self) -> bool:
        """Whether the machine is assumed to be deterministic."""
        return self.t_task == 1


@dataclass(frozen=True, kw_only=True, slots=True)
class QRMaxConfig(FactoredConfig):
    """Settings of QR-Max."""

    newer = ("task_by",)

    task_by: str = STATE  # what the machine's samples are counted by: state or label

    def __post_init__(self) -> None:
        FactoredConfig.__post_init__(self)
        check_choice("task_by", self.task_by, TASK_BY)

    @property
    def by_label(self) -> bool:
        """Whether the machine's transitions are counted by (q, label), instead of (q, s')."""
        return self.task_by == LABEL

    @property
    def reads_labels(self) -> bool:
        """Whether it learns from labels."""
        return self.by_label


class QRMax(ModelBased):
    """QR-Max: sees the machine's state, does not know the machine, learns two small models."""

    name = "qrmax"
    factored = True
    Config: ClassVar[type[FactoredConfig]] = QRMaxConfig
    told_the_machine = "qrmax-rm"
    in_loop = frozenset({"update"})
    config: FactoredConfig

    def __init__(
        self,
        sizes: Sizes,
        config: FactoredConfig,
        rng: Stream,
        experience: Experience,
    ) -> None:
        super().__init__(sizes, config, rng, experience)
        states, task_states, actions = sizes
        self.env = Counter(states, actions, threshold=config.t_env)  # lines 2-3
        self.arrivals = Arrivals(
            states, task_states, threshold=config.t_task, by_label=config.by_label
        )
        self.task = self.arrivals.task  # lines 4-5
        self.counters = {"env": self.env, "task": self.task}
        self.times = 1  # that a sample of the world counts
        self.planner = self.make_planner()  # line 1
        self._learned: dict[int, Sequence[TaskStep]] = {}  # [s'], all of which is known

    def grow(self, states: int) -> None:
        """Grow to more states, all of them unknown."""
        self.sizes = self.sizes._replace(states=states)
        self.env.grow(states, self.sizes.actions)
        self.arrivals.grow(states)
        self.planner.grow(states)

    def make_planner(self) -> IncrementalPlanner:
        """A planner that knows nothing yet."""
        return IncrementalPlanner(
            *self.sizes,
            gamma=self.config.gamma,
            optimistic=self.config.optimistic,
            tolerance=self.config.tolerance,
        )

    def update(self, s: int, q: int, a: int, step: Step) -> None:
        """Learn from one transition (lines 10-32)."""
        do_vi = False
        if self.env.record(s, a, step.s, step.r_env, self.times):  # lines 11-18
            self.planner.learn_env(s, a, *self.env.estimate(s, a))
            do_vi = True
        do_vi = self.arrivals.enter(self.planner, step.s, step.label) or do_vi
        task_steps = self.experience(q, step)
        if self._learned.get(step.s) is not task_steps:
            do_vi = self._learn_task(step, task_steps) or do_vi  # lines 19-29
        if do_vi:  # lines 30-32
            self.planner.replan()

    def _learn_task(self, step: Step, task_steps: Sequence[TaskStep]) -> bool:
        """Learn the machine's transitions on arriving somewhere; returns whether to replan."""
        news, known, s, arrivals, planner = False, True, step.s, self.arrivals, self.planner
        place, ended = arrivals.place.item(s), step.world_ended
        for q, q_next, r_task, terminated in task_steps:
            if self.task.record(q, place, q_next, r_task):  # lines 19-26
                arrivals.learn(planner, q, s)
                news = True
            if terminated and arrivals.finish(planner, s, q_next, world_ended=ended):
                news = True  # lines 27-29; never on truncation
            known = known and self.task.is_known(q, place)
        if known:  # the same steps teach nothing more
            self._learned[s] = task_steps
        return news

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Counters and planner, and the labels of states if the machine's counts are by label."""
        return {**super().snapshot(), **self.arrivals.snapshot()}

    def make_room_for(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Grow to as many labels as in a snapshot."""
        self.arrivals.make_room_for(arrays)

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore all of that."""
        self._learned.clear()
        self.arrivals.restore(arrays)
        super().restore(arrays)

    def counting(self) -> step_loops.Counting:
        """The counters for the compiled loop."""
        return step_loops.Counting(
            *self.env.counts,
            for_transitions=self.env.for_transitions,
            for_rewards=self.env.for_rewards,
            of_pairs=False,
            times=self.times,
            counterfactual=self.experience.knows_machine,
            task=step_loops.TaskFactor(
                *self.task.counts,
                self.task.for_transitions,
                self.task.for_rewards,
                self.arrivals.place,
                self.arrivals.by_label,
                *self.planner.task[1:],
                value=self.planner.tables.value,
                moves=self.planner.moves,
                head=self.planner.env.head,
                gamma=self.config.gamma,
                signed=self.planner.rules.signed,
            ),
        )
