"""`qrmax.evaluate`: policy evaluation on a problem or an environment."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from qrmax.agents.registry import agent_class
from qrmax.errors import ParameterError, shown
from qrmax.planning.policy_evaluation import Evaluation
from qrmax.problems.problem import Problem
from qrmax.seeding import stream
from qrmax.training.domains.domain import Actor, Domain, Learner
from qrmax.training.domains.domain_kinds import domain_kind, domain_of
from qrmax.training.domains.environment_domain import EnvironmentDomain
from qrmax.training.environment import task_of
from qrmax.training.matching_env import check_matching
from qrmax.training.policies.policy_kinds import as_policy
from qrmax.training.rollouts import Play, Rollouts, roll_out
from qrmax.training.run import LONGEST_EPISODE, Run
from qrmax.training.trainer import Session
from qrmax.training.watch import episode

GAMMA = 0.9  # the agents' default


@overload
def evaluate(
    problem: Problem,
    policy: ArrayLike | Run,
    gamma: float | None = None,
    max_episode_steps: int | Literal["problem"] | None = "problem",
) -> Evaluation: ...


@overload
def evaluate(
    problem: Any,
    policy: Any,
    gamma: float | None = None,
    max_episode_steps: int | Literal["problem"] | None = "problem",
    *,
    episodes: int = 1000,
    seed: int = 0,
) -> Rollouts: ...


def evaluate(
    problem: Any,
    policy: Any,
    gamma: float | None = None,
    max_episode_steps: int | Literal["problem"] | None = "problem",
    *,
    episodes: int = 1000,
    seed: int = 0,
) -> Evaluation | Rollouts:
    """Evaluate a policy: exactly on a tabular problem, by rollouts on anything else.

    >>> import gymnasium, qrmax
    >>> problem = qrmax.make("office/map1/exp1")
    >>> round(qrmax.evaluate(problem, qrmax.solve(problem).policy).success, 4)
    0.6687
    >>> env = gymnasium.make("CliffWalking-v1")
    >>> env = qrmax.TaskWrapper(env, "F goal", labels=lambda s, _: {"goal"} if s == 47 else ())
    >>> up, right, down = 0, 1, 2
    >>> def along_the_edge(observation, info):
    ...     s = observation["state"]
    ...     return up if s == 36 else down if s == 35 else right
    >>> found = qrmax.evaluate(env, along_the_edge, episodes=10)
    >>> found.success.mean, found.length.mean
    (1.0, 13.0)

    Args:
        problem: a `Problem`, a `ContinuousProblem`, or a Gymnasium environment with a task
            (`qrmax.TaskWrapper`, or one of ours). Rollouts are in the environment itself, from its
            next reset on; if it is the one that a run was trained on, in a second instance.
        policy: a `Run`; an array `[s, q]` of action numbers, or `[h, s, q]` with stages; for
            rollouts also a function of `(observation, info)` that returns an action, or an object
            with a method `predict(observation)`, such as a model of Stable-Baselines3.
        gamma: the discount factor; by default that of the run, or 0.9. It may be 1 if the length
            of episodes is limited.
        max_episode_steps: a limit on the length of an episode: by default that of the problem, and
            10,000 for rollouts, whose longer episodes are truncated, with a warning. None for no
            limit, on a tabular problem only. A truncated episode is no success.
        episodes: the number of rollouts.
        seed: the seed of the rollouts.

    Returns:
        An `Evaluation` of a tabular problem; `Rollouts` with 95 % confidence intervals otherwise.
    """
    if gamma is None:
        gamma = policy.agent.config.gamma if isinstance(policy, Run) else GAMMA
    recommended = policy.recommendation if isinstance(policy, Run) else policy
    exact = domain_kind(problem).evaluate_exactly(problem, recommended, gamma, max_episode_steps)
    if exact is not None:
        return exact
    limit = max_episode_steps if isinstance(max_episode_steps, int) else LONGEST_EPISODE
    if isinstance(policy, Run):
        env = None if policy.is_trained_on(problem) else _environment(problem)
        return policy.evaluate(episodes, env=env, seed=seed, max_steps=limit, gamma=gamma)
    env = _environment(problem)
    return roll_out(_playing(problem, env, policy), env, gamma, episodes, seed, limit)


def roll_out_run(
    session: Session,
    play: Play,
    episodes: int,
    env: Any,
    seed: int,
    max_steps: int,
    gamma: float | None = None,
) -> Rollouts:
    """Roll out the policy of a run in an environment, or in a second instance of its own."""
    agent, domain = session.agent, session.domain
    if env is not None:
        check_matching(domain, Learner(type(agent), agent.config.gamma), env)
    elif domain.evaluation_env is not None:
        env = domain.evaluation_env
    played = domain.second_instance() if env is None else env
    gamma = agent.config.gamma if gamma is None else gamma
    try:
        return roll_out(play, played, gamma, episodes, seed, max_steps)
    finally:
        if env is None:
            played.close()


def _environment(thing: Any) -> Any:
    """An environment itself; a problem as one."""
    env = thing if EnvironmentDomain.takes(thing) else _posed(thing).second_instance()
    task_of(env)  # an error without a task: success would be undefined
    return env


def _playing(thing: Any, env: Any, policy: Any) -> Play:
    """A function that rolls out the policy in an environment, or in that of a problem."""
    if function := _function(policy):
        act = _within(function, env)
        return lambda env, seed: episode(env, act, seed, None)
    if isinstance(policy, str):
        raise ParameterError(
            f"policy is {shown(policy)}; needed: a run, an array [s, q], a function of an "
            "observation and its info, or an object with a method predict"
        )
    domain = _posed(thing)
    acting = as_policy(policy if hasattr(policy, "action") else np.asarray(policy))
    needed = (domain.sizes.states, domain.sizes.task_states)
    if domain.observations is None and acting.table.shape != needed:
        raise ParameterError(
            f"policy has the shape {np.shape(policy)}; needed: an action's number for each state "
            f"and task state, of shape {needed}, with stages before them if any"
        )
    actor = domain.actor(env, acting)
    return lambda env, seed: episode(env, actor, seed, acting.stages)


def _posed(thing: Any) -> Domain:
    """A domain for learners of numbered states, unless it has real-valued observations."""
    return domain_of(thing, Learner(agent_class("q-learning"), GAMMA), stream(0, "unused"))


def _function(policy: Any) -> Actor | None:
    """A policy that is a function, or predicts actions; None if it is neither."""
    predict: Callable[..., Any] | None = getattr(policy, "predict", None)
    if predict is not None:
        keyword = "deterministic" in inspect.signature(predict).parameters
        options = {"deterministic": True} if keyword else {}
        return lambda seen, info, stage: _action(predict(seen, **options))  # noqa: ARG005
    if callable(policy):
        return lambda seen, info, stage: _action(policy(seen, info))  # noqa: ARG005
    return None


def _within(function: Actor, env: Any) -> Actor:
    """The same function, whose actions have to be those of the environment."""

    def act(seen: Any, info: Any, stage: int) -> int:
        action = function(seen, info, stage)
        if not env.action_space.contains(action):
            raise ParameterError(f"policy gave {action}; allowed: actions of {env.action_space}")
        return action

    return act


def _action(answer: Any) -> int:
    """The number of an action; `predict` also returns the state of a recurrent network."""
    number = np.asarray(answer[0] if isinstance(answer, tuple) else answer)
    if number.size != 1 or number.dtype.kind not in "iu":
        raise ParameterError(f"policy gave {shown(answer)}; needed: the number of an action")
    return int(number.reshape(()))
