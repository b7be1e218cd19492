"""Success or gap after a fixed number of steps, from the learning curves of a study.

The success of a run after n steps is that of its last evaluation by then; so is its gap. A run that
met its stopping rule earlier keeps its last value. A run that ended earlier for another reason,
such as a budget of episodes, has none, and is left out and counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qrmax.errors import ParameterError, check_choice, check_count
from qrmax.studies.learning_curves import curves, with_others
from qrmax.studies.statistics import FloatArray
from qrmax.studies.study import Study
from qrmax.training.check_schedule import check_before

if TYPE_CHECKING:
    import polars


MEASURES = ("success", "gap")


class AtBudget(NamedTuple):
    """The success or gap of the greedy policy of each run of a learner on a problem."""

    values: FloatArray  # of the runs that count
    left_out: int  # runs that ended before


def measured_at(
    study: Study, folder: str | os.PathLike[str], measure: str, at: int | None = None
) -> dict[tuple[str, str], AtBudget]:
    """Success or gap after `at` steps, or at the end, by problem and learner."""
    check_choice("measure", measure, MEASURES)
    at = study.max_steps if at is None else at
    every = study.training["evaluate_every"]
    check_count("at", at)
    if at < every:
        raise ParameterError(
            f"at is {at:,}, but the first evaluation was after {every:,} steps; give at={every} or "
            "more"
        )
    if at > study.max_steps:
        raise ParameterError(
            f"at is {at:,}, but runs have at most {study.max_steps:,} steps (max_steps)"
        )
    points = with_others(curves(folder), study.others).drop_nulls(measure)
    if measure == "success":
        specs = {cell.problem.label: cell.problem for cell in study.cells}
        defined = [label for label, spec in specs.items() if spec.make().machine.success]
        points = points.filter(points["problem"].is_in(defined))
    if not len(points):
        needed = "a task with a success state" if measure == "success" else "an exact optimum"
        raise ParameterError(
            f"measure is {measure!r}, which the curves in {folder} do not have; needed: {needed}"
        )
    before = check_before(at, every, study.training.get("dense_checks"))
    found: dict[tuple[str, str], list[float | None]] = {}
    for problem, label, value in _last_by(points, measure, at, before):
        found.setdefault((problem, label), []).append(value)
    return {key: _rates(values) for key, values in found.items()}


def _last_by(
    points: polars.DataFrame, measure: str, at: int, least: int
) -> Iterator[tuple[str, str, float | None]]:
    """The measure of each run by a step; None if it ended earlier, with its rule not met."""
    for (problem, label, _), run in points.group_by(
        "problem", "label", "seed", maintain_order=True
    ):
        step, values = run["step"].to_numpy(), run[measure].to_numpy()
        counts = bool(run["reached"][0]) or step[-1] > least
        last = int(np.searchsorted(step, at, side="right")) - 1
        yield str(problem), str(label), float(values[last]) if counts and last >= 0 else None


def _rates(values: list[float | None]) -> AtBudget:
    known = [value for value in values if value is not None]
    return AtBudget(np.array(known, dtype=np.float64), len(values) - len(known))
