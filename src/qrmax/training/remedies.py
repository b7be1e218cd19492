"""Runs that end without success: how to tell one, and what to try instead."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from qrmax.agents.buckets.in_buckets import InBuckets
from qrmax.agents.model_based import ModelBased
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.seeding import stream
from qrmax.training.environment import EnvPlayer
from qrmax.training.plane_referee import PlaneReferee
from qrmax.training.trainer import Session

A_TRY, A_TRY_IN_PYTHON = 100_000, 5_000  # steps: a shorter run is no surprise
NEXT_TO_NOTHING = 1e-3  # of the optimal success: what slips alone may bring
ALONE = 0.5  # buckets for each step, beyond which hardly any is met twice
MOST_CELLS = 10_000  # of a grid that is suggested
CELLS = 10  # a side of it
MOST_A_SIDE = 60  # where a grid is to fit a map


def failure(session: Session) -> str:
    """That a session has spent its budget without success, in words; empty where it has not."""
    task, referee = session.task, session.referee
    if session.progress.reason or not session.is_over or not task.machine.success:
        return ""
    if session.progress.step < (A_TRY_IN_PYTHON if isinstance(task, EnvPlayer) else A_TRY):
        return ""
    if isinstance(task, EnvPlayer):
        training = [point.success for point in session.curve]
        if any([*training, *(episode.success for episode in task.finished)]):
            return ""
        return f"not one of the {task.episodes:,} episodes of training succeeded"
    assert referee is not None  # a problem has one
    policy = session.agent.recommendation()
    if isinstance(referee, PlaneReferee):
        found = referee.evaluate(policy, stream(session.training.seed, "judgement"))
        if found.success == 0.0 and not referee.is_solved:  # which takes long
            return "its policy does not succeed"
    else:
        found = referee.evaluate(policy)
    if found.success >= NEXT_TO_NOTHING or found.success >= NEXT_TO_NOTHING * referee.best_success:
        return ""
    best = 100 * referee.best_success
    return f"its policy does not succeed, and the optimal one does in {best:.1f} % of episodes"


def remedies(session: Session) -> list[str]:
    """What to try after a run without success, what is most likely to help first."""
    advice: list[str] = []
    if isinstance(session.task, EnvPlayer):
        advice += _of_environment(session.task, session.progress.step)
    if isinstance(session.agent, InBuckets):
        advice += _of_buckets(session.agent, session)
    advice += _of_exploration(session)
    told = None if session.agent.knows_machine else session.agent.told_the_machine
    if told is not None:
        advice.append(f"the agent: {told!r} is told the reward machine and need not learn it")
    more = 10 * session.training.max_steps
    advice.append(f"more steps: max_steps={more} rather than {session.training.max_steps}")
    return advice


def never_true(played: EnvPlayer) -> str:
    """The propositions of the task that no label ever had; empty where there are none."""
    missing = sorted(played.machine.propositions - played.seen)
    if not missing:
        return ""
    were = "was" if len(missing) == 1 else "were"
    return (
        f"{', '.join(map(repr, missing))}, which the task names, {were} never true in training; "
        f"true at some time: {', '.join(sorted(played.seen)) or 'nothing'}"
    )


def alone(agent: InBuckets, steps: int) -> str:
    """What to do about buckets of which hardly any is met twice; empty where that is not so."""
    if len(agent.buckets) <= ALONE * steps:
        return ""
    return (
        f"{len(agent.buckets):,} buckets have turned up in {steps:,} steps: nearly every "
        "observation is alone in its own, and nothing can be learned of it; give a coarser "
        "grid, or fewer functions and bits"
    )


def _of_environment(played: EnvPlayer, steps: int) -> Iterator[str]:
    machine = played.machine
    if missing := never_true(played):
        yield f"the labelling function: {missing}; does it return these very names, and when?"
    reached = ", ".join(repr(machine.states[q]) for q in sorted(played.reached))
    length = steps / max(played.episodes, 1)
    yield (
        f"the episodes: {played.episodes:,} of {length:,.0f} steps on average reached the task "
        f"states {reached}; if its limit cuts them off before the rest, raise it"
    )


def _of_buckets(agent: InBuckets, session: Session) -> Iterator[str]:
    config: Any = agent.config
    if too_many := alone(agent, session.progress.step):
        yield f"the buckets: {too_many}"
    elif config.grid is None:
        cells = _cells(agent, session.task)
        yield (
            f"the buckets: grid={cells}, a uniform grid of {cells} cells a side, and not SimHash, "
            f"which put all observations into {len(agent.buckets):,} buckets"
        )
    else:
        yield (
            f"the buckets: a finer grid, grid={2 * config.grid}: cells should be small beside what "
            "a step moves"
        )


def _cells(agent: InBuckets, task: Any) -> int:
    """A side of a grid to try: as the map has it where there is one, or not too many in all."""
    if isinstance(task, ContinuousProblem):
        rows, columns = len(task.plane.wall) // task.plane.columns, task.plane.columns
        together = math.lcm(rows, columns)
        return together if together <= MOST_A_SIDE else max(rows, columns)
    dimension = agent.buckets.observations.dimension
    return max(2, min(CELLS, int(MOST_CELLS ** (1 / dimension))))


def _of_exploration(session: Session) -> Iterator[str]:
    agent, config = session.agent, session.agent.config
    known, t_env = agent.known(), agent.config.t_env if isinstance(agent, ModelBased) else 1
    if t_env > 1 and known is not None and known.pairs < known.of:
        fewer = max(1, t_env // 4)
        yield (
            f"fewer samples: t_env={fewer} rather than {t_env} (known are {known.pairs:,} of "
            f"{known.of:,} pairs so far); 1 is enough where nothing is random"
        )
    if agent.epsilon_greedy:
        planner = "bucket-qrmax" if agent.perceives else "qrmax"
        yield (
            "exploration: epsilon-greedy actions seldom come upon a reward at the end of a task; "
            "shape it (RewardMachine.shaped), or use an agent that explores on purpose, such as "
            f"{planner!r}"
        )
    if (horizon := config.episode_horizon) is not None:
        yield f"the horizon: episodes end after horizon={horizon} steps; can they succeed by then?"
