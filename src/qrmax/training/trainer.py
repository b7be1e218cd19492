"""The loop: an agent acts and learns, is judged now and then, and stops when it is good enough.

A `Session` is a run under way. It yields events; whoever wants to show progress, store results or
interrupt listens. Between two events a session is complete in itself: it can be saved there and
gone on with later, to the same result.

    for event in session.events():
        match event:
            case Progressed(step=t): ...
            case Evaluated(point=row): ...
            case Stopped(reason=why): ...
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from qrmax.agents.base import Agent, AgentConfig, Play, Sizes, Tabular
from qrmax.agents.registry import make_agent
from qrmax.errors import ParameterError, check_count, check_flag, warn
from qrmax.planning.compilation import seconds_compiling
from qrmax.problems.continuous_problem import ContinuousProblem, PlaneSimulator
from qrmax.problems.problem import Problem
from qrmax.problems.simulator import Simulator
from qrmax.seeding import Stream, check_seed, stream
from qrmax.training.environment import EnvPlayer, Player
from qrmax.training.evaluation import Point, Referee
from qrmax.training.plane_referee import PlaneReferee
from qrmax.training.stopping import AnyReferee, StoppingRule

STRETCH = 50_000  # steps between two events where the loop is compiled
PYTHON_STRETCH = 500
FULL_CURVE = 128  # from here on, a curve has fewer rows than there are checks
STREAMS = ("world", "agent", "evaluation")


class Progressed(NamedTuple):
    """Training goes on."""

    step: int


class Evaluated(NamedTuple):
    """The policy has been checked."""

    step: int
    passed: bool
    point: Point | None  # None where only the stopping rule has looked


class Stopped(NamedTuple):
    """Training has ended."""

    reason: str  # the rule that was met, or "budget"
    steps: int  # the first of the checks that met it, or all steps


Event = Progressed | Evaluated | Stopped


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingConfig:
    """How an agent is trained."""

    seed: int = 0
    max_steps: int = 1_000_000
    max_episodes: int | None = None  # looked at when the policy is checked
    stop: StoppingRule
    evaluate_every: int = 1000  # steps between two checks
    compiled: bool = True  # where that is possible

    def __post_init__(self) -> None:
        check_seed(self.seed)
        check_count("max_steps", self.max_steps)
        if self.max_episodes is not None:
            check_count("max_episodes", self.max_episodes)
        check_count("evaluate_every", self.evaluate_every)
        check_flag("compiled", self.compiled)


@dataclass(slots=True)
class Progress:
    """How far a session has come."""

    step: int = 0
    streak: int = 0  # checks passed in a row
    first: int = 0  # the step of the first of them
    first_episode: int = 0  # and how many episodes had begun
    reason: str = ""  # why it has stopped; empty while it has not
    seconds: float = 0.0  # spent in training, compilation excluded


class Session:
    """A run under way.

    Sessions on the same problem, with the same gamma, can share a `referee`, so that the problem is
    solved once for all of them.
    """

    def __init__(
        self,
        agent: str,
        config: AgentConfig,
        task: Problem | ContinuousProblem | EnvPlayer,
        training: TrainingConfig,
        streams: Mapping[str, Stream] | None = None,
        referee: AnyReferee | None = None,
    ) -> None:
        self.training = training
        self.task = task
        self.streams = streams or {name: stream(training.seed, name) for name in STREAMS}
        if referee is not None:
            _check_referee(referee, task, config)
        observations = None if isinstance(task, Problem) else task.observations
        self.agent: Agent = make_agent(
            agent, sizes_of(task), config, self.streams["agent"], task, observations
        )
        self.player: Player
        self.referee = referee
        if isinstance(task, Problem):
            self.player = Simulator(task, self.streams["world"])
            self.referee = referee or Referee(task, config.gamma, horizon_of(config))
        elif isinstance(task, ContinuousProblem):
            self.player = PlaneSimulator(task, self.streams["world"], self.agent.perceive)
            self.referee = referee or PlaneReferee(task, config.gamma)
        else:
            self.player = task
            task.perceive = self.agent.perceive if self.agent.perceives else None
        self.progress = Progress()
        self.curve: list[Point] = []
        self._r_max: float | None = None  # what a step should not pay more than
        self._r_min: float | None = None  # and not less
        if self.referee is None and getattr(config, "v_max", None) is None:
            self._r_max = getattr(config, "r_max", None)
            self._r_min = getattr(config, "r_min", None)
        self._rewards_expected = self._r_max is not None or self._r_min is not None

    def events(self) -> Iterator[Event]:
        """Train on, until a rule is met or the budget is spent."""
        progress, training = self.progress, self.training
        while not self.is_over:
            check = (progress.step // training.evaluate_every + 1) * training.evaluate_every
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
        yield Stopped(progress.reason or "budget", self.steps)

    @property
    def is_over(self) -> bool:
        """Whether the rule is met, or the budget is spent."""
        progress, training = self.progress, self.training
        if progress.reason or progress.step >= training.max_steps:
            return True
        return self._has_all_episodes(training)

    @property
    def share(self) -> float:
        """How much of the budget is spent, in steps or in episodes."""
        training = self.training
        share = self.progress.step / training.max_steps
        if training.max_episodes is not None:
            share = max(share, self.player.episodes / training.max_episodes)
        return min(share, 1.0)

    def _has_all_episodes(self, training: TrainingConfig) -> bool:
        """Whether all its episodes have begun; that is looked at when the policy is checked."""
        checked = self.progress.step % training.evaluate_every == 0
        most = training.max_episodes
        return checked and most is not None and self.player.episodes >= most

    def extend(self, max_steps: int | None, max_episodes: int | None = None) -> None:
        """Allow so many steps and episodes in all; an error where nothing is left to do."""
        training = self.training
        if max_steps is not None:
            training = replace(training, max_steps=max_steps)
        if max_episodes is not None:
            training = replace(training, max_episodes=max_episodes)
        if not self.progress.reason:
            if training.max_steps <= self.progress.step:
                raise ParameterError(
                    f"the run has taken {self.progress.step} steps, and max_steps is "
                    f"{training.max_steps}; give more to go on"
                )
            if self._has_all_episodes(training):
                raise ParameterError(
                    f"the run has begun {self.player.episodes} episodes, and max_episodes is "
                    f"{training.max_episodes}; give more to go on"
                )
        self.training = training

    @property
    def episodes(self) -> int:
        """The episodes that had begun at the step to report."""
        return self.progress.first_episode if self.progress.reason else self.player.episodes

    @property
    def steps(self) -> int:
        """The step to report: the first of the checks that passed, or all steps."""
        return self.progress.first if self.progress.reason else self.progress.step

    def _take(self, limit: int) -> None:
        """Take up to so many steps."""
        player, agent = self.player, self.agent
        compiled = self.training.compiled
        if compiled and isinstance(player, Play) and isinstance(agent, Tabular):
            target = self.progress.step + min(limit, STRETCH)
            while self.progress.step < target:
                taken, lesson = agent.fast_forward(player, target - self.progress.step)
                self.progress.step += taken
                if lesson is not None:
                    agent.update(*lesson)
                    self._cut()
            return
        progress, clocked = self.progress, type(agent).over is not Agent.over
        for _ in range(min(limit, PYTHON_STRETCH)):
            if player.over:
                player.reset()
                agent.begin(player.s, player.q)
            s, q = player.s, player.q
            a = agent.act(s, q)
            step = player.step(a)
            agent.update(s, q, a, step)
            if clocked:
                self._cut()
            progress.step += 1
            if self._rewards_expected:
                self._warn_of_rewards(step.r_env + step.r_task)

    def _cut(self) -> None:
        """End the episode if the agent does, by a clock of its own."""
        if self.agent.over and not self.player.over:
            self.player.cut()

    def _check(self) -> Evaluated:
        """See whether the rule holds, and note a row of the curve."""
        step, rule = self.progress.step, self.training.stop
        passed, point = False, None
        if isinstance(self.task, EnvPlayer):
            point = _episodes_point(step, self.task)
        elif self.referee is not None:
            policy = self.agent.recommendation()
            chance = self.streams["evaluation"]
            passed = rule.passes(policy, self.referee, chance)
            if passed or _has_row(step // self.training.evaluate_every):
                point = self.referee.point(step, policy, chance)
        if point is not None:
            point = point._replace(episodes=self.player.episodes)
            self.curve.append(point)
        self._count(passed)
        return Evaluated(step, passed, point)

    def _count(self, passed: bool) -> None:
        progress, rule = self.progress, self.training.stop
        if not passed:
            progress.streak = 0
            return
        if progress.streak == 0:
            progress.first = progress.step
            progress.first_episode = self.player.episodes
        progress.streak += 1
        if progress.streak >= rule.in_a_row:
            progress.reason = rule.name

    def _warn_of_rewards(self, reward: float) -> None:
        """Say what is out of the range that the agent reckons with; once is enough."""
        if self._r_max is not None and reward > self._r_max:
            warn(
                f"a step paid {reward:g}, which is more than r_max = {self._r_max:g}: what is not "
                f"known looks worse than it may be; give r_max={reward:g} or more"
            )
            self._r_max = None
        if self._r_min is not None and reward < self._r_min:
            warn(
                f"a step paid {reward:g}, which is less than r_min = {self._r_min:g}, and may be "
                f"taken for that; give r_min={reward:g} or less"
            )
            self._r_min = None


def horizon_of(config: AgentConfig) -> int | None:
    """How many steps an agent plans for; None where it has no such limit."""
    horizon: int | None = getattr(config, "horizon", None)
    return horizon


def sizes_of(task: Problem | ContinuousProblem | EnvPlayer) -> Sizes:
    """How large what is played is, to an agent."""
    if isinstance(task, EnvPlayer):
        return task.sizes
    states = task.n_states if isinstance(task, Problem) else 0  # they turn up
    return Sizes(states, task.n_task_states, task.n_actions)


def _check_referee(
    referee: AnyReferee, task: Problem | ContinuousProblem | EnvPlayer, config: AgentConfig
) -> None:
    gamma, horizon = config.gamma, horizon_of(config)
    if referee.problem is not task or (referee.gamma, referee.horizon) != (gamma, horizon):
        raise ParameterError(
            f"referee judges {referee.problem.name!r} with gamma {referee.gamma:g} and horizon "
            f"{referee.horizon}; needed: one made for the very problem of the run, {task.name!r}, "
            f"with gamma {gamma:g} and horizon {horizon}"
        )


def _has_row(check: int) -> bool:
    """Whether the curve has a row for this check: the later, the fewer, as one looks at curves."""
    spacing = 1
    while check > FULL_CURVE * spacing:
        spacing *= 2
    return check % spacing == 0


def _episodes_point(step: int, player: EnvPlayer) -> Point | None:
    """What the episodes of training since the last check have brought."""
    episodes, player.finished = player.finished, []
    if not episodes:
        return None
    count = len(episodes)
    return Point(
        step,
        start_value=sum(episode.value for episode in episodes) / count,
        gap=None,
        success=sum(episode.success for episode in episodes) / count,
        nominal_length=None,
    )
