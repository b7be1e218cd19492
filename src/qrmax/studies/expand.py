"""From a study file, and a protocol, to a `Study` with nothing left open.

    title = "QR-Max against R-Max"
    problems = ["office/map1/exp[1-5]", { map = "my.txt", task = "my.toml", slip = 0.1 }]
    agents = ["qrmax", "rmax", { agent = "rmax", label = "rmax, few samples", t_env = 10 }]
    seeds = 30                        # 0 to 29; or a list
    protocol = "as-described"         # a built-in one, or one of [protocols] below
    max_steps = 2_000_000             # or also max_episodes; then the table counts episodes
    evaluate_every = 1000
    stop = { rule = "exact", within = 0.05 }

    [world]                           # options of every problem
    slip = 0.2

    [settings.qrmax]                  # of an agent, wherever it appears
    t_task = 2

    [on."office/map1/*".rmax]         # of an agent on a problem, or on all that fit
    v_max = 1.0

    [protocols.quick]                 # counts before all above, where it is chosen
    max_steps = 10_000

A protocol can say anything that a study can but for its title, problems, seeds and reference. What
counts least comes first: the built-in protocol of the chosen name, the study, the study's own
protocol of that name; options and settings of a single entry count most. Files are looked for
beside the study. `reference` names a CSV file with numbers to show beside ours: a column `problem`,
and one for each agent.
"""

from __future__ import annotations

import csv
import os
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from qrmax.agents.registry import make_config
from qrmax.errors import (
    MissingExtraError,
    ParameterError,
    QRMaxError,
    QRMaxWarning,
    StudyError,
    UnknownNameError,
    shown,
)
from qrmax.machines import task_files as tasks
from qrmax.source import Source
from qrmax.studies.config import (
    AgentEntry,
    Layer,
    ProblemEntry,
    StudyFile,
    as_problem,
    shape_mistakes,
)
from qrmax.studies.library import PROTOCOLS, STUDIES, SUFFIX, protocol_names, study_names
from qrmax.studies.mistakes import (
    EVALUATE_EVERY,
    Mistake,
    known_agents,
    on_patterns,
    refuse,
    tried,
    value_mistakes,
)
from qrmax.studies.study import Cell, ProblemSpec, Study
from qrmax.training.run import MAX_STEPS, make_session
from qrmax.training.stopping import as_rule, make_rule
from qrmax.worlds import grid as maps
from qrmax.worlds.catalog import (
    all_names,
    is_default_world,
    option_names,
    options_of,
    problem_parts,
    unknown_problem,
)


def load_study(study: str | os.PathLike[str], protocol: str | None = None) -> Study:
    """Read a study: a built-in one by its name, or your own TOML file by its path.

    `protocol` replaces the one that the study names.

    >>> load_study("smoke")
    Study('smoke', as-described: 2 problems, 6 agents, 2 seeds, 24 runs)
    """
    source = Source.find(study, "study", STUDIES, SUFFIX)
    name = str(study) if str(study) in study_names() else Path(source.name).stem
    return parse_study(source, name, protocol)


def parse_study(source: Source, name: str, protocol: str | None = None) -> Study:
    """Read a study from TOML text; the source's name says where its files lie."""
    raw = _parse_toml(source)
    mistakes = [*shape_mistakes(raw)]
    told = {mistake.path for mistake in mistakes}
    built_in = {name: _built_in_protocol(name) for name in protocol_names()}
    values = value_mistakes(raw, built_in, protocol)
    mistakes += [mistake for mistake in values if mistake.path not in told]
    mistakes += _problem_mistakes(source, raw)
    if mistakes:
        refuse(source.name, [*mistakes, *_refusals(source, raw, protocol)])
    file = StudyFile.model_validate(raw)
    return _Expansion(source, file, protocol or file.protocol).study(name)


def _parse_toml(source: Source) -> dict[str, Any]:
    try:
        return tomllib.loads(source.text)
    except (ValueError, RecursionError) as error:  # ValueError: also a number of 5000 digits
        raise StudyError(f"{source.name}: not valid TOML: {error}") from error


def _built_in_protocol(name: str) -> dict[str, Any]:
    protocol = _parse_toml(Source.read(PROTOCOLS / f"{name}{SUFFIX}"))
    return {key: value for key, value in protocol.items() if key != "agents"}


def _stand_ins(name: str | None) -> dict[str, str]:
    """The agents that stand for others in a built-in protocol, by the names that they stand for."""
    if name not in protocol_names():
        return {}
    protocol = _parse_toml(Source.read(PROTOCOLS / f"{name}{SUFFIX}"))
    found: dict[str, str] = protocol.get("agents", {})
    return found


class _Made(NamedTuple):
    """A problem of a study."""

    spec: ProblemSpec
    problem: Any  # a Problem or a ContinuousProblem


class _Expansion:
    """A file and a protocol on their way to a study."""

    def __init__(self, source: Source, file: StudyFile, protocol: str | None) -> None:
        self.source, self.file, self.protocol = source, file, protocol
        self.stand_ins = _stand_ins(protocol)
        self.layers: list[Layer] = [file]  # what counts most comes last
        if protocol in protocol_names():
            self.layers.insert(0, Layer.model_validate(_built_in_protocol(protocol)))
        if protocol in file.protocols:
            self.layers.append(file.protocols[protocol])
        self.agents: list[AgentEntry] = self._said("agents", [])
        self.max_steps: int = self._said("max_steps", MAX_STEPS)
        self.max_episodes: int | None = self._said("max_episodes", None)
        self.evaluate_every: int = self._said("evaluate_every", EVALUATE_EVERY)
        stop = self._said("stop", None)
        self.stop = as_rule("exact") if stop is None else make_rule(stop.rule, stop.model_extra)

    def study(self, name: str) -> Study:
        """The study, or an error that lists which agents refuse which problems."""
        cells: dict[bytes, Cell] = {}  # by all that matters to a result
        mistakes: list[Mistake] = []
        for problem, number in product(self._problems(), range(len(self.agents))):
            try:
                cell = self._cell(problem, self.agents[number])
                same = cells.setdefault(cell.identity(), cell)
                if same is not cell:
                    raise ParameterError(
                        f"is the same as {same.label!r} on {same.problem.label!r}: labels make no "
                        "difference to what is run"
                    )
            except QRMaxError as error:
                message = f"{self.agents[number].label or ''} on {problem.spec.label}: {error}"
                mistakes.append(Mistake(f"agents[{number}]", message.lstrip()))
        refuse(self.source.name, mistakes)
        return Study(
            name=name,
            protocol=self.protocol,
            title=self.file.title,
            about=self._said("about", ""),
            comparable=self._said("comparable", True),
            cells=tuple(cells.values()),
            seeds=tuple(self.file.seeds),
            training={
                "max_steps": self.max_steps,
                # only where there is one: the others keep their ids
                **({} if self.max_episodes is None else {"max_episodes": self.max_episodes}),
                "evaluate_every": self.evaluate_every,
                "stop": self.stop.name,
                **_as_data(self.stop),
            },
            reference=_read_reference(self.source, self.file.reference),
        )

    def _said(self, key: str, default: Any) -> Any:
        """What the last layer that speaks of it says."""
        said = [getattr(layer, key) for layer in self.layers]
        return next((value for value in reversed(said) if value is not None), default)

    def _problems(self) -> Iterator[_Made]:
        for entry in self.file.problems:
            for name in _names(entry):
                spec = _problem_spec(self.source, entry, name, self._options(entry, name))
                problem = spec.make()
                yield _Made(replace(spec, label=entry.label or problem.name), problem)

    def _options(self, entry: ProblemEntry, name: str | None) -> Any:
        kind, options = options_of(name), dict[str, Any]()
        for layer in self.layers:  # of what all worlds are told, each takes what it knows
            options |= {key: layer.world[key] for key in layer.world if key in option_names(name)}
        return kind.of(options | (entry.model_extra or {}))

    def _cell(self, made: _Made, entry: AgentEntry) -> Cell:
        """The agent on the problem, tried out."""
        settings: dict[str, Any] = {}
        if (gamma := self._said("gamma", None)) is not None:
            settings["gamma"] = gamma
        for layer in self.layers:
            settings |= layer.settings.get(entry.agent, {})
            for pattern, by_agent in layer.on.items():
                if fnmatchcase(made.spec.label, pattern):
                    settings |= by_agent.get(entry.agent, {})
        settings |= entry.model_extra or {}
        agent = self.stand_ins.get(entry.agent, entry.agent)
        try:
            config = make_session(agent, made.problem, stop=self.stop, **settings).agent.config
        except MissingExtraError:  # it can still be looked at, and swept without this agent
            config = make_config(agent, settings)
        return Cell(
            problem=made.spec,
            label=entry.label or entry.agent,
            agent=agent,
            settings=_as_data(config),
        )


def _problem_mistakes(study: Source, raw: dict[str, Any]) -> Iterator[Mistake]:
    """Problems and files that are not there, or there twice; whatever else is wrong."""
    labels: list[str] = []
    problems, reference = raw.get("problems"), raw.get("reference")
    for number, given in enumerate(problems if isinstance(problems, list) else []):
        if (entry := as_problem(given)) is not None:
            yield from tried(f"problems[{number}]", _take_labels, study, entry, labels)
    for path, pattern in on_patterns(raw):
        # what a study says of a problem that it does not have is surely not meant
        if labels and not any(fnmatchcase(label, pattern) for label in labels):
            yield Mistake(path, str(UnknownNameError("problem", pattern, labels)))
    if isinstance(reference, str):
        yield from tried("reference", _read_reference, study, reference)


def _refusals(study: Source, raw: dict[str, Any], protocol: str | None) -> Iterator[Mistake]:
    """Agents that refuse a problem however they are set, in a study that is refused anyway."""
    problems = raw.get("problems")
    entries = map(as_problem, problems if isinstance(problems, list) else [])
    for entry, (path, agent) in product(filter(None, entries), known_agents(raw, protocol)):
        with warnings.catch_warnings(), suppress(QRMaxError):  # what is wrong there is told already
            warnings.simplefilter("ignore", QRMaxWarning)
            for name in _names(entry):
                problem = _problem_spec(study, entry, name, options_of(name)()).make()
                for mistake in tried(path, make_session, agent, problem):
                    yield mistake._replace(message=f"on {problem.name}: {mistake.message}")


def _take_labels(study: Source, entry: ProblemEntry, labels: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QRMaxWarning)  # they come when the problem is used
        made = [
            _problem_spec(study, entry, name, options_of(name)()).make() for name in _names(entry)
        ]
    for label in [entry.label or problem.name for problem in made]:
        if label in labels:
            raise ParameterError(
                f"there are two problems {label!r}; leave one out, or give it a label"
            )
        labels.append(label)


def _problem_spec(
    study: Source, entry: ProblemEntry, name: str | None, options: Any
) -> ProblemSpec:
    """A problem by its name if all of it is built in; otherwise its files, as text."""
    if not is_default_world(name):
        own_map = None if entry.map is None else _find_map(study, entry.map)
        own_task = None if entry.task is None else _find_task(study, entry.task)
        return ProblemSpec("", name, own_map, own_task, _as_data(options))
    parts = problem_parts(name, entry.map, entry.task)
    grid, task = str(parts.map), str(parts.task)
    if grid in maps.map_names() and task in tasks.task_names():
        name = f"office/{grid}/{task.removeprefix(f'{grid}/')}"
        return ProblemSpec("", name, None, None, _as_data(options))
    return ProblemSpec("", None, _find_map(study, grid), _find_task(study, task), _as_data(options))


def _as_data(settings: Any) -> dict[str, Any]:
    """Settings as plain data; 1 is 1.0 where fractions are allowed, so that both are one run."""
    values = {field: getattr(settings, field.name) for field in fields(settings)}
    return {
        field.name: float(value) if type(value) is int and "float" in str(field.type) else value
        for field, value in values.items()
    }


def _find_map(study: Source, spec: str) -> Source:
    beside = Path(study.name).parent
    return _by_last_name(Source.find(spec, "map", maps.MAPS, maps.SUFFIX, beside=beside))


def _find_task(study: Source, spec: str) -> Source:
    return _by_last_name(tasks.find_task(spec, beside=Path(study.name).parent))


def _by_last_name(found: Source) -> Source:
    """A built-in file, or one beside the study, known by its last name: folders differ."""
    return Source(Path(found.name).name, found.text)


def _names(entry: ProblemEntry) -> list[str | None]:
    """The names that an entry stands for: several where it is a pattern."""
    name = entry.name
    if name is None and (entry.map is None or entry.task is None):
        raise ParameterError("needed: a name such as 'office/map1/exp5', or a map and a task")
    if name is None or not {*name} & {*"*?["}:
        return [name]
    fitting = [known for known in all_names() if fnmatchcase(known, name)]
    if not fitting:
        raise unknown_problem(name)
    return [*fitting]


def _read_reference(study: Source, name: str | None) -> dict[str, dict[str, float]]:
    if name is None:
        return {}
    path = Path(study.name).parent / name
    rows = csv.DictReader(Source.read(path).text.splitlines())
    if "problem" not in (rows.fieldnames or ()):
        raise StudyError(f"{path}: has no column 'problem'; needed: that, and one for each agent")
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        numbers = found.setdefault(row.pop("problem"), {})
        for column, value in row.items():
            try:
                numbers |= {column: float(value)} if value else {}
            except (TypeError, ValueError):
                raise StudyError(
                    f"{path}, line {rows.line_num}, column {column!r}: {shown(value)} is no number"
                ) from None
    return found
