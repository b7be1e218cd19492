"""Expand a study file and a protocol into a `Study`, with all defaults filled in.

    title = "QR-Max against R-Max"
    problems = ["office/map1/exp[1-5]", { map = "my.txt", task = "my.toml", slip = 0.1 }]
    agents = ["qrmax", "rmax", { agent = "rmax", label = "rmax, few samples", t_env = 10 }]
    seeds = 30                        # 0 to 29; or a list
    protocol = "exact"                # a built-in one, or one of [protocols] below
    max_steps = 2_000_000             # or also max_episodes; then the table counts episodes
    evaluate_every = 1000
    dense_checks = 100                # then rarer, see training/check_schedule.py; default: never
    give_up_after = 3                 # see `futility.py`; by default all seeds are run
    agree_within = 0.2                # the same
    stop = { rule = "exact", within = 0.05 }

    [world]                           # options of every problem
    slip = 0.2

    [settings.qrmax]                  # of an agent, or all that match, as in [settings."ucbvi-*"]
    t_task = 2

    [on."office/map1/*".rmax]         # of an agent on a problem, or on all that match
    v_max = 1.0

    [protocols.quick]                 # overrides all above, if it is chosen
    max_steps = 10_000

A protocol may have all keys of a study but title, problems, seeds and reference; its `agents` may
also be a table of replacements: `agents.qrmax = "qrmax-published"`. `precedence.py` has the rule of
precedence. File paths are relative to the folder of the study.
`reference` names a CSV file with numbers to show beside ours: see `reference_table.py`. `others`
are runs of other tools: see `other_runs.py`. A problem may be an environment: see
`outside_problems.py`. `groups` are problems that tables aggregate over: see `problem_groups.py`.

A file is read in one pass: each part is read, checked and built in place, and mistakes are
collected with their keys, so that all of them are reported at once.
"""

from __future__ import annotations

import os
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

from qrmax.agents.registry import make_config
from qrmax.errors import (
    MissingExtraError,
    ParameterError,
    QRMaxWarning,
    StudyError,
    UnknownNameError,
    shown,
)
from qrmax.plugins import make_importable
from qrmax.seeding import check_seed
from qrmax.source import Source
from qrmax.studies.agent_names import listed_agents
from qrmax.studies.library import PROTOCOLS, STUDIES, SUFFIX, protocol_names, study_names
from qrmax.studies.other_runs import read_others
from qrmax.studies.outside_code import agent_origin, mentions_code
from qrmax.studies.plain_settings import as_data, rule_data
from qrmax.studies.precedence import PROTOCOL_KEYS, AgentEntry, Layer, Layers, read_layer
from qrmax.studies.problem_entries import MadeProblem, read_problems
from qrmax.studies.problem_groups import read_groups
from qrmax.studies.reading import Mistakes, Table
from qrmax.studies.reference_table import Reference, read_reference
from qrmax.studies.study import Cell, Study
from qrmax.training.domains.domain import Domain
from qrmax.training.domains.domain_kinds import domain_kind
from qrmax.training.run import MAX_STEPS, make_session
from qrmax.training.stopping import StoppingRule, as_rule

EVALUATE_EVERY = 1000
MOST_SEEDS = 100_000
LARGEST_SEED = 2**63 - 1  # that an Int64 column can hold
STUDY_KEYS = (
    "title",
    "problems",
    "seeds",
    "protocol",
    "protocols",
    "reference",
    "others",
    "groups",
    *PROTOCOL_KEYS,
)


def load_study(study: str | os.PathLike[str], protocol: str | None = None) -> Study:
    """Read a study: a built-in one by its name, or your own TOML file by its path.

    >>> load_study("smoke")
    Study('smoke', exact: 2 problems, 6 agents, 2 seeds, 24 runs)

    Args:
        study: the name of a built-in study (see `qrmax list studies`), or the path of a file.
        protocol: the name of a protocol, in place of the one that the study names.

    Raises a `StudyError` that lists all mistakes of the file.
    """
    source = Source.find(study, "study", STUDIES, SUFFIX)
    if str(study) in study_names():
        return parse_study(source, str(study), protocol).changed(file=str(study))
    return parse_study(source, Path(source.name).stem, protocol)


def parse_study(source: Source, name: str, protocol: str | None = None) -> Study:
    """Read a study from TOML text; file paths are relative to the source's name."""
    study = expand(_parse_toml(source), source.name, name, protocol)
    return study.changed(file=Path(source.name).name)


def expand(data: Mapping[str, Any], origin: str, name: str, protocol: str | None = None) -> Study:
    """Make a study from the keys and values of a study file.

    `origin` is the path of the file, for messages and for relative paths.
    """
    return _Expansion(Table(data, "", Mistakes(origin)), protocol).study(name)


def _parse_toml(source: Source) -> dict[str, Any]:
    try:
        return tomllib.loads(source.text)
    except (ValueError, RecursionError) as error:  # ValueError: also an integer of 5000 digits
        raise StudyError(f"{source.name}: not valid TOML: {error}") from error


class _Expansion:
    """A study file that is being expanded."""

    def __init__(self, table: Table, protocol: str | None) -> None:
        self.table = table
        self.mistakes = table.mistakes
        self.beside = Path(table.mistakes.name).parent
        if mentions_code(table.raw_data()):
            make_importable(self.beside)
        self.title = table.text("title") or ""
        named = table.text("protocol")
        self.protocol = named if protocol is None else protocol
        self.layers = Layers(self._layers())
        self.agents = self._agents()
        self.max_steps: int = self.layers.said("max_steps", MAX_STEPS)
        self.max_episodes: int | None = self.layers.said("max_episodes")
        self.evaluate_every: int = self.layers.said("evaluate_every", EVALUATE_EVERY)
        self.dense_checks: int | None = self.layers.said("dense_checks")
        self.seeds = self._seeds()
        self.problems = read_problems(table, self.layers, self.beside)
        self.rules = self._rules()
        self._refuse_contradictions()
        self._refuse_unused(self.problems)
        self.reference = self._reference()
        self.others = read_others(
            table,
            [made.spec.label for made in self.problems],
            [entry.label for entry in self.agents],
            self.beside,
            self.evaluate_every,
        )
        self.groups = read_groups(table, [made.spec.label for made in self.problems])
        table.refuse_rest(STUDY_KEYS)

    def study(self, name: str) -> Study:
        """The study, or an error that lists all mistakes."""
        cells = self._cells()
        self.mistakes.refuse()
        return Study.of_parts(
            name=name,
            protocol=self.protocol,
            title=self.title,
            about=self.layers.said("about", ""),
            comparable=self.layers.said("comparable", True),
            cells=tuple(cells),
            seeds=tuple(self.seeds),
            training={
                "max_steps": self.max_steps,
                # only if given, so that the ids of other runs stay the same
                **({} if self.max_episodes is None else {"max_episodes": self.max_episodes}),
                "evaluate_every": self.evaluate_every,
                **({} if self.dense_checks is None else {"dense_checks": self.dense_checks}),
                **self._shared_rule(),
            },
            reference=self.reference,
            others=tuple(self.others),
            file=None,
            groups=self.groups,
            give_up_after=self.layers.said("give_up_after"),
            agree_within=self.layers.said("agree_within"),
        )

    def _layers(self) -> list[Layer]:
        """The layers that apply, in increasing precedence; all layers are read and checked."""
        own: dict[str, Layer] = {}
        self.listed = listed_agents(self.table.raw_data())
        study = read_layer(self.table, self.listed)
        for name, table in self.table.tables("protocols"):
            own[name] = read_layer(table, self.listed)
            table.refuse_rest(PROTOCOL_KEYS)
        self.own = own
        built_in, wanted = protocol_names(), self.protocol
        if wanted is not None and wanted not in (*built_in, *own):
            known = [*built_in, *own]
            self.mistakes.add("protocol", str(UnknownNameError("protocol", wanted, known)))
        layers = [study]
        if wanted in built_in:
            layers.insert(0, self._built_in(wanted))
        if wanted in own:
            layers.append(own[wanted])
        return layers

    def _built_in(self, name: str) -> Layer:
        data = _parse_toml(Source.read(PROTOCOLS / f"{name}{SUFFIX}"))
        return read_layer(Table(data, f"protocol {name}", self.mistakes), self.listed)

    def _agents(self) -> list[AgentEntry]:
        if self.layers.said("agents") is None and not self.mistakes.concern("agents"):
            self.mistakes.add("agents", "is missing; needed: at least one agent")
        return [*self.layers.said("agents", ())]

    def _rules(self) -> dict[str, StoppingRule]:
        """The stopping rule of each problem: the one given, or the default of its kind.

        Problems of a kind have one rule: the budget if the defaults for their tasks differ.
        """
        given: StoppingRule | None = self.layers.said("stop")
        defaults: dict[type[Domain], set[str]] = {}
        for _, problem in self.problems:
            kind = domain_kind(problem)
            defaults.setdefault(kind, set()).add(kind.default_rule(problem.machine))
        of_kind = {
            kind: given or as_rule("budget" if len(names) > 1 else min(names))
            for kind, names in defaults.items()
        }
        return {spec.label: of_kind[domain_kind(problem)] for spec, problem in self.problems}

    def _shared_rule(self) -> dict[str, Any]:
        """The rule of all problems, as plain data; empty if it is not the same for all."""
        first, *others = dict.fromkeys(self.rules.values())
        return {} if others else rule_data(first)

    def _refuse_contradictions(self) -> None:
        """Refuse a stopping rule that can never be met."""
        most, every = self.max_steps, self.evaluate_every
        if self.mistakes.concern("stop", "max_steps", "evaluate_every"):
            return
        for rule in dict.fromkeys(self.rules.values()):
            if rule.name == "budget" and "give_up_after" in self.table:
                self.mistakes.add(
                    "give_up_after",
                    "contradicts the stopping rule 'budget', which no run meets: leave it out, or "
                    "give another rule",
                )
            if rule.name != "budget" and most // every < rule.in_a_row:
                self.mistakes.add(
                    "stop",
                    f"contradicts max_steps and evaluate_every: the rule {rule.name!r} needs "
                    f"{rule.in_a_row} checks in a row, but {most} steps with a check every "
                    f"{every} have {most // every}",
                )

        if self.layers.said("agree_within") is None or self.mistakes.concern("agree_within"):
            return
        if self.layers.said("give_up_after") is None:
            self.mistakes.add("agree_within", "needs give_up_after: how many seeds are to agree")
        if self.max_episodes is not None:
            self.mistakes.add("agree_within", "compares steps, but max_episodes counts episodes")

    def _seeds(self) -> list[int]:
        """The seeds: a count, or a list."""
        given = self.table.raw("seeds")
        if "seeds" not in self.table:
            self.mistakes.add("seeds", "is missing")
            return []
        if isinstance(given, list):
            return _check_seeds(self.table.items("seeds") or [], self.mistakes)
        if type(given) is not int or not 1 <= given <= MOST_SEEDS:
            self.mistakes.add(
                "seeds",
                f"the number of seeds is {shown(given)}; allowed: whole numbers from 1 to "
                f"{MOST_SEEDS}",
            )
            return []
        return [*range(given)]

    def _refuse_unused(self, problems: Sequence[MadeProblem]) -> None:
        """Refuse settings of problems that are not in the study: probably a mistake."""
        labels = [made.spec.label for made in problems]
        for layer in (*self.layers.layers, *self.own.values()):
            for pattern in layer.on if labels and not layer.path.startswith("protocol ") else ():
                if not any(fnmatchcase(label, pattern) for label in labels):
                    path = f"{layer.path}.on.{pattern}".removeprefix(".")
                    self.mistakes.add(path, str(UnknownNameError("problem", pattern, labels)))

    def _reference(self) -> Reference:
        name = self.table.text("reference")
        found: Reference = {}
        if name is not None:
            with self.mistakes.at("reference"):
                found = read_reference(self.beside / name)
        return found

    def _cells(self) -> list[Cell]:
        """Each agent on each problem, constructed once, as an agent may refuse a problem."""
        cells: dict[bytes, Cell] = {}  # by everything that results depend on
        complete = not self.mistakes  # else two cells may be equal for lack of a refused value
        for made, listed in product(self.problems, self.agents):
            entry = self.layers.agent_on(listed, made.spec.label)
            label = "" if entry.label == entry.name else f"{entry.label} "
            with self.mistakes.at(entry.path, f"{label}on {made.spec.label}: "):
                cell = self._cell(made, entry)
                same = cells.setdefault(cell.identity(), cell)
                if complete and same is not cell:
                    raise ParameterError(
                        f"is the same as {same.label!r} on {same.problem.label!r}: labels make no "
                        "difference to what is run"
                    )
        return [*cells.values()]

    def _cell(self, made: MadeProblem, entry: AgentEntry) -> Cell:
        settings = self.layers.settings(entry, made.spec.label)
        rule = None if self.mistakes else self.rules[made.spec.label]
        try:
            with warnings.catch_warnings():
                if self.mistakes:  # the study is refused in any case
                    warnings.simplefilter("ignore", QRMaxWarning)
                session = make_session(entry.agent, made.problem, stop=rule, **settings)
            config = session.agent.config
        except MissingExtraError:  # the study can still be shown, and swept without this agent
            config = make_config(entry.agent, settings)
        source = agent_origin(entry.agent)
        return Cell(
            problem=made.spec,
            label=entry.label,
            # a name only if every worker knows it
            agent=entry.agent if source is None else f"{source['module']}:{source['class']}",
            settings=as_data(config),
            source=source,
            stop=None if self._shared_rule() else rule_data(self.rules[made.spec.label]),
        )


def _check_seeds(items: Sequence[tuple[str, Any]], mistakes: Mistakes) -> list[int]:
    if not items:
        mistakes.add("seeds", "is empty; needed: at least one seed")
    seeds: list[int] = []
    for path, seed in items:
        if type(seed) is not int:
            mistakes.add(path, f"is {shown(seed)}; needed: a whole number")
            continue
        with mistakes.at(path):
            check_seed(seed)
            if seed > LARGEST_SEED:
                raise ParameterError(f"seed is {shown(seed)}; allowed: at most {LARGEST_SEED}")
            if seed in seeds:
                raise ParameterError(f"is {shown(seed)}, which is there twice")
        seeds.append(seed)
    return seeds
