"""Groups of problems: those with the same world, map or task, or those that a study file names.

    [groups]                                     # in a study file
    "short tasks" = ["office/*/exp[1-3]"]        # names or patterns
    "long tasks" = ["office/*/exp[45]"]

A table aggregates its numbers over the problems of each group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from qrmax.errors import ParameterError, UnknownNameError, check_choice, shown
from qrmax.source import Source
from qrmax.studies.problem_specs import CatalogProblem, Environment, ProblemSpec
from qrmax.studies.reading import Table
from qrmax.worlds.catalog import parse_name

if TYPE_CHECKING:
    from qrmax.studies.study import Study

Groups = Mapping[str, tuple[str, ...]]
"""The labels of the problems of each group, in the order of the study."""

PARTS = ("world", "map", "task", "group")
"""The criteria by which problems can be grouped; `group` is that of the study file."""


class PartNames(NamedTuple):
    """The names of the parts of a problem; None if it has no such part."""

    world: str | None
    map: str | None
    task: str | None


def groups_of(study: Study, by: str) -> Groups:
    """The problems of a study, grouped by a part of their names or as the study file says.

    >>> import qrmax
    >>> table6 = qrmax.load_study("paper/table6")
    >>> groups_of(table6, "task")["exp5"]
    ('office/map1/exp5', 'office/map2/exp5', 'office/map3/exp5')
    """
    check_choice("by", by, PARTS)
    if by == "group":
        return _named_groups(study)
    groups: dict[str, list[str]] = {}
    for label, spec in {cell.problem.label: cell.problem for cell in study.cells}.items():
        parts = parts_of(spec)
        part: str | None = getattr(parts, by)
        if part is None:
            known = [name for name, value in parts._asdict().items() if value is not None]
            raise ParameterError(
                f"by is {by!r}, but {label!r} has no {by}; allowed here: {', '.join(known)}, or "
                "group with a table [groups] in the study file"
            )
        groups.setdefault(part, []).append(label)
    return {part: tuple(labels) for part, labels in groups.items()}


def parts_of(spec: ProblemSpec) -> PartNames:
    """The world, the map and the task of a problem, by name.

    >>> parts_of(CatalogProblem("mine", "continuous/office/map1/exp5", None, None, {}))
    PartNames(world='continuous/office', map='map1', task='exp5')
    """
    if isinstance(spec, Environment):
        return PartNames(spec.env, None, _stem(spec.task))
    if not isinstance(spec, CatalogProblem):
        return PartNames(spec.problem, None, _stem(spec.task))
    parsed = parse_name(spec.name)
    if parsed is None:  # a map and a task of the user's own
        return PartNames("office", _stem(spec.map), _stem(spec.task))
    return PartNames(
        parsed.world.name, parsed.map or _stem(spec.map), parsed.task or _stem(spec.task)
    )


def read_groups(table: Table, problems: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read `[groups]`: lists of names and patterns of problems."""
    found = {}
    entries = table.table("groups")
    for name in entries.raw_data():
        patterns = [*_patterns(entries, name)]
        for path, pattern in patterns if problems else ():
            if not any(fnmatchcase(problem, pattern) for problem in problems):
                table.mistakes.add(path, str(UnknownNameError("problem", pattern, problems)))
        found[name] = tuple(
            problem
            for problem in problems
            if any(fnmatchcase(problem, pattern) for _, pattern in patterns)
        )
    return found


def _patterns(entries: Table, name: str) -> Sequence[tuple[str, str]]:
    """The patterns of a group, each with its path."""
    given: Any = entries.raw(name)
    if isinstance(given, str):
        return [(entries.place(name), given)]
    patterns = []
    for path, pattern in entries.items(name) or []:
        if isinstance(pattern, str):
            patterns.append((path, pattern))
        else:
            entries.mistakes.add(path, f"is {shown(pattern)}; needed: a name or a pattern")
    return patterns


def _named_groups(study: Study) -> Groups:
    groups = {
        name: tuple(label for label in study.problems if label in labels)
        for name, labels in study.groups.items()
    }
    groups = {name: labels for name, labels in groups.items() if labels}
    if not groups:
        raise ParameterError(
            f"by is 'group', but {study.name!r} has no groups; give them in the study file, as in "
            '[groups] and short = ["office/*/exp[1-3]"]'
        )
    return groups


def _stem(source: Source | None) -> str | None:
    return None if source is None else PurePath(source.name).stem
