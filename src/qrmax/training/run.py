"""`qrmax.train` and what it returns."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from qrmax.agents.base import Agent
from qrmax.agents.registry import agent_class, default_settings, make_config
from qrmax.automata.reward_machine import RewardMachine
from qrmax.errors import ParameterError, shown, warn
from qrmax.model.problem import Problem
from qrmax.planning.arrays import IntArray
from qrmax.planning.policy_evaluation import Evaluation, evaluate
from qrmax.seeding import stream
from qrmax.training.environment import EnvPlayer
from qrmax.training.evaluation import Point, Referee
from qrmax.training.stopping import Budget, StoppingRule, as_rule
from qrmax.training.trainer import Event, Session, TrainingConfig

MAX_STEPS = 1_000_000
MAX_ENV_STEPS = 100_000  # an environment of one's own is played in Python


def train(
    agent: str,
    problem: Problem | Any,
    *,
    seed: int = 0,
    max_steps: int | None = None,
    stop: str | StoppingRule | None = None,
    evaluate_every: int = 1000,
    compiled: bool = True,
    on_event: Callable[[Event], None] | None = None,
    **settings: Any,
) -> Run:
    """Train an agent on a problem, or on a Gymnasium environment with a task.

    >>> import qrmax
    >>> run = qrmax.train("qrmax", qrmax.make("office/map1/exp1"), seed=7)
    >>> run.reason, run.evaluation.nominal_length
    ('exact', 15)

    `settings` are those of the agent (`qrmax list agents` shows them), `gamma` among them. `stop`
    is "exact" (the policy is within 5 % of the optimum, at three checks in a row; where there is
    a problem to solve this is the default), "nominal", "welch" or "budget", or a rule of
    `qrmax.training.stopping` with settings of its own. The policy is checked every
    `evaluate_every` steps. Training ends at `max_steps` in any case: 1,000,000 by default, 100,000
    for an environment, which is played in Python and has no optimum to compare with.

    `r_max` is by default the most that a step of the problem can pay; of an environment, the most
    that its task can. `on_event` is called with each event of `qrmax.training.trainer`;
    `compiled=False` plays a problem in Python, too, to the same result.
    """
    session = make_session(
        agent,
        problem,
        seed=seed,
        max_steps=max_steps,
        stop=stop,
        evaluate_every=evaluate_every,
        compiled=compiled,
        **settings,
    )
    return finish(session, on_event)


def make_session(
    agent: str,
    problem: Problem | Any,
    *,
    seed: int = 0,
    max_steps: int | None = None,
    stop: str | StoppingRule | None = None,
    evaluate_every: int = 1000,
    compiled: bool = True,
    referee: Referee | None = None,
    **settings: Any,
) -> Session:
    """The session that `train` trains; see there.

    Many runs on the same problem object, with the same gamma, are set up more quickly where they
    share a `referee`; it changes nothing else.
    """
    tabular = isinstance(problem, Problem)
    if max_steps is None:
        max_steps = MAX_STEPS if tabular else MAX_ENV_STEPS
    if stop is None:
        stop = "exact" if tabular else "budget"
    training = TrainingConfig(
        seed=seed,
        max_steps=max_steps,
        stop=as_rule(stop),
        evaluate_every=evaluate_every,
        compiled=compiled,
    )
    if isinstance(problem, Problem):
        lowest, highest = problem.reward_range()
        config = make_config(agent, _with_rewards(agent, settings, lowest, highest))
        _warn_of_pessimism(problem, config, highest)
        _warn_of_chance(agent, problem.machine, config)
        _warn_of_a_long_horizon(problem, config)
        if lowest == highest == 0.0:
            warn(f"{problem.name!r} never pays anything: any policy is as good as any other")
        return Session(agent, config, problem, training, referee=referee)
    _check_env(problem)
    if not isinstance(training.stop, Budget):
        raise ParameterError(
            f"stop is {training.stop.name!r}; an environment has no known optimum to compare "
            "with: allowed is 'budget'"
        )
    config = make_config(agent, settings)  # bad settings are found before the env is touched
    chance, factored = stream(seed, "environment"), agent_class(agent).factored
    player = EnvPlayer(problem, config.gamma, chance, factored=factored)
    _warn_of_chance(agent, player.machine, config)
    rewards = [edge.reward for edge in player.machine.edges]
    lowest, highest = min([0.0, *rewards]), max([1.0, *rewards])
    config = make_config(agent, _with_rewards(agent, settings, lowest, highest))
    return Session(agent, config, player, training, referee=referee)


def finish(session: Session, on_event: Callable[[Event], None] | None = None) -> Run:
    """Train to the end."""
    for event in session.events():
        if on_event is not None:
            on_event(event)
    return Run(session)


class Run:
    """A run that has ended: what was learned, and how it came to be.

    `reason` is the rule that was met, or "budget" where training took all its steps. `steps` is the
    step at which the rule was first met, or all steps; `trained` is all steps in any case.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._recommendation: tuple[int, IntArray] | None = None  # and the step that it is of

    @property
    def agent(self) -> Agent:
        """The agent, with all it has learned."""
        return self._session.agent

    @property
    def problem(self) -> Problem | None:
        """The problem; None for an environment."""
        return self._session.task if isinstance(self._session.task, Problem) else None

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self._session.training.seed

    @property
    def steps(self) -> int:
        """When the rule was first met; all steps where it was not."""
        return self._session.steps

    @property
    def trained(self) -> int:
        """How many steps were taken in all."""
        return self._session.progress.step

    @property
    def reason(self) -> str:
        """Why training ended: the name of the rule that was met, or "budget"."""
        return self._session.progress.reason or "budget"

    @property
    def seconds(self) -> float:
        """How long learning took, without evaluations."""
        return self._session.progress.seconds

    @property
    def curve(self) -> tuple[Point, ...]:
        """The learning curve.

        On a problem each row is exact; there is one for each of the first 128 checks, later for
        fewer, and for every check that was passed. On an environment a row sums up the episodes of
        training that ended since the last one.
        """
        return tuple(self._session.curve)

    @property
    def policy(self) -> IntArray:
        """The greedy policy at the end, `[s, q]`; that of stage 0 where it depends on the stage."""
        policy = self.recommendation
        return policy if policy.ndim == 2 else policy[0]

    @property
    def recommendation(self) -> IntArray:
        """The policy that the run is judged by.

        It is `policy`, except for agents that plan for episodes of `horizon` steps: theirs depends
        on the stage, `[h, s, q]`.
        """
        known = self._recommendation
        if known is None or known[0] != self.trained:  # it was trained on since
            known = self._recommendation = self.trained, self.agent.recommendation()
        return known[1]

    @property
    def evaluation(self) -> Evaluation | None:
        """What the recommended policy brings, exactly; None for an environment.

        It is measured with the agent's own gamma, and in episodes of its horizon if it has one.
        """
        referee = self._session.referee
        return None if referee is None else referee.evaluate(self.recommendation)

    @property
    def stationary_evaluation(self) -> Evaluation | None:
        """What `policy` brings, which is that of stage 0, where the one recommended has stages."""
        referee = self._session.referee
        if referee is None or self.recommendation.ndim == 2:
            return None
        limits = [referee.horizon, referee.problem.max_episode_steps]
        limit = min(limit for limit in limits if limit is not None)
        return evaluate(referee.problem, self.policy, referee.gamma, limit)

    @property
    def gap(self) -> float | None:
        """How far the recommended policy is below the optimum, relative to it.

        None for an environment. The optimum has the same gamma and, if there is one, horizon.
        """
        referee = self._session.referee
        return None if referee is None else referee.gap(self.recommendation)

    def act(self, observation: Any, info: Any = None, *, stage: int = 0) -> int:
        """The greedy action for an observation of the environment trained on.

        Where labels belong to whole steps, `info` is needed as well. Where the policy depends on
        the stage, `stage` says how many steps the episode has had.
        """
        task = self._session.task
        if not (isinstance(observation, Mapping) and {"state", "task"} <= observation.keys()):
            raise ParameterError(
                f"observation is {shown(observation)}; needed: what the environment shows, "
                'with "state" and "task"'
            )
        if isinstance(task, Problem):
            return int(self._at(stage)[int(observation["state"]), int(observation["task"])])
        s = task.number(observation, info)
        first = int(task.env.action_space.start)
        return int(self._at(stage)[s, int(observation["task"])]) + first

    def _at(self, stage: int) -> IntArray:
        """The policy of a stage, `[s, q]`."""
        policy = self.recommendation
        if policy.ndim == 2:
            return policy
        if not 0 <= stage < len(policy):
            raise ParameterError(
                f"stage is {shown(stage)}; allowed: 0 to {len(policy) - 1}, as the episodes it was "
                f"trained for have {len(policy)} steps"
            )
        actions: IntArray = policy[stage]
        return actions

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything into a file, from which `qrmax.load` makes the run again."""
        from qrmax.training.checkpoint import save

        save(self._session, path)

    def resume(
        self,
        max_steps: int | None = None,
        *,
        on_event: Callable[[Event], None] | None = None,
    ) -> Run:
        """Train on, up to so many steps in all; to the same result as without a break.

        A run whose rule was met has nothing more to do. An environment starts a new episode.
        """
        session = self._session
        session.extend(max_steps)
        if isinstance(session.task, EnvPlayer):
            session.task.over = True  # someone else may have played it since
        return finish(session, on_event)

    def __repr__(self) -> str:
        published = ", published" if getattr(self.agent.config, "published", False) else ""
        return (
            f"Run({self.agent.name!r}{published} on {self._session.task.name!r}, "
            f"seed {self.seed}: {self.steps} steps, {self.reason})"
        )


def _with_rewards(
    agent: str, settings: dict[str, Any], lowest: float, highest: float
) -> dict[str, Any]:
    """The settings, with the range of rewards where the agent wants to know it and is not told."""
    found = {"r_min": min(lowest, 0.0), "r_max": max(highest, 0.0)}
    return {key: found[key] for key in default_settings(agent) if key in found} | settings


def _warn_of_chance(agent: str, machine: RewardMachine, config: Any) -> None:
    learns = not agent_class(agent).knows_machine
    if learns and machine.is_random and getattr(config, "t_task", None) == 1:
        warn(
            f"task {machine.name!r} has chance in it, and t_task is 1: what happens first is taken "
            "for what always happens; give t_task=20, say"
        )


def _warn_of_a_long_horizon(problem: Problem, config: Any) -> None:
    horizon, limit = getattr(config, "horizon", 0), problem.max_episode_steps
    if limit is not None and horizon > limit:
        warn(
            f"horizon is {horizon}, but episodes of {problem.name!r} end after {limit} steps: it "
            f"plans for steps that never come; give horizon={limit}"
        )


def _warn_of_pessimism(problem: Problem, config: Any, highest: float) -> None:
    r_max, v_max = getattr(config, "r_max", highest), getattr(config, "v_max", None)
    if v_max is None and r_max < highest:
        warn(
            f"r_max is {r_max:g}, but a step of {problem.name!r} can pay {highest:g}: what is not "
            "known looks worse than it may be, and the optimum may never be found"
        )


def _check_env(env: Any) -> None:
    if hasattr(env, "num_envs"):
        raise ParameterError(
            f"{str(env)[:80]} is a vector environment; these agents play one environment: "
            "give the one that gymnasium.make makes"
        )
    if not (hasattr(env, "reset") and hasattr(env, "step") and hasattr(env, "action_space")):
        raise ParameterError(
            f"problem is {str(env)[:60]!r}; needed: a Problem, such as "
            "qrmax.make('office/map1/exp5'), or a Gymnasium environment in a qrmax.TaskWrapper"
        )
