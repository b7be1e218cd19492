"""Environments that match the one trained on, so that its policies can act in them."""

from __future__ import annotations

from typing import Any

from qrmax.errors import ParameterError, shown
from qrmax.seeding import stream
from qrmax.training.domains.domain import Domain, Learner
from qrmax.training.domains.environment_domain import EnvironmentDomain
from qrmax.training.environment import no_environment


def check_matching(domain: Domain, learner: Learner, env: Any, name: str = "env") -> None:
    """Refuse an environment whose states, actions or task differ from those of the policy.

    Args:
        domain: the domain trained on.
        learner: the agent whose policy is to act.
        env: the environment.
        name: the argument that it was given as, for messages.
    """
    if not EnvironmentDomain.takes(env):
        raise no_environment(env)
    other = EnvironmentDomain.pose(env, learner, stream(0, "unused"))
    needed: dict[str, tuple[Any, Any]] = {
        "actions": (other.sizes.actions, domain.sizes.actions),
        "states of the task": (list(other.machine.states), list(domain.machine.states)),
    }
    if (states := domain.comparable_states()) is not None:
        needed = {"states of the world": (other.sizes.states, states), **needed}
    for what, (found, wanted) in needed.items():
        if found != wanted:
            raise ParameterError(
                f"{name} has {shown(found)} as {what}, and the run was trained with "
                f"{shown(wanted)}: give one like that of training"
            )


def evaluate_in(domain: Domain, learner: Learner, env: Any) -> None:
    """Let policies be evaluated in this environment, which its owner closes.

    Args:
        domain: the domain trained on.
        learner: the agent whose policies are evaluated.
        env: the environment, of which nobody else takes steps.
    """
    if domain.problem is not None:
        raise ParameterError(
            f"evaluation_env is given, and {domain.name!r} is a problem: its policies are "
            "evaluated without an environment; leave it out"
        )
    check_matching(domain, learner, env, "evaluation_env")
    if domain.is_made_of(env) or domain.is_made_of(getattr(env, "unwrapped", env)):
        raise ParameterError(
            "evaluation_env is the environment of training; needed: a second instance, so that "
            "rollouts do not disturb training"
        )
    domain.evaluation_env = env
