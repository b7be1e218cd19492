"""qrmax: reinforcement learning with non-Markovian rewards.

    >>> import qrmax
    >>> problem = qrmax.make("office/map1/exp1")  # a world and a task
    >>> solution = qrmax.solve(problem)  # its exact optimum
    >>> round(solution.start_value, 4)
    0.0879
    >>> round(qrmax.evaluate(problem, solution.policy).success, 4)
    0.6687

Names are loaded when first used, so `import qrmax` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from qrmax._version import __version__
from qrmax.worlds.on_import import after_import

if TYPE_CHECKING:
    from qrmax import patterns as patterns
    from qrmax import sb3 as sb3
    from qrmax import testing as testing
    from qrmax.agents.base import Agent as Agent
    from qrmax.agents.base import AgentConfig as AgentConfig
    from qrmax.agents.registry import register_agent as register_agent
    from qrmax.errors import QRMaxError as QRMaxError
    from qrmax.errors import QRMaxWarning as QRMaxWarning
    from qrmax.logic.compiler import compile_formula as compile_formula
    from qrmax.logic.dfa import DFA as DFA
    from qrmax.logic.guards import Guard as Guard
    from qrmax.machines.checks import check_task as check_task
    from qrmax.machines.edges import Edge as Edge
    from qrmax.machines.reward_machine import RewardMachine as RewardMachine
    from qrmax.machines.task_files import load_task as load_task
    from qrmax.machines.task_files import save_task as save_task
    from qrmax.planning.fine_grid import FineSolution as FineSolution
    from qrmax.planning.fine_grid import solve_continuous as solve_continuous
    from qrmax.planning.incremental import IncrementalPlanner as IncrementalPlanner
    from qrmax.planning.policy_evaluation import Evaluation as Evaluation
    from qrmax.planning.staged_solution import StagedSolution as StagedSolution
    from qrmax.planning.staged_solution import solve_horizon as solve_horizon
    from qrmax.planning.value_iteration import Solution as Solution
    from qrmax.planning.value_iteration import solve as solve
    from qrmax.problems.continuous_problem import ContinuousProblem as ContinuousProblem
    from qrmax.problems.labelled import LabelledMDP as LabelledMDP
    from qrmax.problems.mdp import TabularMDP as TabularMDP
    from qrmax.problems.model_files import load_model as load_model
    from qrmax.problems.model_files import save_model as save_model
    from qrmax.problems.problem import Problem as Problem
    from qrmax.studies.expand import load_study as load_study
    from qrmax.studies.learning_curves import curves as curves
    from qrmax.studies.results import results as results
    from qrmax.studies.study import Study as Study
    from qrmax.studies.sweep import sweep as sweep
    from qrmax.training.checkpoint import load as load
    from qrmax.training.evaluation import evaluate as evaluate
    from qrmax.training.run import Run as Run
    from qrmax.training.run import train as train
    from qrmax.worlds.catalog import make as make
    from qrmax.worlds.catalog import make_continuous as make_continuous
    from qrmax.worlds.grid import GridMap as GridMap
    from qrmax.worlds.grid import load_map as load_map
    from qrmax.worlds.gymnasium import ContinuousEnv as ContinuousEnv
    from qrmax.worlds.gymnasium import OfficeEnv as OfficeEnv
    from qrmax.worlds.gymnasium import ProblemEnv as ProblemEnv
    from qrmax.worlds.map_folder import MapFolder as MapFolder
    from qrmax.worlds.minigrid import minigrid as minigrid
    from qrmax.worlds.options import Options as Options
    from qrmax.worlds.task_wrapper import TaskWrapper as TaskWrapper
    from qrmax.worlds.vector_task_wrapper import VectorTaskWrapper as VectorTaskWrapper
    from qrmax.worlds.world import World as World
    from qrmax.worlds.world_registry import register_world as register_world

_HOME = {
    "Agent": "agents.base",
    "AgentConfig": "agents.base",
    "ContinuousEnv": "worlds.gymnasium",
    "ContinuousProblem": "problems.continuous_problem",
    "DFA": "logic.dfa",
    "Edge": "machines.edges",
    "Evaluation": "planning.policy_evaluation",
    "FineSolution": "planning.fine_grid",
    "GridMap": "worlds.grid",
    "Guard": "logic.guards",
    "IncrementalPlanner": "planning.incremental",
    "LabelledMDP": "problems.labelled",
    "MapFolder": "worlds.map_folder",
    "OfficeEnv": "worlds.gymnasium",
    "Options": "worlds.options",
    "Problem": "problems.problem",
    "ProblemEnv": "worlds.gymnasium",
    "QRMaxError": "errors",
    "QRMaxWarning": "errors",
    "RewardMachine": "machines.reward_machine",
    "Run": "training.run",
    "Solution": "planning.value_iteration",
    "StagedSolution": "planning.staged_solution",
    "Study": "studies.study",
    "TabularMDP": "problems.mdp",
    "TaskWrapper": "worlds.task_wrapper",
    "VectorTaskWrapper": "worlds.vector_task_wrapper",
    "World": "worlds.world",
    "check_task": "machines.checks",
    "compile_formula": "logic.compiler",
    "curves": "studies.learning_curves",
    "evaluate": "training.evaluation",
    "load": "training.checkpoint",
    "load_map": "worlds.grid",
    "load_model": "problems.model_files",
    "load_study": "studies.expand",
    "load_task": "machines.task_files",
    "make": "worlds.catalog",
    "make_continuous": "worlds.catalog",
    "minigrid": "worlds.minigrid",
    "register_agent": "agents.registry",
    "register_world": "worlds.world_registry",
    "results": "studies.results",
    "save_model": "problems.model_files",
    "save_task": "machines.task_files",
    "solve": "planning.value_iteration",
    "solve_continuous": "planning.fine_grid",
    "solve_horizon": "planning.staged_solution",
    "sweep": "studies.sweep",
    "train": "training.run",
}

_MODULES = ("patterns", "sb3", "testing")

# `from qrmax import *` must not need an extra
__all__ = ["__version__", *_HOME, *(name for name in _MODULES if name != "sb3")]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"qrmax.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'qrmax' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"qrmax.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})


# Gymnasium learns our world ids as soon as both are imported, in either order, and not before:
# importing it here would triple the time that `import qrmax` takes.
after_import("gymnasium", "qrmax.worlds.gymnasium")
