"""Diagnosis of runs that end without success, and advice on what to try instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qrmax.agents.buckets.in_buckets import InBuckets
from qrmax.agents.model_based import ModelBased
from qrmax.training.domains.domain import Domain
from qrmax.training.trainer import Session

ALONE = 0.5  # buckets per step, above which hardly any bucket is visited twice
MOST_CELLS = 10_000  # of a grid that is suggested
CELLS = 10  # a side of it


def failure(session: Session) -> str:
    """A message if a session has spent its budget without success; else empty."""
    domain = session.domain
    if session.reason or not session.is_over or not domain.machine.success:
        return ""
    if session.progress.step < domain.short_run:
        return ""
    policy = session.agent.recommendation()
    return session.evaluator.failure(policy, session.training.seed, session.curve)


def remedies(session: Session) -> list[str]:
    """Advice after a run without success, most promising first."""
    advice = [*session.domain.remedies(session.progress.step)]
    if isinstance(session.agent, InBuckets):
        advice += _of_buckets(session.agent, session)
    advice += _of_exploration(session)
    told = None if session.agent.knows_machine else session.agent.told_the_machine
    if told is not None:
        advice.append(f"the agent: {told!r} is given the reward machine and need not learn it")
    more = 10 * session.training.max_steps
    advice.append(f"more steps: max_steps={more} rather than {session.training.max_steps}")
    return advice


def alone(agent: InBuckets, steps: int) -> str:
    """Advice if hardly any bucket is visited twice; else empty."""
    if len(agent.buckets) <= ALONE * steps:
        return ""
    return (
        f"{len(agent.buckets):,} buckets were visited in {steps:,} steps: nearly every "
        "observation has a bucket of its own, so nothing generalises; give a coarser "
        "grid, or fewer functions and bits"
    )


def _of_buckets(agent: InBuckets, session: Session) -> Iterator[str]:
    config: Any = agent.config
    if too_many := alone(agent, session.progress.step):
        yield f"the buckets: {too_many}"
    elif config.grid is None:
        cells = _cells(agent, session.domain)
        yield (
            f"the buckets: grid={cells}, a uniform grid of {cells} cells a side, and not SimHash, "
            f"which put all observations into {len(agent.buckets):,} buckets"
        )
    else:
        yield (
            f"the buckets: a finer grid, grid={2 * config.grid}: cells should be smaller than "
            "a step"
        )


def _cells(agent: InBuckets, domain: Domain) -> int:
    """Cells per side of a grid to try: those that suit the domain, or not too many in all."""
    dimension = agent.buckets.observations.dimension
    few = max(2, min(CELLS, int(MOST_CELLS ** (1 / dimension))))
    return domain.grid_side(dimension) or few


def _of_exploration(session: Session) -> Iterator[str]:
    agent, config = session.agent, session.agent.config
    known, t_env = agent.known(), agent.config.t_env if isinstance(agent, ModelBased) else 1
    if t_env > 1 and known is not None and known.pairs < known.of:
        fewer = max(1, t_env // 4)
        yield (
            f"fewer samples: t_env={fewer} rather than {t_env} ({known.pairs:,} of {known.of:,} "
            "pairs are known so far); 1 is enough if transitions are deterministic"
        )
    if agent.epsilon_greedy:
        planner = "bucket-qrmax" if agent.perceives else "qrmax"
        yield (
            "exploration: epsilon-greedy actions rarely find a reward at the end of a task; use "
            "reward shaping (RewardMachine.shaped), or an agent with directed exploration, such as "
            f"{planner!r}"
        )
    if (horizon := config.episode_horizon) is not None:
        yield f"the horizon: episodes end after horizon={horizon} steps; can they succeed by then?"
