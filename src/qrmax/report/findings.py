"""Aggregated results of each problem and learner: the numbers behind every table format."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qrmax.errors import ParameterError, check_choice
from qrmax.planning.auto_horizon import HARDLY_EVER
from qrmax.report.layout import Layout
from qrmax.studies.futility import decide
from qrmax.studies.statistics import (
    Estimate,
    Steps,
    Summary,
    comparable,
    mean_estimate,
    probability_of_improvement,
    summarize,
)

if TYPE_CHECKING:
    import polars as pl

CLOSE = 0.05
"""The largest relative deviation of a mean from its reference that counts as the same."""

NEAR = 0.05
"""The largest exact gap to the optimum of a policy that counts as close to it."""


class Run(NamedTuple):
    """A row of the results."""

    problem: str
    label: str
    seed: int
    status: str  # "done" or "failed"
    reached: bool | None  # False: right-censored by its budget; None for a failed run
    steps: int | None
    max_steps: int
    version: str | None
    commit: str | None
    success: float | None = None  # of the policy at the end; may be left out
    evaluate_every: int | None = None  # steps between evaluations; may be left out
    dense_checks: int | None = None  # evaluations before they become rarer; may be left out
    episode_return: float | None = None  # of the policy at the end, undiscounted; may be left out
    gap: float | None = None  # of the policy at the end; may be left out
    own_gap: float | None = None  # by the learner's own objective, if that is another one
    own_steps: int | None = None  # at which it met the rule by that; None if it did not

    def __str__(self) -> str:
        return f"{self.label} on {self.problem}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Cell:
    """The aggregated runs of one learner on one problem."""

    steps: Steps | None  # None if no run is complete
    summary: Summary | None
    failed: int
    missing: int  # expected runs without a result
    reference: float | None
    successes: tuple[float, ...] = ()  # of the last policies of right-censored runs
    not_run: int = 0  # runs that are not run, since the first seeds are enough
    far_off: int = 0  # runs that met the rule with a policy that is not close to the optimum
    in_vain: int = 0  # those of them whose policy hardly ever succeeds

    @property
    def n(self) -> int:
        """The number of complete runs."""
        return self.summary.n if self.summary else 0

    @property
    def expected(self) -> int:
        """The number of expected runs."""
        return self.n + self.failed + self.missing + self.not_run

    @property
    def mean(self) -> float | None:
        """The mean over all complete runs; None if a run is right-censored by its budget."""
        return self.summary.mean if self.summary and not self.summary.censored else None

    @property
    def off_by(self) -> float | None:
        """The relative deviation of the mean from the reference; None if either is unknown."""
        if self.mean is None or self.reference is None:
            return None
        return (self.mean - self.reference) / self.reference  # in this order, exact at 5 %

    @property
    def is_close(self) -> bool:
        """Whether the mean is known to be close to the reference."""
        return self.off_by is not None and abs(self.off_by) <= CLOSE


class Improvement(NamedTuple):
    """The probability that one learner needs fewer steps than another."""

    probability: Estimate
    problems: int  # averaged over

    def reversed(self) -> Improvement:
        """The probability of the converse."""
        value, low, high = self.probability
        return Improvement(Estimate(1.0 - value, 1.0 - high, 1.0 - low), self.problems)


class Final(NamedTuple):
    """The last policies of a learner on a problem: means over the runs."""

    problem: str
    label: str
    n: int
    gap: Estimate | None
    success: Estimate | None  # None if the task has no success state, or it was not logged
    episode_return: Estimate | None
    judged: int  # runs that are known to have met the stopping rule, or not
    reached: int  # runs that met it
    steps: Estimate | None  # the mean of those


class Own(NamedTuple):
    """A learner on a problem by its own objective, which is not that of the table."""

    problem: str
    label: str
    n: int
    gap: Estimate  # of the last policies: the mean over the runs
    reached: int  # runs that met the stopping rule by it
    steps: Estimate | None  # the mean of those


@dataclass(frozen=True, slots=True)
class Findings:
    """The content of a table."""

    layout: Layout
    cells: Mapping[tuple[str, str], Cell]  # by problem and label
    versions: tuple[str, ...]  # of qrmax, in the runs
    commits: tuple[str, ...]
    finals: tuple[Final, ...] = ()  # if the layout asks for them
    own: tuple[Own, ...] = ()  # of those learners that have an objective of their own

    def row(self, problem: str) -> list[Cell]:
        """The cells of a problem, in the order of the labels."""
        return [self.cells[problem, label] for label in self.layout.labels]

    def column(self, label: str) -> list[Cell]:
        """The cells of a learner, in the order of the problems."""
        return [self.cells[problem, label] for problem in self.layout.problems]

    @property
    def resolutions(self) -> list[int]:
        """The distinct numbers of steps between evaluations, if greater than 1."""
        found = {cell.steps.resolution for cell in self.cells.values() if cell.steps}
        return sorted(steps for steps in found if steps is not None and steps > 1)

    @property
    def dense_checks(self) -> int | None:
        """The number of evaluations before they become rarer, if they do."""
        found = [cell.steps.dense for cell in self.cells.values() if cell.steps]
        return min((dense for dense in found if dense is not None), default=None)

    def best(self, problem: str) -> set[str]:
        """The learners on a problem that are not distinguishable from the best.

        That is the one with the smallest mean, and all whose 95 % confidence interval overlaps with
        its own; none if those are all learners. The interval of a mean over right-censored runs has
        no upper end, and a single run has no interval either.
        """
        row = zip(self.layout.labels, self.row(problem), strict=True)
        known = {label: cell.summary for label, cell in row if cell.summary}
        if not known:
            return set()
        first = min(known.values(), key=lambda summary: summary.mean_at_least)
        near = {label for label, s in known.items() if s.mean_bounds.low <= first.mean_bounds.high}
        return near if len(near) < len(known) else set()

    def improvement(self, ours: str, theirs: str) -> Improvement | None:
        """The probability of improvement over another learner; None if they share no problem.

        Problems count if both have runs, with the same budget if any run is right-censored.
        """
        pairs = [
            (one.steps, other.steps)
            for one, other in zip(self.column(ours), self.column(theirs), strict=True)
            if one.steps and other.steps and comparable(one.steps, other.steps)
        ]
        if not pairs:
            return None
        probability = probability_of_improvement(
            [one for one, _ in pairs], [other for _, other in pairs]
        )
        return Improvement(probability, len(pairs))


def gather(results: pl.DataFrame, layout: Layout) -> Findings:
    """Aggregate the results, one row for each run, by problem and learner of the layout."""
    runs = _runs_by_cell(results, layout)
    shown = [run for (_, label), group in runs.items() if label in layout.labels for run in group]
    if not shown:
        raise ParameterError(
            f"no results for the table {layout.title!r}: none of the {len(results)} runs is of its "
            f"problems ({', '.join(layout.problems)}) and learners ({', '.join(layout.labels)})"
        )
    seeds = layout.seeds or {run.seed for run in shown}
    return Findings(
        layout=layout,
        cells={
            (problem, label): _cell(
                runs[problem, label],
                len(seeds),
                layout,
                layout.reference.get((problem, label)),
            )
            for problem in layout.problems
            for label in layout.labels
        },
        versions=_distinct(run.version for run in shown),
        commits=_distinct(run.commit for run in shown),
        finals=tuple(_finals(runs, layout)) if layout.shows_final else (),
        own=tuple(_own(runs, layout)),
    )


def _finals(runs: Mapping[tuple[str, str], list[Run]], layout: Layout) -> Iterator[Final]:
    """The last policies, of those learners that have some."""
    for problem in layout.problems:
        for label in (*layout.labels, *layout.others):
            done = [run for run in runs.get((problem, label), []) if run.status == "done"]
            steps = [run.steps for run in done if run.reached]
            judged = [run for run in done if run.reached is not None]
            if done:
                yield Final(
                    problem,
                    label,
                    n=len(done),
                    gap=_mean(run.gap for run in done),
                    success=_mean(run.success for run in done),
                    episode_return=_mean(run.episode_return for run in done),
                    judged=len(judged) if problem in layout.thresholds else 0,
                    reached=len(steps),
                    steps=_mean(steps, _resolution(done)),
                )


def _own(runs: Mapping[tuple[str, str], list[Run]], layout: Layout) -> Iterator[Own]:
    """The learners by their own objectives."""
    for problem in layout.problems:
        for label in layout.labels:
            done = [run for run in runs.get((problem, label), []) if run.own_gap is not None]
            steps = [run.own_steps for run in done if run.own_steps is not None]
            if (gap := _mean(run.own_gap for run in done)) is not None:
                mean = _mean(steps, _resolution(done))
                yield Own(problem, label, len(done), gap, len(steps), mean)


def _mean(values: Iterable[float | None], resolution: int | None = None) -> Estimate | None:
    """The mean of the known values; None if there are none."""
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    return mean_estimate(known, resolution=resolution) if len(known) else None


def _resolution(done: Iterable[Run]) -> int | None:
    """The steps between two evaluations, if they are known."""
    return max((run.evaluate_every for run in done if run.evaluate_every), default=None)


def _runs_by_cell(results: pl.DataFrame, layout: Layout) -> Mapping[tuple[str, str], list[Run]]:
    needed = [name for name in Run._fields if name not in Run._field_defaults]
    if lacking := [name for name in needed if name not in results.columns]:
        raise ParameterError(
            f"results lack the columns {', '.join(lacking)}; needed: {', '.join(needed)}"
        )
    groups: defaultdict[tuple[str, str], list[Run]] = defaultdict(list)
    known = [name for name in Run._fields if name in results.columns]
    for row in results.select(known).iter_rows(named=True):
        run = Run(**row)
        if run.problem in layout.problems and run.label in (*layout.labels, *layout.others):
            groups[run.problem, run.label].append(run)
    return groups


def _cell(runs: Sequence[Run], expected: int, layout: Layout, reference: float | None) -> Cell:
    """Aggregate the runs of a cell."""
    _check_each_once(runs)
    done = [run for run in runs if run.status == "done"]
    steps = _steps(done) if done else None
    absent = expected - len(runs)
    first = layout.seeds[: layout.give_up_after] if layout.give_up_after else ()
    of_first = [run.steps if run.reached else None for run in done if run.seed in first]
    decided = len(of_first) == len(first) > 0 and decide(of_first, layout.agree_within)
    far_off = [run for run in done if run.reached and _is_far_off(run)]
    return Cell(
        steps=steps,
        summary=summarize(steps) if steps else None,
        failed=len(runs) - len(done),
        missing=0 if decided else absent,
        not_run=absent if decided else 0,
        reference=reference,
        successes=tuple(run.success for run in done if not run.reached and run.success is not None),
        far_off=len(far_off),
        in_vain=sum((run.success or 0.0) < HARDLY_EVER for run in far_off),
    )


def _is_far_off(run: Run) -> bool:
    """Whether a policy is not close to the optimum; an infinite gap is stored as none."""
    return run.gap > NEAR if run.gap is not None else run.success is not None


def _steps(done: Sequence[Run]) -> Steps:
    first, reached = done[0], []
    for run in done:
        if run.reached is None or run.steps is None:
            raise ParameterError(f"{run}: done, but without a number of steps, or reached")
        if run.max_steps != first.max_steps:
            raise ParameterError(
                f"{run}: a budget of {run.max_steps} steps, while seed {first.seed} has "
                f"{first.max_steps}; allowed: one budget for all runs that are shown together"
            )
        if run.reached:
            reached.append(run.steps)
    return Steps(
        tuple(reached),
        censored=len(done) - len(reached),
        budget=first.max_steps,
        resolution=_resolution(done),
        dense=next((run.dense_checks for run in done if run.dense_checks), None),
    )


def _check_each_once(runs: Sequence[Run]) -> None:
    seeds = set()
    for run in runs:
        check_choice(f"the status of {run},", run.status, ("done", "failed"))
        if run.seed in seeds:
            raise ParameterError(f"{run}: there are two such runs; allowed: each seed once")
        seeds.add(run.seed)


def _distinct(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name}))
