"""The problems of a study: from entries of the file to specifications."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from qrmax.errors import ParameterError
from qrmax.machines import task_files as tasks
from qrmax.source import Source
from qrmax.studies.outside_code import world_origin
from qrmax.studies.outside_problems import OWN_KINDS, by_last_name, find_task, make_own
from qrmax.studies.plain_settings import as_data
from qrmax.studies.precedence import Layers, check_option, is_pattern
from qrmax.studies.problem_specs import CatalogProblem, ProblemSpec
from qrmax.studies.reading import Mistakes, Table, as_entry
from qrmax.worlds import grid as maps
from qrmax.worlds.catalog import (
    all_names,
    is_default_world,
    option_names,
    options_of,
    problem_parts,
    unknown_problem,
)
from qrmax.worlds.world_registry import worlds

SEEDS = re.compile(r"(?P<world>.+)/(?P<first>\d{1,18})-(?P<last>\d{1,18})")
"""Problems of a generator by a range of seeds, both ends included: `random-mdp/0-9`."""

MOST_PROBLEMS = 10_000


class MadeProblem(NamedTuple):
    """A problem of a study, and its specification."""

    spec: ProblemSpec
    problem: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemEntry:
    """A problem, or all that match a pattern."""

    name: str | None
    map: str | None
    task: str | None
    label: str | None
    options: Mapping[str, Any]


def read_problems(table: Table, layers: Layers, beside: Path) -> list[MadeProblem]:
    """Make the problems of a study; labels are unique."""
    items = table.items("problems")
    if items is None and "problems" not in table:
        table.mistakes.add("problems", "is missing")
    if items == []:
        table.mistakes.add("problems", "is empty; needed: at least one problem")
    found: list[MadeProblem] = []
    for path, value in items or []:
        with table.mistakes.at(path):
            for made in _read(value, path, table.mistakes, layers, beside):
                if made.spec.label in [other.spec.label for other in found]:
                    raise ParameterError(
                        f"there are two problems {made.spec.label!r}; leave one out, or give it a "
                        "label"
                    )
                found.append(made)
    return found


def _read(
    value: Any, path: str, mistakes: Mistakes, layers: Layers, beside: Path
) -> Iterator[MadeProblem]:
    """The problems of an entry; none if it is malformed."""
    if isinstance(value, dict) and OWN_KINDS & value.keys():
        made = make_own(Table(value, path, mistakes), beside)
        yield from [] if made is None else [MadeProblem(*made)]
    elif (entry := _read_entry(value, path, mistakes)) is not None:
        yield from _make(entry, layers, beside)


def _read_entry(value: Any, path: str, mistakes: Mistakes) -> ProblemEntry | None:
    table = as_entry(value, "name", path, mistakes)
    if table is None:
        return None
    texts = {key: table.text(key) for key in ("name", "map", "task", "label")}
    own = [] if texts["name"] is None else [options_of(texts["name"])]
    options = table.checked_rest(partial(check_option, also=own))
    if any(key in table and text is None for key, text in texts.items()):
        return None
    return ProblemEntry(**texts, options=options)


def _make(entry: ProblemEntry, layers: Layers, beside: Path) -> Iterator[MadeProblem]:
    for name in _names(entry):
        options = layers.world(option_names(name)) | dict(entry.options)
        spec = _spec(entry, name, as_data(options_of(name).of(options)), beside)
        problem = spec.make()
        yield MadeProblem(replace(spec, label=entry.label or problem.name), problem)


def _names(entry: ProblemEntry) -> list[str | None]:
    """The names that an entry matches: several if it is a pattern."""
    name = entry.name
    if name is None and (entry.map is None or entry.task is None):
        raise ParameterError("needed: a name such as 'office/map1/exp5', or a map and a task")
    if name is not None and (seeds := SEEDS.fullmatch(name)) and seeds["world"] in _generators():
        first, last = int(seeds["first"]), int(seeds["last"])
        if not 0 <= last - first < MOST_PROBLEMS:
            raise ParameterError(
                f"{name!r} has {max(0, last - first + 1):,} seeds; allowed: 1 to {MOST_PROBLEMS:,}"
            )
        return [f"{seeds['world']}/{seed}" for seed in range(first, last + 1)]
    if name is None or not is_pattern(name):
        return [name]
    fitting = [known for known in all_names() if fnmatchcase(known, name)]
    if not fitting:
        raise unknown_problem(name)
    return [*fitting]


def _generators() -> set[str]:
    """The worlds whose problems are drawn from a seed."""
    return {world.name for world in worlds() if world.seeds}


def _spec(
    entry: ProblemEntry, name: str | None, options: dict[str, Any], beside: Path
) -> CatalogProblem:
    """A problem by its name if all of it is built in; otherwise its files, as text."""
    if not is_default_world(name):
        own_map = None if entry.map is None else _find_map(entry.map, beside)
        own_task = None if entry.task is None else find_task(entry.task, beside)
        portable, origin = world_origin(str(name))
        return CatalogProblem("", portable, own_map, own_task, options, origin)
    parts = problem_parts(name, entry.map, entry.task)
    grid, task = str(parts.map), str(parts.task)
    if grid in maps.map_names() and task in tasks.task_names():
        name = f"office/{grid}/{task.removeprefix(f'{grid}/')}"
        return CatalogProblem("", name, None, None, options)
    return CatalogProblem("", None, _find_map(grid, beside), find_task(task, beside), options)


def _find_map(spec: str, beside: Path) -> Source:
    return by_last_name(Source.find(spec, "map", maps.MAPS, maps.SUFFIX, beside=beside))
