"""The training loop: an agent acts and learns, with policy evaluations and a stopping rule.

A `Session` is a run in progress. It yields events, for callers that show progress, store results or
interrupt training. Between two events a session is consistent: it can be saved there and resumed
later, with the same result.

    for event in session.events():
        match event:
            case Progressed(step=t): ...
            case Evaluated(point=row): ...
            case Stopped(reason=why): ...
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from qrmax.agents.base import Agent, AgentConfig, FastForwardResult, RewardBounds, Tabular
from qrmax.agents.compiled import runs_compiled
from qrmax.agents.outside import checked_act, checked_policy
from qrmax.agents.registry import AgentLike, make_agent
from qrmax.errors import ParameterError, check_count, check_flag, warn
from qrmax.planning.compilation import seconds_compiling
from qrmax.seeding import Stream, check_seed, stream
from qrmax.training.check_schedule import is_check, next_check
from qrmax.training.domains.domain import Domain
from qrmax.training.evaluator import Evaluator
from qrmax.training.player import Player
from qrmax.training.point import Point
from qrmax.training.stopping import StoppingRule, own_objective

STRETCH = 50_000  # steps between two events if the loop is compiled
PYTHON_STRETCH = 500
FULL_CURVE = 128  # from here on, a curve has fewer rows than there are checks
NO_BOUNDS = RewardBounds()  # on the rewards of a step
STREAMS = ("world", "agent", "evaluation")


class Progressed(NamedTuple):
    """Training has progressed."""

    step: int


class Evaluated(NamedTuple):
    """The policy has been evaluated."""

    step: int
    passed: bool
    point: Point | None  # None if only the stopping rule was checked


class Stopped(NamedTuple):
    """Training has ended."""

    reason: str  # the rule that was met, or "budget"
    steps: int  # the first of the checks that met it, or all steps


Event = Progressed | Evaluated | Stopped


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingConfig:
    """The configuration of training."""

    seed: int = 0
    max_steps: int = 1_000_000
    max_episodes: int | None = None  # checked when the policy is evaluated
    stop: StoppingRule
    evaluate_every: int = 1000  # steps between two evaluations
    dense_checks: int | None = None  # evaluations before they become rarer; see check_schedule.py
    compiled: bool = True  # if possible

    @property
    def schedule(self) -> tuple[int, int | None]:
        """The steps between two evaluations, and the number of evaluations before they double."""
        return self.evaluate_every, self.dense_checks

    def __post_init__(self) -> None:
        check_seed(self.seed)
        check_count("max_steps", self.max_steps)
        if self.max_episodes is not None:
            check_count("max_episodes", self.max_episodes)
        check_count("evaluate_every", self.evaluate_every)
        if self.dense_checks is not None:
            check_count("dense_checks", self.dense_checks)
        check_flag("compiled", self.compiled)


@dataclass(slots=True)
class Progress:
    """The progress of a session."""

    step: int = 0
    streak: int = 0  # checks passed in a row
    first: int = 0  # the step of the first of them
    first_episode: int = 0  # and the number of episodes begun by then
    reason: str = ""  # the rule that stopped it before its budget was spent; empty if none has
    seconds: float = 0.0  # spent in training, compilation excluded
    own_streak: int = 0  # checks in a row that met the rule by the learner's own objective
    own_first: int = 0  # the step of the first of them
    memory: dict[str, Any] = field(default_factory=dict)  # of the stopping rule


class Session:
    """A run in progress.

    Sessions on the same problem, with the same gamma, can share an `evaluator`, so that the problem
    is solved once for all of them. If the stopping rule has a yardstick, `own_evaluator` evaluates
    by the learner's own objective, where that is exact and another one; else it is None.
    """

    def __init__(
        self,
        agent: AgentLike,
        config: AgentConfig,
        domain: Domain,
        training: TrainingConfig,
        streams: Mapping[str, Stream] | None = None,
        evaluator: Evaluator | None = None,
        own_evaluator: Evaluator | None = None,
    ) -> None:
        self.training = training
        self.domain = domain
        self.streams = streams or {name: stream(training.seed, name) for name in STREAMS}
        judged, own = training.stop.objective(config), own_objective(config)
        for given, objective in ((evaluator, judged), (own_evaluator, own)):
            if given is not None:
                domain.check_evaluator(given, *objective)
        self.agent: Agent = make_agent(
            agent,
            domain.sizes,
            config,
            self.streams["agent"],
            domain.task,
            domain.observations,
            domain.coordinates,
        )
        self.player: Player = domain.player(self.agent, self.streams["world"])
        self.evaluator = evaluator or domain.evaluator(*judged, training.evaluate_every)
        self.own_evaluator: Evaluator | None = None
        if own != judged and domain.evaluates_exactly:
            self.own_evaluator = own_evaluator or domain.evaluator(*own)
        self._act = checked_act(self.agent)
        self._fast_forward = self._compiled_loop()
        self.progress = Progress()
        self.curve: list[Point] = []
        self._bounds = NO_BOUNDS if domain.rewards_known else config.reward_bounds

    def _compiled_loop(self) -> Callable[[Any, int], FastForwardResult] | None:
        """The compiled loop, if the domain, the agent and the caller allow it."""
        allowed = self.training.compiled and self.domain.simulated
        if allowed and isinstance(self.agent, Tabular) and runs_compiled(self.agent):
            return self.agent.fast_forward
        return None

    def events(self) -> Iterator[Event]:
        """Train until the stopping rule is met or the budget is spent."""
        progress, training = self.progress, self.training
        while not self.is_over:
            check = next_check(progress.step, *training.schedule)
            until = min(check, training.max_steps)
            while progress.step < until:
                started, compiling = time.perf_counter(), seconds_compiling()
                self._take(until - progress.step)
                progress.seconds += time.perf_counter() - started
                progress.seconds -= seconds_compiling() - compiling
                if progress.step < until:
                    yield Progressed(progress.step)
            if progress.step == check:
                yield self._check()
        yield Stopped(self.reason or "budget", self.steps)

    @property
    def is_over(self) -> bool:
        """Whether the stopping rule is met, or the budget is spent."""
        return bool(self.progress.reason) or self._is_spent

    @property
    def reason(self) -> str:
        """The stopping rule that is met; empty if it is not."""
        rule = self.training.stop
        holds = rule.takes_budget and self.progress.streak >= rule.in_a_row
        return rule.name if holds and self._is_spent else self.progress.reason

    @property
    def _is_spent(self) -> bool:
        """Whether the budget is spent."""
        training = self.training
        return self.progress.step >= training.max_steps or self._has_all_episodes(training)

    @property
    def share(self) -> float:
        """The share of the budget that is spent, in steps or in episodes."""
        training = self.training
        share = self.progress.step / training.max_steps
        if training.max_episodes is not None:
            share = max(share, self.player.episodes / training.max_episodes)
        return min(share, 1.0)

    def _has_all_episodes(self, training: TrainingConfig) -> bool:
        """Whether all its episodes have begun; checked only when the policy is evaluated."""
        checked = is_check(self.progress.step, *training.schedule)
        most = training.max_episodes
        return checked and most is not None and self.player.episodes >= most

    def extend(self, max_steps: int | None, max_episodes: int | None = None) -> None:
        """Set the budget of steps and episodes in all; an error if it is spent already."""
        training = self.training
        if max_steps is not None:
            training = replace(training, max_steps=max_steps)
        if max_episodes is not None:
            training = replace(training, max_episodes=max_episodes)
        if not self.progress.reason:
            if training.max_steps <= self.progress.step:
                raise ParameterError(
                    f"the run has taken {self.progress.step} steps, and max_steps is "
                    f"{training.max_steps}; give more to resume"
                )
            if self._has_all_episodes(training):
                raise ParameterError(
                    f"the run has begun {self.player.episodes} episodes, and max_episodes is "
                    f"{training.max_episodes}; give more to resume"
                )
        self.training = training

    @property
    def episodes(self) -> int:
        """The episodes that had begun at the step to report."""
        return self.progress.first_episode if self.reason else self.player.episodes

    @property
    def steps(self) -> int:
        """The step to report: the first of the checks that passed, or all steps."""
        return self.progress.first if self.reason else self.progress.step

    def _take(self, limit: int) -> None:
        """Take at most `limit` steps."""
        player, agent = self.player, self.agent
        if self._fast_forward is not None:
            target = self.progress.step + min(limit, STRETCH)
            while self.progress.step < target:
                taken, transition = self._fast_forward(player, target - self.progress.step)
                self.progress.step += taken
                if transition is not None:
                    agent.update(*transition)
                    self._cut()
            return
        progress, clocked = self.progress, type(agent).episode_over is not Agent.episode_over
        lowest, highest = self._bounds
        for _ in range(min(limit, PYTHON_STRETCH)):
            if player.over:
                player.reset()
                agent.begin_episode(player.s, player.q)
            s, q = player.s, player.q
            a = self._act(s, q)
            step = player.step(a)
            agent.update(s, q, a, step)
            if clocked:
                self._cut()
            progress.step += 1
            if not lowest <= step.r_env + step.r_task <= highest:
                self._warn_of_rewards(step.r_env + step.r_task)
                lowest, highest = self._bounds

    def _cut(self) -> None:
        """End the episode if the agent does, at a horizon of its own."""
        if self.agent.episode_over and not self.player.over:
            self.player.cut()

    def _check(self) -> Evaluated:
        """Check the stopping rule, and append a row to the curve."""
        step, chance = self.progress.step, self.streams["evaluation"]
        policy, point = checked_policy(self.agent), None
        memory = self.progress.memory
        passed = self.training.stop.check(policy, self.evaluator, chance, memory)
        if self._reports(passed) or _has_row(step // self.training.evaluate_every):
            point = self.evaluator.point(step, policy, chance)
        if point is not None:
            gap = None if self.own_evaluator is None else self.own_evaluator.gap(policy)
            point = point._replace(episodes=self.player.episodes, own_gap=gap)
            self.curve.append(point)
        self._count(passed)
        self._check_own_objective(policy)
        return Evaluated(step, passed, point)

    def _check_own_objective(self, policy: Any) -> None:
        """Check the same rule by the learner's own objective, until that is met.

        A rule that takes the budget is checked to its end.
        """
        progress, rule = self.progress, self.training.stop
        if self.own_evaluator is None or rule.sampled:
            return
        if self.meets_own_objective and not rule.takes_budget:
            return
        if not rule.passes(policy, self.own_evaluator, self.streams["evaluation"]):
            progress.own_streak = 0
            return
        if progress.own_streak == 0:
            progress.own_first = progress.step
        progress.own_streak += 1

    @property
    def meets_own_objective(self) -> bool:
        """Whether the rule is met by the learner's own objective, if that is checked at all."""
        return self.progress.own_streak >= self.training.stop.in_a_row

    def _reports(self, passed: bool) -> bool:
        """Whether the result may refer to this check; of a rule to the end, the first of many."""
        return passed and not (self.training.stop.takes_budget and self.progress.streak)

    def _count(self, passed: bool) -> None:
        progress, rule = self.progress, self.training.stop
        if not passed:
            progress.streak = 0
            return
        if progress.streak == 0:
            progress.first = progress.step
            progress.first_episode = self.player.episodes
        progress.streak += 1
        if progress.streak >= rule.in_a_row and not rule.takes_budget:
            progress.reason = rule.name

    def _warn_of_rewards(self, reward: float) -> None:
        """Warn once of a reward out of the range that the agent assumes."""
        lowest, highest = self._bounds
        if reward > highest:
            warn(
                f"a step had a reward of {reward:g}, above r_max = {highest:g}: unknown values are "
                f"not optimistic; give r_max={reward:g} or more"
            )
            self._bounds = self._bounds._replace(highest=math.inf)
        if reward < lowest:
            warn(
                f"a step had a reward of {reward:g}, below r_min = {lowest:g}, and may be clipped "
                f"to that; give r_min={reward:g} or less"
            )
            self._bounds = self._bounds._replace(lowest=-math.inf)


def _has_row(check: int) -> bool:
    """Whether the curve has a row for this check; later rows are sparser."""
    return is_check(check, 1, FULL_CURVE)
