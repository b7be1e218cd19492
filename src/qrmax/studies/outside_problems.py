"""Problems of a study that are not in the catalog: environments and user functions.

{ env = "CliffWalking-v1", options = { is_slippery = true }, wrappers = ["mine:Falls"],
  task = "F goal & G !fall", labels = "mine:labels", label = "cliff" }
{ problem = "mine:make_problem", options = { size = 5 } }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from qrmax.errors import ParameterError, shown
from qrmax.machines import task_files as tasks
from qrmax.source import Source
from qrmax.studies.problem_specs import Environment, PythonProblem, sources_of
from qrmax.studies.reading import Table

OWN_KINDS = {"env", "problem"}
"""The keys of an entry that say of what kind it is."""

_ENV_KEYS = (
    *("env", "options", "wrappers", "task", "labels", "transition_labels", "env_reward", "label"),
)
_PROBLEM_KEYS = ("problem", "options", "task", "labels", "label")


def make_own(table: Table, beside: Path) -> tuple[Environment | PythonProblem, Any] | None:
    """Read an entry, and make its problem or environment; None if a value is malformed."""
    before = len(table.mistakes.found)
    spec = _read_env(table, beside) if "env" in table else _read_problem(table, beside)
    if spec is None or len(table.mistakes.found) > before:
        return None
    made = spec.make()
    if isinstance(spec, Environment):
        from qrmax.worlds.outside_environments import check_environment  # loads gymnasium

        probe = spec.make()  # a second instance: the first must stay unused
        check_environment(probe)
        probe.close()
    return replace(spec, label=spec.label or _name(made)), made


def find_task(spec: str, beside: Path) -> Source:
    """The text of a task: built in, in the study's folder, or a formula."""
    return by_last_name(tasks.find_task(spec, beside=beside))


def by_last_name(found: Source) -> Source:
    """A source named by its file name alone, as folders differ between machines."""
    return Source(Path(found.name).name, found.text)


def _read_env(table: Table, beside: Path) -> Environment | None:
    from qrmax.worlds.outside_environments import code_of  # loads gymnasium

    env, task, label = table.text("env"), table.text("task"), table.text("label")
    labels, steps = _read_labels(table), table.text("transition_labels")
    reward = table.flag("env_reward")
    options = dict(table.table("options").rest())
    wrappers = tuple(value for _, value in table.items("wrappers") or [])
    table.refuse_rest(_ENV_KEYS)
    if "task" not in table:
        table.mistakes.add(table.place("task"), "is missing; needed: a formula or a task")
    if ("labels" in table) == ("transition_labels" in table):
        table.mistakes.add(
            table.place("labels"), "needed: either labels or transition_labels, such as mine:labels"
        )
    if env is None or task is None:
        return None
    return Environment(
        label=label or "",
        env=env,
        task=find_task(task, beside),
        labels=labels,
        transition_labels=steps,
        wrappers=wrappers,
        options=options,
        env_reward=reward is not False,
        sources=sources_of(code_of(env, labels, steps, wrappers)),
    )


def _read_problem(table: Table, beside: Path) -> PythonProblem | None:
    problem, task, label = table.text("problem"), table.text("task"), table.text("label")
    labels = _read_labels(table)
    options = dict(table.table("options").rest())
    table.refuse_rest(_PROBLEM_KEYS)
    if isinstance(labels, str):
        table.mistakes.add(table.place("labels"), f"is {shown(labels)}; needed: a table of states")
        return None
    if problem is None:
        return None
    return PythonProblem(
        label=label or "",
        problem=problem,
        task=None if task is None else find_task(task, beside),
        labels=labels,
        options=options,
        sources=sources_of([problem]),
    )


def _read_labels(table: Table) -> str | Mapping[str, Any] | None:
    """A labelling function: a reference, or a table of propositions by observation."""
    labels = table.raw("labels")
    if labels is None or isinstance(labels, str):
        return labels
    if not isinstance(labels, dict):
        table.mistakes.add(
            table.place("labels"), f"is {shown(labels)}; needed: module:function or a table"
        )
        return None
    for key, names in labels.items():
        listed = [names] if isinstance(names, str) else names
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            table.mistakes.add(
                f"{table.place('labels')}.{key}", f"is {shown(names)}; needed: names, as a list"
            )
    return labels


def _name(made: Any) -> str:
    """The name of a problem or an environment, for tables."""
    name = getattr(made, "name", None)
    if isinstance(name, str):
        return name
    spec = getattr(made, "spec", None)
    if spec is not None:
        return str(spec.id)
    raise ParameterError("the environment has no name; give it a label")
