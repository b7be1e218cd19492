"""Compilation ahead of training, so that timings exclude it."""

from __future__ import annotations

import warnings
from typing import Any

from qrmax.agents.base import Tabular
from qrmax.agents.compiled import has_compiled_loop
from qrmax.agents.registry import AgentLike, agent_class
from qrmax.errors import QRMaxWarning
from qrmax.machines.edges import Edge
from qrmax.machines.reward_machine import RewardMachine
from qrmax.planning.compilation import is_compiled
from qrmax.planning.compile_notice import compile_notice
from qrmax.planning.finite_horizon import backward_induction
from qrmax.planning.kernels import solve_layer
from qrmax.problems.continuous_problem import ContinuousProblem
from qrmax.problems.mdp import TabularMDP
from qrmax.problems.problem import Problem
from qrmax.training.run import Run, train
from qrmax.training.stopping import Exact
from qrmax.worlds.catalog import make


def needs_compiling(agent: AgentLike) -> bool:
    """Whether the first run of this agent on a problem will compile."""
    kind = agent_class(agent)
    judging = backward_induction if kind.has_horizon else solve_layer
    kernels = [is_compiled(kernel) for kernel in (judging, *kind.kernels)]
    if issubclass(kind, Tabular) and has_compiled_loop(kind):
        kernels.append(is_compiled(kind.loop, with_last=kind.perceives))
    return not all(kernels)


@compile_notice(None)
def warm_up(agent: AgentLike) -> None:
    """Compile the kernels that a run of this agent needs, or load them from numba's cache."""
    settings = agent_class(agent).quick_settings
    if agent_class(agent).perceives:
        line = make("continuous/line/ab", max_episode_steps=3)
        _train(agent, line, stop="budget", **settings)
        return
    # two outcomes and two machine states, so that the arrays' shapes are generic
    halves = [[[0.5, 0.5]], [[0.5, 0.5]]]
    mdp = TabularMDP([[[1, 0]], [[1, 0]]], halves, coordinates=[[0, 0], [1, 0]])
    task = RewardMachine([Edge("go", "goal", "there", 1.0)], initial="go", success=["there"])
    problem = Problem(mdp, task, [(), ("goal",)], [0, 1], max_episode_steps=3)
    run = _train(agent, problem, stop=Exact(in_a_row=9), **settings)
    _ = run.stationary_evaluation  # compiles a further kernel if policies have stages


def _train(agent: AgentLike, problem: Problem | ContinuousProblem, **options: Any) -> Run:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QRMaxWarning)  # this run is nobody's
        return train(agent, problem, max_steps=30, evaluate_every=10, progress=False, **options)
