"""Studies with all defaults filled in: agents with settings, problems, seeds and training.

A `Cell` is one agent, with all its settings, on one problem, with all its options: a cell of the
study's table. A study runs each cell with each seed. A run is identified by its `id`, the hash of
everything that its result depends on, and of nothing else: neither labels nor the other runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any

from qrmax.errors import ParameterError, StudyError
from qrmax.studies.other_runs import OtherRuns
from qrmax.studies.problem_specs import ProblemSpec, spec_of

if TYPE_CHECKING:
    from qrmax.agents.registry import AgentLike
    from qrmax.training.stopping import StoppingRule

ID_LENGTH = 16  # hexadecimal digits: collisions are unlikely among a billion runs
LIMITS = ("max_steps", "max_episodes", "evaluate_every", "dense_checks")
"""The settings of training besides the seed and the stopping rule."""
FILTERS = ("problem", "agent", "seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """An agent on a problem."""

    problem: ProblemSpec
    label: str  # of the agent: its name, or another if there are several variants
    agent: str  # its name, or module:Class
    settings: Mapping[str, Any]  # all of them, defaults included
    source: Mapping[str, str] | None = None  # the origin of an agent from outside the library
    stop: Mapping[str, Any] | None = None  # the stopping rule, if problems have different ones

    def as_data(self) -> dict[str, Any]:
        """Everything that results depend on, as plain data; labels are excluded."""
        data = {
            "problem": self.problem.as_data(),
            "agent": self.agent,
            "settings": dict(self.settings),
        }
        return data if self.source is None else {**data, "source": dict(self.source)}

    def identity(self) -> bytes:
        """A key that is equal for cells with the same results."""
        return canonical(self.as_data())


@dataclass(frozen=True)
class RunSpec:
    """One run: a cell, a seed, and the parameters of training."""

    cell: Cell
    seed: int
    training: Mapping[str, Any]

    def config(self) -> dict[str, Any]:
        """Everything that the result depends on, as plain data."""
        return {**self.cell.as_data(), "training": {**self.training, "seed": self.seed}}

    @cached_property
    def id(self) -> str:
        """The name of the run's folder."""
        return config_id(self.config())

    def __str__(self) -> str:
        return f"{self.cell.label} on {self.cell.problem.label}, seed {self.seed}"


@dataclass(frozen=True, init=False)
class Study:
    """Cells, seeds and parameters of training: a study file with all defaults filled in.

    >>> import qrmax
    >>> study = qrmax.load_study("paper/table4", protocol="as-published")
    >>> study
    Study('paper/table4', as-published: 15 problems, 6 agents, 30 seeds, 2700 runs)
    >>> study.only(problem=["office/map1/*"], agent=["qrmax*"], seed=["0", "1"])
    Study('paper/table4', as-published: 5 problems, 2 agents, 2 seeds, 20 runs)
    >>> qrmax.Study(problems=["office/map1/exp[12]"], agents=["qrmax", "rmax"], seeds=10)
    Study('study': 2 problems, 2 agents, 10 seeds, 40 runs)
    >>> qrmax.Study(problems=["office/map1/exp1"], agents=["qrmax"])
    Study('study': 1 problem, 1 agent, 1 seed, 1 run)
    """

    name: str
    protocol: str | None
    title: str
    about: str
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    training: Mapping[str, Any]  # max_steps, evaluate_every, and a rule that all problems share
    # published reference values, by problem and then by agent's label
    reference: Mapping[str, Mapping[str, float]]
    comparable: bool  # whether those were measured under the same protocol
    others: tuple[OtherRuns, ...]  # runs of other tools, for tables and curves
    groups: Mapping[str, tuple[str, ...]]  # problems to aggregate over, by the name of the group
    give_up_after: int | None  # first seeds, after which the rest of a cell may not be run
    agree_within: float | None  # relative difference of their steps at which they are enough
    # its name or file, as `qrmax sweep` takes it; None for a study made in Python
    file: str | None = field(compare=False)

    def __init__(
        self,
        problems: Sequence[str | Mapping[str, Any]],
        agents: Sequence[AgentLike | Mapping[str, Any]] | None = None,
        seeds: int | Sequence[int] = 1,
        *,
        name: str = "study",
        protocol: str | None = None,
        stop: str | StoppingRule | Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        max_episodes: int | None = None,
        evaluate_every: int | None = None,
        dense_checks: int | None = None,
        give_up_after: int | None = None,
        agree_within: float | None = None,
        gamma: float | None = None,
        **keys: Any,
    ) -> None:
        """Make a study from the keys of a study file; the guide has all of them.

        Args:
            problems: names, patterns of names, or mappings such as `{"map": "my.txt", "task":
                "my.toml"}` and `{"env": "CliffWalking-v1", ...}`.
            agents: names, `module:Class`, classes, configs, or mappings such as `{"agent": "rmax",
                "label": "few samples", "t_env": 10}`; a protocol may name them instead.
            seeds: the number of seeds, 0 to n - 1, or a list of seeds.
            name: the name of the study, and of the folder of its results.
            protocol: a built-in protocol, or one of `protocols`.
            stop: the stopping rule: its name, a rule, or a mapping with its settings.
            max_steps: the budget of a run in steps.
            max_episodes: its budget in episodes; tables then count episodes.
            evaluate_every: steps between two evaluations of the policy.
            dense_checks: the number of evaluations before that doubles, and doubles again each time
                that the steps so far do.
            give_up_after: the number of seeds of an agent on a problem after which its other seeds
                are not run, if none of these met the stopping rule.
            agree_within: with `give_up_after`, they are not run either if all of these met it, with
                steps that differ by at most this share of the smallest.
            gamma: the discount factor of all agents that are not given another one.
            keys: the other keys of a study file: title, about, world, settings, on, protocols,
                reference, comparable, others, groups. File paths are relative to the current
                folder.

        Raises a `StudyError` that lists all mistakes.
        """
        from qrmax.studies.expand import expand
        from qrmax.studies.python_values import as_file_value

        given = {
            "problems": problems,
            "agents": agents,
            "seeds": seeds,
            "stop": stop,
            "max_steps": max_steps,
            "max_episodes": max_episodes,
            "evaluate_every": evaluate_every,
            "dense_checks": dense_checks,
            "give_up_after": give_up_after,
            "agree_within": agree_within,
            "gamma": gamma,
            **keys,
        }
        data = {key: as_file_value(value) for key, value in given.items() if value is not None}
        self._take(vars(expand(data, "Study(...)", name, protocol)))

    @classmethod
    def of_parts(cls, **parts: Any) -> Study:
        """Make a study from its fields, by name."""
        study = object.__new__(cls)
        missing = {each.name for each in fields(cls)} ^ parts.keys()
        if missing:
            raise TypeError(f"missing or unknown: {', '.join(sorted(missing))}")
        study._take(parts)
        return study

    def changed(self, **parts: Any) -> Study:
        """A copy of the study with these fields replaced."""
        return Study.of_parts(**{**vars(self), **parts})

    def _take(self, parts: Mapping[str, Any]) -> None:
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    @property
    def full_name(self) -> str:
        """The name, with the protocol if there is one: `paper/table4 (as-published)`."""
        return f"{self.name} ({self.protocol})" if self.protocol else self.name

    @property
    def problems(self) -> tuple[str, ...]:
        """The labels of the problems, in order."""
        return tuple(dict.fromkeys(cell.problem.label for cell in self.cells))

    @property
    def agents(self) -> tuple[str, ...]:
        """The labels of the agents, in order."""
        return tuple(dict.fromkeys(cell.label for cell in self.cells))

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that it needs from outside the library."""
        agents = [cell.source["module"] for cell in self.cells if cell.source is not None]
        problems = [name for cell in self.cells for name in cell.problem.modules]
        return tuple(dict.fromkeys([*agents, *problems]))

    @property
    def max_episodes(self) -> int | None:
        """The budget of a run in episodes; None if steps are counted."""
        most: int | None = self.training.get("max_episodes")
        return most

    @property
    def max_steps(self) -> int:
        """The budget of a run in steps."""
        return int(self.training["max_steps"])

    def training_of(self, cell: Cell) -> dict[str, Any]:
        """The parameters of training in a cell, its stopping rule included.

        A yardstick that is the learner's own objective is left out: that is the same run.
        """
        training, settings = {**self.training, **(cell.stop or {})}, cell.settings
        if training.get("gamma") == settings["gamma"] and "horizon" not in settings:
            del training["gamma"]
        return training

    @property
    def stops(self) -> dict[str, dict[str, Any]]:
        """The stopping rules as plain data, by problem."""
        return {
            cell.problem.label: {
                key: value
                for key, value in {**self.training, **(cell.stop or {})}.items()
                if key not in LIMITS
            }
            for cell in self.cells
        }

    def __len__(self) -> int:
        return len(self.cells) * len(self.seeds)

    def runs(self) -> Iterator[RunSpec]:
        """All runs, seed by seed, so that one of every kind is done early."""
        for seed in self.seeds:
            for cell in self.cells:
                yield RunSpec(cell, seed, self.training_of(cell))

    def only(
        self, *, problem: Sequence[str] = (), agent: Sequence[str] = (), seed: Sequence[str] = ()
    ) -> Study:
        """The part of the study that matches these patterns, such as `office/map1/*`."""
        cells = tuple(
            cell
            for cell in self.cells
            if _fits(cell.problem.label, problem)
            and (_fits(cell.label, agent) or _fits(cell.agent, agent))
        )
        seeds = tuple(number for number in self.seeds if _fits(str(number), seed))
        if not cells or not seeds:
            raise ParameterError(
                f"no run of {self.name!r} matches; it has the problems "
                f"{', '.join(self.problems)}; the agents {', '.join(self.agents)}; the seeds "
                f"{numbers_as_text(self.seeds)}"
            )
        return self.changed(cells=cells, seeds=seeds)

    def as_data(self) -> dict[str, Any]:
        """The study as plain data."""
        return {
            "name": self.name,
            "file": self.file,
            "protocol": self.protocol,
            "title": self.title,
            "about": self.about,
            "problems": {cell.problem.label: cell.problem.as_data() for cell in self.cells},
            "cells": [
                {
                    **cell.as_data(),
                    "problem": cell.problem.label,
                    "label": cell.label,
                    "stop": cell.stop,
                }
                for cell in self.cells
            ],
            "seeds": list(self.seeds),
            "training": dict(self.training),
            "reference": {problem: dict(row) for problem, row in self.reference.items()},
            "comparable": self.comparable,
            "others": [others.as_data() for others in self.others],
            # only if given: earlier versions of qrmax refuse what they do not know
            **({"groups": {k: list(v) for k, v in self.groups.items()}} if self.groups else {}),
            **({"give_up_after": self.give_up_after} if self.give_up_after else {}),
            **({"agree_within": self.agree_within} if self.agree_within else {}),
        }

    @staticmethod
    def of(data: Mapping[str, Any]) -> Study:
        """Restore a study from `as_data`."""
        try:
            problems = {
                label: spec_of(problem, label) for label, problem in data["problems"].items()
            }
            cells = tuple(
                Cell(**{**cell, "problem": problems[cell["problem"]]}) for cell in data["cells"]
            )
            given = {key: data[key] for key in data.keys() - {"problems"}}
            parts = {
                "cells": cells,
                "seeds": tuple(data["seeds"]),
                "others": tuple(map(OtherRuns.of, data["others"])),
                "file": data.get("file", f"{data['name']}.toml"),  # earlier folders lack it
                "groups": {k: tuple(v) for k, v in data.get("groups", {}).items()},
                "give_up_after": data.get("give_up_after"),
                "agree_within": data.get("agree_within"),
            }
            return Study.of_parts(**{**given, **parts})
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise StudyError(f"a part is missing or inconsistent: {error!r}") from error

    def __repr__(self) -> str:
        protocol = f", {self.protocol}" if self.protocol else ""
        counts = {
            "problem": len(self.problems),
            "agent": len(self.agents),
            "seed": len(self.seeds),
            "run": len(self),
        }
        parts = [f"{count} {noun}{'' if count == 1 else 's'}" for noun, count in counts.items()]
        return f"Study({self.name!r}{protocol}: {', '.join(parts)})"


def config_id(config: Mapping[str, Any]) -> str:
    """The hash of a run's configuration."""
    return hashlib.sha256(canonical(config)).hexdigest()[:ID_LENGTH]


def canonical(data: Any) -> bytes:
    """Plain data as canonical JSON."""
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def numbers_as_text(numbers: Sequence[int]) -> str:
    """Integers as a short text.

    >>> numbers_as_text(range(30)), numbers_as_text([1, 5]), numbers_as_text([3])
    ('0 to 29', '1, 5', '3')
    """
    if len(numbers) > 2 and list(numbers) == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _fits(text: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(text, pattern) for pattern in patterns)
