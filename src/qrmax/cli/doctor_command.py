"""`qrmax doctor`: check this installation."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import click

from qrmax._version import __version__
from qrmax.cli.output import as_json, examples, print_facts, print_json

PACKAGES = (
    "numpy",
    "numba",
    "scipy",
    "gymnasium",
    "polars",
    "safetensors",
    "click",
    "rich",
)
EXTRAS = {"ray": "ray", "tensorboardX": "log"}  # packages, and the extras that install them
KNOWN_VALUE = 0.0879463  # of office/map1/exp1, to six digits


@click.command(epilog=examples("qrmax doctor --json"))
@as_json
def doctor(as_json: bool) -> None:
    """Check this installation; exit with 1 if something is wrong."""
    facts = {
        "qrmax": __version__,
        "python": f"{platform.python_version()} on {platform.platform()}",
        **{package: _version(package) for package in PACKAGES},
        **{
            package: _version(package, f"not installed; pip install 'qrmax[{extra}]'")
            for package, extra in EXTRAS.items()
        },
    }
    checks = {
        "data": _check(_built_in_files_load),
        "worlds": _check(_all_worlds_load),
        "planner": _check(_a_known_problem_is_solved),
        "gymnasium worlds": _check(_a_world_runs),
        "learner": _check(_a_learner_learns),
        "sweep": _check(_a_study_is_swept),
        "installed agents": _check(_installed_agents_load),
    }
    healthy = all(outcome.startswith("ok") for outcome in checks.values())
    if as_json:
        print_json({**facts, "checks": checks, "healthy": healthy})
    else:
        print_facts({**facts, **checks})
        click.echo("everything works" if healthy else "something is wrong: see above")
    if not healthy:
        sys.exit(1)


def _version(package: str, otherwise: str = "not installed") -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return otherwise


def _check(check: Callable[[], str]) -> str:
    started = time.perf_counter()
    try:
        found = check()
    except Exception as error:  # whatever it is, the report is the place to say it
        return f"failed: {type(error).__name__}: {error}"
    return f"ok, {found} ({time.perf_counter() - started:.1f} s)"


def _built_in_files_load() -> str:
    from qrmax.machines.task_files import load_task, task_names
    from qrmax.worlds.grid import load_map, map_names

    maps, tasks = [*map(load_map, map_names())], [*map(load_task, task_names())]
    return f"{len(maps)} maps and {len(tasks)} tasks"


def _all_worlds_load() -> str:
    from qrmax.errors import PluginError
    from qrmax.worlds.world_registry import broken_worlds, worlds

    if broken := [*broken_worlds()]:
        raise PluginError("\n".join(broken))
    return f"{len(worlds())} worlds"


def _a_known_problem_is_solved() -> str:
    from qrmax.planning.compilation import is_compiled
    from qrmax.planning.kernels import solve_layer
    from qrmax.planning.value_iteration import solve
    from qrmax.worlds.catalog import make

    how = "compiled before" if is_compiled(solve_layer) else "compiled just now"
    value = solve(make("office/map1/exp1")).start_value
    if abs(value - KNOWN_VALUE) > 1e-7:
        raise ArithmeticError(f"office/map1/exp1 has value {value}, not {KNOWN_VALUE}")
    return how


def _a_world_runs() -> str:
    from qrmax.worlds.gymnasium import OfficeEnv

    env = OfficeEnv("map1", "exp1")
    env.reset(seed=0)
    env.step(0)
    return "office"


def _a_learner_learns() -> str:
    from qrmax.training.run import train
    from qrmax.worlds.catalog import make

    run = train("qrmax-rm", make("office/map1/exp1"), t_env=10)
    if run.reason != "exact":
        raise ArithmeticError(f"qrmax-rm did not learn office/map1/exp1: {run!r}")
    return f"near the optimum after {run.steps} steps"


def _installed_agents_load() -> str:
    from qrmax.agents.registry import agent_names, broken_agents, built_in_names
    from qrmax.errors import PluginError

    if broken := broken_agents():
        raise PluginError("\n".join(broken.values()))
    return f"{len({*agent_names()} - {*built_in_names()})} from other distributions"


def _a_study_is_swept() -> str:
    import tempfile

    from qrmax.studies.sweep import sweep

    only = {"problem": "office/map1/exp1", "agent": "qrmax*"}
    with tempfile.TemporaryDirectory() as folder:
        done = sweep("smoke", folder=folder, only=only).done
    if done != 4:
        raise AssertionError(f"{done} of 4 runs are done")
    return f"{done} runs by worker processes"
