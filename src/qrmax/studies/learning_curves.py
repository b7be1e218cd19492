"""The learning curves in a results folder: `qrmax.curves`, a row for each point of each run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from qrmax.errors import StoreError
from qrmax.studies.other_runs import OtherRuns
from qrmax.studies.results import results
from qrmax.studies.store import CURVE, Store

if TYPE_CHECKING:
    import polars

OF_THE_RUN = ("problem", "agent", "label", "seed", "reached")


def curves(path: str | os.PathLike[str]) -> polars.DataFrame:
    """The learning curves of all complete runs of the study in a results folder.

    `problem`, `agent`, `label`, `seed` and `reached` are those of the run, as in `qrmax.results`;
    `step`, `episodes`, `start_value`, `gap`, `success` and `nominal_length` are those of the point.
    Unknown values are null. Runs of other tools that the study names are at the end; their labels
    name the tool, and `tool` is null for runs of qrmax.

    Args:
        path: the results folder.
    """
    import polars

    store = Store(path)
    of_runs = []
    for run in results(path).filter(status="done").iter_rows(named=True):
        points = polars.read_parquet(store.runs / run["id"] / CURVE)
        of_runs.append(points.select(*(_constant(run[name], name) for name in OF_THE_RUN), "*"))
    if not of_runs:
        raise StoreError(
            f"{path}: has no complete runs yet; `qrmax status {path}` shows the progress"
        )
    ours = polars.concat(of_runs, how="diagonal").with_columns(tool=polars.lit(None, polars.String))
    return with_others(ours, store.study().others)


def with_others(ours: polars.DataFrame, others: Iterable[OtherRuns]) -> polars.DataFrame:
    """The learning curves of our own runs, followed by those of other tools."""
    import polars

    theirs = other_curves(others)
    own = ours.filter(polars.col("tool").is_null())
    return polars.concat([own, theirs], how="diagonal_relaxed") if len(theirs) else own


def other_curves(others: Iterable[OtherRuns]) -> polars.DataFrame:
    """The learning curves of other tools."""
    import polars

    rows = [
        {
            "problem": other.problem,
            "label": other.marked,
            "seed": run.seed,
            "tool": other.tool,
            **point._asdict(),
        }
        for other in others
        for run in other.runs
        for point in run.curve
    ]
    kinds = {"problem": polars.String, "label": polars.String, "seed": polars.Int64}
    kinds |= {"tool": polars.String, "step": polars.Int64}
    kinds |= dict.fromkeys(("success", "episode_return"), polars.Float64)
    return polars.DataFrame(rows, schema=kinds, orient="row")


def _constant(value: str | int | bool, name: str) -> polars.Expr:
    import polars

    return polars.lit(value).alias(name)
