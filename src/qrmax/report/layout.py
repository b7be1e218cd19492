"""The layout of a table: its rows and columns, and the reference values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from qrmax.errors import ParameterError, check_range


class Place(NamedTuple):
    """The group and name of a problem's row: `map1`, `exp1`."""

    group: str  # empty if the name has one part
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """The rows, columns and notes of a table.

    >>> Layout(title="Table 4", problems=("office/map1/exp1",), labels=("rmax", "qrmax")).labels
    ('rmax', 'qrmax')
    """

    title: str
    problems: tuple[str, ...]  # the rows, in order
    labels: tuple[str, ...]  # the learners, in order
    about: str = ""  # the protocol of the runs
    command: str = ""  # that made the results
    unit: str = "steps"  # of the numbers
    seeds: tuple[int, ...] = ()  # expected in each cell; none: those that any cell has
    reference: Mapping[tuple[str, str], float] = field(default_factory=dict)  # [problem, label]
    reference_name: str = "paper"
    # the optimal policy's mean length and share of success, by problem
    optimum: Mapping[str, tuple[float | None, float]] = field(default_factory=dict)
    optimum_reference: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    compare: bool = False  # show deviations from the reference
    shows_success: bool = False  # show the success rates of the last policies
    shows_final: bool = False  # show gap, success and return of all last policies
    evaluated: str = "by 100 rollouts"  # the evaluation of the last policies
    counts_steps: bool = True  # False if there is no rule to meet: only last policies are shown
    tests_samples: bool = False  # whether the rule is a test of sampled returns, with its errors
    give_up_after: int | None = None  # seeds; the rest of a cell is not run if none met the rule,
    agree_within: float | None = None  # or if all did, with steps as close as this
    thresholds: tuple[str, ...] = ()  # problems whose runs have a stopping rule to meet
    information: Mapping[str, str] = field(default_factory=dict)  # [label], of the task
    others: tuple[str, ...] = ()  # runs of other tools, of which only the last policies are shown

    def __post_init__(self) -> None:
        for kind, names in (("problems", self.problems), ("labels", self.labels)):
            if not names or len(set(names)) < len(names):
                raise ParameterError(
                    f"{kind} of a table: {', '.join(names) or 'none'}; "
                    "allowed: at least one, and each once"
                )
        for (problem, label), steps in self.reference.items():
            check_range(f"the reference of {label} on {problem}", steps, above=0.0)

    @property
    def levels(self) -> str:
        """The learners on each level of information, as a sentence; empty if none is known."""
        labels: dict[str, list[str]] = {}
        for label in self.labels:
            if label in self.information:
                labels.setdefault(self.information[label], []).append(label)
        parts = [f"{level}: {', '.join(names)}" for level, names in labels.items()]
        return f"Information on the task: {'; '.join(parts)}." if parts else ""

    @property
    def has_reference(self) -> bool:
        """Whether there are reference values beside our numbers."""
        return bool(self.reference or self.optimum_reference)

    @property
    def shows_distance(self) -> bool:
        """Whether the table shows deviations from the reference."""
        return self.compare and bool(self.reference)

    @property
    def has_optimum(self) -> bool:
        """Whether there are columns for the optimal policy."""
        return bool(self.optimum or self.optimum_reference)

    def place(self, problem: str) -> Place:
        """The group and name of a problem, without the world that all problems share.

        >>> Layout(title="", problems=("office/map1/exp1",), labels=("rmax",)).place(
        ...     "office/map1/exp1"
        ... )
        Place(group='map1', name='exp1')
        """
        parts = problem.split("/")
        worlds = {other.split("/")[0] for other in self.problems}
        if len(parts) > 1 and len(worlds) == 1:
            parts = parts[1:]
        return Place(" ".join(parts[:-1]), parts[-1])

    def short_name(self, problem: str) -> str:
        """The problem's name as rows show it: `map1 exp1`."""
        return " ".join(part for part in self.place(problem) if part)
