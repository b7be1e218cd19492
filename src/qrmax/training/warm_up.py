"""Compiling ahead, so that what follows is quick and its time is that of learning."""

from __future__ import annotations

from typing import Any

from qrmax.agents.base import Tabular
from qrmax.agents.registry import agent_class, default_settings
from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine
from qrmax.planning.compilation import is_compiled
from qrmax.planning.compile_notice import compile_notice
from qrmax.planning.finite_horizon import backward_induction
from qrmax.planning.kernels import settle, solve_layer
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.problem import Problem
from qrmax.training.run import Run, train
from qrmax.training.stopping import Exact
from qrmax.worlds.catalog import make


def needs_compiling(agent: str) -> bool:
    """Whether the first run of this agent on a problem will compile."""
    kind = agent_class(agent)
    kernels: list[Any] = [backward_induction if _has_horizon(agent) else solve_layer]
    if _plans(agent):
        kernels.append(settle)
    if issubclass(kind, Tabular) and not is_compiled(kind.loop, with_last=kind.perceives):
        return True
    return not all(map(is_compiled, kernels))


@compile_notice(None)
def warm_up(agent: str, *, published: bool = False) -> None:
    """Compile what a run of this agent needs, or load it from the disk cache."""
    settings: dict[str, Any] = {"t_env": 2, "published": published} if _plans(agent) else {}
    if agent_class(agent).perceives:
        line = make("continuous/line/ab", max_episode_steps=3)
        _train(agent, line, stop="budget", **settings)
        return
    # two outcomes and two machine states, so that nothing is special about the arrays' shapes
    mdp = TabularMDP([[[1, 0]], [[1, 0]]], [[[0.5, 0.5]], [[0.5, 0.5]]])
    task = RewardMachine([Edge("go", "goal", "there", 1.0)], initial="go", success=["there"])
    problem = Problem(mdp, task, [(), ("goal",)], [0, 1], max_episode_steps=3)
    if _has_horizon(agent):
        settings = {"horizon": 3}
    run = _train(agent, problem, stop=Exact(in_a_row=9), **settings)
    _ = run.stationary_evaluation  # where policies have stages, this is compiled for as well


def _train(agent: str, problem: Problem | ContinuousProblem, **options: Any) -> Run:
    return train(agent, problem, max_steps=30, evaluate_every=10, progress=False, **options)


def _has_horizon(agent: str) -> bool:
    return "horizon" in default_settings(agent)


def _plans(agent: str) -> bool:
    return "t_env" in default_settings(agent)
