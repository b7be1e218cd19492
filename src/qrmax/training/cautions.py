"""Warnings about misconfigured training runs, and about runs that came to nothing."""

from __future__ import annotations

from qrmax.agents.base import Agent, AgentConfig
from qrmax.agents.buckets.in_buckets import InBuckets
from qrmax.errors import warn
from qrmax.machines.reward_machine import RewardMachine
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.problem import Problem
from qrmax.training.environment import EnvPlayer
from qrmax.training.remedies import alone, failure, never_true, remedies
from qrmax.training.trainer import Session

STEPS_TO_SEE_ALL = 1000  # what is never true in so many may be misspelt


def warn_of_settings(
    agent: type[Agent], task: Problem | ContinuousProblem | EnvPlayer, config: AgentConfig
) -> None:
    """Warn of settings with which the agent will not learn what is wanted."""
    _warn_of_chance(agent, task.machine, config)
    _warn_of_another_discount(task.machine, config)
    if isinstance(task, EnvPlayer):
        return  # of an environment, more is not known
    lowest, highest = task.reward_range()
    _warn_of_pessimism(task, config, highest)
    _warn_of_a_long_horizon(task, config)
    if lowest == highest == 0.0:
        warn(f"{task.name!r} never pays anything: any policy is as good as any other")


def _warn_of_chance(agent: type[Agent], machine: RewardMachine, config: AgentConfig) -> None:
    if not agent.knows_machine and machine.is_random and config.trusts_one_sample:
        warn(
            f"task {machine.name!r} has chance in it, and t_task is 1: what happens first is taken "
            "for what always happens; give t_task=20, say"
        )


def _warn_of_another_discount(machine: RewardMachine, config: AgentConfig) -> None:
    shaping, gamma = machine.shaping, config.gamma
    if shaping is not None and shaping.gamma != gamma:
        warn(
            f"task {machine.name!r} was shaped with gamma {shaping.gamma:g}, and the agent plans "
            f"with {gamma:g}: what is best may no longer be the best; give both the same gamma"
        )


def _warn_of_a_long_horizon(problem: Problem | ContinuousProblem, config: AgentConfig) -> None:
    horizon, limit = config.episode_horizon, problem.max_episode_steps
    if limit is not None and horizon is not None and horizon > limit:
        warn(
            f"horizon is {horizon}, but episodes of {problem.name!r} end after {limit} steps: it "
            f"plans for steps that never come; give horizon={limit}"
        )


def _warn_of_pessimism(
    problem: Problem | ContinuousProblem, config: AgentConfig, highest: float
) -> None:
    r_max = config.reward_bounds.highest
    if r_max is not None and r_max < highest:
        warn(
            f"r_max is {r_max:g}, but a step of {problem.name!r} can pay {highest:g}: what is not "
            "known looks worse than it may be, and the optimum may never be found"
        )


def warn_of_outcome(session: Session) -> None:
    """Warn of what shows only once a session has ended."""
    steps, task = session.progress.step, session.task
    if steps < STEPS_TO_SEE_ALL:
        return
    if failed := failure(session):
        advice = "".join(f"\n  - {each}" for each in remedies(session))
        warn(
            f"{session.agent.name!r} has spent its {steps:,} steps on {task.name!r}: {failed}. "
            f"To try:{advice}{_whose_success(task)}"
        )
        return
    if isinstance(task, EnvPlayer) and (missing := never_true(task)):
        warn(missing)  # misspelt, in the task or in the labels; a safeguard would be void
    if isinstance(session.agent, InBuckets) and (too_many := alone(session.agent, steps)):
        warn(too_many)


def _whose_success(task: Problem | ContinuousProblem | EnvPlayer) -> str:
    if not isinstance(task, EnvPlayer):
        return ""
    return (
        "\nSuccess is that of the episodes of training, in which the agent explores; "
        "run.watch() plays the greedy policy."
    )
