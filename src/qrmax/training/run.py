"""`qrmax.train`, and the `Run` that it returns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from qrmax.agents.base import Agent
from qrmax.agents.compiled import has_compiled_loop
from qrmax.agents.outside import checked_policy
from qrmax.agents.registry import (
    AgentLike,
    agent_class,
    given_settings,
    known_settings,
    make_config,
)
from qrmax.machines.reward_machine import RewardMachine
from qrmax.pictures.drawing import Picture
from qrmax.pictures.on_demand import drawn
from qrmax.planning.arrays import IntArray
from qrmax.planning.compile_notice import compile_notice
from qrmax.planning.policy_evaluation import Evaluation
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.problem import Problem, check_rewards
from qrmax.seeding import check_seed, stream
from qrmax.source import write_whole
from qrmax.training.cautions import warn_of_outcome, warn_of_settings
from qrmax.training.domains.domain import Domain, Learner
from qrmax.training.domains.domain_kinds import domain_kind
from qrmax.training.evaluator import Best, Evaluator
from qrmax.training.log import logged
from qrmax.training.matching_env import evaluate_in
from qrmax.training.point import Point, relative_gap
from qrmax.training.policies.policy import Policy
from qrmax.training.policies.policy_kinds import as_policy
from qrmax.training.run_line import follow_run
from qrmax.training.stopping import StoppingRule, as_rule
from qrmax.training.trainer import Event, Session, TrainingConfig
from qrmax.training.watch import RolloutStep, episode
from qrmax.worlds.catalog import make

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from qrmax.analysis.bucket_diagnosis import Diagnosis
    from qrmax.training.rollouts import Rollouts

MAX_STEPS = 1_000_000
MAX_PYTHON_STEPS = 100_000  # if the loop is not compiled
LONGEST_EPISODE = 10_000  # steps, when a policy is rolled out


def train(
    agent: AgentLike,
    problem: str | Problem | ContinuousProblem | Any,
    *,
    seed: int = 0,
    max_steps: int | None = None,
    max_episodes: int | None = None,
    stop: str | StoppingRule | None = None,
    evaluate_every: int = 1000,
    dense_checks: int | None = None,
    compiled: bool = True,
    on_event: Callable[[Event], None] | None = None,
    progress: bool | None = None,
    log: str | os.PathLike[str] | None = None,
    evaluation_env: Any = None,
    **settings: Any,
) -> Run:
    """Train an agent on a problem, or on a Gymnasium environment with a task.

    >>> import qrmax
    >>> run = qrmax.train("qrmax", qrmax.make("office/map1/exp1"), seed=7)
    >>> run.reason, run.evaluation.nominal_length
    ('exact', 15)

    Args:
        agent: the name of an agent (`qrmax list agents`), a class of your own, an instance of an
            agent's `Config`, whose settings are taken as they are, or the text "module:Class".
        problem: a problem, its name, or a Gymnasium environment with a task.
        seed: the seed of all random streams of the run.
        max_steps: the budget in steps: 1,000,000 by default, 100,000 if the training loop is not
            compiled, as on environments and for DQN.
        max_episodes: the budget in episodes; training ends at the first evaluation at which this
            many have begun. None for no limit.
        stop: the stopping rule: "exact" (the value is within 5 % of the optimum, at three
            evaluations in a row; the default on a tabular problem), "stays" (at every evaluation
            from some step on, to the end of the budget), "nominal", "success", "reaches", "welch"
            or "budget", or a rule of `qrmax.training.stopping` with settings of its own. Policies
            are evaluated by the agent's own gamma and horizon; with a rule such as
            `Exact(gamma=0.9)`, by that gamma in the problem's own episodes, as those of all others.
        evaluate_every: the number of steps between two evaluations of the greedy policy.
        dense_checks: the number of evaluations before the steps between two of them double, and
            double again each time that the steps so far do; None for never.
        compiled: whether to use the compiled training loop, if there is one; the result is the
            same without it.
        on_event: a function that is called with each event of `qrmax.training.trainer`: see the
            guide.
        progress: by default a progress line is shown on a terminal and in a notebook, which also
            tells when kernels are compiled on first use. False turns it off; True writes a plain
            line to stderr every ten seconds if there is neither.
        log: a folder into which the learning curve is written during training, as CSV and for
            TensorBoard (extra `log`), or a file that ends in ".csv".
        evaluation_env: a second instance of an environment, for the rollouts of evaluations; it is
            not closed. By default one is made from the environment's `spec` or copied, and closed
            when training ends.
        settings: the hyperparameters of the agent (`qrmax list agents` shows them), among them the
            discount factor `gamma`. `r_max` is by default the greatest reward of a step of the
            problem; on an environment, that of its task. `horizon="auto"` is the mean length of
            the optimal policy's successful episodes plus 50 %, on tabular problems.

    An environment has no known optimum. At each evaluation the greedy policy is rolled out in a
    second instance of it, so that training is not disturbed; `stop` is "reaches" (a success rate of
    at least 95 % at three evaluations in a row; the default, if the task has success states) or
    "budget".

    A continuous problem needs an agent that perceives (`bucket-qrmax`, say). Policies are evaluated
    by sampled episodes and compared with the optimum of a fine grid; `stop` is "success" (the
    default), "reaches" or "budget".

    Policies of a task with reward shaping are evaluated on the unshaped one: see
    `RewardMachine.shaped`.
    """
    with compile_notice(progress):
        session = make_session(
            agent,
            problem,
            seed=seed,
            max_steps=max_steps,
            max_episodes=max_episodes,
            stop=stop,
            evaluate_every=evaluate_every,
            dense_checks=dense_checks,
            compiled=compiled,
            evaluation_env=evaluation_env,
            **settings,
        )
        return finish(session, on_event, progress, log)


def make_session(
    agent: AgentLike,
    problem: str | Problem | Any,
    *,
    seed: int = 0,
    max_steps: int | None = None,
    max_episodes: int | None = None,
    stop: str | StoppingRule | None = None,
    evaluate_every: int = 1000,
    dense_checks: int | None = None,
    compiled: bool = True,
    evaluator: Evaluator | None = None,
    own_evaluator: Evaluator | None = None,
    evaluation_env: Any = None,
    **settings: Any,
) -> Session:
    """The session that `train` trains; see there.

    Many runs on the same problem object, with the same gamma, are set up more quickly if they share
    an `evaluator`, and an `own_evaluator` if the stopping rule has a gamma of its own; that changes
    nothing else.
    """
    learner = agent_class(agent)
    settings = given_settings(agent) | settings
    if isinstance(problem, str):
        problem = make(problem)
    kind = domain_kind(problem)
    check_seed(seed)
    known = known_settings(learner, settings)
    config = make_config(learner, known)  # bad settings are found before an env is touched
    facts = Learner(learner, config.gamma)
    domain = kind.pose(problem, facts, stream(seed, "environment"))
    if evaluation_env is not None:
        evaluate_in(domain, facts, evaluation_env)
    if max_steps is None:
        max_steps = domain.budget if has_compiled_loop(learner) else MAX_PYTHON_STEPS
    training = TrainingConfig(
        seed=seed,
        max_steps=max_steps,
        max_episodes=max_episodes,
        stop=as_rule(domain.default_rule(domain.machine) if stop is None else stop),
        evaluate_every=evaluate_every,
        dense_checks=dense_checks,
        compiled=compiled,
    )
    domain.check_rule(training.stop)
    if known.keys() != settings.keys():  # the others are "auto"
        known["horizon"] = domain.auto_horizon(config.gamma)
    config = make_config(learner, _with_rewards(learner, known, domain))
    warn_of_settings(learner, domain, config)
    return Session(
        learner, config, domain, training, evaluator=evaluator, own_evaluator=own_evaluator
    )


def finish(
    session: Session,
    on_event: Callable[[Event], None] | None = None,
    progress: bool | None = None,
    log: str | os.PathLike[str] | None = None,
) -> Run:
    """Train to the end."""
    begun = session.progress.step
    events = logged(session, log)
    try:
        with follow_run(session, progress) as show:
            for event in events:
                show(event)
                if on_event is not None:
                    on_event(event)
    finally:
        session.evaluator.close()
    if session.progress.step > begun:
        warn_of_outcome(session)
    return Run(session)


class Run:
    """A finished training run: the agent, its policy and its learning curve.

    `reason` is the stopping rule that was met, or "budget" if training took all its steps. `steps`
    is the step at which the rule was first met, or all steps; `trained` is always all steps.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._recommended: tuple[int, Policy] | None = None  # and the step that it is of

    @property
    def agent(self) -> Agent:
        """The trained agent."""
        return self._session.agent

    @property
    def problem(self) -> Problem | ContinuousProblem | None:
        """The problem; None for an environment."""
        problem: Problem | ContinuousProblem | None = self._session.domain.problem
        return problem

    @property
    def environment(self) -> Mapping[str, Any] | None:
        """The description from which the environment was made, as plain data.

        None for a problem, and for an environment that was made in Python.
        """
        return self._session.domain.made_from

    @property
    def machine(self) -> RewardMachine:
        """The reward machine of the task."""
        return self._session.domain.machine

    @property
    def task_name(self) -> str:
        """The name of the problem, or of the environment."""
        return self._session.domain.name

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self._session.training.seed

    @property
    def steps(self) -> int:
        """The step at which the stopping rule was first met; all steps if it was not."""
        return self._session.steps

    @property
    def episodes(self) -> int:
        """The number of episodes that had begun at `steps`."""
        return self._session.episodes

    @property
    def trained(self) -> int:
        """The number of steps taken in all."""
        return self._session.progress.step

    @property
    def reason(self) -> str:
        """The name of the stopping rule that was met, or "budget"."""
        return self._session.reason or "budget"

    @property
    def seconds(self) -> float:
        """The training time in seconds, evaluations and compilation excluded."""
        return self._session.progress.seconds

    @property
    def curve(self) -> tuple[Point, ...]:
        """The learning curve.

        On a tabular problem each row is exact, on a continuous one sampled. On an environment it
        sums up rollouts of the greedy policy in a second instance, with 95 % confidence intervals;
        if none can be made, the training episodes that ended since the last row. There is a row for
        each of the first 128 evaluations, for fewer of the later ones, and for every evaluation
        that satisfied the stopping rule; of the rule "stays", for the first of those in a row.

        >>> import polars, qrmax
        >>> run = qrmax.train("qrmax", qrmax.make("office/map1/exp1"), seed=7)
        >>> polars.DataFrame(run.curve).columns[:6]
        ['step', 'start_value', 'gap', 'success', 'nominal_length', 'episodes']
        """
        return tuple(self._session.curve)

    @property
    def policy(self) -> IntArray:
        """The greedy policy at the end, `[s, q]`; that of stage 0 if it depends on the stage.

        It is `[bucket, q]` if states are buckets; a network has no such table.
        """
        return self._policy.table

    @property
    def recommendation(self) -> Any:
        """The policy that is evaluated.

        It is `policy`, except for agents that plan for episodes of `horizon` steps, whose policy
        depends on the stage, `[h, s, q]`, and for agents that perceive observations, whose policy
        is one over observations.
        """
        return self._policy.recommendation

    @property
    def _policy(self) -> Policy:
        known = self._recommended
        if known is None or known[0] != self.trained:  # training was resumed since
            known = self._recommended = self.trained, as_policy(checked_policy(self.agent))
        return known[1]

    @property
    def evaluation(self) -> Evaluation | None:
        """The evaluation of the recommended policy.

        It uses the agent's own gamma, episodes of its horizon if it has one, and the unshaped task.
        If the stopping rule has a gamma, it uses that one and the problem's own episodes, in which
        a policy with stages restarts after its last one. It is exact on a tabular problem. On a
        continuous problem it is the mean of 10,000 sampled episodes, always the same ones; on an
        environment, of 100 rollouts in a second instance, or None if none can be made.
        """
        return self._session.evaluator.judge(self.recommendation, self.seed)

    @property
    def final_point(self) -> Point | None:
        """The final evaluation on an environment, with confidence intervals.

        It is by 100 rollouts in a second instance of the environment; if there is none, it is the
        last row of `curve`.
        """
        session = self._session
        found = session.evaluator.final_point(self.trained, self.recommendation, self.seed)
        return found or (self.curve[-1] if self.curve else None)

    @property
    def stationary_evaluation(self) -> Evaluation | None:
        """The evaluation of `policy`, that of stage 0, if the recommended policy has stages."""
        return self._session.evaluator.stationary(self.recommendation)

    @property
    def gap(self) -> float | None:
        """The relative gap between the recommended policy and the optimum.

        None for an environment. The optimum is that of the objective of `evaluation`.
        """
        best = self.best
        found = None if best is None else self.evaluation
        return None if best is None or found is None else relative_gap(found.start_value, best[0])

    @property
    def own_gap(self) -> float | None:
        """The gap by the agent's own gamma and horizon, if `gap` has another objective.

        None if it has not, and if policies are not evaluated exactly.
        """
        own = self._session.own_evaluator
        return None if own is None else own.gap(self.recommendation)

    @property
    def own_steps(self) -> int | None:
        """The step at which the stopping rule was first met by the agent's own objective.

        None if it was not, or if that is not another objective than that of `gap`.
        """
        session = self._session
        met = session.own_evaluator is not None and session.meets_own_objective
        return session.progress.own_first if met else None

    @property
    def best(self) -> Best | None:
        """The optimal policy in numbers, by the same objective; None for an environment."""
        return self._session.evaluator.optimum

    def diagnosis(self, samples: int = 100_000) -> Diagnosis:
        """Diagnose the buckets on positions all over the plane: their size, and which mix labels.

        It is for agents with buckets on continuous problems. For an environment, pass observations
        to `qrmax.analysis.bucket_diagnosis.diagnose` with `run.agent.buckets`.

        Args:
            samples: the number of positions sampled.
        """
        diagnosis: Diagnosis = self._session.domain.diagnose(
            self.agent, samples, stream(self.seed, "diagnosis")
        )
        return diagnosis

    def act(self, observation: Any, info: Any = None, *, stage: int = 0) -> int:
        """The greedy action for an observation of the environment trained on.

        Args:
            observation: the observation, as the environment returned it.
            info: its info; needed if labels belong to whole transitions or to buckets.
            stage: the number of steps since the reset, for a policy that depends on the stage.
        """
        return self._session.domain.act(self._policy, observation, info, stage)

    def watch(self, env: Any = None, *, seed: int | None = None) -> Iterator[RolloutStep]:
        """Roll out the recommended policy for one episode, yielding each step from the reset on.

        >>> import gymnasium, qrmax
        >>> run = qrmax.train("qrmax", qrmax.make("office/map1/exp1"), seed=7)
        >>> env = gymnasium.make("qrmax/Office-map1-exp1-v0", slip=0, render_mode="ansi")
        >>> pictures = [env.render() for step in run.watch(env, seed=7)]
        >>> len(pictures)
        16

        The environment is stepped lazily, so `env.render()` shows its current state. A step has the
        `action` that led to it (None for the reset), `observation`, `reward` and `info`.

        Args:
            env: the environment; by default the one trained on. A run on a problem needs one.
            seed: the seed of the reset; None to continue the environment's random stream.
        """
        return self._episode(self._session.domain.env_to_watch() if env is None else env, seed)

    def _episode(self, env: Any, seed: int | None) -> Iterator[RolloutStep]:
        policy = self._policy
        return episode(env, self._session.domain.actor(env, policy), seed, policy.stages)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run to the file `path`, from which `qrmax.load` restores it."""
        from qrmax.training.checkpoint import save

        save(self._session, path)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the recommended policy, its task and its labels to `path`, a small JSON file.

        `qrmax/policy_reader.py`, a file of plain Python that can be copied anywhere, acts by it
        without qrmax or NumPy; see the guide. Networks are refused.
        """
        from qrmax.training.policy_export import policy_file

        write_whole(path, policy_file(self._session, self._policy))

    def evaluate(
        self,
        episodes: int = 1000,
        *,
        env: Any = None,
        seed: int | None = None,
        max_steps: int = LONGEST_EPISODE,
        gamma: float | None = None,
    ) -> Rollouts:
        """Roll out the recommended policy: success rate, returns and length of episodes.

        >>> import qrmax
        >>> run = qrmax.train("qrmax", qrmax.make("office/map1/exp1"), seed=7)
        >>> found = run.evaluate(episodes=500)
        >>> found.success.low < run.evaluation.success < found.success.high
        True

        All have 95 % confidence intervals. A run on a problem has its `evaluation` as well.

        Args:
            episodes: the number of episodes.
            env: the environment; by default `evaluation_env` of `train`, or a second instance of
                the one trained on, made from its `spec` or copied, so that training is not
                disturbed.
            seed: the seed of the rollouts; by default that of the run.
            max_steps: the number of steps after which an episode is truncated, with a warning.
            gamma: the discount factor; by default that of the agent.
        """
        from qrmax.training.evaluation import roll_out_run

        seed = self.seed if seed is None else seed
        return roll_out_run(self._session, self._episode, episodes, env, seed, max_steps, gamma)

    def is_trained_on(self, thing: Any) -> bool:
        """Whether the run was trained on `thing`, this very problem or environment."""
        return self._session.domain.is_made_of(thing)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Plot the learning curve as a figure of Matplotlib, which a notebook shows.

        With a `path` it is written there as well, as PNG, SVG or PDF by its suffix.
        """
        from qrmax.training.curve_picture import draw_run

        return draw_run(self, path)

    def draw(self, show: str = "both", states: Sequence[str] | None = None) -> Picture:
        """Draw what the agent has learned, on the map of its problem.

        >>> import qrmax
        >>> run = qrmax.train("qrmax", "office/map1/exp1", seed=7)
        >>> run.draw("known").title
        'qrmax on office/map1/exp1: known state-action pairs'

        Args:
            show: "both" (its values as colours and its policy as arrows), "values", "policy",
                "visits", "known" (state-action pairs), or "buckets".
            states: the machine states shown; by default all that are not terminal.
        """
        picture: Picture = drawn("run_picture:draw_learned", self, show, states)
        return picture

    def _repr_svg_(self) -> str | None:
        return None if self.problem is None else self.draw().svg()

    def resume(
        self,
        max_steps: int | None = None,
        *,
        max_episodes: int | None = None,
        on_event: Callable[[Event], None] | None = None,
        progress: bool | None = None,
        log: str | os.PathLike[str] | None = None,
    ) -> Run:
        """Resume training; the result is the same as without a break.

        This run itself is continued. If its stopping rule was met, there is nothing more to do. An
        environment starts a new episode.

        Args:
            max_steps: the budget in steps, those already taken included; by default as before.
            max_episodes: the budget in episodes, those already begun included; by default as
                before.
            on_event: as in `train`.
            progress: as in `train`.
            log: as in `train`; the log that training wrote is appended to.
        """
        session = self._session
        session.domain.prepare_to_resume()
        session.extend(max_steps, max_episodes)
        return finish(session, on_event, progress, log)

    def __repr__(self) -> str:
        return (
            f"Run({self.agent.name!r} on {self.task_name!r}, "
            f"seed {self.seed}: {self.steps} steps, {self.reason})"
        )


def _with_rewards(kind: type[Agent], settings: dict[str, Any], domain: Domain) -> dict[str, Any]:
    """The settings, with defaults from the range of rewards for those that depend on it."""
    lowest, highest = domain.reward_range()
    check_rewards(domain.name, lowest, highest)
    found = {"r_min": min(lowest, 0.0), "r_max": max(highest, 0.0)}
    return {key: found[key] for key in kind.Config.from_rewards} | settings
