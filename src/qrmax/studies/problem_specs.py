"""Specifications of problems as plain data, from which any process can make them.

    CatalogProblem     a built-in problem, or a user's map and task
    Environment        a Gymnasium environment with a task
    PythonProblem      a problem that a user's function makes

Each has a `label`, which does not affect results; `spec_of` restores it from `as_data`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from qrmax.errors import PluginError, shown
from qrmax.machines.reward_machine import RewardMachine
from qrmax.machines.task_files import read_task
from qrmax.outside_errors import described
from qrmax.plugins import import_object
from qrmax.problems.labelled import LabelledMDP
from qrmax.problems.mdp import TabularMDP
from qrmax.source import Source
from qrmax.studies.outside_code import Origin, check_origin, origin_of, world_origin
from qrmax.training.domains.domain_kinds import is_problem
from qrmax.worlds.catalog import make
from qrmax.worlds.grid import GridMap, parse_map

Sources = Mapping[str, Origin]
"""The origins of code from outside, by its reference."""


@dataclass(frozen=True, slots=True)
class CatalogProblem:
    """A problem by its name, or from the user's files, which are kept as text."""

    label: str
    name: str | None  # such as office/map1/exp5; None for a user's map and task
    map: Source | None
    task: Source | None
    options: Mapping[str, Any]  # all of them, defaults included
    origin: Origin | None = None  # of a world from outside the library

    def make(self) -> Any:
        """Make the problem; refuse if its code has changed since."""
        if self.origin is not None:
            check_origin(world_origin(str(self.name))[1], self.origin)
        grid: GridMap | None = None if self.map is None else parse_map(self.map)
        machine: RewardMachine | None = None if self.task is None else read_task(self.task)
        return make(self.name, map=grid, task=machine, **self.options)

    def plain(self) -> Any:
        """Make the problem with the default options of its world."""
        return replace(self, options={}).make()

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules from outside the library that it needs."""
        return () if self.origin is None else (self.origin["module"],)

    def as_data(self) -> dict[str, Any]:
        """All but the label, as plain data."""
        return {
            "name": self.name,
            "map": _text(self.map),
            "task": _text(self.task),
            "options": dict(self.options),
            # only if given, so that the ids of other runs stay the same
            **({} if self.origin is None else {"origin": dict(self.origin)}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A Gymnasium environment with a task: see `worlds/outside_environments.py`."""

    label: str
    env: str
    task: Source
    labels: str | Mapping[str, Any] | None = None
    transition_labels: str | None = None
    wrappers: tuple[str | Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    env_reward: bool = True
    sources: Sources = field(default_factory=dict)

    def make(self) -> Any:
        """Make the environment; refuse if its code has changed since."""
        from qrmax.worlds.outside_environments import make_environment  # loads gymnasium

        check_sources(self.sources)
        made = make_environment(
            self.env,
            read_task(self.task),
            labels=self.labels,
            transition_labels=self.transition_labels,
            options=self.options,
            wrappers=self.wrappers,
            env_reward=self.env_reward,
        )
        made.made_from = self.as_data()
        return made

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules from outside the library that it needs."""
        return tuple(origin["module"] for origin in self.sources.values())

    def as_data(self) -> dict[str, Any]:
        """All but the label, as plain data."""
        labels = self.labels
        return {
            "env": self.env,
            "task": _text(self.task),
            "labels": dict(labels) if isinstance(labels, Mapping) else labels,
            "transition_labels": self.transition_labels,
            "wrappers": [dict(x) if isinstance(x, Mapping) else x for x in self.wrappers],
            "options": dict(self.options),
            "env_reward": self.env_reward,
            "sources": {name: dict(origin) for name, origin in self.sources.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonProblem:
    """A problem that a user's function makes: `module:function`."""

    label: str
    problem: str
    task: Source | None = None  # for a function that returns an MDP
    labels: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    sources: Sources = field(default_factory=dict)

    def make(self) -> Any:
        """Make the problem; refuse if its code has changed since."""
        check_sources(self.sources)
        found = import_object(self.problem)
        try:
            made = found(**self.options)
        except Exception as error:  # user code may raise anything
            raise PluginError(f"{self.problem}(...) fails: {described(error)}") from error
        if is_problem(made):
            return made
        if isinstance(made, TabularMDP) and self.labels is not None:
            made = _labelled(made, self.labels)
        if isinstance(made, LabelledMDP) and self.task is not None:
            return made.problem(read_task(self.task))
        raise PluginError(
            f"{self.problem!r} makes {shown(made)}; needed: a Problem, or a TabularMDP together "
            'with a task and labels of states, such as labels = { "3" = ["goal"] }'
        )

    def plain(self) -> Any:
        """Make the problem, which has no other options."""
        return self.make()

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules from outside the library that it needs."""
        return tuple(origin["module"] for origin in self.sources.values())

    def as_data(self) -> dict[str, Any]:
        """All but the label, as plain data."""
        return {
            "problem": self.problem,
            "task": None if self.task is None else _text(self.task),
            "labels": None if self.labels is None else dict(self.labels),
            "options": dict(self.options),
            "sources": {name: dict(origin) for name, origin in self.sources.items()},
        }


ProblemSpec = CatalogProblem | Environment | PythonProblem


def spec_of(data: Mapping[str, Any], label: str = "") -> ProblemSpec:
    """Restore a specification from `as_data`."""
    files = {key: _source(data[key]) for key in ("map", "task") if key in data}
    if "env" in data:
        wrappers = tuple(data["wrappers"])
        return Environment(**{**data, **files, "label": label, "wrappers": wrappers})
    if "problem" in data:
        return PythonProblem(**{**data, **files, "label": label})
    named = (label, data["name"], files["map"], files["task"], data["options"])
    return CatalogProblem(*named, data.get("origin"))


def sources_of(references: Iterable[str]) -> dict[str, Origin]:
    """The origins of the code of these references."""
    return {reference: origin_of(reference) for reference in references}


def check_sources(sources: Sources) -> None:
    """Raise a `PluginError` if code has changed since the specification was made."""
    for reference, origin in sources.items():
        check_origin(origin_of(reference), origin)


def _labelled(mdp: TabularMDP, table: Mapping[str, Any]) -> LabelledMDP:
    """An MDP with labels by the number of the state."""
    sets = [_names(table.get(str(state), ())) for state in range(mdp.n_states)]
    labels = [*dict.fromkeys(sets)]
    unknown = [key for key in table if not key.isdecimal() or int(key) >= mdp.n_states]
    if unknown:
        raise PluginError(f"labels are of state {unknown[0]!r}; allowed: 0 to {mdp.n_states - 1}")
    return LabelledMDP(mdp, labels, [labels.index(names) for names in sets])


def _names(given: Any) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _text(source: Source | None) -> dict[str, str] | None:
    return None if source is None else {"name": source.name, "text": source.text}


def _source(data: Mapping[str, str] | None) -> Source | None:
    return None if data is None else Source(**data)
