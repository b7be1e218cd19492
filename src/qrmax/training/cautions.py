"""Warnings about misconfigured training runs, and about runs that ended without success."""

from __future__ import annotations

from qrmax.agents.base import Agent, AgentConfig
from qrmax.agents.buckets.in_buckets import InBuckets
from qrmax.errors import warn
from qrmax.machines.reward_machine import RewardMachine
from qrmax.training.domains.domain import Domain
from qrmax.training.remedies import alone, failure, remedies
from qrmax.training.trainer import Session

STEPS_TO_SEE_ALL = 1000  # a proposition that is never true in these may be misspelt


def warn_of_settings(agent: type[Agent], domain: Domain, config: AgentConfig) -> None:
    """Warn of settings with which the agent will not learn the task."""
    _warn_of_chance(agent, domain.machine, config)
    _warn_of_another_discount(domain.machine, config)
    domain.warn_of_settings(config)


def _warn_of_chance(agent: type[Agent], machine: RewardMachine, config: AgentConfig) -> None:
    if not agent.knows_machine and machine.is_stochastic and config.trusts_one_sample:
        warn(
            f"task {machine.name!r} is a stochastic reward machine, and t_task is 1: the first "
            "outcome is taken for the only one; give t_task=20, for example"
        )


def _warn_of_another_discount(machine: RewardMachine, config: AgentConfig) -> None:
    shaping, gamma = machine.shaping, config.gamma
    if shaping is not None and shaping.gamma != gamma:
        warn(
            f"task {machine.name!r} was shaped with gamma {shaping.gamma:g}, and the agent plans "
            f"with {gamma:g}: the optimal policy may change; give both the same gamma"
        )


def oddity(session: Session) -> str:
    """Something suspicious that a session of enough steps has shown; else empty."""
    return session.domain.oddity() if session.progress.step >= STEPS_TO_SEE_ALL else ""


def warn_of_outcome(session: Session) -> None:
    """Warn of problems that show only once a session has ended."""
    steps, domain = session.progress.step, session.domain
    if steps < STEPS_TO_SEE_ALL:
        return
    if failed := failure(session):
        advice = "".join(f"\n  - {each}" for each in remedies(session))
        warn(
            f"{session.agent.name!r} has used its {steps:,} steps on {domain.name!r}: {failed}. "
            f"To try:{advice}{session.evaluator.caveat}"
        )
        return
    if odd := oddity(session):
        warn(odd)  # a safeguard of the task would be void
    if isinstance(session.agent, InBuckets) and (too_many := alone(session.agent, steps)):
        warn(too_many)
